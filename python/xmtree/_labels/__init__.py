"""Encoding of labels and label sets as the class numbers of the core, and decoding.

Learners use this module, metrics use :mod:`xmtree._labels.matching`. Both read labels with
:mod:`xmtree._labels.forms`, as do data sets and active learning.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xmtree import _one_row
from xmtree._labels import forms
from xmtree._labels.forms import Form, Indicator


class Labels(NamedTuple):
    """The labels of a model by class number, and the form in which ``y`` held them."""

    classes: NDArray[Any]
    form: Form
    #: Permutation that sorts the classes; None if they are sorted.
    order: NDArray[np.intp] | None

    @classmethod
    def of(cls, classes: NDArray[Any], form: Form) -> "Labels":
        return cls(classes, form, forms.order_of(classes))


@dataclass(frozen=True)
class Target:
    """Encoded labels of the training rows, and the labels of the model."""

    #: Class numbers, uint32 of shape (n,), or a CSR indicator of shape (n, n_classes).
    codes: Any
    labels: Labels
    #: True if later rows may have further classes.
    is_open: bool = False

    @property
    def classes(self) -> NDArray[Any]:
        return self.labels.classes

    @property
    def form(self) -> Form:
        return self.labels.form

    @property
    def multilabel(self) -> bool:
        """Return whether a row may have any number of labels."""
        return self.form != "labels"


def encode(y: Any, known: Labels | None = None, *, grow: bool = False) -> Target:
    """Encode the labels of ``y`` by their position in the classes of ``known``.

    Without ``known``, the classes are the labels of ``y``: sorted, or the column names of a data
    frame. With ``grow``, new labels are appended to the known ones: sorted among themselves, or in
    the order of a data frame's columns.
    """
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    lists = known is not None and known.form == "lists"
    found = forms.read(y, "y", column_is_labels=True, lists=lists)
    if isinstance(found, Indicator):
        return _encode_indicator(found, known, grow)
    occurring, places = np.unique(found.labels, return_inverse=True)
    if known is not None and grow and len(occurring):
        known = _joined(known, occurring)
    is_single = found.form == "labels"
    if not len(occurring) and (is_single or known is None):
        raise ValueError("y contains no labels")
    if is_single:
        _check_discrete(found.labels)
    if known is None:
        known = Labels(forms.as_classes(occurring, "y"), found.form, None)
    else:
        places = _known_places(occurring, known)[places]
    labels = known._replace(form=found.form)
    codes = places.astype(np.uint32) if is_single else found.indicator(places, len(known.classes))
    return Target(codes, labels, grow)


def _encode_indicator(found: Indicator, known: Labels | None, grow: bool) -> Target:
    n_columns = found.sets.shape[1]
    if n_columns == 0:
        raise ValueError("y is an indicator of 0 columns; it needs one column per label")
    if known is None:
        classes = np.arange(n_columns) if found.columns is None else found.columns
        return Target(found.sets, Labels.of(classes, found.form), grow)
    names = found.columns
    if grow and names is not None and forms.kind_of(names) == forms.kind_of(known.classes):
        # No row has a known label without a column.
        known = _joined(known, names)
        numbers = forms.positions(names, known.classes, known.order)[found.sets.indices]
        sets = forms.row_sets(numbers, np.diff(found.sets.indptr), len(known.classes))
        return Target(sets, known._replace(form=found.form), grow)
    if grow and n_columns != len(known.classes):
        raise ValueError(
            f'with classes="grow" an indicator y must have a column for each of the '
            f"{len(known.classes)} labels of the model, got {n_columns}; to add labels, pass label "
            "lists, or a data frame with labels as column names"
        )
    sets = found.with_columns_for(known.classes, "y")
    return Target(sets, known._replace(form=found.form), grow)


def _joined(known: Labels, labels: NDArray[Any]) -> Labels:
    """Append those of the distinct ``labels`` that are not ``known``.

    The type of the classes remains, or becomes a wider one that holds all labels.
    """
    classes, form, order = known
    if forms.kind_of(labels) != forms.kind_of(classes):
        forms.common_type(labels, classes, "of the model")
    new = labels[forms.positions(labels, classes, order) < 0]
    if not len(new):
        return known
    dtype = forms.common_type(new, classes, "of the model")
    classes, new = classes.astype(dtype, copy=False), forms.as_classes(new.astype(dtype), "y")
    # Inserting avoids sorting all labels again, which may be very many, for each new one.
    if order is None:
        order = np.arange(len(classes))
    new_order = np.argsort(new)
    places = np.searchsorted(classes, new[new_order], sorter=order)
    order = np.insert(order, places, len(classes) + new_order)
    return Labels(np.concatenate([classes, new]), form, order)


def encode_single(y: Any, name: str) -> Target:
    """Encode one label per row; refuse label sets."""
    target = encode(y)
    if target.multilabel:
        raise ValueError(f"{name} must hold one label per row, not label sets")
    return target


def encode_among(y: Any, classes: Any) -> Target:
    """Encode ``y`` for a new model; ``classes`` is the user's argument, None or all labels."""
    if classes is None:
        return encode(y)
    given = forms.class_list(classes)
    has_names = forms.column_names(y, "y") is not None
    target = encode(y, None if has_names else Labels(np.unique(given), "labels", None))
    if has_names and not np.array_equal(given, target.classes):
        raise ValueError(
            "classes must equal the column names of y, in their order, if y is a data frame; omit "
            "classes"
        )
    check_column_order(target, given, y)
    return target


