"""When a tree pays: error against the time of a prediction, times against the number of classes.

    make frontier

Every learner by its defaults (GAMBLE with few rounds), on one thread, on four data sets: error,
seconds to train, microseconds a row in a batch of 10,000 rows and of one row alone. Then
one-against-all beside the trees on made problems of 256 to 16,384 classes: from how many classes on
a tree is the faster one, and at what error. Times are the processor's, so that others on the
machine disturb them less. With ``--figures`` the plot of all that is written to
docs/figures/frontier.svg.
"""

import functools
import statistics
import time
from pathlib import Path

import numpy as np
import pytest
import xmtree
from frontier_plot import drawn
from online_learners import ONLINE_LEARNERS
from xmtree.datasets import make_xmc

PLOT = Path(__file__).parents[1] / "docs" / "figures" / "frontier.svg"
TITLE = "Error against the time of a prediction; times against the number of classes"
N_BATCH, N_ONE, ROUNDS = 10_000, 200, 3

LEARNERS = {
    **{
        name: functools.partial(learner, calibrate=False)
        for name, learner in ONLINE_LEARNERS.items()
    },
    "Recall Tree, no beam": functools.partial(
        xmtree.RecallTreeClassifier, beam_size=1, calibrate=False
    ),
    "LdSM": xmtree.LdSMClassifier,
    "GAMBLE, 20 rounds": functools.partial(xmtree.GambleClassifier, n_estimators=20),
}
#: Those that take a pass, of the passes of each data set.
ONLINE = {*ONLINE_LEARNERS, "Recall Tree, no beam"}
#: A million examples of the next word take minutes for some learners; these are enough to compare.
N_NOVELS, N_NOVELS_TEST = 100_000, 20_000
SETS = ["naics", "omniglot", "novels", "wordnet"]
N_PASSES = {"novels": 1}
#: One-against-all is left out where its weights would take more than this many GB.
MOST_GB = 1.0
#: GAMBLE boosts trees over tables of numbers, so it is left out where rows are texts: where less
#: than this share of the values is not 0.
LEAST_OF_GAMBLE = 0.05

CROSSING = ["OAA", "Recall Tree", "LOMtree", "10 LOMtrees"]
KS = [2**p for p in range(8, 15)]
#: Columns, values in a row, and examples of a class.
N_COLUMNS, NNZ, N_OF_CLASS = 4096, 30, 20
N_MADE_PASSES = 1
#: Points of error, in %, that a tree may be behind one-against-all and count as equal.
EQUAL = 0.5
#: From so many classes on a tree must be ahead of one-against-all.
MOST_CROSSOVER = {"Recall Tree": 1_500, "10 LOMtrees": 4_000}

#: Set -> learner -> error in %, seconds to train, us a row in a batch, us of one row.
FRONTIER: dict[str, dict[str, tuple[float, float, float, float]]] = {}
#: Learner -> classes -> error in %, us to learn a row once, us a row in a batch.
CROSSOVER: dict[str, dict[int, tuple[float, float, float]]] = {}


@pytest.fixture(scope="module")
def task(real, next_word, label_sets):
    """Loads a data set of one label a row: ``task(name) -> X, y, X_test, y_test``."""

    @functools.cache
    def load(name):
        if name == "novels":
            X, y = next_word(N_NOVELS + N_NOVELS_TEST)
            return X[:N_NOVELS], y[:N_NOVELS], X[N_NOVELS:], y[N_NOVELS:]
        if name == "wordnet":
            return rarest(label_sets("wordnet-hypernyms"))
        X, y, X_test, y_test = real({"naics": "naics2017-index"}.get(name, name))
        return X, np.asarray(y), X_test, np.asarray(y_test)

    return load


def rarest(of):
    """The task of each row's rarest label: the most special of the terms above a word."""
    counts = np.asarray(of.y.sum(axis=0)).ravel()

    def one(X, y):
        known = np.flatnonzero(np.diff(y.indptr))
        labels = (y.indices[y.indptr[row] : y.indptr[row + 1]] for row in known)
        return X[known], np.array([of_row[np.argmin(counts[of_row])] for of_row in labels])

    return (*one(of.X, of.y), *one(of.X_test, of.y_test))


def left_out(learner, X, y):
    """Why a learner is not measured, or None."""
    size = len(np.unique(y)) * X.shape[1] * 4 / 1e9
    if learner == "OAA" and size > MOST_GB:
        return f"its weights would take {size:.1f} GB"
    if learner.startswith("GAMBLE") and X.nnz < LEAST_OF_GAMBLE * X.shape[0] * X.shape[1]:
        return "boosts trees: not meant for text"
    return None


