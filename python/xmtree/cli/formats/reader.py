"""What every input format is: a :class:`Reader`, which yields :class:`Batch` after batch."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree._persistence import TABLE_OPTIONS

#: Whether rows have label sets (True), one label each (False), or what the file shows.
Sets = bool | Literal["auto"]
Kind = Literal["texts", "numbers"]


@dataclass
class NamedRows:
    """Rows of features that have names instead of columns, as VW text has them."""

    #: Names and values of all rows, one row after the other; no row has a name twice.
    names: list[str]
    values: list[float]
    #: How many of them each row has.
    lengths: list[int]


@dataclass
class Batch:
    """Some examples."""

    #: A list of texts; or numbers, in a matrix or as :class:`NamedRows`.
    rows: Any
    #: A list of labels for each row, an array of one label per row, or a CSR indicator; None
    #: where the file has no labels.
    labels: Any
    #: Importances, where the format has them.
    weights: NDArray[np.float64] | None = None
    #: Names of the columns of a matrix, where the format has them.
    columns: list[str] | None = None
    #: The line of each row, from 1, where the file has lines.
    lines: list[int] | None = None

    def __len__(self) -> int:
        if isinstance(self.rows, NamedRows):
            return len(self.rows.lengths)
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])


def is_sparse(values: Any) -> bool:
    """Whether ``values`` is a sparse matrix."""
    return bool(sp.issparse(values))


def joined(batches: list[Batch]) -> Batch:
    """Batches of one reader, of texts or matrices, whose labels are lists, as one."""
    first = batches[0]
    if len(batches) == 1:
        return first
    parts = [batch.rows for batch in batches]
    rows: Any
    if isinstance(first.rows, list):
        rows = list(chain.from_iterable(parts))
    elif is_sparse(first.rows):
        # Names that came later have columns further to the right.
        width = max(part.shape[1] for part in parts)
        for part in parts:
            part.resize(part.shape[0], width)
        rows = sp.vstack(parts, format="csr")
    else:
        rows = np.vstack(parts)
    labels = weights = lines = None
    if first.labels is not None:
        labels = list(chain.from_iterable(batch.labels for batch in batches))
    if first.lines is not None:
        lines = list(chain.from_iterable(batch.lines or [] for batch in batches))
    if first.weights is not None:
        weights = np.concatenate([batch.weights for batch in batches])
    return Batch(rows, labels, weights, first.columns, lines)


class Reader(ABC):
    """Reads one file, or stdin, in one format."""

    #: Name for ``--format``.
    name: ClassVar[str]
    #: Endings of file names that tell the format, before .gz, .xz or .zst.
    endings: ClassVar[tuple[str, ...]] = ()
    #: Options of the command line that it reads.
    takes: ClassVar[frozenset[str]] = frozenset()
    #: Whether labels are read as text, so that it shows only in all of them if they are integers.
    untyped_labels: ClassVar[bool] = True
    #: Whether every batch shows all labels, as its indicator has a column for each.
    labels_in_header: ClassVar[bool] = False

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        self._options = options
        self.path = path
        self.batch_size: int = options.batch_size

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        """Whether a file with this first line is most likely of this format."""
        return False

    @property
    def has_one_label_each(self) -> bool:
        """Whether a row without a label is a mistake where no row has two, unless label sets
        were asked for."""
        return True

    @property
    def is_stdin(self) -> bool:
        """Whether it can be read only once."""
        return self.path == "-"

    @property
    def shown_name(self) -> str:
        """What messages call the file."""
        return "<stdin>" if self.is_stdin else self.path

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """Whether rows are texts or numbers."""

    @property
    def unused(self) -> list[str]:
        """Columns of a table that hold neither texts nor labels nor numbers."""
        return []

    def table_options(self) -> dict[str, Any]:
        """The options that say how a table is read, those that were given."""
        found = {name: getattr(self._options, name) for name in TABLE_OPTIONS & self.takes}
        return {name: value for name, value in sorted(found.items()) if value is not None}

    @abstractmethod
    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        """The examples in their order, some at a time, in constant memory.

        Readers whose labels are lists need not look at ``sets``.
        """

    def load(self, sets: Sets, of_names: Callable[[NamedRows], Any]) -> Batch:
        """All examples at once; ``of_names`` makes a matrix of features that have names."""
        batches = []
        for batch in self.batches(sets):
            if isinstance(batch.rows, NamedRows):
                batch.rows = of_names(batch.rows)
            batches.append(batch)
        if not batches:
            raise self.empty()
        return joined(batches)

    def prepare_fit(self, streamed: bool) -> int | None:
        """Called before a learner is trained on this file; where indices begin, 0 or 1, which
        files that the model is applied to must share, or None where there are no indices."""
        return None

    def prepare_for(
        self, index_base: int | None, names: Collection[str] | None, ignores_unknown: bool
    ) -> None:
        """Called before a model is applied to this file, with where indices of its training file
        began and the names of its features; ``ignores_unknown``: others are left out."""
        return None

    def beyond(self, X: Any, width: int, first_row: int) -> str | None:
        """What to tell of rows with more columns than the ``width`` of a model; None: the
        columns beyond hold nothing."""
        return f"{self.shown_name} has {X.shape[1]} columns of numbers, the model {width}"

    def no_labels(self) -> ValueError:
        """The error of a file that should have labels and has none."""
        return ValueError(f"{self.shown_name} has no labels, as its format is {self.name}")

    def missing_on_stdin(self, options: argparse.Namespace, hashes: bool) -> list[str]:
        """The options, as text, without which stdin cannot be streamed into ``fit``.

        ``hashes``: whether the learner hashes features.
        """
        if options.classes is None and options.n_labels is None:
            return ["--n-labels K or --classes FILE"]
        return []

    def empty(self) -> ValueError:
        """The error of a file without examples."""
        return ValueError(f"{self.shown_name} holds no examples")

    def place(self, batch: Batch, at: int, first_row: int) -> str:
        """Row ``at`` of a batch in words: file and line, or number of the row, from 0."""
        if batch.lines is None:
            return f"{self.shown_name}, row {first_row + at}"
        return f"{self.shown_name}:{batch.lines[at]}"

    def wrong(self, line: int, what: str) -> ValueError:
        """The error of a line, counted from 1."""
        return ValueError(f"{self.shown_name}:{line}: {what}")
