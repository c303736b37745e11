"""Matching of true labels and predictions of any form, as numbers that the core compares.

An indicator, scores, and integers of at least 0 are used in place. Other labels are looked up in a
table.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from xmtree._labels import forms
from xmtree._labels.forms import Indicator, NamedLabels
from xmtree._validation import check_structure

#: Largest integer label that is its own number, as the core has 32 bits for it.
_MAX_NUMBER = 2**31 - 1


@dataclass(frozen=True)
class Match:
    """True labels and predictions as numbers that the core compares."""

    #: The true labels as a CSR indicator.
    sets: Any
    #: Class numbers, best first, or scores, as an array or a CSR matrix.
    ranking: Any
    #: Number of columns of the indicator or the scores passed.
    n_columns: int | None = None
    #: True if class numbers must be columns of the indicator.
    bounded: bool = False
    #: True if a label's number is its position in ``classes``, its column, or the integer label
    #: itself; False if labels are numbered by their first occurrence.
    by_position: bool = True


def match(y_true: Any, y_pred: Any, classes: NDArray[Any] | None, k: int) -> Match:
    """Return both as numbers; only the first ``k`` columns of a ranking count."""
    truth = forms.read(y_true, "y_true")
    own = truth.labels if isinstance(truth, NamedLabels) and classes is None else None
    floats = own is not None and own.dtype.kind == "f"
    ranking = _prediction(y_pred, float_labels=floats)
    scored = sp.issparse(ranking) or (ranking.dtype.kind == "f" and not floats)
    if scored:
        _check_scores(ranking, classes)
    names = forms.column_names(y_pred, "y_pred") if scored else None
    if classes is None:
        if isinstance(truth, Indicator):
            classes = _alike(truth.columns, names if scored else ranking)
        else:
            classes = _alike(names, truth.labels)
    if classes is not None and names is not None and len(names) == len(classes):
        ranking = forms.in_order(ranking, names, classes, "y_pred")
    if isinstance(truth, Indicator):
        n_columns = truth.sets.shape[1]
        sets = truth.sets if classes is None else truth.with_columns_for(classes, "y_true")
        if not scored:
            ranking = _ranked_columns(ranking, classes, n_columns, k)
        elif ranking.shape[1] != n_columns:
            raise ValueError(
                f"scores in y_pred must have the {n_columns} columns of y_true, got "
                f"{ranking.shape[1]}"
            )
        return Match(sets, ranking, n_columns, bounded=not scored and classes is None)
    index = _LabelIndex(classes, truth.labels, ranking)
    if scored:
        forms.check_columns("y_pred", ranking.shape[1], classes)
        if classes is None:
            numbers = _own_columns(truth, ranking.shape[1])
        else:
            numbers = index.numbers(truth.labels, "y_true")
        return Match(truth.indicator(numbers), ranking, ranking.shape[1])
    ints = _ints(ranking)
    if own is not None and ints is not None and _are_numbers(own):
        return Match(truth.indicator(own), ints)
    sets = truth.indicator(index.numbers(truth.labels, "y_true"))
    return Match(sets, index.ranking_numbers(ranking, k), by_position=classes is not None)


def _alike(names: NDArray[Any] | None, others: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return the column ``names`` if they and the ``others`` are labels of the same kind."""
    is_used = names is not None and others is not None and _kind(names) == _kind(others)
    return names if is_used else None


def column_labels(classes: Any) -> NDArray[Any] | None:
    """Return a ``classes`` argument: the labels of the columns, in their order."""
    if classes is None:
        return None
    labels = forms.class_list(classes)
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < len(labels):
        raise ValueError(f"classes contains {found[counts > 1].tolist()[0]!r} twice")
    return labels


def label_sets(
    y: Any, classes: NDArray[Any] | None, name: str, *, lists: bool = False
) -> tuple[Any, int]:
    """Return ``y`` as a CSR indicator by position in ``classes``, and the number of positions.

    Labels that are not in ``classes`` get columns beyond these. Without ``classes``, integer labels
    of at least 0 are their own positions, and others are numbered in sorted order. With ``lists``,
    nested lists are never read as an indicator.
    """
    truth = forms.read(y, name, lists=lists)
    if isinstance(truth, Indicator):
        sets = truth.sets if classes is None else truth.with_columns_for(classes, name)
    elif classes is None and _are_numbers(truth.labels):
        sets = truth.indicator(truth.labels)
    else:
        classes = np.unique(truth.labels) if classes is None else classes
        index = _LabelIndex(classes, truth.labels)
        return truth.indicator(index.numbers(truth.labels, name)), len(classes)
    return sets, sets.shape[1]


