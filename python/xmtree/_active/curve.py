"""The learning curve: one entry per round, in arrays that are never written to again."""

from __future__ import annotations

import math

import numpy as np
from sklearn.utils import Bunch

_COUNTS = ("n_samples", "n_classes")


def empty(measures: tuple[str, ...]) -> Bunch:
    """A curve of no round, with these ``measures`` beside the counts."""
    counts = {name: np.empty(0, np.int64) for name in _COUNTS}
    return Bunch(**counts, **{name: np.empty(0) for name in measures})


def with_round(curve: Bunch, **known: float) -> Bunch:
    """The curve with one round more, of which only the ``known`` values are known yet."""
    counts = {name: np.append(curve[name], np.int64(known[name])) for name in _COUNTS}
    others = [name for name in curve if name not in _COUNTS]
    return Bunch(
        **counts, **{name: np.append(curve[name], known.get(name, math.nan)) for name in others}
    )


def with_last(curve: Bunch, **known: float) -> Bunch:
    """The curve with these values of its last round."""
    ends = {name: np.append(curve[name][:-1], value) for name, value in known.items()}
    return Bunch(**{**curve, **ends})
