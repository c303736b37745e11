"""Pictures of the pages as small SVG files: panels of points, and bars.

Points are rasterized; text and axes remain vectors.
"""

import re
from math import ceil
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from xmtree.plotting._figures import house_style, write

FOLDER = Path(__file__).parents[2] / "docs" / "figures"
MARKERS = "osD^v*P<X>"


def save(pictures, folder=FOLDER):
    """Write the pictures that ``pictures()`` yields as name, title and figure."""
    with house_style():
        for name, title, figure in pictures():
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.svg"
            write(figure, path, title)
            path.write_text(smaller(path.read_text(encoding="utf-8")), encoding="utf-8")


def smaller(svg):
    """Return the picture without names of groups, zero rotations and repeated fonts."""
    fonts = "font-family: 'DejaVu Sans', 'Verdana', 'Arial', sans-serif"
    svg = svg.replace(f" {fonts};", "").replace("<svg ", f'<svg style="{fonts}" ', 1)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)
    return re.sub(r"\n\s*", "\n", svg)


def looks(groups):
    """Return the color and marker of each label: a color per group, a marker per member."""
    return {
        label: (f"C{color}", marker)
        for color, group in enumerate(groups)
        for label, marker in zip(group, MARKERS, strict=False)
    }


def points(groups, style, x_label, y_label, n_columns=3):
    """Return panels of points with a logarithmic x axis.

    Parameters
    ----------
    groups : title -> label -> x and y
    style : label -> color and marker, in the order of the legend; the first is drawn on top
    """
    n_lines = ceil(len(groups) / n_columns)
    figure = Figure(figsize=(10, 2.4 * n_lines + 1.2), dpi=72, layout="constrained")
    axes = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    for ax in axes[len(groups) :]:
        ax.set_axis_off()
    shown = {}
    for title, ax in zip(groups, axes, strict=False):
        for label in [label for label in reversed(style) if label in groups[title]]:
            color, marker = style[label]
            at = groups[title][label]
            shown[label] = ax.scatter(*at, 36, color, marker=marker, zorder=3, rasterized=True)
        is_first = ax.get_subplotspec().is_first_col()
        ax.set(title=title, xlabel=x_label, ylabel=y_label if is_first else "")
        ax.margins(0.08)
        ax.locator_params(axis="y", nbins=4)
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(numticks=6))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    names = [label for label in style if label in shown]
    handles = [shown[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=4)
    return figure


def bars(groups, names, x_label, mark=None):
    """Return horizontal bars, a group for each name.

    ``groups`` maps a label to a value or None for each name. A line is drawn at x = ``mark``.
    """
    figure = Figure(figsize=(7, 0.17 * len(names) * (len(groups) + 1) + 1), layout="constrained")
    ax = figure.subplots()
    width = 1 / (len(groups) + 1)
    for place, (label, values) in enumerate(groups.items()):
        pairs = [(at, value) for at, value in enumerate(values) if value is not None]
        ys = [at + place * width for at, _ in pairs]
        ax.barh(ys, [value for _, value in pairs], width, label=label)
    ax.set_yticks([at + (len(groups) - 1) * width / 2 for at in range(len(names))], names)
    ax.invert_yaxis()
    ax.set_xlabel(x_label)
    if mark is not None:
        ax.axvline(mark, color="black", linewidth=0.8)
    ax.legend(loc="best")
    return figure
