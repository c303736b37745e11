"""Show the contents of a model file.

Prints parameters, sizes and, for trees, node statistics and the upper part of
the tree, which --plot also draws.

examples:
  xmtree inspect model.xmtree --depth 4
  xmtree inspect model.xmtree --plot tree.svg
"""

import argparse
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xmtree import TextClassifier
from xmtree._online import OnlineLearner
from xmtree._printable import printable
from xmtree._trees import upper_nodes
from xmtree.cli.errors import WrongUsage
from xmtree.cli.options import at_least
from xmtree.cli.trained import Model

#: Arrays of a tree that the listing already shows, or that do not have one entry per node.
_NOT_LISTED = {"parent", "children", "depth", "candidates", "candidate_counts"}
_NOT_LISTED |= {"category_starts", "categories"}
_NOT_LISTED |= {"vote_starts", "vote_classes", "votes", "other_votes"}

#: Largest number of label or feature names in a line.
_MOST_NAMES = 8

#: Largest number of trees that get a line.
_MOST_TREES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xmtree inspect``."""
    parser.add_argument("model", metavar="MODEL", help="a file written by xmtree fit or save()")
    parser.add_argument(
        "--depth", type=at_least(0), default=3, help="levels of the tree to show (default 3)"
    )
    parser.add_argument(
        "--tree", type=int, default=0, metavar="N", help="the tree to show (default 0, the first)"
    )
    parser.add_argument(
        "--plot", metavar="OUT", help="draw these levels to a file, .svg, .png or .html"
    )


def run(options: argparse.Namespace) -> int:
    """Print the model."""
    if options.plot and Path(options.plot).suffix not in (".svg", ".png", ".html"):
        raise WrongUsage(f"--plot must end in .svg, .png or .html, got {options.plot}")
    model = Model.load(options.model)
    learner: Any = model.learner
    features = None
    if isinstance(model.estimator, TextClassifier):
        features = model.estimator._features
    trees = getattr(learner, "trees_", [])
    if options.plot and not trees:
        raise WrongUsage(f"{options.model}: {type(learner).__name__} has no tree to plot")
    if options.tree and not 0 <= options.tree < len(trees):
        raise WrongUsage(f"--tree must be from 0 to {len(trees) - 1}, got {options.tree}")
    size = os.path.getsize(options.model) / 1e6
    around = f"{type(model.estimator).__name__}, " if features is not None else ""
    print(f"{around}{type(learner).__name__}, {size:.2f} MB")
    print(f"  labels      {len(learner.classes_)} ({learner._y_form}): {_some(learner.classes_)}")
    names = f": {_some(model.numbers)}" if model.numbers else ""
    print(f"  features    {learner.n_features_in_}{names}")
    if features is not None and features.settings.word_ngrams and features.settings.n_bits is None:
        print(f"  words       {len(features.words())}")
    if isinstance(learner, OnlineLearner):
        print(f"  examples    {learner.n_examples_seen_} learned")
        print(f"  progressive error  {learner.progressive_loss_:.4f}")
    if hasattr(learner, "progressive_recall_"):
        print(f"  progressive recall {learner.progressive_recall_:.4f}")
        print(f"  candidates  at most {learner.max_candidates_} per node")
    print("parameters")
    params = learner.get_params(deep=False)
    if features is not None:
        params |= vars(features.settings)
    # Show the parameters of training: others may have been changed before the model was saved.
    for name, value in learner._fitted_params().items():
        if name in params and name not in learner._prediction_params:
            params[name] = value
    for name, value in sorted(params.items()):
        print(f"  {name:<22}{value!r}")
    for number, tree in enumerate(trees[:_MOST_TREES]):
        title = "tree" if len(trees) == 1 else f"tree {number}"
        ended = learner._ended(tree) if "n_examples" in tree else np.zeros(0)
        print(f"{title}: {_summary(tree, ended)}")
    if len(trees) > _MOST_TREES:
        print(f"and {len(trees) - _MOST_TREES} more")
    if trees:
        print("tree" if len(trees) == 1 else f"tree {options.tree} of {len(trees)}")
        print("\n".join(_lines(trees[options.tree], learner.classes_, options.depth)))
    if options.plot:
        _plot(learner, options.tree, options.depth, Path(options.plot))
    return 0


def _some(names: Any) -> str:
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return ", ".join(printable(name) for name in islice(names, _MOST_NAMES)) + more


def _summary(tree: Any, ended: Any) -> str:
    leaves, depth = np.all(tree.children < 0, axis=1), tree.depth
    # Trees without statistics (LdSM's default) do not know where examples stop.
    stop = f", {np.average(depth, weights=ended):.1f} where examples stop" if ended.sum() else ""
    return (
        f"{int((~leaves).sum())} internal nodes, {int(leaves.sum())} leaves, "
        f"depth {int(depth.max())}{stop}"
    )


def _lines(tree: Any, classes: Any, levels: int) -> Iterator[str]:
    """Yield the upper levels, an indented line per node."""
    for node, level, goes_on in upper_nodes(tree, levels):
        kind = "leaf" if np.all(tree.children[node] < 0) else "node"
        more = " ..." if goes_on else ""
        yield f"{'  ' * (level + 1)}{kind} {node}: {_statistics(tree, classes, node)}{more}"


def _statistics(tree: Any, classes: Any, node: int) -> str:
    """Return the statistics of a node as text."""
    found = {
        name: values[node]
        for name, values in tree.items()
        if name not in _NOT_LISTED
        and isinstance(values, np.ndarray)
        and values.shape == tree.depth.shape
    }
    if "label" in found:
        found["label"] = classes[found["label"]]
    if "candidate_starts" in tree:
        start, end = tree.candidate_starts[node : node + 2]
        found["candidates"] = end - start
    return ", ".join(f"{name} {_short(value)}" for name, value in found.items())


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, np.floating) else printable(value)


def _plot(learner: Any, tree: int, levels: int, path: Path) -> None:
    """Draw the upper levels."""
    # Only this option needs matplotlib.
    try:
        from xmtree.plotting import plot_tree
    except ImportError as error:
        raise RuntimeError(str(error)) from error
    from matplotlib.figure import Figure

    from xmtree.plotting._figures import house_style, write

    with house_style():
        figure = Figure()
        title = plot_tree(learner, tree, levels, figure).get_title()
        write(figure, path, title.replace("\n", ": "))
