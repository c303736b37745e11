"""True labels and predictions, in whatever form, as numbers that can be compared.

Where both already are numbers (indicator, scores, integers of at least 0) they stay
as they are, in place. All other labels are looked up in a table.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, count
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _labels

#: Labels above are numbered anew: the core has 32 bits for them.
_MAX_NUMBER = 2**31 - 1

_MANY = "it must be an indicator, a list of label lists, or one label per row"


@dataclass(frozen=True)
class Sets:
    """The true labels of each row, as numbers.

    Attributes
    ----------
    indptr, indices : as of a CSR indicator, in order within a row
    n_labels : all numbers are below
    by_place : whether a number is the label's place in ``classes``, its column, or
        the integer label itself, and not just what it was given
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    n_labels: int
    by_place: bool = True

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1


@dataclass(frozen=True)
class _Named:
    """The true labels of each row, by name: ``lengths[i]`` of them for row i."""

    lengths: NDArray[np.int64]
    labels: NDArray[Any]


@dataclass(frozen=True)
class Match:
    """What the core compares.

    Attributes
    ----------
    sets : the true labels
    ranking : class numbers, best first, or scores, dense or CSR
    n_columns : number of columns of the indicator or the scores, if there is one
    bounded : whether class numbers must be columns of the indicator
    """

    sets: Sets
    ranking: Any
    n_columns: int | None = None
    bounded: bool = False


def match(y_true: Any, y_pred: Any, classes: NDArray[Any] | None, k: int) -> Match:
    """Brings both into the same numbers; ``k`` columns of a ranking count."""
    truth = _truth(y_true)
    by_name = isinstance(truth, _Named) and classes is None
    floats = isinstance(truth, _Named) and by_name and truth.labels.dtype.kind == "f"
    ranking = _prediction(y_pred, float_labels=floats)
    scored = sp.issparse(ranking) or (ranking.dtype.kind == "f" and not floats)
    if isinstance(truth, Sets):
        _check_columns("y_true", truth.n_labels, classes)
        if scored:
            if ranking.shape[1] != truth.n_labels:
                raise ValueError(
                    f"y_true has {truth.n_labels} columns, y_pred {ranking.shape[1]}; "
                    "scores need a column for each"
                )
            return Match(truth, ranking, truth.n_labels)
        if classes is None:
            return Match(truth, _columns(ranking), truth.n_labels, bounded=True)
        numbers = _Numbers(classes).of_ranking(ranking, k)
        unknown = np.argwhere(numbers >= truth.n_labels)
        if len(unknown):
            row, column = unknown[0]
            label = ranking[row, column : column + 1].tolist()[0]
            raise ValueError(f"row {row}, column {column} of y_pred: {label!r} is not in classes")
        return Match(truth, numbers, truth.n_labels)
    if scored:
        _check_columns("y_pred", ranking.shape[1], classes)
        sets = _of_columns(truth, ranking.shape[1], classes)
        return Match(sets, ranking, ranking.shape[1])
    if by_name and _are_numbers(truth.labels) and _fits(ranking.dtype):
        return Match(_numbered(truth, truth.labels), _whole(ranking))
    table = _Numbers(classes)
    numbers = table.of(truth.labels, "y_true")
    sets = _numbered(truth, numbers, by_place=classes is not None)
    return Match(sets, table.of_ranking(ranking, k))


def names(classes: Any) -> NDArray[Any] | None:
    """The ``classes`` argument: what the columns stand for, in their order."""
    if classes is None:
        return None
    labels = _labels.as_array(classes, "classes")
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"classes must be a list of at least one label, got an array of shape {labels.shape}"
        )
    labels = _labels.one_type(labels, "classes")
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < len(labels):
        raise ValueError(f"classes names {found[counts > 1].tolist()[0]!r} twice")
    return labels


def label_sets(y: Any, classes: NDArray[Any] | None, name: str) -> tuple[Sets, int]:
    """The labels of ``y`` by their place in ``classes``, and how many places there are.

    Without ``classes`` integer labels of at least 0 are their own places, all others
    have theirs among the sorted labels that occur.
    """
    truth = _truth(y, name)
    if isinstance(truth, Sets):
        _check_columns(name, truth.n_labels, classes)
        return truth, truth.n_labels
    if classes is None and _are_numbers(truth.labels):
        sets = _numbered(truth, truth.labels, name=name)
        return sets, sets.n_labels
    if classes is None:
        classes = np.unique(truth.labels)
    sets = _numbered(truth, _Numbers(classes).of(truth.labels, name), name=name)
    return sets, len(classes)


