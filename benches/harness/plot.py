"""Pictures of the pages as small SVG files: panels of points, which are rasterized, and bars."""

import re
from itertools import product
from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Bbox
from xmtree.plotting._figures import COLORS, GRAY, house_style, write

FOLDER = Path(__file__).parents[2] / "docs" / "figures"
#: Places of a name around its point, in degrees, and their distances.
ANGLES = (0, 180, 90, 270, 30, 330, 150, 210, 60, 300, 120, 240)
DISTANCES = (7, 11, 16, 22, 30, 40, 52, 66)


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


def looks(labels, other=None):
    """Return the color of each label: its learner's, else ``other`` or one of a cycle."""
    names = [re.sub("xmtree |, .*", "", label) for label in labels]
    cycle = (COLORS.get(name, other or f"C{n}") for n, name in enumerate(names))
    return dict(zip(labels, cycle, strict=True))


def points(groups, style, x_label, y_label, n_columns=3):
    """Return panels of points with a logarithmic x axis; names stand at single points.

    ``groups`` maps title -> label -> x and y; ``style`` has the colors of the labels, in order.
    """
    n_lines = ceil(len(groups) / n_columns)
    figure = Figure(figsize=(10, 3 * n_lines), dpi=72, layout="constrained")
    axes = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    for ax in axes[len(groups) :]:
        ax.set_axis_off()
    shown = {}
    for title, ax in zip(groups, axes, strict=False):
        for label in [label for label in style if label in groups[title]]:
            at, color = groups[title][label], style[label]
            shown[label] = ax.scatter(*at, 36, color, zorder=3, rasterized=True)
        is_first = ax.get_subplotspec().is_first_col()
        ax.set(title=title, xlabel=x_label, ylabel=y_label if is_first else "", xscale="log")
        ax.margins(0.1)
        ax.locator_params(axis="y", nbins=4)
        ax.xaxis.set(major_locator=LogLocator(numticks=6), minor_locator=NullLocator())
        ax.xaxis.set_major_formatter("{x:g}")
    if any(np.ndim(x) for found in groups.values() for x, _ in found.values()):
        figure.legend(shown.values(), shown, loc="outside lower center", ncols=4)
        return figure
    figure.draw_without_rendering()
    for found, ax in zip(groups.values(), axes, strict=False):
        write_names(ax, {name: found[name] for name in style if name in found}, style)
    return figure


def write_names(ax, found, style):
    """Write each name beside its point, where neither points nor other names are."""
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    pixels = ax.transData.transform(list(found.values()))
    taken = [Bbox.from_extents(*(at - 4), *(at + 4)) for at in pixels]
    line = {"arrowstyle": "-", "color": GRAY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
    for name, at in found.items():
        shown = re.sub(r"xmtree |scikit-learn |Classifier| XLinear|\(.*", "", name)
        look = {"size": 8, "color": style[name], "in_layout": False, "va": "center"}
        text = ax.annotate(shown, at, (0, 0), textcoords="offset points", arrowprops=line, **look)
        for distance, angle in product(DISTANCES, np.radians(ANGLES)):
            x, y = np.cos(angle), np.sin(angle)
            side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
            text.set(position=(x * distance, y * distance), ha=side)
            text.update_positions(renderer)
            box = Text.get_window_extent(text, renderer)
            if ax.bbox.count_contains(box.corners()) == 4 and not box.count_overlaps(taken):
                break
        text.arrow_patch.set_visible(distance > DISTANCES[0])
        taken.append(box)


def bars(groups, names, x_label, mark=None, other=None):
    """Return horizontal bars, a group for each name.

    ``groups`` maps a label to a value or None for each name. A line is drawn at x = ``mark``.
    Labels that are no learners of xmtree have the color ``other``.
    """
    figure = Figure(figsize=(7, 0.17 * len(names) * (len(groups) + 1) + 1), layout="constrained")
    ax = figure.subplots()
    width = 1 / (len(groups) + 1)
    for place, (label, values) in enumerate(groups.items()):
        pairs = [(at, value) for at, value in enumerate(values) if value is not None]
        ys = [at + place * width for at, _ in pairs]
        ax.barh(
            ys, [value for _, value in pairs], width, label=label, color=COLORS.get(label, other)
        )
    ax.set_yticks([at + (len(groups) - 1) * width / 2 for at in range(len(names))], names)
    ax.invert_yaxis()
    ax.set_xlabel(x_label)
    if mark is not None:
        ax.axvline(mark, color="black", linewidth=0.8)
    ax.legend(loc="best")
    return figure
