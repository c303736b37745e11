"""Plots of trees: their upper levels and the depth at which examples stop."""

import math
from itertools import repeat
from operator import add
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from xmtree import _validation
from xmtree._trees import upper_nodes
from xmtree.plotting._figures import axes, one_line, percent, shortened, width_of

#: Largest number of nodes that is still readable.
_MAX_NODES = 2000
#: Font size in points, if there is space for it.
_SIZE = 9.0
#: Sizes in inches of a new figure: largest width of a level, height of a row, margins.
_WIDEST_LEVEL, _ROW, _AROUND = 3.0, 0.22, 0.9


def plot_tree(
    estimator: Any, tree: int = 0, max_depth: int = 3, ax: Axes | Figure | None = None
) -> Axes:
    """Draw the upper levels of a tree, the root on the left.

    The area of a node and the width of the line to it show its share of the root's examples
    (an example may take several branches of LdSM's trees). Its color shows the entropy of their
    labels. The text beside a node has three parts:

    - its most frequent label (LdSM, Recall Tree, LOMtree and all leaves), the number of labels
      below (inner nodes of filter and random trees), or its split (boosting; examples for which
      it holds go up).
    - its share of the examples.
    - the number of nodes below it that are not drawn.

    Parameters
    ----------
    estimator : a fitted estimator with ``trees_``
        Also a pipeline that ends in one, or a ``TextClassifier`` that trained one.
    tree : int, default=0
        Index in ``trees_``.
    max_depth : int, default=3
        Number of levels below the root to draw.
    ax : matplotlib Axes or empty Figure, optional
        A new figure by default. Figures get the size they need; names are cut to fit axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If more than 2,000 nodes would be drawn, or the tree was stored without statistics
        (LdSM's unless ``keep_statistics=True``).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from xmtree import LOMTreeClassifier
    >>> from xmtree.plotting import plot_tree
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_tree(LOMTreeClassifier(random_state=0).fit(X, y), max_depth=2)
    >>> ax.get_title().splitlines()[0]
    'LOMTreeClassifier'
    """
    learner, trees = _learner_and_trees(estimator)
    chosen = trees[_tree_number(tree, len(trees))]
    if not _validation.is_integer(max_depth, 0):
        raise ValueError(f"max_depth must be an integer of at least 0, got {max_depth!r}")
    drawn = list(upper_nodes(chosen, max_depth))
    if len(drawn) > _MAX_NODES:
        raise ValueError(
            f"max_depth={max_depth} would draw {len(drawn)} nodes; at most {_MAX_NODES} are allowed"
        )
    nodes = np.array([node for node, _, _ in drawn])
    x, y = np.array([level for _, level, _ in drawn]), _heights(chosen, nodes)
    n_levels, n_rows = int(x.max()) + 1, round(float(y.max())) + 1
    shares = chosen.n_examples / max(float(chosen.n_examples[0]), 1e-300)
    below = _descendants(chosen)
    names = [one_line(_name(learner, chosen, node)) for node in nodes]
    facts = [
        f": {100 * shares[node]:.3g} %" + (f", +{below[node]:,}" if goes_on else "")
        for node, _, goes_on in drawn
    ]
    longest = max(map(width_of, map(add, names, facts), repeat(_SIZE))) / 72
    level = min(_WIDEST_LEVEL, longest + 0.7)
    ax = axes(ax, max(6.0, level * n_levels + _AROUND), max(2.0, _ROW * n_rows + _AROUND))
    depth = int(chosen.depth.max())
    part = f"all {depth + 1} levels"
    if depth >= n_levels:
        part = f"the upper {n_levels} of {depth + 1} levels (+: nodes below)"
    ax.set_title(f"{type(learner).__name__}\ntree {tree} of {len(trees)}, {part}")
    ax.set(xlim=(-0.12, n_levels), ylim=(n_rows - 0.4, -0.6))
    ax.set_axis_off()
    entropy = chosen.label_entropy
    circles = _circles(ax, x, y, entropy[nodes], float(entropy.max()))
    # The text must fit into these points per level and per row.
    width, height = _size_in_points(ax)
    level, row = width / (n_levels + 0.12), height / (n_rows + 0.2)
    size, largest = min(_SIZE, 0.75 * row), min(14.0, 0.8 * row)
    areas = np.clip(shares[nodes], 0.04, 1)
    diameters = largest * np.sqrt(areas)
    circles.set_sizes(diameters**2)
    starts = x + (diameters / 2 + 3) / level
    ends = {}
    for at, node in enumerate(nodes.tolist()):
        free = (x[at] + 0.92 - starts[at]) * level - width_of(facts[at], size)
        text = shortened(names[at], free, size) + facts[at]
        ax.text(starts[at], y[at], text, size=size, va="center", parse_math=False, in_layout=False)
        ends[node] = starts[at] + (width_of(text, size) + 2) / level, y[at]
    inner = [at for at, node in enumerate(nodes) if node]
    lines = [[ends[int(chosen.parent[nodes[at]])], (x[at], y[at])] for at in inner]
    widths = [0.6 + 3 * min(float(shares[nodes[at]]), 1) for at in inner]
    ax.add_collection(LineCollection(lines, linewidths=widths, colors="0.6", zorder=1))
    return ax


