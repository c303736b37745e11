"""The table as a page of Markdown."""

import textwrap
from functools import partial
from itertools import groupby

from peers import report
from peers.programs import PROGRAMS
from peers.tasks import TASKS

fill = partial(textwrap.fill, width=100, break_on_hyphens=False, break_long_words=False)
#: Measures of costs, and how their columns are called.
COLUMNS = {
    "train_s": "train s",
    "batch_us": "batch µs a row",
    "one_us": "one row µs",
    "file_mb": "file MB",
}
ACCURACY = {"error": "error %", "P@1": "P@1 %", "P@5": "P@5 %"}
HEAD = """# Beside other programs

How accurate are other programs on the same data, how fast and how large? The picture shows it, the
tables have the figures; `make peers` measures them and writes this page.
"""
MEANING = """\
In the tables the most accurate program comes first. They have all programs of xmtree, and of other
packages the most accurate variant. Cells are medians of the runs. All runs, with memory, PSP@k and
the time to load a model, are in `benches/figures-peers.json`.

- error %: of the first label, on the test part. P@k %: the share of the first k labels that are
  right; rows without labels are left out.
- train s: by the clock, from rows in memory to a model that predicts; Vowpal Wabbit reads a binary
  cache, fastText a text file.
- batch µs a row: 10,000 rows at once, one label each, or five where rows have label sets.
- one row µs: rows one by one through the Python class of the program.
- file MB: what is saved by default.

All programs have the same rows in the same order, the same split and the same number of threads.
Each run is a process of its own that first learns and predicts 300 of the rows untimed.
"""
FIGURES = {
    "peers-prediction.svg": "Accuracy against the time of a prediction in a batch",
    "peers-training.svg": "Accuracy against the time of training",
    "peers-scaling.svg": "Time against the number of classes, made problems",
}
#: Options that name a variant, which its name tells as well.
VARIANTS = {"estimator", "learner", "model", "loss", "collapse_every_n_layers"}


def written(rows, sources, missing=None, figures=""):
    """The page.

    Parameters
    ----------
    rows : the table
    sources : the version of each program that is installed, by name
    missing : package -> why it is not installed, where that is known
    figures : where plots are, seen from the page; without it the page has none
    """
    made = {task.name for task in TASKS if task.n_classes}
    tasks = {
        name: sorted(group, key=report.accuracy, reverse=True)
        for name, group in groupby(rows, key=lambda row: row["task"])
    }
    plots = [f"![{title}]({figures}/{name})\n" for name, title in FIGURES.items()]
    plots = plots if figures and rows else []
    shown = {name: group for name, group in tasks.items() if name not in made}
    parts = [HEAD, *plots[:1], *leaders(shown), MEANING]
    parts += [section(name, group) for name, group in shown.items()]
    if plots:
        parts += ["## Training time and made problems\n", *plots[1:]]
    return "\n".join([*parts, *settings(), *circumstances(rows), *not_run(sources, missing or {})])


def leaders(tasks):
    """The tasks on which a program of this package is the most accurate one."""
    best = {name: group[0] for name, group in tasks.items() if group[0]["runs"]}
    ahead = [name for name, row in best.items() if row["xmtree"]]
    others = [f"{name} ({row['program']})" for name, row in best.items() if not row["xmtree"]]
    if best:
        told = f"A program of xmtree is the most accurate one on {len(ahead)} of {len(best)} tasks"
        told += f"; others are on {', '.join(others)}." if others else "."
        yield fill(told) + "\n"


def circumstances(rows):
    """The machine, the versions, when, and how busy the machine was."""
    if not rows:
        yield "Nothing was run yet.\n"
        return
    head = report.head(rows)
    load = head["load"]
    busy = "; load before a run {median:.1f} ({least:.1f} to {most:.1f})".format_map(load)
    told = (
        f"Measured on {'; '.join(head['machine'])}, {joined(head['threads'])} threads each, "
        f"{head['dates'][0]} to {head['dates'][1]} UTC{busy if load else ''}. xmtree: sources of "
        f"{joined(head['xmtree'])}; others: {joined(head['peers'])}."
    )
    yield fill(told) + "\n"


def joined(items):
    return ", ".join(map(str, items)) or "none"


def section(name, rows):
    """The table of a task, and what has no result."""
    n_rows, n_columns, n_classes = rows[0]["shape"]
    names = {key for row in rows for key in row}
    heads = {key: head for key, head in ACCURACY.items() if key in names} | COLUMNS
    lines = [
        f"## {name}\n",
        f"{rows[0]['kind']}; {n_rows:,} rows x {n_columns:,} columns, {n_classes:,} labels\n",
        row_of("program", *heads.values()),
        "|---" * (len(heads) + 1) + "|",
    ]
    for row in first_of_each(row for row in rows if row["runs"]):
        title = f"**{row['program']}**" if row["xmtree"] else row["program"]
        lines.append(row_of(title, *(number(row[key]["median"]) for key in heads)))
    ended: dict[str, list[str]] = {}
    for row in rows:
        if not row["runs"]:
            slow = f"Not done within {row['over_s']:.0f} s" if "over_s" in row else ""
            ended.setdefault(slow or f"Failed ({row['failed'].rstrip('.')})", []).append(
                row["program"]
            )
    lines += ["", *(fill(f"{why}: {', '.join(names)}.") for why, names in ended.items())]
    return "\n".join(lines) + "\n"


def first_of_each(rows):
    """All of this package, and the first of each other package."""
    packages = {program.name: program.package for program in PROGRAMS}
    seen = set()
    for row in rows:
        package = packages.get(row["program"])
        if row["xmtree"] or package not in seen:
            yield row
        seen.add(package)


def number(value):
    """Three digits, or all before the point."""
    return (
        f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    )


def settings():
    """What is set, for each package."""
    yield "## Settings and versions\n"
    yield "Options are those of `benches/peers/programs.py`; where none is named, the defaults.\n"
    packages: dict[str | None, list] = {}
    for program in PROGRAMS:
        packages.setdefault(program.package, []).append(program)
    for package, programs in packages.items():
        common = set.intersection(*(options(program) for program in programs))
        told = [*sorted(common), *notes(programs)]
        if told:
            yield fill(f"- {package or 'xmtree'}: {'; '.join(told)}", subsequent_indent="  ")
    yield ""


def notes(programs):
    """The notes of programs, without those that begin another one."""
    told = dict.fromkeys(program.note for program in programs if program.note)
    return [
        note for note in told if not any(other != note and other.startswith(note) for other in told)
    ]


def options(program):
    """The options that every setting of a program has."""
    told = [
        {f"{name}={value}" for name, value in each.items() if name not in VARIANTS}
        for each in program.settings.values()
    ]
    return set.intersection(*told)


def not_run(sources, missing):
    """What is not installed, and where the reasons of the rest are."""
    yield (
        "A program runs on the tasks that it is meant for; `why_not` in "
        "`benches/peers/programs.py` has\nthe reasons.\n"
    )
    absent = [program for program in PROGRAMS if sources.get(program.name) is None]
    for program in absent:
        why = missing.get(program.package, "no environment has it")
        yield f"Not installed: {program.name} ({why})."


def row_of(*texts):
    return "| " + " | ".join(str(text).replace("|", "\\|") for text in texts) + " |"
