"""The interface of every input format: a :class:`Reader` that yields batches."""

import argparse
import re
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
from xmtree.cli.formats.categories import Categories

#: Form of labels: label sets (True), one per row (False), or decided by the file ("auto").
Sets = bool | Literal["auto"]


@dataclass
class Labels:
    """The labels of several rows, concatenated."""

    #: A list or an array.
    flat: Any
    #: Number of labels per row.
    lengths: NDArray[np.int64]
    #: Number of labels announced by the file's header; all labels are below it.
    announced: int | None = None

    @staticmethod
    def of(rows: Sequence[Sequence[Any]]) -> "Labels":
        """Return the labels of a list per row."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return Labels(list(chain.from_iterable(rows)), lengths)


@dataclass
class Batch:
    """A batch of examples."""

    #: A matrix, a list of texts, or a list of dictionaries from feature names to values.
    rows: Any
    #: None if the file has no labels.
    labels: Labels | None
    #: Importance weights, if the format has them.
    weights: NDArray[np.float64] | None = None
    #: Values of --id-column, one for each row.
    ids: list[Any] | None = None
    #: Column names of a matrix, if the format has them.
    columns: list[str] | None = None
    #: Line of each row, from 1, if the file has lines.
    lines: list[int] | None = None

    def __len__(self) -> int:
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])


def joined(batches: list[Batch]) -> Batch:
    """Concatenate batches of one reader."""
    first = batches[0]
    if len(batches) == 1:
        return first
    parts = [batch.rows for batch in batches]
    rows: Any
    if isinstance(first.rows, list):
        rows = list(chain.from_iterable(parts))
    elif sp.issparse(first.rows):
        # Later batches may have new names, whose columns come last.
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
    return Batch(rows, labels, weights, columns=first.columns, lines=lines)


class Reader(ABC):
    """Reader of one file, or stdin, in one format."""

    #: Name for ``--format``.
    name: ClassVar[str]
    #: Kind of rows: "texts" or "numbers".
    kind: str = "numbers"
    #: Extensions of the format, before .gz, .xz or .zst.
    endings: ClassVar[tuple[str, ...]] = ()
    #: Pattern of the first line of most files of the format, if it is known.
    opening: ClassVar[re.Pattern[str] | None] = None
    #: Command-line options that the format reads.
    takes: ClassVar[frozenset[str]] = frozenset()
    #: True if labels are read as text, which become integers only if all of them are.
    untyped_labels: ClassVar[bool] = True
    #: True if a row without a label is an error, unless a row has two or sets were requested.
    has_one_label_each: bool = True
    #: Columns of a table that are ignored because texts are the features.
    unused: Sequence[str] = ()
    #: Features in order, if the format has named columns.
    features: Sequence[str] | None = None
    #: Category names by column; None if columns must hold numbers.
    categories: Categories | None = None
    #: Hint at learners of categories in errors about columns that do not hold numbers.
    takes_categories: str = ""

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        self._options = options
        self.path = path
        self.is_stdin = path == "-"
        #: Name in messages.
        self.shown_name = "<stdin>" if self.is_stdin else path
        self.batch_size: int = options.batch_size

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        """Return whether a file with this first line most likely has this format."""
        return cls.opening is not None and bool(cls.opening.fullmatch(first_line))

    def table_options(self) -> dict[str, Any]:
        """Return the given options that say how a table is read."""
        found = {name: getattr(self._options, name) for name in TABLE_OPTIONS & self.takes}
        return {name: value for name, value in sorted(found.items()) if value is not None}

    @abstractmethod
    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        """Yield the examples in order, batch by batch, in constant memory."""

    def numbered(self, sets: Sets) -> Iterator[tuple[int, Batch]]:
        """Yield each batch with the number of its first row; refuse a file without rows."""
        row = 0
        for batch in self.batches(sets):
            yield row, batch
            row += len(batch)
        if row == 0:
            raise self.empty()

    def load(self, sets: Sets, as_matrix: Callable[[Batch], Any]) -> Batch:
        """Load all examples; ``as_matrix`` converts a batch of named features."""
        batches = []
        for _, batch in self.numbered(sets):
            if self.kind == "numbers" and isinstance(batch.rows, list):
                batch.rows = as_matrix(batch)
            batches.append(batch)
        return joined(batches)

    def prepare_fit(self, streamed: bool) -> int | None:
        """Prepare for training on this file and return its first index, 0 or 1.

        Files that the model is applied to must share it. None is returned if there are no indices.
        """
        return None

    def prepare_for(self, index_base: int | None, only: Collection[str] | None) -> None:
        """Prepare for applying a model to this file.

        ``index_base`` is the first index of its training file. Columns that are not in ``only`` are
        left out; None takes all.
        """
        return None

    def beyond(self, X: Any, width: int, first_row: int) -> str | None:
        """Return an error message if rows use columns beyond the model's ``width``, else None."""
        return f"{self.shown_name} has {X.shape[1]} columns of numbers, the model {width}"

    def missing_on_stdin(self, options: argparse.Namespace, hashes: bool) -> list[str]:
        """Return the options, as text, that ``fit`` still needs to stream from stdin.

        ``hashes`` is whether the learner hashes features.
        """
        if options.classes is None and options.n_labels is None:
            return ["--n-labels K or --classes FILE"]
        return []

    def labels_of(self, batch: Batch) -> Labels:
        """Return the labels of a batch, which must have some."""
        if batch.labels is None:
            raise self.no_labels()
        return batch.labels

    def no_labels(self) -> ValueError:
        """Return the error of a file without labels."""
        return ValueError(f"{self.shown_name} is read as {self.name}, which has no labels")

    def kind_hint(self) -> str:
        """Return why the rows may be of another kind than a model takes, as text."""
        return ""

    def empty(self) -> ValueError:
        """Return the error of a file without examples."""
        return ValueError(f"{self.shown_name} holds no examples")

    def place(self, batch: Batch, at: int, first_row: int) -> str:
        """Return the place of row ``at`` of a batch: file and line, or the row's number from 0."""
        if batch.lines is None:
            return f"{self.shown_name}, row {first_row + at}"
        return f"{self.shown_name}:{batch.lines[at]}"

    def wrong(self, line: int, what: str) -> ValueError:
        """Return an error about a line, counted from 1."""
        return ValueError(f"{self.shown_name}:{line}: {what}")

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file without line ends."""
        return lines(self.path, self.shown_name)


def is_plain_number(text: str) -> bool:
    """Return whether ``text`` has no number syntax that only Python reads.

    That is the "_" of "1_000" and digits of other scripts.
    """
    return "_" not in text and text.isascii()


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a number, or plain text of one."""
    try:
        float(value)
    except (ValueError, TypeError, OverflowError):
        return False
    return not isinstance(value, str) or is_plain_number(value)


def lines(path: str, name: str) -> Iterator[str]:
    """Yield the lines of a text file, plain or compressed; ``name`` is its name in messages."""
    number = 0
    for block in _core.iter_lines(path):
        try:
            text = block.decode("utf-8-sig" if number == 0 else "utf-8")
        except UnicodeDecodeError as error:
            at = number + 1 + block.count(b"\n", 0, error.start)
            raise ValueError(
                f"{name}:{at}: byte 0x{block[error.start]:02x} is not UTF-8; convert the file, "
                "for example with iconv"
            ) from error
        # The part after the last line end is empty.
        found = text.split("\n")[:-1]
        number += len(found)
        for line in found:
            yield line.removesuffix("\r")


def first_line(path: str) -> str:
    """Return the first line that is not blank, or ""; invalid bytes are replaced."""
    for block in _core.iter_lines(path):
        for line in block.splitlines():
            if line.strip():
                return line.decode("utf-8-sig", errors="replace")
    return ""
