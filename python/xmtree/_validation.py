"""Conversion of arguments to the types that the core accepts.

This module converts types. The core checks values, indices and shapes, once and before anything
changes.
"""

import math
import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from xmtree import _core, _one_row
from xmtree._sklearn import feature_names, sample_weights

T = TypeVar("T")

#: Size limit of a dense result: 8 GiB, or half of the machine's memory if that is less.
MAX_DENSE_BYTES = 8 << 30
#: Advice if a result is larger.
_FEWER = "pass fewer rows at a time"

#: Prefixes of the names of types of dates and times in numpy, pandas and polars, in lower case.
_TIMES = ("date", "time", "duration", "period")

#: Largest integer that a count of the core can hold.
MAX_COUNT = 2**32 - 1
#: Largest number that is safely finite in single precision.
MAX_REAL = 3e38


def rows(
    estimator: Any, X: Any, *, reset: bool, double: bool = False, any_width: bool = False
) -> Any:
    """Return ``X`` as a C-contiguous array or CSR matrix of float32 or float64.

    The number and the names of features are stored with ``reset``, else compared; with
    ``any_width`` only the names of columns that ``fit`` had are compared. Other types become
    float32, or float64 with ``double``.
    """
    if not reset and _one_row.is_valid(estimator, X, any_width):
        return X
    if np.ma.is_masked(X):
        raise ValueError("X contains masked values; replace them, for instance by X.filled(0)")
    dtypes = [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", ())
    for column, dtype in enumerate(dtypes):
        if str(dtype).lower().startswith(_TIMES):
            what = f"column {X.columns[column]!r}" if hasattr(X, "columns") else "them"
            raise ValueError(
                f"X contains dates or times ({dtype}), but must be numbers; convert {what}, for "
                "instance to the number of days since a fixed date, or to year, month and weekday"
            )
    if getattr(X, "format", "csr") != "csr":
        # scipy converts it before the core can check it.
        check_structure(X, "X")
    options = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32] if double else [np.float32, np.float64],
        "order": "C",
        "ensure_all_finite": False,  # the core checks this, and its message names the cell
    }
    try:
        if not any_width:
            return validate_data(estimator, X, reset=reset, **options)
        _check_shared_names(estimator, X)
        return check_array(X, estimator=estimator, input_name="X", **options)
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(
                f"{error}. X must contain numbers; convert text to features, for instance by "
                "TfidfVectorizer or HashingVectorizer of sklearn.feature_extraction.text, or pass "
                "a data frame to GambleClassifier, whose categorical_features are by default "
                '"from_dtype", all columns of strings and of a category type'
            ) from error
        raise


def _check_shared_names(estimator: Any, X: Any) -> None:
    """Refuse a data frame whose columns have other names than in ``fit``."""
    known, given = getattr(estimator, "feature_names_in_", None), feature_names(X)
    if known is None or given is None:
        return
    for column, (before, now) in enumerate(zip(known, given, strict=False)):
        if before != now:
            raise ValueError(
                f"The feature names should match those that were passed during fit: column "
                f"{column} was {before!r} and is now {now!r}"
            )


def plain_array(values: Any) -> NDArray[Any]:
    """Return ``values`` as an array; objects get the type of the values."""
    array = np.asarray(values)
    return np.array(array.tolist()) if array.dtype == object else array


def weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """Return ``sample_weight`` as float64, or None."""
    if sample_weight is None:
        return None
    if np.ma.is_masked(sample_weight):
        raise ValueError("sample_weight contains masked values; use 0 to leave out a row")
    return np.require(sample_weights(sample_weight, X), requirements=["C", "A"])


def canonical(X: Any, call: Callable[[Any], T]) -> T:
    """Return ``call(X)``, after sorting column indices and summing repeated ones if needed.

    A copy is changed, and only if the core finds such indices.
    """
    try:
        return call(X)
    except _core.UnsortedIndicesError:
        check_structure(X, "X")
        X = X.copy()
        # scipy's cached flags are wrong if the user has filled the arrays.
        X.has_sorted_indices = False
        X.has_canonical_format = False
        X.sum_duplicates()
        return call(X)


def seed(random_state: Any) -> int:
    """Return a seed for the core: the given int, or a random one of a generator."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(0, np.iinfo(np.int32).max))


def check_dense_size(
    n_rows: int, n_columns: int, item_size: int, instead: str = _FEWER, columns: str = "classes"
) -> None:
    """Refuse a result of ``n_rows`` x ``n_columns`` that would not fit in memory."""
    size = n_rows * n_columns * item_size
    limit = min(MAX_DENSE_BYTES, _half_of_memory())
    if size > limit:
        raise ValueError(
            f"{n_rows} rows x {n_columns} {columns} would take {size / 2**30:.1f} GiB, "
            f"at most {limit / 2**30:.1f} GiB are allowed; {instead}"
        )


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):  # unknown on this system
        return MAX_DENSE_BYTES


def is_integer(value: Any, least: int) -> bool:
    """Return whether ``value`` is an integer of at least ``least``, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_structure(matrix: Any, name: str) -> None:
    """Refuse a sparse matrix with invalid indices or row ends, for which scipy is not safe.

    scipy would write beyond its arrays. The matrix is not changed; other types are accepted. The
    time is proportional to the number of stored values.
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
                    raise ValueError(f"indices of axis {axis} are out of bounds")
    except ValueError as error:
        raise ValueError(f"{name} is a damaged sparse matrix: {error}") from error


def csr(arrays: tuple[Any, Any, Any], shape: tuple[int, int]) -> Any:
    """Return ``(data, indices, indptr)`` in the CSR class that scikit-learn is set to return.

    The default is csr_matrix: scikit-learn 1.9's own loaders return it, and code
    written for it (``X * v``, ``X.getrow``) keeps working.
    """
    wanted = get_config().get("sparse_interface", "spmatrix")
    kind = sp.csr_array if wanted == "sparray" else sp.csr_matrix
    return kind(arrays, shape=shape)


def flag(name: str, value: Any) -> bool | None:
    """Return ``True``, ``False``, or ``None`` for ``"auto"``."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f'{name} must be True, False or "auto", got {value!r}')


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Check an integer against its bounds and return it."""
    return int(_within(name, value, low, high, Integral, "an integer"))


def real(name: str, value: Any, low: float, high: float) -> float:
    """Check a number against its bounds and return it."""
    return float(_within(name, value, low, high, Real, "a number"))


def _within(name: str, value: Any, low: float, high: float | None, kind: type, what: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {what}, got {value!r}")
    number: Any = value
    if not low <= number <= (math.inf if high is None else high):
        bounds = f"at least {low}" if high is None else f"between {low:.10g} and {high:.10g}"
        raise ValueError(f"{name} must be {bounds}, got {value}")
    return value
