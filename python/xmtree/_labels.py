"""Labels of any type, or sets of them, as the class numbers the core learns from."""

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

#: How the labels came: one per row, or label sets as a dense indicator, a
#: sparse indicator or lists. ``predict`` answers in the same form.
Form = Literal["labels", "indicator", "sparse", "lists"]

_SHOWN = 5


@dataclass(frozen=True)
class Target:
    """What to learn for each row, in class numbers.

    Attributes
    ----------
    codes : uint32 array of shape (n,), or CSR indicator of shape (n, n_classes)
    classes : array of shape (n_classes,), sorted
    form : how the labels came
    """

    codes: Any
    classes: NDArray[Any]
    form: Form

    @property
    def multilabel(self) -> bool:
        """Whether a row may have any number of labels."""
        return self.form != "labels"


def encode(y: Any, classes: NDArray[Any] | None = None) -> Target:
    """Numbers the labels of ``y`` by their place in ``classes``.

    Parameters
    ----------
    y : labels, shape (n,); or label sets as a dense or sparse indicator of
        shape (n, n_classes), or as a list of label lists
    classes : sorted labels that may occur; by default those that do occur

    Raises
    ------
    ValueError
        If ``y`` is missing, continuous, holds a NaN or a label that is not in
        ``classes``, or is no indicator where it should be one.
    """
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    if sp.issparse(y):
        matrix: Any = y
        return _from_indicator(matrix.tocsr(), "sparse", classes)
    if is_label_lists(y):
        return _from_lists(list(y), classes)
    array = as_array(y, "y")
    if array.ndim == 2 and array.shape[1] > 1:
        return _from_indicator(dense_indicator(array), "indicator", classes)
    return _from_labels(column_or_1d(array, warn=True), classes)


def check_classes(classes: Any) -> NDArray[Any]:
    """The ``classes`` argument of ``partial_fit``: sorted, without repetition."""
    labels = as_array(classes, "classes")
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"classes must be a list of at least one label, got an array of shape {labels.shape}"
        )
    return np.unique(one_type(labels, "classes"))


def decode(codes: NDArray[np.int32], classes: NDArray[Any]) -> NDArray[Any]:
    """Labels of class numbers; -1, no label, becomes -1, NaN or None by type.

    Integer labels keep their type (unsigned ones become int64), floats have
    NaN for none, all others become objects with None.
    """
    missing = codes < 0
    kind = classes.dtype.kind
    if kind == "u":
        classes = classes.astype(np.int64)
    elif kind not in "if":
        classes = classes.astype(object)
    labels = classes[np.where(missing, 0, codes)]
    labels[missing] = -1 if kind in "iu" else np.nan if kind == "f" else None
    return labels


