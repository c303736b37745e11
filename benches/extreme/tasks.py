"""The problems of the comparison, as files that every program's process reads.

A task's folder has ``train_X.npz``, ``train_y.npz`` (label sets) or ``train_y.npy`` (one class a
row), the same of ``test``, ``shape.json``, and for omikuji ``train.txt`` in XMC text.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from data_sets import ROOT
from ldsm_tasks import load
from xmtree.datasets import load_xmc, make_xmc, save_xmc
from xmtree.metrics import precision_at_k, propensities, psp_at_k

LABEL_SETS = (
    "wordnet-hypernyms",
    "onet-titles",
    "bibtex",
    "makupalat",
    "delicious",
    "stackex-cooking",
)
CLASSES = ("omniglot", "naics2017-index", "banking77")
NEXT_WORD, AMAZON = "next-word", "amazon-670k-shape"
#: Classes of the next-word task: a vocabulary of 80,000, and all other words.
N_WORDS = 80_001
#: Rows that are tested where a task is made by a program.
N_TEST = 10_000
AMAZON_SHAPE = {
    "n_features": 135_909,
    "n_classes": 670_091,
    "nnz": 76,
    "n_labels": 5.45,
    "multilabel": True,
}
AMAZON_ROWS = 490_449
#: Equal rows, columns and non-zeros for each number of labels.
SCALING = {f"scaling-{2**power}": 2**power for power in range(8, 21, 2)}
SCALING_SHAPE = {"n_features": 2**15, "nnz": 30, "n_labels": 5.0, "exponent": 0.0}
SCALING_ROWS = 50_000


@dataclass(frozen=True)
class Task:
    """A task's files."""

    name: str
    folder: Path

    def labels(self, part):
        """Classes, or an indicator matrix."""
        path = self.folder / f"{part}_y.npy"
        return np.load(path) if path.is_file() else sp.load_npz(path.with_suffix(".npz"))

    def shape(self):
        """Rows to train on, columns, labels."""
        return json.loads((self.folder / "shape.json").read_text())

    def write_text(self):
        """``train.txt``, without the rows that have no label."""
        path = self.folder / "train.txt"
        if path.is_file():
            return
        X, y = sp.load_npz(self.folder / "train_X.npz"), self.labels("train")
        if isinstance(y, np.ndarray):
            save_xmc(path, X, y, n_labels=self.shape()[2])
        else:
            labelled = np.diff(y.indptr) > 0
            save_xmc(path, X[labelled], y[labelled])

    def accuracy(self, answers):
        """Per cent: the error of the first label, or P@1, 3, 5 and PSP@1, 3, 5."""
        y = self.labels("test")
        if isinstance(y, np.ndarray):
            return {"error": 100 * float(np.mean(answers[:, 0] != y))}
        how = {"k": [1, 3, 5], "empty": "skip"}
        known = propensities(self.labels("train"))
        return {
            "p": (100 * precision_at_k(y, answers, **how)).tolist(),
            "psp": (100 * psp_at_k(y, answers, known, **how)).tolist(),
        }


def write(name, folder, next_word=None):
    """Makes the files of a task; ``next_word`` makes the examples of that task.

    FileNotFoundError where the data set is not there.
    """
    return save(name, folder, *parts(name, next_word))


def save(name, folder, X, y, X_test, y_test):
    """Makes the files of a task of these rows and labels."""
    folder.mkdir()
    for part, rows, labels in (("train", X, y), ("test", X_test, y_test)):
        sp.save_npz(folder / f"{part}_X.npz", sp.csr_matrix(rows), compressed=False)
        if isinstance(labels, np.ndarray):
            np.save(folder / f"{part}_y.npy", labels)
        else:
            sp.save_npz(folder / f"{part}_y.npz", sp.csr_matrix(labels), compressed=False)
    if not isinstance(y, np.ndarray):
        n_classes = y.shape[1]
    else:
        n_classes = N_WORDS if name == NEXT_WORD else int(max(y.max(), y_test.max())) + 1
    (folder / "shape.json").write_text(json.dumps([*X.shape, n_classes]))
    return Task(name, folder)


def parts(name, next_word):
    """Rows and labels to train on and to test."""
    if name == AMAZON:
        return split(make_xmc(AMAZON_ROWS + N_TEST, **AMAZON_SHAPE, random_state=0), AMAZON_ROWS)
    if name in SCALING:
        made = make_xmc(
            SCALING_ROWS + N_TEST,
            n_classes=SCALING[name],
            **SCALING_SHAPE,
            multilabel=True,
            random_state=0,
        )
        return split(made, SCALING_ROWS)
    if name == NEXT_WORD:
        return split(next_word(1_100_000), 1_000_000)
    folder = ROOT / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{name} is not below {ROOT}; XMTREE_DATA says where data sets are")
    if name in CLASSES:
        files = (folder / f"{part}.txt.xz" for part in ("train", "test"))
        return [array for file in files for array in load_xmc(file, multilabel=False)]
    task = load(name)
    return task.X, task.y, task.X_test, task.y_test


def split(made, n_train):
    X, y = made
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]
