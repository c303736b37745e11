"""What every input format is: a :class:`Reader`, which yields :class:`Batch` after batch."""

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _core
from xmtree._persistence import TABLE_OPTIONS

#: Whether rows have label sets (True), one label each (False), or what the file shows.
Sets = bool | Literal["auto"]


@dataclass
class Labels:
    """The labels of some rows, one row after the other."""

    #: A list or an array.
    flat: Any
    #: How many of them each row has.
    lengths: NDArray[np.int64]
    #: The number of labels that the file's header announces, all below it.
    announced: int | None = None

    @staticmethod
    def of(rows: Sequence[Sequence[Any]]) -> "Labels":
        """Those of a list per row."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return Labels(list(chain.from_iterable(rows)), lengths)


@dataclass
class Batch:
    """Some examples."""

    #: A matrix, a list of texts, or a list of dictionaries, from names of features to values.
    rows: Any
    #: None where the file has no labels.
    labels: Labels | None
    #: Importances, where the format has them.
    weights: NDArray[np.float64] | None = None
    #: Names of the columns of a matrix, where the format has them.
    columns: list[str] | None = None
    #: The line of each row, from 1, where the file has lines.
    lines: list[int] | None = None

    def __len__(self) -> int:
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])


def joined(batches: list[Batch]) -> Batch:
    """Batches of one reader as one."""
    first = batches[0]
    if len(batches) == 1:
        return first
    parts = [batch.rows for batch in batches]
    rows: Any
    if isinstance(first.rows, list):
        rows = list(chain.from_iterable(parts))
    elif sp.issparse(first.rows):
        # Names that came later have columns further to the right.
        width = max(part.shape[1] for part in parts)
        for part in parts:
            part.resize(part.shape[0], width)
        rows = sp.vstack(parts, format="csr")
    else:
        rows = np.vstack(parts)
    labels = weights = lines = None
    if first.labels is not None:
        known = [batch.labels for batch in batches if batch.labels is not None]
        flat = list(chain.from_iterable(part.flat for part in known))
        labels = Labels(flat, np.concatenate([part.lengths for part in known]))
    if first.lines is not None:
        lines = list(chain.from_iterable(batch.lines or [] for batch in batches))
    if first.weights is not None:
        weights = np.concatenate([batch.weights for batch in batches])
    return Batch(rows, labels, weights, first.columns, lines)


class Reader(ABC):
    """Reads one file, or stdin, in one format."""

    #: Name for ``--format``.
    name: ClassVar[str]
    #: What rows are: "texts" or "numbers".
    kind: str = "numbers"
    #: Endings of file names that tell the format, before .gz, .xz or .zst.
    endings: ClassVar[tuple[str, ...]] = ()
    #: Options of the command line that it reads.
    takes: ClassVar[frozenset[str]] = frozenset()
    #: Whether labels are read as text, so that it shows only in all of them if they are integers.
    untyped_labels: ClassVar[bool] = True
    #: Whether a row without a label is a mistake where no row has two, unless label sets were
    #: asked for.
    has_one_label_each: bool = True
    #: Columns of a table that hold neither texts nor labels nor numbers.
    unused: Sequence[str] = ()

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        self._options = options
        self.path = path
        self.is_stdin = path == "-"
        #: What messages call the file.
        self.shown_name = "<stdin>" if self.is_stdin else path
        self.batch_size: int = options.batch_size

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        """Whether a file with this first line is most likely of this format."""
        return False

    def table_options(self) -> dict[str, Any]:
        """The options that say how a table is read, those that were given."""
        found = {name: getattr(self._options, name) for name in TABLE_OPTIONS & self.takes}
        return {name: value for name, value in sorted(found.items()) if value is not None}

    @abstractmethod
    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        """The examples in their order, some at a time, in constant memory."""

    def numbered(self, sets: Sets) -> Iterator[tuple[int, Batch]]:
        """Batches, each with the number of its first row; a file without rows is refused."""
        row = 0
        for batch in self.batches(sets):
            yield row, batch
            row += len(batch)
        if row == 0:
            raise self.empty()

    def load(self, sets: Sets, of_names: Callable[[Batch], Any]) -> Batch:
        """All examples at once; ``of_names`` makes a matrix of features that have names."""
        batches = []
        for _, batch in self.numbered(sets):
            if self.kind == "numbers" and isinstance(batch.rows, list):
                batch.rows = of_names(batch)
            batches.append(batch)
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

    def missing_on_stdin(self, options: argparse.Namespace, hashes: bool) -> list[str]:
        """The options, as text, without which stdin cannot be streamed into ``fit``.

        ``hashes``: whether the learner hashes features.
        """
        if options.classes is None and options.n_labels is None:
            return ["--n-labels K or --classes FILE"]
        return []

    def labels_of(self, batch: Batch) -> Labels:
        """The labels of a batch, which must have some."""
        if batch.labels is None:
            raise self.no_labels()
        return batch.labels

    def no_labels(self) -> ValueError:
        """The error of a file that should have labels and has none."""
        return ValueError(f"{self.shown_name} has no labels, as its format is {self.name}")

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

    def lines(self) -> Iterator[str]:
        """The lines of the file, without their ends."""
        return lines(self.path, self.shown_name)


def is_plain_number(text: str) -> bool:
    """Return whether ``text`` is free of what only Python reads as part of a number: the "_" of
    "1_000" and digits of other scripts."""
    return "_" not in text and text.isascii()


def lines(path: str, name: str) -> Iterator[str]:
    """The lines of a text file, plain or packed; ``name`` is what messages call it."""
    number = 0
    for block in _core.iter_lines(path):
        try:
            text = block.decode("utf-8-sig" if number == 0 else "utf-8")
        except UnicodeDecodeError as error:
            at = number + 1 + block.count(b"\n", 0, error.start)
            raise ValueError(
                f"{name}:{at}: byte 0x{block[error.start]:02x} is not UTF-8; convert the file, "
                "for instance by iconv"
            ) from error
        # What follows the last line end is empty.
        found = text.split("\n")[:-1]
        number += len(found)
        for line in found:
            yield line.removesuffix("\r")


def first_line(path: str) -> str:
    """The first line that is not blank, "" if there is none; bytes that are no text replaced."""
    for block in _core.iter_lines(path):
        for line in block.splitlines():
            if line.strip():
                return line.decode("utf-8-sig", errors="replace")
    return ""
