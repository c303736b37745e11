"""Labels of batches in the form that a learner takes, or as sets of a model's labels."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree._labels.forms import as_label_lists, kind_of, label_array, positions, row_sets
from xmtree.cli.formats import Batch, Reader, Sets
from xmtree.cli.formats.reader import is_sparse

#: An integer as Python writes it: 007 is a name.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

#: Labels of a header that are believed before any of them has come.
_MOST_ANNOUNCED = 10_000_000


def are_integers(labels: Any) -> bool:
    """Whether all ``labels``, as they were read, are text that is an integer."""
    return all(isinstance(label, str) and _INTEGER.fullmatch(label) for label in labels)


def target(reader: Reader, batch: Batch, sets: Sets) -> Any:
    """All labels of a file as ``fit`` takes them."""
    labels = batch.labels
    if labels is None:
        raise reader.no_labels()
    if not isinstance(labels, list):
        return labels
    if not any(labels):
        raise ValueError(f"{reader.shown_name} holds no label")
    if reader.untyped_labels and are_integers(label for row in labels for label in row):
        labels = [[int(label) for label in row] for row in labels]
    if sets == "auto":
        sets = _are_sets(reader, labels)
    if sets:
        return as_label_lists(labels)
    return label_array(_one_each(reader, batch, labels, 0), reader.shown_name)


def _are_sets(reader: Reader, labels: list[list[Any]]) -> bool:
    fewest = 1 if not reader.has_one_label_each else 0
    return any(len(row) > 1 or len(row) < fewest for row in labels)


@dataclass
class Vocabulary:
    """The labels that a stream may hold, and whether rows have sets of them."""

    #: Where batches have indicators, numbers of their columns.
    classes: NDArray[Any]
    sets: bool
    #: Whether labels are integers and come as text.
    converts: bool = False

    def target(self, reader: Reader, batch: Batch, first_row: int) -> tuple[Any, Any]:
        """The labels of a batch as ``partial_fit`` takes them, and its ``classes``."""
        labels = batch.labels
        if labels is None:
            raise reader.no_labels()
        if is_sparse(labels):
            if self.sets:
                return _columns(labels, self.classes, reader), self.classes
            return one_label_each(reader, batch, first_row), self.classes
        if isinstance(labels, list):
            if self.converts:
                labels = [[_integer(reader, label) for label in row] for row in labels]
            labels = (
                as_label_lists(labels) if self.sets else _one_each(reader, batch, labels, first_row)
            )
        return labels, self.classes

    @staticmethod
    def of_model(learner: Any, reader: Reader) -> Vocabulary:
        """That of a trained learner, which learns on."""
        converts = reader.untyped_labels and learner.classes_.dtype.kind in "iu"
        return Vocabulary(learner.classes_, learner._y_form != "labels", converts)


@dataclass
class Scan:
    """What the labels of all batches are."""

    reader: Reader
    found: set[Any] = field(default_factory=set)
    any_set: bool = False

    def add(self, labels: Any) -> None:
        """Looks at the labels of a batch."""
        if labels is None:
            raise self.reader.no_labels()
        if is_sparse(labels):
            self.found.update(np.unique(labels.indices).tolist())
            self.any_set |= bool(np.any(np.diff(labels.indptr) != 1))
        elif isinstance(labels, list):
            self.found.update(label for row in labels for label in row)
            self.any_set |= _are_sets(self.reader, labels)
        else:
            self.found.update(np.unique(labels).tolist())

    def vocabulary(self, sets: Sets) -> Vocabulary:
        """All labels that came."""
        if sets == "auto":
            sets = self.any_set
        if not self.found:
            raise self.reader.empty()
        return named(list(self.found), sets, self.reader)


def announced(labels: Any, sets: bool, reader: Reader) -> Vocabulary:
    """All labels that the header of a file announces, of which ``labels`` is an indicator."""
    n_labels = labels.shape[1]
    if n_labels > _MOST_ANNOUNCED:
        raise ValueError(
            f"{reader.shown_name}: the header announces {n_labels} labels, and from stdin at most "
            f"{_MOST_ANNOUNCED} can be taken; a file is read for those that occur"
        )
    return Vocabulary(np.arange(n_labels), sets)


def _columns(labels: Any, classes: NDArray[Any], reader: Reader) -> Any:
    """An indicator with the columns ``classes`` alone."""
    numbers = positions(labels.indices, classes)
    if np.any(numbers < 0):
        unknown = labels.indices[np.argmax(numbers < 0)]
        raise ValueError(f"{reader.shown_name}: label {unknown} is none of the model's labels")
    shape = (labels.shape[0], len(classes))
    return sp.csr_matrix((labels.data, numbers, labels.indptr), shape=shape)


def named(labels: list[Any], sets: bool, reader: Reader) -> Vocabulary:
    """The vocabulary of these labels."""
    if are_integers(labels):
        return Vocabulary(np.unique([int(label) for label in labels]), sets, reader.untyped_labels)
    return Vocabulary(np.unique(label_array(labels, reader.shown_name)), sets)


def one_label_each(reader: Reader, batch: Batch, first_row: int) -> NDArray[Any]:
    """The labels of an indicator that has one in every row."""
    indicator = batch.labels
    _check_one_each(reader, batch, np.diff(indicator.indptr), first_row)
    labels: NDArray[Any] = indicator.indices.astype(np.int64)
    return labels


def as_sets(reader: Reader, y: Any, classes: NDArray[Any]) -> Any:
    """Labels of a batch as a CSR indicator of the ``classes``.

    Labels that the model does not know have columns from ``len(classes)`` on, which are never
    predicted: each counts as a label that was missed.
    """
    if y is None:
        raise reader.no_labels()
    names = kind_of(classes) == "strings"
    if is_sparse(y):
        lengths, flat = np.diff(y.indptr).astype(np.int64), y.indices
    elif isinstance(y, np.ndarray):
        lengths, flat = np.ones(len(y), np.int64), y
    else:
        lengths = np.fromiter((len(row) for row in y), np.int64, len(y))
        listed = [label for row in y for label in row]
        if reader.untyped_labels and not names:
            listed = [_integer(reader, label) for label in listed]
        flat = label_array(listed, reader.shown_name) if listed else classes[:0]
    if len(flat) and kind_of(flat) != kind_of(classes):
        raise ValueError(
            f"the model's labels are {classes.dtype} ({classes.tolist()[0]!r}, ...), "
            f"those of {reader.shown_name} are {'numbers' if names else 'names'} "
            f"({flat.tolist()[0]!r}, ...); they cannot be compared"
        )
    at = positions(flat, classes)
    # Any number will do that the row does not have yet.
    within = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    numbers = np.where(at >= 0, at, len(classes) + within)
    sets = row_sets(numbers, lengths, len(classes) + int(lengths.max(initial=0)))
    sets.sum_duplicates()
    return sets


def _one_each(reader: Reader, batch: Batch, labels: list[list[Any]], first_row: int) -> list[Any]:
    _check_one_each(reader, batch, np.array([len(row) for row in labels]), first_row)
    return [row[0] for row in labels]


def _check_one_each(reader: Reader, batch: Batch, counts: NDArray[Any], first_row: int) -> None:
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"{reader.place(batch, row, first_row)}: {counts[row]} labels; exactly one per row is "
            "learned here (ldsm and oaa also learn label sets: --labels sets)"
        )


def _integer(reader: Reader, label: str) -> int:
    if _INTEGER.fullmatch(label):
        return int(label)
    raise ValueError(
        f"{reader.shown_name}: the label {label!r} is no integer, as all labels that are "
        "known; they cannot be compared"
    )
