"""P@5 against the bytes of the file, and against the time of a prediction, as SVG."""

from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from xmtree.plotting._figures import house_style
from xmtree.plotting._figures import write as write_figure

from extreme import tasks

#: Programs of the plots, with their markers; colours are in this order, too.
PROGRAMS = {
    "xmtree": "o",
    "omikuji": "s",
    "omikuji, collapsed": "D",
    "PECOS": "^",
    "one-against-all": "v",
}
COLORS = dict(zip(PROGRAMS, ("C1", "C0", "C9", "C2", "C4"), strict=True))
MEASURES = {
    "size": ("P@5 against the size of the model's file", "MB, smaller is better", "file_mb"),
    "time": ("P@5 against the time of a prediction", "µs a row, one thread, left is better", "us"),
}
N_COLUMNS = 3


def write(results, folder):
    """A plot for each measure, with a panel for each data set with label sets."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = results.newest()
    for measure, (title, unit, key) in MEASURES.items():
        panels = {name: points(found, name, key) for name in tasks.LABEL_SETS}
        panels = {name: at for name, at in panels.items() if at}
        if panels:
            with house_style():
                write_figure(drawn(title, unit, panels), folder / f"extreme-{measure}.svg", title)


def points(found, name, key):
    """Program -> (the measure, P@5), means of seeds."""
    at = {}
    for program in PROGRAMS:
        runs = [run for run in found.get((name, program), ()) if key in run]
        if runs:
            x = float(np.mean([run[key] for run in runs]))
            at[program] = x, float(np.mean([run["p"][2] for run in runs]))
    return at


def drawn(title, unit, panels):
    """All panels, on the same logarithmic axis, each with its own range of P@5."""
    n_rows = ceil(len(panels) / N_COLUMNS)
    figure = Figure(figsize=(10, 2.6 * n_rows + 0.8), layout="constrained")
    figure.suptitle(title, weight="bold")
    axes = figure.subplots(n_rows, N_COLUMNS, sharex=True, squeeze=False).ravel()
    shown = {}
    for ax, (name, at) in zip(axes, panels.items(), strict=False):
        # Ours last, so that it is never hidden.
        for program, (x, y) in reversed(at.items()):
            shape, color = PROGRAMS[program], COLORS[program]
            shown[program] = ax.scatter(x, y, 45, color, marker=shape, zorder=3)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.xaxis.set_tick_params(labelbottom=True)
        ax.margins(y=0.2)
        ax.grid()
        ax.set(title=name, xlabel=unit)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    names = [program for program in PROGRAMS if program in shown]
    handles = [shown[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure
