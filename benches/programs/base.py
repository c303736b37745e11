"""The interface of all programs, and the function that measures one.

Programs are installed in separate environments, so this module imports only numpy and scipy.
"""

import importlib
import itertools
import json
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from harness.measuring import measured, median_us, megabytes, resident

#: Number of predicted labels if rows have label sets.
K = 5
#: Rows of a batch; rows that are predicted one by one.
N_BATCH, N_ALONE = 10_000, 500
#: Limits of repeating a prediction.
REPEATS, REPEAT_SECONDS = 5, 10.0
LOADS = 3
#: Rows of the first, untimed training, which includes what a program does only once.
N_WARM = 300


@dataclass
class Adapter:
    """A program with its settings.

    ``fit``, ``load``, ``predict`` and ``predict_one`` are timed. The methods that convert rows and
    answers are not.

    Attributes
    ----------
    folder : where the program may write files
    options : settings
    seed : seed of the program's random numbers
    threads : threads of training, or of prediction after ``load``
    k : number of predicted labels
    n_classes : number of labels
    """

    folder: Path
    options: dict = field(default_factory=dict)
    seed: int = 0
    threads: int = 2
    k: int = 1
    n_classes: int = 0

    def prepare(self, X, y):
        """Return the training data in the program's format; ``y``: classes or an indicator."""
        return X, y

    def fit(self, data):
        """Train on the result of ``prepare``."""
        raise NotImplementedError

    def save(self, path):
        """Write the model as a file or a folder."""
        raise NotImplementedError

    def load(self, path):
        """Read the model that ``predict`` will use."""
        raise NotImplementedError

    def rows(self, X):
        """Return a batch in the program's format."""
        return X

    def ready(self, rows):
        """Return the argument of ``predict``, made again before each call."""
        return rows

    def predict(self, rows):
        """Return the program's answers for a batch."""
        raise NotImplementedError

    def labels(self, answers):
        """Return the answers of ``predict`` as an array of labels, best first, padded with -1."""
        return np.asarray(answers, dtype=np.int64).reshape(len(answers), -1)

    def one(self, X, i):
        """Return row ``i`` in the program's format."""
        return X[i : i + 1]

    def predict_one(self, row):
        """Return the answers for one row from ``one``."""
        return self.predict(row)

    def padded(self, answers):
        """Return lists of up to ``k`` labels as an array, padded with -1."""
        found = np.full((len(answers), self.k), -1, dtype=np.int64)
        for row, labels in zip(found, answers, strict=True):
            row[: len(labels)] = labels[: self.k]
        return found


def indicator(y, n_classes):
    """Return labels as a CSR matrix of zeros and ones."""
    if isinstance(y, np.ndarray):
        entries = np.ones(len(y), np.float32), (np.arange(len(y)), y)
        y = sp.csr_matrix(entries, shape=(len(y), n_classes))
    return sp.csr_matrix(y, dtype=np.float32)


def labeled(X, y, n_classes):
    """Return the rows that have a label, and their labels as an indicator."""
    y = indicator(y, n_classes)
    have = np.diff(y.indptr) > 0
    return sp.csr_matrix(X)[have], y[have]


def label_lists(y):
    """Return the labels of each row."""
    if isinstance(y, np.ndarray):
        return [[label] for label in y.tolist()]
    return [y.indices[a:b].tolist() for a, b in itertools.pairwise(y.indptr)]


def run(case, folder, out):
    """Return the measures of a case on the files of a folder; write ``answers.npy`` into ``out``.

    The setting ``dense`` passes arrays instead of sparse matrices, ``predict_threads`` sets the
    threads of prediction. The other settings are the program's own.
    """
    options = dict(case.settings)
    is_dense, threads = options.pop("dense", False), options.pop("predict_threads", case.threads)
    X, X_test = (sp.load_npz(folder / f"{part}_X.npz") for part in ("train", "test"))
    X, X_test = (X.toarray(), X_test.toarray()) if is_dense else (X, X_test)
    classes = folder / "train_y.npy"
    y = np.load(classes) if classes.is_file() else sp.load_npz(folder / "train_y.npz")
    n_classes = json.loads((folder / "shape.json").read_text())[2]
    module, name = case.adapter.split(".")
    program = getattr(importlib.import_module(f"programs.{module}"), name)

    def make(**how):
        k = 1 if isinstance(y, np.ndarray) else K
        common = {"options": options, "seed": case.seed, "threads": case.threads, "k": k}
        return program(**common | {"n_classes": n_classes, "folder": out} | how)

    warm(make, X, y)
    answers, measures = measure(make, out / "model", threads, X, y, X_test)
    np.save(out / "answers.npy", answers)
    return measures


def warm(make, X, y):
    """Learn and predict a few rows, with only the labels that they have."""
    # Rows are taken at equal distances, because they may be sorted by class.
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


def measure(make, path, threads, X, y, X_test):
    """Return the labels of the test rows, and times, memory and file size.

    A batch on one thread is measured in processor time, which other processes disturb less.
    """
    program = make()
    data = program.prepare(X, y)
    _, training = measured(lambda: program.fit(data))
    found = {f"train_{name}": value for name, value in training.items()}
    found["peak_mb"] = resident("VmHWM")
    program.save(path)
    found["file_mb"] = megabytes(path)
    loads = []
    for _ in range(LOADS):
        # A new object, so that the time does not include freeing the last model.
        program = make(threads=threads)
        loads.append(measured(lambda program=program: program.load(path))[1]["s"])
    found["load_ms"] = 1e3 * statistics.median(loads)
    clock = time.process_time if threads == 1 else time.perf_counter
    _, answers = times(program, program.rows(X_test), 1, clock)
    rows = program.rows(X_test[np.resize(np.arange(X_test.shape[0]), N_BATCH)])
    times(program, rows, 1, clock)
    found["batch_us"] = 1e6 * statistics.median(times(program, rows, REPEATS, clock)[0]) / N_BATCH
    alone = [program.one(X_test, i) for i in range(min(N_ALONE, X_test.shape[0]))]
    program.predict_one(alone[0])
    return answers, found | {"one_us": median_us(program.predict_one, alone)}


def times(program, rows, most, clock):
    """Return the seconds of several predictions of the rows, and the labels."""
    taken = []
    while len(taken) < most and sum(taken) < REPEAT_SECONDS:
        ready = program.ready(rows)
        start = clock()
        answers = program.predict(ready)
        taken.append(clock() - start)
    return taken, program.labels(answers)
