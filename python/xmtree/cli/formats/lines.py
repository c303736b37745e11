"""Lines of text files, plain or packed, and of stdin."""

from __future__ import annotations

from collections.abc import Iterator

from xmtree import _core


def is_plain_number(text: str) -> bool:
    """Return whether ``text`` is free of what only Python reads as part of a number: the "_" of
    "1_000" and digits of other scripts."""
    return "_" not in text and text.isascii()


def lines(path: str, name: str) -> Iterator[str]:
    """The lines, without their ends; ``name`` is what messages call the file."""
    number = 0
    for block in _core.LineBlocks(path):
        try:
            text = block.decode("utf-8-sig" if number == 0 else "utf-8")
        except UnicodeDecodeError as error:
            at = number + 1 + block.count(b"\n", 0, error.start)
            raise ValueError(
                f"{name}:{at}: byte 0x{block[error.start]:02x} is not UTF-8; convert the file, "
                "for instance by iconv"
            ) from error
        found = text.split("\n")
        # What follows the last line end.
        found.pop()
        number += len(found)
        for line in found:
            yield line.removesuffix("\r")


def first_line(path: str) -> str:
    """The first line that is not blank, "" if there is none; bytes that are no text replaced."""
    for block in _core.LineBlocks(path):
        for line in block.splitlines():
            if line.strip():
                return line.decode("utf-8-sig", errors="replace")
    return ""
