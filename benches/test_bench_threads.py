"""Two threads beside one: batches predicted, training, and calls of a predictor, of every learner.

    pytest benches/test_bench_threads.py --figures benches/figures-threads.txt

One thread and two take turns, so that a machine that changes its pace does the same to both; the
ratio is that of the medians. Two processes side by side show what the machine itself allows: its
cores share memory and caches. That the model is the same for any number of threads is tested in
tests/; here nothing is asserted.
"""

import multiprocessing
import os
import statistics
import threading
import time

import numpy as np
import pytest
import xmtree

ROUNDS = 5
#: Rows predicted, as many times over as it takes.
N_PREDICTED = 60_000

TEXT = "naics2017-index"
LEARNERS = {
    "OAA": (TEXT, xmtree.OAAClassifier, {"calibrate": False}),
    "LOMtree": (TEXT, xmtree.LOMTreeClassifier, {"calibrate": False}),
    "10 LOMtrees": (TEXT, xmtree.LOMTreeClassifier, {"n_estimators": 10, "calibrate": False}),
    "Recall Tree": (TEXT, xmtree.RecallTreeClassifier, {"calibrate": False}),
    "filter tree": (TEXT, xmtree.FilterTreeClassifier, {"calibrate": False}),
    "LdSM": (TEXT, xmtree.LdSMClassifier, {}),
    "GAMBLE": ("letter", xmtree.GambleClassifier, {"n_estimators": 100}),
    "GAMBLE, 20 columns": ("made", xmtree.GambleClassifier, {"n_estimators": 50}),
}


@pytest.fixture(scope="module")
def task(real):
    """Loads what is learned and what is predicted: ``task(name)``."""

    def load(name):
        if name == "made":
            return made()
        X, y, X_test, _ = real(name)
        return X, y, X_test

    return load


def made(n=20_000, n_columns=20, n_classes=20):
    """A table of numbers whose classes are around centres."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(n_classes, n_columns))
    y = random.integers(0, n_classes, n)
    X = (centres[y] + random.normal(size=(n, n_columns))).astype(np.float32)
    return X, y, X[:5000]


def repeated(X, n):
    """Rows of X over and over, ``n`` of them."""
    return X[np.resize(np.arange(X.shape[0]), n)]


def medians(work):
    """Seconds of ``work(1)`` and ``work(2)``, taking turns."""
    seconds = {1: [], 2: []}
    for _ in range(ROUNDS):
        for n_jobs, found in seconds.items():
            start = time.perf_counter()
            work(n_jobs)
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in seconds.values()]


@pytest.mark.parametrize("name", LEARNERS)
def test_two_threads(benchmark, task, say, name):
    data, learner, params = LEARNERS[name]
    X, y, X_test = task(data)
    rows = repeated(X_test, N_PREDICTED)
    model = learner(random_state=0, **params).fit(X, y)
    model.predict(rows)

    def predict(n_jobs):
        model.set_params(n_jobs=n_jobs).predict(rows)

    def fit(n_jobs):
        learner(random_state=0, n_jobs=n_jobs, **params).fit(X, y)

    found = {}

    def run():
        found["predict"], found["fit"] = medians(predict), medians(fit)

    benchmark.pedantic(run, rounds=1)
    (p1, p2), (f1, f2) = found["predict"], found["fit"]
    say(
        f"{data} {name}: two threads {p1 / p2:.2f} times as fast in prediction "
        f"({1e6 * p1 / rows.shape[0]:.2f} us a row on one), {f1 / f2:.2f} times in training "
        f"({f1:.2f} s on one); {os.cpu_count()} cores"
    )


@pytest.mark.parametrize("n_rows", [1, 100])
@pytest.mark.parametrize("name", ["OAA", "LOMtree", "Recall Tree"])
def test_threads_of_python(benchmark, task, say, name, n_rows):
    """Calls of a predictor by two threads of Python beside those by one."""
    data, learner, params = LEARNERS[name]
    X, y, X_test = task(data)
    predictor = learner(random_state=0, **params).fit(X, y).predictor()
    predictor.predict(X_test)
    rows = [X_test[at : at + n_rows] for at in range(1000)]

    def calls(n_threads, seconds=0.5):
        counts = []

        def call():
            n, end = 0, time.perf_counter() + seconds
            while time.perf_counter() < end:
                predictor.predict(rows[n % len(rows)])
                n += 1
            counts.append(n)

        threads = [threading.Thread(target=call) for _ in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / seconds

    found = {1: [], 2: []}

    def run():
        for _ in range(ROUNDS):
            for n_threads, each in found.items():
                each.append(calls(n_threads))

    benchmark.pedantic(run, rounds=1)
    one, two = (statistics.median(each) for each in found.values())
    say(
        f"{data} {name}: a predictor's calls of {n_rows} rows by two threads of Python "
        f"{two / one:.2f} times those by one ({one:.0f} a second)"
    )


def spin(seconds, counts):
    """Counts products of arrays in the first cache until the time is over."""
    x, n = np.ones(1024), 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(100):
            x *= 1.0
        n += 1
    counts.put(n)


def test_two_processes(benchmark, say):
    """What two processes that share nothing can do, of one: what the machine allows now."""

    def work(n):
        counts = multiprocessing.Queue()
        processes = [multiprocessing.Process(target=spin, args=(1, counts)) for _ in range(n)]
        for process in processes:
            process.start()
        total = sum(counts.get() for _ in processes)
        for process in processes:
            process.join()
        return total

    found = {}
    benchmark.pedantic(lambda: found.update({n: work(n) for n in (1, 2)}), rounds=1)
    say(f"two processes that share nothing: {found[2] / found[1]:.2f} times the work of one")
