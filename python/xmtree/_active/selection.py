"""Which rows to label: those to begin with, the next ones, and those held out to measure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def first_set(usable: Rows, labels: NDArray[Any], n: int, draw: np.random.Generator) -> Rows:
    """The first working set of ``fit``: one row of every class, the rest of ``n`` at random."""
    one_each, others = _one_each(usable, labels, draw)
    return np.concatenate([one_each, others])[: max(n, len(one_each))]


def held_out(usable: Rows, labels: NDArray[Any], share: float, draw: np.random.Generator) -> Rows:
    """Validation rows from ``usable``, the last of no class."""
    _, others = _one_each(usable, labels, draw)
    if not len(others):
        raise ValueError(
            f"early_stopping needs rows to hold out, but of the {len(usable)} rows each is "
            "the only one of its class; pass X_val and y_val"
        )
    return others[: max(1, round(share * len(usable)))]


def _one_each(usable: Rows, labels: NDArray[Any], draw: np.random.Generator) -> tuple[Rows, Rows]:
    """One row of every class, and the others in random order."""
    order = draw.permutation(usable)
    _, firsts = np.unique(labels[order], return_index=True)
    return order[firsts], np.delete(order, firsts)


def spread(pairs: NDArray[Any], n: int) -> Rows:
    """Positions of ``n`` rows, one of each pair of best classes first, the others as they come.

    Where there are more ``pairs`` than ``n``, those that come first. How far rows are apart in
    their features is not looked at: on text the farthest are odd ones.
    """
    _, firsts = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    firsts = np.sort(firsts)[:n]
    others = np.delete(np.arange(len(pairs)), firsts)
    return np.sort(np.concatenate([firsts, others[: n - len(firsts)]]))
