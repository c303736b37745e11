"""What LdSM on a cluster would take, computed from the measurements of dask_scaling.py.

Work grows with the values of the rows, to the power that a quarter of the rows and all of them show
for each step, at most 1; bytes grow with rows or values. The network is one of ten gigabits, and
workers pass on what they have. Left out is what is not known: stragglers, networks that several
jobs share, workers that are lost. So these are no measurements.
"""

from __future__ import annotations

import json
from itertools import pairwise
from math import ceil, log, log2
from pathlib import Path

FIGURES = Path(__file__).parent / "figures-dask.json"
#: Bytes per second that a worker receives.
BANDWIDTH = 1.25e9
#: Seconds of the scheduler for a task, as Dask's documentation has it.
SCHEDULER = 1e-3
#: Workers, and threads of each.
WORKERS, THREADS = (1, 10, 30, 100, 300, 1000), 8
#: Rows, values per row, labels, trees: sets of the Extreme Classification Repository, and one of
#: 10^8 rows.
SETS = {
    "Amazon-670k": (490_449, 76, 670_091, 10),
    "Amazon-670k, 200 trees": (490_449, 76, 670_091, 200),
    "Wikipedia-500k": (1_779_881, 385, 501_070, 10),
    "10^8 rows": (100_000_000, 100, 1_000_000, 10),
}
#: Steps of which each thread does a part.
SPREAD = ("first-negatives", "mine", "sample", "solve")
#: Halves of pairs, which stay where they are.
INSIDE = ("examples", "scorers", "duals")
#: What each worker receives the whole of; figures have the names of the steps when they were taken.
TO_ALL = ("join-trees", "join-negatives", "index", "start", "advance")
#: What one worker receives all of.
TO_ONE = ("first-negatives", "mine", "scorers", "sample", "solve")
PARTS = ("trees", "labels and rows", "one worker alone", "sending", "scheduler")


def growth(found, name):
    """To which power of the values the seconds of a step grow."""
    quarter = found["quarter"]
    seconds = found["seconds"][name] / quarter["seconds"][name]
    return min(1.0, max(0.0, log(seconds) / log(found["n_values"] / quarter["n_values"])))


