"""Runs of the comparison: what is run, each in a process of its own, and what is remembered.

A run's measures are a line of JSON in a file, which an interrupted comparison takes up again: what
it has of the same machine and the same sources (xmtree: the commit) or version (peers) is not run
anew.
"""

import datetime
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import machine
import numpy as np
import xmtree

from extreme import tasks

BENCHES = Path(__file__).parents[1]
#: Training is on so many threads.
THREADS = 2
#: The package of each peer.
PEERS = {"omikuji": "omikuji", "pecos": "libpecos"}
#: Parts of the repository that make a difference to xmtree's figures.
SOURCES = ("rust", "python", "Cargo.toml", "Cargo.lock")


@dataclass(frozen=True)
class Program:
    """How a program is called in tables, which one it is, and with what options."""

    name: str
    command: str
    options: dict = field(default_factory=dict)

    @property
    def package(self):
        """Of a peer, else None."""
        return PEERS.get(self.command)


OURS = Program("xmtree", "ldsm")
TREES = Program("xmtree, trees alone", "ldsm", {"scorers": "none"})
RERANKED = Program("xmtree, trees re-ranked", "ldsm", {"scorers": "none", "beta": 0.8})
TAIL = Program("xmtree, tail_weight=1", "ldsm", {"tail_weight": 1.0})
OAA = Program("one-against-all", "oaa")
#: The next word has 683,414 features: unhashed weights of 26,368 words would take 134 GiB.
HASHED = Program("one-against-all, 15 bits, 1 pass", "oaa", {"n_bits": 15, "n_passes": 1})
PRUNED = Program("one-against-all, pruned", "oaa", {"prune": 0.03})
RECALL_TREE = Program("Recall Tree", "recall-tree")
ONE_PASS = Program("Recall Tree, 1 pass", "recall-tree", {"n_passes": 1})
OMIKUJI = Program("omikuji", "omikuji")
BONSAI = Program("omikuji, collapsed", "omikuji", {"collapse_every_n_layers": 5})
PECOS = Program("PECOS", "pecos")


@dataclass(frozen=True)
class Case:
    """A run: a program, a task, a seed."""

    task: str
    program: Program
    seed: int

    def __str__(self):
        program = re.sub(r"[^\w]+", "-", self.program.name)
        return f"{self.task}-{program}-seed{self.seed}"


def cases(n_seeds):
    """All runs, those first whose figures are wanted most."""
    seeds, first, rest = range(n_seeds), range(1), range(1, n_seeds)
    peers = (PECOS, BONSAI, OMIKUJI)
    # The dense weights of 18,970 labels take 4 GB in a file and 17 GB in memory.
    few_labels = tuple(name for name in tasks.LABEL_SETS if name != "wordnet-hypernyms")
    groups = (
        (tasks.LABEL_SETS, (OURS,), seeds),
        (tasks.LABEL_SETS, peers, first),
        (tasks.CLASSES, (OURS, OAA, RECALL_TREE, PECOS, OMIKUJI), seeds),
        ((tasks.NEXT_WORD,), (OURS, ONE_PASS, HASHED), first),
        (tasks.SCALING, (OURS,), first),
        ((tasks.AMAZON,), (OURS,), first),
        (tasks.LABEL_SETS, peers, rest),
        (few_labels, (OAA,), seeds),
        (tasks.LABEL_SETS, (TAIL, TREES, RERANKED, PRUNED), first),
        ((tasks.NEXT_WORD,), (OURS, ONE_PASS), rest),
        ((tasks.AMAZON,), peers, first),
    )
    for names, programs, group_seeds in groups:
        for seed in group_seeds:
            yield from (Case(name, program, seed) for program in programs for name in names)


@functools.cache
def peers():
    """The interpreter that has the peers, and their versions; none if it is not there."""
    python = os.environ.get("XMTREE_PEERS")
    if not python:
        return None, {}
    return python, json.loads(spawn(python, "extreme.peers", "versions"))


