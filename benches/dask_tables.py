"""Tables of docs/dask.md from the measurements of dask_scaling.py."""

from __future__ import annotations

import json
from pathlib import Path

FIGURES = Path(__file__).parent / "figures-dask.json"


def measured(found):
    """Whole trainings, processor seconds of their steps, and bytes per tree, row and class."""
    lines = [["training", "seconds"], ["---", "---"]]
    lines += [[name, f"{seconds:.1f}"] for name, seconds in found["runs"].items()]
    lines += [[f"processor: {name}", f"{found['seconds'][name]:.1f}"] for name in ("tree", "model")]
    sizes = [
        ("a tree", found["bytes"]["tree"] / found["n_trees"]),
        ("a row, to each worker", found["examples_bytes"] / found["n_rows"]),
        *(
            (f"a class of one-against-all, {name}", size)
            for name, size in found["class_bytes"].items()
        ),
    ]
    of_bytes = [["sent for", "bytes"], ["---", "---"]]
    of_bytes += [[name, f"{size:,.0f}"] for name, size in sizes]
    told = (
        f"{found['machine']}; commit {found['commit']}; {found['date']}, load before "
        f"{found['load']:.1f}; {found['data']}: {found['n_rows']:,} rows, "
        f"{found['n_values']:,} values, {found['n_labels']:,} labels; {found['n_trees']} trees."
    )
    return f"{markdown(lines)}\n{markdown(of_bytes)}\n{told}\n"


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


TABLES = {"measured": measured, "bagging": bagging}


def figures(name):
    """A part of docs/dask.md."""
    return TABLES[name](json.loads(FIGURES.read_text(encoding="utf-8")))
