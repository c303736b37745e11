"""Reliability of probabilities: predictions in bins, and the expected calibration error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xmtree import _validation
from xmtree._labels import matching
from xmtree._labels.forms import entry_rows
from xmtree._typing import LabelsLike


class ReliabilityBins(NamedTuple):
    """Statistics of predictions in bins of probability, of equal width from 0 to 1."""

    counts: NDArray[np.int64]
    #: Mean probability per bin, and share of right predictions; NaN in empty bins.
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    def expected_error(self) -> float:
        """Return the mean of |accuracy - confidence|, weighted by the number of predictions."""
        filled = self.counts > 0
        gaps = np.abs(self.accuracy - self.confidence)[filled]
        return float(gaps @ self.counts[filled] / self.counts.sum())


def calibration_error(
    y_true: LabelsLike,
    labels: ArrayLike,
    probabilities: ArrayLike,
    n_bins: int = 15,
    *,
    classes: ArrayLike | None = None,
) -> float:
    """Return the expected calibration error of the best label.

    Predictions are put into bins of equal width by their probability. Bin b contains n_b
    predictions, with the share acc_b of right ones and the mean probability conf_b. The error is::

        sum over b of (n_b / n) |acc_b - conf_b|

    See C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, On Calibration of Modern Neural Networks,
    ICML 2017, equation 3, also for the 15 bins. 0 is best. Few rows per bin bias the error
    upwards, so compare only values for the same number of rows.

    Parameters
    ----------
    y_true : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
        The true labels. For label sets, a prediction is right if it is one of the row's labels.
    labels : array of shape (n,)
        The best label of each row. None, or -1 unless it is a label, stands for no label, which
        is never right.
    probabilities : array of shape (n,), from 0 to 1
        The probabilities of these labels.
    n_bins : int, default=15
        Number of bins. Bin b holds the probabilities above b / n_bins and up to (b + 1) / n_bins;
        the first one also holds 0.
    classes : array of shape (n_labels,), optional
        Labels of the columns of an indicator; 0, 1, ... by default.

    Returns
    -------
    float from 0 to 1

    Raises
    ------
    ValueError
        If lengths differ, there are no rows, a probability is not from 0 to 1, or labels have
        types that cannot be compared.

    Examples
    --------
    >>> from xmtree.metrics import calibration_error
    >>> calibration_error(["a", "b", "b", "a"], ["a", "a", "b", "a"], [0.9, 0.9, 0.75, 0.75])
    0.325
    """
    return reliability_bins(y_true, labels, probabilities, n_bins, classes).expected_error()


def reliability_bins(
    y_true: Any, labels: Any, probabilities: Any, n_bins: int, classes: Any = None
) -> ReliabilityBins:
    """Return predictions in bins; arguments as for :func:`calibration_error`."""
    if not _validation.is_integer(n_bins, 1):
        raise ValueError(f"n_bins must be an integer of at least 1, got {n_bins!r}")
    best, given = matching.as_array(labels), np.asarray(probabilities)
    if best.ndim != 1 or given.shape != best.shape:
        raise ValueError(
            "labels and probabilities must be two arrays of shape (n,), "
            f"got shapes {best.shape} and {given.shape}"
        )
    if given.dtype.kind not in "biuf":
        raise ValueError(f"probabilities must be numbers, got an array of {given.dtype}")
    if len(given) == 0:
        raise ValueError("labels and probabilities must have at least one row, got 0")
    given = given.astype(np.float64)
    wrong = np.flatnonzero(~((given >= 0) & (given <= 1)))
    if len(wrong):
        raise ValueError(
            f"probabilities must be from 0 to 1, got {given[wrong[0]]} in row {wrong[0]}"
        )
    right = _right(y_true, best, classes)
    edges = np.arange(1, n_bins) / n_bins
    numbers = np.searchsorted(edges, given, side="left")
    counts = np.bincount(numbers, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(numbers, given, n_bins) / counts
        accuracy = np.bincount(numbers, right, n_bins) / counts
    return ReliabilityBins(counts, confidence, accuracy)


def _right(y_true: Any, labels: NDArray[Any], classes: ArrayLike | None) -> NDArray[np.bool_]:
    """Return whether each label is one of its row's true labels."""
    if labels.dtype.kind == "f":
        # A column of floats would be read as scores.
        labels = labels.astype(object)
    known = matching.column_labels(classes)
    try:
        found = matching.match(y_true, labels[:, None], known, 1)
    except ValueError as error:
        raise ValueError(str(error).replace("y_pred", "labels")) from error
    sets, numbers = found.sets, found.ranking[:, 0]
    if sets.shape[0] != len(numbers):
        raise ValueError(f"y_true has {sets.shape[0]} rows, but labels has {len(numbers)}")
    rows = entry_rows(sets)
    hits = sets.indices == numbers[rows]
    return np.bincount(rows, hits, len(numbers)) > 0
