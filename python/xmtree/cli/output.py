"""Predictions as text, JSON lines or a table, by the ending of the output's name."""

import argparse
import csv
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from xmtree.cli.errors import WrongUsage

#: Labels and scores of a row, best first.
Row = tuple[list[Any], list[float]]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".ndjson")
_PACKED = (".gz", ".xz", ".zst")


class TextWriter:
    """A line per row, "label:score label:score ..."."""

    takes_ids = False

    def __init__(self, out: TextIO, k: int) -> None:
        self._out, self._k = out, k

    def write(self, ids: list[Any] | None, rows: Iterable[Row]) -> None:
        """Write the rows of a batch; ``ids`` holds the value of --id-column for each."""
        for labels, scores in rows:
            pairs = zip(labels, scores, strict=True)
            self._out.write(" ".join(f"{label}:{score:.6g}" for label, score in pairs) + "\n")


class JsonWriter(TextWriter):
    """An object per line: id, labels and scores."""

    takes_ids = True

    def write(self, ids: list[Any] | None, rows: Iterable[Row]) -> None:
        for at, (labels, scores) in enumerate(rows):
            row = {} if ids is None else {"id": ids[at]}
            row |= {"labels": labels, "scores": [float(f"{score:.6g}") for score in scores]}
            self._out.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


class TableWriter(TextWriter):
    """Columns id, label_1, score_1, label_2, score_2, ...; cells without a label are empty."""

    takes_ids = True
    delimiter = ","

    def __init__(self, out: TextIO, k: int) -> None:
        super().__init__(out, k)
        self._table = csv.writer(out, delimiter=self.delimiter, lineterminator="\n")
        self._has_header = False

    def write(self, ids: list[Any] | None, rows: Iterable[Row]) -> None:
        if not self._has_header:
            names = [
                name for at in range(1, self._k + 1) for name in (f"label_{at}", f"score_{at}")
            ]
            self._table.writerow(names if ids is None else ["id", *names])
            self._has_header = True
        for at, (labels, scores) in enumerate(rows):
            cells = [] if ids is None else [ids[at]]
            for label, score in zip(labels, scores, strict=True):
                cells += [label, f"{score:.6g}"]
            self._table.writerow(cells + [""] * (2 * (self._k - len(labels))))


class TsvWriter(TableWriter):
    """A table with tabs."""

    delimiter = "\t"


def writer_of(options: argparse.Namespace) -> type[TextWriter]:
    """Return the writer for the ending of the output's name and ``--json``."""
    name = options.output.lower()
    plain = next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), name)
    ending = os.path.splitext(plain)[1]
    if ending == ".parquet" or (plain != name and ending in (*_DELIMITERS, *_JSON)):
        what = "parquet" if ending == ".parquet" else "compressed files"
        raise WrongUsage(
            f"-o {options.output}: predict does not write {what}; it writes .csv, .tsv, .jsonl, "
            "and text for all other endings"
        )
    if ending in _DELIMITERS and options.json:
        raise WrongUsage(f"--json does not suit -o {options.output}, whose ending is of a table")
    writer = {".csv": TableWriter, ".tsv": TsvWriter}.get(ending, TextWriter)
    if options.json or ending in _JSON:
        writer = JsonWriter
    if options.id_column is not None and not writer.takes_ids:
        raise WrongUsage(
            "--id-column: lines of text have no ids; give -o a name that ends in .csv, .tsv or "
            ".jsonl, or --json"
        )
    return writer


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
    folder, name = os.path.split(os.path.realpath(path))
    try:
        handle, part = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    try:
        with open(handle, "w", encoding="utf-8", newline="") as out:
            yield out
        os.chmod(part, _mode(path))
        os.replace(part, os.path.realpath(path))
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _mode(path: str) -> int:
    """Return the permissions of a file, or those of a new one."""
    if os.path.exists(path):
        return os.stat(path).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
