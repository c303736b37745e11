"""Made-up data that the learners are tried on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from xmtree.datasets import make_xmc


@dataclass(frozen=True)
class Data:
    """Rows to learn, and rows to predict."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @property
    def weights(self) -> np.ndarray:
        """Importances, every fifth of them 0."""
        weights = np.random.default_rng(3).uniform(0.25, 4.0, self.X.shape[0])
        weights[2::5] = 0
        return weights


def split(X: Any, y: Any, n_test: int) -> Data:
    """The last rows to predict, the others to learn."""
    at = X.shape[0] - n_test
    return Data(X[:at], y[:at], X[at:], y[at:])


def sparse_words(n: int = 900, n_classes: int = 40) -> Data:
    """CSR rows of one label each, of all lengths; some are empty, some values negative."""
    X, y = make_xmc(n, 300, n_classes, nnz=8, exponent=0.5, random_state=1)
    lengths = np.random.default_rng(1).uniform(0.2, 3.0, n).astype(np.float32)
    lengths[::50] = 0
    X = sp.csr_matrix(sp.diags(lengths, dtype=np.float32) @ X)
    X.eliminate_zeros()
    X.data[::7] *= -1
    return split(X, y, 200)


def dense_blobs(n: int = 900, n_classes: int = 24, n_features: int = 12) -> Data:
    """Dense rows around a centre per class, columns of different scales."""
    draw = np.random.default_rng(2)
    centres = draw.normal(size=(n_classes, n_features))
    y = draw.integers(n_classes, size=n)
    X = (centres[y] + 0.7 * draw.normal(size=(n, n_features))) * np.logspace(-1, 1, n_features)
    return split(X, y, 200)


def label_sets(n: int = 900, n_classes: int = 30) -> Data:
    """CSR rows with label sets as a sparse indicator; some sets are empty."""
    how = {"nnz": 8, "n_labels": 2.0, "exponent": 0.5, "multilabel": True}
    X, y = make_xmc(n, 250, n_classes, **how, random_state=4)
    y = sp.csr_matrix(sp.diags(1.0 * (np.arange(n) % 40 != 20)).astype(np.int64) @ y)
    y.eliminate_zeros()
    return split(X, y, 200)


def table(n: int = 1500, n_classes: int = 7) -> Data:
    """Columns of few and many different values, two of categories, with gaps."""
    draw = np.random.default_rng(6)
    X = draw.normal(size=(n, 8))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = draw.integers(2, size=n)
    X[:, 3] = draw.integers(12, size=n)
    X[:, 4] = draw.integers(200, size=n)
    group = np.random.default_rng(8).integers(n_classes, size=200)
    score = 2 * X[:, 0] + X[:, 1] + group[X[:, 4].astype(int)] + (X[:, 3] % 3)
    X[draw.random(X.shape) < 0.08] = np.nan
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return split(X, np.searchsorted(edges, score), 300)
