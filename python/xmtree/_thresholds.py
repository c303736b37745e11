"""Thresholds of label sets, fitted on rows that a model has not learned."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

#: Values of ``threshold`` that are fitted: the average of F1 that the thresholds maximize.
Average = Literal["row", "micro", "macro"]
AVERAGES = get_args(Average)
#: Number of best labels of a row that are considered; the others score far below.
N_BEST = 100
#: Candidates.
_GRID = np.arange(1, 100) / 100
#: A label's own F1 counts as much as that of all labels together if it occurs this often in the
#: held-out rows. With fewer, its best threshold on these rows is mostly chance.
_PRIOR = 20.0
#: Labels whose counts are in memory at the same time.
_BLOCK = 10_000


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Fitted thresholds: of all labels, or with the average "macro" one for each label."""

    average: str
    #: Shape () or (n_classes,).
    values: NDArray[np.float32]
    #: Smallest number of labels in a predicted label set: 0 or 1.
    n_least: int

    def to_json(self) -> dict[str, Any]:
        """Return the thresholds in JSON types."""
        percents = np.rint(100 * self.values).astype(int).tolist()
        return {"average": self.average, "percents": percents, "n_least": self.n_least}

    @staticmethod
    def from_json(state: dict[str, Any]) -> "Thresholds":
        """Return what :meth:`to_json` stored; invalid numbers raise a ValueError."""
        percents = np.array(state["percents"])
        is_sound = percents.dtype.kind == "i" and percents.ndim == (state["average"] == "macro")
        if not (
            is_sound
            and np.all((percents >= 0) & (percents <= 100))
            and state["average"] in AVERAGES
            and state["n_least"] in (0, 1)
        ):
            raise ValueError("thresholds")
        values = np.asarray(percents / 100, np.float32)
        return Thresholds(state["average"], values, state["n_least"])


@dataclass(frozen=True)
class RankedRows:
    """Rows that a model has not learned, with their best labels, best first."""

    #: Class numbers, their scores, and whether the row has the label, of shape (n, k).
    best: NDArray[np.int32]
    scores: NDArray[np.float32]
    hits: NDArray[np.bool_]
    #: The true labels as a CSR indicator.
    true: Any
    weights: NDArray[np.float64]

    @staticmethod
    def of(estimator: Any, X: Any, codes: Any, weights: NDArray[np.float64]) -> "RankedRows":
        """Rank the labels of the rows ``X`` with the labels ``codes``."""
        true, n_classes = codes.tocsr(), codes.shape[1]
        best, scores = estimator._topk(X, min(n_classes, N_BEST))
        row, label = true.nonzero()
        known = row.astype(np.int64) * n_classes + label
        predicted = np.arange(len(best))[:, np.newaxis] * n_classes + best
        return RankedRows(best, scores, np.isin(predicted, known) & (best >= 0), true, weights)

    @property
    def n_least(self) -> int:
        """Return 1 if all rows have labels, else 0."""
        return int(np.diff(self.true.indptr)[self.weights > 0].min(initial=1) > 0)

    def compared(self, probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the ``probabilities`` of the best labels, 1 for those predicted in any case."""
        found = np.where(self.best >= 0, probabilities, 0.0).astype(np.float64)
        if self.n_least:
            found[self.best[:, 0] >= 0, 0] = 1
        return found


def fit(average: str, rows: RankedRows, probabilities: NDArray[np.float32]) -> Thresholds:
    """Return the thresholds of the highest F1 of this average; 1/2 if no best label is true."""
    if not rows.hits[rows.weights > 0].any():
        return unfitted(average, rows.true.shape[1])
    find = _of_labels if average == "macro" else partial(best_single, average)
    return Thresholds(average, np.asarray(find(rows, probabilities), np.float32), rows.n_least)


def unfitted(average: str, n_classes: int) -> Thresholds:
    """Return the thresholds without rows to fit them on."""
    shape = (n_classes,) if average == "macro" else ()
    return Thresholds(average, np.full(shape, 0.5, np.float32), 0)


def best_single(average: str, rows: RankedRows, probabilities: NDArray[np.float32]) -> float:
    """Return the single threshold of the highest F1, averaged over rows or over all labels.

    F1 of a row is 2 * hits / (predicted + true labels), 1 for a row without either.
    """
    compared, n_true = rows.compared(probabilities), np.diff(rows.true.indptr)
    found = []
    for threshold in _GRID:
        is_taken = compared > threshold
        both = is_taken.sum(axis=1) + n_true
        twice = 2.0 * (is_taken & rows.hits).sum(axis=1)
        if average == "micro":
            found.append(twice @ rows.weights / (both @ rows.weights))
        else:
            f1 = np.divide(twice, both, out=np.ones(len(both)), where=both > 0)
            found.append(np.average(f1, weights=rows.weights))
    return float(_GRID[int(np.argmax(found))])


def _of_labels(rows: RankedRows, probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return a threshold for each label, of the highest F1 of its own and of all labels' counts.

    The counts of all labels, each divided by its occurrences and averaged, are added with the
    weight of ``_PRIOR`` occurrences. So a label without rows gets the threshold that suits all
    labels alike, and a frequent one its own.
    """
    n_classes = rows.true.shape[1]
    weights = np.repeat(rows.weights, np.diff(rows.true.indptr))
    n_true = np.bincount(rows.true.indices, weights, n_classes)
    is_known = (rows.best >= 0) & (rows.weights > 0)[:, np.newaxis]
    label, hit = rows.best[is_known], rows.hits[is_known]
    weight = np.broadcast_to(rows.weights[:, np.newaxis], rows.best.shape)[is_known]
    # The number of thresholds of the grid that the probability exceeds.
    place = np.searchsorted(_GRID, rows.compared(probabilities)[is_known], side="left")

    def above(labels: Any, n: int, which: Any, weight: Any) -> NDArray[np.float64]:
        """Return the weight of each label's rows above each threshold."""
        width = len(_GRID) + 1
        counts = np.bincount(labels[which] * width + place[which], weight[which], n * width)
        return counts.reshape(n, width)[:, ::-1].cumsum(axis=1)[:, -2::-1]

    occurs = np.flatnonzero(n_true)
    share = np.divide(weight, n_true[label], out=np.zeros(len(label)), where=n_true[label] > 0)
    zero = np.zeros(len(label), np.int64)
    all_taken = above(zero, 1, slice(None), share)[0] / len(occurs)
    all_hits = above(zero, 1, hit, share)[0] / len(occurs)
    best: NDArray[np.intp] = np.empty(n_classes, np.intp)
    order = np.argsort(label, kind="stable")
    for start in range(0, n_classes, _BLOCK):
        end = min(start + _BLOCK, n_classes)
        part = order[slice(*np.searchsorted(label, (start, end), sorter=order))]
        own = label - start
        taken = above(own, end - start, part, weight)
        n_hits = above(own, end - start, part[hit[part]], weight)
        both = taken + n_true[start:end, np.newaxis] + _PRIOR * (all_taken + 1)
        best[start:end] = ((n_hits + _PRIOR * all_hits) / both).argmax(axis=1)
    return _GRID[best]
