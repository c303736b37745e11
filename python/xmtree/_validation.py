"""Conversion of arguments to the types that the core accepts.

The core itself checks values, indices and shapes, once and before anything
changes; here types are converted, and no value is checked twice.
"""

import os
from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from xmtree import _core, _one_row
from xmtree._sklearn import feature_names, sample_weights

T = TypeVar("T")

#: The largest dense result: 8 GiB, or half of the memory of the machine if that is
#: less.
MAX_DENSE_BYTES = 8 << 30

#: The largest integer that the core's counts hold.
MAX_COUNT = 2**32 - 1
#: About the largest number that is finite in single precision.
MAX_REAL = 3e38


def rows(
    estimator: Any, X: Any, *, reset: bool, double: bool = False, any_width: bool = False
) -> Any:
    """``X`` as a C-contiguous array or CSR matrix of float32 or float64.

    Sets (``reset``) or compares the number and the names of the features; with ``any_width``
    only the names of those columns that ``fit`` had, too. Other types become float32, or
    float64 if ``double``.
    """
    if not reset and _one_row.is_valid(estimator, X, any_width):
        return X
    if np.ma.is_masked(X):
        raise ValueError("X holds masked values; replace them, for instance by X.filled(0)")
    dtypes = [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", ())
    times = [str(dtype) for dtype in dtypes if getattr(dtype, "kind", "") in ("m", "M")]
    if times:
        raise ValueError(
            f"X holds dates or times ({times[0]}), which are no numbers; turn them into some, for "
            "instance into days since a first one"
        )
    if getattr(X, "format", "csr") != "csr":
        # It is converted, before the core looks at it.
        check_structure(X, "X")
    options = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32] if double else [np.float32, np.float64],
        "order": "C",
        "ensure_all_finite": False,  # the core checks, and names row and column
    }
    try:
        if not any_width:
            return validate_data(estimator, X, reset=reset, **options)
        _check_shared_names(estimator, X)
        return check_array(X, estimator=estimator, input_name="X", **options)
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(
                f"{error}. X must hold numbers; turn text into features first, for instance by "
                "TfidfVectorizer or HashingVectorizer of sklearn.feature_extraction.text, or name "
                'a column of categories in categorical_features of GambleClassifier ("from_dtype": '
                "all columns of a data frame that are of a category type)"
            ) from error
        raise


def _check_shared_names(estimator: Any, X: Any) -> None:
    """Refuses a data frame whose columns have other names than the same ones in ``fit``."""
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
    """``values`` as an array, one of objects as one of the type that they have."""
    array = np.asarray(values)
    return np.array(array.tolist()) if array.dtype == object else array


def weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """``sample_weight`` as float64, or None."""
    if sample_weight is None:
        return None
    if np.ma.is_masked(sample_weight):
        raise ValueError("sample_weight holds masked values; 0 leaves out a row")
    return np.require(sample_weights(sample_weight, X), requirements=["C", "A"])


def canonical(X: Any, call: Callable[[Any], T]) -> T:
    """``call(X)``; where the core finds unsorted or repeated column indices,
    they are sorted and summed on a copy first."""
    try:
        return call(X)
    except _core.UnsortedIndicesError:
        check_structure(X, "X")
        X = X.copy()
        # scipy caches these flags, which are wrong if the arrays were filled by hand.
        X.has_sorted_indices = False
        X.has_canonical_format = False
        X.sum_duplicates()
        return call(X)


def seed(random_state: Any) -> int:
    """A seed for the core: an int itself, or a random number of a generator."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(0, np.iinfo(np.int32).max))


def check_dense_size(
    n_rows: int, n_columns: int, item_size: int, instead: str, columns: str = "classes"
) -> None:
    """Refuses a result of ``n_rows`` x ``n_columns`` that would not fit in memory."""
    size = n_rows * n_columns * item_size
    limit = min(MAX_DENSE_BYTES, _half_of_memory())
    if size > limit:
        raise ValueError(
            f"{n_rows} rows x {n_columns} {columns} would take {size / 2**30:.1f} GiB, "
            f"more than the {limit / 2**30:.1f} GiB allowed; {instead}"
        )


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):  # unknown on this system
        return MAX_DENSE_BYTES


def is_integer(value: Any, least: int) -> bool:
    """Whether it is an integer, and not a truth value, of at least ``least``."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_structure(matrix: Any, name: str) -> None:
    """Refuses a sparse matrix whose indices are outside of it, or whose rows end before they begin:
    scipy would write beyond its arrays.

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
