"""One program measured in a process of its own: time, peak memory, size of files, answers.

Needs only numpy and scipy: the peers live in an environment of their own.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import memory
import numpy as np
import scipy.sparse as sp

#: Predictions are repeated up to so often, as long as they stay below so many seconds.
REPEATS, REPEAT_SECONDS = 3, 5.0
#: Labels asked for.
K = 5


@dataclass(frozen=True)
class Run:
    """What a program works on, and how.

    Attributes
    ----------
    folder : the task's files, as ``tasks.py`` writes them
    model : where the model goes, a file or a folder
    options : keyword arguments of the learner
    threads : in training; prediction takes one
    """

    folder: Path
    model: Path
    options: dict
    seed: int
    threads: int

    def rows(self, part):
        return sp.load_npz(self.folder / f"{part}_X.npz")

    def labels(self):
        """Of the train part: classes, or an indicator matrix where rows have label sets."""
        path = self.folder / "train_y.npy"
        return np.load(path) if path.is_file() else sp.load_npz(self.folder / "train_y.npz")

    def n_classes(self):
        return json.loads((self.folder / "shape.json").read_text())[2]


def measured(function):
    """The result, and what it took: seconds by the clock and of the processor, megabytes."""
    memory.reset_peak()
    before = memory.resident("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    cost = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return result, cost | {"mb": memory.resident("VmHWM") - before}


def predicted(function, n_rows):
    """The answers, and microseconds a row: the processor's, which other work disturbs less."""
    seconds = []
    while len(seconds) < REPEATS and sum(seconds) < REPEAT_SECONDS:
        start = time.process_time()
        answers = function()
        seconds.append(time.process_time() - start)
    return answers, 1e6 * statistics.median(seconds) / n_rows


def megabytes(path):
    """Of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def main(programs):
    """Runs one of ``programs``; leaves ``answers.npy`` and ``measures.json`` beside the model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=programs)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    run = Run(args.folder, args.out / "model", args.options, args.seed, args.threads)
    answers, measures = programs[args.program](run)
    np.save(args.out / "answers.npy", answers)
    (args.out / "measures.json").write_text(json.dumps(measures))
