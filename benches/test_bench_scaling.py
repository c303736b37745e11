"""Time per example against the number of classes.

    pytest benches/test_bench_scaling.py

The same number of non-zeros and features for every K. The times of LOMtree and Recall Tree
should grow like log K, one-against-all's like K; the K from which a tree is the faster one is
read off where the two lines cross. Times are of the second half of the examples,
when the tree has grown.
"""

import functools
import statistics
import time

import numpy as np
import pytest
from xmtree import LOMTreeClassifier, OAAClassifier, RecallTreeClassifier
from xmtree.datasets import make_xmc

N_FEATURES, NNZ = 4096, 30
KS = [2**p for p in range(6, 18)]
#: One-against-all is measured as far as its weights fit comfortably.
MOST_OAA = 2**13
BEAM = "recall-tree, beam of 4"
TREES = {
    "lomtree": LOMTreeClassifier,
    "recall-tree": functools.partial(RecallTreeClassifier, beam_size=1),
    BEAM: functools.partial(RecallTreeClassifier, beam_size=4),
}
#: Recall Tree takes several times as long for an example, so it gets fewer.
N_TREE = {"lomtree": 200_000, "recall-tree": 100_000, BEAM: 50_000}
#: Recall Tree must be faster than one-against-all from here on.
MOST_CROSSOVER = 1000
SECONDS: dict[str, dict[int, tuple[float, float]]] = {**{name: {} for name in TREES}, "oaa": {}}


@functools.lru_cache(1)
def problem(n_classes, n):
    X, y = make_xmc(n, N_FEATURES, n_classes, nnz=NNZ, exponent=0.0, random_state=n_classes)
    return X, y


def measure(model, X, y, n_classes):
    """Seconds per example in training and in prediction."""
    half = len(y) // 2
    model.partial_fit(X[:half], y[:half], classes=np.arange(n_classes))
    rest, labels = X[half:], y[half:]
    start = time.perf_counter()
    model.partial_fit(rest, labels)
    train = (time.perf_counter() - start) / len(labels)
    model.predict(rest[:1])
    times = []
    for _ in range(3):
        start = time.perf_counter()
        model.predict(rest)
        times.append((time.perf_counter() - start) / len(labels))
    return train, statistics.median(times)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("n_classes", KS)
def test_tree(benchmark, n_classes, tree):
    X, y = problem(n_classes, max(N_TREE.values()))
    X, y = X[: N_TREE[tree]], y[: N_TREE[tree]]

    def run():
        SECONDS[tree][n_classes] = measure(TREES[tree](), X, y, n_classes)

    benchmark.pedantic(run, rounds=1)


@pytest.mark.parametrize("n_classes", [k for k in KS if k <= MOST_OAA])
def test_oaa(benchmark, n_classes):
    X, y = problem(n_classes, max(4_000, 4_000_000 // n_classes))

    def run():
        SECONDS["oaa"][n_classes] = measure(OAAClassifier(), X, y, n_classes)

    benchmark.pedantic(run, rounds=1)


def crossover(tree, oaa):
    """The K at which the two curves meet, between measured points on log axes.

    Below the least K measured if the tree is faster everywhere, else None if nowhere.
    """
    ks = sorted(set(tree) & set(oaa))
    gap = np.log([tree[k] / oaa[k] for k in ks])
    if gap[-1] > 0:
        return None
    # The last crossing: the tree is faster from there on.
    slower = [i for i in range(len(ks)) if gap[i] > 0]
    if not slower:
        return ks[0] - 1
    i = slower[-1] + 1
    share = gap[i - 1] / (gap[i - 1] - gap[i])
    return round(2 ** (np.log2(ks[i - 1]) + share * np.log2(ks[i] / ks[i - 1])))


def told(crossing):
    if crossing is None:
        return f"above {MOST_OAA}"
    return f"below {KS[0]}" if crossing < KS[0] else str(crossing)


def test_slopes(benchmark, say):
    benchmark.pedantic(lambda: None, rounds=1)
    if not all(SECONDS.values()):
        pytest.skip("nothing was measured")
    late = []
    for column, what in enumerate(("training", "prediction")):
        times = {name: {k: t[column] for k, t in SECONDS[name].items()} for name in SECONDS}
        for name, series in times.items():
            ks = np.array(sorted(series))
            us = 1e6 * np.array([series[k] for k in ks])
            say(
                f"{name} {what}, us at K = "
                + ", ".join(f"{k}: {t:.2f}" for k, t in zip(ks, us, strict=True))
            )
            power = np.polyfit(np.log(ks), np.log(us), 1)[0]
            per_bit, base = np.polyfit(np.log2(ks), us, 1)
            fit = f"{base:.2f} + {per_bit:.3f} log2 K us, " if name in TREES else ""
            say(f"{name} {what}: {fit}fitted power of K {power:.2f}")
        crossings = {name: crossover(times[name], times["oaa"]) for name in TREES}
        found = crossings["recall-tree"]
        missed = found is None or found > MOST_CROSSOVER
        late += [what] * missed
        say(f"LOMtree is faster in {what} from K = {told(crossings['lomtree'])} on")
        say(f"Recall Tree with a beam of 4: from K = {told(crossings[BEAM])} on")
        say(
            f"Recall Tree is faster in {what} from K = {told(found)} on "
            f"(required {MOST_CROSSOVER}){' MISSED' * missed}"
        )
    assert not late, f"Recall Tree is faster than OAA from a K above {MOST_CROSSOVER}: {late}"
