"""What each part of Recall Tree is worth: the paper's ablations, and our own.

    pytest benches/test_bench_recall_tree.py

One seed, so differences below half a point mean nothing. Figures are test errors in %,
after 5 passes; of the next-word task after one pass over the first examples, as many as are
said. Where two figures stand together the second is the recall of the candidates.
"""

from math import ceil, log2

import numpy as np
import pytest
from xmtree import RecallTreeClassifier

LETTER, NAICS, OMNIGLOT, WORDS = "letter", "naics2017-index", "omniglot", "next word"
#: Of the next-word task: examples learned, where the bound matters and elsewhere, and tested.
N_BOUND, N_TRAIN, N_TEST = 200_000, 100_000, 20_000
#: Examples learned in the order of the text, and in another.
N_ORDERED = 300_000
CANDIDATES = {LETTER: (1, 2, 4, 8, 16, 26), NAICS: (1, 4, 11, 22, 44, 88)}
#: Where the paper's tree and ours go different ways.
MODES = {
    "default": {},
    "paper_tree=True": {"paper_tree": True},
    "PAPER": RecallTreeClassifier.PAPER,
    "VW": RecallTreeClassifier.VW,
}
#: Path features are the paper's, and go with its losses.
PATHS = {"loss": "logistic"}
#: A multiplier with which the bound is the empirical recall.
RECALL_ITSELF = 1e-12
#: One option changed at a time.
CHANGES = (
    {},
    {"router_importance": "none"},
    {"paper_tree": True},
    {"loss": "margin"},
)
BEAMS = ({"beam_size": 1}, {"beam_size": 2}, {"beam_size": 4})


@pytest.fixture(scope="module")
def task(real, next_word):
    """Loads each data set once: ``task(name)``."""
    loaded = {}

    def load(name):
        if name not in loaded:
            if name == WORDS:
                X, y = next_word(1_100_000)
                test = slice(1_000_000, 1_000_000 + N_TEST)
                loaded[name] = X[:N_BOUND], y[:N_BOUND], X[test], y[test]
            else:
                loaded[name] = real(name)
        return loaded[name]

    return load


def learn(name, data, n=N_TRAIN, **options):
    X, y, *_ = data
    n_passes = 5
    if name == WORDS:
        X, y, n_passes = X[:n], y[:n], 1
    model = RecallTreeClassifier(
        **{**options, "n_passes": n_passes}, calibrate=False, random_state=0
    )
    return model.fit(X, y)


def error(model, data):
    return 100 * np.mean(model.predict(data[2]) != data[3])


def error_and_recall(model, data):
    return f"{error(model, data):.1f} {100 * model.candidate_recall(data[2], data[3]):.1f}"


def described(options):
    return ", ".join(f"{name}={value}" for name, value in options.items())


def tell(say, title, heads, rows):
    """A small table: ``rows`` maps what stands in front to a cell per head."""
    say(title)
    lines = {"": list(heads), **rows}
    first = max(map(len, lines))
    widths = [max(map(len, column)) for column in zip(*lines.values(), strict=True)]
    for name, cells in lines.items():
        texts = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        say("  " + " | ".join([name.ljust(first), *texts]))


@pytest.mark.parametrize("name", CANDIDATES)
def test_candidates(benchmark, task, say, name):
    """Fewer candidates are quicker and lose labels; in the paper a path makes up for some."""
    data = task(name)

    def run():
        return {
            path_features: [
                error(
                    learn(name, data, **PATHS, max_candidates=f, path_features=path_features), data
                )
                for f in CANDIDATES[name]
            ]
            for path_features in ("none", "all")
        }

    found = benchmark.pedantic(run, rounds=1)
    rows = {f"path_features={key}": [f"{e:.1f}" for e in row] for key, row in found.items()}
    tell(say, f"{name}: error against F", [f"F={f}" for f in CANDIDATES[name]], rows)
    assert all(row[-1] < row[0] for row in found.values())


def test_path_features(benchmark, task, say):
    names, kinds = (LETTER, NAICS), ("none", "all", "node_only")

    def run():
        return {
            f"path_features={kind}": [
                error_and_recall(learn(name, task(name), **PATHS, path_features=kind), task(name))
                for name in names
            ]
            for kind in kinds
        }

    rows = benchmark.pedantic(run, rounds=1)
    tell(say, "path features with the default F: error and recall", names, rows)


def test_recall_bound(benchmark, task, say):
    """Without the rule every way goes to the full depth, where nodes have seen little; with a
    tiny multiplier the empirical recall itself is compared, the paper's ablation."""
    names, bounds = (NAICS, WORDS), (0.0, RECALL_ITSELF, 1.0)
    heads = [f"{name}, bern_hyper={bound:g}" for name in names for bound in bounds]

    def cell(mode, name, bound):
        data = task(name)
        depth = {}
        if mode in {"PAPER", "VW"}:
            depth["max_depth"] = ceil(log2(len(np.unique(data[1]))))
        options = {**MODES[mode], **depth, "bern_hyper": bound}
        return error_and_recall(learn(name, data, N_BOUND, **options), data)

    def run():
        return {
            mode: [cell(mode, name, bound) for name in names for bound in bounds] for mode in MODES
        }

    rows = benchmark.pedantic(run, rounds=1)
    title = f"multiplier of the recall bound ({WORDS}: {N_BOUND:,} examples): error and recall"
    tell(say, title, heads, rows)


def test_order(benchmark, next_word, say):
    """An online learner follows a text: what was read last says most of what comes."""
    X, y = next_word(N_ORDERED, seed=None)
    order = np.random.default_rng(0).permutation(len(y))

    def progressive(X, y):
        model = RecallTreeClassifier(random_state=0)
        model.partial_fit(X, y, classes=np.unique(y))
        return 100 * model.progressive_loss_

    def run():
        return progressive(X, y), progressive(X[order], y[order])

    ordered, shuffled = benchmark.pedantic(run, rounds=1)
    say(
        f"{WORDS}, progressive error over {N_ORDERED:,} examples: {ordered:.2f} % in the order of "
        f"the text, {shuffled:.2f} % shuffled (the former must be lower)"
    )
    assert ordered < shuffled


def test_options(benchmark, task, say):
    names = (LETTER, NAICS, OMNIGLOT, WORDS)

    def run():
        rows = {}
        for changed in CHANGES:
            models = {name: learn(name, task(name), **changed) for name in names}
            # A beam needs no other model.
            for beam in ({},) if changed else BEAMS:
                rows[described(changed | beam)] = [
                    error_and_recall(models[name].set_params(**beam), task(name)) for name in names
                ]
        return rows

    rows = benchmark.pedantic(run, rounds=1)
    default = RecallTreeClassifier().beam_size
    title = f"options (beam_size={default} is the default; {WORDS}: {N_TRAIN:,} examples)"
    tell(say, f"{title}: error and recall", names, rows)
