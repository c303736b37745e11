"""The table as a page of Markdown."""

from itertools import groupby

from peers import report
from peers.programs import PROGRAMS
from peers.tasks import TASKS

#: Measures that are one cell each, and how their columns are called.
COLUMNS = {
    "train_s": "train s",
    "batch_us": "batch µs a row",
    "one_us": "one row µs",
    "peak_mb": "peak MB",
    "grown_mb": "grown MB",
    "file_mb": "file MB",
    "load_ms": "load ms",
}
HEAD = """# Beside other programs

Written by `make peers` from `benches/figures-peers.jsonl`, not by hand; the same table is in
`benches/figures-peers.json`, and what is run in `benches/peers/`. All programs have the same rows
in the same random order, the same split and number of threads. Each run is a process of its own,
with its number as the seed, which first learns and predicts 300 of the rows untimed. Cells are
medians of the runs, in brackets the least and the most. The most accurate program comes first.
OpenMP's threads (LightGBM, scikit-learn, PECOS) wait without taking a core, unless OMP_WAIT_POLICY
says otherwise.
"""
MEANING = """What the columns mean:

- error %: of the first label, on the test part. P@k and PSP@k, %: the share of the first k labels
  that are right, the latter weighted by propensities of the training part (a = 0.55, b = 1.5);
  rows without labels are left out.
- train s: by the clock, from rows in the program's own form to a model that predicts. That form is
  in memory, but a binary cache for Vowpal Wabbit and a text file for fastText.
- batch µs a row: by the clock, 10,000 rows at once, one label each, or five where rows have label
  sets; the median of up to five calls.
- one row µs: rows one by one through the program's Python class; the median of 500.
- peak MB: the whole process while it trains, with its libraries and the data, in 2^20 bytes;
  grown MB: what training added.
- file MB: what is saved by default, in 10^6 bytes. load ms: reading it, from the system's cache;
  the median of three.
"""
FIGURES = {
    "peers-prediction.svg": "Accuracy against the time of a prediction in a batch",
    "peers-training.svg": "Accuracy against the time of training",
    "peers-scaling.svg": "Time against the number of classes, made problems",
}


def written(rows, sources, missing=None, figures=""):
    """The page.

    Parameters
    ----------
    rows : the table
    sources : the version of each program that is installed, by name
    missing : package -> why it is not installed, where that is known
    figures : where plots are, seen from the page; without it the page has none
    """
    parts = [HEAD, *circumstances(rows), MEANING]
    shapes = {row["task"]: row["shape"] for row in rows}
    for name, group in groupby(rows, key=lambda row: row["task"]):
        parts.append(section(name, sorted(group, key=report.accuracy, reverse=True)))
    if figures and rows:
        parts.append("## Plots\n")
        parts += [f"![{title}]({figures}/{name})\n" for name, title in FIGURES.items()]
    return "\n".join([*parts, *settings(), *left_out(rows, shapes, sources, missing or {})])


def circumstances(rows):
    """The machine, the versions, when, and how busy the machine was."""
    if not rows:
        yield "Nothing was run yet.\n"
        return
    head = report.head(rows)
    load = head["load"]
    yield f"- machine: {'; '.join(head['machine'])}; {joined(head['threads'])} threads each"
    yield f"- xmtree: sources of {joined(head['xmtree'])}; repository at {joined(head['commit'])}"
    yield f"- others: {joined(head['peers'])}"
    busy = (
        ", load before a run {median:.1f} ({least:.1f}-{most:.1f})".format_map(load) if load else ""
    )
    yield f"- measured: {head['dates'][0]} to {head['dates'][1]} UTC{busy}\n"


def joined(items):
    return ", ".join(map(str, items)) or "none"


def section(name, rows):
    """A task's table."""
    n_rows, n_columns, n_classes = rows[0]["shape"]
    kind = rows[0]["kind"]
    names = {key for row in rows for key in row}
    heads = {"error": "error %"} if "error" in names else {}
    heads |= {
        key: f"{key} %" for key in ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5") if key in names
    }
    heads |= COLUMNS
    lines = [
        f"## {name}\n",
        f"{kind}; {n_rows:,} rows x {n_columns:,} columns, {n_classes:,} labels\n",
    ]
    lines += [row_of("program", *heads.values(), "runs"), "|---" * (len(heads) + 2) + "|"]
    for row in rows:
        title = f"**{row['program']}**" if row["xmtree"] else row["program"]
        lines.append(row_of(title, *cells(row, heads), row["runs"]))
    return "\n".join(lines) + "\n"


def cells(row, heads):
    """The measures, or why there are none."""
    if not row["runs"]:
        ended = f"over {row['over_s']:.0f} s" if "over_s" in row else f"failed: {row['failed']}"
        return [ended if key == "train_s" else "" for key in heads]
    return [cell(row[key]) for key in heads]


def cell(measure):
    """The median and, of several runs that differ, the least and the most."""
    middle, least, most = (number(measure[name]) for name in ("median", "least", "most"))
    return middle if least == most else f"{middle} ({least}-{most})"


def number(value):
    """Three digits, or all before the point."""
    return (
        f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    )


def settings():
    """How every program is set."""
    yield "## Settings\n"
    yield row_of("program", "settings", "remark")
    yield "|---|---|---|"
    for program in PROGRAMS:
        told = dict.fromkeys(options(each) for each in program.settings.values())
        yield row_of(program.name, " or ".join(told), program.note)
    yield ""


def options(settings):
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "the defaults"


def left_out(rows, shapes, sources, missing):
    """What was not run, and why."""
    ran = {(row["task"], row["program"]) for row in rows}
    lacking = {}
    for program in PROGRAMS:
        why = {
            task.name: reason(program, task, shapes.get(task.name), sources, missing)
            for task in TASKS
            if (task.name, program.name) not in ran
        }
        for text in dict.fromkeys(why.values()):
            names = tuple(name for name, other in why.items() if other == text)
            lacking.setdefault((names, text), []).append(program.name)
    yield "## Not run\n"
    yield row_of("tasks", "programs", "why")
    yield "|---|---|---|"
    for (names, text), programs in lacking.items():
        yield row_of(", ".join(names), "; ".join(programs), text)
    yield ""


def reason(program, task, shape, sources, missing):
    why = program.refusal(task, shape)
    if why is None and sources.get(program.name) is None:
        why = f"not installed: {missing.get(program.package, 'no environment has it')}"
    if why is None and shape is None and not task.present():
        why = "the data set is not here"
    return why or "not run yet"


def row_of(*texts):
    return "| " + " | ".join(str(text).replace("|", "\\|") for text in texts) + " |"
