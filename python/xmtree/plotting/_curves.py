"""Reliability diagrams and confusion matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from xmtree import _validation
from xmtree._labels.forms import common_type, label_array
from xmtree._reliability import reliability_bins
from xmtree.plotting._figures import axes, shortened


def plot_reliability(
    y_true: Any,
    labels: ArrayLike,
    probabilities: ArrayLike,
    n_bins: int = 10,
    *,
    classes: ArrayLike | None = None,
    label: str | None = None,
    ax: Axes | Figure | None = None,
) -> Axes:
    """Draw the share of correct predictions against their predicted probability.

    Each bin of probabilities is a point at their mean and the share of correct predictions; its
    area grows with their number. Points below the diagonal are overconfident. The legend shows
    the expected calibration error with these bins (:func:`xmtree.metrics.calibration_error`;
    most published figures use 15). Call again with the same axes to compare.

    Parameters
    ----------
    y_true : indicator of shape (n, n_labels), label lists, or labels of shape (n,)
    labels : array of shape (n,) or (n, k), best first
        Labels from ``predict``, or from ``predict_topk``, whose first column is used.
    probabilities : array of shape (n,) or (n, k), from 0 to 1
        Probabilities of these labels.
    n_bins : int, default=10
        Number of bins of equal width from 0 to 1.
    classes : as for :func:`xmtree.metrics.calibration_error`
    label : str, optional
        Name of the curve in the legend.
    ax : matplotlib Axes or empty Figure, by default a new one

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import OAAClassifier
    >>> from xmtree.plotting import plot_reliability
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = OAAClassifier(loss="softmax", random_state=0).fit(X[:1000], y[:1000])
    >>> proba = clf.predict_proba(X[1000:])
    >>> ax = plot_reliability(y[1000:], clf.predict(X[1000:]), proba.max(axis=1), label="OAA")
    >>> ax.get_legend_handles_labels()[1][0][:28]
    'OAA: expected calibration er'
    """
    bins = reliability_bins(y_true, _best(labels), _best(probabilities), n_bins, classes)
    ax = axes(ax, 4.5, 4.2)
    filled = bins.counts > 0
    x, y = bins.confidence[filled], bins.accuracy[filled]
    name = f"{label}: " if label is not None else ""
    text = f"{name}expected calibration error {bins.expected_error():.3f}"
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
    (line,) = ax.plot(x, y, label=text)
    ax.scatter(x, y, s=6 + 200 * bins.counts[filled] / bins.counts.sum(), color=line.get_color())
    ax.set(xlabel="probability of the best label", ylabel="share that is right")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    # The legend is above the axes, as any corner inside may have points.
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderpad=0)
    return ax


def _best(values: ArrayLike) -> Any:
    array = np.asarray(values)
    return array[:, 0] if array.ndim == 2 and array.shape[1] else array


def plot_confusion(
    y_true: ArrayLike, y_pred: ArrayLike, n_labels: int = 15, ax: Axes | Figure | None = None
) -> Axes:
    """Draw the confusion matrix of the most confused labels.

    The labels shown have the most errors, as the true or the predicted label, in decreasing order.
    Rows are true labels, columns are predicted labels, and numbers count examples. The column
    "others" counts predictions of labels not shown, so that a row sums to all its examples.
    Errors are colored by their share of the row. The title counts the errors between the labels
    shown, and all errors.

    Parameters
    ----------
    y_true, y_pred : arrays of shape (n,)
        One label per row.
    n_labels : int, default=15
        Largest number of labels to show.
    ax : matplotlib Axes or empty Figure, by default a new one

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import LOMTreeClassifier
    >>> from xmtree.plotting import plot_confusion
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = LOMTreeClassifier(random_state=0).fit(X[:1000], y[:1000])
    >>> ax = plot_confusion(y[1000:], clf.predict(X[1000:]), n_labels=4)
    >>> len(ax.get_yticks())
    4
    """
    if not _validation.is_integer(n_labels, 1):
        raise ValueError(f"n_labels must be an integer of at least 1, got {n_labels!r}")
    labels, true, predicted = _codes(label_array(y_true, "y_true"), label_array(y_pred, "y_pred"))
    wrong = true != predicted
    n_errors = int(wrong.sum())
    errors = np.bincount(np.r_[true[wrong], predicted[wrong]], minlength=len(labels))
    # If too few labels are confused, the most frequent others follow.
    shown = np.lexsort((-np.bincount(true, minlength=len(labels)), -errors))[:n_labels]
    place = np.full(len(labels), len(shown))
    place[shown] = np.arange(len(shown))
    counts = np.zeros((len(shown) + 1, len(shown) + 1), np.int64)
    np.add.at(counts, (place[true], place[predicted]), 1)
    counts = counts[:-1]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    right = np.eye(*counts.shape, dtype=bool)
    side = 0.36 * len(shown)
    ax = axes(ax, side + 3.2, side + 2.4)
    ax.imshow(np.ma.masked_where(right | (counts == 0), shares), cmap="Oranges", vmin=0, vmax=1)
    for row, column in np.argwhere(counts > 0):
        dark = shares[row, column] > 0.6
        color = None if right[row, column] else "white" if dark else "black"
        text = ax.text(column, row, f"{counts[row, column]}", ha="center", va="center", size=7)
        if color is not None:
            text.set_color(color)
    names = [shortened(label, 130, 8) for label in labels[shown].tolist()]
    ax.set_xticks(range(len(names) + 1), [*names, "others"], rotation=90, size=8, parse_math=False)
    ax.set_yticks(range(len(names)), names, size=8, parse_math=False)
    ax.set(xlabel="predicted", ylabel="true")
    between = int(np.where(right, 0, counts)[:, :-1].sum())
    ax.set_title(
        f"The {len(shown)} most confused of {len(labels):,} labels: "
        f"{between:,} of {n_errors:,} errors are among them",
        size=10,
    )
    return ax


def _codes(
    y_true: NDArray[Any], y_pred: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return all labels, sorted, and both arrays as positions among them."""
    if y_true.ndim != 1 or y_pred.shape != y_true.shape or not len(y_true):
        raise ValueError(
            "y_true and y_pred must be two arrays of shape (n,), one label per row, "
            f"got shapes {y_true.shape} and {y_pred.shape}"
        )
    dtype = common_type(y_pred, y_true, "of y_true")
    both = np.concatenate([y_true.astype(dtype), y_pred.astype(dtype)])
    labels, codes = np.unique(both, return_inverse=True)
    return labels, codes[: len(y_true)], codes[len(y_true) :]