def pair_of_sets(y_true: Any, y_pred: Any, classes: NDArray[Any] | None) -> tuple[Any, Any]:
    """Return true and predicted label sets as CSR indicators with the same columns."""
    truth, found = forms.read(y_true, "y_true"), forms.read(y_pred, "y_pred")
    # Lists of 0 and 1 beside other lists are label lists as well.
    if truth.form == "lists" and isinstance(y_pred, list | tuple):
        found = forms.read(y_pred, "y_pred", lists=True)
    elif found.form == "lists" and isinstance(y_true, list | tuple):
        truth = forms.read(y_true, "y_true", lists=True)
    if classes is None:
        columns = [each.columns for each in (truth, found) if isinstance(each, Indicator)]
        classes = next((names for names in columns if names is not None), None)
        if classes is None and columns:
            widths = [each.sets.shape[1] for each in (truth, found) if isinstance(each, Indicator)]
            if len(set(widths)) > 1:
                raise ValueError(f"y_true has {widths[0]} columns and y_pred {widths[1]}")
            classes = np.arange(widths[0])
    named = [each.labels for each in (truth, found) if isinstance(each, NamedLabels)]
    index = _LabelIndex(classes, *named) if named else None
    sets = []
    for each, name in ((truth, "y_true"), (found, "y_pred")):
        if isinstance(each, NamedLabels) and index is not None:
            sets.append(each.indicator(index.numbers(each.labels, name)))
        elif isinstance(each, Indicator):
            sets.append(each.with_columns_for(np.asarray(classes), name))
    check_consistent_length(*sets)
    width = sets[0].shape[1] if index is None else len(index)
    for at, each in enumerate(sets):
        if each.shape[1] < width:
            sets[at] = sp.csr_array((each.data, each.indices, each.indptr), (each.shape[0], width))
    return sets[0], sets[1]


