"""Labels of batches as learners take them, or as sets of a model's labels."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree._labels.forms import as_label_lists, kind_of, label_array, positions, row_sets, shown
from xmtree.cli.formats.reader import Batch, Labels, Reader, Sets

#: An integer as Python writes it; 007 remains a string.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

#: Largest number of labels in a stream's header that is believed before the labels are seen.
_MOST_ANNOUNCED = 10_000_000


def target(reader: Reader, batch: Batch, sets: Sets) -> Any:
    """Return all labels of a file as ``fit`` takes them."""
    labels = reader.labels_of(batch)
    flat = labels.flat
    if not len(flat) and labels.announced is None:
        raise ValueError(f"{reader.shown_name} holds no label")
    if reader.untyped_labels and _are_integers(flat):
        flat = [int(label) for label in flat]
    if are_sets(reader, labels) if sets == "auto" else sets:
        return _sets(flat, labels)
    _check_one_each(reader, batch, labels, 0)
    return label_array(flat, reader.shown_name)


def are_sets(reader: Reader, labels: Labels) -> bool:
    """Return whether these labels show that rows have any number of them."""
    fewest = 0 if reader.has_one_label_each else 1
    return bool(np.any((labels.lengths > 1) | (labels.lengths < fewest)))


@dataclass
class Vocabulary:
    """The labels that may occur in a stream, and whether rows have label sets."""

    classes: NDArray[Any]
    sets: bool
    #: True if labels are integers that are read as text.
    converts: bool = False
    #: Whether new labels may occur too; None if none can.
    grows: bool | None = None

    def target(self, reader: Reader, batch: Batch, first_row: int) -> Any:
        """Return the labels of a batch as ``partial_fit`` takes them."""
        labels = reader.labels_of(batch)
        flat = labels.flat
        if self.converts:
            flat = [_integer(reader, label) for label in flat]
        if self.grows is not None and len(flat):
            found = label_array(flat, reader.shown_name)
            _check_kind(reader, found, self.classes)
            # A table whose labels are not known yet has no classes.
            is_new = not self.grows and positions(found, self.classes) < 0
            unknown = np.flatnonzero(is_new)
            if len(unknown):
                row = np.searchsorted(np.cumsum(labels.lengths), unknown[0], side="right")
                raise ValueError(
                    f"{reader.place(batch, int(row), first_row)}: the model has no label "
                    f"{shown(found[unknown[:1]])}; --new-labels add lets it learn new labels"
                )
        if not self.sets:
            _check_one_each(reader, batch, labels, first_row)
            return flat
        if labels.announced is None or self.grows:
            return _sets(flat, replace(labels, announced=None))
        return row_sets(positions(flat, self.classes), labels.lengths, len(self.classes))

    @staticmethod
    def announced(reader: Reader, first: Batch, sets: Sets) -> "Vocabulary":
        """Return the labels announced by the header of a file, given its first batch."""
        labels = reader.labels_of(first)
        n_labels = labels.announced or 0
        if n_labels > _MOST_ANNOUNCED:
            raise ValueError(
                f"{reader.shown_name}: the header announces {n_labels} labels, but stdin allows "
                f"at most {_MOST_ANNOUNCED}; use a file, where only labels that occur count"
            )
        has_sets = are_sets(reader, labels) if sets == "auto" else sets
        return Vocabulary(np.arange(n_labels), has_sets)

    @staticmethod
    def named(reader: Reader, labels: list[Any], sets: bool) -> "Vocabulary":
        """Return the vocabulary of these labels."""
        if _are_integers(labels):
            classes = np.unique([int(label) for label in labels])
            return Vocabulary(classes, sets, reader.untyped_labels)
        return Vocabulary(np.unique(label_array(labels, reader.shown_name)), sets)


def as_sets(reader: Reader, batch: Batch, classes: NDArray[Any]) -> Any:
    """Return the labels of a batch as a CSR indicator of the ``classes``.

    Labels unknown to the model have columns from ``len(classes)`` on, which are never predicted,
    so that each counts as missed.
    """
    labels = reader.labels_of(batch)
    flat, lengths = labels.flat, labels.lengths
    names = kind_of(classes) == "strings"
    if isinstance(flat, list):
        if reader.untyped_labels and not names:
            flat = [_integer(reader, label) for label in flat]
        flat = label_array(flat, reader.shown_name) if flat else classes[:0]
    _check_kind(reader, flat, classes)
    at = positions(flat, classes)
    # An unknown label gets any column that its row does not use yet.
    within = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    numbers = np.where(at >= 0, at, len(classes) + within)
    sets = row_sets(numbers, lengths, len(classes) + int(lengths.max(initial=0)))
    sets.sum_duplicates()
    return sets


def _are_integers(labels: Any) -> bool:
    """Return whether all ``labels`` are strings that hold an integer."""
    return all(isinstance(label, str) and _INTEGER.fullmatch(label) for label in labels)


def _sets(flat: Any, labels: Labels) -> Any:
    """Return label sets as an indicator if the number of labels is known, else as lists."""
    if labels.announced is not None:
        return row_sets(flat, labels.lengths, labels.announced)
    ends = np.cumsum(labels.lengths).tolist()
    return as_label_lists([flat[start:end] for start, end in pairwise([0, *ends])])


def _check_kind(reader: Reader, flat: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse strings for a model of numbers, and numbers for one of strings."""
    if len(flat) and len(classes) and kind_of(flat) != kind_of(classes):
        raise ValueError(
            f"the model's labels are {classes.dtype} ({classes.tolist()[0]!r}, ...) and cannot "
            f"be compared with those of {reader.shown_name}, which are "
            f"{'numbers' if kind_of(flat) != 'strings' else 'strings'} ({flat.tolist()[0]!r}, ...)"
        )


def _check_one_each(reader: Reader, batch: Batch, labels: Labels, first_row: int) -> None:
    wrong = np.flatnonzero(labels.lengths != 1)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"{reader.place(batch, row, first_row)}: {labels.lengths[row]} labels, expected "
            "exactly one per row (ldsm, oaa and random-tree also learn label sets: --labels sets)"
        )


def _integer(reader: Reader, label: str) -> int:
    if _INTEGER.fullmatch(label):
        return int(label)
    raise ValueError(
        f"{reader.shown_name}: the label {label!r} is not an integer, but all known labels are, "
        "so it cannot be compared with them"
    )
