"""Reading labels: an indicator, a list of label lists, or one label per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from xmtree._sparse import check_structure

#: How the labels came: one per row, or label sets as a dense indicator, a
#: sparse indicator or lists. ``predict`` answers in the same form.
Form = Literal["labels", "indicator", "sparse", "lists"]

_EXPECTED = "it must be an indicator, a list of label lists, or one label per row"


@dataclass(frozen=True)
class Indicator:
    """Label sets as a CSR matrix that stores ones alone, sorted within each row.

    ``columns`` are the labels that a data frame's columns are named by, None where they
    have no names.
    """

    sets: Any
    form: Form
    columns: NDArray[Any] | None = None

    def of_classes(self, classes: NDArray[Any], name: str) -> Any:
        """The matrix with a column for each of ``classes``: the one of this name, or of this place
        where columns have no names."""
        check_columns(name, self.sets.shape[1], classes)
        return in_order(self.sets, self.columns, classes, name)


@dataclass(frozen=True)
class NamedLabels:
    """Labels by value, row after row: ``lengths[i]`` of them are row i's."""

    labels: NDArray[Any]
    lengths: NDArray[np.int64]
    form: Form
    name: str

    def row_of(self, at: Any) -> int:
        """The row of ``labels[at]``."""
        return int(np.searchsorted(np.cumsum(self.lengths), at, side="right"))

    def indicator(self, numbers: NDArray[Any], n_columns: int | None = None) -> Any:
        """The rows as a CSR indicator; ``numbers`` are the columns of ``labels``."""
        if n_columns is None:
            n_columns = int(numbers.max(initial=0)) + 1
        sets = row_sets(numbers, self.lengths, n_columns)
        if self.form == "labels":
            return sets
        row_of = entry_rows(sets)
        repeated = (np.diff(sets.indices) == 0) & (np.diff(row_of) == 0)
        if repeated.any():
            at = int(np.argmax(repeated))
            label = self.labels[numbers == sets.indices[at]].tolist()[0]
            raise ValueError(
                f"row {row_of[at]} of {self.name} lists the label {label!r} twice; "
                f"if {self.name} is an indicator, pass it as an array"
            )
        return sets


def read(y: Any, name: str, *, column_is_labels: bool = False) -> Indicator | NamedLabels:
    """Labels in any form; ``name`` is what messages call them.

    A dense array of one column is an indicator of one label unless ``column_is_labels``.
    """
    if y is None:
        raise ValueError(f"{name} is None; {_EXPECTED}")
    if sp.issparse(y):
        return Indicator(canonical(y, name), "sparse")
    columns = column_names(y, name)
    if getattr(y, "ndim", 0) == 2 and hasattr(y, "sparse"):  # a data frame of pandas
        return Indicator(canonical(y.sparse.to_coo(), name), "sparse", columns)
    if hasattr(y, "to_pylist"):  # of pyarrow
        y = y.to_pylist()
    if _is_label_lists(y):
        lengths = np.fromiter((len(row) for row in y), np.int64, len(y))
        flat = list(chain.from_iterable(y))
        labels = _array(flat, name) if flat else np.empty(0, np.int64)
        return NamedLabels(labels, lengths, "lists", name)
    array = _array(y, name)
    if column_is_labels and array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
    if array.ndim == 1:
        return NamedLabels(array, np.ones(len(array), np.int64), "labels", name)
    if array.ndim == 0:
        kind = type(y).__name__
        raise ValueError(f"{name} is of type {kind}; {_EXPECTED}. Pass list({name}) of an iterable")
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions; {_EXPECTED}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be labels or an indicator, got {array.dtype} {array.shape}")
    return Indicator(canonical(array, name), "indicator", columns)


def column_names(y: Any, name: str) -> NDArray[Any] | None:
    """The labels that the columns of a data frame are named by; None for anything else, for a
    single column, and for the numbers 0, 1, ... that frames without names have."""
    if getattr(y, "ndim", 2) != 2 or not hasattr(y, "columns") or hasattr(y, "to_pylist"):
        return None
    names = list(y.columns)
    if len(names) < 2:
        return None
    labels = _array(names, f"the columns of {name}")
    if labels.ndim != 1:
        raise ValueError(f"{name} has columns of several levels; name each by one label")
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < len(labels):
        twice = found[counts > 1].tolist()[0]
        raise ValueError(f"{name} has two columns {twice!r}; each stands for one label")
    return None if np.array_equal(labels, np.arange(len(labels))) else labels


def in_order(matrix: Any, columns: NDArray[Any] | None, classes: NDArray[Any], name: str) -> Any:
    """``matrix``, as many columns as ``classes``, in their order by the names ``columns``. Without
    names, and with strings where the labels are numbers or the other way round, it is as it was."""
    if columns is None or are_strings(columns) != are_strings(classes):
        return matrix
    at = positions(classes, columns)
    if np.any(at < 0):
        missing = classes[at < 0].tolist()[0]
        raise ValueError(
            f"{name} has no column {missing!r}, which is one of the classes; its columns "
            "must be named by these, in any order, or be an array"
        )
    if np.array_equal(at, np.arange(len(at))):
        return matrix
    if isinstance(matrix, np.ndarray):
        return np.take(matrix, at, axis=1)
    ordered = matrix[:, at]
    ordered.sort_indices()
    return ordered


def class_list(classes: Any) -> NDArray[Any]:
    """A ``classes`` argument as an array of at least one label."""
    if isinstance(classes, str):
        raise ValueError(
            f'classes must be a list of labels, or "grow" in partial_fit; got {classes!r}'
        )
    labels = _array(classes, "classes")
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"classes must be a list of at least one label, got an array of shape {labels.shape}"
        )
    return labels


def positions(
    labels: NDArray[Any], classes: NDArray[Any], order: NDArray[np.intp] | None = None
) -> NDArray[np.int64]:
    """The position of each of ``labels`` in ``classes``; -1 where it is not there. ``order`` is
    what sorts the classes, where that is known."""
    if are_strings(labels) != are_strings(classes):
        return np.full(len(labels), -1, np.int64)
    at = _places(labels, classes, order)
    is_there = classes[at] == labels
    # What was found is right in any order. Classes are looked at only where something was not:
    # there may be very many, and one label.
    if order is None and not is_there.all():
        order = order_of(classes)
        if order is not None:
            at = _places(labels, classes, order)
            is_there = classes[at] == labels
    return np.where(is_there, at, -1)


def _places(
    labels: NDArray[Any], classes: NDArray[Any], order: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    at = np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)
    return at if order is None else order[at]


def order_of(classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """What sorts the classes; None where they are sorted."""
    return np.argsort(classes) if np.any(classes[1:] < classes[:-1]) else None


def are_strings(labels: NDArray[Any]) -> bool:
    """Whether they are not numbers, dates or bytes."""
    return labels.dtype.kind in "UO"


def entry_rows(sets: Any) -> NDArray[np.int64]:
    """The row of each entry of a CSR matrix."""
    return np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))


def row_sets(numbers: NDArray[Any], lengths: NDArray[np.int64], n_labels: int) -> Any:
    """Label numbers, row after row, as a CSR indicator with the numbers of each row in order."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ones = np.ones(len(numbers), np.uint8)
    numbers = numbers.astype(np.int64)  # a copy, as it is sorted in place
    sets = sp.csr_array((ones, numbers, starts), shape=(len(lengths), n_labels))
    sets.sort_indices()
    return sets


def canonical(indicator: Any, name: str) -> Any:
    """A matrix of 0 and 1 as CSR that stores ones alone, in order."""
    sets: Any = as_csr(indicator, name)
    if not (sets.has_canonical_format and np.all(sets.data == 1)):
        check_structure(sets, name)
        sets = sets.copy()
        sets.sum_duplicates()
        sets.eliminate_zeros()
        wrong = np.flatnonzero(sets.data != 1)
        if len(wrong):
            at = wrong[0]
            row = int(np.searchsorted(sets.indptr, at, side="right")) - 1
            raise ValueError(
                f"row {row}, column {sets.indices[at]} of {name} is {sets.data[at]}; "
                "an indicator of label sets holds only 0 and 1"
            )
    return sets


def as_csr(matrix: Any, name: str) -> Any:
    """A dense or sparse matrix as CSR."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} is a sparse array of {matrix.ndim} dimensions; it must have two")
    if getattr(matrix, "format", "csr") != "csr":
        check_structure(matrix, name)
    return matrix.tocsr() if hasattr(matrix, "tocsr") else sp.csr_array(matrix)


def check_columns(name: str, n_columns: int, classes: NDArray[Any] | None) -> None:
    """Refuses a number of columns that is not that of the classes."""
    if classes is not None and len(classes) != n_columns:
        raise ValueError(f"{name} has {n_columns} columns, but there are {len(classes)} classes")


def check_types(types: set[type], name: str) -> None:
    """Refuses a mixture, except of kinds of numbers or of strings."""
    if len(types) > 1 and not any(all(issubclass(t, kind) for t in types) for kind in (str, Real)):
        names = ", ".join(sorted(t.__name__ for t in types))
        raise ValueError(f"{name} mixes labels of different types: {names}; use one type")


def _array(values: Any, name: str) -> NDArray[Any]:
    """``values`` as an array without NaN or infinity, of the type that all labels have."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iubUSM":
        return values
    if isinstance(values, list | tuple):
        # numpy would turn 1 into "1" beside "a".
        check_types({type(label) for label in values}, name)
    array: NDArray[Any] = check_array(
        values, ensure_2d=False, allow_nd=True, dtype=None, input_name=name, ensure_min_samples=0
    )
    if array.dtype != object or array.ndim != 1:
        return array
    types = {type(label) for label in array.tolist()}
    check_types(types, name)
    if all(issubclass(t, str) for t in types):
        return array
    typed = np.array(array.tolist())
    if typed.ndim != 1 or typed.dtype == object:
        raise ValueError(
            f"{name} holds labels of type {types.pop().__name__}; use numbers or strings"
        )
    return typed


def _is_label_lists(y: Any) -> bool:
    """A sequence whose entries are collections; strings are labels, not collections."""
    if hasattr(y, "to_list") and getattr(y, "dtype", None) is not None:
        # A series.
        y = y.to_list() if str(y.dtype).startswith(("List", "list", "object")) else []
    if isinstance(y, np.ndarray):
        is_list = y.dtype == object and y.ndim == 1
    else:
        is_list = isinstance(y, Sequence) and not isinstance(y, str)
    sets = (list, tuple, set, frozenset, np.ndarray)
    return is_list and len(y) > 0 and all(isinstance(row, sets) for row in y)
