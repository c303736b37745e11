"""Measures for rankings of very many labels, by the definitions of the
Extreme Classification Repository."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def gains(
    y_true: Any, best: NDArray[np.int32], k: int, counts: NDArray[Any] | None = None
) -> dict[str, NDArray[np.float64]]:
    """P@k and nDCG@k of every row; their means are the measures.

    Parameters
    ----------
    y_true : CSR indicator of shape (n, n_classes)
    best : class numbers, best first, of shape (n, at least k); -1 is none
    counts : number of true labels of each row, where that is more than
        ``y_true`` has

    Notes
    -----
    P@k = hits among the k best / k;
    nDCG@k = sum of 1/log2(rank + 1) over the hits / the same of a perfect ranking.
    A row without labels scores 0.
    """
    found = _hits(y_true, best[:, :k])
    if counts is None:
        counts = np.diff(y_true.indptr)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(counts, k)]
    gained = found @ discounts[: found.shape[1]]
    ndcg = np.divide(gained, ideal, out=np.zeros(len(found)), where=ideal > 0)
    return {f"P@{k}": found.sum(axis=1) / k, f"nDCG@{k}": ndcg}


def inverse_propensities(
    label_counts: NDArray[Any], n_rows: int, a: float = 0.55, b: float = 1.5
) -> NDArray[np.float64]:
    """1 + C (N_l + b)^-a with C = (ln N - 1)(b + 1)^a: how much a hit on a rare
    label counts. Jain, Prabhu & Varma, KDD 2016.

    Parameters
    ----------
    label_counts : N_l, how many training rows carry each label
    n_rows : N, the number of training rows
    """
    c = max(np.log(n_rows) - 1, 0.0) * (b + 1) ** a
    return np.asarray(1 + c * (np.asarray(label_counts) + b) ** -a, dtype=np.float64)


def propensity_gains(
    y_true: Any,
    best: NDArray[np.int32],
    k: int,
    inverse: NDArray[np.float64],
    unknown: tuple[NDArray[Any], float],
) -> tuple[float, float]:
    """What is gained over all rows and what a perfect ranking would gain; PSP@k
    is their quotient.

    Parameters
    ----------
    y_true, best, k : as for :func:`gains`
    inverse : inverse propensity of each class
    unknown : for each row the number of its true labels that are not among the
        classes, and their inverse propensity; the perfect ranking has them too
    """
    best = best[:, :k]
    gained = float((_hits(y_true, best) * inverse[best]).sum())
    ideal = 0.0
    for row, missing in enumerate(unknown[0]):
        known = inverse[y_true.indices[y_true.indptr[row] : y_true.indptr[row + 1]]]
        weights = np.concatenate([known, np.full(int(missing), unknown[1])])
        ideal += float(np.sort(weights)[-k:].sum())
    return gained, ideal


def _hits(y_true: Any, best: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the ``best`` are true."""
    n = len(best)
    rows = np.repeat(np.arange(n), np.diff(y_true.indptr))
    # Pairs (row, label) as single numbers, so that one search finds all hits.
    n_classes = np.int64(y_true.shape[1])
    true = np.sort(rows * n_classes + y_true.indices)
    asked = np.arange(n)[:, None] * n_classes + best
    found = np.searchsorted(true, asked)
    hits: NDArray[np.bool_] = (best >= 0) & (np.append(true, -1)[found] == asked)
    return hits
