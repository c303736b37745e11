"""The part of the README that compares label sets, from a results file."""

import re
from pathlib import Path

from extreme import tables, tasks

PROGRAMS = ("xmtree", "omikuji", "PECOS")
#: What a cell has of a table's row.
CELL = "{P@1/3/5}, {PSP@1}, {train s} s, {us a row} us, {file MB} MB"
MARKS = "<!-- extreme -->\n", "<!-- /extreme -->"


def write(results, path):
    """Replaces what is between the marks of a file."""
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    start, end = (re.escape(mark) for mark in MARKS)
    part = re.compile(f"(?<={start}).*(?={end})", flags=re.DOTALL)
    if not part.search(text):
        raise ValueError(f"{path} lacks {MARKS[0].strip()} ... {MARKS[1]}")
    path.write_text(part.sub(lambda _: markdown(results), text), encoding="utf-8")


def markdown(results):
    """A row for each data set with label sets, a column for each program."""
    found = results.newest()
    names = (*tasks.LABEL_SETS, tasks.AMAZON)
    names = [name for name in names if (name, PROGRAMS[0]) in found]
    lines = ["| | " + " | ".join(PROGRAMS) + " |", "|---" * (1 + len(PROGRAMS)) + "|"]
    for name in sorted(names, key=lambda name: -n_labels(found, name)):
        runs = [found.get((name, program), []) for program in PROGRAMS]
        head = f"{name}, {n_labels(found, name):,} labels, {len(runs[0])} x"
        lines.append("| " + " | ".join([head, *map(cell, runs)]) + " |")
    return "\n" + "\n".join(lines) + "\n"


def n_labels(found, name):
    return found[name, PROGRAMS[0]][0]["shape"][2]


def cell(runs):
    if not runs:
        return ""
    known = tables.cells(runs)
    known["PSP@1"] = known["PSP@1/3/5"].split("/")[0]
    return CELL.format_map({head: text.strip() for head, text in known.items()})
