"""Synthetic problems of any size."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from xmtree._labels.forms import row_sets
from xmtree._typing import Seed
from xmtree._validation import csr, real, whole

_MAX_INDEX = 2**31 - 1


def make_xmc(
    n_samples: int = 10_000,
    n_features: int = 10_000,
    n_classes: int = 1_000,
    *,
    nnz: int = 20,
    n_informative: int = 8,
    noise: float = 0.3,
    exponent: float = 1.0,
    multilabel: bool = False,
    n_labels: float | None = None,
    random_state: Seed = None,
) -> tuple[sp.csr_matrix, Any]:
    """Make a sparse problem with very many labels of power-law frequency.

    Each class has `n_informative` features, chosen at random; with few features,
    classes share some. A sample has a random class (or several), random features of
    its classes, and noise features of power-law frequency, like words. A linear
    model per class can learn the problem.

    Parameters
    ----------
    n_samples : int, default=10_000
        Number of rows.
    n_features : int, default=10_000
        Number of columns.
    n_classes : int, default=1_000
        Number of classes. With few samples, not every class occurs.
    nnz : int, default=20
        Number of features sampled per row. Sampling is with replacement, so that
        rows have somewhat fewer nonzeros.
    n_informative : int, default=8
        Number of features of each class.
    noise : float, default=0.3
        Share of the sampled features, between 0 and 1, that are independent of
        the class.
    exponent : float, default=1.0
        The class of rank r has a probability proportional to ``r ** -exponent``;
        with 0 all are equal. Ranks are assigned to classes at random.
    multilabel : bool, default=False
        Whether rows have label sets.
    n_labels : float, default=None
        Mean number of labels sampled per row, with replacement, at least 1 (one plus
        a Poisson number). None is 3. Only for `multilabel`.
    random_state : int, RandomState instance or None, default=None
        Seed; an int gives the same problem at every call.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features), dtype float32
        Positive values; rows have unit length, indices are sorted.
    y : ndarray of shape (n_samples,), dtype int64, or csr_matrix of shape \
    (n_samples, n_classes), dtype int64
        The class of each row, or with `multilabel` the 0/1 indicator.

    Examples
    --------
    >>> from xmtree.datasets import make_xmc
    >>> X, y = make_xmc(1000, 500, 100, random_state=0)
    >>> X.shape, y.shape
    ((1000, 500), (1000,))
    """
    n_samples = whole("n_samples", n_samples, 1)
    n_features = whole("n_features", n_features, 1, _MAX_INDEX)
    n_classes = whole("n_classes", n_classes, 1, _MAX_INDEX)
    nnz = whole("nnz", nnz, 1)
    n_informative = whole("n_informative", n_informative, 1)
    noise = real("noise", noise, 0.0, 1.0)
    exponent = real("exponent", exponent, 0.0, 10.0)
    if not isinstance(multilabel, (bool, np.bool_)):
        raise TypeError(f"multilabel must be a bool, got {multilabel!r}")
    if n_labels is None:
        n_labels = 3.0
    elif not multilabel:
        raise ValueError(f"n_labels must be None unless multilabel=True, got {n_labels!r}")
    n_labels = real("n_labels", n_labels, 1.0, 1e6)
    random = check_random_state(random_state)

    class_of_rank = random.permutation(n_classes)
    class_features = random.randint(n_features, size=(n_classes, n_informative), dtype=np.int64)

    counts = np.ones(n_samples, dtype=np.int64)
    if multilabel:
        counts += random.poisson(n_labels - 1.0, n_samples)
    ends = np.cumsum(counts)
    labels = class_of_rank[_ranks(random, n_classes, exponent, int(ends[-1]))]

    # Each sampled feature belongs to a random label of its row.
    pick = (random.random_sample((n_samples, nnz)) * counts[:, None]).astype(np.int64)
    owner = labels[(ends - counts)[:, None] + pick]
    features = class_features[owner, random.randint(n_informative, size=(n_samples, nnz))]
    is_noise = random.random_sample((n_samples, nnz)) < noise
    noisy = random.permutation(n_features)[_ranks(random, n_features, 1.0, int(is_noise.sum()))]
    features[is_noise] = noisy

    values = random.uniform(0.5, 1.5, (n_samples, nnz))
    X = _rows(features, values, n_features)
    if not multilabel:
        return X, labels
    sets = row_sets(labels, counts, n_classes)
    sets.sum_duplicates()
    ones = np.ones(sets.nnz, dtype=np.int64)
    return X, csr((ones, sets.indices, sets.indptr), (n_samples, n_classes))


def _ranks(random: Any, n: int, exponent: float, size: int) -> Any:
    """Draw ``size`` ranks below ``n``, rank r with weight ``(r + 1) ** -exponent``."""
    weights = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    drawn = np.searchsorted(weights, random.random_sample(size) * weights[-1], side="right")
    return np.minimum(drawn, n - 1)


def _rows(features: Any, values: Any, n_features: int) -> Any:
    """Return rows of unit length with each sampled feature once."""
    order = np.argsort(features, axis=1)
    features = np.take_along_axis(features, order, axis=1)
    first = np.ones(features.shape, dtype=bool)
    first[:, 1:] = features[:, 1:] != features[:, :-1]
    values = values * first
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    starts = np.concatenate([[0], np.cumsum(first.sum(axis=1))])
    return csr(
        (values[first].astype(np.float32), features[first], starts), (len(features), n_features)
    )