def spawn(python, module, *arguments, threads=THREADS, limit=None):
    """Runs a module of the benches and returns what it wrote; RuntimeError if it fails."""
    path = [str(BENCHES)]
    if python == sys.executable:
        path += filter(None, [os.environ.get("PYTHONPATH")])
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(pools, str(threads))
    environment["PYTHONPATH"] = os.pathsep.join(path)
    command = [python, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode} of {command}:\n{done.stderr[-3000:]}")
    return done.stdout


@functools.cache
def source(package):
    """What figures depend on: a peer's version, or xmtree's commit, marked if sources changed."""
    if package:
        return f"{package} {peers()[1].get(package)}"
    try:
        commit, changed = (
            subprocess.run(
                ["git", *arguments, "--", *SOURCES],
                cwd=BENCHES.parent,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
            for arguments in (["log", "-1", "--format=%h"], ["status", "--porcelain"])
        )
    except (OSError, subprocess.CalledProcessError):
        return f"xmtree {xmtree.__version__}"
    return commit + "-dirty" * bool(changed)


def run(case, task, limit):
    """Measures a case: the line that is remembered."""
    if case.program.command == "omikuji":
        task.write_text()
    record = {
        "task": case.task,
        "program": case.program.name,
        "seed": case.seed,
        "source": source(case.program.package),
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M}",
        "machine": machine.described(),
        "load": round(os.getloadavg()[0], 1),
        "shape": task.shape(),
    }
    python, module = (peers()[0], "peers") if case.program.package else (sys.executable, "ours")
    settings = ["--seed", case.seed, "--threads", THREADS]
    settings += ["--options", json.dumps(case.program.options)]
    with tempfile.TemporaryDirectory() as out:
        arguments = [case.program.command, task.folder, out, *settings]
        try:
            spawn(python, f"extreme.{module}", *arguments, limit=limit)
        except subprocess.TimeoutExpired:
            return record | {"over_s": limit}
        answers = np.load(Path(out) / "answers.npy")
        measures = json.loads((Path(out) / "measures.json").read_text())
    return record | task.accuracy(answers) | measures


class Records:
    """The records of a file of JSON lines, which grows by a line with each run."""

    #: What the runs of a program on a task share.
    SHARED: tuple[str, ...] = ("source", "machine")

    def __init__(self, path):
        self.path = Path(path)
        text = self.path.read_text() if self.path.is_file() else ""
        # What was being written when the power failed is no line.
        whole, _, torn = text.rpartition("\n")
        if torn:
            self.path.write_text(whole + "\n" if whole else "")
        self.records = [json.loads(line) for line in whole.splitlines()]

    def add(self, record):
        self.records.append(record)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def last_measured(self, records, number):
        """Those of the circumstances of the last one; of each ``number`` of a run the last."""
        runs: dict = {}
        for record in records:
            if any(self.circumstances(run) != self.circumstances(record) for run in runs.values()):
                runs.clear()
            runs[record[number]] = record
        return list(runs.values())

    def circumstances(self, record):
        return [record[name] for name in self.SHARED]


class Results(Records):
    """What was measured of each case."""

    def find(self, case, limit):
        """The record of a case, of these very sources on this machine, or None."""
        now = {"source": source(case.program.package), "machine": machine.described()}
        key = {"task": case.task, "program": case.program.name, "seed": case.seed} | now
        for record in self.records:
            if not key.items() <= record.items() or record["source"].endswith("-dirty"):
                continue
            if limit is None or "over_s" not in record or record["over_s"] >= limit:
                return record
        return None

    def newest(self):
        """The records by task and program: those of the sources and the machine that were
        measured last. What was measured on another machine than xmtree is left out."""
        found: dict = {}
        for record in self.records:
            found.setdefault((record["task"], record["program"]), []).append(record)
        newest = {key: self.last_measured(records, "seed") for key, records in found.items()}
        machines = {
            task: runs[0]["machine"]
            for (task, program), runs in newest.items()
            if program == OURS.name
        }
        return {
            (task, program): runs
            for (task, program), runs in newest.items()
            if runs[0]["machine"] == machines.get(task, runs[0]["machine"])
        }
