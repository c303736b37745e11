"""The axes that a function draws into, and what their ticks say."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator


def axes(ax: Axes | Figure | None, width: float, height: float) -> Axes:
    """``ax``, or new ones: of an empty figure, or of a new one. The size is in inches."""
    if isinstance(ax, Axes):
        return ax
    if ax is None:
        # Imported here: who passes axes or a figure needs no windows.
        from matplotlib import pyplot

        ax = pyplot.figure()
    ax.set_layout_engine("constrained")
    ax.set_size_inches(width, height)
    return ax.subplots()


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes, as the figure's layout places them."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    area = ax.get_window_extent()
    return area.width * 72 / figure.dpi, area.height * 72 / figure.dpi


def percent(share: float, position: float = 0) -> str:
    """A share as a tick label."""
    return f"{100 * share:.4g} %"


def plain_log_ticks(axis: Axis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 5, 10, ..., as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
