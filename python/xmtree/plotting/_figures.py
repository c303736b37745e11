"""Shared parts of figures: axes, ticks, text that fits, and reproducible files."""

import io
import re
from bisect import bisect_right
from contextlib import AbstractContextManager
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from xmtree._printable import printable

#: Color of each learner in the pictures of the documentation, and that of other programs.
COLORS = {
    "OAA": "#2f7ed8",
    "LOMtree": "#e4572e",
    "10 LOMtrees": "#b3261e",
    "Recall Tree": "#2f9e44",
    "filter tree": "#8e5bd9",
    "random tree": "#c16bb0",
    "LdSM": "#d98200",
    "GAMBLE": "#0b96a8",
    "SAMME": "#7d8b2f",
}
GRAY = "#7c828b"
#: Colors of figures, as in page.css, and their replacements for readers who prefer dark pages.
_INK, _RULE, _CARD = "#1d2330", "#e3e4e0", "#ffffff"
_DARK = {_INK: "#e8eaee", _RULE: "#2f3541", _CARD: "#1c2028"}


def axes(ax: Axes | Figure | None, width: float, height: float) -> Axes:
    """Return ``ax``, or new axes of an empty or new figure of this size in inches."""
    if isinstance(ax, Axes):
        return ax
    if ax is None:
        # pyplot may need a display, which callers with axes or a figure do not.
        from matplotlib import pyplot

        ax = pyplot.figure()
    ax.set_layout_engine("constrained")
    ax.set_size_inches(width, height)
    return ax.subplots()


def percent(share: float, position: float = 0) -> str:
    """Format a share as a tick label."""
    return f"{100 * share:.4g} %"


def width_of(text: str, size: float) -> float:
    """Return the width of ``text`` in points, at a font size in points."""
    width, _, _ = text_to_path.get_text_width_height_descent(
        text, FontProperties(size=size), ismath=False
    )
    return float(width)


def one_line(text: Any) -> str:
    """Return ``text`` without line breaks, tabs, repeated spaces and control characters."""
    return printable(" ".join(str(text).split()))


def shortened(text: Any, width: float, size: float) -> str:
    """Return ``text`` in one line, cut to ``width`` points with an ellipsis."""
    line = one_line(text)
    if width_of(line, size) <= width:
        return line
    cuts = range(len(line))
    kept = bisect_right(cuts, width, 1, key=lambda cut: width_of(line[:cut].rstrip() + "…", size))
    return line[: kept - 1].rstrip() + "…"


def house_style() -> AbstractContextManager[None]:
    """Return the style of figures written by commands, whatever the user's settings are."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    settings: dict[str, Any] = dict.fromkeys(inked, _INK)
    settings |= {
        "font.size": 9.0,
        # The first font comes with matplotlib; viewers without it use the others, no wider.
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
        "axes.titlesize": 10.0,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": _CARD,
        "figure.facecolor": _CARD,
        "grid.color": _RULE,
        "legend.frameon": False,
        "svg.fonttype": "none",  # keeps text searchable, in the page's font
        "svg.hashsalt": "xmtree",
    }
    return style.context(["default", settings])


def write(figure: Figure, path: Path, title: str) -> None:
    """Write a figure as .svg, .png, or .html with the SVG in it."""
    if path.suffix == ".png":
        figure.savefig(path, dpi=150, metadata={"Software": None})
    elif path.suffix == ".svg":
        path.write_text(_svg(figure), encoding="utf-8")
    else:
        path.write_text(page(title, card(figure, title)), encoding="utf-8")


def card(figure: Figure, title: str) -> str:
    """Return a figure as an element of a page."""
    svg = _svg(figure)
    # Nothing refers to the ids of groups.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg[svg.index("<svg") :])
    named = f'<svg role="img" aria-label="{escape(title, quote=True)}" '
    return f'<div class="card">{svg.replace("<svg ", named, 1)}</div>'


def page(title: str, body: str) -> str:
    """Return a whole page that needs no other file."""
    sheet = (files("xmtree.plotting") / "page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{sheet}</style>\n"
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _svg(figure: Figure) -> str:
    text = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(text, format="svg", metadata=nothing)
    # Colors are in style attributes; viewers other than browsers ignore these rules.
    rules = "".join(
        f'[style*="{what}: {light}"] {{ {what}: {dark} !important }} '
        for light, dark in _DARK.items()
        for what in ("fill", "stroke")
    )
    dark = f"\n@media (prefers-color-scheme: dark) {{ {rules}}}</style>"
    return text.getvalue().replace("</style>", dark, 1)
