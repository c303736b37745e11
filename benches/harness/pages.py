"""Tables of Markdown, and their places in the pages: python -m harness.pages [--check] writes them,
with ``benches`` on the path.

A page has places for them, between <!-- figures: SUBJECT ARGUMENT --> and <!-- /figures -->. What
stands there comes from the records, and from nowhere else; so does the whole page of the papers.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

from harness.case import subject
from harness.record import Record

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"(<!-- figures: (\w+) ([\w.-]+) -->\n).*?(<!-- /figures -->)", flags=re.S)
#: Pages that a subject writes.
WHOLE = {"reproduction.md": "papers"}
PAGES = (ROOT / "README.md", ROOT / "DESIGN.md", *sorted((ROOT / "docs").glob("*.md")))


def markdown(head, rows):
    """A table with its head; a cell may be a text or a number."""
    lines = [row(*head), "|" + "---|" * len(head), *(row(*each) for each in rows)]
    return "".join(f"{line}\n" for line in lines)


def row(*cells):
    texts = (cell if isinstance(cell, str) else number(cell) for cell in cells)
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def number(value):
    """Three digits, or all before the point."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def fill(text, indent=""):
    """Text in lines of at most 100 columns."""
    return textwrap.fill(
        text, width=100, break_on_hyphens=False, break_long_words=False, subsequent_indent=indent
    )


def filled(page: str) -> str:
    """The page with the figures of the records in all its places."""
    return PLACE.sub(lambda m: m[1] + subject(m[2]).table(Record(m[2]), m[3]) + m[4], page)


def update(check=False):
    """Names of the pages that were not up to date; writes them unless they are only checked."""
    stale = []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        name = WHOLE.get(path.name)
        text = subject(name).page(Record(name)) if name else filled(page)
        if text != page:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(text, encoding="utf-8")
    return stale


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where a page is not up to date")
    check = parser.parse_args().check
    stale = update(check)
    print("not up to date:" if check else "written:", *(stale or ["none"]))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
