"""The structure of learned trees as read-only arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted


class TreeMixin:
    """For learners whose model has ``trees()``."""

    _model: Any

    @property
    def trees_(self) -> list[Bunch]:
        """Every tree's arrays, one entry per node; a new copy with every access."""
        check_is_fitted(self)
        trees = [_frozen(tree) for tree in self._model.trees()]
        if not trees:
            raise AttributeError(
                f"this {type(self).__name__} was saved for prediction only (compact=True), without "
                "the statistics of its trees"
            )
        return trees

    @property
    def tree_(self) -> Bunch:
        """The arrays of the only tree."""
        trees = self.trees_
        if len(trees) != 1:
            raise AttributeError(
                f"this {type(self).__name__} has {len(trees)} trees; use trees_, a list of them"
            )
        return trees[0]

    def _ended(self, tree: Bunch) -> NDArray[np.float64]:
        """How many of the examples have each node as the last of their path."""
        leaves = np.all(tree.children < 0, axis=1)
        return np.where(leaves, tree.n_examples, 0.0)


def upper_nodes(tree: Any, levels: int) -> Iterator[tuple[int, int, bool]]:
    """The nodes of the upper levels, depth first: number, level, whether more is below."""
    stack = [(0, 0)]
    while stack:
        node, level = stack.pop()
        inside = [int(child) for child in tree.children[node] if child >= 0]
        yield node, level, bool(inside) and level == levels
        if level < levels:
            stack.extend((child, level + 1) for child in reversed(inside))


def _frozen(tree: dict[str, Any]) -> Bunch:
    for value in tree.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return Bunch(**tree)
