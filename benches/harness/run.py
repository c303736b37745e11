"""Run cases, each in its own process, and log their measures.

A run is a line of JSON in a log that git ignores. A case is not run again if the log has it with
the same source (the commit of xmtree, the version of other programs), so an interrupted run can
continue. The log does not depend on the code of the benches: pass ``--again`` after changing it.
"""

import datetime
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from harness import data
from harness.record import described, git, load_average

BENCHES = Path(__file__).parents[1]
#: Parts of the repository that determine the figures of xmtree.
SOURCES = ("rust/src", "python", "Cargo.toml", "Cargo.lock")
#: A program whose first run takes more seconds is run with so many seeds only.
SLOW = 120, 1


def spawn(python, module, *arguments, threads=1, limit=None):
    """Run a module of the benches and return its output; RuntimeError if it fails."""
    outer = os.environ.get("PYTHONPATH") if python == sys.executable else None
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(pools, str(threads))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(BENCHES), outer)))
    # Without this, LightGBM takes minutes instead of seconds when other processes use the cores.
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    command = [python, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode} of {module}:\n{done.stderr[-3000:]}")
    return done.stdout


@functools.cache
def source():
    """Return the last commit of xmtree's sources, marked "-dirty" if they have changed since."""
    try:
        commit = git("log", "-1", "--format=%h", "--", *SOURCES)
        return commit + "-dirty" * bool(git("status", "--porcelain", "--", *SOURCES))
    except (OSError, subprocess.CalledProcessError):
        return "unknown-dirty"


class Environments:
    """The interpreters with the programs.

    Parameters
    ----------
    pythons : interpreters to search, in this order; this one, which has xmtree, comes last

    Attributes
    ----------
    packages : package -> interpreter and version
    """

    def __init__(self, pythons=()):
        self.packages = {}
        for python in dict.fromkeys((*map(str, pythons), sys.executable)):
            if Path(python).is_file():
                for package, version in json.loads(spawn(python, "harness.child")).items():
                    self.packages.setdefault(package, (python, version))

    def python(self, case):
        return self.packages[case.package][0] if case.package else sys.executable

    def source(self, case):
        """Return the version of the program, or None if it is not installed."""
        return self.packages.get(case.package, (None, None))[1] if case.package else source()


class Log:
    """The runs of a subject, a line of JSON each."""

    def __init__(self, path):
        self.path = Path(path)
        text = self.path.read_text() if self.path.is_file() else ""
        # The last line is incomplete if writing it was interrupted.
        whole, _, torn = text.rpartition("\n")
        if torn:
            self.path.write_text(whole + "\n" if whole else "")
        self.runs = [json.loads(line) for line in whole.splitlines()]

    def add(self, run):
        self.runs.append(run)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(run) + "\n")

    def find(self, case, source, limit):
        """Return the last run of a case, or None if it must be run again.

        That is the case if it failed, if sources are not committed, or if its limit was shorter.
        """
        key = json.loads(json.dumps(case.key() | {"source": source, "machine": described()}))
        found = [run for run in self.runs if key.items() <= run.items()]
        if source.endswith("-dirty") or not found or "failed" in found[-1]:
            return None
        return None if found[-1].get("over_s", limit) < limit else found[-1]


def measured(case, source, python, limit, task=None, folder=None):
    """Run a case and return its line: the measures, or that it took too long or failed."""
    run = case.key() | {"source": source, "machine": described(), "load": load_average()}
    run["date"] = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    with tempfile.TemporaryDirectory() as out:
        arguments = json.dumps(case.key()), folder or out, out
        try:
            spawn(python, "harness.child", *arguments, threads=case.threads, limit=limit)
        except subprocess.TimeoutExpired:
            return run | {"over_s": limit}
        except RuntimeError as error:
            return run | {"failed": str(error).strip().splitlines()[-1]}
        found = json.loads((Path(out) / "measures.json").read_text())
        if task is not None:
            answers = np.load(Path(out) / "answers.npy")
            found["values"] = {"shape": task.shape} | task.accuracy(answers) | found["values"]
    return run | found


def run_all(cases, log, environments, limit=900, again=False, say=print, jobs=1, slow=None):
    """Run the cases that the log does not have, ``jobs`` at once; return the runs of all cases."""
    with tempfile.TemporaryDirectory() as folder:
        writing = threading.Lock()

        @functools.cache
        def files(name, rows):
            """Return a task and the folder with the files that programs read."""
            task, path = data.load(name, rows).shuffled(), Path(folder) / f"{name}-{rows}"
            task.write(path)
            return task, path

        def run(case):
            """Return the run of a case, or None if it is left out."""
            source = environments.source(case)
            if source is None:
                return None
            found = None if again else log.find(case, source, limit)
            rule = SLOW if case.adapter else slow
            if not found and rule and case.seed >= rule[1]:
                first = log.find(replace(case, seed=0), source, limit)
                if first is None or "over_s" in first or first["seconds"] > rule[0]:
                    return None
            if not found:
                with writing:
                    task, path = files(case.task, case.rows) if case.adapter else (None, None)
                found = measured(case, source, environments.python(case), limit, task, path)
                log.add(found)
                say(f"{case}: {outcome(found)}")
            return found

        pool = ThreadPoolExecutor(jobs)
        try:
            return [found for found in pool.map(run, cases) if found]
        finally:
            # An interruption also ends the cases that wait.
            pool.shutdown(cancel_futures=True)


def outcome(run):
    if "over_s" in run:
        return f"over {run['over_s']:.0f} s"
    return f"FAILED: {run['failed']}" if "failed" in run else f"{run['seconds']:.1f} s"
