"""Shared parts of the ranking measures: checks, sums over rows, and a scorer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xmtree import _core, _validation
from xmtree._labels import matching
from xmtree._labels.forms import Indicator, as_label_lists, read
from xmtree._pipelines import last_step

Empty = Literal["zero", "skip"]
Cuts = Sequence[int] | NDArray[np.integer[Any]]


def measure(
    name: str, y_true: Any, y_pred: Any, k: Any, classes: Any, empty: str, propensities: Any = None
) -> float | NDArray[np.float64]:
    """Return the measure of this name: a number for one k, an array for several."""
    requested = as_cuts(k)
    cuts = sorted(set(requested))
    if empty not in ("zero", "skip"):
        raise ValueError(f'empty must be "zero" or "skip", got {empty!r}')
    labels = matching.column_labels(classes)
    found = matching.match(y_true, y_pred, labels, cuts[-1])
    weights = None
    if name.startswith("ps"):
        weights = _propensities(propensities, found, labels)
    scores = _core.Scores(cuts, weights, None, empty == "skip")
    scores.add(found.sets, found.sets.shape[1], found.ranking, found.bounded)
    values = scores.measures()[name]
    if np.ndim(k) == 0:
        return float(values[0])
    return values[[cuts.index(cut) for cut in requested]]


def as_cuts(k: Any) -> list[int]:
    """Return the ranks of ``k`` in its order."""
    many = np.ndim(k) > 0
    cuts = list(k) if many else [k]
    for cut in cuts:
        if not _validation.is_integer(cut, 1):
            what = "a sequence of integers of at least 1" if many else "an integer of at least 1"
            raise ValueError(f"k must be {what}, got {k!r}")
    if not cuts:
        raise ValueError("k must be an integer or a sequence of integers, got an empty sequence")
    return [int(cut) for cut in cuts]


def _propensities(
    values: Any, found: matching.Match, labels: NDArray[Any] | None
) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(
            "propensities must be one number per label, "
            f"got an array of {array.dtype} of shape {array.shape}"
        )
    if not found.by_position:
        raise ValueError(
            "propensities of labels that are not numbers need classes, with the label of each"
        )
    needed = found.n_columns if labels is None else len(labels)
    if needed is not None and len(array) != needed:
        what = "columns" if labels is None else "classes"
        raise ValueError(f"got {len(array)} propensities for {needed} {what}, expected one each")
    if labels is not None and found.sets.shape[1] > len(labels):
        at = int(np.argmax(found.sets.indices >= len(labels)))
        row = int(np.searchsorted(found.sets.indptr, at, side="right")) - 1
        raise ValueError(f"row {row} of y_true: a label is not in classes and has no propensity")
    return np.ascontiguousarray(array, dtype=np.float64)


@dataclass(frozen=True)
class RankingScorer:
    """Scorer of the ``k`` best labels of an estimator or of a pipeline's last step.

    ``classes`` holds the labels of an indicator's columns and of the propensities.
    """

    measure: Callable[..., float]
    k: int
    classes: NDArray[Any] | None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the measure on ``X`` and its true labels ``y``."""
        estimator, X = last_step(estimator, X)
        ranking, _ = estimator.predict_topk(X, self.k)
        if ranking.dtype.kind == "f":  # floats would be read as scores if classes are given
            ranking = ranking.astype(object)
        y, classes = true_labels(estimator, y, self.classes)
        return self.measure(y, ranking, k=self.k, classes=classes)


def true_labels(
    estimator: Any, y: Any, classes: NDArray[Any] | None
) -> tuple[Any, NDArray[Any] | None]:
    """Return true labels in the form that ``estimator`` has learned, and those of columns."""
    form = getattr(getattr(estimator, "learner_", estimator), "_y_form", None)
    if form == "lists" and isinstance(y, list | tuple):
        y = as_label_lists(list(y))
    if classes is None and isinstance(read(y, "y", column_is_labels=True), Indicator):
        classes = estimator.classes_
    return y, classes
