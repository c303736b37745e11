"""Names in plots: as wide as there is space for, and none on top of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Bbox

from xmtree._printable import printable

#: Points between the middle of a point and its name.
_GAP = 7.0


def width_of(text: str, size: float) -> float:
    """The width of ``text`` in points, at a font size in points."""
    width, _, _ = text_to_path.get_text_width_height_descent(
        text, FontProperties(size=size), ismath=False
    )
    return float(width)


def one_line(text: Any) -> str:
    """``text`` without line breaks, tabs, repeated spaces and other control characters."""
    return printable(" ".join(str(text).split()))


def shortened(text: Any, width: float, size: float) -> str:
    """``text`` in one line, cut to ``width`` points; what is left out is an ellipsis."""
    line = one_line(text)
    if width_of(line, size) <= width:
        return line
    low, high = 0, len(line) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if width_of(line[:middle].rstrip() + "…", size) <= width:
            low = middle
        else:
            high = middle - 1
    return line[:low].rstrip() + "…"


def name_points(
    ax: Axes,
    names: Sequence[str],
    x: Sequence[float],
    y: Sequence[float],
    colors: Sequence[Any],
    sides: Sequence[int] = (1, -1),
) -> None:
    """Writes a name beside each point, where it covers no other name and no point.

    Call it when the axes have their final limits. A name that had to move away from its point is
    linked to it by a thin line in the point's color. ``sides``: right (1) or left (-1) of points.
    """
    size = 9.0
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # places the axes
    scale = 72 / figure.dpi
    points = ax.transData.transform(np.column_stack([x, y])) * scale
    frame = Bbox(figure.bbox.get_points() * scale)
    taken = [Bbox.from_bounds(px - 5, py - 5, 10, 10) for px, py in points]
    shifts = sorted(np.arange(-30, 31) * size / 4, key=lambda shift: (abs(shift), -shift))
    for at in np.argsort(-points[:, 1], kind="stable"):
        (px, py), width, height = points[at], width_of(names[at], size) + 2, 1.35 * size
        boxes = [
            (side, shift, Bbox.from_bounds(left, py + shift - height / 2, width, height))
            for shift in shifts
            for side in sides
            for left in [px + _GAP if side > 0 else px - _GAP - width]
        ]
        inside = [box for box in boxes if _contains(frame, box[2])] or boxes
        side, shift, box = min(inside, key=lambda box: _overlap(box[2], taken))
        taken.append(box)
        note = ax.annotate(
            names[at],
            (x[at], y[at]),
            xytext=(side * _GAP, shift),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="center",
            size=size,
            parse_math=False,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "lw": 0.6, "color": colors[at], "shrinkA": 0}
            if abs(shift) > size
            else None,
        )
        note.set_in_layout(False)


def _contains(frame: Bbox, box: Bbox) -> bool:
    return bool(
        frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
    )


def _overlap(box: Bbox, taken: Sequence[Bbox]) -> float:
    """The area that is covered twice."""
    shared = (Bbox.intersection(box, other) for other in taken)
    return float(sum(common.width * common.height for common in shared if common is not None))
