"""Against Vowpal Wabbit on real data, in one run, single thread.

    pytest benches/test_bench_vw.py
    pytest benches/test_bench_vw.py --loaded

Vowpal Wabbit is its own command line (``python -m vowpalwabbit``), reading the
examples from a binary cache made beforehand; the time to start is taken off. Of
several runs the median counts; where starting still takes most of the time nothing is
reported. xmtree is the estimator as users call it, from a CSR matrix in memory,
validation included. (The next-word task has a file of its own.)
"""

import statistics
import time
from dataclasses import dataclass

import numpy as np
import pytest
import vowpal
from xmtree import (
    FilterTreeClassifier,
    LOMTreeClassifier,
    OAAClassifier,
    RecallTreeClassifier,
)

pytest.importorskip("vowpalwabbit", reason="needs vowpalwabbit from PyPI", exc_type=ImportError)


@dataclass(frozen=True)
class Match:
    """A learner of both on a data set."""

    data: str
    learner: str
    passes: int
    #: Options of Vowpal Wabbit; {k} is the number of classes.
    options: str
    ours: object
    #: What must be reached and what is aimed at.
    train: tuple
    predict: tuple
    #: How often Vowpal Wabbit trains, as much as is bearable.
    rounds: int = 3
    #: How often the test examples are predicted in one run of Vowpal Wabbit, so that
    #: it takes much longer than starting.
    repeats: int = 20
    #: By how much it trains longer than we do, for the same reason, to be timed.
    longer: int = 1

    def __str__(self):
        return f"{self.data}-{self.learner}-{self.passes}"


def recall_tree(**options):
    # Without a beam, as Vowpal Wabbit's.
    return RecallTreeClassifier(beam_size=1, **options)


NAICS = "naics2017-index"
LOGISTIC, LOG_MULTI = "--oaa {k} --loss_function logistic", "--log_multi {k}"
ECT, RECALL = "--ect {k}", "--recall_tree {k}"
MATCHES = (
    Match("omniglot", "oaa", 1, LOGISTIC, OAAClassifier, (25, 60), (12, 25), rounds=1, repeats=2),
    Match("omniglot", "lomtree", 5, LOG_MULTI, LOMTreeClassifier, (6, 10), (8, 12)),
    Match("omniglot", "filter-tree", 5, ECT, FilterTreeClassifier, (1, 3), (1, 3)),
    Match(
        NAICS, "filter-tree", 5, ECT, FilterTreeClassifier, (1, 3), (1, 3), repeats=100, longer=5
    ),
    Match(
        "omniglot", "recall-tree", 1, RECALL, recall_tree, (12, 20), (8, 10), rounds=1, repeats=5
    ),
    Match(
        "omniglot", "recall-tree", 5, RECALL, recall_tree, (12, 20), (8, 10), rounds=1, repeats=5
    ),
)
#: match -> seconds per example in training and prediction, and error
VW: dict[Match, tuple[float, float, float]] = {}


@pytest.fixture(scope="module")
def task(real, tmp_path_factory):
    """Loads each data set once: ``task(name)``."""
    loaded: dict[str, vowpal.Task] = {}

    def load(name):
        if name not in loaded:
            loaded[name] = vowpal.Task(real(name), tmp_path_factory.mktemp("vw"))
        return loaded[name]

    return load


@pytest.mark.parametrize("match", MATCHES, ids=str)
def test_vw(benchmark, task, match):
    data = task(match.data)
    options = match.options.format(k=data.n_classes).split()
    how = options, match.passes, match.rounds, match.longer
    train = benchmark.pedantic(lambda: data.train(*how), rounds=1)
    predict, answers = data.predict(match.repeats)
    VW[match] = train, predict, np.mean(answers != data.y_test)


@pytest.mark.parametrize("match", MATCHES, ids=str)
def test_xmtree(benchmark, task, match, say):
    data = task(match.data)
    # Vowpal Wabbit does not calibrate either.
    model = match.ours(n_passes=match.passes, calibrate=False, random_state=0)
    seconds = []

    def fit():
        start = time.perf_counter()
        model.fit(data.X, data.y)
        seconds.append(time.perf_counter() - start)

    benchmark.pedantic(fit, rounds=5 if match.learner != "recall-tree" else 3, warmup_rounds=1)
    train = statistics.median(seconds) / (len(data.y) * match.passes)
    answers, seconds = model.predict(data.X_test), []  # the first call freezes the model
    for _ in range(9):
        start = time.perf_counter()
        model.predict(data.X_test)
        seconds.append(time.perf_counter() - start)
    predict = statistics.median(seconds) / len(data.y_test)
    if match not in VW:
        return
    vw_train, vw_predict, vw_error = VW[match]
    what = f"{match.data} {match.learner}"
    error = np.mean(answers != data.y_test)
    say(
        f"{what}, {match.passes} pass(es), test error: xmtree {100 * error:.1f} %, "
        f"vw {100 * vw_error:.1f} %"
    )
    goals = match.train, match.predict
    vowpal.compare(say, what, (train, vw_train), (predict, vw_predict), *goals)
