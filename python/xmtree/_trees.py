"""The structure of learned trees as read-only arrays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from xmtree import _core
from xmtree._typing import MatrixLike


class TreeMixin:
    """For learners whose model has ``trees()`` and ``leaves()``."""

    _model: _core.Classifier

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

    def decision_path(self: Any, X: MatrixLike) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """The nodes that each row passes on its way to its prediction, as in forests.

        A row may end at several leaves of a tree: in :class:`LdSMClassifier` as far as routers
        send it on to several children, in :class:`RecallTreeClassifier` at the end of each path
        whose candidates compete (``beam_size``). The order of the leaves is not kept.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        indicator : CSR matrix of shape (n, number of nodes of all trees), int64
            1 where the row passes the node.
        n_nodes_ptr : int64 array of length number of trees + 1
            Node ``i`` of ``trees_[t]`` is column ``n_nodes_ptr[t] + i``.
        """
        now, rows = self._now(X)
        trees = now.trees_
        ends = np.cumsum([0, *(len(tree.parent) for tree in trees)])
        starts, numbers, leaves = now._call(now._model.leaves, rows)
        above = np.full(ends[-1], -1)
        for tree, (start, end) in zip(trees, pairwise(ends), strict=True):
            above[start:end][1:] = tree.parent[1:] + start
        row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        node = leaves + ends[numbers]
        passed = []
        while len(node):
            passed.append((row, node))
            goes_on = above[node] >= 0
            row, node = row[goes_on], above[node[goes_on]]
        row, node = (np.concatenate(part) for part in zip(*passed, strict=True))
        shape = (len(starts) - 1, int(ends[-1]))
        indicator = sp.csr_matrix((np.ones(len(row), np.int64), (row, node)), shape=shape)
        # Leaves of one tree have the nodes above them in common.
        indicator.data[:] = 1
        return indicator, ends

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
