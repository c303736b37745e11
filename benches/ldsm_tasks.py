"""What the benchmarks of LdSM share: data with label sets, measures, ensembles of several sizes."""

import time
from dataclasses import dataclass
from math import log

import numpy as np
from data_sets import ROOT
from xmtree import LdSMClassifier
from xmtree.datasets import load_xmc
from xmtree.metrics import ndcg_at_k, precision_at_k, propensities, psp_at_k

SETS = ("delicious", "bibtex", "makupalat", "onet-titles", "stackex-cooking")


@dataclass(frozen=True)
class Task:
    """Training and evaluation examples, labels as sparse indicators."""

    name: str
    X: object
    y: object
    X_test: object
    y_test: object

    def measure(self, model, empty="skip"):
        """The measures of a model, in per cent."""
        best, _ = model.predict_topk(self.X_test, 5)
        how = {"empty": empty}
        return np.concatenate(
            (
                100 * precision_at_k(self.y_test, best, [1, 3, 5], **how),
                100 * ndcg_at_k(self.y_test, best, [3, 5], **how),
                100 * psp_at_k(self.y_test, best, propensities(self.y), [1, 3, 5], **how),
            )
        )

    def depths(self, arity):
        """log_M K and three times as much."""
        levels = log(self.y.shape[1]) / log(arity)
        return levels, 3 * levels


def load(name, on="test", fold=0):
    """A data set with its test part, or with a fifth of its train part in the place of it."""
    folder = ROOT / name
    X, y = load_xmc(folder / "train.txt.xz", multilabel=True)
    if on == "test":
        return Task(name, X, y, *load_xmc(folder / "test.txt.xz", multilabel=True))
    order = np.random.default_rng(20).permutation(X.shape[0])
    size = len(order) // 5
    out = order[fold * size : (fold + 1) * size]
    kept = np.setdiff1d(order, out)
    return Task(name, X[kept], y[kept], X[out], y[out])


def deepest(model):
    """Depth and nodes of the largest trees."""
    trees = model.trees_
    return max(tree.depth.max() for tree in trees), max(len(tree.depth) for tree in trees)


def formed(measures):
    """The measures as a row of cells."""
    texts = [f"{value:.1f}" for value in measures]
    return [" / ".join(texts[:3]), " / ".join(texts[3:5]), " / ".join(texts[5:])]


def grown(task, options, trees, jobs):
    """For each number of trees a model, whose trees and scorers were trained together, and the
    seconds it took."""
    for count in trees:
        model = LdSMClassifier(**{**options, "n_estimators": count}, n_jobs=jobs)
        start = time.perf_counter()
        model.fit(task.X, task.y)
        yield count, model, time.perf_counter() - start
