"""Recall Tree on two cores.

    pytest benches/test_bench_cores.py

The model must be the same for any number of threads.
"""

import os
import statistics
import time

import numpy as np
import pytest
from xmtree import RecallTreeClassifier

THREADS = (1, 2)
#: Rows of the next-word task that are learned and tested.
N_TRAIN, N_TEST = 200_000, 20_000
#: Data set -> runs of which the median counts.
ROUNDS = {"omniglot": 3, "next word": 1}


@pytest.fixture(scope="module")
def task(real, next_word):
    """Loads each data set once: ``task(name)``."""
    loaded = {}

    def load(name):
        if name not in loaded:
            if name == "next word":
                X, y = next_word(1_100_000)
                test = slice(1_000_000, 1_000_000 + N_TEST)
                loaded[name] = X[:N_TRAIN], y[:N_TRAIN], X[test], y[test]
            else:
                loaded[name] = real(name)
        return loaded[name]

    return load


@pytest.mark.parametrize("name", ROUNDS)
def test_two_cores(benchmark, task, say, name):
    X, y, X_test, y_test = task(name)
    seconds, models = {}, {}

    def run():
        # Turn about, so that a machine that changes its pace does the same to both.
        for _ in range(ROUNDS[name]):
            for n_jobs in THREADS:
                model = RecallTreeClassifier(
                    n_passes=1, calibrate=False, n_jobs=n_jobs, random_state=0
                )
                start = time.perf_counter()
                model.fit(X, y)
                seconds.setdefault(n_jobs, []).append(time.perf_counter() - start)
                models[n_jobs] = model

    benchmark.pedantic(run, rounds=1)
    one, *others = (learned(models[n]) for n in THREADS)
    assert all(other == one for other in others), "the model depends on the number of threads"
    error = 100 * np.mean(models[1].predict(X_test) != y_test)
    times = {n: statistics.median(found) for n, found in seconds.items()}
    say(
        f"{name} recall-tree, 1 pass: test error {error:.1f} %, "
        + ", ".join(f"n_jobs={n} {1e6 * t / len(y):.2f} us" for n, t in times.items())
        + f" an example: {times[1] / times[THREADS[-1]]:.2f} times as fast "
        f"on {THREADS[-1]} threads ({os.cpu_count()} cores)"
    )


def learned(model):
    """All that was learned, as bytes."""
    return model._model.to_bytes()