def plot_depth_histogram(
    estimator: Any, tree: int | None = None, ax: Axes | Figure | None = None
) -> Axes:
    """Draw the share of examples that stop at each depth.

    For label trees, a dashed line shows the depth of a balanced tree with one leaf per label:
    log K to the base of the tree's arity. Examples are counted as in ``n_examples``: weighted by
    importance, in every pass, and for LdSM on every path.

    Parameters
    ----------
    estimator : as for :func:`plot_tree`
    tree : int, optional
        Index in ``trees_``; by default all trees are combined.
    ax : matplotlib Axes or empty Figure, by default a new one

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import FilterTreeClassifier
    >>> from xmtree.plotting import plot_depth_histogram
    >>> X, y = load_digits(return_X_y=True)
    >>> ax = plot_depth_histogram(FilterTreeClassifier(random_state=0).fit(X, y))
    >>> round(float(sum(bar.get_height() for bar in ax.patches)), 6)
    1.0
    """
    learner, trees = _learner_and_trees(estimator)
    which = f"all {len(trees)} trees" if len(trees) > 1 else "tree 0 of 1"
    chosen = trees
    if tree is not None:
        chosen = [trees[_tree_number(tree, len(trees))]]
        which = f"tree {tree} of {len(trees)}"
    counts = np.zeros(1 + max(int(one.depth.max()) for one in chosen))
    for one in chosen:
        counts += np.bincount(one.depth, learner._ended(one), len(counts))
    counts = np.trim_zeros(counts, "b") if counts.any() else counts[:1]
    shares = counts / max(counts.sum(), 1e-300)
    ax = axes(ax, 5.5, 3.2)
    ax.bar(np.arange(len(shares)), shares, width=0.85)
    mean = float(shares @ np.arange(len(shares)))
    ax.set_title(f"{type(learner).__name__}\n{which}, mean depth {mean:.1f}")
    ax.set(xlabel="depth at which examples stop", ylabel="share of examples")
    n_labels = len(learner.classes_)
    if "feature" not in chosen[0] and n_labels > 1:
        arity = chosen[0].children.shape[1]
        balanced = math.log(n_labels, arity)
        base = "₂₃₄₅₆₇₈₉"[arity - 2] if arity < 10 else f" to the base {arity}, "
        text = f"log{base} {n_labels:,} = {balanced:.1f}"
        ax.axvline(balanced, color="0.5", linestyle="--", label=text)
        ax.legend()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(percent)
    return ax