def are_right(y: Any, predicted: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether the label ``predicted`` for each row, one of ``classes``, is that of ``y``."""
    truth = forms.read(y, "y", column_is_labels=True)
    if isinstance(truth, Indicator) or truth.form != "labels":
        raise ValueError("y must hold one label per row, as in fit, not label sets")
    check_consistent_length(predicted, truth.labels)
    index = _LabelIndex(classes, truth.labels, predicted)
    numbers = index.numbers(truth.labels, "y")
    return np.asarray(numbers == index.numbers(predicted, "predictions"))


def _prediction(y: Any, float_labels: bool) -> Any:
    """Return a ranking of labels or scores as a 2-D array or CSR matrix that the core accepts."""
    if sp.issparse(y):
        matrix = _single_or_double(forms.as_csr(y, "y_pred"))
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"y_pred must hold real scores if it is sparse, got {matrix.dtype}")
        if not matrix.has_canonical_format:
            check_structure(matrix, "y_pred")
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    if np.ma.is_masked(y):
        raise ValueError("y_pred contains masked values; use None, NaN or -1 for no label")
    array = as_array(y)
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.ndim == 1 and (array.dtype.kind != "f" or float_labels):
        # The result of predict is a ranking of one label.
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(
            f"y_pred must have two dimensions, with a row for each example, got {array.ndim}"
        )
    if array.dtype.kind == "f" and float_labels:
        fractions = np.argwhere(np.isfinite(array) & (array != np.floor(array)))
        if len(fractions):
            row, column = fractions[0]
            raise ValueError(
                f"row {row}, column {column} of y_pred is {array[row, column]}, which is read as "
                "a label because the labels of y_true are floats; to pass scores, give classes"
            )
    if array.dtype.kind not in "biufUOmM":
        raise ValueError(f"y_pred must be labels or scores, got {array.dtype}")
    if array.dtype.kind == "f":
        array = _single_or_double(array)
    return np.ascontiguousarray(array)


def as_array(y: Any) -> NDArray[Any]:
    """Return predictions as an array. Lists with floats become scores, with None objects."""
    if not isinstance(y, list | tuple):
        return np.asarray(y)
    array = np.array(y, object)
    types = set(map(type, array.ravel().tolist()))
    if any(issubclass(t, list | tuple) for t in types):
        raise ValueError("y_pred has rows of different lengths; fill them with None or -1")
    if any(issubclass(t, float | np.floating) for t in types):
        return np.asarray(y)
    return array if type(None) in types else forms.label_array(array, "y_pred")


def _check_scores(scores: Any, classes: NDArray[Any] | None) -> None:
    """Refuse floats that could be labels or scores, because ``classes`` are floats as well."""
    if classes is None or classes.dtype.kind != "f" or sp.issparse(scores) or not scores.size:
        return
    order = np.sort(scores, axis=1)
    is_distinct = np.all(order[:, 1:] != order[:, :-1])
    if is_distinct and np.all(np.isin(scores, classes) | np.isnan(scores)):
        raise ValueError(
            "y_pred could be labels or scores, as both it and classes are floats and all its "
            "values are in classes; pass labels as y_pred.astype(object), or scores with "
            "classes.astype(int)"
        )


def _ranked_columns(
    ranking: NDArray[Any], classes: NDArray[Any] | None, n_columns: int, k: int
) -> NDArray[Any]:
    """Return predicted labels as column numbers of the indicator; refuse labels without one."""
    if classes is None:
        ints = _ints(ranking)
        if ints is None:
            raise ValueError(
                f"y_pred contains {_kind(ranking) or 'no labels'} and y_true is an indicator; "
                "pass the label of each column as classes"
            )
        return ints
    numbers = _LabelIndex(classes, ranking).ranking_numbers(ranking, k)
    unknown = np.argwhere(numbers >= n_columns)
    if len(unknown):
        row, column = unknown[0]
        label = ranking[row, column : column + 1].tolist()[0]
        raise ValueError(f"row {row}, column {column} of y_pred: {label!r} is not in classes")
    return numbers


def _own_columns(truth: NamedLabels, n_columns: int) -> NDArray[Any]:
    """Return true labels that are column numbers of the scores; refuse others."""
    if not _are_numbers(truth.labels):
        raise ValueError(
            f"y_true contains {_kind(truth.labels)} and y_pred scores; pass the label of each "
            "column as classes"
        )
    beyond = np.flatnonzero(truth.labels >= n_columns)
    if len(beyond):
        raise ValueError(
            f"row {truth.row_of(beyond[0])} of y_true: the label {truth.labels[beyond[0]]} is not "
            f"one of the {n_columns} columns of y_pred, numbered from 0; pass the label of each "
            "column as classes"
        )
    return truth.labels


class _LabelIndex:
    """Numbers of labels: the position in ``classes``, then the order of first occurrence.

    ``others`` are all arrays whose labels will be numbered.
    """

    def __init__(self, classes: NDArray[Any] | None, *others: Any) -> None:
        arrays = [array for array in (classes, *others) if array is not None]
        #: Types of times, which are compared as integers in a common unit.
        self._times = {array.dtype for array in arrays if array.dtype.kind in "mM"}
        self._kinds: dict[str, str] = {}
        self._numbers: defaultdict[Any, int] = defaultdict(count().__next__)
        if classes is not None:
            self.numbers(classes, "classes")

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, labels: NDArray[Any], name: str) -> NDArray[np.int64]:
        """Return the numbers of ``labels``."""
        kind = _kind(labels)
        for other, known in self._kinds.items():
            if kind and kind != known:
                raise ValueError(
                    f"{name} contains {kind} and {other} contains {known}, which cannot be compared"
                )
        if kind:
            self._kinds[name] = kind
        if labels.dtype.kind in "mM":
            unit = np.result_type(*self._times)
            if forms.changed(labels, unit).any():
                raise ValueError(f"{name} contains times outside the range of {unit}")
            labels = labels.astype(unit).view(np.int64)
        numbers = self._numbers
        return np.fromiter((numbers[label] for label in labels.tolist()), np.int64, len(labels))

    def ranking_numbers(self, ranking: NDArray[Any], k: int) -> NDArray[np.int64]:
        """Return the numbers of predicted labels, -1 for None, NaN, NaT or -1 (no label)."""
        ranking = ranking[:, :k]
        flat = ranking.ravel()
        is_label = ~_missing(flat)
        labels = forms.label_array(flat[is_label], "y_pred")
        if forms.kind_of(labels) == "numbers":
            # -1 keeps its number if it is a label.
            self._numbers.setdefault(-1, -1)
        numbers = np.full(ranking.shape, -1, np.int64)
        numbers[is_label.reshape(ranking.shape)] = self.numbers(labels, "y_pred")
        order = np.sort(numbers, axis=1)
        repeated = (order[:, 1:] == order[:, :-1]) & (order[:, 1:] >= 0)
        if repeated.any():
            row = int(np.argmax(repeated.any(axis=1)))
            number = order[row, 1:][repeated[row]][0]
            label = ranking[row][numbers[row] == number].tolist()[0]
            raise ValueError(
                f"row {row} of y_pred: label {label!r} occurs twice; "
                "a ranking names each label once"
            )
        return numbers


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of None, NaN and NaT, which stand for no label."""
    if labels.dtype == object:
        values = labels.tolist()
        if set(map(type, values)) <= {str, int}:
            return np.zeros(len(values), np.bool_)
        return np.fromiter(map(forms.is_missing, values), np.bool_, len(values))
    # NaN and NaT do not equal themselves.
    return np.asarray(labels != labels)


def _are_numbers(labels: NDArray[Any]) -> bool:
    """Return whether labels can be their own numbers: integers within the core's range."""
    if _ints(labels[:0]) is None:
        return False
    return len(labels) == 0 or bool(labels.min() >= 0 and labels.max() <= _MAX_NUMBER)


def _ints(labels: NDArray[Any]) -> NDArray[Any] | None:
    """Return integers as int32 or int64, without a copy if possible; None if they may not fit."""
    if labels.dtype.kind not in "iu" or not np.can_cast(labels.dtype, np.int64):
        return None
    kept = labels.dtype in (np.int32, np.int64)
    return np.ascontiguousarray(labels, dtype=None if kept else np.int64)


def _single_or_double(scores: Any) -> Any:
    """Return real scores as float32 or float64, without a copy if possible."""
    kept = scores.dtype in (np.float32, np.float64) or scores.dtype.kind not in "biuf"
    return scores if kept else scores.astype(np.float64)


def _kind(labels: NDArray[Any]) -> str | None:
    """Return the kind of the labels in words; None without labels."""
    if labels.dtype != object:
        return forms.kind_of(labels) if labels.size else None
    label = next((label for label in labels.flat if not forms.is_missing(label)), None)
    return None if label is None else forms.kind_of(np.asarray(label))