def place(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each label of ``y`` in the sorted ``classes``, -1 where it is new."""
    target = encode(y)
    if target.multilabel:
        raise ValueError("y must hold one label per row, not label sets")
    found = target.classes
    places = np.full(len(found), -1, np.int64)
    if _is_text(found) == _is_text(classes):
        at = np.minimum(np.searchsorted(classes, found), len(classes) - 1)
        known = classes[at] == found
        places[known] = at[known]
    of_rows: NDArray[np.int64] = places[target.codes]
    return of_rows


def as_array(values: Any, name: str) -> NDArray[Any]:
    """``values`` as an array without NaN or infinity."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iubUSM":
        return values
    if isinstance(values, list | tuple):
        # numpy would turn 1 into "1" beside "a".
        check_types({type(label) for label in values}, name)
    array: NDArray[Any] = check_array(
        values, ensure_2d=False, allow_nd=True, dtype=None, input_name=name, ensure_min_samples=0
    )
    return array


def check_types(types: set[type], name: str) -> None:
    """Refuses a mixture, except of kinds of numbers or of strings."""
    for kind in (str, Real):
        if all(issubclass(t, kind) for t in types):
            return
    if len(types) > 1:
        names = ", ".join(sorted(t.__name__ for t in types))
        raise ValueError(f"{name} mixes labels of different types: {names}; use one type")


def _check_discrete(y: NDArray[Any]) -> None:
    """Refuses numbers that cannot be classes. (scikit-learn's own check also
    warns of many classes, which are what this package is for.)"""
    if y.dtype.kind == "f":
        fractions = np.flatnonzero(y != np.floor(y))
        if len(fractions):
            row = int(fractions[0])
            raise ValueError(
                f"Unknown label type: continuous; row {row} of y is {y[row]}, "
                "a classifier needs discrete classes"
            )
    elif y.dtype.kind not in "biuUSOmM":
        raise ValueError(f"Unknown label type: {y.dtype}; use numbers or strings")


def one_type(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Object arrays as arrays of the type that all labels have."""
    if labels.dtype != object:
        return labels
    types = {type(label) for label in labels.tolist()}
    check_types(types, name)
    if all(issubclass(t, str) for t in types):
        return labels
    tight = np.array(labels.tolist())
    if tight.ndim != 1 or tight.dtype == object:
        raise ValueError(
            f"{name} holds labels of type {types.pop().__name__}; use numbers or strings"
        )
    return tight


def _from_labels(y: NDArray[Any], classes: NDArray[Any] | None) -> Target:
    if len(y) == 0:
        raise ValueError("y holds no label at all")
    y = one_type(y, "y")
    _check_discrete(y)
    found, codes = np.unique(y, return_inverse=True)
    if classes is None:
        return Target(codes.astype(np.uint32), found, "labels")
    return Target(_numbers(found, classes)[codes], classes, "labels")


def _from_lists(rows: list[Any], vocabulary: NDArray[Any] | None) -> Target:
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    flat = list(chain.from_iterable(rows))
    if not flat and vocabulary is None:
        raise ValueError("y holds no label at all")
    labels = one_type(as_array(flat, "y"), "y") if flat else np.empty(0, np.int64)
    found, inverse = np.unique(labels, return_inverse=True)
    classes = found if vocabulary is None else vocabulary
    codes: NDArray[Any] = inverse
    if flat and vocabulary is not None:
        codes = _numbers(found, vocabulary)[inverse]
    sets = row_sets(codes, lengths, len(classes))
    twice = repetition(sets)
    if twice is not None:
        if found.dtype.kind in "biu" and set(found.tolist()) <= {0, 1} and len(set(lengths)) == 1:
            # Nobody lists 0 and 1 again and again: an indicator as nested lists.
            return _from_indicator(dense_indicator(np.array(rows)), "indicator", vocabulary)
        row, code = twice
        raise ValueError(
            f"row {row} of y lists the label {classes[code]!r} twice; "
            "if y is an indicator, pass it as an array"
        )
    return Target(sets, classes, "lists")


def row_sets(numbers: NDArray[Any], lengths: NDArray[np.int64], n_labels: int) -> Any:
    """Label numbers, row after row, as a CSR indicator with the numbers of each row in order."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ones = np.ones(len(numbers), np.uint8)
    shape = (len(lengths), n_labels)
    sets = sp.csr_array((ones, numbers.astype(np.int64), starts), shape=shape)
    sets.sort_indices()
    return sets


def repetition(sets: Any) -> tuple[int, int] | None:
    """The first row of ``sets`` that names a label twice, and its number."""
    row_of = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))
    twice = (np.diff(sets.indices) == 0) & (np.diff(row_of) == 0)
    if not twice.any():
        return None
    at = int(np.argmax(twice))
    return int(row_of[at]), int(sets.indices[at])


def indicator(sets: Any, name: str) -> Any:
    """A CSR matrix of 0 and 1 as one of ones alone, in order."""
    if not (sets.has_canonical_format and np.all(sets.data == 1)):
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


def _from_indicator(sets: Any, form: Form, classes: NDArray[Any] | None) -> Target:
    sets = indicator(sets, "y")
    if sets.shape[1] == 0:
        raise ValueError("y is an indicator without columns; it needs one per label")
    if classes is None:
        classes = np.arange(sets.shape[1])
    elif len(classes) != sets.shape[1]:
        raise ValueError(f"y has {sets.shape[1]} columns, but there are {len(classes)} classes")
    return Target(sets, classes, form)


def dense_indicator(array: NDArray[Any], name: str = "y") -> Any:
    """A dense indicator as CSR, its values not yet checked."""
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be labels or an indicator, got {array.dtype} {array.shape}")
    return sp.csr_array(array)


def is_label_lists(y: Any) -> bool:
    """A sequence whose entries are collections; strings are labels, not collections."""
    if hasattr(y, "to_list") and getattr(y, "dtype", None) is not None:
        kind = str(y.dtype)
        if not (kind.startswith("List") or kind == "object"):
            return False
        y = y.to_list()
    if isinstance(y, np.ndarray):
        if y.dtype != object or y.ndim != 1:
            return False
    elif not isinstance(y, Sequence) or isinstance(y, str):
        return False
    if len(y) == 0:
        return False
    sets = (list, tuple, set, frozenset, np.ndarray)
    return all(isinstance(row, sets) for row in y)


def _numbers(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.uint32]:
    """The place of each of ``labels`` in the sorted ``classes``."""
    if _is_text(labels) == _is_text(classes):
        at = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        unseen = labels[classes[at] != labels]
    else:
        at, unseen = np.zeros(len(labels), np.int64), labels
    if len(unseen):
        shown = ", ".join(repr(label) for label in unseen[:_SHOWN].tolist())
        more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
        raise ValueError(
            f"y holds labels that are not in classes: {shown}{more}; "
            "name every label in the classes of the first partial_fit"
        )
    numbers: NDArray[np.uint32] = at.astype(np.uint32)
    return numbers


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "UO"
