"""Pictures of learners and of what they predict, by matplotlib.

It needs matplotlib (``pip install matplotlib``): without it importing this module fails, and
nothing else in the package does. Each function draws into ``ax``, or into a new figure of pyplot
where that is None, and returns the axes: change titles, limits and scales there, and save by
``ax.figure.savefig("name.svg")``. Programs without windows pass a ``matplotlib.figure.Figure()``.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "xmtree.plotting needs matplotlib, which is not installed: pip install matplotlib"
    ) from error

from xmtree.plotting._curves import plot_confusion, plot_reliability
from xmtree.plotting._trees import plot_depth_histogram, plot_tree

__all__ = [
    "plot_confusion",
    "plot_depth_histogram",
    "plot_reliability",
    "plot_tree",
]
