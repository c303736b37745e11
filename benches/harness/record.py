"""The record of a subject: a small table of CSV under a head that says where, when and of what.

A row is a program on a task. Its measures are the medians of the runs, unless the subject
summarizes them otherwise; ``at`` is the letter of the line of the head with the machine, the
sources, the day and the versions. A row that is measured again replaces the old one, so that a
record need not be made in one run.
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
#: What a row has beside measures.
NAMES = ("task", "program", "at", "runs")


def git(*arguments):
    """What git says about this repository."""
    command = ["git", "-C", Path(__file__).parents[2], *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def described():
    """Processor, cores and system in a line."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        model = re.search(r"^model name\s*: (.*)$", text, re.M)[1]
    except (OSError, TypeError):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def load_average():
    """Of the last minute: where others compete for the cores, times are distorted."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


class Record:
    """The rows of a subject, each a dictionary with ``NAMES`` and the measures.

    Measures are numbers, lists of numbers, or texts; what a program did not measure is missing.
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
        """The rows of a task or a program that have measures."""
        wanted = {"task": task, "program": program}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        return [row for row in self.rows if "note" not in row and wanted.items() <= row.items()]

    def tasks(self):
        """The names of all tasks in the order of the record."""
        return list(dict.fromkeys(row["task"] for row in self.rows))

    def update(self, rows, order=()):
        """Replaces rows of the same task and program, and sorts by the pairs of ``order``."""
        known = {(row["task"], row["program"]): row for row in self.rows}
        known |= {(row["task"], row["program"]): row for row in rows}
        ranks = {pair: rank for rank, pair in enumerate(order)}
        self.rows = sorted(
            known.values(), key=lambda row: ranks.get((row["task"], row["program"]), len(ranks))
        )

    def write(self):
        """Writes the table; the lines of its head are numbered by letters."""
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
        """Where and when rows were measured, a sentence for a page."""
        places = [row["at"].split("; ") for row in (self.rows if rows is None else rows)]
        machines, sources, days, *_ = map(sorted, map(set, zip(*places, strict=False)))
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"{'; '.join(machines)}; {', '.join(sources)}; {when}."


def summarized(runs, summarize):
    """The rows of runs: for each task and program those of the source and the machine that were
    measured last."""
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
        # A run of several rows names them.
        for name, measures in values.pop("rows", {program: values}).items():
            load = {"load": last["load"]} if last["load"] is not None else {}
            yield row | {"program": name} | measures | load


def state(run):
    return run["source"], run["machine"], run["settings"], run["threads"]


def cell(value):
    """Six digits of a number, or all before the point; the numbers of a list side by side."""
    if isinstance(value, list):
        return " ".join(map(cell, value))
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100_000 else f"{value:.6g}"


def parsed(text):
    """What a cell holds."""
    try:
        values = [int(each) if each.isdigit() else float(each) for each in text.split(" ")]
    except ValueError:
        return text
    return values if len(values) > 1 else values[0]
