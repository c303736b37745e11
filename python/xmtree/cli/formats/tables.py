"""Tables (CSV, TSV, JSON lines, parquet) and the roles of their columns."""

import argparse
import csv
import difflib
import io
import json
import re
import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from xmtree._labels.forms import shown
from xmtree._persistence import TABLE_OPTIONS
from xmtree._validation import MAX_REAL
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats.categories import LateCategories
from xmtree.cli.formats.reader import Batch, Labels, Reader, Sets, is_number, is_plain_number

#: Column names that are recognized without an option.
TEXT_NAMES = ("text",)
LABEL_NAMES = ("label", "labels")


@dataclass
class Chunk:
    """Rows of a table, by column."""

    names: list[str]
    #: Values of a column; None or an empty string is a missing value.
    values: Callable[[str], list[Any]]
    #: Line of each row, from 1, or its number, from 0, if the file has no lines.
    places: list[int]
    #: Values of a column as numbers, if the file has them in binary form.
    numbers: Callable[[str], NDArray[np.float64] | None] = lambda name: None


@dataclass
class Roles:
    """Roles of the columns."""

    text: str | None
    label: str | None
    weight: str | None
    id: str | None
    #: True if each row has one label, False if the column holds several with a separator.
    has_one_label: bool
    features: list[str]
    unused: list[str]
    names: list[str]


