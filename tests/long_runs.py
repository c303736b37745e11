"""Long runs: the work of a service in a day, and adversarial streams.

    python tests/long_runs.py [--scale 0.01]

Prints a table, and fails if memory grows, a tree gets deep or a prediction is wrong. Times are
printed but not checked. ``tests/test_long_runs.py`` runs a small version.
"""

import argparse
import gzip
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import estimators
import numpy as np
import scipy.sparse as sp
import xmtree
from xmtree import datasets

#: Learners of single rows, with trees of bounded depth.
ONLINE = {
    "oaa": lambda: xmtree.OAAClassifier(random_state=0),
    "lomtree": lambda: xmtree.LOMTreeClassifier(random_state=0),
    "recall-tree": lambda: xmtree.RecallTreeClassifier(random_state=0),
    "filter-tree": lambda: xmtree.FilterTreeClassifier(random_state=0),
}
ALL = {
    **ONLINE,
    "random-tree": lambda: xmtree.RandomTreeClassifier(random_state=0),
    "ldsm": lambda: xmtree.LdSMClassifier(n_estimators=2, max_nodes=30, random_state=0),
    "gamble": lambda: xmtree.GambleClassifier(n_estimators=5, random_state=0),
    "samme": lambda: xmtree.SAMMEClassifier(n_estimators=5, random_state=0),
}


#: Megabytes by which a process may grow, as allocators keep memory.
MOST_GROWTH = 100
#: Largest allowed depth of a tree.
MOST_DEPTH = 64


