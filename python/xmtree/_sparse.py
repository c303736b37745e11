"""Sparse matrices whose arrays contradict each other: scipy would write beyond them."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def check_structure(matrix: Any, name: str) -> None:
    """Refuses a sparse matrix whose indices are outside of it, or whose rows end before they begin.

    Nothing else is touched, and whatever is no sparse matrix passes. O(stored values).
    """
    if not sp.issparse(matrix):
        return
    found: Any = matrix
    try:
        if found.format in ("csr", "csc", "bsr"):
            found.check_format(full_check=True)
        elif found.format == "coo":
            for axis, indices in enumerate(getattr(found, "coords", (found.row, found.col))):
                is_outside = (indices < 0) | (indices >= found.shape[axis])
                if len(indices) != len(found.data) or np.any(is_outside):
                    raise ValueError(f"indices of axis {axis} are outside of it")
    except ValueError as error:
        raise ValueError(f"{name} is a damaged sparse matrix: {error}") from error
