"""Calibration: from scores to probabilities, fitted to rows that a model has not learned."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _core

#: What the scores of a learner are to the core: their differences are logits, their logarithms
#: are, or each is the probability of its own label.
Scale: TypeAlias = Literal["logit", "share", "probability"]

#: Rows that calibrate, at most, and one in how many of those of ``fit``.
MOST_ROWS = 2000
MOST_SHARE = 3
#: From MANY_ROWS rows on, FEW_ROWS calibrate the model itself, which learns them once, at the end:
#: no second model is trained, for the price of 2.5 percent of the rows at most.
MANY_ROWS = 40_000
FEW_ROWS = 1000
#: Fewer rows do not calibrate.
LEAST_ROWS = 32
#: The best labels of a row that calibrate where it has a label set; all others are far below.
N_BEST = 100
#: Rows times passes that the model that calibrates may learn: a share of those of ``fit``, or so
#: many where that is more; and its share of the passes.
LEARNED_SHARE = 0.28
LEAST_LEARNED = 20_000
PASSES_SHARE = 0.3
#: Share of the columns that occur in ``fit`` from which on new rows are taken to have no others.
CLOSED_SHARE = 0.99


@dataclass(frozen=True)
class Calibration:
    """From scores to probabilities: the numbers of a map that the core fits and applies.

    Label sets: the logistic function of ``slope * score + intercept``, for each label.

    One label a row: ``shares`` is what the core shares a row's probability among its best labels
    by (``rust/src/metrics/shares.rs``). Without ``rest`` probabilities are the softmax of the
    logits of all labels.
    """

    slope: float = 1.0
    intercept: float = 0.0
    #: Probability above which a label is predicted to be in a label set.
    threshold: float = 0.5
    #: Labels of a label set, at least, whatever their probability: 0 or 1.
    n_least: int = 0
    #: Examples that the model had learned.
    n_examples: int = 0
    rest: float | None = None
    top_slope: float = 1.0

    @property
    def shares(self) -> tuple[float, float, float, float] | None:
        """The map of one label a row, as the core takes it."""
        if self.rest is None:
            return None
        return self.slope, self.rest, self.top_slope, self.intercept

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> "Calibration":
        """What ``asdict`` has stored; what it cannot have is a ValueError."""
        calibration = cls(**state)
        rest = 0.0 if calibration.rest is None else calibration.rest
        numbers = (calibration.slope, calibration.intercept, rest, calibration.top_slope)
        if not (
            np.isfinite((*numbers, calibration.threshold)).all()
            and calibration.slope > 0
            and calibration.top_slope > 0
            and 0 <= calibration.threshold <= 1
            and calibration.n_least in (0, 1)
            and calibration.n_examples >= 0
        ):
            raise ValueError(f"{calibration}")
        return calibration


def of_labels(
    scores: NDArray[np.float32],
    scale: Scale,
    is_right: NDArray[np.bool_],
    weights: NDArray[np.float64],
    n_classes: int,
) -> Calibration:
    """By how often the best label is right; ``scores`` has shape (n, m), each row falling."""
    found = _core.fit_shares(scores, scale, is_right, weights, n_classes)
    if found is None:
        return Calibration()
    slope, rest, top_slope, intercept = found
    return Calibration(slope, intercept, rest=rest, top_slope=top_slope)


def of_label_sets(
    scores: NDArray[np.float32],
    hits: NDArray[np.bool_],
    n_true: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> Calibration:
    """By the best labels of each row: Platt scaling, and the threshold of the highest F1.

    ``scores`` and ``hits``, whether the row has the label, have shape (n, k), each row of scores
    falling; ``n_true`` says how many labels each row has. F1 is the mean over the rows of
    2 * hits / (labels predicted + true labels), 1 for a row of which both are none. Where no row
    is without labels, the best label is always predicted.
    """
    known = scores > -np.inf
    if len(np.unique(hits[known])) < 2:
        return Calibration()
    of_pairs = np.broadcast_to(weights[:, np.newaxis], scores.shape)[known]
    slope, intercept = _core.fit_line(scores[known], hits[known], of_pairs)
    chances = _core.label_probabilities(scores, slope, intercept)
    n_least = int(n_true[weights > 0].min() > 0)
    if n_least:
        chances[known[:, 0], 0] = 1
    grid = np.arange(1, 100) / 100
    f1 = [float(np.average(_f1(chances > t, hits, n_true), weights=weights)) for t in grid]
    return Calibration(slope, intercept, float(grid[int(np.argmax(f1))]), n_least)


def _f1(
    is_taken: NDArray[np.bool_], hits: NDArray[np.bool_], n_true: NDArray[np.int64]
) -> NDArray[np.float64]:
    n_taken = is_taken.sum(axis=1)
    both = n_taken + n_true
    found: NDArray[np.float64] = np.ones(len(n_true))
    np.divide(2.0 * (is_taken & hits).sum(axis=1), both, out=found, where=both > 0)
    return found


def as_new(X: Any, weights: NDArray[Any], learned: NDArray[Any], rows: NDArray[np.intp]) -> Any:
    """The ``rows`` as they would be new to a model of the rows of the weights ``learned``.

    Columns that stand for a vocabulary are those of the rows of ``fit``: no new row has others.
    A row that is left out has columns that are left out with it, and seems stranger than a new
    one. These are removed where nearly all columns occur in the rows that have a weight.
    """
    left_out = X[rows]
    if isinstance(X, np.ndarray):
        return left_out
    if np.count_nonzero(_occurrences(X, weights)) < CLOSED_SHARE * X.shape[1]:
        return left_out
    is_known = _occurrences(X, learned)[left_out.indices] > 0
    starts = np.concatenate(([0], np.cumsum(is_known)))[left_out.indptr]
    parts = left_out.data[is_known], left_out.indices[is_known], starts
    return sp.csr_matrix(parts, shape=left_out.shape)


def _occurrences(X: Any, weights: NDArray[Any]) -> NDArray[np.int64]:
    """How many values the rows that have a weight have in each column."""
    has_weight = np.repeat(weights > 0, np.diff(X.indptr))
    return np.bincount(X.indices[has_weight], minlength=X.shape[1])
