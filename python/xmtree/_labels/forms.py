"""Reading labels of any form: an indicator, a list of label lists, or one label per row."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d

from xmtree._validation import check_structure

#: Form of labels: one per row, or label sets as a dense indicator, a sparse indicator or lists.
#: ``predict`` returns the form that ``fit`` got.
Form = Literal["labels", "indicator", "sparse", "lists"]

#: Largest number of labels in a message.
_MAX_SHOWN = 5

_EXPECTED = "it must be an indicator, a list of label lists, or one label per row"


@dataclass(frozen=True)
class Indicator:
    """Label sets as a CSR matrix that stores only ones, sorted within each row.

    ``columns`` holds the column names of a data frame, None without names.
    """

    sets: Any
    form: Form
    columns: NDArray[Any] | None = None

    def with_columns_for(self, classes: NDArray[Any], name: str) -> Any:
        """Return the matrix with its columns in the order of ``classes``, matched by name.

        Columns without names are already in this order.
        """
        check_columns(name, self.sets.shape[1], classes)
        return in_order(self.sets, self.columns, classes, name)


@dataclass(frozen=True)
class NamedLabels:
    """Labels by value, row after row; row i has ``lengths[i]`` of them."""

    labels: NDArray[Any]
    lengths: NDArray[np.int64]
    form: Form
    name: str

    def row_of(self, at: Any) -> int:
        """Return the row of ``labels[at]``."""
        return int(np.searchsorted(np.cumsum(self.lengths), at, side="right"))

    def indicator(self, numbers: NDArray[Any], n_columns: int | None = None) -> Any:
        """Return the rows as a CSR indicator; ``numbers`` are the columns of ``labels``."""
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
                f"row {row_of[at]} of {self.name} contains the label {label!r} twice; "
                f"if {self.name} is an indicator, pass it as an array"
            )
        return sets


def read(
    y: Any, name: str, *, column_is_labels: bool = False, lists: bool = False
) -> Indicator | NamedLabels:
    """Return labels of any form; ``name`` is their name in messages.

    A dense array of one column is an indicator of one label unless ``column_is_labels``. Nested
    lists of equal length, at least two, that hold only 0 and 1 are an indicator, as in
    scikit-learn, unless ``lists``. Sets, series and arrays of lists are always label lists.
    """
    if y is None:
        raise ValueError(f"{name} is None; {_EXPECTED}")
    if sp.issparse(y):
        return Indicator(canonical(y, name), "sparse")
    columns = column_names(y, name)
    if getattr(y, "ndim", 0) == 2 and hasattr(y, "sparse"):  # a data frame of pandas
        return Indicator(canonical(y.sparse.to_coo(), name), "sparse", columns)
    may_be_indicator = not lists and isinstance(y, list | tuple)
    if hasattr(y, "to_pylist"):  # of pyarrow
        y = y.to_pylist()
    if _is_label_lists(y):
        lengths = np.fromiter((len(row) for row in y), np.int64, len(y))
        flat = list(chain.from_iterable(y))
        labels = label_array(flat, name) if flat else np.empty(0, np.int64)
        if labels.ndim != 1:
            raise ValueError(f"{name} contains lists of lists of lists; {_EXPECTED}")
        may_be_indicator &= not any(isinstance(row, set | frozenset) for row in y)
        if may_be_indicator and _is_nested_indicator(labels, lengths):
            return Indicator(canonical(labels.reshape(len(y), -1), name), "indicator")
        return NamedLabels(labels, lengths, "lists", name)
    array = label_array(y, name)
    if column_is_labels and array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
    if array.ndim == 1:
        return NamedLabels(array, np.ones(len(array), np.int64), "labels", name)
    if array.ndim == 0:
        kind = type(y).__name__
        raise ValueError(
            f"{name} is of type {kind}; {_EXPECTED}. If it is iterable, pass list({name})"
        )
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions; {_EXPECTED}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be labels or an indicator, got {array.dtype} {array.shape}")
    return Indicator(canonical(array, name), "indicator", columns)


def _is_nested_indicator(labels: NDArray[Any], lengths: NDArray[np.int64]) -> bool:
    width = lengths[0]
    if width < 2 or labels.dtype.kind not in "biu" or np.any(lengths != width):
        return False
    return bool(np.isin(labels, (0, 1)).all())


def column_names(y: Any, name: str) -> NDArray[Any] | None:
    """Return the column names of a data frame as labels, else None.

    A single column, and columns without names (numbered 0, 1, ...), also give None.
    """
    if getattr(y, "ndim", 2) != 2 or not hasattr(y, "columns") or hasattr(y, "to_pylist"):
        return None
    names = list(y.columns)
    if len(names) < 2:
        return None
    labels = label_array(names, f"the columns of {name}")
    if labels.ndim != 1:
        raise ValueError(f"{name} has columns of several levels; each column needs a single name")
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < len(labels):
        twice = found[counts > 1].tolist()[0]
        raise ValueError(f"{name} has two columns {twice!r}; column names must be distinct labels")
    is_unnamed = np.array_equal(labels, np.arange(len(labels)))
    return None if is_unnamed else as_classes(labels, f"the columns of {name}")


def in_order(matrix: Any, columns: NDArray[Any] | None, classes: NDArray[Any], name: str) -> Any:
    """Return ``matrix`` with its columns, named by ``columns``, in the order of ``classes``.

    Without names, or if one of both holds strings and the other numbers, it is returned unchanged.
    """
    if columns is None or kind_of(columns) != kind_of(classes):
        return matrix
    at = positions(classes, columns)
    if np.any(at < 0):
        missing = classes[at < 0].tolist()[0]
        raise ValueError(
            f"{name} has no column for the class {missing!r}; name its columns by the classes, in "
            "any order, or pass an array"
        )
    if np.array_equal(at, np.arange(len(at))):
        return matrix
    if isinstance(matrix, np.ndarray):
        return np.take(matrix, at, axis=1)
    ordered = matrix[:, at]
    ordered.sort_indices()
    return ordered


def class_list(classes: Any) -> NDArray[Any]:
    """Return a ``classes`` argument as an array of at least one label."""
    if isinstance(classes, str):
        raise ValueError(
            f'classes must be a list of labels, or "grow" in partial_fit, got {classes!r}'
        )
    labels = label_array(classes, "classes")
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"classes must be a list of at least one label, got an array of shape {labels.shape}"
        )
    return as_classes(labels, "classes")


def positions(
    labels: NDArray[Any], classes: NDArray[Any], order: NDArray[np.intp] | None = None
) -> NDArray[np.int64]:
    """Return the position of each label in ``classes``, -1 if it is not there.

    ``order`` is the permutation that sorts the classes, if it is known.
    """
    if kind_of(labels) != kind_of(classes):
        return np.full(len(labels), -1, np.int64)
    if labels.dtype != classes.dtype and kind_of(labels) != "strings":
        # numpy would compare both as floats, which merges large integers.
        is_kept = ~changed(labels, classes.dtype)
        at = np.full(len(labels), -1, np.int64)
        at[is_kept] = positions(labels[is_kept].astype(classes.dtype), classes, order)
        return at
    at = _places(labels, classes, order)
    is_there = classes[at] == labels
    # A label that was found is right in any order. Checking the order reads all classes, which
    # may be very many, so it is done only if a label was not found.
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
    """Return the permutation that sorts the classes; None if they are sorted."""
    return np.argsort(classes) if np.any(classes[1:] < classes[:-1]) else None


def kind_of(labels: NDArray[Any]) -> str:
    """Return the kind of the labels in words; labels of two kinds are never equal."""
    kinds = {**dict.fromkeys("biuf", "numbers"), **dict.fromkeys("UO", "strings")}
    return kinds.get(labels.dtype.kind, labels.dtype.name.partition("[")[0])


def common_type(labels: NDArray[Any], others: NDArray[Any], where: str) -> np.dtype[Any]:
    """Return a type that holds both exactly, that of the ``others`` if possible.

    Labels that numpy would change in an array with the ``others`` are refused.
    """
    if labels.dtype == others.dtype:
        return others.dtype
    mixed = f"y mixes types: its labels are {labels.dtype}, those {where} are {others.dtype}"
    is_bool = labels.dtype.kind == "b", others.dtype.kind == "b"
    if kind_of(labels) != kind_of(others) or is_bool[0] != is_bool[1]:
        raise ValueError(mixed)
    common = np.promote_types(labels.dtype, others.dtype)
    for dtype in (others.dtype, labels.dtype, common):
        different = [values[changed(values, dtype)] for values in (labels, others)]
        if not any(map(len, different)):
            return dtype
    value = next(filter(len, different))[0]
    raise ValueError(f"{mixed}; converting both to {common} would change {value}")


def changed(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    """Return a mask of the values that a conversion to ``dtype`` changes."""
    if values.dtype == dtype or (dtype.kind not in "fmM" and np.can_cast(values.dtype, dtype)):
        return np.zeros(len(values), np.bool_)
    with np.errstate(invalid="ignore"):
        converted = values.astype(dtype)
    if dtype.kind in "mM":
        return np.asarray(converted.astype(values.dtype) != values)
    # Python compares integers with floats exactly, numpy converts them to floats first.
    pairs = zip(values.tolist(), converted.tolist(), strict=True)
    return np.array([one != other for one, other in pairs], np.bool_)


def shown(labels: NDArray[Any]) -> str:
    """Return the first labels as text for a message."""
    times = labels.dtype.kind in "mM"  # tolist would convert them to integers
    first = ", ".join(map(str if times else repr, labels[:_MAX_SHOWN].tolist()))
    more = len(labels) - _MAX_SHOWN
    return f"{first} and {more} more" if more > 0 else first


def as_label_lists(rows: list[Any]) -> NDArray[Any]:
    """Return ``rows`` as an array of objects, which :func:`read` never reads as an indicator."""
    lists = np.empty(len(rows), object)
    lists[:] = rows
    return lists


def entry_rows(sets: Any) -> NDArray[np.int64]:
    """Return the row of each entry of a CSR matrix."""
    return np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))


def row_sets(numbers: NDArray[Any], lengths: NDArray[np.int64], n_labels: int) -> Any:
    """Return label numbers, given row after row, as a CSR indicator with sorted rows."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ones = np.ones(len(numbers), np.uint8)
    numbers = numbers.astype(np.int64)  # a copy, as sorting is in place
    sets = sp.csr_array((ones, numbers, starts), shape=(len(lengths), n_labels))
    sets.sort_indices()
    return sets