def seconds_of(call, *arguments):
    start = time.process_time()
    answer = call(*arguments)
    return time.process_time() - start, answer


def of_batch(model, X):
    """Microseconds a row, the median of some rounds after the one that prepares the model."""
    model.predict(X[:1])
    rows = np.arange(N_BATCH) % X.shape[0]
    batch = X[rows]
    times = [seconds_of(model.predict, batch)[0] for _ in range(ROUNDS)]
    return 1e6 * statistics.median(times) / N_BATCH


def of_one(model, X):
    """Microseconds of a row alone, the median."""
    rows = [X[at : at + 1] for at in range(min(N_ONE, X.shape[0]))]
    return 1e6 * statistics.median(seconds_of(model.predict, row)[0] for row in rows)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", SETS)
def test_frontier(benchmark, task, say, name, learner):
    X, y, X_test, y_test = task(name)
    reason = left_out(learner, X, y)
    if reason:
        say(f"{name:9}{learner:21}left out: {reason}")
        pytest.skip(reason)
    passes = {"n_passes": N_PASSES[name]} if name in N_PASSES and learner in ONLINE else {}
    model = LEARNERS[learner](random_state=0, n_jobs=1, **passes)

    def run():
        train, _ = seconds_of(model.fit, X, y)
        error = 100 * float(np.mean(model.predict(X_test) != y_test))
        times = error, train, of_batch(model, X_test), of_one(model, X_test)
        FRONTIER.setdefault(name, {})[learner] = times

    benchmark.pedantic(run, rounds=1)
    error, train, batch, one = FRONTIER[name][learner]
    say(
        f"{name:9}{learner:21}error {error:5.1f} %  training {train:7.2f} s  "
        f"prediction {batch:7.2f} us in a batch, {one:7.1f} us alone"
    )


@functools.lru_cache(1)
def made(n_classes):
    n = n_classes * N_OF_CLASS
    X, y = make_xmc(n + N_BATCH, N_COLUMNS, n_classes, nnz=NNZ, exponent=0.0, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("learner", CROSSING)
@pytest.mark.parametrize("n_classes", KS)
def test_crossover(benchmark, say, n_classes, learner):
    X, y, X_test, y_test = made(n_classes)
    model = LEARNERS[learner](random_state=0, n_jobs=1, n_passes=N_MADE_PASSES)

    def run():
        train, _ = seconds_of(model.fit, X, y)
        error = 100 * float(np.mean(model.predict(X_test) != y_test))
        of_row = 1e6 * train / (len(y) * N_MADE_PASSES)
        CROSSOVER.setdefault(learner, {})[n_classes] = error, of_row, of_batch(model, X_test)

    benchmark.pedantic(run, rounds=1)
    error, train, batch = CROSSOVER[learner][n_classes]
    say(
        f"{n_classes:6,} classes  {learner:12}error {error:5.1f} %  "
        f"training {train:7.2f} us  prediction {batch:7.2f} us a row"
    )


def crossing(tree, column):
    """The least measured number of classes from which on the tree takes less of the time in
    ``column`` than one-against-all, at an error that is no higher; None if it never does."""
    ahead = None
    for n_classes in reversed(KS):
        of_tree, of_oaa = CROSSOVER[tree][n_classes], CROSSOVER["OAA"][n_classes]
        if of_tree[column] >= of_oaa[column] or of_tree[0] > of_oaa[0] + EQUAL:
            break
        ahead = n_classes
    return ahead


def test_summary(benchmark, request, say):
    benchmark.pedantic(lambda: None, rounds=1)
    complete = all(len(CROSSOVER.get(learner, ())) == len(KS) for learner in CROSSING)
    if not complete or len(FRONTIER) < len(SETS):
        pytest.skip("not everything was measured")
    if request.config.getoption("--figures"):
        from xmtree.plotting._figures import house_style, write

        with house_style():
            write(drawn(FRONTIER, CROSSOVER, list(LEARNERS)), PLOT, TITLE)
    late = []
    for tree in CROSSING[1:]:
        for column, what in ((1, "training"), (2, "prediction")):
            found, most = crossing(tree, column), MOST_CROSSOVER.get(tree)
            missed = most is not None and (found is None or found > most)
            late += [f"{tree}, {what}"] * missed
            wanted = f" (required {most:,}){' MISSED' * missed}" if most else ""
            from_on = f"{found:,} classes on" if found else f"more than {KS[-1]:,} classes"
            say(f"{tree} is faster than OAA in {what} from {from_on}{wanted}")
    assert not late, f"later ahead of one-against-all than required: {late}"
