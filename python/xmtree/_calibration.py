"""Calibration: from scores to probabilities, fitted to rows that a model has not learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from xmtree import _core

#: Rows that calibrate, at most, and one in how many of those of ``fit``.
MOST_ROWS = 2000
MOST_SHARE = 3
#: Fewer rows do not calibrate.
LEAST_ROWS = 32
#: The best labels of a row that calibrate where it has a label set; all others are far below.
N_BEST = 100
#: The best labels of a row that share its probability where it has one label.
N_SHARING = 20
#: Rows times passes that the model that calibrates may learn: a share of those of ``fit``, or so
#: many where that is more; and its share of the passes.
LEARNED_SHARE = 0.28
LEAST_LEARNED = 20_000
PASSES_SHARE = 0.3
#: Share of the columns that occur in ``fit`` from which on new rows are taken to have no others.
CLOSED_SHARE = 0.99


@dataclass(frozen=True)
class Calibration:
    """From logits to probabilities.

    Label sets: the logistic function of ``slope * logit + intercept``, for each label.

    One label a row: the softmax of ``slope * logit`` over the ``N_SHARING`` best labels and, as one
    more term, ``rest``, which all labels share alike: in a softmax over all labels the many far
    below the best would outweigh it. Then the logit of the best label's probability becomes
    ``top_slope * logit + intercept``, and the others share what it leaves. Without ``rest``
    probabilities are the softmax of ``slope * logit`` over all labels.
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

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Calibration:
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

    def of_set(self, logits: NDArray[Any]) -> NDArray[np.float32]:
        """The probability of each label that a row's set has it."""
        return np.asarray(expit(self.slope * logits + self.intercept), np.float32)

    def of_one(self, logits: NDArray[Any], n_classes: int) -> NDArray[np.float32]:
        """The probabilities of labels of which a row has one.

        ``logits`` has shape (n, m): those of more than ``N_SHARING`` best labels, or of all that
        have one; minus infinity where there is none.
        """
        if self.rest is None:
            return softmax_of_known(self.slope * logits)
        scaled = self.slope * logits.astype(np.float64)
        counted = scaled
        if scaled.shape[1] > N_SHARING:
            bar = np.partition(scaled, -N_SHARING - 1, axis=1)[:, -N_SHARING - 1]
            counted = np.where(scaled > bar[:, np.newaxis], scaled, -np.inf)
        chances = _shares(counted, self.rest, n_classes)
        first = scaled.argmax(axis=1)[:, np.newaxis]
        best = np.take_along_axis(chances, first, axis=1)
        line = self.top_slope * logit(best.clip(1e-9, 1 - 1e-9)) + self.intercept
        top = np.maximum(expit(line), 1 / n_classes)
        chances *= (1 - top) / np.maximum(1 - best, 1e-12)
        np.put_along_axis(chances, first, top, axis=1)
        # None has more than the best: what is above it is shared by all labels.
        excess = np.maximum(chances - top, 0)
        chances -= excess
        excess = excess.sum(axis=1, keepdims=True)
        share = excess / np.maximum(n_classes * top - 1 + excess, 1e-12)
        chances += share * (top - chances)
        return chances.astype(np.float32)


def softmax_of_known(logits: NDArray[Any]) -> NDArray[np.float32]:
    """The softmax of each row; 0 in rows that are minus infinity throughout."""
    known = np.isfinite(logits).any(axis=1)
    if known.all():
        return softmax(logits)
    chances = np.zeros(logits.shape, np.float32)
    chances[known] = softmax(logits[known])
    return chances


def softmax(logits: NDArray[Any]) -> NDArray[np.float32]:
    """The softmax of each row. scipy's takes longer for a row than a model does."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
    return chances.astype(np.float32, copy=False)


def _shares(logits: NDArray[np.float64], rest: float, n_classes: int) -> NDArray[np.float64]:
    """The softmax of each row and ``rest``, whose part all classes share alike."""
    peak = np.maximum(logits.max(axis=1), rest)[:, np.newaxis]
    powers, others = np.exp(logits - peak), np.exp(rest - peak)
    shares: NDArray[np.float64] = powers + others / n_classes
    shares /= powers.sum(axis=1, keepdims=True) + others
    return shares


def of_labels(
    logits: NDArray[Any], is_right: NDArray[np.bool_], weights: NDArray[np.float64], n_classes: int
) -> Calibration:
    """Fits slope and rest, then the best label's line, to how often the best label is right.

    ``logits`` has shape (n, m), each row falling.
    """
    best = np.full((len(logits), N_SHARING), -np.inf, np.float32)
    best[:, : logits.shape[1]] = logits[:, :N_SHARING]
    found = _core.fit_shares(best, is_right, weights, n_classes)
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
    flat, is_hit = scores[known].astype(np.float64), hits[known]
    if len(np.unique(is_hit)) < 2:
        return Calibration()
    of_pairs = np.broadcast_to(weights[:, np.newaxis], scores.shape)[known]
    slope, intercept = _platt(flat, *_targets(is_hit, of_pairs))
    chances = np.where(known, expit(slope * scores + intercept), -1.0)
    n_least = int(n_true[weights > 0].min() > 0)
    if n_least:
        chances[known[:, 0], 0] = 1
    grid = np.arange(1, 100) / 100
    f1 = [float(np.average(_f1(chances > t, hits, n_true), weights=weights)) for t in grid]
    return Calibration(slope, intercept, float(grid[int(np.argmax(f1))]), n_least)


def _targets(
    is_right: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What probabilities are fitted to, and the weights relative to their sum.

    As in Platt scaling one row more is right and one wrong, so that a few rows that are all right
    do not make a model sure.
    """
    shares = weights / weights.sum()
    n_right = len(shares) * float(shares @ is_right)
    right, wrong = (n_right + 1) / (n_right + 2), 1 / (len(shares) - n_right + 2)
    return np.where(is_right, right, wrong), shares


def _platt(
    x: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Slope and intercept of the logistic function of ``x`` that fits ``targets`` (J. Platt,
    "Probabilistic Outputs for Support Vector Machines", 1999)."""
    mean = float(weights @ x)
    scale = float(np.sqrt(weights @ (x - mean) ** 2)) or 1.0
    unit = (x - mean) / scale

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        line = point[0] * unit + point[1]
        rest = weights * (expit(line) - targets)
        value = weights @ (np.logaddexp(0, line) - targets * line)
        return float(value), np.array([rest @ unit, rest.sum()])

    # A larger score has the larger probability, however little.
    slope, shift = minimize(
        loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=[(1e-3, 1e3), (None, None)]
    ).x
    slope /= scale
    return float(slope), float(shift - slope * mean)


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
