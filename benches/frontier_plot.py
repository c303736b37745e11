"""The plot of test_bench_frontier.py."""

from matplotlib.figure import Figure
from peers.plots import finish, logarithmic

COLORS = ("C3", "C0", "C1", "C2", "C9", "C8", "C5", "C4", "C6")
MARKERS = "os^DPXv*<"
#: Row of panels -> the place of its time among the measures, and what the axis says.
TIMES = ((2, "µs a row in a batch, left is better"), (3, "µs of a row alone, left is better"))
SCALING = (
    (1, "training", "µs a row"),
    (2, "prediction in a batch", "µs a row"),
    (0, "error", "%"),
)


def drawn(frontier, crossover, learners):
    """A panel for each data set and kind of prediction, and of times by the number of classes."""
    n_columns = len(frontier)
    figure = Figure(figsize=(3.1 * n_columns, 9.5), layout="constrained")
    axes = figure.subplots(len(TIMES) + 1, n_columns, squeeze=False)
    style = dict(zip(learners, zip(COLORS, MARKERS, strict=True), strict=True))
    shown = {}
    for row, (place, unit) in zip(axes, TIMES, strict=False):
        for ax, (name, of) in zip(row, frontier.items(), strict=True):
            for learner, measures in of.items():
                color, marker = style[learner]
                at = measures[place], measures[0]
                shown[learner] = ax.scatter(*at, 40, color, marker=marker, zorder=3)
            finish(ax, name, unit, "error, %")
            logarithmic(ax.set_xscale, ax.xaxis)
    for ax, (place, title, unit) in zip(axes[-1], SCALING, strict=False):
        for learner, of in crossover.items():
            color, marker = style[learner]
            values = [measures[place] for measures in of.values()]
            ax.plot(list(of), values, color=color, marker=marker, linewidth=1, markersize=5)
        finish(ax, f"made problems: {title}", "classes", unit)
        logarithmic(ax.set_xscale, ax.xaxis)
        if place:
            logarithmic(ax.set_yscale, ax.yaxis)
    for ax in axes[-1][len(SCALING) :]:
        ax.set_axis_off()
    names = [learner for learner in learners if learner in shown]
    handles = [shown[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=5)
    return figure