def canonical(indicator: Any, name: str) -> Any:
    """Return a matrix of 0 and 1 as CSR that stores only ones, sorted within each row."""
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
    """Return a dense or sparse matrix as CSR."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got a sparse array of {matrix.ndim}")
    if getattr(matrix, "format", "csr") != "csr":
        check_structure(matrix, name)
    return matrix.tocsr() if hasattr(matrix, "tocsr") else sp.csr_array(matrix)


def check_columns(name: str, n_columns: int, classes: NDArray[Any] | None) -> None:
    """Refuse a number of columns that differs from the number of classes."""
    if classes is not None and len(classes) != n_columns:
        raise ValueError(f"{name} has {n_columns} columns, but there are {len(classes)} classes")


def label_array(values: Any, name: str) -> NDArray[Any]:
    """Return ``values`` as an array that holds each of them exactly.

    Missing values, bytes and mixed types are refused, except several types of numbers or of
    strings. ``name`` is the name of the values in messages.
    """
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise ValueError(f"{name} contains masked values; leave out the rows without a label")
        values = values.data
    array: NDArray[Any]
    if isinstance(values, list | tuple):
        array = _array_from_list(list(values), name)
    else:
        # check_array would convert nullable integers of pandas to floats.
        array = np.asarray(values)
        if array.dtype.kind == "T":
            array = array.astype(object)
        if array.dtype == object and array.ndim > 0:
            array = _array_from_list(array.ravel().tolist(), name, keeps_objects=True).reshape(
                array.shape
            )
    if array.dtype.kind == "S":
        raise ValueError(f"{name} contains bytes; decode them: np.char.decode({name}, 'utf-8')")
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise ValueError(f"Input {name} contains NaT; leave out the rows without a label")
    if array.dtype.kind == "f":
        assert_all_finite(array, input_name=name)
    return array


def _array_from_list(values: list[Any], name: str, *, keeps_objects: bool = False) -> NDArray[Any]:
    """Return Python values as an array; with ``keeps_objects`` strings become objects."""
    types = set(map(type, values))
    if len(types) > 1 or types & {type(None)}:
        missing = next((value for value in values if is_missing(value)), values)
        if missing is not values:
            raise ValueError(f"Input {name} contains {missing}, which is not a label")
    # numpy would convert [1, "a"] to ["1", "a"].
    kinds = {_kind_of_type(t) for t in types}
    if len(kinds) > 1:
        names = ", ".join(sorted(t.__name__ for t in types))
        raise ValueError(f"{name} mixes labels of different types: {names}; use one type")
    if kinds == {str}:
        if not types <= {str, np.str_}:  # numpy would call __str__ of an enum
            values = [str.__str__(value) for value in values]
        array = np.array(values, object if keeps_objects else None)
        # numpy drops "\0" at the end.
        is_exact = keeps_objects or np.strings.str_len(array).sum() == sum(map(len, values))
        return array if is_exact else np.array(values, object)
    array = np.array(values)
    if kinds == {Real}:
        if array.dtype.kind not in "biu" and all(issubclass(t, Integral) for t in types):
            # numpy would convert integers to floats if no single type holds all of them.
            low, high = min(values), max(values)
            if not -(2**63) <= low <= high < (2**63 if low < 0 else 2**64):
                ends = " and ".join(dict.fromkeys(map(_shortened, (low, high))))
                raise ValueError(
                    f"{name} contains {ends}; neither int64 nor uint64 holds all labels, so use "
                    "strings"
                )
            array = np.array([int(value) for value in values], np.int64 if low < 0 else np.uint64)
        for value, kept in zip(values, array.tolist(), strict=True) if len(types) > 1 else ():
            if value != kept and kept == kept:
                raise ValueError(
                    f"{name} mixes floats with {_shortened(value)}, which would become {kept} as a "
                    "float; use only integers"
                )
    if array.dtype == object and len(values):
        names = ", ".join(sorted(t.__name__ for t in types))
        raise ValueError(f"{name} contains labels of type {names}; use numbers or strings")
    return array


def _kind_of_type(label_type: type) -> type:
    if issubclass(label_type, str):
        return str
    # numpy also registers its time differences as integers.
    is_number = issubclass(label_type, Real) and not issubclass(label_type, np.timedelta64)
    return Real if is_number else label_type


def is_missing(value: Any) -> bool:
    """Return whether ``value`` is None, NaN, NaT or pandas' NA."""
    if value is None or isinstance(value, str | int):
        return value is None
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return bool(isinstance(value, float | np.floating | np.datetime64) and value != value)


def _shortened(value: Any) -> str:
    n_bits = int(value).bit_length()
    return str(value) if n_bits <= 128 else f"an integer of {n_bits} bits"


def as_classes(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return ``labels``; refuse text that UTF-8, and so a model file, cannot hold."""
    try:
        "".join(labels.tolist() if kind_of(labels) == "strings" else ()).encode()
    except UnicodeEncodeError as error:
        surrogate = ascii(error.object[error.start : error.end])
        raise ValueError(
            f"{name} contains a label with {surrogate}, which UTF-8 cannot encode; read the labels "
            "with the encoding in which they were written"
        ) from None
    return labels


def _is_label_lists(y: Any) -> bool:
    """Return whether ``y`` is a sequence of collections; strings are labels, not collections."""
    if hasattr(y, "to_list") and getattr(y, "dtype", None) is not None:  # a series
        y = y.to_list() if str(y.dtype).startswith(("List", "list", "object")) else []
    if isinstance(y, np.ndarray):
        is_list = y.dtype == object and y.ndim == 1
    else:
        is_list = isinstance(y, Sequence) and not isinstance(y, str)
    sets = (list, tuple, set, frozenset, np.ndarray)
    return is_list and len(y) > 0 and all(isinstance(row, sets) for row in y)
