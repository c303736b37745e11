"""The learning curve: one entry per round, in arrays that are never written to again."""

from __future__ import annotations

import math

import numpy as np
from sklearn.utils import Bunch


def empty() -> Bunch:
    """A curve of no round."""
    return Bunch(
        n_samples=np.empty(0, np.int64),
        n_classes=np.empty(0, np.int64),
        validation_error=np.empty(0),
        utility=np.empty(0),
    )


def with_round(curve: Bunch, n_samples: int, n_classes: int, error: float) -> Bunch:
    """The curve with one round more, of which the utility is not known yet."""
    return Bunch(
        n_samples=np.append(curve.n_samples, n_samples),
        n_classes=np.append(curve.n_classes, n_classes),
        validation_error=np.append(curve.validation_error, error),
        utility=np.append(curve.utility, math.nan),
    )


def with_utility(curve: Bunch, utility: float) -> Bunch:
    """The curve with the median utility after its last round."""
    return Bunch(**{**curve, "utility": np.append(curve.utility[:-1], utility)})
