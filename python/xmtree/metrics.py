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
    best = best[:, :k]
    n, width = best.shape
    if counts is None:
        counts = np.diff(y_true.indptr)
    rows = np.repeat(np.arange(n), np.diff(y_true.indptr))
    # Pairs (row, label) as single numbers, so that one search finds all hits.
    n_classes = np.int64(y_true.shape[1])
    true = np.sort(rows * n_classes + y_true.indices)
    asked = np.arange(n)[:, None] * n_classes + best
    found = np.searchsorted(true, asked)
    hits = (best >= 0) & (np.append(true, -1)[found] == asked)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(counts, k)]
    gained = hits @ discounts[:width]
    ndcg = np.divide(gained, ideal, out=np.zeros(n), where=ideal > 0)
    return {f"P@{k}": hits.sum(axis=1) / k, f"nDCG@{k}": ndcg}
