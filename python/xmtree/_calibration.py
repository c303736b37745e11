"""Calibration: maps from scores to probabilities, fitted on rows that the model has not learned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _core
from xmtree._thresholds import RankedRows, Thresholds, best_single

#: Scale of a learner's scores, for the core: "logit" if score differences are logits, "share" if
#: differences of their logarithms are, "probability" if a score is its label's own probability.
Scale: TypeAlias = Literal["logit", "share", "probability"]

#: Smallest and largest number of rows to calibrate on.
LEAST_ROWS = 32
MOST_ROWS = 2000
#: The smallest number of rows of ``fit`` for each row of the smallest number to calibrate on.
ROWS_PER_HELD_OUT = 3
#: Below MANY_ROWS rows, the first passes leave this share of the rows out. It is the first number
#: of passes and the second one, relative to those of a training without calibration.
MANY_ROWS = 8000
FEW_HELD_OUT = 0.2
FEW_PASSES = 0.6
#: With early stopping, the second number is this share of those made.
STOPPED_PASSES = 0.4
#: From MANY_ROWS rows on, the first passes leave out this share, at most MANY_HELD_OUT rows.
HELD_OUT_SHARE = 0.05
MANY_HELD_OUT = 1000
#: Largest share and number of the passes that learn all rows.
LAST_SHARE = 0.4
LAST_PASSES = 2
#: If at most this share of the rows is held out, one more pass over these rows is enough. With
#: 27,000 labels a LOMtree's scores change much even in its last passes.
SMALL_SHARE = 0.025
#: Largest number of rows times passes of a second model.
MOST_LEARNED = 20_000
#: Least share of the passes that the second model makes.
PASSES_SHARE = 0.5
#: Number of the best labels in the second softmax. On held-out rows, a filter tree of 1,055 labels
#: has a log loss of 1.75 with 20, 1.71 with 30, and 1.66 with 64, which take longer to rank.
N_RANKED = 30
#: The same in older files.
OLDER_RANKED = 20
#: If this share of all columns occurs in ``fit``, new rows are assumed to have no other columns.
CLOSED_SHARE = 0.99


@dataclass(frozen=True)
class Calibration:
    """Numbers of a map from scores to probabilities, which the core fits and applies.

    For label sets, the probability of each label is the logistic function of
    ``slope * score + intercept``. With one label per row, ``shares`` distributes a probability of
    1 among the best labels (``rust/src/metrics/shares.rs``); without ``rest``, probabilities are
    the softmax of the logits of all labels.
    """

    slope: float = 1.0
    intercept: float = 0.0
    #: Probability above which a label belongs to the predicted label set.
    threshold: float = 0.5
    #: Smallest number of labels in a predicted label set: 0 or 1.
    n_least: int = 0
    #: Number of examples that the model had learned.
    n_examples: int = 0
    rest: float | None = None
    top_slope: float = 1.0
    #: Changes of ``top_slope`` for high and for low logits of the best label.
    bends: tuple[float, float] = (0.0, 0.0)
    #: Slope and rest of the labels behind the best one, and how many of the best labels these
    #: concern. Older files have no number, or none of the three.
    later: tuple[float, ...] = ()
    #: Thresholds of the parameter ``threshold``, if it names an average.
    thresholds: Thresholds | None = None

    @property
    def shares(self) -> tuple[float, ...] | None:
        """Return the map for one label per row as the core expects it."""
        if self.rest is None:
            return None
        later = self.later or (self.slope, self.rest)
        later = (*later, OLDER_RANKED)[:3]
        return self.slope, self.rest, self.top_slope, self.intercept, *self.bends, *later

    def to_json(self) -> dict[str, Any]:
        """Return the calibration in JSON types."""
        state = asdict(replace(self, thresholds=None))
        # Older versions know none of these.
        del state["thresholds"]
        if self.rest is None:
            del state["bends"], state["later"]
        return state if self.thresholds is None else state | {"sets": self.thresholds.to_json()}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Calibration:
        """Return the calibration that ``to_json`` stored; invalid numbers raise a ValueError."""
        state = dict(state)
        sets = state.pop("sets", None)
        thresholds = None if sets is None else Thresholds.from_json(sets)
        above, below = state.pop("bends", (0.0, 0.0))
        later = tuple(state.pop("later", ()))
        calibration = cls(**state, bends=(above, below), later=later, thresholds=thresholds)
        rest = 0.0 if calibration.rest is None else calibration.rest
        numbers = (calibration.slope, calibration.intercept, rest, calibration.top_slope)
        if not (
            np.isfinite((*numbers, above, below, *later, calibration.threshold)).all()
            and calibration.slope > 0
            and calibration.top_slope > max(0, -above, below)
            and (not later or (len(later) in (2, 3) and later[0] > 0))
            and 0 <= calibration.threshold <= 1
            and calibration.n_least in (0, 1)
            and calibration.n_examples >= 0
        ):
            raise ValueError(f"{calibration}")
        return calibration


def fit_labels(
    scores: NDArray[np.float32],
    scale: Scale,
    hits: NDArray[np.bool_],
    weights: NDArray[np.float64],
    n_classes: int,
) -> Calibration:
    """Fit one label per row, by how often the best labels are right.

    ``scores`` and ``hits`` have shape (n, m); scores decrease within each row.
    """
    found = _core.fit_shares(scores, scale, hits, weights, n_classes)
    if found is None:
        return Calibration()
    slope, rest, top, intercept, above, below, *later = found
    bends = above, below
    return Calibration(slope, intercept, rest=rest, top_slope=top, bends=bends, later=(*later,))


def fit_label_sets(rows: RankedRows) -> Calibration:
    """Fit label sets by Platt scaling, with the threshold of the highest F1 of a row.

    If all rows have labels, the best label is always predicted.
    """
    scores, known = rows.scores, rows.scores > -np.inf
    if len(np.unique(rows.hits[known])) < 2:
        return Calibration()
    weights = np.broadcast_to(rows.weights[:, np.newaxis], scores.shape)[known]
    slope, intercept = _core.fit_line(scores[known], rows.hits[known], weights)
    probabilities = _core.label_probabilities(scores, slope, intercept)
    threshold = best_single("row", rows, probabilities)
    return Calibration(slope, intercept, threshold, rows.n_least)


def schedule(n_rows: int, n_passes: int) -> tuple[int, int, int]:
    """Return how many rows to hold out, and the numbers of passes before and after calibration.

    If the last number is 0, one more pass learns only the rows that were held out. No row is held
    out if there are too few.
    """
    if n_rows < ROWS_PER_HELD_OUT * LEAST_ROWS:
        return 0, n_passes, 0
    if n_rows < MANY_ROWS:
        n_held_out = max(LEAST_ROWS, int(FEW_HELD_OUT * n_rows))
        n_each = max(1, round(FEW_PASSES * n_passes))
        return n_held_out, n_each, n_each if n_passes > 1 else 0
    n_held_out = min(int(HELD_OUT_SHARE * n_rows), MANY_HELD_OUT)
    n_last = min(LAST_PASSES, int(LAST_SHARE * n_passes))
    if n_held_out <= SMALL_SHARE * n_rows:
        n_last = 0
    return n_held_out, n_passes - n_last, n_last


def passes_after_stopping(n_rows: int, n_made: float) -> int:
    """Return the last number of :func:`schedule` if early stopping ended ``n_made`` passes."""
    return round(STOPPED_PASSES * n_made) if n_rows < MANY_ROWS else 0


@dataclass(frozen=True)
class HeldOut:
    """Rows to calibrate on, and how often all rows and those that were learned have each thing."""

    X: Any
    codes: Any
    weights: NDArray[np.float64]
    #: Numbers of all and of learned rows by class; without classes for label sets.
    classes: NDArray[np.float64]
    #: Whether all rows and learned rows have values by column; without columns for arrays.
    columns: NDArray[np.bool_]

    @staticmethod
    def of(
        X: Any,
        codes: Any,
        n_classes: int,
        weights: NDArray[Any],
        learned: NDArray[Any],
        rows: NDArray[np.intp],
    ) -> HeldOut:
        """Take ``rows``. All rows have ``weights``, ``learned`` are those of the training."""
        classes, columns = np.zeros((2, 0)), np.zeros((2, 0), np.bool_)
        both = weights > 0, learned > 0
        if not hasattr(codes, "indptr"):
            classes = np.array([np.bincount(codes, there, n_classes) for there in both])
        if hasattr(X, "indptr"):
            columns = _occurring(X, both)
        return HeldOut(X[rows], codes[rows], weights[rows], classes, columns)

    @staticmethod
    def join(parts: Sequence[HeldOut | None]) -> HeldOut:
        """Join the rows of partitions; None stands for a partition without rows."""
        found = [part for part in parts if part is not None]
        return HeldOut(
            stacked([part.X for part in found]),
            stacked([part.codes for part in found]),
            np.concatenate([part.weights for part in found]),
            np.sum([part.classes for part in found], axis=0),
            np.any([part.columns for part in found], axis=0),
        )

    def usable(self) -> tuple[Any, Any, NDArray[np.float64]]:
        """Return rows, codes and weights as far as they resemble new rows."""
        X, codes, weights = self.X, self.codes, self.weights
        if self.classes.size:
            # The model predicts no class that it has not learned. The only rows of their classes
            # stay nevertheless: new rows have unseen classes as often (Good 1953).
            n_rows, n_learned = self.classes
            is_usable = (n_learned > 0) | (n_rows == 1)
            if not is_usable.all():
                kept = is_usable[codes]
                X, codes, weights = X[kept], codes[kept], weights[kept]
        occurs, is_learned = self.columns
        # If columns stand for a vocabulary, a new row contains only words of the training set. A
        # held-out row, however, may contain words that were held out with it.
        if len(occurs) and np.count_nonzero(occurs) >= CLOSED_SHARE * X.shape[1]:
            is_known = is_learned[X.indices]
            starts = np.concatenate(([0], np.cumsum(is_known)))[X.indptr]
            X = sp.csr_matrix((X.data[is_known], X.indices[is_known], starts), shape=X.shape)
        return X, codes, weights


def stacked(parts: Sequence[Any]) -> Any:
    """Join arrays or CSR matrices by rows."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _occurring(X: Any, subsets: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return for each of some subsets of the rows whether a column has a value in one of them."""
    n_columns = X.shape[1]
    counts = np.bincount(X.indices, minlength=n_columns)
    occurring = []
    for there in subsets:
        # Rows are copied slowly, so the smaller part of them is counted.
        is_smaller = 2 * np.count_nonzero(there) < len(there)
        part = X[there if is_smaller else ~there].indices
        counted = np.bincount(part, minlength=n_columns)
        occurring.append(counted if is_smaller else counts - counted)
    return np.array(occurring) > 0
