"""The data sets of the items, whole or no more than some rows of them."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ldsm_tasks
import numpy as np
import scipy.sparse as sp
from data_sets import ROOT
from xmtree.datasets import load_xmc

#: Made tasks are kept here, which git ignores.
MADE = Path(__file__).parents[2] / ".benchmarks"
WORDS = "text-english-novels"
#: The program that makes the next-word task stands beside the data sets.
MAKER = ROOT.parent / "tools" / "make_nextword.py"
PEERS = "peers"


def absent(needs):
    """What of the needs of an item is not there."""
    return [need for need in needs if not there(need)]


def there(need):
    if need == PEERS:
        return bool(os.environ.get("XMTREE_PEERS"))
    if need == WORDS:
        return (ROOT / WORDS / "corpus.txt.xz").is_file() and MAKER.is_file()
    return (ROOT / need / "train.txt.xz").is_file()


def chosen(n, rows):
    """Row numbers: all in their order, or a part in another."""
    if rows is None or rows >= n:
        return np.arange(n)
    return np.random.default_rng(0).permutation(n)[:rows]


def classes(name, rows=None):
    """A data set with one label a row: ``X, y, X_test, y_test``."""
    parts = []
    for part in ("train", "test"):
        X, y = load_xmc(ROOT / name / f"{part}.txt.xz", multilabel=False)
        kept = chosen(len(y), rows)
        parts += [X[kept], y[kept]]
    return parts


def label_sets(name, rows=None):
    """A data set with label sets."""
    task = ldsm_tasks.load(name)
    train, test = chosen(task.X.shape[0], rows), chosen(task.X_test.shape[0], rows)
    return replace(
        task, X=task.X[train], y=task.y[train], X_test=task.X_test[test], y_test=task.y_test[test]
    )


def next_word(n):
    """The first ``n`` examples of the next-word task, in the order of the text."""
    corpus = ROOT / WORDS / "corpus.txt.xz"
    made = MADE / f"next-word-{corpus.stat().st_size}-{n}.npz"
    if not made.is_file():
        MADE.mkdir(exist_ok=True)
        # Runs beside each other may make it twice; the last one stays.
        text = made.with_suffix(f".{os.getpid()}.txt")
        subprocess.run([sys.executable, MAKER, corpus, text, "--examples", str(n)], check=True)
        X, y = load_xmc(text, multilabel=False)
        text.unlink()
        part = made.with_suffix(f".{os.getpid()}.npz")
        np.savez(part, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
        part.rename(made)
    with np.load(made) as found:
        X = sp.csr_matrix((found["data"], found["indices"], found["indptr"]), found["shape"])
        return X, found["y"]


def words(n_train, n_test, seed, rows=None):
    """The next-word task in an order of the seed's: ``X, y, X_test, y_test``."""
    if rows is not None:
        n_train, n_test = min(n_train, rows), min(n_test, rows)
    X, y = next_word(n_train + n_test)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    return X[train], y[train], X[test], y[test]
