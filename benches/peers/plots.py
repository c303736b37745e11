"""Accuracy against time, and time against the number of classes, as SVG."""

from itertools import groupby
from math import ceil

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from xmtree.plotting._figures import house_style
from xmtree.plotting._figures import write as write_figure

from peers import report
from peers.programs import PROGRAMS
from peers.tasks import TASKS

#: A colour for each package, a marker for each of its programs.
COLORS = {
    None: "C3",
    "vowpalwabbit": "C0",
    "omikuji": "C9",
    "napkinxc": "C2",
    "libpecos": "C8",
    "fasttext": "C1",
    "scikit-learn": "C4",
    "lightgbm": "C5",
}
MARKERS = "osD^v*P<X>"
N_COLUMNS = 3
TIMES = {
    "peers-prediction.svg": ("batch_us", "µs a row in a batch, left is better"),
    "peers-training.svg": ("train_s", "s to train, left is better"),
}
#: The tasks of the README's plot.
FEW = ("naics2017-index", "omniglot", "onet-titles")
SCALING = {"train_s": "training, s", "batch_us": "prediction, µs a row in a batch"}


def looks():
    """The colour and marker of each program."""
    for package, group in groupby(sorted(PROGRAMS, key=order), key=lambda program: program.package):
        for program, marker in zip(group, MARKERS, strict=False):
            yield program.name, (COLORS[package], marker)


def order(program):
    return list(COLORS).index(program.package)


def write(rows, folder):
    """A plot for each time, with a panel for each task, and one of made problems by size."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [row for row in rows if row["runs"]]
    if not rows:
        return
    made = {task.name for task in TASKS if task.n_classes}
    with house_style():
        for name, (key, unit) in TIMES.items():
            write_figure(against_time(rows, key, unit), folder / name, unit)
        few = [row for row in rows if row["task"] in FEW]
        if few:
            figure = against_time(few, *TIMES["peers-prediction.svg"])
            write_figure(figure, folder / "peers-short.svg", "accuracy against time")
        figure = scaling([row for row in rows if row["task"] in made])
        write_figure(figure, folder / "peers-scaling.svg", "time against classes")


def against_time(rows, key, unit):
    """Panels of accuracy against a time."""
    panels = [(name, list(of)) for name, of in groupby(rows, key=lambda row: row["task"])]
    n_lines = ceil(len(panels) / N_COLUMNS)
    figure = Figure(figsize=(11, 2.8 * n_lines + 1.6), layout="constrained")
    axes = figure.subplots(n_lines, N_COLUMNS, squeeze=False).ravel()
    style, shown = dict(looks()), {}
    for ax, (name, of) in zip(axes, panels, strict=False):
        # Ours last, so that it is never hidden.
        for row in sorted(of, key=lambda row: row["xmtree"]):
            color, marker = style[row["program"]]
            at = row[key]["median"], report.accuracy(row)
            shown[row["program"]] = ax.scatter(*at, 40, color, marker=marker, zorder=3)
        what = "P@1, %" if "P@1" in of[0] else "rows with the right label, %"
        finish(ax, name, unit, what)
        logarithmic(ax.set_xscale, ax.xaxis)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    legend(figure, shown)
    return figure


def scaling(rows):
    """Lines of times against the number of classes."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    style, shown = dict(looks()), {}
    for ax, (key, title) in zip(figure.subplots(1, 2), SCALING.items(), strict=True):
        for program, (color, marker) in style.items():
            of = [row for row in rows if row["program"] == program]
            if of:
                at = [row["shape"][2] for row in of], [row[key]["median"] for row in of]
                (shown[program],) = ax.plot(*at, color=color, marker=marker, linewidth=1)
        finish(ax, title, "classes", title)
        logarithmic(ax.set_xscale, ax.xaxis)
        logarithmic(ax.set_yscale, ax.yaxis)
    legend(figure, shown)
    return figure


def finish(ax, title, x, y):
    ax.set(title=title, xlabel=x, ylabel=y)
    ax.grid()


def logarithmic(set_scale, axis):
    set_scale("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def legend(figure, shown):
    names = [name for name, _ in looks() if name in shown]
    handles = [shown[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=5)
