"""The table of what was measured last, as records and as JSON."""

import json
from statistics import median

from peers.programs import PROGRAMS
from peers.tasks import TASKS

#: What all runs of a program on a task have in common.
COMMON = ("source", "options", "shape", "machine", "threads")


def table(results):
    """A record for each task and program that was run; its measures are the median, the least
    and the most of the runs."""
    return [
        summary(task, program, runs)
        for task in TASKS
        for program in PROGRAMS
        if task.kind in program.settings and (runs := results.newest(task.name, program.name))
    ]


def summary(task, program, runs):
    """The runs of a program on a task in one record."""
    row = {"task": task.name, "kind": task.kind, "program": program.name}
    row |= {"xmtree": program.package is None} | {name: runs[-1][name] for name in COMMON}
    row |= {name: [run[name] for run in runs] for name in ("commit", "date", "load")}
    done = [values(run) for run in runs if "training" in run]
    if not done:
        ended = {name: runs[-1][name] for name in ("over_s", "failed") if name in runs[-1]}
        return row | {"runs": 0} | ended
    return (
        row | {"runs": len(done)} | {name: spread([run[name] for run in done]) for name in done[0]}
    )


def values(run):
    """The numbers of a run by their names."""
    found = {"error": run["error"]} if "error" in run else {}
    for key, name in (("p", "P"), ("psp", "PSP")):
        found |= {f"{name}@{k}": each for k, each in zip((1, 3, 5), run.get(key, ()), strict=False)}
    return found | {
        "train_s": run["training"]["s"],
        "batch_us": median(run["batch_us"]),
        "one_us": run["one_us"],
        "peak_mb": run["peak_mb"],
        "grown_mb": run["training"]["mb"],
        "file_mb": run["file_mb"],
        "load_ms": median(run["load_ms"]),
    }


def spread(numbers):
    return {"median": median(numbers), "least": min(numbers), "most": max(numbers)}


def accuracy(row):
    """Per cent of rows whose first label is right; of a program without a result, less than 0."""
    if "error" in row:
        return 100 - row["error"]["median"]
    return row["P@1"]["median"] if "P@1" in row else -1.0


def head(rows):
    """On what machine, of what commit, when and under what load the figures were measured."""

    def all_of(name):
        return sorted({each for row in rows for each in row[name]})

    loads = [float(load) for row in rows for load in row["load"] if load != "unknown"]
    return {
        "machine": sorted({row["machine"] for row in rows}),
        "threads": sorted({row["threads"] for row in rows}),
        "xmtree": sorted({row["source"] for row in rows if row["xmtree"]}),
        "peers": sorted({row["source"] for row in rows if not row["xmtree"]}),
        "commit": all_of("commit"),
        "dates": [all_of("date")[0], all_of("date")[-1]] if rows else [],
        "load": spread(loads) if loads else {},
    }


def as_json(rows):
    """The head and the table."""
    return json.dumps({"head": head(rows), "table": rows}, indent=1, ensure_ascii=False) + "\n"
