"""How sure a learner may be of its labels, told by rows that it has not learned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from xmtree import _core

#: Rows that calibrate, at most, and one in how many of those of ``fit``.
MOST_ROWS = 2000
MOST_SHARE = 3
#: Fewer rows say too little.
LEAST_ROWS = 32
#: Scores of all rows that calibrate, about, if that leaves ``ENOUGH_ROWS``.
MOST_SCORES = 1_000_000
ENOUGH_ROWS = 256
#: The best labels of a row that calibrate where it has a label set; all others are far below.
N_BEST = 100
#: Rows times passes that calibration in ``fit`` may learn, or a quarter of all where that is more.
LEAST_LEARNED = 20_000

#: One row's scores, or several rows': the scores, whether the best is right, the weights.
ScoredRows = tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float64]]


@dataclass(frozen=True)
class Calibration:
    """From scores to probabilities: the softmax of ``slope * score``, or for label sets the
    logistic function of ``slope * score + intercept``."""

    slope: float = 1.0
    intercept: float = 0.0
    #: Probability above which a label is predicted to be in a label set.
    threshold: float = 0.5
    #: Examples that the model had learned.
    n_examples: int = 0

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Calibration:
        """What ``asdict`` has stored; what it cannot have is a ValueError."""
        calibration = cls(**state)
        numbers = (calibration.slope, calibration.intercept, calibration.threshold)
        if not (
            np.isfinite(numbers).all()
            and calibration.slope > 0
            and 0 <= calibration.threshold <= 1
            and calibration.n_examples >= 0
        ):
            raise ValueError(f"{calibration}")
        return calibration


def most_rows(n_scored: int) -> int:
    """Rows that calibrate, at most, where so many labels of each have a score."""
    return min(MOST_ROWS, max(ENOUGH_ROWS, MOST_SCORES // n_scored))


def slope_of(parts: Iterable[ScoredRows]) -> float | None:
    """The slope at which the best label's probability is how often it is right; None where the
    rows do not tell."""
    loss = _core.TopLabelLoss()
    for scores, is_right, weights in parts:
        loss.add(np.ascontiguousarray(scores, np.float32), is_right, weights)
    return loss.slope()


def of_label_sets(
    scores: NDArray[np.float32],
    hits: NDArray[np.bool_],
    n_true: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> Calibration:
    """By the best labels of each row: Platt scaling, and the threshold of the highest F1.

    ``scores`` and ``hits``, whether the row has the label, have shape (n, k); ``n_true``
    says how many labels each row has. F1 is the mean over the rows of
    2 * hits / (labels predicted + true labels), 1 for a row of which both are none.
    """
    known = scores > -np.inf
    flat, is_hit = scores[known], hits[known]
    if len(np.unique(is_hit)) < 2:
        return Calibration()
    # Steps are bounded by the scale of the feature, so it is brought to 1.
    scale = float(np.abs(flat).max()) or 1.0
    of_pairs = np.broadcast_to(weights[:, np.newaxis], scores.shape)[known]
    # Nearly no regularisation: there are two parameters and many pairs.
    platt = LogisticRegression(C=1e6, max_iter=1000)
    platt.fit(flat[:, np.newaxis].astype(np.float64) / scale, is_hit, of_pairs)
    slope, intercept = float(platt.coef_[0, 0]) / scale, float(platt.intercept_[0])
    if not (np.isfinite(slope) and slope > 0 and np.isfinite(intercept)):
        return Calibration()
    chances = np.where(known, expit(slope * scores + intercept), -1.0)
    grid = np.arange(1, 100) / 100
    f1 = [float(np.average(_f1(chances > t, hits, n_true), weights=weights)) for t in grid]
    return Calibration(slope, intercept, float(grid[int(np.argmax(f1))]))


def _f1(
    is_taken: NDArray[np.bool_], hits: NDArray[np.bool_], n_true: NDArray[np.int64]
) -> NDArray[np.float64]:
    n_taken = is_taken.sum(axis=1)
    both = n_taken + n_true
    found: NDArray[np.float64] = np.ones(len(n_true))
    np.divide(2.0 * (is_taken & hits).sum(axis=1), both, out=found, where=both > 0)
    return found