def check_known(classes: Any, known: NDArray[Any]) -> None:
    """Refuse a ``classes`` argument of a later ``partial_fit`` that differs from ``known``."""
    given = np.unique(forms.class_list(classes))
    is_known = forms.positions(given, known) >= 0
    if len(given) == len(known) and is_known.all():
        return
    new, missing = given[~is_known], known[forms.positions(known, given) < 0]
    differences = [
        f"{what} {forms.shown(labels)}"
        for what, labels in (("new are", new), ("missing are", missing))
        if len(labels)
    ]
    raise ValueError(
        "classes must be those of fit or of the first partial_fit: " + ", ".join(differences)
    )


def check_column_order(target: Target, classes: Any, y: Any) -> None:
    """Refuse an indicator ``y`` without column names if ``classes`` are not sorted."""
    if target.form not in ("indicator", "sparse") or forms.column_names(y, "y") is not None:
        return
    if not np.array_equal(forms.class_list(classes), target.classes):
        raise ValueError(
            "classes must be sorted and distinct if y is an indicator, whose columns have the "
            "order of classes_; pass np.sort(classes) and y[:, np.argsort(classes)], or a data "
            "frame with labels as column names"
        )


def decode(codes: NDArray[np.int32], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of class numbers; the number -1 stands for no label.

    No label becomes -1 for integers, NaN for floats, NaT for times, and None otherwise. Integer
    labels keep their type, except unsigned ones, which become int64, or objects if they do not
    fit. Labels of other types become objects.
    """
    labels = _one_row.class_labels(codes, classes)
    kind = classes.dtype.kind
    if kind == "u" and (classes.dtype.itemsize < 8 or classes.max() <= np.iinfo(np.int64).max):
        labels = labels.astype(np.int64)
    elif kind not in "ifmM":
        labels = labels.astype(object)
    missing = codes < 0
    if missing.any():
        kinds_of_none = {"i": -1, "f": np.nan, "m": "NaT", "M": "NaT"}
        labels[missing] = kinds_of_none.get(labels.dtype.kind)
    return labels


def _check_discrete(y: NDArray[Any]) -> None:
    """Refuse numbers that cannot be classes.

    scikit-learn's own check would also warn of many classes, for which this package is made.
    """
    if y.dtype.kind == "f":
        fractions = np.flatnonzero(y != np.floor(y))
        if len(fractions):
            row = int(fractions[0])
            raise ValueError(
                f"Unknown label type: continuous; row {row} of y is {y[row]}, but a classifier "
                "needs discrete classes"
            )
    elif y.dtype.kind not in "biuUOmM":
        raise ValueError(f"Unknown label type: {y.dtype}; use numbers or strings")


def _known_places(labels: NDArray[Any], known: Labels) -> NDArray[np.int64]:
    """Return the position of each label; refuse labels that are not known."""
    at = forms.positions(labels, known.classes, known.order)
    unseen = labels[at < 0]
    if len(unseen):
        raise ValueError(
            f"y contains labels that are not in classes: {forms.shown(unseen)}; pass all labels as "
            'classes to the first partial_fit, or classes="grow" to the partial_fit of '
            "OAAClassifier, LOMTreeClassifier or RecallTreeClassifier"
        )
    return at
