"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from xmtree.cli.formats.lines import lines
from xmtree.cli.formats.table import Chunk, TableReader


class JsonLinesReader(TableReader):
    """An object per line, whose keys are columns; the first objects say which there are."""

    name = "jsonl"
    endings = (".jsonl", ".ndjson")
    untyped_labels = False

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        return first_line.lstrip().startswith("{")

    def chunks(self) -> Iterator[Chunk]:
        names: dict[str, None] = {}
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        started = False
        for number, line in enumerate(lines(self.path, self.shown_name), 1):
            if not line.strip():
                continue
            row = self._object(number, line)
            if started:
                new = next((key for key in row if key not in names), None)
                if new is not None:
                    raise self.wrong(number, f"the key {new!r} is in none of the first objects")
            else:
                names.update(dict.fromkeys(row))
            rows.append(row)
            places.append(number)
            if len(rows) == self.batch_size:
                yield _chunk(list(names), rows, places)
                started = True
                rows, places = [], []
        if rows:
            yield _chunk(list(names), rows, places)

    def _object(self, number: int, line: str) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            raise self.wrong(number, f"no JSON: {error.msg}, character {error.colno}") from error
        except ValueError as error:  # Python reads at most 4,300 digits
            raise self.wrong(number, "an integer of too many digits") from error
        if not isinstance(found, dict):
            raise self.wrong(number, f"a {type(found).__name__}; each line must hold an object")
        return found


def _chunk(names: list[str], rows: list[dict[str, Any]], places: list[int]) -> Chunk:
    return Chunk(names, lambda name: [row.get(name) for row in rows], places)
