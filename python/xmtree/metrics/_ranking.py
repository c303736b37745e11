"""Precision, recall and nDCG of the first k labels."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xmtree._typing import LabelsLike
from xmtree.metrics._measure import Cuts, Empty, measure


@overload
def precision_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> float: ...
@overload
def precision_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: Cuts,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> NDArray[np.float64]: ...
def precision_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> float | NDArray[np.float64]:
    """P@k: the share of the first k labels that are true, averaged over rows.

    The divisor is k, also where fewer than k labels are true or predicted.

    Parameters
    ----------
    y_true : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
    y_pred : labels, best first, of shape (n, at least k), or scores of shape (n, n_labels)
    k : int or sequence of ints, default=5
    classes : array of shape (n_labels,), optional
        The labels that the columns of an indicator or of scores stand for; 0, 1, ... by
        default. True labels that are not among them count as missed.
    empty : {"zero", "skip"}, default="zero"
        Whether rows without true labels score 0 or are left out.

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Raises
    ------
    ValueError
        If the shapes do not fit together, ``y_pred`` has fewer than k columns, a
        score is NaN, a row names a label twice among its first k, or labels of
        different types are to be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from xmtree.metrics import precision_at_k
    >>> precision_at_k([["red", "round"], ["green"]], [["red", "blue"], ["red", "green"]], 2)
    0.5
    >>> precision_at_k(np.array([[1, 1, 0]]), np.array([[0.2, 0.1, 0.9]]), k=[1, 2, 3])
    array([0.        , 0.5       , 0.66666667])
    """
    return measure("precision", y_true, y_pred, k, classes, empty)


@overload
def recall_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> float: ...
@overload
def recall_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: Cuts,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> NDArray[np.float64]: ...
def recall_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> float | NDArray[np.float64]:
    """recall@k: the share of a row's true labels that are among the first k, averaged over rows.

    Parameters
    ----------
    y_true : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
    y_pred : labels, best first, of shape (n, at least k), or scores of shape (n, n_labels)
    k : int or sequence of ints, default=5
    classes : array of shape (n_labels,), optional
        The labels that the columns of an indicator or of scores stand for; 0, 1, ... by
        default. True labels that are not among them count as missed.
    empty : {"zero", "skip"}, default="zero"
        Whether rows without true labels score 0 or are left out.

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Raises
    ------
    ValueError
        As :func:`precision_at_k`.

    Examples
    --------
    >>> from xmtree.metrics import recall_at_k
    >>> recall_at_k([[3, 8], [5]], [[8, 1], [5, 3]], k=1)
    0.75
    """
    return measure("recall", y_true, y_pred, k, classes, empty)


@overload
def ndcg_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> float: ...
@overload
def ndcg_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: Cuts,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> NDArray[np.float64]: ...
def ndcg_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> float | NDArray[np.float64]:
    """nDCG@k: hits discounted by their rank, against the best ranking, averaged over rows.

    Of a row with m true labels it is DCG / best, where DCG is the sum of 1 / log2(r + 1) over
    the ranks r <= k of its hits, and best the same sum over r = 1, ..., min(k, m).

    Parameters
    ----------
    y_true : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
    y_pred : labels, best first, of shape (n, at least k), or scores of shape (n, n_labels)
    k : int or sequence of ints, default=5
    classes : array of shape (n_labels,), optional
        The labels that the columns of an indicator or of scores stand for; 0, 1, ... by
        default. True labels that are not among them count as missed.
    empty : {"zero", "skip"}, default="zero"
        Whether rows without true labels score 0 or are left out.

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Raises
    ------
    ValueError
        As :func:`precision_at_k`.

    Examples
    --------
    >>> from xmtree.metrics import ndcg_at_k
    >>> round(ndcg_at_k([[3, 8], [5]], [[8, 1], [3, 5]], k=2), 4)
    0.622
    """
    return measure("ndcg", y_true, y_pred, k, classes, empty)
