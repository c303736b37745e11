"""The labels that an active learner is given: one per row, of one kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree._labels import encode_single


def labels_of(y: Any, n: int, name: str) -> NDArray[Any]:
    """One label for each of ``n`` rows."""
    target = encode_single(y, name)
    if len(target.codes) != n:
        raise ValueError(f"{name} has {len(target.codes)} labels for {n} rows")
    labels: NDArray[Any] = target.classes[target.codes]
    return labels


def check_kind(labels: NDArray[Any], others: NDArray[Any], where: str) -> None:
    """Refuses labels that numpy would change, or confuse, beside the ``others``."""
    if labels.dtype == others.dtype:
        return
    mixed = f"y mixes types: its labels are {labels.dtype}, those {where} {others.dtype}"
    if _kind(labels) != _kind(others):
        raise ValueError(mixed)
    common = np.promote_types(labels.dtype, others.dtype)
    for values in (labels, others):
        changed = _changed(values, common)
        if len(changed):
            raise ValueError(f"{mixed}; as {common}, which is both, {changed[0]} would be another")


def _kind(labels: NDArray[Any]) -> str:
    return {"i": "number", "u": "number", "f": "number", "O": "U"}.get(
        labels.dtype.kind, labels.dtype.kind
    )


def _changed(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Those that conversion to ``dtype`` changes."""
    converted = values.astype(dtype)
    if dtype.kind in "mM":
        changed = (converted.astype(values.dtype) != values) & ~np.isnat(values)
    else:
        # Python compares integers with floats as they are, numpy as floats.
        pairs = zip(values.tolist(), converted.tolist(), strict=True)
        changed = np.array([one != other for one, other in pairs])
    found: NDArray[Any] = values[changed]
    return found