def _truth(y: Any, name: str = "y_true") -> Sets | _Named:
    if y is None:
        raise ValueError(f"{name} is None; {_MANY}")
    if sp.issparse(y):
        matrix: Any = _two_dimensions(y, name)
        return _as_sets(_labels.indicator(matrix.tocsr(), name))
    if _labels.is_label_lists(y):
        rows = list(y)
        lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        flat = list(chain.from_iterable(rows))
        if not flat:
            return _Named(lengths, np.empty(0, np.int64))
        return _Named(lengths, _labels.one_type(_labels.as_array(flat, name), name))
    array = _labels.as_array(y, name)
    if array.ndim == 1:
        return _Named(np.ones(len(array), np.int64), _labels.one_type(array, name))
    if array.ndim == 2:
        return _as_sets(_labels.indicator(_labels.dense_indicator(array, name), name))
    raise ValueError(f"{name} has {array.ndim} dimensions; {_MANY}")


def _prediction(y: Any, float_labels: bool) -> Any:
    """A ranking of labels or scores: two dimensions, rows in order, types the core takes."""
    if sp.issparse(y):
        matrix: Any = _two_dimensions(y, "y_pred").tocsr()
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"y_pred holds {matrix.dtype}; scores are real numbers")
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    if isinstance(y, list | tuple):
        rows = [row for row in y if isinstance(row, list | tuple)]
        found = {type(label) for label in (chain.from_iterable(rows) if rows else y)}
        # numpy would turn 1 into "1" beside "a".
        _labels.check_types(found - {type(None)}, "y_pred")
        if len({len(row) for row in rows}) > 1:
            raise ValueError("y_pred holds rows of different lengths; fill up with None or -1")
    array = np.asarray(y)
    if array.ndim == 1 and (array.dtype.kind != "f" or float_labels):
        # What predict returns: a ranking of one label.
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(
            f"y_pred has {array.ndim} dimensions; labels or scores must have two, a row for each "
            "example"
        )
    if array.dtype.kind == "f" and float_labels:
        fractions = np.argwhere(np.isfinite(array) & (array != np.floor(array)))
        if len(fractions):
            row, column = fractions[0]
            raise ValueError(
                f"row {row}, column {column} of y_pred is {array[row, column]}: the labels of "
                "y_true are floats, so these are taken for labels; if they are scores, pass classes"
            )
    if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.dtype.kind not in "biufUSOmMT":
        raise ValueError(f"y_pred holds {array.dtype}; it must be labels or scores")
    return np.ascontiguousarray(array)


def _of_columns(truth: _Named, n_columns: int, classes: NDArray[Any] | None) -> Sets:
    """True labels as columns of the scores; those beyond ``classes`` count as missed."""
    if classes is not None:
        return _numbered(truth, _Numbers(classes).of(truth.labels, "y_true"))
    if not _are_numbers(truth.labels):
        raise ValueError(
            f"y_true holds {_kind(truth.labels)} and y_pred scores; "
            "classes must say which label each column is"
        )
    beyond = np.flatnonzero(truth.labels >= n_columns)
    if len(beyond):
        row = int(np.searchsorted(np.cumsum(truth.lengths), beyond[0], side="right"))
        raise ValueError(
            f"row {row} of y_true: label {truth.labels[beyond[0]]} is outside 0..{n_columns}, the "
            "columns of y_pred; classes may say which label each column is"
        )
    return _numbered(truth, truth.labels)


def _columns(ranking: NDArray[Any]) -> NDArray[Any]:
    """Labels as columns of an indicator without names."""
    if not _fits(ranking.dtype):
        raise ValueError(
            f"y_pred holds {_kind(ranking) or 'no labels'} and y_true is an indicator; "
            "classes must say which label each column is"
        )
    return _whole(ranking)


