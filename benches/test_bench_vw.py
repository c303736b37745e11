"""Against Vowpal Wabbit on real data, in one run, single thread.

    pytest benches/test_bench_vw.py

Vowpal Wabbit is its own command line (``python -m vowpalwabbit``), reading the
examples from a binary cache made beforehand; what it needs to start, and to load
its model, is measured by runs on one example and taken off. Of several runs the
fastest counts, so that a busy machine does less harm; where starting still takes
most of the time nothing is reported. xmtree is the estimator as users call it, from
a CSR matrix in memory, validation included.
"""

import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.sparse import vstack
from xmtree import FilterTreeClassifier, LOMTreeClassifier, OAAClassifier

pytest.importorskip("vowpalwabbit", reason="needs vowpalwabbit from PyPI", exc_type=ImportError)

SET = "omniglot"
#: learner -> (options of Vowpal Wabbit, passes, what must be reached and what
#: was aimed at, in training and in prediction)
LEARNERS = {
    "oaa": ("--oaa {k} --loss_function logistic", 1, (25, 60), (12, 25)),
    "lomtree": ("--log_multi {k}", 5, (3, 8), (5, 10)),
    "filter-tree": ("--ect {k}", 5, (1, 3), (1, 3)),
}
#: How often the test examples are predicted in one run of Vowpal Wabbit, so that
#: it takes much longer than starting.
REPEATS = {"oaa": 2, "lomtree": 20, "filter-tree": 20}


@dataclass
class Figures:
    """Seconds per example and errors, filled by the tests in their order."""

    train: dict = field(default_factory=dict)
    predict: dict = field(default_factory=dict)
    error: dict = field(default_factory=dict)


FIGURES = Figures()


@dataclass
class Task:
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray
    folder: object

    @property
    def n_classes(self):
        return int(max(self.y.max(), self.y_test.max())) + 1


def write_vw(path, X, y):
    with open(path, "w") as file:
        for i in range(len(y)):
            span = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[span], X.data[span], strict=True)
            file.write(f"{y[i] + 1} |" + "".join(f" {c}:{v:g}" for c, v in pairs) + "\n")


def vw(*arguments):
    """Runs Vowpal Wabbit and returns the seconds it took."""
    command = [sys.executable, "-m", "vowpalwabbit", "--quiet", *map(str, arguments)]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


@pytest.fixture(scope="module")
def task(real, tmp_path_factory):
    X, y, X_test, y_test = real(SET)
    order = np.random.default_rng(0).permutation(len(y))
    task = Task(X[order], y[order], X_test, y_test, tmp_path_factory.mktemp("vw"))
    for name, (X, y) in {
        "train": (task.X, task.y),
        **{
            f"test-{learner}": (vstack([task.X_test] * n, "csr"), np.tile(task.y_test, n))
            for learner, n in REPEATS.items()
        },
        "one": (task.X[:1], task.y[:1]),
    }.items():
        write_vw(task.folder / f"{name}.txt", X, y)
        cache = task.folder / f"{name}.cache"
        # A pass of the quick learner leaves the examples in binary form for both.
        vw("-d", task.folder / f"{name}.txt", *options(task, "lomtree"), "--cache_file", cache)
    return task


def options(task, learner):
    # Room for a weight per class and feature: no collisions.
    return [*LEARNERS[learner][0].format(k=task.n_classes).split(), "-b", "22"]


def vw_train(task, learner, data, passes):
    return vw(
        *("-d", task.folder / f"{data}.txt", "--cache_file", task.folder / f"{data}.cache"),
        *options(task, learner),
        *("--passes", passes, "--holdout_off", "-f", task.folder / f"{learner}.model"),
    )


def vw_predict(task, learner, data):
    return vw(
        *("-d", task.folder / f"{data}.txt", "--cache_file", task.folder / f"{data}.cache"),
        *("-t", "-i", task.folder / f"{learner}.model", "-p", task.folder / "answers.txt"),
    )


def per_example(seconds, start, n):
    """Seconds per example of the median run, less those it took to start."""
    median = statistics.median(seconds)
    assert median > 2 * start, f"{median:.2f} s, of which {start:.2f} s to start: too noisy"
    return (median - start) / n


def estimator(learner):
    passes = LEARNERS[learner][1]
    if learner == "oaa":
        return OAAClassifier(n_passes=passes, random_state=0)
    trees = {"lomtree": LOMTreeClassifier, "filter-tree": FilterTreeClassifier}
    return trees[learner](n_passes=passes, random_state=0)


@pytest.mark.parametrize("learner", LEARNERS)
def test_vw(benchmark, task, learner):
    """Trains once or thrice, whichever is bearable, and predicts thrice."""
    passes = LEARNERS[learner][1]
    rounds = 1 if learner == "oaa" else 3
    start = statistics.median(vw_train(task, learner, "one", 1) for _ in range(5))
    seconds = []
    benchmark.pedantic(
        lambda: seconds.append(vw_train(task, learner, "train", passes)), rounds=rounds
    )
    learned = len(task.y) * passes
    train = per_example(seconds, start, learned)
    start = statistics.median(vw_predict(task, learner, "one") for _ in range(5))
    seconds = [vw_predict(task, learner, f"test-{learner}") for _ in range(3)]
    predicted = len(task.y_test) * REPEATS[learner]
    FIGURES.predict["vw", learner] = per_example(seconds, start, predicted)
    FIGURES.train["vw", learner] = train
    answers = np.loadtxt(task.folder / "answers.txt", dtype=int)[: len(task.y_test)] - 1
    FIGURES.error["vw", learner] = np.mean(answers != task.y_test)


@pytest.mark.parametrize("learner", LEARNERS)
def test_xmtree(benchmark, task, learner, say):
    model = estimator(learner)
    seconds = []

    def fit():
        start = time.perf_counter()
        model.fit(task.X, task.y)
        seconds.append(time.perf_counter() - start)

    benchmark.pedantic(fit, rounds=5, warmup_rounds=1)
    passes = LEARNERS[learner][1]
    train = statistics.median(seconds) / (len(task.y) * passes)
    answers, seconds = model.predict(task.X_test), []  # the first call freezes the model
    for _ in range(9):
        start = time.perf_counter()
        model.predict(task.X_test)
        seconds.append(time.perf_counter() - start)
    predict = statistics.median(seconds) / len(task.y_test)
    error = np.mean(answers != task.y_test)
    if ("vw", learner) not in FIGURES.train:
        return
    report(say, learner, passes, train, predict, error)


def report(say, learner, passes, train, predict, error):
    vw_error = FIGURES.error["vw", learner]
    say(
        f"{SET} {learner}, {passes} pass(es), test error: xmtree {100 * error:.1f} %, "
        f"vw {100 * vw_error:.1f} %"
    )
    _, _, train_goal, predict_goal = LEARNERS[learner]
    for what, ours, theirs, (least, aim) in (
        ("training", train, FIGURES.train["vw", learner], train_goal),
        ("prediction", predict, FIGURES.predict["vw", learner], predict_goal),
    ):
        say(
            f"{SET} {learner}, {what}: xmtree {1e6 * ours:.2f} us ({1 / ours:,.0f}/s), "
            f"vw {1e6 * theirs:.2f} us ({1 / theirs:,.0f}/s): {theirs / ours:.1f} times as fast "
            f"(required {least}, aim {aim})"
        )
