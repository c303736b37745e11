"""Ranking measures, as functions and as scorers of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xmtree import _core
from xmtree._labels import matching
from xmtree._thresholds import Average
from xmtree._typing import LabelsLike
from xmtree.metrics._measure import Cuts, Empty, RankingScorer, as_cuts, measure
from xmtree.metrics._sets import SetScorer, set_scorers


class _Options(TypedDict, total=False):
    classes: ArrayLike | None
    empty: Empty


class _Measure(Protocol):
    """Measure that returns a number for one k and an array for several."""

    @overload
    def __call__(
        self, y_true: LabelsLike, y_pred: LabelsLike, k: int = 5, **options: Unpack[_Options]
    ) -> float: ...
    @overload
    def __call__(
        self, y_true: LabelsLike, y_pred: LabelsLike, k: Cuts, **options: Unpack[_Options]
    ) -> NDArray[np.float64]: ...


class _WeightedMeasure(Protocol):
    """Measure with propensities."""

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
    """Return P@k, the share of the first k labels that are true, averaged over rows.

    The divisor is k even if fewer than k labels are true or predicted.

    Parameters
    ----------
    y_true : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
        The true labels.
    y_pred : labels, best first, of shape (n, at least k), or scores of shape (n, n_labels)
        The predictions.
    k : int or sequence of ints, default=5
    classes : array of shape (n_labels,), optional
        Labels of the columns of an indicator or of scores; 0, 1, ... by default. Other true
        labels count as missed.
    empty : {"zero", "skip"}, default="zero"
        Whether rows without true labels score 0 or are left out.

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Raises
    ------
    ValueError
        If shapes do not match, ``y_pred`` has fewer than k columns, a score is NaN, the first
        k labels of a row repeat one, or the types of labels cannot be compared.

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
    """Return recall@k, the share of true labels among the first k, averaged over rows.

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
    """Return nDCG@k, hits discounted by rank relative to the best ranking, averaged over rows.

    A row with m true labels scores DCG / best. DCG is the sum of 1 / log2(r + 1) over the ranks
    r <= k of its hits; best is the same sum over r = 1, ..., min(k, m).

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
    """Return PSP@k, precision with hits weighted by 1 / p_l, relative to the best ranking.

    It is gain / best, as in the Repository's program. Gain sums 1 / p_l over the hits among the
    first k of every row; best sums the k largest 1 / p_l of every row's true labels. The sums
    over all rows are divided once, so that the result is between 0 and 1.

    Parameters
    ----------
    y_true, y_pred : as for :func:`precision_at_k`
    propensities : array of shape (n_labels,), above 0 and at most 1
        Propensities p of the training labels, from :func:`propensities`, in the order of the
        columns or of ``classes``; without either, label i is at position i. Every true label
        needs one.
    k, classes : as for :func:`precision_at_k`
    empty : {"zero", "skip"}, default="zero"
        Only matters if no row has true labels, which is 0 with "zero" and an error with "skip".
        Other rows without true labels add to neither sum.

    Returns
    -------
    float, or float64 array of shape (len(k),) for a sequence

    Raises
    ------
    ValueError
        As for :func:`precision_at_k`; also if a propensity is out of range, a true label has
        none, or the labels are not numbers and ``classes`` is missing.

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
    """Return PSnDCG@k, nDCG with hits weighted by 1 / p_l, relative to the best ranking.

    It is gain / best, as in the Repository's program; both are summed over all rows, then divided.
    The gain of a row is the sum of 1 / (p_l log2(r + 1)) over its hits l at ranks r <= k, divided
    by D. With m true labels D is the sum of 1 / log2(r + 1) over r = 1, ..., min(k, m). Best is
    the gain of the best ranking, which is the true labels by decreasing 1 / p_l.

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
    """Estimate the probability that a true label was annotated, from the label's frequency.

    p_l = 1 / (1 + C (N_l + b)^-a) with C = (ln N - 1)(b + 1)^a, at least 0. N is the number
    of rows, and N_l the number of rows with label l. Source: H. Jain, Y. Prabhu, M. Varma,
    KDD 2016. They use a = 0.5, b = 0.4 for Wikipedia, a = 0.6, b = 2.6 for Amazon, and
    the defaults for other data.

    Parameters
    ----------
    y : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
        The labels of the training set. A test set has another N, and is too small to
        estimate the frequency of rare labels.
    a : float of at least 0, default=0.55
    b : float above 0, default=1.5
    classes : array of shape (n_labels,), optional
        Labels to return propensities for; others are ignored. The default is the columns
        of an indicator, 0, 1, ..., max(y) for integer labels, and for other labels those
        that occur, sorted (a learner's ``classes_``).

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
    average: Average | Sequence[Average] = (),
) -> dict[str, RankingScorer | SetScorer]:
    """Return scorers for scikit-learn: "P@k", "nDCG@k" and, with propensities, "PSP@k".

    They rank labels by ``predict_topk`` of an estimator or of a pipeline's last step. With
    averages there are also "f1_micro", "precision_micro", "recall_micro" and so on, of the labels
    that ``predict`` returns. Pass all of them to ``cross_validate`` or, with ``refit="P@1"``,
    ``GridSearchCV``, or one of them to ``cross_val_score``. Label lists need ``cv=KFold(...)``, as
    scikit-learn's ``cv=3`` refuses them. Only ``GridSearchCV`` accepts a sparse indicator.

    Parameters
    ----------
    k : int or sequence of ints, default=(1, 3, 5)
    propensities : array of shape (n_labels,), optional
        From :func:`propensities` of all labels that are cross-validated, so that every fold has
        the same measure and the frequencies of the whole training set.
    classes : array of shape (n_labels,), optional
        Labels of the propensities and of an indicator's columns. The default is the columns
        themselves, or 0, 1, ... for integer labels.
    empty : {"zero", "skip"}, default="zero", as for :func:`precision_at_k`
    average : {"micro", "macro", "row"} or sequence of these, default=()
        As for :func:`f1_score`.

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
    ranking = {
        f"{name}@{cut}": RankingScorer(measure, cut, labels)
        for name, measure in measures.items()
        for cut in as_cuts(k)
    }
    return ranking | set_scorers(average, labels)
