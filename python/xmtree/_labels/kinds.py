"""Whether labels of two types can stand beside one another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_kind(labels: NDArray[Any], others: NDArray[Any], where: str) -> None:
    """Refuses labels that numpy would change, or confuse, beside the ``others``."""
    if labels.dtype == others.dtype:
        return
    mixed = f"y mixes types: its labels are {labels.dtype}, those {where} {others.dtype}"
    if kind_of(labels) != kind_of(others):
        raise ValueError(mixed)
    common = np.promote_types(labels.dtype, others.dtype)
    for values in (labels, others):
        different = changed(values, common)
        if len(different):
            raise ValueError(
                f"{mixed}; as {common}, which is both, {different[0]} would be another"
            )


def kind_of(labels: NDArray[Any]) -> str:
    """What labels are compared as: numbers, strings or another type."""
    return {"i": "number", "u": "number", "f": "number", "O": "U"}.get(
        labels.dtype.kind, labels.dtype.kind
    )


def changed(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
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