class TableReader(Reader):
    """A file of rows with named columns."""

    takes = TABLE_OPTIONS - {"no_header", "delimiter"}
    #: True if messages name a row by its line.
    has_lines: ClassVar[bool] = True
    #: True if a row need not have all columns.
    may_lack_keys: ClassVar[bool] = False

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        super().__init__(path, options)
        self._pending: Iterator[Chunk] | None = None
        self._roles: Roles | None = None
        #: Columns to read; None reads all.
        self._only: Collection[str] | None = None
        self._selected: list[str] | None = None
        #: True if rows are dictionaries, which need not have the same keys.
        self.as_dicts = False

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows chunk by chunk, at least one chunk unless there is no header."""

    @property
    def has_one_label_each(self) -> bool:  # type: ignore[override]
        return self._known_roles().has_one_label

    @property
    def unused(self) -> list[str]:  # type: ignore[override]
        return self._known_roles().unused

    @property
    def features(self) -> list[str]:  # type: ignore[override]
        return self._selected or self._known_roles().features

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "numbers" if self._known_roles().text is None else "texts"

    def prepare_for(self, index_base: int | None, only: Collection[str] | None) -> None:
        self._only = only

    def select(self, columns: list[str] | None) -> None:
        """Find the columns, and take these as features, in this order; None takes all others."""
        self._selected = columns
        roles = self._known_roles()
        for name in columns or ():
            is_known = name in roles.features or (self.as_dicts and self.may_lack_keys)
            if name == roles.label or not is_known:
                found = _shown(roles.features)
                raise ValueError(f"{self.shown_name} has no feature {name!r}; it has {found}")

    def load(self, sets: Sets, as_matrix: Callable[[Batch], Any]) -> Batch:
        while True:
            try:
                return super().load(sets, as_matrix)
            except LateCategories as found:
                # Rows that were read as numbers are read again as names.
                assert self.categories is not None  # only such a reader raises it
                self.categories.numbers[str(found)] = {}

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        roles, is_first = self._known_roles(), True
        chunks, self._pending = self._pending or self.chunks(), None
        for chunk in chunks:
            if not chunk.places:
                continue
            labels = None
            lines = chunk.places if self.has_lines else None
            if roles.label is not None:
                found = zip(chunk.values(roles.label), chunk.places, strict=True)
                labels = Labels.of([self._labels(value, place) for value, place in found])
            weights = None if roles.weight is None else self._weights(chunk, roles.weight)
            ids = None if roles.id is None else chunk.values(roles.id)
            if roles.text is not None:
                yield Batch(self._texts(chunk, roles.text), labels, weights, ids, lines=lines)
                continue
            if self.as_dicts:
                yield Batch(self._dicts(chunk), labels, lines=lines)
                continue
            names = [n for n in self.features if self._only is None or n in self._only]
            numbers = [self._column_of(chunk, name, is_first) for name in names]
            matrix = np.column_stack(numbers) if numbers else np.empty((len(chunk.places), 0))
            exact, is_first = self.categories is not None and self.categories.is_exact, False
            matrix = np.ascontiguousarray(matrix, np.float64 if exact else np.float32)
            yield Batch(matrix, labels, weights, ids, names, lines)

    def no_labels(self) -> ValueError:
        names = self._known_roles().features
        more = f" (it has {_shown(names)})" if names else ""
        return ValueError(
            f"{self.shown_name} has no column 'label' or 'labels'{more}; name it by --label-column"
            f"{self._hint(self._known_roles().names)}"
        )

    def _hint(self, names: list[str]) -> str:
        """Return another possible error of a table with such columns, as text."""
        return ""

    def _row(self, place: int) -> str:
        return f"{self.shown_name}:{place}" if self.has_lines else f"{self.shown_name}, row {place}"

    def _wrong_value(self, place: int, name: str, value: Any, what: str) -> ValueError:
        """Return the error of a value in a column."""
        return ValueError(f"{self._row(place)}: column {name!r} holds {value!r:.60}, {what}")

    def _known_roles(self) -> Roles:
        """Return the roles, from the first rows; these are kept for stdin."""
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
        self._check_distinct()
        weight, id_column = (self._column(role, (), names) for role in ("weight", "id"))
        without = {*ignored, *self._options.left_out, weight, id_column}
        left = [name for name in names if name not in without]
        label = self._column("label", LABEL_NAMES, left)
        known = () if self.as_dicts or self._selected else TEXT_NAMES
        text = self._column("text", known, [name for name in left if name != label])
        others = [name for name in left if name not in (label, text)]
        features, unused = ([], others) if text else (others, [])
        if not text and not features:
            raise ValueError(
                f"{self.shown_name} has only {_shown(names)}: no column of texts or numbers is left"
            )
        separator, labels = self._options.label_separator, getattr(self._options, "labels", None)
        has_one_label = labels == "one" or (
            labels != "sets" and separator is None and label != "labels"
        )
        return Roles(text, label, weight, id_column, has_one_label, features, unused, names)

    def _check_distinct(self) -> None:
        """Refuse a column that options give two roles."""
        columns: dict[str, str] = {}
        for role in ("text", "label", "weight", "id"):
            name = getattr(self._options, f"{role}_column")
            if name is None or (role != "text" and f"{role}_column" in self._options.remembered):
                continue
            if name in columns:
                raise WrongUsage(f"--{columns[name]}-column and --{role}-column are both {name!r}")
            columns[name] = role

    def _column(self, role: str, known: tuple[str, ...], names: list[str]) -> str | None:
        """Return the column with this role: that of the option, else one of a known name."""
        option: str | None = getattr(self._options, f"{role}_column")
        may_lack = role != "text" and f"{role}_column" in self._options.remembered
        if may_lack and option not in names:
            option = None  # a file that a model is applied to may lack all but texts
        if option is not None:
            self._check_name(role, option, names)
            return option
        found = [name for name in known if name in names]
        if len(found) > 1:
            raise ValueError(
                f"{self.shown_name} has the columns {_shown(found)}; choose one: --{role}-column"
            )
        return found[0] if found else None

    def _check_name(self, role: str, name: str, names: list[str]) -> None:
        if name in names:
            return
        close = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {_shown(names)}"
        hint += self._hint(names)
        raise ValueError(f"--{role}-column: {self.shown_name} has no column {name!r}; {hint}")

    def kind_hint(self) -> str:
        roles = self._known_roles()
        name = "" if roles.text is None else f" in {roles.text!r}"
        hint = "" if name else "; name the column of texts by --text-column"
        return f"{name}{hint}{self._hint(roles.names)}"

    def _labels(self, value: Any, place: int) -> list[Any]:
        """Return the labels of a row."""
        if isinstance(value, list):
            return [label for item in value for label in self._label(item, True, place)]
        return self._label(value, self.has_one_label_each, place)

    def _label(self, value: Any, is_one: bool, place: int) -> list[Any]:
        if value is None or value == "":
            return []
        if isinstance(value, str):
            if is_one:
                return [value]
            parts = value.split(self._options.label_separator or ",")
            return [part.strip() for part in parts if part.strip()]
        if isinstance(value, float) and value.is_integer():
            return [int(value)]
        if isinstance(value, int) and not isinstance(value, bool):
            return [value]
        raise ValueError(
            f"{self._row(place)}: the label {value!r} is of type {type(value).__name__}; labels "
            "must be strings, integers, or lists of them"
        )

    def _texts(self, chunk: Chunk, name: str) -> list[str]:
        texts = ["" if value is None else value for value in chunk.values(name)]
        for text, place in zip(texts, chunk.places, strict=True):
            if not isinstance(text, str):
                raise self._wrong_value(place, name, text, "which is not text")
        return texts

    def _dicts(self, chunk: Chunk) -> list[dict[str, Any]]:
        """Return rows as dictionaries of numbers and texts, without missing values."""
        rows: list[dict[str, Any]] = [{} for _ in chunk.places]
        label = self._known_roles().label
        late = next((name for name in LABEL_NAMES if name in chunk.names), None)
        if label is None and self._selected is None and late is not None:
            raise ValueError(
                f"{self._row(chunk.places[0])}: the key {late!r} appears here or later, but not in "
                "the first batch; name it by label_column, or other columns by columns"
            )
        for name in self._selected or [name for name in chunk.names if name != label]:
            for row, value, place in zip(rows, chunk.values(name), chunk.places, strict=True):
                if value is None or value == "":
                    continue
                if not isinstance(value, str) or (self.untyped_labels and is_number(value)):
                    if not is_number(value) or abs(float(value)) > MAX_REAL:
                        message = f"{name!r} holds {value!r:.60}, expected a finite number or text"
                        raise ValueError(f"{self._row(place)}: {message}")
                    value = float(value)
                if value == value:
                    row[name] = value
        return rows

    def _weights(self, chunk: Chunk, name: str) -> NDArray[np.float64]:
        """Return a column of importance weights."""
        weights = []
        for value, place in zip(chunk.values(name), chunk.places, strict=True):
            is_weight = value not in (None, "") and is_number(value)
            if not (is_weight and 0 <= float(value) <= MAX_REAL):
                what = "expected a weight, a finite number of 0 or more"
                raise self._wrong_value(place, name, value, what)
            weights.append(float(value))
        return np.array(weights)

    def _column_of(self, chunk: Chunk, name: str, is_first: bool) -> NDArray[np.float64]:
        """Return a column of numbers, or of category numbers if it holds names."""
        categories = self.categories
        if categories is None or name not in categories.numbers:
            try:
                return self._numbers(chunk, name)
            except ValueError:
                if categories is None or name not in categories.may_learn:
                    raise
                if self.is_stdin and not is_first:
                    raise ValueError(
                        f"{self.shown_name}: column {name!r} holds text after a batch of numbers; "
                        "use a file, which can be read again, or a larger --batch-size"
                    ) from None
                if not is_first:
                    raise LateCategories(name) from None
        values = chunk.values(name)
        wrong = categories.wrong(name, values)
        if wrong is not None:
            at, why = wrong
            raise self._wrong_value(chunk.places[at], name, values[at], why)
        return categories.encoded(name, values)

    def _numbers(self, chunk: Chunk, name: str) -> NDArray[np.float64]:
        """Return a column of numbers, NaN where the value is missing."""
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
                (v, p) for v, p in zip(values, chunk.places, strict=True) if not is_number(v)
            )
            what = (
                f"which is not a number; name a column of texts by --text-column, or leave it out: "
                f"--ignore-column {name}{self.takes_categories}{self._hint(chunk.names)}"
            )
            raise self._wrong_value(place, name, value, what) from None


class CsvReader(TableReader):
    """Rows of delimited fields; the first row names the columns."""

    name = "csv"
    endings = (".csv",)
    takes = TABLE_OPTIONS
    delimiter: ClassVar[str] = ","

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        super().__init__(path, options)
        self._delimiter: str = (options.delimiter or self.delimiter).replace(r"\t", "\t")
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n':
            raise WrongUsage(f"--delimiter must be one character, got {options.delimiter!r}")

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        names = next(csv.reader([first_line], delimiter=cls.delimiter), [])
        return len(names) > 1 and not {*TEXT_NAMES, *LABEL_NAMES}.isdisjoint(names)

    def _hint(self, names: list[str]) -> str:
        other = next((mark for mark in ";\t|," if mark in names[0]), None)
        if len(names) == 1 and other is not None:
            return f"; if {other!r} separates the fields, give --delimiter {other!r}"
        if other is None and len(names) == 1 and self._options.delimiter:
            return f"; {self._options.delimiter!r} may not separate the fields: see --delimiter"
        if self._options.no_header:
            return ""
        return "; if the first row is an example and not a header, give --no-header"

    def chunks(self) -> Iterator[Chunk]:
        csv.field_size_limit(2**31 - 1)  # a text may be long
        # A field in quotes may hold line ends.
        text = (line + "\n" for line in self.lines())
        found = csv.reader(text, delimiter=self._delimiter, strict=True)
        rows: Iterator[tuple[int, list[str]]] = ((found.line_num, row) for row in found if row)
        try:
            first = next(rows, None)
            if first is None:
                return
            names = first[1]
            if self._options.no_header:
                names, rows = [str(at) for at in range(len(names))], chain([first], rows)
            part = list(islice(rows, self.batch_size))
            yield self._chunk(names, part)
            while part := list(islice(rows, self.batch_size)):
                yield self._chunk(names, part)
        except csv.Error as error:
            raise self.wrong(found.line_num, str(error)) from error

    def _chunk(self, names: list[str], rows: list[tuple[int, list[str]]]) -> Chunk:
        for line, row in rows:
            if len(row) != len(names):
                message = f"{len(row)} fields, expected {len(names)}{self._hint(names)}"
                raise self.wrong(line, message)
        at = {name: number for number, name in enumerate(names)}
        return Chunk(
            names, lambda name: [row[at[name]] for _, row in rows], [line for line, _ in rows]
        )


class TsvReader(CsvReader):
    """CSV with tabs."""

    name = "tsv"
    endings = (".tsv",)
    delimiter = "\t"


class JsonLinesReader(TableReader):
    """An object per line, whose keys are columns; the first batch defines them."""

    name = "jsonl"
    endings = (".jsonl", ".ndjson")
    opening = re.compile(r"\s*\{.*")
    untyped_labels = False
    may_lack_keys = True

    def chunks(self) -> Iterator[Chunk]:
        numbered = enumerate(self.lines(), 1)
        found = ((line, self._object(line, text)) for line, text in numbered if text.strip())
        names: list[str] = []
        while part := list(islice(found, self.batch_size)):
            lines, rows = map(list, zip(*part, strict=True))
            if self.as_dicts or not names:
                names = list(dict.fromkeys(chain.from_iterable(rows)))
            known = set(names)
            for line, row in part:
                new = next((key for key in row if key not in known), None)
                if new is not None:
                    raise self.wrong(line, f"the key {new!r} is not among those of the first batch")
            yield Chunk(names, partial(_values, rows), lines)

    def _object(self, number: int, line: str) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            raise self.wrong(number, f"not JSON: {error.msg}, character {error.colno}") from error
        except ValueError as error:  # Python reads at most 4,300 digits
            raise self.wrong(number, "an integer has too many digits") from error
        if not isinstance(found, dict):
            raise self.wrong(number, f"expected an object, got a {type(found).__name__}")
        return found


class ParquetReader(TableReader):
    """A binary table. From stdin it is held in memory, as its index is at the end."""

    name = "parquet"
    endings = (".parquet",)
    untyped_labels = False
    has_lines = False

    def chunks(self) -> Iterator[Chunk]:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError as error:
            raise RuntimeError(
                f"{self.shown_name}: reading parquet needs pyarrow: pip install pyarrow"
            ) from error
        source: Any = io.BytesIO(sys.stdin.buffer.read()) if self.is_stdin else self.path
        row = 0
        try:
            with parquet.ParquetFile(source) as file:
                empty = file.schema_arrow.empty_table()
                for batch in chain(file.iter_batches(self.batch_size), [empty]):
                    places = list(range(row, row + batch.num_rows))
                    values, numbers = partial(_column, batch), partial(_float_column, batch)
                    yield Chunk(file.schema_arrow.names, values, places, numbers)
                    row += batch.num_rows
        except ArrowException as error:
            raise ValueError(f"{self.shown_name}: {error}") from error


def _values(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row.get(name) for row in rows]


def _column(batch: Any, name: str) -> Any:
    return batch.column(name).to_pylist()


def _float_column(batch: Any, name: str) -> NDArray[np.float64] | None:
    from pyarrow import types

    column = batch.column(name)
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        return None
    return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))


def _shown(names: list[str]) -> str:
    return shown(np.array(names, object))
