"""Tables: which column holds texts, which labels, which numbers. CSV, JSON lines, parquet."""

from __future__ import annotations

import argparse
import difflib
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from xmtree.cli.formats.lines import is_plain_number
from xmtree.cli.formats.reader import Batch, Kind, Reader, Sets

#: Names of columns that need not be told.
TEXT_NAMES = ("text",)
LABEL_NAMES = ("label", "labels")

#: Column names shown in a message.
_MAX_SHOWN = 8

#: Characters of a value shown in a message.
_LONGEST_SHOWN = 60


@dataclass
class Chunk:
    """Some rows of a table, by column."""

    names: list[str]
    #: The values of a column; None, or an empty string, where there is none.
    values: Callable[[str], list[Any]]
    #: Line of each row, from 1, or its number, from 0, where the file has no lines.
    places: list[int]
    #: The values of a column as numbers, where the file has them in binary form.
    numbers: Callable[[str], NDArray[np.float64] | None] = lambda name: None


@dataclass
class Roles:
    """What the columns are for."""

    text: str | None
    label: str | None
    #: Whether text in the label column is several labels with a separator between them.
    is_split: bool
    features: list[str]
    unused: list[str]
    names: list[str]


class TableReader(Reader):
    """A file of rows with named columns."""

    takes = frozenset({"text_column", "label_column", "label_separator", "ignore_column"})
    #: Whether a row is known by its line.
    has_lines: ClassVar[bool] = True

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        super().__init__(path, options)
        self._pending: Iterator[Chunk] | None = None
        self._roles: Roles | None = None
        #: Columns to read, whatever others there are; None: all.
        self._only: set[str] | None = None

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """The rows, some at a time; at least one chunk, unless there is not even a header."""

    @property
    def has_one_label_each(self) -> bool:
        return not self._known_roles().is_split

    @property
    def unused(self) -> list[str]:
        return self._known_roles().unused

    @property
    def kind(self) -> Kind:
        return "numbers" if self._known_roles().text is None else "texts"

    def prepare_for(
        self, index_base: int | None, names: Collection[str] | None, ignores_unknown: bool
    ) -> None:
        if ignores_unknown and names is not None:
            self._only = set(names)

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        roles = self._known_roles()
        chunks, self._pending = self._pending or self.chunks(), None
        for chunk in chunks:
            if not chunk.places:
                continue
            labels = None
            lines = chunk.places if self.has_lines else None
            if roles.label is not None:
                found = zip(chunk.values(roles.label), chunk.places, strict=True)
                labels = [self._labels(value, roles, place) for value, place in found]
            if roles.text is not None:
                yield Batch(self._texts(chunk, roles.text), labels, lines=lines)
                continue
            names = [n for n in roles.features if self._only is None or n in self._only]
            numbers = [self._numbers(chunk, name) for name in names]
            matrix = np.column_stack(numbers) if numbers else np.empty((len(chunk.places), 0))
            yield Batch(
                np.ascontiguousarray(matrix, np.float32), labels, columns=names, lines=lines
            )

    def no_labels(self) -> ValueError:
        names = self._known_roles().features
        more = f" (it has {_shown(names)})" if names else ""
        return ValueError(
            f"{self.shown_name} has no column 'label' or 'labels'{more}; name it by --label-column"
            f"{self._hint(self._known_roles().names)}"
        )

    def _hint(self, names: list[str]) -> str:
        """What else may be wrong with a table of such columns."""
        return ""

    def _row(self, place: int) -> str:
        return f"{self.shown_name}:{place}" if self.has_lines else f"{self.shown_name}, row {place}"

    def _known_roles(self) -> Roles:
        """The roles, from the first rows, which are kept, as stdin can be read only once."""
        if self._roles is None:
            chunks = self.chunks()
            first = next(chunks, None)
            if first is None:
                raise self.empty()
            self._pending = chain([first], chunks)
            self._roles = self._find_roles(first.names)
        return self._roles

    def _find_roles(self, names: list[str]) -> Roles:
        for name, times in Counter(names).items():
            if times > 1:
                raise ValueError(f"{self.shown_name} has {times} columns {name!r}")
        ignored = self._options.ignore_column or []
        for name in ignored:
            if "ignore_column" not in self._options.remembered:
                self._check_name("ignore", name, names)
        left = [name for name in names if name not in ignored]
        label = self._column("label", LABEL_NAMES, left)
        text = self._column("text", TEXT_NAMES, [name for name in left if name != label])
        others = [name for name in left if name not in (label, text)]
        features, unused = ([], others) if text else (others, [])
        if not text and not features:
            raise ValueError(
                f"{self.shown_name} has no column but {_shown(names)}: neither texts nor numbers"
            )
        separator, labels = self._options.label_separator, getattr(self._options, "labels", None)
        is_split = labels == "sets" or (
            labels != "one" and (separator is not None or label == "labels")
        )
        return Roles(text, label, is_split, features, unused, names)

    def _column(self, role: str, known: tuple[str, ...], names: list[str]) -> str | None:
        """The column with this role: that of the option, else one of a known name."""
        option: str | None = getattr(self._options, f"{role}_column")
        if role == "label" and "label_column" in self._options.remembered and option not in names:
            option = None  # there may be none where a model is applied
        if option is not None:
            self._check_name(role, option, names)
            return option
        found = [name for name in known if name in names]
        if len(found) > 1:
            raise ValueError(
                f"{self.shown_name} has the columns {_shown(found)}; choose by --{role}-column"
            )
        return found[0] if found else None

    def _check_name(self, role: str, name: str, names: list[str]) -> None:
        if name in names:
            return
        close = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {_shown(names)}"
        raise ValueError(f"--{role}-column: {self.shown_name} has no column {name!r}; {hint}")

    def _labels(self, value: Any, roles: Roles, place: int) -> list[Any]:
        """The labels of a row."""
        if isinstance(value, list):
            return [label for item in value for label in self._label(item, False, place)]
        return self._label(value, roles.is_split, place)

    def _label(self, value: Any, is_split: bool, place: int) -> list[Any]:
        if value is None or value == "":
            return []
        if isinstance(value, str):
            if not is_split:
                return [value]
            parts = value.split(self._options.label_separator or ",")
            return [part.strip() for part in parts if part.strip()]
        if isinstance(value, float) and value.is_integer():
            return [int(value)]
        if isinstance(value, int) and not isinstance(value, bool):
            return [value]
        raise ValueError(
            f"{self._row(place)}: the label {value!r} is of type {type(value).__name__}; labels "
            "are strings, whole numbers, or lists of them"
        )

    def _texts(self, chunk: Chunk, name: str) -> list[str]:
        texts = ["" if value is None else value for value in chunk.values(name)]
        for text, place in zip(texts, chunk.places, strict=True):
            if not isinstance(text, str):
                raise ValueError(
                    f"{self._row(place)}: column {name!r} holds {text!r}, which is no text"
                )
        return texts

    def _numbers(self, chunk: Chunk, name: str) -> NDArray[np.float64]:
        """A column of numbers, NaN where the value is missing."""
        binary = chunk.numbers(name)
        if binary is not None:
            return binary
        values = [np.nan if value in (None, "") else value for value in chunk.values(name)]
        try:
            if not is_plain_number("".join(value for value in values if isinstance(value, str))):
                raise ValueError
            return np.array(values, np.float64)
        except (ValueError, TypeError, OverflowError):
            value, place = next(
                (v, p) for v, p in zip(values, chunk.places, strict=True) if not _is_number(v)
            )
            raise ValueError(
                f"{self._row(place)}: column {name!r} holds {_quoted(value)}, which is no number; "
                f"name a column of texts by --text-column, or leave it out: --ignore-column {name}"
                f"{self._hint(chunk.names)}"
            ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError, OverflowError):
        return False
    return not isinstance(value, str) or is_plain_number(value)


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _shown(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(repr(name) for name in names[:_MAX_SHOWN]) + more
