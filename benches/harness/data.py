"""Data sets by name: from the folder of data sets, from the package, or synthetic."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import normalize
from xmtree.datasets import load_demo, load_xmc, make_xmc
from xmtree.metrics import precision_at_k, propensities, psp_at_k

#: Folder with a subfolder for each data set.
ROOT = Path(os.environ.get("XMTREE_DATA", Path(__file__).parents[3] / "shared" / "data"))
#: A program outside the repository makes the next-word task from this text; the result is cached.
CORPUS = ROOT / "text-english-novels" / "corpus.txt.xz"
MAKER = ROOT.parent / "tools" / "make_nextword.py"
CACHE = Path(__file__).parents[2] / ".benchmarks"
NEXT_WORD = "next-word"
#: Ending of the names of data sets whose rows become dense.
EMBEDDED = "-embedded"
#: Data sets whose rows have label sets; the others have one label per row.
LABEL_SETS = {
    *("wordnet-hypernyms", "onet-titles", "bibtex", "makupalat", "delicious", "stackex-cooking"),
    *("mediamill", "amazoncat-13k", "wiki10-31k", "delicious-200k", "amazon-670k"),
}
DEMOS = ("naics2017-index", "onet-titles", "letter")
#: Tables whose split has too few test rows (glass 43, soybean-large 376) or is not official.
RESPLIT = ("glass", "vehicle", "splice", "soybean-large")
N_TEST = 10_000


@dataclass(frozen=True)
class Task:
    """Training and test rows with their labels: classes, or a sparse indicator of label sets."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @property
    def parts(self):
        return self.X, self.y, self.X_test, self.y_test

    @property
    def shape(self):
        """Return the number of training rows, columns and labels."""
        if isinstance(self.y, np.ndarray):
            return [*self.X.shape, int(max(self.y.max(), self.y_test.max())) + 1]
        return [*self.X.shape, self.y.shape[1]]

    def shuffled(self):
        """Return the training rows in random order, because files may be sorted by class."""
        order = np.random.default_rng(0).permutation(self.X.shape[0])
        return Task(self.X[order], self.y[order], self.X_test, self.y_test)

    def write(self, folder):
        """Write the files that programs read: rows, training labels and the shape."""
        folder.mkdir()
        for name, rows in (("train_X", self.X), ("test_X", self.X_test)):
            sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(rows), compressed=False)
        if isinstance(self.y, np.ndarray):
            np.save(folder / "train_y.npy", self.y)
        else:
            sp.save_npz(folder / "train_y.npz", sp.csr_matrix(self.y), compressed=False)
        (folder / "shape.json").write_text(json.dumps(self.shape))

    def accuracy(self, answers):
        """Return, in percent, the error of the first label, or P@k and PSP@k of label sets."""
        if isinstance(self.y, np.ndarray):
            return {"error": 100 * float(np.mean(answers[:, 0] != self.y_test))}
        how = {"k": [1, 3, 5], "empty": "skip"}
        p = precision_at_k(self.y_test, answers, **how)
        psp = psp_at_k(self.y_test, answers, propensities(self.y), **how)
        names = [f"{name}@{k}" for name in ("P", "PSP") for k in how["k"]]
        return dict(zip(names, (100 * np.concatenate([p, psp])).tolist(), strict=True))


def absent(name):
    """Return whether a data set is missing and cannot be made."""
    name = name.removesuffix(EMBEDDED)
    kind = name.rpartition("-")[0]
    if kind == NEXT_WORD:
        return not (CORPUS.is_file() and MAKER.is_file())
    if name == "wordnet-rarest":
        return absent("wordnet-hypernyms")
    return not (kind in MADE or name in {*DEMOS, AMAZON} or (ROOT / name).is_dir())


def load(name, rows=None):
    """Return a data set, with at most ``rows`` training rows and test rows."""
    kind, _, number = name.rpartition("-")
    if kind in MADE:
        return MADE[kind](int(number), rows)
    if kind == NEXT_WORD:
        return words(int(number), 20_000, 0, rows)
    if name == AMAZON:
        return amazon(rows)
    if name == "wordnet-rarest":
        return rarest(load("wordnet-hypernyms", rows))
    if name.endswith(EMBEDDED):
        return embedded(load(name.removesuffix(EMBEDDED), rows))
    return cut(Task(*read(name)), rows)


def read(name):
    folder = ROOT / name
    if folder.is_dir():
        sets = name in LABEL_SETS
        files = (folder / f"{part}.txt.xz" for part in ("train", "test"))
        parts = [part for file in files for part in load_xmc(file, multilabel=sets)]
        return parts if sets else [parts[0], np.asarray(parts[1]), parts[2], np.asarray(parts[3])]
    if name in DEMOS:
        demo = load_demo(name)
        return demo.X_train, demo.y_train, demo.X_test, demo.y_test
    raise FileNotFoundError(f"{name} is not in {ROOT}; set XMTREE_DATA to the folder of data sets")


def cut(task, rows):
    """Return at most ``rows`` rows of each part, in random order."""

    def some(n):
        return slice(None) if rows is None else np.random.default_rng(0).permutation(n)[:rows]

    train, test = some(task.X.shape[0]), some(task.X_test.shape[0])
    return Task(task.X[train], task.y[train], task.X_test[test], task.y_test[test])