def estimate(found, n_rows, n_each, n_trees, n_workers):
    """Seconds of the five parts."""
    seconds, sent = found["seconds"], found["bytes"]
    n_threads = n_workers * THREADS
    values, rows = n_rows * n_each / found["n_values"], n_rows / found["n_rows"]
    # A tree's depth grows with the logarithm of the rows.
    depth = log2(n_rows) / log2(found["n_rows"])
    tree = seconds["tree"] / found["n_trees"] * values * depth
    # A tree stays on one worker; a half of its time is in nodes that are trained one by one.
    each = min(THREADS, max(1, n_threads // n_trees))
    trees = ceil(n_trees / n_threads) * tree * (0.5 + 0.5 / each)
    grown = {name: taken * values ** growth(found, name) for name, taken in seconds.items()}
    spread = sum(grown.get(name, 0.0) for name in SPREAD) / n_threads
    alone = sum(grown[name] for name in grown.keys() - {*SPREAD, "tree", *INSIDE})
    scale = n_trees / found["n_trees"]
    per_row = {name: taken * (scale if name == "join-trees" else 1) for name, taken in sent.items()}
    to_all = (
        found["examples_bytes"] * values + sum(per_row.get(name, 0.0) for name in TO_ALL) * rows
    )
    to_one = sum(per_row.get(name, 0.0) for name in TO_ONE) * rows
    sending = (to_all * ceil(log2(n_workers)) + to_one) / BANDWIDTH if n_workers > 1 else 0.0
    of_blocks = sum(n for name, n in found["tasks"].items() if name not in ("tree", "model"))
    n_tasks = of_blocks * n_threads + n_trees
    return dict(zip(PARTS, (trees, spread, alone, sending, n_tasks * SCHEDULER), strict=True))


def memory(found, n_rows, n_each):
    """Bytes that a worker holds: examples, scaled values, a copy of a node for each thread."""
    examples = found["examples_bytes"] * n_rows * n_each / found["n_values"]
    return examples * (3 + THREADS) / 2


def of_each(found):
    """Name, estimates by number of workers and memory of each data set."""
    for name, (n_rows, n_each, _, n_trees) in SETS.items():
        by_workers = {n: estimate(found, n_rows, n_each, n_trees, n) for n in WORKERS}
        yield name, by_workers, memory(found, n_rows, n_each)


def table(found):
    """The estimates."""
    head = ["data", "workers", *(f"{part}, h" for part in PARTS), "all, h", "GiB of a worker"]
    lines = [head, ["---"] * len(head)]
    for name, by_workers, needed in of_each(found):
        for n_workers, parts in by_workers.items():
            hours = [seconds / 3600 for seconds in (*parts.values(), sum(parts.values()))]
            cells = [f"{hour:.2f}" for hour in hours]
            lines.append([name, f"{n_workers:,}", *cells, f"{needed / 2**30:.0f}"])
    return markdown(lines)


def limits(found):
    """Where it stops scaling, and why."""
    lines = []
    for name, by_workers, needed in of_each(found):
        totals = {n: sum(parts.values()) for n, parts in by_workers.items()}
        pairs = pairwise(WORKERS)
        last = next((n for n, more in pairs if totals[more] > 0.75 * totals[n]), WORKERS[-1])
        part, taken = max(by_workers[last].items(), key=lambda item: item[1])
        lines.append(
            f"- {name}: up to {last:,} workers ({totals[last] / 3600:.2f} h, "
            f"{totals[1] / totals[last]:.0f} times as fast as one); from there on the next step "
            f"saves less than a quarter. Most of the time, {taken / totals[last]:.0%}, is then "
            f"{WHY[part]}. A worker needs {needed / 2**30:.0f} GiB.\n"
        )
    return "".join(lines)


WHY = {
    "trees": "trees, of which there are no more at a time than `n_estimators`, each on one worker",
    "labels and rows": "solving and mining, which still spread",
    "one worker alone": "what one worker does alone: joining parts, the index, the choice of "
    "powers and costs, the model",
    "sending": "sending: all rows, trees and negatives go to every worker",
    "scheduler": "the scheduler, which hands out the tasks one by one",
}


def measured(found):
    """Whole trainings, and bytes per tree and per row."""
    n_rows, sent = found["n_rows"], found["bytes"]
    lines = [["training", "seconds"], ["---", "---"]]
    lines += [[name, f"{seconds:.1f}"] for name, seconds in found["runs"].items()]
    sizes = [
        ("a tree", sent["tree"] / found["n_trees"]),
        ("a row, to each worker: prepared", found["examples_bytes"] / n_rows),
        *(
            (f"a row, to each worker: {name}", sent[name] / n_rows)
            for name in TO_ALL
            if name in sent
        ),
        *(
            (f"a row, to one worker: {name}", sent[name] / n_rows)
            for name in TO_ONE
            if name in sent
        ),
        *(
            (f"a class of one-against-all, {name}", size)
            for name, size in found["class_bytes"].items()
        ),
    ]
    of_bytes = [["sent for", "bytes"], ["---", "---"]]
    of_bytes += [[name, f"{size:,.0f}"] for name, size in sizes]
    alone = sorted(found["seconds"].keys() - {*SPREAD, "tree", *INSIDE})
    names = [name for name in (*SPREAD, *alone) if name in found["seconds"]]
    powers = ", ".join(f"{name} {growth(found, name):.2f}" for name in names)
    told = (
        f"{found['machine']}; commit {found['commit']}; {found['date']}, load before "
        f"{found['load']:.1f}; {found['data']}: {n_rows:,} rows, {found['n_values']:,} values, "
        f"{found['n_labels']:,} labels; {found['n_trees']} trees."
    )
    grows = f"Seconds grow with the values of rows to the power: {powers}."
    return f"{markdown(lines)}\n{markdown(of_bytes)}\n{told}\n{grows}\n"


def bagging(found):
    """Test errors of bagged online trees."""
    errors = found["bagging"]["errors"]
    numbers = [int(n) for n in next(iter(errors.values()))]
    heads = ["one model of all rows", *(f"{n} partitions" for n in numbers[1:])]
    lines = [[f"{found['bagging']['data']}, test error (%)", *heads], ["---"] * (len(heads) + 1)]
    for name, of_learner in errors.items():
        lines.append([f"`{name}`", *(f"{100 * error:.1f}" for error in of_learner.values())])
    return markdown(lines)


def markdown(lines):
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


TABLES = {"measured": measured, "estimates": table, "limits": limits, "bagging": bagging}


def figures(name):
    """A part of docs/dask.md."""
    return TABLES[name](json.loads(FIGURES.read_text(encoding="utf-8")))
