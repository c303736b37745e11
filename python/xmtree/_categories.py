"""Categorical columns: selection, numbers for category names, and checks of precision."""

from collections.abc import Iterable
from datetime import date, timedelta
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from xmtree import _validation

#: Largest number up to which all integers are exact in double precision.
_EXACT = 2.0**53

#: Prefixes of the names of category types, and of strings, in pandas and polars.
_CATEGORY_TYPES = ("category", "Categorical", "Enum", "dictionary", "str", "String", "large_string")

#: Types of values that make a column of objects one of categories.
_NAMES = (str, date, timedelta)

#: Category names by column; the position of a name is the number of its category.
Names = dict[int, list[str | float]]


def is_frame(X: Any) -> bool:
    """Return whether ``X`` is a data frame, with a type for each column."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def columns_by_dtype(X: Any) -> list[int]:
    """Return the numbers of a data frame's columns of categories or strings, else none.

    A column of objects counts if it holds a string, or a date, which is then refused.
    """
    if not is_frame(X):
        return []
    names = [str(dtype) for dtype in X.dtypes]
    return [
        column
        for column, name in enumerate(names)
        if name.startswith(_CATEGORY_TYPES)
        or (name.lower() == "object" and any(isinstance(v, _NAMES) for v in _series(X, column)))
    ]


def _series(X: Any, column: int) -> Any:
    """Return a column of a data frame by its number."""
    return X.iloc[:, column] if hasattr(X, "iloc") else X.to_series(column)


def numbered(X: Any, columns: list[int], names: Names, *, learn: bool) -> Any:
    """Return the data frame with numbers in place of category names in ``columns``.

    Columns that hold only numbers remain. With ``learn``, new names are added to ``names``;
    otherwise they get the number after the last, which no tree knows, but numbers in place of
    strings are refused. Missing values become NaN.
    """
    found = {}
    for column in columns:
        series = _series(X, column)
        missing = np.asarray(series.isna() if hasattr(series, "isna") else series.is_null())
        values = series.to_list()
        if column not in names:
            # A column without values may have a type that is not numeric.
            if not missing.all() and all(
                isinstance(values[row], Real) for row in np.flatnonzero(~missing)
            ):
                continue
            names[column] = []
        present = [values[row] for row in np.flatnonzero(~missing)]
        if not any(isinstance(name, Real) for name in names[column]):
            number = next((value for value in present if isinstance(value, Real)), None)
            if number is not None and names[column]:
                raise TypeError(
                    f"column {X.columns[column]!r} held strings in fit and now contains the number "
                    f"{number!r}; convert the column with astype(str)"
                )
        if learn:
            names[column].extend(_new_names(present, names[column], X.columns[column]))
        number_of = {name: number for number, name in enumerate(names[column])}
        numbers = [float(number_of.get(value, len(number_of))) for value in values]
        found[column] = np.where(missing, np.nan, numbers)
    return _replaced(X, found) if found else X


def _new_names(present: list[Any], known: list[str | float], column: str) -> list[str | float]:
    """Return the unknown categories of ``present``, sorted.

    So category numbers do not depend on the order of rows.
    """
    for value in present:
        if not isinstance(value, str | Real):
            raise TypeError(
                f"column {column!r} contains the category {value!r} of type "
                f"{type(value).__name__}; categories must be strings or numbers, so convert the "
                "column with astype(str), or dates to a number of days"
            )
    return in_order(set(present).difference(known))


def in_order(names: Iterable[Any]) -> list[Any]:
    """Return category names in the order of their numbers, numbers before strings."""
    return sorted(names, key=lambda value: (isinstance(value, str), value))


def _replaced(X: Any, columns: dict[int, NDArray[np.float64]]) -> Any:
    """Return a copy of the data frame with some columns replaced; the others are shared."""
    if not hasattr(X, "isetitem"):  # polars
        names = X.columns
        series = type(X.to_series(0))
        return X.with_columns([series(names[at], values) for at, values in columns.items()])
    X = X.copy(deep=False)
    for at, values in columns.items():
        X.isetitem(at, values)
    return X


def columns_of(given: ArrayLike | None, n: int, names: list[str]) -> list[int]:
    """Return the numbers of the columns given as ``categorical_features``, of ``n`` in X."""
    if given is None:
        return []
    columns, name = _validation.plain_array(given), "categorical_features"
    if columns.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got {columns.ndim}")
    if not len(columns):
        return []
    if columns.dtype == bool:
        if len(columns) != n:
            raise ValueError(f"{name} is a mask of {len(columns)} columns, but X has {n}")
        return [int(column) for column in np.flatnonzero(columns)]
    if columns.dtype.kind == "U":
        unknown = [item for item in columns.tolist() if item not in names]
        if unknown:
            raise ValueError(f"{name} contains {unknown[0]!r}, which is not a column name of X")
        return sorted({names.index(item) for item in columns})
    if columns.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be column numbers, column names or a mask, got {columns.dtype}"
        )
    if not (columns.min() >= 0 and columns.max() < n):
        raise ValueError(f"{name} must be column numbers from 0 to {n - 1}, got {given}")
    return sorted({int(item) for item in columns})


def check(X: Any, columns: list[int]) -> None:
    """Refuse categories of the validated rows ``X`` that the core would confuse with others.

    These are integers that single precision cannot represent, and fractions that it rounds to the
    same number.
    """
    if X.dtype == np.float32 or not columns:
        return
    part = sp.csc_array(X[:, columns])
    part.sum_duplicates()
    for column, start, end in zip(columns, part.indptr[:-1], part.indptr[1:], strict=True):
        values = part.data[start:end]
        distinct = np.unique(np.append(values, 0.0))  # 0 is not stored
        with np.errstate(over="ignore"):
            single = distinct.astype(np.float32)
        # Numbers above 2**53 may have been rounded when they were converted from integers.
        lost = np.isfinite(distinct) & (np.abs(distinct) > _EXACT)
        lost |= (distinct == np.floor(distinct)) & (single != distinct)
        lost[1:] |= single[1:] == single[:-1]
        wrong = np.flatnonzero(np.isin(values, distinct[lost]))
        if len(wrong):
            at = start + wrong[0]
            raise ValueError(
                f"row {part.indices[at]}, column {column}: the category {part.data[at]:.17g} "
                "equals another in single precision; number the categories from 0"
            )
