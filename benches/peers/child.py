"""One program on one problem, measured in this process: ``runs.py`` starts it.

Leaves ``answers.npy``, the labels of the test rows, and ``measures.json``. Needs numpy, scipy and
the program: every program runs in an environment that has it.
"""

import argparse
import importlib
import json
import statistics
import tempfile
import time
from pathlib import Path

import memory
import numpy as np
import scipy.sparse as sp
from extreme.measuring import measured, megabytes

#: Labels asked for, where rows have label sets.
K = 5
#: Rows of a batch; rows that are predicted one by one.
N_BATCH, N_ALONE = 10_000, 500
#: Predictions are repeated so often at most, as long as they stay below so many seconds.
REPEATS, REPEAT_SECONDS = 5, 10.0
LOADS = 3
#: Rows that are learned and predicted first, so that nothing is timed that is done once alone.
N_WARM = 300


def problem(folder, dense):
    """Rows and labels to train on, and rows to test."""
    X, X_test = (sp.load_npz(folder / f"{part}_X.npz") for part in ("train", "test"))
    classes = folder / "train_y.npy"
    y = np.load(classes) if classes.is_file() else sp.load_npz(folder / "train_y.npz")
    return (X.toarray(), y, X_test.toarray()) if dense else (X, y, X_test)


def warmed(make, X, y):
    """Learns and predicts a few rows, with those labels alone that they have."""
    # From all parts: rows may be sorted by class.
    few = np.linspace(0, X.shape[0] - 1, N_WARM).astype(int)
    X, y = X[few], y[few]
    if isinstance(y, np.ndarray):
        known, y = np.unique(y, return_inverse=True)
    else:
        y = y[:, np.flatnonzero(y.sum(axis=0))]
        known = range(y.shape[1])
    with tempfile.TemporaryDirectory() as folder:
        program = make(folder=Path(folder), n_classes=len(known))
        program.fit(program.prepare(X, y))
        program.save(Path(folder) / "model")
        program.load(Path(folder) / "model")
        program.predict(program.ready(program.rows(X)))


def measure(make, folder, X, y, X_test):
    """The labels of the test rows, and what it took."""
    program = make(folder=folder)
    data = program.prepare(X, y)
    _, training = measured(lambda: program.fit(data))
    found = {"training": training, "peak_mb": memory.resident("VmHWM")}
    path = folder / "model"
    program.save(path)
    found["file_mb"] = megabytes(path)
    found["load_ms"] = []
    for _ in range(LOADS):
        # Anew, so that no time goes into freeing the last one.
        program = make(folder=folder)
        found["load_ms"].append(1e3 * seconds(program.load, path))
    _, answers = times(program, program.rows(X_test), most=1)
    batch = X_test[np.resize(np.arange(X_test.shape[0]), N_BATCH)]
    rows = program.rows(batch)
    times(program, rows, most=1)
    found["batch_us"] = [1e6 * each / N_BATCH for each in times(program, rows, REPEATS)[0]]
    alone = [program.one(X_test, i) for i in range(min(N_ALONE, X_test.shape[0]))]
    program.predict_one(alone[0])
    single = [seconds(program.predict_one, row) for row in alone]
    return answers, found | {"one_us": 1e6 * statistics.median(single)}


def times(program, rows, most):
    """Seconds of predicting the rows, several times, and the labels."""
    taken = []
    while len(taken) < most and sum(taken) < REPEAT_SECONDS:
        ready = program.ready(rows)
        start = time.perf_counter()
        answers = program.predict(ready)
        taken.append(time.perf_counter() - start)
    return taken, program.labels(answers)


def seconds(function, argument):
    start = time.perf_counter()
    function(argument)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("adapter")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dense", action="store_true")
    args = parser.parse_args()
    program = importlib.import_module(f"peers.adapters.{args.adapter}").Program
    X, y, X_test = problem(args.folder, args.dense)
    n_classes = json.loads((args.folder / "shape.json").read_text())[2]

    def make(**how):
        k = 1 if isinstance(y, np.ndarray) else K
        common = {"options": args.options, "seed": args.seed, "threads": args.threads, "k": k}
        return program(**common | {"n_classes": n_classes} | how)

    warmed(make, X, y)
    answers, measures = measure(make, args.out, X, y, X_test)
    np.save(args.out / "answers.npy", answers)
    (args.out / "measures.json").write_text(json.dumps(measures))


if __name__ == "__main__":
    main()
