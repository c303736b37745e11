"""What is run, each in a process of its own, and what is remembered.

A run's measures are a line of JSON in a file. What is there of the same task, settings, run and
source (xmtree: the commit; peers: the version) is not run again, so that an interrupted comparison
goes on. A change of an adapter is not seen: run ``--again`` after one.
"""

import datetime
import functools
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import machine
import numpy as np
from extreme import tasks
from extreme.runs import Records, source, spawn

from peers.programs import TABLE, Program
from peers.tasks import Task

#: A program whose run took more seconds is run once.
SLOW = 120


class Environments:
    """The interpreters that have the programs.

    Parameters
    ----------
    pythons : interpreters, asked in this order; this one, which alone has xmtree, comes last

    Attributes
    ----------
    of : package -> interpreter and version
    missing : package -> why it could not be installed
    """

    def __init__(self, pythons=()):
        self.of, self.missing = {}, {}
        for python in dict.fromkeys((*map(str, pythons), sys.executable)):
            if Path(python).is_file():
                told = json.loads(spawn(python, "peers.versions"))
                self.missing |= told["missing"]
                for package, version in told["found"].items():
                    self.of.setdefault(package, (python, version))

    def python(self, program):
        return sys.executable if program.package is None else self.of[program.package][0]

    def source(self, program):
        """What figures depend on, or None where the program is not installed."""
        if program.package is None:
            return source(None)
        return self.of.get(program.package, (None, None))[1]


@dataclass(frozen=True)
class Case:
    """A run of a program on a task; the number is its seed, too."""

    task: Task
    program: Program
    run: int
    threads: int
    source: str

    def __str__(self):
        return f"{self.task.name}, {self.program.name}, run {self.run}"

    def key(self):
        """What the measures depend on."""
        return {
            "task": self.task.name,
            "program": self.program.name,
            "options": self.program.settings[self.task.kind],
            "run": self.run,
            "threads": self.threads,
            "source": self.source,
        }


class Results(Records):
    """What was measured."""

    SHARED = ("source", "options", "threads", "machine")

    def find(self, case, limit):
        """The last measures of a case; None where there are none, or it failed, or sources are
        not those of a commit, or it was ended before the limit."""
        key = case.key()
        if key["source"].endswith("-dirty"):
            return None
        found = [record for record in self.records if key.items() <= record.items()]
        if not found or "failed" in found[-1] or found[-1].get("over_s", limit) < limit:
            return None
        return found[-1]

    def newest(self, task, program):
        """The records of a program on a task, of the source, settings and machine that were
        measured last; where some runs failed, the others."""
        asked = (task, program)
        of_both = [r for r in self.records if (r["task"], r["program"]) == asked]
        runs = self.last_measured(of_both, "run")
        return [run for run in runs if "failed" not in run] or runs


def measured(case, folder, python, limit):
    """The record of a run: its measures, or that it took too long or failed."""
    now = datetime.datetime.now(datetime.UTC)
    record = case.key() | {
        "date": f"{now:%Y-%m-%d %H:%M}",
        "machine": machine.described(),
        "commit": machine.commit(),
        "load": machine.load(),
        "shape": shape(folder),
    }
    options = json.dumps(case.program.settings[case.task.kind])
    how = ["--options", options, "--seed", case.run, "--threads", case.threads]
    how += ["--dense"] * (case.task.kind == TABLE)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        arguments = [case.program.adapter, folder, out, *how]
        try:
            spawn(python, "peers.child", *arguments, threads=case.threads, limit=limit)
        except subprocess.TimeoutExpired:
            return record | {"over_s": limit}
        except RuntimeError as error:
            return record | {"failed": str(error).strip().splitlines()[-1]}
        answers = np.load(Path(out) / "answers.npy")
        measures = json.loads((Path(out) / "measures.json").read_text())
    accuracy = tasks.Task(case.task.name, folder).accuracy(answers)
    took = time.perf_counter() - start
    return record | accuracy | measures | {"seconds": round(took, 1)}


def run_all(chosen, results, environments, n_runs, threads, limit, again=False, say=print):
    """Measures what is not known yet: the first runs of all before the second ones.

    Parameters
    ----------
    chosen : pairs of a task and a program
    again : measure what is known, too
    """
    with tempfile.TemporaryDirectory() as folder:

        @functools.cache
        def written(task):
            try:
                return task.write(Path(folder) / task.name).folder
            except FileNotFoundError as error:
                say(f"{task.name}: {error}")

        for run in range(n_runs):
            for task, program in chosen:
                version = environments.source(program)
                if version is None or program.refusal(task):
                    continue
                case = Case(task, program, run, threads, version)
                first = results.find(Case(task, program, 0, threads, version), limit)
                known = None if again else results.find(case, limit)
                if known or (run and (first is None or slow(first))):
                    continue
                files = written(task)
                if files is None or program.refusal(task, shape(files)):
                    continue
                record = measured(case, files, environments.python(program), limit)
                results.add(record)
                say(f"{case}: {outcome(record)}")


def shape(folder):
    """Rows to train on, columns, classes."""
    return json.loads((folder / "shape.json").read_text())


def slow(record):
    return "over_s" in record or record["seconds"] > SLOW


def outcome(record):
    if "over_s" in record:
        return f"over {record['over_s']:.0f} s"
    return record.get("failed") or f"{record['seconds']:.0f} s"
