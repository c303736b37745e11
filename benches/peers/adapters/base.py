"""What every program does, so that one loop measures all of them."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp


@dataclass
class Adapter:
    """A program with its settings. ``fit``, ``load``, ``predict`` and ``predict_one`` are timed;
    what brings rows and answers into the program's own form is not.

    Attributes
    ----------
    folder : where the program may leave files
    options : settings, as the page prints them
    seed : of what the program draws
    threads : in training and prediction
    k : labels asked for
    n_classes : of the problem
    """

    folder: Path
    options: dict = field(default_factory=dict)
    seed: int = 0
    threads: int = 2
    k: int = 1
    n_classes: int = 0

    def prepare(self, X, y):
        """The training data in the program's form; ``y``: classes, or an indicator matrix."""
        return X, y

    def fit(self, data):
        """Trains on what ``prepare`` returned."""
        raise NotImplementedError

    def save(self, path):
        """Writes the model as a file or a folder."""
        raise NotImplementedError

    def load(self, path):
        """Reads a model, which ``predict`` uses from then on."""
        raise NotImplementedError

    def rows(self, X):
        """A batch in the program's form."""
        return X

    def ready(self, rows):
        """What ``predict`` takes, made anew before each call of it."""
        return rows

    def predict(self, rows):
        """Answers for a batch."""
        raise NotImplementedError

    def labels(self, answers):
        """Answers of ``predict`` as an array of labels, best first, -1 where there are no more."""
        return np.asarray(answers, dtype=np.int64).reshape(len(answers), -1)

    def one(self, X, i):
        """Row ``i`` alone, in the program's form."""
        return X[i : i + 1]

    def predict_one(self, row):
        """Answers for a row that comes alone, as ``one`` made it."""
        return self.predict(row)

    def padded(self, answers):
        """Lists of up to ``k`` labels as an array, filled with -1."""
        found = np.full((len(answers), self.k), -1, dtype=np.int64)
        for row, labels in zip(found, answers, strict=True):
            row[: len(labels)] = labels[: self.k]
        return found


def indicator(y, n_classes):
    """Labels as a CSR matrix of zeros and ones."""
    if isinstance(y, np.ndarray):
        entries = np.ones(len(y), np.float32), (np.arange(len(y)), y)
        y = sp.csr_matrix(entries, shape=(len(y), n_classes))
    return sp.csr_matrix(y, dtype=np.float32)


def labelled(X, y, n_classes):
    """Rows that have a label, and their labels as a CSR matrix of zeros and ones."""
    y = indicator(y, n_classes)
    have = np.diff(y.indptr) > 0
    return sp.csr_matrix(X)[have], y[have]


def label_lists(y):
    """The labels of each row."""
    if isinstance(y, np.ndarray):
        return [[label] for label in y.tolist()]
    return [y.indices[a:b].tolist() for a, b in itertools.pairwise(y.indptr)]
