"""Show what is in a model file.

Prints parameters, sizes and, for trees, node statistics and the upper part of
the tree.

example:
  xmtree inspect model.xmtree --depth 4
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

import xmtree
from xmtree._online import OnlineLearner


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree inspect``."""
    parser.add_argument("model", metavar="MODEL", help="a file of xmtree fit or of save()")
    parser.add_argument(
        "--depth", type=int, default=3, help="levels of the tree to show (default 3)"
    )


def run(options: argparse.Namespace) -> int:
    """Prints the model."""
    learner = xmtree.load(options.model)
    size = os.path.getsize(options.model) / 1e6
    print(f"{type(learner).__name__}, {size:.2f} MB")
    print(f"  labels      {len(learner.classes_)} ({learner._y_form})")
    print(f"  features    {learner.n_features_in_}")
    if isinstance(learner, OnlineLearner):
        print(f"  examples    {learner.n_examples_seen_} learned")
        print(f"  progressive error  {learner.progressive_loss_:.4f}")
    print("parameters")
    for name, value in sorted(learner.get_params(deep=False).items()):
        print(f"  {name:<20}{value!r}")
    trees = getattr(learner, "trees_", [])
    for number, tree in enumerate(trees):
        print("\n".join(_summary(tree, number, len(trees))))
    if trees:
        print("tree" if len(trees) == 1 else "tree 0")
        print("\n".join(_lines(trees[0], options.depth)))
    return 0


def _summary(tree: Any, number: int, n_trees: int) -> Iterator[str]:
    children, depth, seen = tree["children"], tree["depth"], tree["n_examples"]
    leaves = np.all(np.asarray(children) < 0, axis=1)
    at_leaves = seen[leaves].astype(float)
    mean = float(np.average(depth[leaves], weights=at_leaves)) if at_leaves.sum() else 0.0
    title = "tree" if n_trees == 1 else f"tree {number}"
    yield (
        f"{title}: {int((~leaves).sum())} internal nodes, {int(leaves.sum())} leaves, "
        f"depth {int(depth.max())}, {mean:.1f} where examples stop"
    )


def _lines(tree: Any, levels: int) -> Iterator[str]:
    """The upper levels, a line per node, indented."""
    skipped = {"parent", "children", "depth"}
    per_node = [
        name
        for name, values in tree.items()
        if name not in skipped
        and isinstance(values, np.ndarray)
        and values.shape == tree["depth"].shape
    ]
    stack = [(0, 0)]
    while stack:
        node, level = stack.pop()
        inside = [int(child) for child in tree["children"][node] if child >= 0]
        facts = ", ".join(f"{name} {_short(tree[name][node])}" for name in per_node)
        kind = "node" if inside else "leaf"
        more = " ..." if inside and level == levels else ""
        yield f"{'  ' * (level + 1)}{kind} {node}: {facts}{more}"
        if level < levels:
            stack.extend((child, level + 1) for child in reversed(inside))


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, np.floating) else str(value)
