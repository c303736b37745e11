"""Input formats, each read by a :class:`Reader`, and the choice of a file's format."""

import argparse
import os
import stat
from collections.abc import Sequence
from typing import Any

from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats.line_formats import FastTextReader, PlainReader, VwReader
from xmtree.cli.formats.matrices import SvmlightReader, XmcReader
from xmtree.cli.formats.reader import Reader, first_line
from xmtree.cli.formats.tables import CsvReader, JsonLinesReader, ParquetReader, TsvReader

_READERS: Sequence[type[Reader]] = (
    # If the name does not decide, the first that accepts the first line reads the file.
    XmcReader,
    FastTextReader,
    VwReader,
    JsonLinesReader,
    SvmlightReader,
    CsvReader,
    TsvReader,
    ParquetReader,
    PlainReader,
)
#: Readers by their names for ``--format``.
FORMATS: dict[str, type[Reader]] = {reader.name: reader for reader in _READERS}
_ANY = f"{', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]}"

#: Endings of compressed files.
PACKED = (".gz", ".xz", ".zst")


def open_reader(
    path: str,
    options: argparse.Namespace,
    *,
    strict: bool = True,
    on_stdin: str | None = None,
    remembered: dict[str, Any] | None = None,
) -> Reader:
    """Open ``path``.

    ``strict`` refuses options of other formats. ``on_stdin`` is the default format of stdin.
    ``remembered`` holds the model's own table options, used where none are given.
    """
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise WrongUsage(f"{path} is a pipe, which can be read only once; use - < {path}")
    kind = FORMATS[options.format] if options.format != "auto" else format_of(path, on_stdin)
    if strict:
        _check_options(kind, path, options)
    given = vars(options)
    known = {
        name: value
        for name, value in (remembered or {}).items()
        if name in kind.takes and given[name] is None
    }
    # Weights and ids need not be in every file, and are no features even if others are given.
    roles = ("weight_column", "id_column")
    lenient = set(known) if strict else {*known, *roles}
    left_out = [value for name, value in (remembered or {}).items() if name in roles]
    added = {"remembered": lenient, "left_out": left_out}
    return kind(path, argparse.Namespace(**(given | known | added)))


def format_of(path: str, on_stdin: str | None) -> type[Reader]:
    """Return the format by the file's extension, else its first line; ``on_stdin`` for stdin."""
    if path == "-":
        if on_stdin is None:
            raise WrongUsage(
                f"the format of stdin is unknown; give --format {_ANY}, and for numbers --learner"
            )
        return FORMATS[on_stdin]
    name = path.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    for reader in _READERS:
        if name.endswith(reader.endings):
            return reader
    line = first_line(path)
    if not line:
        raise ValueError(f"{path} holds no examples")
    for reader in _READERS:
        if reader.begins_with(line):
            return reader
    raise WrongUsage(
        f"{path}: neither its name nor its first line shows the format; give --format {_ANY}"
    )


def _check_options(kind: type[Reader], path: str, options: argparse.Namespace) -> None:
    """Refuse options that this format does not read."""
    for option in sorted(set().union(*(reader.takes for reader in _READERS)) - kind.takes):
        if getattr(options, option, None):
            able = [reader.name for reader in _READERS if option in reader.takes]
            shown = "stdin" if path == "-" else path
            raise WrongUsage(
                f"--{option.replace('_', '-')} is for {', '.join(able)}; {shown} is read as "
                f"{kind.name}"
            )
