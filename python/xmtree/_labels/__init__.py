"""Labels and label sets of any form, as the class numbers the core works with.

Here for learners, :mod:`xmtree._labels.matching` for metrics; both, data sets and active
learning read labels with :mod:`xmtree._labels.forms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree._labels.forms import (
    Form,
    Indicator,
    NamedLabels,
    as_classes,
    class_list,
    column_names,
    order_of,
    positions,
    read,
    shown,
)

__all__ = [
    "Form",
    "Labels",
    "Target",
    "check_column_order",
    "check_known",
    "decode",
    "encode",
    "encode_among",
    "encode_single",
    "numbered",
    "place",
    "plain_codes",
    "plain_sets",
    "taken",
]

#: Labels that are looked up one by one, at most.
_FEW = 8

#: Types of labels of which an array holds the very value.
_PLAIN_LABELS = (int, str, np.int64, np.str_)


class Labels(NamedTuple):
    """What the classes of a model are called, by number, and in which form rows have them."""

    classes: NDArray[Any]
    form: Form
    #: What sorts the classes; None where they are sorted.
    order: NDArray[np.intp] | None

    @classmethod
    def of(cls, classes: NDArray[Any], form: Form) -> Labels:
        return cls(classes, form, order_of(classes))


@dataclass(frozen=True)
class Target:
    """What to learn for each row: class numbers, uint32 of shape (n,), or a CSR indicator
    of shape (n, n_classes), and the classes."""

    codes: Any
    classes: NDArray[Any]
    form: Form
    #: Whether later rows may have further classes.
    is_open: bool = False
    #: What sorts the classes, where some were added.
    order: NDArray[np.intp] | None = None

    @property
    def labels(self) -> Labels:
        """Those of a model that learns it from the beginning."""
        return Labels.of(self.classes, self.form)

    @property
    def multilabel(self) -> bool:
        """Whether a row may have any number of labels."""
        return self.form != "labels"


def encode(
    y: Any,
    classes: NDArray[Any] | None = None,
    order: NDArray[np.intp] | None = None,
    *,
    lists: bool = False,
) -> Target:
    """Numbers the labels of ``y`` by their position in ``classes``, the labels that may occur, by
    default those that do: sorted, or the names of a data frame's columns. ``order`` is what sorts
    the classes, where that is known; ``lists``: nested lists are never an indicator."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    return numbered(read(y, "y", column_is_labels=True, lists=lists), classes, order)


def numbered(
    found: Indicator | NamedLabels,
    classes: NDArray[Any] | None,
    order: NDArray[np.intp] | None = None,
) -> Target:
    """Number labels that were read, as :func:`encode` does."""
    if isinstance(found, Indicator):
        return _of_indicator(found, classes)
    single = found.form == "labels"
    if not len(found.labels) and (single or classes is None):
        raise ValueError("y holds no label at all")
    if single:
        _check_discrete(found.labels)
    occurring, codes = np.unique(found.labels, return_inverse=True)
    if classes is not None:
        codes = _known(occurring, classes, order)[codes]
    classes = as_classes(occurring, "y") if classes is None else classes
    if single:
        return Target(codes.astype(np.uint32), classes, found.form)
    return Target(found.indicator(codes, len(classes)), classes, found.form)


def plain_codes(y: Any, classes: NDArray[Any]) -> NDArray[np.uint32] | None:
    """The codes that :func:`encode` would give a few labels, where it is plain that it would accept
    them: integers, strings or bools in an array, or a list of one, of the type of the sorted
    ``classes`` and all among them. None for all else."""
    if type(y) is list and len(y) == 1 and type(y[0]) in _PLAIN_LABELS:
        label, y = y[0], np.array(y)
        if y[0] != label:  # numpy drops "\0" at the end
            return None
    if type(y) is not np.ndarray or y.ndim != 1:
        return None
    if y.dtype.kind != classes.dtype.kind or y.dtype.itemsize > classes.dtype.itemsize:
        return None
    if y.dtype.kind == "O":
        if any(type(label) is not str for label in y):
            return None
    elif y.dtype.kind not in "iubU":
        return None
    at = classes.searchsorted(y)
    if not (classes.take(at, mode="clip") == y).all():
        return None
    return at.astype(np.uint32)


def plain_sets(y: Any, n_classes: int) -> Any:
    """``y``, where it is plain that :func:`encode` would give a CSR indicator of few rows as it is.
    None for all else."""
    if type(y) not in (sp.csr_matrix, sp.csr_array) or y.ndim != 2 or y.shape[1] != n_classes:
        return None
    return y if y.has_canonical_format and (y.data == 1).all() else None


def encode_single(y: Any, name: str) -> Target:
    """As :func:`encode`, of one label per row."""
    target = encode(y)
    if target.multilabel:
        raise ValueError(f"{name} must hold one label per row, not label sets")
    return target


