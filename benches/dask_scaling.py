"""LdSM on a cluster: time against workers here, bytes that are sent, and what follows for more.

    python benches/dask_scaling.py --measure figures-dask.json   # minutes, two processes
    python benches/dask_scaling.py figures-dask.json             # the table, computed from these

Measured are the seconds and bytes of each kind of step in one process, and the time of whole
trainings by one process, by a cluster of one worker and of two. The table takes these for larger
data: work and bytes of rows grow with their values, those of trees with their nodes. It leaves
out what is not known: stragglers, networks that several jobs share, workers that are lost.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from collections import defaultdict
from math import ceil, log2
from pathlib import Path

import machine
from xmtree import LdSMClassifier
from xmtree.dask import DaskLdSMClassifier
from xmtree.dask._ldsm import _Graph, _Reader
from xmtree.datasets import load_demo

PARAMS = {"n_estimators": 8, "random_state": 0}
#: Bytes per second that a worker receives: ten gigabits.
BANDWIDTH = 1.25e9
#: Seconds of the scheduler for a task, as Dask's documentation has it.
SCHEDULER = 1e-3
WORKERS = (1, 2, 10, 30, 100, 300, 1000)
THREADS = 8
#: Rows, values per row, labels, trees: the sets of the Extreme Classification Repository, and one
#: of 10^8 rows.
SETS = {
    "Amazon-670k": (490_449, 76, 670_091, 10),
    "Wikipedia-500k": (1_779_881, 385, 501_070, 10),
    "Amazon-670k, 200 trees": (490_449, 76, 670_091, 200),
    "10^8 rows": (100_000_000, 100, 1_000_000, 10),
}
#: Steps of which each worker does a part, whatever their number.
SPREAD = ("first-negatives", "mine", "sample", "solve")
#: What each worker receives the whole of.
TO_ALL = ("join-trees", "join-negatives", "index")
#: What one worker receives all of.
TO_ONE = ("first-negatives", "mine", "scorers")


class Recorder:
    """Does tasks as they come, and notes what each kind of them takes and makes."""

    def __init__(self):
        self.seconds, self.bytes, self.numbers = (defaultdict(float) for _ in range(3))

    def submit(self, name, function, *arguments, **options):
        if options.get("n_threads", 1) is None:
            options["n_threads"] = 1
        start = time.perf_counter()
        made = function(*arguments, **options)
        self.seconds[name] += time.perf_counter() - start
        # The sum of a kind: both halves of what "solve" makes are counted as "scorers", "duals".
        if name not in ("examples", "sample", "solve", "model"):
            self.bytes[name] += len(pickle.dumps(made))
        self.numbers[name] += 1
        return made


def measure():
    data = load_demo("onet-titles")
    X, y = data.X_train, data.y_train
    local = LdSMClassifier(**PARAMS)
    params = {**local._core_params(), "seed": 0}
    prepared = _Reader(local, json.dumps(params), None)(X, y, None)
    recorder = Recorder()
    # As for one worker of one thread.
    _Graph(recorder, prepared, params, 1).model()
    found = {
        "machine": machine.described(),
        "commit": machine.commit(),
        "load": Path("/proc/loadavg").read_text().split()[0],
        "n_rows": X.shape[0],
        "n_values": int(X.nnz),
        "n_labels": int(y.shape[1]),
        "n_trees": PARAMS["n_estimators"],
        "examples_bytes": len(pickle.dumps(prepared[0])),
        "seconds": dict(recorder.seconds),
        "bytes": dict(recorder.bytes),
        "tasks": dict(recorder.numbers),
        "runs": runs(X, y),
    }
    return found


def runs(X, y, repetitions=3):
    """Median seconds of whole trainings, one after the other in turns."""
    from distributed import Client, LocalCluster

    seconds = defaultdict(list)
    for _ in range(repetitions):
        start = time.perf_counter()
        LdSMClassifier(**PARAMS).fit(X, y)
        seconds["one process, one thread"].append(time.perf_counter() - start)
        for n_workers in (1, 2):
            with (
                LocalCluster(n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as client,
            ):
                start = time.perf_counter()
                DaskLdSMClassifier(**PARAMS, client=client).fit(X, y)
                seconds[f"workers: {n_workers}"].append(time.perf_counter() - start)
    return {name: sorted(values)[len(values) // 2] for name, values in seconds.items()}


def estimate(found, n_rows, n_each, n_labels, n_trees, n_workers):
    """Seconds of computing, of sending and of the scheduler, by a model of one thread's figures."""
    seconds, sent, tasks = found["seconds"], found["bytes"], found["tasks"]
    n_threads = n_workers * THREADS
    values = n_rows * n_each / found["n_values"]
    # A tree's depth grows with the logarithm of the rows.
    depth = log2(n_rows) / log2(found["n_rows"])
    tree = seconds["tree"] / found["n_trees"] * values * depth
    # A tree takes the threads that there are for it; half of its time is in nodes near the root.
    each = max(1, n_threads // n_trees)
    trees = ceil(n_trees / min(n_threads, n_trees)) * tree * (0.5 + 0.5 / each)
    spread = sum(seconds[name] for name in SPREAD) * values / n_threads
    alone = sum(
        taken * values
        for name, taken in seconds.items()
        if name not in (*SPREAD, "tree", "candidates", "examples")
    )
    rows = n_rows / found["n_rows"]
    to_all = found["examples_bytes"] * values + sum(sent[name] for name in TO_ALL) * rows
    to_one = sum(sent[name] for name in TO_ONE) * rows
    # Workers that have something pass it on.
    sending = (to_all * log2(n_workers) + to_one) / BANDWIDTH if n_workers > 1 else 0
    n_tasks = sum(tasks.values()) * n_threads
    return trees, spread, alone, sending, n_tasks * SCHEDULER


def table(found):
    """The estimates, as Markdown."""
    lines = [
        "| data | workers | trees | labels and rows | one worker alone | sending | scheduler "
        "| hours | memory of a worker, GiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (n_rows, n_each, n_labels, n_trees) in SETS.items():
        examples = found["examples_bytes"] * n_rows * n_each / found["n_values"]
        needed = examples * (3 + THREADS) / 2 / 2**30
        for n_workers in WORKERS:
            parts = estimate(found, n_rows, n_each, n_labels, n_trees, n_workers)
            hours = [part / 3600 for part in parts]
            cells = " | ".join(f"{part:.2f}" for part in [*hours, sum(hours)])
            lines.append(f"| {name} | {n_workers} | {cells} | {needed:.0f} |")
    return "\n".join(lines)


def per_unit(found):
    """Bytes per tree and per row, in lines."""
    n_rows, sent = found["n_rows"], found["bytes"]
    lines = [
        f"{found['machine']}, commit {found['commit']}, load {found['load']}",
        f"rows {n_rows}, values {found['n_values']}, labels {found['n_labels']}",
        f"bytes of a tree: {sent['tree'] / found['n_trees']:.0f}",
        f"bytes of a row, to each worker: {found['examples_bytes'] / n_rows:.0f} prepared, "
        f"{sent['join-negatives'] / n_rows:.0f} as negatives, {sent['index'] / n_rows:.0f} index",
        f"bytes of a row, to one worker: {sent['scorers'] / n_rows:.0f} scorers, "
        f"{(sent['first-negatives'] + sent['mine']) / n_rows:.0f} negatives",
    ]
    lines += [f"{name}: {seconds:.1f} s" for name, seconds in found["runs"].items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("figures", type=Path)
    parser.add_argument("--measure", action="store_true", help="measure and write the figures")
    arguments = parser.parse_args()
    if arguments.measure:
        arguments.figures.write_text(json.dumps(measure(), indent=1) + "\n")
    found = json.loads(arguments.figures.read_text())
    print(per_unit(found), table(found), sep="\n\n")


if __name__ == "__main__":
    main()
