"""The labels that an active learner is given: one per row, of one kind."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from xmtree._labels import encode_single


def labels_of(y: Any, n: int, name: str) -> NDArray[Any]:
    """One label for each of ``n`` rows."""
    target = encode_single(y, name)
    if len(target.codes) != n:
        raise ValueError(f"{name} has {len(target.codes)} labels for {n} rows")
    labels: NDArray[Any] = target.classes[target.codes]
    return labels