class _Numbers:
    """Numbers labels: those of ``classes`` by their place, others as they turn up."""

    def __init__(self, classes: NDArray[Any] | None) -> None:
        known: list[Any] = [] if classes is None else classes.tolist()
        self._table: defaultdict[Any, int] = defaultdict(count(len(known)).__next__)
        self._table.update(zip(known, range(len(known)), strict=True))
        self._kinds = {"classes": None if classes is None else _kind(classes)}

    def of(self, labels: NDArray[Any], name: str) -> NDArray[np.int64]:
        """The numbers of ``labels``."""
        kind = _kind(labels)
        for other, known in self._kinds.items():
            if kind and known and kind != known:
                raise ValueError(f"{name} holds {kind}, {other} {known}: they cannot be compared")
        self._kinds[name] = kind
        table = self._table
        return np.fromiter((table[label] for label in labels.tolist()), np.int64, len(labels))

    def of_ranking(self, ranking: NDArray[Any], k: int) -> NDArray[np.int64]:
        """The numbers of the labels predicted, -1 where None, NaN or -1 stands for none."""
        ranking = ranking[:, :k]
        self._table[None] = -1
        # Unless it is a label like others.
        self._table.setdefault(-1, -1)
        flat = ranking.ravel()
        if flat.dtype.kind == "f":
            missing = np.isnan(flat)
            flat = flat.astype(object)
            flat[missing] = None
        numbers = self.of(flat, "y_pred").reshape(ranking.shape)
        order = np.sort(numbers, axis=1)
        twice = (order[:, 1:] == order[:, :-1]) & (order[:, 1:] >= 0)
        if twice.any():
            row = int(np.argmax(twice.any(axis=1)))
            number = order[row, 1:][twice[row]][0]
            label = ranking[row][numbers[row] == number].tolist()[0]
            raise ValueError(
                f"row {row} of y_pred: label {label!r} stands there twice; "
                "a ranking names each label once"
            )
        return numbers


def _numbered(
    truth: _Named, numbers: NDArray[Any], *, by_place: bool = True, name: str = "y_true"
) -> Sets:
    n_labels = int(numbers.max()) + 1 if len(numbers) else 1
    if len(numbers) == len(truth.lengths) and np.all(truth.lengths == 1):
        return Sets(np.arange(len(numbers) + 1), _whole(numbers), n_labels, by_place)
    sets = _labels.row_sets(numbers, truth.lengths, n_labels)
    twice = _labels.repetition(sets)
    if twice is not None:
        row, number = twice
        label = truth.labels[numbers == number].tolist()[0]
        raise ValueError(
            f"row {row} of {name} lists the label {label!r} twice; "
            f"if {name} is an indicator, pass it as an array"
        )
    return Sets(sets.indptr, sets.indices, n_labels, by_place)


def _two_dimensions(matrix: Any, name: str) -> Any:
    if matrix.ndim != 2:
        raise ValueError(f"{name} is a sparse array of {matrix.ndim} dimensions; it must have two")
    return matrix


def _as_sets(sets: Any) -> Sets:
    return Sets(sets.indptr, sets.indices, sets.shape[1])


def _check_columns(name: str, n_columns: int, classes: NDArray[Any] | None) -> None:
    if classes is not None and len(classes) != n_columns:
        raise ValueError(f"{name} has {n_columns} columns, but there are {len(classes)} classes")


def _are_numbers(labels: NDArray[Any]) -> bool:
    """Whether labels can stay what they are: integers that the core can hold."""
    if not _fits(labels.dtype):
        return False
    return len(labels) == 0 or bool(labels.min() >= 0 and labels.max() <= _MAX_NUMBER)


def _fits(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" and np.can_cast(dtype, np.int64)


def _whole(labels: NDArray[Any]) -> NDArray[Any]:
    """Integers as int32 or int64, in place where they are."""
    if labels.dtype in (np.int32, np.int64):
        return np.ascontiguousarray(labels)
    return np.ascontiguousarray(labels, dtype=np.int64)


def _kind(labels: NDArray[Any]) -> str | None:
    """What sort of labels these are, in words; None if there are none."""
    if labels.size == 0:
        return None
    kind = labels.dtype.kind
    if kind == "O":
        label = next((label for label in labels.flat if label is not None), None)
        if label is None:
            return None
        if isinstance(label, Real):
            return "numbers"
        return {"str": "strings", "str_": "strings"}.get(type(label).__name__, "other labels")
    if kind in "biuf":
        return "numbers"
    return "strings" if kind in "UT" else "other labels"
