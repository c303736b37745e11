"""The figures of the comparison, as text: means of the seeds."""

from math import log

import numpy as np

from extreme import tasks

#: Columns of the tables, each left out where nobody has it, and what they mean.
COLUMNS = {
    "P@1/3/5": "per cent, rows without labels left out",
    "PSP@1/3/5": "the same, weighted by propensities of the train part",
    "error %": "of the first label",
    "train s": "training by the clock, two threads, without reading the data",
    "processor s": "the processor's time of both threads",
    "train MB": "2^20 bytes by which the process grew at most while training",
    "file MB": "10^6 bytes of what is saved by default",
    "compact MB": "the same with save(compact=True)",
    "changed %": "rows that get another first label from that file",
    "us a row": "processor's time of predicting the test part at once, one thread, 5 labels a row",
    "densified": "the same of omikuji with dense weights",
    "one row us": "median of rows that are predicted one by one through Python, by the clock",
    "load ms": "reading the file",
    "mapped ms": "the same with mmap=True",
    "loaded MB": "2^20 bytes by which the process grew at most while reading",
    "seeds": "how many the figures are means of",
    "from": "commit or version, last date, and load of the machine before",
}


def lines(results):
    """The tables of what was measured last."""
    found = results.newest()
    names = dict.fromkeys((*tasks.LABEL_SETS, *tasks.CLASSES, tasks.NEXT_WORD, tasks.AMAZON))
    yield from (line for name in names for line in comparison(name, of_task(found, name)))
    yield from depths(found)
    yield from scaling(found)
    yield ""
    yield from (f"{head}: {meaning}" for head, meaning in COLUMNS.items())


def of_task(found, name):
    return {program: runs for (task, program), runs in found.items() if task == name}


def comparison(name, programs):
    """A task's table, a row for each program."""
    if not programs:
        return
    first = next(iter(programs.values()))[0]
    n_rows, n_columns, n_labels = first["shape"]
    yield f"{name}: {n_rows:,} x {n_columns:,}, {n_labels:,} labels; {first['machine']}"
    rows = {program: cells(runs) for program, runs in programs.items()}
    heads = [head for head in COLUMNS if any(head in row for row in rows.values())]
    table = [["", *heads], *([p, *(row.get(h, "") for h in heads)] for p, row in rows.items())]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *rest in table:
        texts = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  " + " | ".join([first.ljust(widths[0]), *texts])
    yield ""


def cells(runs):
    """What a program reaches and takes: means of its seeds."""
    done = [run for run in runs if "over_s" not in run]
    if not done:
        return {"train s": f"over {runs[0]['over_s']:.0f}", "from": told_source(runs)}

    def mean(get):
        return float(np.mean([get(run) for run in done]))

    found = {"seeds": str(len(done))}
    for key, head in (("p", "P@1/3/5"), ("psp", "PSP@1/3/5")):
        if key in done[0]:
            each = np.mean([run[key] for run in done], axis=0)
            found[head] = "/".join(f"{value:.1f}" for value in each)
    if "error" in done[0]:
        found["error %"] = f"{mean(lambda run: run['error']):.2f}"
    found["train s"] = f"{mean(lambda run: run['training']['s']):.1f}"
    found["processor s"] = f"{mean(lambda run: run['training']['cpu_s']):.1f}"
    found["train MB"] = f"{mean(lambda run: run['training']['mb']):.0f}"
    found["file MB"] = f"{mean(lambda run: run['file_mb']):.2f}"
    if "compact_mb" in done[0]:
        found["compact MB"] = f"{mean(lambda run: run['compact_mb']):.2f}"
        found["changed %"] = f"{mean(lambda run: run['compact_changed']):.2f}"
    found["us a row"] = f"{mean(lambda run: run['us']):.1f}"
    if "us_dense" in done[0]:
        found["densified"] = f"{mean(lambda run: run['us_dense']):.1f}"
    if "us_alone" in done[0]:
        found["one row us"] = f"{mean(lambda run: run['us_alone']):.0f}"
        found["load ms"] = f"{1e3 * mean(lambda run: run['loading']['s']):.1f}"
        found["loaded MB"] = f"{mean(lambda run: run['loading']['mb']):.0f}"
    if "mapping" in done[0]:
        found["mapped ms"] = f"{1e3 * mean(lambda run: run['mapping']['s']):.1f}"
    return found | {"from": told_source(runs)}


def told_source(runs):
    """Of what sources, when, and how busy the machine was at most before."""
    dates = [run["date"] for run in runs]
    return f"{runs[0]['source']}, {max(dates)}, load {max(run['load'] for run in runs)}"


def depths(found):
    for (name, program), runs in found.items():
        if "depth" in runs[0] and name not in tasks.SCALING:
            most = max(run["depth"] for run in runs)
            least, times = runs[0]["log_k"], most / runs[0]["log_k"]
            yield f"{name}, {program}: deepest tree {most}, log_M K {least:.1f}: {times:.2f} times"
    yield ""


def scaling(found):
    """Time an example against the number of labels, and the power of K that fits best."""
    for program in sorted({program for name, program in found if name in tasks.SCALING}):
        points = [(k, found.get((name, program))) for name, k in tasks.SCALING.items()]
        points = [(k, runs[0]) for k, runs in points if runs and "us" in runs[0]]
        series = {
            "training, processor": [
                1e6 * r["training"]["cpu_s"] / r["shape"][0] for _, r in points
            ],
            "training, by the clock": [1e6 * r["training"]["s"] / r["shape"][0] for _, r in points],
            "prediction": [r["us"] for _, r in points],
        }
        for what, times in series.items():
            told = ", ".join(f"{k}: {us:.1f}" for (k, _), us in zip(points, times, strict=True))
            yield f"{program}, {what}, us an example at K = {told}"
            if len(points) > 1:
                power = np.polyfit([log(k) for k, _ in points], np.log(times), 1)[0]
                yield f"{program}, {what}: fitted power of K {power:.2f}"
