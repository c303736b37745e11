"""Write the tables of the pages: python -m harness.pages [--check], run in ``benches``.

A table stands between <!-- figures: SUBJECT ARGUMENT --> and <!-- /figures -->, and comes from the
record of the subject. The pages of the papers are written as a whole.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

from harness.case import subject
from harness.record import Record

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"(<!-- figures: (\w+) ([\w.@-]+) -->\n).*?(<!-- /figures -->)", flags=re.S)
#: Subjects that write whole pages.
WHOLE = ("papers",)
PAGES = (ROOT / "README.md", ROOT / "DESIGN.md", *sorted((ROOT / "docs").glob("*.md")))


def markdown(head, rows):
    """Return a table of texts and numbers in Markdown."""
    lines = [row(*head), "|" + "---|" * len(head), *(row(*each) for each in rows)]
    return "".join(f"{line}\n" for line in lines)


def row(*cells):
    texts = (cell if isinstance(cell, str) else number(cell) for cell in cells)
    return "|" + "|".join(text.replace("|", "\\|") for text in texts) + "|"


def number(value):
    """Return a number with three digits, or as an integer."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def fill(text, indent=""):
    """Return a text in lines of at most 100 columns."""
    return textwrap.fill(
        text, width=100, break_on_hyphens=False, break_long_words=False, subsequent_indent=indent
    )


def filled(page: str) -> str:
    """Return the page with current tables."""
    return PLACE.sub(lambda m: m[1] + subject(m[2]).table(Record(m[2]), m[3]) + m[4], page)


def update(check=False):
    """Return the names of outdated pages, and write them if ``check`` is false."""
    texts = {path: filled(path.read_text(encoding="utf-8")) for path in PAGES}
    for name in WHOLE:
        texts |= {ROOT / path: text for path, text in subject(name).pages(Record(name))}
    stale = []
    for path, text in texts.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return stale


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a page is outdated")
    check = parser.parse_args().check
    stale = update(check)
    print("not up to date:" if check else "written:", *(stale or ["none"]))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
