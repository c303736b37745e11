"""Runs cases, each in a process of its own, and remembers what they measured.

The measures of a run are a line of JSON in a log that git ignores. What the log has of the same
case and source (xmtree: the commit; others: the version) is not run again, so that an interrupted
run goes on. A change of what measures is not seen: pass ``--again`` after one.
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
from pathlib import Path

import numpy as np
from harness import data
from harness.record import described, git, load_average

BENCHES = Path(__file__).parents[1]
#: Parts of the repository that make a difference to xmtree's figures.
SOURCES = ("rust/src", "python", "Cargo.toml", "Cargo.lock")
#: A program whose run took more seconds is run once.
SLOW = 120


def spawn(python, module, *arguments, threads=1, limit=None):
    """Runs a module of the benches and returns what it printed; RuntimeError if it fails."""
    path = [str(BENCHES)]
    if python == sys.executable:
        path += filter(None, [os.environ.get("PYTHONPATH")])
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(pools, str(threads))
    environment["PYTHONPATH"] = os.pathsep.join(path)
    # Where others use the cores, too, busy waiting takes LightGBM from seconds to minutes.
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    command = [python, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode} of {module}:\n{done.stderr[-3000:]}")
    return done.stdout


@functools.cache
def source():
    """The commit of xmtree's sources, marked where they have changed since."""
    try:
        commit = git("log", "-1", "--format=%h", "--", *SOURCES)
        return commit + "-dirty" * bool(git("status", "--porcelain", "--", *SOURCES))
    except (OSError, subprocess.CalledProcessError):
        return "unknown-dirty"


class Environments:
    """The interpreters that have the programs.

    Parameters
    ----------
    pythons : interpreters, asked in this order; this one, which alone has xmtree, comes last

    Attributes
    ----------
    of : package -> interpreter and version
    """

    def __init__(self, pythons=()):
        self.of = {}
        for python in dict.fromkeys((*map(str, pythons), sys.executable)):
            if Path(python).is_file():
                for package, version in json.loads(spawn(python, "harness.child")).items():
                    self.of.setdefault(package, (python, version))

    def python(self, case):
        return self.of[case.package][0] if case.package else sys.executable

    def source(self, case):
        """What measures depend on, or None where the program is not installed."""
        return self.of.get(case.package, (None, None))[1] if case.package else source()


class Log:
    """The runs of a subject, a line of JSON each."""

    def __init__(self, path):
        self.path = Path(path)
        text = self.path.read_text() if self.path.is_file() else ""
        # What was being written when the power failed is no line.
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
        """The last run of a case; None where there is none, or it failed, or sources are not those
        of a commit, or it was ended before the limit."""
        key = json.loads(json.dumps(case.key() | {"source": source, "machine": described()}))
        found = [run for run in self.runs if key.items() <= run.items()]
        if source.endswith("-dirty") or not found or "failed" in found[-1]:
            return None
        return None if found[-1].get("over_s", limit) < limit else found[-1]


def measured(case, source, python, limit, task=None, folder=None):
    """The line of a run: its measures, or that it took too long or failed."""
    now = datetime.datetime.now(datetime.UTC)
    run = case.key() | {"source": source, "machine": described(), "load": load_average()}
    run |= {"date": f"{now:%Y-%m-%d}"}
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


def run_all(cases, log, environments, limit=900, again=False, jobs=1, say=print):
    """Measures what is not known; returns the runs of all cases that have one."""
    lock = threading.Lock()

    with tempfile.TemporaryDirectory() as folder:

        @functools.cache
        def files(name, rows):
            """A task that programs read, and its folder."""
            path = Path(folder) / f"{name}-{rows}"
            task = data.load(name, rows).shuffled()
            task.write(path)
            return task, path

        def run(case):
            source = environments.source(case)
            if source is None:
                return None
            known = None if again else log.find(case, source, limit)
            if known or (case.adapter and case.seed and is_slow(case, source)):
                return known
            task, path = None, None
            if case.adapter:
                with lock:
                    task, path = files(case.task, case.rows)
            found = measured(case, source, environments.python(case), limit, task, path)
            with lock:
                log.add(found)
            say(f"{case}: {outcome(found)}")
            return found

        def is_slow(case, source):
            first = log.find(case.of_seed(0), source, limit)
            return first is None or "over_s" in first or first["seconds"] > SLOW

        with ThreadPoolExecutor(jobs) as pool:
            try:
                return [found for found in pool.map(run, cases) if found]
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise


def outcome(run):
    if "over_s" in run:
        return f"over {run['over_s']:.0f} s"
    return f"FAILED: {run['failed']}" if "failed" in run else f"{run['seconds']:.1f} s"
