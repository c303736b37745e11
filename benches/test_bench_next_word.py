"""The next word of novels, one pass over a million examples, beside Vowpal Wabbit.

    pytest benches/test_bench_next_word.py
    pytest benches/test_bench_next_word.py --loaded

The task of the Recall Tree paper on a text of our own: six words, a bigram and a
trigram, of 80,001 classes 26,000 occur. Always the commonest word has 93.2 % error, counting
with back-off from trigram to bigram to word 82.1. Speeds are of one thread, as in
``test_bench_vw.py``; those compared with Vowpal Wabbit's are without a beam.
"""

import statistics
import time
from dataclasses import dataclass

import numpy as np
import pytest
import vowpal
from xmtree import RecallTreeClassifier

#: Error in %: what may be had at most, and what is aimed at.
AT_MOST, AIM = 82.5, 81.5


@dataclass
class Ours:
    """Seconds per example, and the error in %; the latter two without a beam."""

    train: float
    predict: float
    error: float


OURS: list[Ours] = []


@pytest.fixture(scope="module")
def task(novels, tmp_path_factory):
    # With 22 bits its weights collide so much that its error is 93 %.
    return vowpal.Task(novels(), tmp_path_factory.mktemp("next-word-vw"), bits=28)


def test_recall_tree(benchmark, task, say):
    model = RecallTreeClassifier(n_passes=1, calibrate=False, random_state=0)

    def fit():
        start = time.perf_counter()
        model.fit(task.X, task.y)
        return (time.perf_counter() - start) / len(task.y)

    # Once: a million examples are many enough.
    train = benchmark.pedantic(fit, rounds=1)
    errors, recalls, times = {}, {}, {}
    for beam_size in sorted({1, model.beam_size}):
        model.set_params(beam_size=beam_size)
        answers = model.predict(task.X_test)
        errors[beam_size] = 100 * np.mean(answers != task.y_test)
        recalls[beam_size] = 100 * model.candidate_recall(task.X_test, task.y_test)
        times[beam_size] = predicting(model, task.X_test)
    OURS.append(Ours(train, times[1], errors[1]))
    error = errors[max(errors)]
    missed = not error <= AT_MOST
    say(
        f"next word recall-tree, 1 pass, test error {error:.2f} %{' MISSED' * missed} "
        f"(required {AT_MOST}, aim {AIM}; commonest word 93.2, counting 82.1), "
        f"progressive {100 * model.progressive_loss_:.2f} %, {1 / train:,.0f} examples/s"
    )
    for beam_size, found in errors.items():
        say(
            f"next word recall-tree, beam_size={beam_size}: test error {found:.2f} %, candidate "
            f"recall {recalls[beam_size]:.1f} %, prediction {1e6 * times[beam_size]:.2f} us"
        )
    assert not missed, f"{error:.2f} % test error, at most {AT_MOST} % are required"


def predicting(model, X):
    """Seconds per example, of the median of five runs."""
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        model.predict(X)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) / X.shape[0]


def test_vw(benchmark, task, say):
    """Trains once: it takes most of a minute."""
    pytest.importorskip("vowpalwabbit", reason="needs vowpalwabbit from PyPI", exc_type=ImportError)
    options = ["--recall_tree", str(task.n_classes)]
    train = benchmark.pedantic(lambda: task.train(options, 1, 1), rounds=1)
    predict, answers = task.predict(2)
    error = 100 * np.mean(answers != task.y_test)
    if not OURS:
        return
    ours = OURS[-1]
    say(
        f"next word recall-tree, 1 pass, test error: xmtree {ours.error:.1f} % "
        f"(beam_size=1), vw {error:.1f} %"
    )
    what = "next word recall-tree"
    pairs = (ours.train, train), (ours.predict, predict)
    vowpal.compare(say, what, *pairs, train_goal=(3, 5), predict_goal=(3, 5))