def encode_among(y: Any, classes: Any) -> Target:
    """As :func:`encode` where learning begins; ``classes`` is the user's: None, or every label that
    may occur."""
    if classes is None:
        return encode(y)
    given = class_list(classes)
    has_names = column_names(y, "y") is not None
    target = encode(y, None if has_names else np.unique(given))
    if has_names and not np.array_equal(given, target.classes):
        raise ValueError(
            "classes must be the names of the columns of y, in their order; leave classes out"
        )
    check_column_order(target, given, y)
    return target


def check_known(classes: Any, known: NDArray[Any]) -> None:
    """Refuses a ``classes`` argument of a later ``partial_fit`` that is not ``known``."""
    given = np.unique(class_list(classes))
    is_known = positions(given, known) >= 0
    if len(given) == len(known) and is_known.all():
        return
    new, missing = given[~is_known], known[positions(known, given) < 0]
    differences = [
        f"{what} {shown(labels)}"
        for what, labels in (("new are", new), ("missing are", missing))
        if len(labels)
    ]
    raise ValueError(
        "classes are not those of the first call to partial_fit or of fit: "
        + ", ".join(differences)
    )


def check_column_order(target: Target, classes: Any, y: Any) -> None:
    """Refuses an indicator ``y`` without names beside ``classes`` in another order than that of
    ``classes_``."""
    if target.form not in ("indicator", "sparse") or column_names(y, "y") is not None:
        return
    if not np.array_equal(class_list(classes), target.classes):
        raise ValueError(
            "classes must be sorted and without repetition where y is an indicator, as its columns "
            "are those of classes_, which is sorted; pass np.sort(classes) and "
            "y[:, np.argsort(classes)], or a data frame whose columns are named by labels"
        )


def decode(codes: NDArray[np.int32], classes: NDArray[Any]) -> NDArray[Any]:
    """Labels of class numbers; -1, no label, becomes -1, NaN, NaT or None by type.

    Integer labels keep their type (unsigned ones become int64, or objects where they do not
    fit), floats have NaN for none, times NaT, all others become objects with None.
    """
    labels = taken(codes, classes)
    kind = classes.dtype.kind
    if kind == "u" and _fit_int64(classes):
        labels = labels.astype(np.int64)
    elif kind not in "ifmM":
        labels = labels.astype(object)
    missing = codes < 0
    if missing.any():
        kinds_of_none = {"i": -1, "f": np.nan, "m": "NaT", "M": "NaT"}
        labels[missing] = kinds_of_none.get(labels.dtype.kind)
    return labels


def taken(codes: NDArray[np.int32], classes: NDArray[Any]) -> NDArray[Any]:
    """The classes of these numbers; -1 is taken for 0. Nothing is done to all classes: there may
    be very many, and one row.

    Indexing by an array gives other threads the interpreter, which costs a call of few rows more
    than anything else where several threads ask for such.
    """
    if codes.size > _FEW:
        # Not with mode="clip", which would name a class that does not exist by another's label.
        return classes.take(np.maximum(codes, 0))
    labels = np.empty(codes.size, classes.dtype)
    for i, code in enumerate(codes.ravel().tolist()):
        labels[i] = classes[max(code, 0)]
    return labels.reshape(codes.shape)


def _fit_int64(classes: NDArray[Any]) -> bool:
    return classes.dtype.itemsize < 8 or bool(classes.max() <= np.iinfo(np.int64).max)


def place(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """The position of each label of ``y`` in ``classes``, -1 where it is new."""
    target = encode_single(y, "y")
    of_rows: NDArray[np.int64] = positions(target.classes, classes)[target.codes]
    return of_rows


def _of_indicator(found: Indicator, classes: NDArray[Any] | None) -> Target:
    n_columns = found.sets.shape[1]
    if n_columns == 0:
        raise ValueError("y is an indicator without columns; it needs one per label")
    if classes is not None:
        return Target(found.of_classes(classes, "y"), classes, found.form)
    labels = np.arange(n_columns) if found.columns is None else found.columns
    return Target(found.sets, labels, found.form)


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
    elif y.dtype.kind not in "biuUOmM":
        raise ValueError(f"Unknown label type: {y.dtype}; use numbers or strings")


def _known(
    labels: NDArray[Any], classes: NDArray[Any], order: NDArray[np.intp] | None
) -> NDArray[np.int64]:
    """The position of each of ``labels`` in ``classes``, which must hold them all."""
    at = positions(labels, classes, order)
    unseen = labels[at < 0]
    if len(unseen):
        raise ValueError(
            f"y holds labels that are not in classes: {shown(unseen)}; "
            'name every label in the classes of the first partial_fit, or pass classes="grow" to '
            "the partial_fit of OAAClassifier, LOMTreeClassifier or RecallTreeClassifier"
        )
    return at
