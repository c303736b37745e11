"""Plots of learners and of their predictions, with matplotlib.

Only this module needs matplotlib (``pip install matplotlib``) and cannot be imported without.
Each function draws into ``ax``, or into a new pyplot figure if that is None, and returns the
axes. Change titles, limits and scales there, and save with ``ax.figure.savefig("name.svg")``.
Programs without windows pass a ``matplotlib.figure.Figure()``.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "xmtree.plotting needs matplotlib, which is not installed: pip install matplotlib"
    ) from error

from xmtree.plotting._curves import plot_confusion, plot_reliability
from xmtree.plotting._trees import plot_depth_histogram, plot_tree

__all__ = ["plot_confusion", "plot_depth_histogram", "plot_reliability", "plot_tree"]
