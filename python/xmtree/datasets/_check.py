"""Checks of arguments and sparse output for the functions of this package."""

from typing import Any

import sklearn
from scipy import sparse


def csr(arrays: tuple[Any, Any, Any], shape: tuple[int, int]) -> Any:
    """Return ``(data, indices, indptr)`` in the CSR class that scikit-learn is set to return.

    The default is csr_matrix: scikit-learn 1.9's own loaders return it, and code
    written for it (``X * v``, ``X.getrow``) keeps working.
    """
    wanted = sklearn.get_config().get("sparse_interface", "spmatrix")
    kind = sparse.csr_array if wanted == "sparray" else sparse.csr_matrix
    return kind(arrays, shape=shape)


def flag(name: str, value: Any) -> bool | None:
    """Return ``True``, ``False``, or ``None`` for ``"auto"``."""
    if isinstance(value, str) and value == "auto":
        return None
    # numpy's booleans are not instances of bool.
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ValueError(f'{name} must be True, False or "auto", got {value!r}')
