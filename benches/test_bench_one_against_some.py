"""LdSM's sparse scorers with few trees and with the default's: accuracy and cost.

    pytest benches/test_bench_one_against_some.py

Measures are in per cent, on the test part, rows without labels left out. Training takes all
cores, prediction one; us a row are of the whole test part at once, 5 labels each. A file is what
``save`` writes, of which the sparse scorers are 4 bytes a weight; the rest are trees. b and e are
the fitted weight and floor of the join.
"""

import time

import pytest
from ldsm_tasks import formed
from test_bench_recall_tree import tell
from xmtree import LdSMClassifier

SEED = 0
SETS = ("onet-titles", "bibtex", "makupalat", "delicious", "stackex-cooking", "wordnet-hypernyms")
FEW = {"n_estimators": 10, "n_epochs": 3}
MODELS = {
    "default": {},
    "ten trees, 3 epochs, alone": {**FEW, "scorers": "none"},
    "ten trees, 3 epochs, sparse": FEW,
    "ten trees, 3 epochs, sparse, 200 random": {**FEW, "n_random_negatives": 200},
    "ten trees, sparse": {"n_estimators": 10},
}
HEADS = ("P@1/3/5", "PSP@1/3/5", "fit s", "us a row", "MB", "weights", "b", "e")


def cells(options, task, folder):
    """What a model of these options reaches, and what it takes."""
    model = LdSMClassifier(**options, random_state=SEED, n_jobs=-1)
    start = time.perf_counter()
    model.fit(task.X, task.y)
    seconds = time.perf_counter() - start
    model.n_jobs = 1
    start = time.process_time()
    model.predict_topk(task.X_test, 5)
    each = 1e6 * (time.process_time() - start) / task.X_test.shape[0]
    path = folder / "model"
    model.save(path)
    precision, _, scored = formed(task.measure(model))
    found = model._model.summary()
    join = [found.get(name) for name in ("n_scorer_weights", "scorer_weight", "scorer_floor")]
    told = ["" if value is None else f"{value:.3g}" for value in join[1:]]
    weights = "" if join[0] is None else str(join[0])
    size = f"{path.stat().st_size / 1e6:.1f}"
    return [precision, scored, f"{seconds:.1f}", f"{each:.0f}", size, weights, *told]


@pytest.mark.parametrize("name", SETS)
def test_sparse_scorers(benchmark, label_sets, say, tmp_path, name):
    task = label_sets(name)

    def run():
        return {what: cells(options, task, tmp_path) for what, options in MODELS.items()}

    rows = benchmark.pedantic(run, rounds=1)
    tell(say, f"{name}: {task.y.shape[1]} labels", HEADS, rows)
    # What is not the default yet must at least be better than the trees alone.
    alone, sparse = (rows[f"ten trees, 3 epochs, {what}"][0] for what in ("alone", "sparse"))
    assert float(sparse.split(" / ")[0]) > float(alone.split(" / ")[0])
