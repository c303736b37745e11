"""The measures of rankings, as functions and as scorers of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xmtree import _core
from xmtree._labels import matching
from xmtree._typing import LabelsLike
from xmtree.metrics._measure import Cuts, Empty, RankingScorer, as_cuts, measure


class _Options(TypedDict, total=False):
    classes: ArrayLike | None
    empty: Empty


class _Measure(Protocol):
    """A number for one k, an array for several."""

    @overload
    def __call__(
        self, y_true: LabelsLike, y_pred: LabelsLike, k: int = 5, **options: Unpack[_Options]
    ) -> float: ...
    @overload
    def __call__(
        self, y_true: LabelsLike, y_pred: LabelsLike, k: Cuts, **options: Unpack[_Options]
    ) -> NDArray[np.float64]: ...


class _WeightedMeasure(Protocol):
    """The same, with propensities."""

    @overload
    def __call__(
        self,
        y_true: LabelsLike,
        y_pred: LabelsLike,
        propensities: ArrayLike,
        k: int = 5,
        **options: Unpack[_Options],
    ) -> float: ...
    @overload
    def __call__(
        self,
        y_true: LabelsLike,
        y_pred: LabelsLike,
        propensities: ArrayLike,
        k: Cuts,
        **options: Unpack[_Options],
    ) -> NDArray[np.float64]: ...


def _any_cuts(function: Callable[..., Any]) -> _Measure:
    return cast(_Measure, function)


def _any_weighted_cuts(function: Callable[..., Any]) -> _WeightedMeasure:
    return cast(_WeightedMeasure, function)


@_any_cuts
def precision_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> Any:
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


@_any_cuts
def recall_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> Any:
    """recall@k: the share of a row's true labels that are among the first k, averaged over rows.

    Parameters
    ----------
    y_true, y_pred, k, classes, empty : as for :func:`precision_at_k`

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Examples
    --------
    >>> from xmtree.metrics import recall_at_k
    >>> recall_at_k([[3, 8], [5]], [[8, 1], [5, 3]], k=1)
    0.75
    """
    return measure("recall", y_true, y_pred, k, classes, empty)


@_any_cuts
def ndcg_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> Any:
    """nDCG@k: hits discounted by their rank, against the best ranking, averaged over rows.

    Of a row with m true labels it is DCG / best, where DCG is the sum of 1 / log2(r + 1) over
    the ranks r <= k of its hits, and best the same sum over r = 1, ..., min(k, m).

    Parameters
    ----------
    y_true, y_pred, k, classes, empty : as for :func:`precision_at_k`

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Examples
    --------
    >>> from xmtree.metrics import ndcg_at_k
    >>> round(ndcg_at_k([[3, 8], [5]], [[8, 1], [3, 5]], k=2), 4)
    0.622
    """
    return measure("ndcg", y_true, y_pred, k, classes, empty)


@_any_weighted_cuts
def psp_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    propensities: ArrayLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> Any:
    """PSP@k: precision in which a hit on label l counts 1 / p_l, against the best ranking.

    With the propensities p it is gain / best, as the Repository's program has it: gain is the sum
    over all rows of the 1 / p_l of the hits among the first k, and best the sum over all rows of
    the k largest 1 / p_l of the true labels. The quotient is taken once, over all rows together,
    so that it lies between 0 and 1.

    Parameters
    ----------
    y_true, y_pred : as for :func:`precision_at_k`
    propensities : array of shape (n_labels,), above 0 and at most 1
        From :func:`propensities`, of the training labels. In the order of the columns or of
        ``classes``; without either that of label i is at position i. Every true label needs one.
    k, classes : as for :func:`precision_at_k`
    empty : {"zero", "skip"}, default="zero"
        Rows without true labels add to neither sum, so that it makes no difference but where no
        row has any label: that is 0 with "zero", and an error with "skip".

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Raises
    ------
    ValueError
        As :func:`precision_at_k`; and if a propensity is out of range, a true label has
        none, or the labels are not numbers and there are no ``classes``.

    Examples
    --------
    >>> from xmtree.metrics import psp_at_k
    >>> psp_at_k([[0, 1], [2]], [[1, 2], [2, 0]], propensities=[0.25, 0.5, 1.0], k=1)
    0.6
    """
    return measure("psp", y_true, y_pred, k, classes, empty, propensities)


@_any_weighted_cuts
def psndcg_at_k(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    propensities: ArrayLike,
    k: int | Cuts = 5,
    *,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> Any:
    """PSnDCG@k: nDCG in which a hit on label l counts 1 / p_l, against the best ranking.

    With the propensities p it is gain / best, as the Repository's program has it. Of a row with
    m true labels gain is the sum of 1 / (p_l log2(r + 1)) over the hits l at the ranks r <= k,
    divided by the sum of 1 / log2(r + 1) over r = 1, ..., min(k, m); best is the same of the best
    ranking, true labels by falling 1 / p_l. Both are added up over all rows, then divided.

    Parameters
    ----------
    y_true, y_pred, propensities, k, classes, empty : as for :func:`psp_at_k`

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Examples
    --------
    >>> from xmtree.metrics import psndcg_at_k
    >>> psndcg_at_k([[0, 1], [2]], [[1, 2], [2, 0]], propensities=[0.25, 0.5, 1.0], k=1)
    0.6
    """
    return measure("psndcg", y_true, y_pred, k, classes, empty, propensities)


def propensities(
    y: LabelsLike, a: float = 0.55, b: float = 1.5, *, classes: ArrayLike | None = None
) -> NDArray[np.float64]:
    """The probability that a true label was annotated, estimated from its frequency.

    p_l = 1 / (1 + C (N_l + b)^-a) with C = (ln N - 1)(b + 1)^a, where N is the number of
    rows and N_l how many of them have l; C is at least 0. H. Jain, Y. Prabhu, M. Varma,
    KDD 2016. They use a = 0.5, b = 0.4 for Wikipedia, a = 0.6, b = 2.6 for Amazon, and
    the defaults for other data.

    Parameters
    ----------
    y : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
        The labels of the training part, never those of the test part, which are too few
        to estimate the frequency of rare labels, and whose N is another.
    a : float of at least 0, default=0.55
    b : float above 0, default=1.5
    classes : array of shape (n_labels,), optional
        The labels to return propensities of; others are ignored. By default
        those of the columns, for integer labels 0, 1, ..., max(y), for any other labels
        those that occur, sorted (a learner's ``classes_``).

    Returns
    -------
    float64 array of shape (n_labels,)

    Examples
    --------
    >>> from xmtree.metrics import propensities
    >>> y = [["often"]] * 99 + [["often", "rare"]]
    >>> propensities(y, classes=["often", "rare", "never"]).round(2)
    array([0.68, 0.22, 0.17])
    """
    sets, n_labels = matching.label_sets(y, matching.column_labels(classes), "y")
    counts = np.bincount(sets.indices, minlength=n_labels)[:n_labels]
    return _core.propensities(counts.astype(np.int64), sets.shape[0], float(a), float(b))


def make_scorers(
    k: int | Cuts = (1, 3, 5),
    *,
    propensities: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> dict[str, RankingScorer]:
    """Scorers for scikit-learn's ``scoring=``: "P@k", "nDCG@k" and, with propensities, "PSP@k".

    They rank labels by ``predict_topk``, of an estimator or of a pipeline's last step. All of
    them fit ``cross_validate`` and, with ``refit="P@1"``, ``GridSearchCV``; ``cross_val_score``
    takes one. For label lists pass ``cv=KFold(...)``: scikit-learn's ``cv=3`` refuses them.
    Of the functions here ``GridSearchCV`` alone takes a sparse indicator.

    Parameters
    ----------
    k : int or sequence of ints, default=(1, 3, 5)
    propensities : array of shape (n_labels,), optional
        From :func:`propensities`, of all labels that are cross-validated: the same measure for
        each part, and frequencies as of the whole training set.
    classes : array of shape (n_labels,), optional
        The labels that propensities and the columns of an indicator are of. By default those of
        the columns, or for integer labels 0, 1, ....
    empty : {"zero", "skip"}, default="zero"
        Whether rows without true labels score 0 or are left out.

    Returns
    -------
    dict of str to callable (estimator, X, y) -> float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_validate
    >>> from xmtree import OAAClassifier
    >>> from xmtree.metrics import make_scorers
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate(OAAClassifier(random_state=0), X, y, scoring=make_scorers([1, 3]))
    >>> bool(found["test_P@1"].mean() > 0.9)
    True
    """
    measures = {"P": partial(precision_at_k, empty=empty), "nDCG": partial(ndcg_at_k, empty=empty)}
    if propensities is not None:
        measures["PSP"] = partial(psp_at_k, propensities=np.asarray(propensities), empty=empty)
    labels = matching.column_labels(classes)
    return {
        f"{name}@{cut}": RankingScorer(measure, cut, labels)
        for name, measure in measures.items()
        for cut in as_cuts(k)
    }
