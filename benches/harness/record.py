"""The record of a subject: a small CSV table with a head.

A row has the measures of a program on a task: the medians of its runs, unless the subject
summarizes them differently. Its column ``at`` is the letter of a line in the head with machine,
source, date and versions. A new measurement replaces the row, so a record can be made in parts.
"""

import csv
import io
import os
import platform
import re
import string
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "records"
#: The columns that are not measures.
NAMES = ("task", "program", "at", "runs")


def git(*arguments):
    """Return the output of git in this repository."""
    command = ["git", "-C", Path(__file__).parents[2], *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def described():
    """Return processor, cores and system in a line."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        model = re.search(r"^model name\s*: (.*)$", text, re.M)[1]
    except (OSError, TypeError):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def load_average():
    """Return the load of the last minute; a high one means distorted times."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


class Record:
    """The rows of a subject, each a dictionary with ``NAMES`` and the measures.

    Measures are numbers, lists of numbers, or texts. A row has only the measures of its program.
    """

    def __init__(self, name, title="", folder=FOLDER):
        self.name, self.title, self.path = name, title, Path(folder) / f"{name}.csv"
        self.rows = []
        if self.path.is_file():
            text = self.path.read_text(encoding="utf-8")
            where = dict(re.findall(r"^# (\w): (.*)$", text, re.M))
            body = "".join(line for line in text.splitlines(True) if not line.startswith("#"))
            for row in csv.DictReader(io.StringIO(body)):
                found = {name: parsed(cell) for name, cell in row.items() if cell != ""}
                names = {name: row[name] for name in ("task", "program")}
                self.rows.append(found | names | {"at": where[row["at"]]})

    def of(self, task=None, program=None):
        """Return the rows of a task, a program or both, without those that failed."""
        wanted = {"task": task, "program": program}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        return [row for row in self.rows if "note" not in row and wanted.items() <= row.items()]

    def tasks(self):
        """Return the names of all tasks in the order of the record."""
        return list(dict.fromkeys(row["task"] for row in self.rows))

    def update(self, rows, order=()):
        """Replace rows by task and program, and sort them like the pairs of ``order``."""
        known = {(row["task"], row["program"]): row for row in self.rows}
        known |= {(row["task"], row["program"]): row for row in rows}
        ranks = {pair: rank for rank, pair in enumerate(order)}
        self.rows = sorted(
            known.values(), key=lambda row: ranks.get((row["task"], row["program"]), len(ranks))
        )

    def write(self):
        """Write the table."""
        places = dict.fromkeys(row["at"] for row in self.rows)
        letters = dict(zip(places, string.ascii_letters, strict=False))
        measures = dict.fromkeys(name for row in self.rows for name in row if name not in NAMES)
        file = io.StringIO()
        file.write(f"# {self.title}\n# Written by make measure SELECT={self.name}, not by hand.\n")
        file.writelines(f"# {letter}: {place}\n" for place, letter in letters.items())
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*NAMES, *measures])
        for row in self.rows:
            cells = row | {"at": letters[row["at"]]}
            writer.writerow([cell(cells.get(name, "")) for name in (*NAMES, *measures)])
        self.path.write_text(file.getvalue(), encoding="utf-8")

    def circumstances(self, rows=None):
        """Return where and when rows were measured, as a sentence."""
        places = [row["at"].split("; ") for row in (self.rows if rows is None else rows)]
        machines, sources, days, *_ = map(sorted, map(set, zip(*places, strict=False)))
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"{'; '.join(machines)}; {', '.join(sources)}; {when}."


def summarized(runs, summarize):
    """Yield the rows of the runs: for each task and program, of its latest source and machine."""
    groups = {}
    for run in runs:
        group = groups.setdefault((run["task"], run["program"]), {})
        if any(state(other) != state(run) for other in group.values()):
            group.clear()
        group[run["seed"]] = run
    for (task, program), group in groups.items():
        last = list(group.values())[-1]
        done = [run for run in group.values() if "values" in run]
        row = {"task": task, "program": program, "runs": len(done)}
        source = last["source"] if " " in last["source"] else f"xmtree {last['source']}"
        row["at"] = "; ".join((last["machine"], source, last["date"], last.get("versions", "")))
        row["at"] = row["at"].removesuffix("; ")
        if not done:
            yield row | {"note": last.get("failed") or f"over {last['over_s']:.0f} s"}
            continue
        values = summarize([run["values"] for run in done])
        for name, measures in values.pop("rows", {program: values}).items():
            load = {"load": last["load"]} if last["load"] is not None else {}
            yield row | {"program": name} | measures | load


def state(run):
    return run["source"], run["machine"], run["settings"], run["threads"]


def cell(value):
    """Return a value with six digits, or as an integer; numbers of a list with spaces between."""
    if isinstance(value, list):
        return " ".join(map(cell, value))
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100_000 else f"{value:.6g}"


def parsed(text):
    """Return the value of a cell."""
    try:
        values = [int(each) if each.isdigit() else float(each) for each in text.split(" ")]
    except ValueError:
        return text
    return values if len(values) > 1 else values[0]