def split(made, n_train):
    X, y = made
    return Task(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def made(n_classes, rows):
    """Return as many rows and columns for any number of classes; only classes that occur."""
    n = rows or 100_000
    X, y = make_xmc(n + N_TEST, 2**14, n_classes, nnz=30, exponent=0.5, random_state=0)
    return split((X, np.unique(y, return_inverse=True)[1]), n)


def scaling(n_labels, rows):
    """Return label sets with as many rows, columns and non-zeros for any number of labels."""
    n = rows or 50_000
    shape = {"nnz": 30, "n_labels": 5.0, "exponent": 0.0, "multilabel": True}
    return split(make_xmc(n + N_TEST, 2**15, n_labels, **shape, random_state=0), n)


def crossing(n_classes, rows):
    """Return twenty rows per class."""
    n = rows or 20 * n_classes
    return split(make_xmc(n + N_TEST, 4096, n_classes, nnz=30, exponent=0.0, random_state=0), n)


def noisy(n_classes, rows):
    """Return overlapping classes, which no learner can separate."""
    n = rows or (50_000 if n_classes < 10_000 else 60_000)
    return split(make_xmc(n + 4000, 10_000, n_classes, noise=0.5, random_state=0), n)


def blobs(n_classes, rows):
    """Return rows of fifty numbers around a center per class, far from it."""
    random = np.random.default_rng(0)
    n = rows or 50_000
    centers = random.normal(size=(n_classes, 50))
    y = random.integers(0, n_classes, n)
    X = (centers[y] + random.normal(scale=3, size=(n, 50))).astype(np.float32)
    return Task(X, y, X[:5000], y[:5000])


MADE: dict[str, Callable[[int, int | None], Task]] = {
    each.__name__: each for each in (made, scaling, crossing, noisy, blobs)
}
AMAZON = "amazon-670k-shape"


def amazon(rows):
    """Return synthetic rows with the shape of Amazon-670k."""
    n = rows or 490_449
    shape = {"nnz": 76, "n_labels": 5.45, "multilabel": True}
    return split(make_xmc(n + N_TEST, 135_909, 670_091, **shape, random_state=0), n)


def embedded(task, n_columns=256):
    """Return rows of latent semantic analysis, of length 1, as a stand-in for sentence vectors."""
    rows = np.asarray((task.X > 0).sum(axis=0)).ravel()
    idf = np.log((task.X.shape[0] + 1) / (rows + 1))
    X, X_test = (normalize(normalize(part).multiply(idf).tocsr()) for part in (task.X, task.X_test))
    svd = TruncatedSVD(n_columns, random_state=0, n_iter=4).fit(X)
    X, X_test = (normalize(svd.transform(part)).astype(np.float32) for part in (X, X_test))
    return Task(X, task.y, X_test, task.y_test)


def rarest(task):
    """Return the rows with only their rarest label, in WordNet the most special hypernym."""
    counts = np.asarray(task.y.sum(axis=0)).ravel()

    def one(X, y):
        known = np.flatnonzero(np.diff(y.indptr))
        labels = (y.indices[y.indptr[row] : y.indptr[row + 1]] for row in known)
        return X[known], np.array([each[np.argmin(counts[each])] for each in labels])

    return Task(*one(task.X, task.y), *one(task.X_test, task.y_test))


@joblib.Memory(CACHE, verbose=0).cache
def next_word(n):
    """Return the first ``n`` examples of the next-word task, in the order of the text."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "examples.txt"
        subprocess.run([sys.executable, MAKER, CORPUS, text, "--examples", str(n)], check=True)
        X, y = load_xmc(text, multilabel=False)
    return X, np.asarray(y)


def words(n_train, n_test, seed, rows=None):
    """Return the next-word task in an order that the seed determines."""
    if rows is not None:
        n_train, n_test = min(n_train, rows), min(n_test, rows)
    X, y = next_word(n_train + n_test)
    order = np.random.default_rng(seed).permutation(len(y))
    return split((X[order], y[order]), n_train)


def redrawn(task, seed):
    """Return a random split of all rows, of the same sizes."""
    pairs = ((task.X, task.X_test), (task.y, task.y_test))
    X, y = (sp.vstack(a).tocsr() if sp.issparse(a[0]) else np.concatenate(a) for a in pairs)
    order = np.random.default_rng(seed).permutation(X.shape[0])
    return split((X[order], y[order]), task.X.shape[0])


def table(name, rows=None):
    """Return a data set of single labels, as arrays if over a fifth of its values are not zero."""
    task = load(name, rows)
    if task.X.nnz > 0.2 * task.X.shape[0] * task.X.shape[1]:
        return Task(task.X.toarray(), task.y, task.X_test.toarray(), task.y_test)
    return task


def splits(name, n, sizes=None, rows=None):
    """Return the official split, or ``n`` stratified random ones of a set in ``RESPLIT``.

    ``sizes`` are the numbers of training and test rows, by default those of the files. The splits
    overlap, so a standard error over them is somewhat too small.
    """
    task = table(name, rows)
    if name not in RESPLIT:
        return [task]
    n_train, n_test = sizes or (len(task.y), len(task.y_test))
    both = task.X, task.X_test
    X = np.vstack(both) if isinstance(task.X, np.ndarray) else sp.vstack(both).tocsr()
    y = np.concatenate([task.y, task.y_test])
    drawn = StratifiedShuffleSplit(n, train_size=n_train, test_size=n_test, random_state=0)
    return [Task(X[train], y[train], X[test], y[test]) for train, test in drawn.split(y, y)]
