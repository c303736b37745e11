"""What the benchmarks of GAMBLE share: eight small tables, their splits, errors on them.

Three of the tables have no official split. The one in their files leaves so few rows to test
(43 of glass) that it decides nothing, so they are split anew, several times, in parts of the
same sizes. The parts overlap: a standard error over such splits is somewhat too small.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import chi2
from sklearn.model_selection import StratifiedShuffleSplit

SETS = (
    "glass",
    "vehicle",
    "vowel",
    "segment",
    "soybean-large",
    "splice",
    "satimage",
    "pendigits",
)
RESPLIT = ("glass", "vehicle", "splice")
#: With a single split more than with each of several: the error moves by a tenth with the seed.
SEEDS = range(20)
SEEDS_OF_SPLITS = range(5)


def forms(real, name):
    """The set, as arrays where a fifth of the values or more are not zero."""
    X, y, X_test, y_test = real(name)
    if X.nnz > 0.2 * X.shape[0] * X.shape[1]:
        X, X_test = X.toarray(), X_test.toarray()
    return X, y, X_test, y_test


def splits(real, name, n, sizes=None):
    """The official split, or ``n`` stratified ones where there is none.

    They have the ``sizes`` of the parts to train on and to test on, or those of the files.
    """
    X, y, X_test, y_test = forms(real, name)
    if name not in RESPLIT:
        return [(X, y, X_test, y_test)]
    n_train, n_test = sizes or (len(y), len(y_test))
    X = np.vstack([X, X_test]) if isinstance(X, np.ndarray) else sp.vstack([X, X_test]).tocsr()
    y = np.concatenate([y, y_test])
    drawn = StratifiedShuffleSplit(n, train_size=n_train, test_size=n_test, random_state=0)
    return [(X[train], y[train], X[test], y[test]) for train, test in drawn.split(y, y)]


def spheres(n, n_classes, seed):
    """Shells of a ten-dimensional Gaussian of equal mass (section 5.3 of the paper)."""
    X = np.random.default_rng(seed).normal(size=(n, 10))
    bounds = chi2.ppf(np.arange(1, n_classes) / n_classes, 10)
    return X, np.searchsorted(bounds, (X**2).sum(axis=1))


def fitted(model, X, y):
    """The model and the CPU time of its fit."""
    began = time.process_time()
    model.fit(X, y)
    return model, time.process_time() - began


def error(model, X, y):
    return 100 * float(np.mean(model.predict(X) != y))


def staged_errors(model, X, y):
    return np.array([100 * np.mean(labels != y) for labels in model.staged_predict(X)])


def boosting(rounds=100, **settings):
    """LightGBM with trees of 15 leaves, else with its defaults, but on one thread."""
    import lightgbm

    settings = {"num_leaves": 15} | settings
    return lightgbm.LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1, **settings)


@dataclass(frozen=True)
class Tried:
    """What a learner did on the splits of a set.

    Attributes
    ----------
    losses : per split the error in %, or of a single split per test row 0 to 100; mean of seeds
    seconds : median CPU time of a fit
    """

    losses: np.ndarray
    seconds: float

    @property
    def error(self):
        return float(self.losses.mean())

    def less(self, other):
        """The difference of the errors and its standard error, split by split or row by row."""
        apart = self.losses - other.losses
        return float(apart.mean()), float(apart.std(ddof=1) / len(apart) ** 0.5)

    def not_above(self, other):
        # Equal errors are sums of the same in another order.
        return self.error <= other.error + 1e-9


def tried(make: Callable[[int], Any], parts, seeds=None):
    """Learns each split with each seed."""
    if seeds is None:
        seeds = SEEDS if len(parts) == 1 else SEEDS_OF_SPLITS
    losses, seconds = [], []
    for X, y, X_test, y_test in parts:
        fits = [fitted(make(seed), X, y) for seed in seeds]
        losses.append(np.mean([100 * (fit[0].predict(X_test) != y_test) for fit in fits], axis=0))
        seconds += [fit[1] for fit in fits]
    by = losses[0] if len(parts) == 1 else np.mean(losses, axis=1)
    return Tried(by, statistics.median(seconds))
