#!/usr/bin/env python3
"""Find prose that is hard to read: in comments, docstrings, messages and pages.

It finds symptoms only: first words that hide the subject of a summary, words that the field does
not use, and long sentences. `make test` runs it; with --list it prints every long sentence.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = re.compile(r"(of|those|that|what|whether|how|every so many|so long as)\b", re.IGNORECASE)
WORDS = re.compile(
    r"\b(mend(s|ed|ing)?|anew|chances|tells?|told|telling|foresee\w*|foret[eo]ld?|foretells?|nobody"
    r"|worth the trouble|the long way|by itself alone|whereof|thereof|therein|lest|aught|nought"
    r"|what there is (to|of)|come from afar|puts? in order|makes? do)\b",
    re.IGNORECASE,
)
MOST_WORDS, MOST_FIRST_SHARE, MOST_LONG_SHARE = 35, 0.01, 0.01
Block = tuple[int, str, bool]  # line, text, whether it is a doc comment or docstring


def rust(text: str) -> Iterator[Block]:
    """Yield the comment blocks of a Rust file."""
    comment = re.compile(r"\s*(//[/!]?)(.*)")
    lines = [(number, comment.match(line)) for number, line in enumerate(text.split("\n"), 1)]
    for mark, group in groupby(lines, lambda line: line[1] and line[1][1]):
        if mark:
            block = [(number, match[2].removeprefix(" ")) for number, match in group if match]
            yield block[0][0], "\n".join(line for _, line in block), mark != "//"


def python(text: str) -> Iterator[Block]:
    """Yield the docstrings and comment blocks of a Python file."""
    documented = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and (docstring := ast.get_docstring(node)):
            yield node.body[0].lineno, docstring, True
    comment = re.compile(r"\s*# ?(.*)")
    lines = [(number, comment.match(line)) for number, line in enumerate(text.split("\n"), 1)]
    for is_comment, group in groupby(lines, lambda line: line[1] is not None):
        if is_comment:
            block = list(group)
            yield block[0][0], "\n".join(match[1] for _, match in block if match), False


def markdown(text: str) -> Iterator[Block]:
    """Yield the text of a page, without indented code."""
    yield 1, re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE), False


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of Markdown or numpydoc, without code and tables."""
    text = re.sub(r"^(```|~~~|:::).*?^(```|~~~|:::)", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    not_prose = r"^( *\||#|>>>|\.\.\. |---|===|<|[\w*]+( : .*)?$(?=\n {4})).*$"
    text = re.sub(not_prose, "", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    yield from re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|\n(?=\S)(?<=:\n)", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a block."""
    for paragraph in prose(text):
        yield from re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split()))


def main() -> int:
    """Print what was found; 1 if it exceeds a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every long sentence")
    show_all = parser.parse_args().list
    readers = {".rs": rust, ".py": python, ".md": markdown}
    files = list(ROOT.glob("*.md")) + [
        path for part in ("rust", "python", "docs") for path in sorted((ROOT / part).rglob("*"))
    ]
    documented = first = total = 0
    long: list[str] = []
    words: list[str] = []
    for path in files:
        if path.suffix not in readers or "_build" in path.parts or "api" in path.parts[:-1]:
            continue
        place, text = path.relative_to(ROOT), path.read_text()
        for number, line in enumerate(text.split("\n"), 1):
            words += [f"{place}:{number}: {match[0]!r}" for match in WORDS.finditer(line)]
        for number, block, is_documentation in readers[path.suffix](text):
            documented += is_documentation
            if is_documentation and FIRST.match(block):
                first += 1
                print(f"{place}:{number}: begins with {block.split(maxsplit=1)[0]!r}")
            for sentence in sentences(block):
                total += 1
                if len(sentence.split()) > MOST_WORDS:
                    long.append(f"{place}:{number}: {len(sentence.split())} words: {sentence}")
    print(*words, *(long if show_all else []), sep="\n")
    print(
        f"{first} of {documented} doc comments and docstrings hide their subject,"
        f" {len(words)} words that the field does not use,"
        f" {len(long)} of {total} sentences have over {MOST_WORDS} words"
    )
    too_many = first > MOST_FIRST_SHARE * documented or len(long) > MOST_LONG_SHARE * total
    return int(too_many or bool(words))


if __name__ == "__main__":
    sys.exit(main())
