"""Precision, recall and F1 of predicted label sets, as functions and as scorers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xmtree._labels import matching
from xmtree._labels.forms import as_label_lists
from xmtree._thresholds import AVERAGES, Average
from xmtree._typing import LabelsLike
from xmtree.metrics._measure import true_labels


def f1_score(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    average: Average = "micro",
    *,
    classes: ArrayLike | None = None,
    zero_division: float = 0.0,
) -> float:
    """Return F1 of label sets, 2 * hits / (true + predicted labels).

    It equals scikit-learn's ``f1_score`` without its warnings, and takes time and memory for the
    labels that rows have, not for all labels.

    Parameters
    ----------
    y_true, y_pred : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
        The true and the predicted label sets, each in any of these forms; for instance the result
        of ``predict``.
    average : {"micro", "macro", "row"}, default="micro"
        "micro": of the counts of all labels. "macro": the mean over labels. "row": the mean over
        rows, which scikit-learn calls "samples".
    classes : array of shape (n_labels,), optional
        Labels of the columns of an indicator; 0, 1, ... by default. With label lists, the mean of
        "macro" is over these and all others that occur, by default over those that occur.
    zero_division : float, default=0.0
        Value of a label or row whose divisor is 0. NaN leaves it out of the mean.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If shapes do not match, ``average`` is another word, or the types of labels cannot be
        compared.

    Examples
    --------
    >>> from xmtree.metrics import f1_score
    >>> f1_score([["red", "round"], ["green"]], [["red"], ["green", "round"]])
    0.6666666666666666
    """
    hits, n_true, n_found = _counts(y_true, y_pred, average, classes)
    return _mean(2 * hits, n_true + n_found, zero_division)


def precision_score(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    average: Average = "micro",
    *,
    classes: ArrayLike | None = None,
    zero_division: float = 0.0,
) -> float:
    """Return the precision of label sets, the share of predicted labels that are true.

    Parameters
    ----------
    y_true, y_pred, average, classes, zero_division : as for :func:`f1_score`

    Returns
    -------
    float

    Examples
    --------
    >>> from xmtree.metrics import precision_score
    >>> precision_score([["red", "round"], ["green"]], [["red"], ["green", "round"]], "row")
    0.75
    """
    hits, _, n_found = _counts(y_true, y_pred, average, classes)
    return _mean(hits, n_found, zero_division)


def recall_score(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    average: Average = "micro",
    *,
    classes: ArrayLike | None = None,
    zero_division: float = 0.0,
) -> float:
    """Return the recall of label sets, the share of true labels that are predicted.

    Parameters
    ----------
    y_true, y_pred, average, classes, zero_division : as for :func:`f1_score`

    Returns
    -------
    float

    Examples
    --------
    >>> from xmtree.metrics import recall_score
    >>> recall_score([["red", "round"], ["green"]], [["red"], ["green", "round"]], "row")
    0.75
    """
    hits, n_true, _ = _counts(y_true, y_pred, average, classes)
    return _mean(hits, n_true, zero_division)


def _counts(
    y_true: Any, y_pred: Any, average: Any, classes: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the numbers of hits, true and predicted labels: per label or row, or in total."""
    _check_average(average)
    true, found = matching.pair_of_sets(y_true, y_pred, matching.column_labels(classes))
    both = true.multiply(found).tocsr()

    def count(sets: Any) -> NDArray[Any]:
        if average == "micro":
            return np.array([sets.nnz])
        if average == "macro":
            return np.bincount(sets.indices, minlength=true.shape[1])
        return np.diff(sets.indptr)

    return count(both), count(true), count(found)


def _check_average(average: Any) -> None:
    if average not in AVERAGES:
        raise ValueError(f'average must be "micro", "macro" or "row", got {average!r}')


def _mean(above: NDArray[Any], below: NDArray[Any], zero_division: float) -> float:
    """Return the mean of ``above / below``, with ``zero_division`` where the divisor is 0."""
    if not isinstance(zero_division, int | float) or zero_division < 0 or zero_division > 1:
        raise ValueError(f"zero_division must be from 0 to 1, or NaN, got {zero_division!r}")
    values = np.full(len(below), float(zero_division))
    np.divide(above, below, out=values, where=below > 0)
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float(zero_division)


@dataclass(frozen=True)
class SetScorer:
    """Scorer of the label sets that an estimator predicts."""

    measure: Callable[..., float]
    average: Average
    classes: NDArray[Any] | None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the measure on ``X`` and its true labels ``y``."""
        y, classes = true_labels(estimator, y, self.classes)
        found = estimator.predict(X)
        if isinstance(found, list):
            found = as_label_lists(found)
        return self.measure(y, found, self.average, classes=classes)


def set_scorers(
    average: Average | Sequence[Average], classes: NDArray[Any] | None
) -> dict[str, SetScorer]:
    """Return the scorers of F1, precision and recall for these averages, by name."""
    averages: Any = [average] if isinstance(average, str) else list(average)
    for each in averages:
        _check_average(each)
    measures = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
    return {
        f"{name}_{each}": SetScorer(measure, each, classes)
        for each in averages
        for name, measure in measures.items()
    }