def _learner_and_trees(estimator: Any) -> tuple[Any, list[Any]]:
    """Return the learner inside a pipeline or text classifier, and its trees."""
    if isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    learner = getattr(estimator, "learner_", estimator)
    if not hasattr(type(learner), "trees_"):
        raise AttributeError(f"{type(learner).__name__} has no trees to draw")
    trees = learner.trees_
    if "n_examples" not in trees[0]:
        raise ValueError(
            f"this {type(learner).__name__} has no node statistics; "
            "train it with keep_statistics=True"
        )
    return learner, trees


def _tree_number(tree: Any, n_trees: int) -> int:
    if not isinstance(tree, int | np.integer) or not 0 <= tree < n_trees:
        raise ValueError(f"tree must be an integer from 0 to {n_trees - 1}, got {tree!r}")
    return int(tree)


def _size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes in the figure's layout."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    area = ax.get_window_extent()
    return area.width * 72 / figure.dpi, area.height * 72 / figure.dpi


def _circles(ax: Axes, x: Any, y: Any, entropy: Any, highest: float) -> PathCollection:
    """Draw the nodes in the colors of their entropies, and a color bar."""
    colors = colormaps["viridis"].resampled(32)
    circles = ax.scatter(x, y, c=entropy, cmap=colors, vmin=0, vmax=highest or 1.0, zorder=2)
    circles.set_gid("nodes")
    figure = ax.get_figure(root=True)
    assert figure is not None
    height = ax.get_position().height * figure.get_figheight()
    shrink = min(0.8, 3 / height)
    bar = figure.colorbar(
        circles, ax=ax, label="label entropy, nats", shrink=shrink, aspect=shrink * height / 0.12
    )
    assert bar.solids is not None
    bar.solids.set_edgecolor("face")  # avoids seams in viewers
    return circles


def _heights(tree: Any, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a row per node, in depth-first order: leaves below each other, parents between."""
    heights = dict.fromkeys(nodes.tolist(), 0.0)
    inside = {node: [c for c in tree.children[node].tolist() if c in heights] for node in heights}
    row = 0
    for node in heights:
        if not inside[node]:
            heights[node] = float(row)
            row += 1
    for node in reversed(nodes.tolist()):
        if inside[node]:
            heights[node] = float(np.mean([heights[child] for child in inside[node]]))
    return np.array(list(heights.values()))


def _descendants(tree: Any) -> NDArray[np.int64]:
    """Return the number of nodes below each node."""
    below = np.zeros(len(tree.depth), np.int64)
    for depth in range(int(tree.depth.max()), 0, -1):
        nodes = np.flatnonzero(tree.depth == depth)
        np.add.at(below, tree.parent[nodes], below[nodes] + 1)
    return below


def _name(learner: Any, tree: Any, node: int) -> str:
    """Return the name beside a node."""
    classes = learner.classes_
    if "feature" in tree:
        return _question(learner, tree, node)
    if "label_starts" in tree:
        return _first(classes, tree.labels, tree.label_counts, tree.label_starts[node : node + 2])
    if tree.label[node] < 0:
        return f"{tree.n_labels[node]:,} labels"
    held = "(held) " if "held" in tree and tree.held[node] else ""
    return f"{held}{classes[tree.label[node]]}"


def _question(learner: Any, tree: Any, node: int) -> str:
    """Return the split of a node of a boosted tree, or the leaf's class with the largest vote."""
    leaf, feature = tree.leaf[node], tree.feature[node]
    if leaf >= 0:
        bounds = tree.vote_starts[leaf : leaf + 2]
        return _first(learner.classes_, tree.vote_classes, tree.votes, bounds)
    name = getattr(learner, "feature_names_in_", {feature: f"x[{feature}]"})[feature]
    start, end = tree.category_starts[node : node + 2]
    if end > start:
        return f"{name} in {{{', '.join(f'{value:g}' for value in tree.categories[start:end])}}}"
    return f"{name} ≤ {tree.threshold[node]:.3g}"


def _first(classes: Any, labels: Any, counts: Any, bounds: Any) -> str:
    """Return the label with the largest count within the bounds."""
    inside = slice(*bounds)
    return str(classes[labels[inside][np.argmax(counts[inside])]]) if np.diff(bounds)[0] else "none"
