"""LOMtree in its reference mode equals Vowpal Wabbit's --log_multi, prediction for prediction."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from xmtree import _core

GOLDEN = Path(__file__).parent / "golden"
PARAMS = {
    "loss": "quantile",
    "optimizer": "nag",
    "scaling": "none",
    "scale_weights": False,
    "n_bits": None,
    "learning_rate": 0.5,
    "decay": 0.0,
    "split_threshold": 1.0,
    "paper_tree": True,
    "n_estimators": 1,
    "n_passes": 1,
    "seed": 0,
    "early_stopping": False,
}


def runs():
    """Yield every --log_multi run of every golden file: (file, run, T, R_S)."""
    found = []
    for path in sorted(GOLDEN.glob("vw_*.npz")):
        with np.load(path) as file:
            options = json.loads(str(file["meta"]))["options"]
        for run in options:
            if run.startswith("lomtree"):
                budget, resistance = run.removeprefix("lomtree_T").split("_R")
                found.append(
                    pytest.param(path, run, int(budget), int(resistance), id=f"{path.stem}-{run}")
                )
    return found


def rows(file, part, n_features):
    parts = [file[f"{part}_{name}"] for name in ("data", "indices", "indptr")]
    return sp.csr_matrix(tuple(parts), shape=(len(parts[2]) - 1, n_features))


@pytest.mark.parametrize(("path", "run", "budget", "resistance"), runs())
def test_predictions_agree(path, run, budget, resistance):
    with np.load(path) as file:
        meta = json.loads(str(file["meta"]))
        train, test = (rows(file, part, meta["n_features"]) for part in ("train", "test"))
        labels, weights = file["train_y"].astype(np.uint32), file["train_weight"].astype(np.float64)
        expected = {part: file[f"{run}.{part}"] for part in ("pass1", "pass2", "test")}
    n_classes = max(int(labels.max()) + 1, 2)
    nodes_per_class = budget / (n_classes - 1)
    params = PARAMS | {"nodes_per_class": nodes_per_class, "swap_resistance": float(resistance)}
    tree = _core.Classifier("lomtree", json.dumps(params), n_classes)
    wrong = 0
    for part in ("pass1", "pass2"):
        for i in range(len(labels)):
            x = train[i : i + 1]
            if tree.n_examples_seen:
                answer = tree.predict_topk(x, 1)[0][0, 0]
                assert answer == expected[part][i], f"{part}, example {i}"
            answer = answer if i or part == "pass2" else 0
            wrong += weights[i] * (answer != labels[i])
            tree.partial_fit(x, labels[i : i + 1], weights[i : i + 1])
    np.testing.assert_array_equal(tree.predict_topk(test, 1)[0][:, 0], expected["test"])
    # The learner's own counts equal those counted here.
    assert tree.summary()["progressive_loss"] == pytest.approx(wrong / (2 * weights.sum()))
