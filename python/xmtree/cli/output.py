"""Predictions as text, JSON lines or a table, by the ending of the output's name."""

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

#: Labels and scores of a row, best first.
Row = tuple[list[Any], list[float]]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".ndjson")
_PACKED = (".gz", ".xz", ".zst")


class TextWriter:
    """A line per row, "label:score label:score ..."."""

    def __init__(self, out: TextIO, k: int) -> None:
        self._out, self._k = out, k

    def write(self, ids: list[Any] | None, rows: Iterable[Row]) -> None:
        """Write the rows of a batch; ``ids`` holds the value of --id-column for each."""
        for labels, scores in rows:
            pairs = zip(labels, scores, strict=True)
            self._out.write(" ".join(f"{label}:{score:.6g}" for label, score in pairs) + "\n")


class JsonWriter(TextWriter):
    """An object per line: id, labels and scores."""

    def write(self, ids: list[Any] | None, rows: Iterable[Row]) -> None:
        for at, (labels, scores) in enumerate(rows):
            row = {} if ids is None else {"id": ids[at]}
            row |= {"labels": labels, "scores": [float(f"{score:.6g}") for score in scores]}
            self._out.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


class TableWriter(TextWriter):
    """Columns id, label_1, score_1, label_2, score_2, ...; cells without a label are empty."""

    def __init__(self, out: TextIO, k: int, delimiter: str) -> None:
        super().__init__(out, k)
        self._table = csv.writer(out, delimiter=delimiter, lineterminator="\n")
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


def writer_of(options: argparse.Namespace) -> Callable[[TextIO, int], TextWriter]:
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
