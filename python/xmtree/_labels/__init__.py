"""Labels and label sets of any form, as the class numbers the core works with.

Here for learners, :mod:`xmtree._labels.matching` for metrics; both, data sets and active
learning read labels with :mod:`xmtree._labels.forms`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xmtree import _one_row
from xmtree._labels import forms
from xmtree._labels.forms import Form, Indicator


class Labels(NamedTuple):
    """What the classes of a model are called, by number, and in which form rows have them."""

    classes: NDArray[Any]
    form: Form
    #: What sorts the classes; None where they are sorted.
    order: NDArray[np.intp] | None

    @classmethod
    def of(cls, classes: NDArray[Any], form: Form) -> "Labels":
        return cls(classes, form, forms.order_of(classes))


@dataclass(frozen=True)
class Target:
    """What to learn for each row: class numbers, uint32 of shape (n,), or a CSR indicator
    of shape (n, n_classes), and the labels of a model that learns it."""

    codes: Any
    labels: Labels
    #: Whether later rows may have further classes.
    is_open: bool = False

    @property
    def classes(self) -> NDArray[Any]:
        return self.labels.classes

    @property
    def form(self) -> Form:
        return self.labels.form

    @property
    def multilabel(self) -> bool:
        """Whether a row may have any number of labels."""
        return self.form != "labels"


def encode(y: Any, known: Labels | None = None, *, grow: bool = False) -> Target:
    """Numbers the labels of ``y`` by their position in the classes of ``known``, the labels that
    may occur; by default those that do: sorted, or the names of a data frame's columns.

    With ``grow`` labels that are not known follow those that are: sorted among themselves, or in
    the order of a data frame's columns.
    """
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    lists = known is not None and known.form == "lists"
    found = forms.read(y, "y", column_is_labels=True, lists=lists)
    if isinstance(found, Indicator):
        return _of_indicator(found, known, grow)
    occurring, places = np.unique(found.labels, return_inverse=True)
    if known is not None and grow and len(occurring):
        known = _joined(known, occurring)
    is_single = found.form == "labels"
    if not len(occurring) and (is_single or known is None):
        raise ValueError("y holds no label at all")
    if is_single:
        _check_discrete(found.labels)
    if known is None:
        known = Labels(forms.as_classes(occurring, "y"), found.form, None)
    else:
        places = _known_places(occurring, known)[places]
    labels = known._replace(form=found.form)
    codes = places.astype(np.uint32) if is_single else found.indicator(places, len(known.classes))
    return Target(codes, labels, grow)


def _of_indicator(found: Indicator, known: Labels | None, grow: bool) -> Target:
    n_columns = found.sets.shape[1]
    if n_columns == 0:
        raise ValueError("y is an indicator without columns; it needs one per label")
    if known is None:
        classes = np.arange(n_columns) if found.columns is None else found.columns
        return Target(found.sets, Labels.of(classes, found.form), grow)
    names = found.columns
    if grow and names is not None and forms.kind_of(names) == forms.kind_of(known.classes):
        # Known labels without a column are in no row.
        known = _joined(known, names)
        numbers = forms.positions(names, known.classes, known.order)[found.sets.indices]
        sets = forms.row_sets(numbers, np.diff(found.sets.indptr), len(known.classes))
        return Target(sets, known._replace(form=found.form), grow)
    if grow and n_columns != len(known.classes):
        raise ValueError(
            f'classes="grow" must know which labels the columns of y are: y is an indicator of '
            f"{n_columns} columns, the model has {len(known.classes)} labels; pass label lists, or "
            "a data frame whose columns are named by labels"
        )
    sets = found.of_classes(known.classes, "y")
    return Target(sets, known._replace(form=found.form), grow)


def _joined(known: Labels, labels: NDArray[Any]) -> Labels:
    """``known``, then those of the distinct ``labels`` that are not in it, as the type that they
    have, or a wider one where these need it."""
    classes, form, order = known
    if forms.kind_of(labels) != forms.kind_of(classes):
        forms.common_type(labels, classes, "of the model")
    new = labels[forms.positions(labels, classes, order) < 0]
    if not len(new):
        return known
    dtype = forms.common_type(new, classes, "of the model")
    classes, new = classes.astype(dtype, copy=False), forms.as_classes(new.astype(dtype), "y")
    # Not sorted again: there may be very many, and one more.
    if order is None:
        order = np.arange(len(classes))
    of_new = np.argsort(new)
    places = np.searchsorted(classes, new[of_new], sorter=order)
    order = np.insert(order, places, len(classes) + of_new)
    return Labels(np.concatenate([classes, new]), form, order)


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
    given = forms.class_list(classes)
    has_names = forms.column_names(y, "y") is not None
    target = encode(y, None if has_names else Labels(np.unique(given), "labels", None))
    if has_names and not np.array_equal(given, target.classes):
        raise ValueError(
            "classes must be the names of the columns of y, in their order; leave classes out"
        )
    check_column_order(target, given, y)
    return target


def check_known(classes: Any, known: NDArray[Any]) -> None:
    """Refuses a ``classes`` argument of a later ``partial_fit`` that is not ``known``."""
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
        "classes are not those of the first call to partial_fit or of fit: "
        + ", ".join(differences)
    )


def check_column_order(target: Target, classes: Any, y: Any) -> None:
    """Refuses an indicator ``y`` without names beside ``classes`` in another order than that of
    ``classes_``."""
    if target.form not in ("indicator", "sparse") or forms.column_names(y, "y") is not None:
        return
    if not np.array_equal(forms.class_list(classes), target.classes):
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
    labels = _one_row.taken(codes, classes)
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


def place(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """The position of each label of ``y`` in ``classes``, -1 where it is new."""
    target = encode_single(y, "y")
    of_rows: NDArray[np.int64] = forms.positions(target.classes, classes)[target.codes]
    return of_rows


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


def _known_places(labels: NDArray[Any], known: Labels) -> NDArray[np.int64]:
    """The position of each of ``labels``, all of which must be known."""
    at = forms.positions(labels, known.classes, known.order)
    unseen = labels[at < 0]
    if len(unseen):
        raise ValueError(
            f"y holds labels that are not in classes: {forms.shown(unseen)}; "
            'name every label in the classes of the first partial_fit, or pass classes="grow" to '
            "the partial_fit of OAAClassifier, LOMTreeClassifier or RecallTreeClassifier"
        )
    return at
