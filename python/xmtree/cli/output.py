"""Results for each row as text, JSON lines or a table, by the ending of the output's name."""

import argparse
import csv
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TextIO

from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats import PACKED

#: Labels and scores of a row, or features and contributions, and what comes before them, by name.
Row = tuple[list[Any], list[float], dict[str, Any]]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".ndjson")


class TextWriter:
    """A line per row, "label:score label:score ..."; an explained label comes first."""

    def __init__(self, out: TextIO, k: int, names: tuple[str, str]) -> None:
        self._out, self._k, self._names = out, k, names

    def write(self, ids: list[Any] | None, rows: Iterable[Row]) -> None:
        """Write the rows of a batch; ``ids`` holds the value of --id-column for each."""
        for at, (names, values, more) in enumerate(rows):
            first = {} if ids is None else {"id": ids[at]}
            first |= {key: _rounded(value) for key, value in more.items()}
            self._write_row(first, names, [_rounded(value) for value in values])

    def _write_row(self, first: dict[str, Any], names: list[Any], values: list[float]) -> None:
        pairs = [(first["label"], first["score"])] if "label" in first else []
        pairs += zip(names, values, strict=True)
        self._out.write(" ".join(f"{name}:{value:.6g}" for name, value in pairs) + "\n")


class JsonWriter(TextWriter):
    """An object per line: id, labels and scores."""

    def _write_row(self, first: dict[str, Any], names: list[Any], values: list[float]) -> None:
        row = first | {f"{self._names[0]}s": names, f"{self._names[1]}s": values}
        self._out.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


class TableWriter(TextWriter):
    """Columns id, label_1, score_1, label_2, score_2, ...; cells without a label are empty."""

    def __init__(self, *args: Any, delimiter: str) -> None:
        super().__init__(*args)
        self._table = csv.writer(self._out, delimiter=delimiter, lineterminator="\n")
        self._has_header = False

    def _write_row(self, first: dict[str, Any], names: list[Any], values: list[float]) -> None:
        if not self._has_header:
            pairs = (f"{name}_{at}" for at in range(1, self._k + 1) for name in self._names)
            self._table.writerow([*first, *pairs])
            self._has_header = True
        cells = [*first.values()]
        for name, value in zip(names, values, strict=True):
            cells += [name, f"{value:.6g}"]
        self._table.writerow(cells + [""] * (2 * (self._k - len(names))))


def _rounded(value: Any) -> Any:
    """Return a score with six digits, and any other value as it is."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def writer_of(options: argparse.Namespace) -> Callable[..., TextWriter]:
    """Return the writer for the ending of the output's name and ``--json``."""
    name = options.output.lower()
    plain = next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)
    ending = os.path.splitext(plain)[1]
    if ending == ".parquet" or (plain != name and ending in (*_DELIMITERS, *_JSON)):
        what = "parquet" if ending == ".parquet" else "compressed files"
        raise WrongUsage(
            f"-o {options.output}: xmtree does not write {what}; it writes .csv, .tsv, .jsonl, "
            "and text for all other endings"
        )
    if ending in _DELIMITERS and options.json:
        raise WrongUsage(f"--json does not suit -o {options.output}, whose ending is of a table")
    if ending in _DELIMITERS:
        return partial(TableWriter, delimiter=_DELIMITERS[ending])
    if options.json or ending in _JSON:
        return JsonWriter
    if options.id_column is not None:
        raise WrongUsage(
            "--id-column: lines of text have no ids; give -o a name that ends in .csv, .tsv or "
            ".jsonl, or --json"
        )
    return TextWriter


@contextmanager
def opened(path: str) -> Iterator[TextIO]:
    """Open an output; a file is replaced once it is complete, and else remains as it was."""
    if path == "-":
        yield sys.stdout
        return
    if os.path.exists(path) and not os.path.isfile(path):  # such as /dev/null
        with open(path, "w", encoding="utf-8", newline="") as out:
            yield out
        return
    target = os.path.realpath(path)
    part = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.{os.getpid()}")
    try:
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    try:
        with open(handle, "w", encoding="utf-8", newline="") as out:
            yield out
        if os.path.exists(target):
            shutil.copymode(target, part)
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
