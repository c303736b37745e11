"""CSV and TSV, by the standard library's module csv."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from typing import ClassVar

from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats.lines import lines
from xmtree.cli.formats.table import LABEL_NAMES, TEXT_NAMES, Chunk, TableReader

#: Characters of a field: a text may be long.
_LONGEST_FIELD = 2**31 - 1


class CsvReader(TableReader):
    """Rows of fields with a delimiter between them; the first row names the columns."""

    name = "csv"
    endings = (".csv",)
    takes = TableReader.takes | {"no_header", "delimiter"}
    delimiter: ClassVar[str] = ","

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        super().__init__(path, options)
        self._delimiter: str = options.delimiter or self.delimiter
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n':
            raise WrongUsage(f"--delimiter must be one character, got {options.delimiter!r}")

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        names = next(csv.reader([first_line], delimiter=cls.delimiter), [])
        return len(names) > 1 and not {*TEXT_NAMES, *LABEL_NAMES}.isdisjoint(names)

    def _hint(self, names: list[str]) -> str:
        other = next((mark for mark in ";\t|," if mark in names[0]), None)
        if len(names) == 1 and other is not None:
            return f"; if {other!r} stands between fields: --delimiter {other!r}"
        if self._options.no_header:
            return ""
        return "; if the first row is an example and does not name the columns: --no-header"

    def chunks(self) -> Iterator[Chunk]:
        csv.field_size_limit(_LONGEST_FIELD)
        # A field in quotes may hold line ends.
        text = (line + "\n" for line in lines(self.path, self.shown_name))
        found = csv.reader(text, delimiter=self._delimiter, strict=True)
        names: list[str] | None = None
        rows: list[list[str]] = []
        places: list[int] = []
        started = False
        try:
            for row in found:
                if not row:  # a blank line
                    continue
                if names is None and not self._options.no_header:
                    names = row
                    continue
                names = names or [str(at) for at in range(len(row))]
                if len(row) != len(names):
                    raise self.wrong(
                        found.line_num,
                        f"{len(row)} fields, but there are {len(names)} columns{self._hint(names)}",
                    )
                rows.append(row)
                places.append(found.line_num)
                if len(rows) == self.batch_size:
                    yield _chunk(names, rows, places)
                    started = True
                    rows, places = [], []
        except csv.Error as error:
            raise self.wrong(found.line_num, str(error)) from error
        if names is not None and (rows or not started):
            yield _chunk(names, rows, places)


class TsvReader(CsvReader):
    """As CSV, with tabs."""

    name = "tsv"
    endings = (".tsv",)
    delimiter = "\t"


def _chunk(names: list[str], rows: list[list[str]], places: list[int]) -> Chunk:
    at = {name: number for number, name in enumerate(names)}
    return Chunk(names, lambda name: [row[at[name]] for row in rows], places)
