"""One row at a time: what a server or a stream asks for.

    pytest benches/test_bench_one_row.py --figures benches/figures-one-row.txt

Microseconds of ``predict``, ``predict_topk`` (k=5) and ``partial_fit`` of one row, the median over
rows that were not seen before, beside scikit-learn's SGDClassifier; in brackets what the compiled
core takes of it. Then, by number of classes, a prediction right after ``partial_fit`` of another
row beside one of a model that does not learn: whatever the size, it must not cost much more.
"""

import statistics
import time

import numpy as np
import pytest
import xmtree
from online_learners import ONLINE_LEARNERS
from sklearn.linear_model import SGDClassifier

LEARNERS = ONLINE_LEARNERS
#: Dense rows; texts of 77 and of 1,048 classes.
SETS = ["letter", "banking77", "naics2017-index"]
N_ROWS = 300
#: Examples that SGDClassifier learns before: its time is the same afterwards, whatever they are.
N_SGD = 2000
#: Rows that it is timed on: it learns a row for as long as all classes take.
N_ROWS_OF_SGD = 20

#: Classes of the synthetic problems on which learning and predicting take turns.
TURNS = [1_000, 10_000, 100_000]
#: Times that a prediction between updates takes of one by a frozen model, at most.
MOST_OF_TURNS = 2
#: Rows that make any model of these problems freeze.
ENOUGH = 60_000

#: Microseconds at most: of a prediction, by learner, and of learning.
MOST = {"OAA": 60, "LdSM": 100}
MOST_OF_TREES = 40
MOST_OF_LEARNING = 60


@pytest.fixture(scope="module")
def task(real):
    """Loads a data set: what is learned, and known labels' rows one by one."""

    def load(name):
        X, y, X_test, y_test = real(name)
        known = np.flatnonzero(np.isin(y_test, y))[: 3 * N_ROWS]
        if name == "letter":
            X, X_test = (
                part if isinstance(part, np.ndarray) else part.toarray() for part in (X, X_test)
            )
        y_test = np.asarray(y_test)
        return X, y, [X_test[at : at + 1] for at in known], [y_test[at : at + 1] for at in known]

    return load


def median_time(call, *arguments):
    """Microseconds of ``call`` for one after the other of the arguments."""
    seconds = []
    for each in zip(*arguments, strict=True):
        start = time.perf_counter()
        call(*each)
        seconds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds)


def predictions(model, rows):
    """Times of ``predict`` and ``predict_topk``, and of the core alone, each on rows of its own."""
    core = model._model
    first, second = rows[:N_ROWS], rows[N_ROWS : 2 * N_ROWS]
    # The first prediction makes what the others use.
    model.predict(rows[-1])
    model.predict_topk(rows[-1])
    core_predict = core.predict if model._y_form == "labels" else core.select_labels
    return {
        "predict": (
            median_time(model.predict, first),
            median_time(core_predict, second),
        ),
        "topk": (
            median_time(model.predict_topk, second),
            median_time(lambda row: core.predict_topk(row, 5), first),
        ),
    }


def line_of(title, times):
    parts = [f"{name} {whole:6.1f} ({core:5.1f})" for name, (whole, core) in times.items()]
    return f"{title}: " + "  ".join(parts)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", SETS)
def test_one_row(benchmark, task, say, name, learner):
    X, y, rows, labels = task(name)
    model = LEARNERS[learner](random_state=0).fit(X, y)
    times = {}

    def run():
        times.update(predictions(model, rows))
        codes = [np.searchsorted(model.classes_, label).astype(np.uint32) for label in labels]
        # The first call checks the parameters.
        model.partial_fit(rows[-1], labels[-1])
        first, second = slice(N_ROWS), slice(N_ROWS, 2 * N_ROWS)
        times["partial_fit"] = (
            median_time(model.partial_fit, rows[first], labels[first]),
            median_time(model._model.partial_fit, rows[second], codes[second]),
        )

    benchmark.pedantic(run, rounds=1)
    say(line_of(f"{name:16}{learner:12}", times))
    most = MOST.get(learner, MOST_OF_TREES)
    assert times["predict"][0] <= most
    assert times["topk"][0] <= most
    assert times["partial_fit"][0] <= MOST_OF_LEARNING


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("n_classes", TURNS)
def test_learning_and_predicting_by_turns(benchmark, say, n_classes, learner):
    if learner == "OAA" and n_classes > 10_000:
        pytest.skip("one-against-all learns 100,000 classes for hours")
    X, y = xmtree.datasets.make_xmc(
        3 * n_classes + ENOUGH, n_classes // 2 + 1000, n_classes, random_state=0
    )
    n = 3 * n_classes
    model = LEARNERS[learner](random_state=0, calibrate=False)
    model.partial_fit(X[:n], y[:n], classes=np.arange(n_classes))
    rows, labels = [X[at : at + 1] for at in range(n, n + 400)], y[n : n + 400]
    times = {}

    def by_turns(call):
        seconds = []
        for at in range(100):
            model.partial_fit(rows[at], labels[at : at + 1])
            start = time.perf_counter()
            call(rows[100 + at])
            seconds.append(time.perf_counter() - start)
        return 1e6 * statistics.median(seconds)

    def run():
        for name, call in (("predict", model.predict), ("topk", model.predict_topk)):
            times[name] = [by_turns(call)]
        model.predict(X[n:])
        for name, call in (("predict", model.predict), ("topk", model.predict_topk)):
            times[name].append(median_time(call, rows[200:]))

    benchmark.pedantic(run, rounds=1)
    parts = [f"{name} {turn:6.1f} ({frozen:5.1f} frozen)" for name, (turn, frozen) in times.items()]
    say(f"{n_classes:7,} classes   {learner:12}between updates: {'  '.join(parts)}")
    assert max(turn / frozen for turn, frozen in times.values()) <= MOST_OF_TURNS


@pytest.mark.parametrize("name", SETS)
def test_one_row_of_sgd(benchmark, task, say, name):
    X, y, rows, labels = task(name)
    model = SGDClassifier(random_state=0)
    model.partial_fit(X[:N_SGD], y[:N_SGD], classes=np.unique(y))
    rows, labels, times = rows[:N_ROWS_OF_SGD], labels[:N_ROWS_OF_SGD], {}

    def run():
        times["predict"] = median_time(model.predict, rows)
        times["partial_fit"] = median_time(model.partial_fit, rows, labels)

    benchmark.pedantic(run, rounds=1)
    parts = "  ".join(f"{way} {time:6.1f}" for way, time in times.items())
    say(f"{name:16}scikit-learn SGDClassifier: {parts}")


def test_one_row_of_label_sets(benchmark, label_sets, say):
    task = label_sets("onet-titles")
    model = xmtree.LdSMClassifier(random_state=0, n_jobs=-1).fit(task.X, task.y)
    rows, times = [task.X_test[at : at + 1] for at in range(2 * N_ROWS)], {}
    benchmark.pedantic(lambda: times.update(predictions(model, rows)), rounds=1)
    say(line_of(f"{'onet-titles':16}{'LdSM':12}", times))
    assert max(times["predict"][0], times["topk"][0]) <= MOST["LdSM"]


def test_one_row_of_gamble(benchmark, task, say):
    X, y, rows, _ = task("letter")
    model, times = xmtree.GambleClassifier(random_state=0, n_jobs=-1).fit(X, y), {}
    benchmark.pedantic(lambda: times.update(predictions(model, rows)), rounds=1)
    say(line_of(f"{'letter':16}{'GAMBLE':12}", times))