def megabytes():
    """Return the memory of this process; 0 if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def single_rows(name, n):
    """Make ``n`` updates by single rows, with a prediction after every tenth."""
    X, y = estimators.sparse(n=1000)
    rows = [X[i] for i in range(X.shape[0])]
    labels = [y[i : i + 1] for i in range(X.shape[0])]
    model = ONLINE[name]()
    model.partial_fit(X, y, classes=np.unique(y))
    at, times = [], []
    tenth = max(n // 10, 1)
    start = time.perf_counter()
    for i in range(n):
        model.partial_fit(rows[i % 1000], labels[i % 1000])
        if i % 10 == 0:
            model.predict(rows[(i + 1) % 1000])
        if (i + 1) % tenth == 0:
            at.append(megabytes())
            times.append(time.perf_counter() - start)
            start = time.perf_counter()
    assert np.mean(model.predict(X) == y) > 0.9
    assert at[-1] - at[0] < MOST_GROWTH
    return {
        "us a row, first and last tenth": f"{1e6 * times[0] / tenth:.0f}, "
        f"{1e6 * times[-1] / tenth:.0f}",
        "MB grown after the first tenth": round(at[-1] - at[0], 1),
    }


def concurrent(name, n):
    """Make ``n`` predictions from 32 threads while another thread trains."""
    X, y = estimators.sparse(n=1000)
    model = ONLINE[name]()
    model.partial_fit(X, y, classes=np.unique(y))
    stop, updates = threading.Event(), [0]

    def learn():
        while not stop.is_set():
            model.partial_fit(X[:5], y[:5])
            updates[0] += 1

    learner = threading.Thread(target=learn)
    learner.start()
    while not updates[0]:
        time.sleep(0.001)
    start = time.perf_counter()
    with ThreadPoolExecutor(32) as pool:
        shapes = set(pool.map(lambda i: model.predict(X[i % 900 : i % 900 + 5]).shape, range(n)))
    seconds = time.perf_counter() - start
    stop.set()
    learner.join()
    assert shapes == {(5,)}
    return {"predictions a second": round(n / seconds), "updates meanwhile": updates[0]}


def rounds(name, n):
    """Fit, predict and save ``n`` times in four threads: same predictions, no growth of memory."""
    X, y = estimators.dense(n=120)
    expected = ALL[name]().fit(X, y).predict(X)

    def work(_):
        model = ALL[name]().set_params(n_jobs=2) if name != "oaa" else ALL[name]()
        return np.array_equal(model.fit(X, y).predict(X), expected)

    with ThreadPoolExecutor(4) as pool:
        first = max(n // 5, 1)
        same = list(pool.map(work, range(first)))
        before = megabytes()
        same += pool.map(work, range(n - first))
    assert all(same)
    grown = megabytes() - before
    assert grown < MOST_GROWTH
    return {"rounds": n, "MB grown after the first fifth": round(grown, 1)}


def stream(n, folder):
    """Learn ``n`` rows of a compressed file batch by batch."""
    X, y = estimators.sparse(n=10_000)
    n_parts = max(n // 10_000, 1)
    plain = folder / "part.txt"
    datasets.save_xmc(plain, X, sp.csr_array(np.eye(12, dtype=int)[y]))
    header, rows = plain.read_bytes().split(b"\n", 1)
    sizes = header.split()[1:]
    packed = folder / "stream.txt.gz"
    with packed.open("wb") as file:
        file.write(gzip.compress(b" ".join([b"%d" % (n_parts * 10_000), *sizes]) + b"\n"))
        part = gzip.compress(rows)
        for _ in range(n_parts):
            file.write(part)
    model = xmtree.FilterTreeClassifier(random_state=0)
    seen, most, before = 0, 0.0, 0.0
    start = time.perf_counter()
    for X_batch, y_batch in datasets.iter_xmc(packed, batch_size=10_000, multilabel=False):
        model.partial_fit(X_batch, y_batch, classes=np.arange(12))
        seen += X_batch.shape[0]
        before = before or megabytes()
        most = max(most, megabytes())
    assert seen == n_parts * 10_000
    assert most - before < MOST_GROWTH
    return {
        "rows": seen,
        "us a row": round(1e6 * (time.perf_counter() - start) / seen, 2),
        "MB grown after the first batch": round(most - before, 1),
    }


def adversarial(name, order, n):
    """Learn a stream in an adversarial order; check the depth, and time examples early and late."""
    random = np.random.default_rng(0)
    n_classes = 200
    y = {
        "sorted": lambda: np.sort(np.arange(n) % n_classes),
        "duplicated": lambda: np.zeros(n, int),
        "new labels last": lambda: np.minimum(np.arange(n) * n_classes // n, n_classes - 1),
        "alternating": lambda: np.where(np.arange(n) % 2, 0, np.arange(n) % n_classes),
        "useless": lambda: random.integers(0, n_classes, n),
    }[order]()
    own = y[:, None] * 3 + np.arange(3) if order != "useless" else random.integers(0, 600, (n, 3))
    if order == "duplicated":
        own = np.tile([0, 1, 2], (n, 1))
    X = sp.csr_matrix(
        (np.ones(3 * n, np.float32), (np.repeat(np.arange(n), 3), own.ravel())), shape=(n, 600)
    )
    X.sum_duplicates()
    model = ONLINE[name]()
    step, times = max(n // 20, 1), []
    for at in range(0, n, step):
        start = time.perf_counter()
        model.partial_fit(X[at : at + step], y[at : at + step], classes=np.arange(n_classes))
        times.append((time.perf_counter() - start) / step * 1e6)
    depth = int(np.max(model.tree_["depth"])) if hasattr(model, "tree_") else 0
    assert depth <= MOST_DEPTH
    return {
        "us an example, early and late": f"{np.median(times[1:6]):.1f}, "
        f"{np.median(times[-5:]):.1f}",
        "depth": depth,
    }


ORDERS = ("sorted", "duplicated", "new labels last", "alternating", "useless")


def runs(scale):
    """Return the runs by name, at a share of the full size."""
    for name in ONLINE:
        yield f"single rows {name}", lambda name=name: single_rows(name, int(1_000_000 * scale))
    for name in ONLINE:
        yield f"concurrent {name}", lambda name=name: concurrent(name, int(10_000 * scale))
    for name in ALL:
        yield f"rounds {name}", lambda name=name: rounds(name, int(1000 * scale))

    def streamed():
        with tempfile.TemporaryDirectory() as folder:
            return stream(int(10_000_000 * scale), Path(folder))

    yield "stream", streamed
    for name in ONLINE:
        for order in ORDERS:
            size = int(100_000 * scale)
            run = lambda name=name, order=order, size=size: adversarial(name, order, size)  # noqa: E731
            yield f"{order} {name}", run


def main():
    """Run all and print a line for each; return 1 if one has failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--only", default="", help="runs whose name contains this")
    arguments = parser.parse_args()
    failed = False
    for name, run in runs(arguments.scale):
        if arguments.only not in name:
            continue
        start = time.perf_counter()
        try:
            figures = "; ".join(f"{what}: {figure}" for what, figure in run().items())
        except AssertionError as error:
            figures, failed = f"FAILED {error}", True
        print(f"{name:28} {time.perf_counter() - start:7.1f} s  {figures}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
