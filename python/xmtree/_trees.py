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
    """Trees and paths of learners whose model has ``trees()`` and ``leaves()``."""

    _model: _core.Classifier

    @property
    def trees_(self) -> list[Bunch]:
        """Return the arrays of each tree, one entry per node; each access makes a new copy."""
        check_is_fitted(self)
        trees = [Bunch(**tree) for tree in self._model.trees()]
        for tree in trees:
            for values in tree.values():
                if isinstance(values, np.ndarray):
                    values.setflags(write=False)
        if not trees:
            raise AttributeError(
                f"this {type(self).__name__} has no trees_, as it was saved for prediction only "
                "(compact=True)"
            )
        return trees

    @property
    def tree_(self) -> Bunch:
        """Return the arrays of the only tree."""
        trees = self.trees_
        if len(trees) != 1:
            raise AttributeError(
                f"this {type(self).__name__} has no tree_, as it has {len(trees)} trees; use trees_"
            )
        return trees[0]

    def decision_path(self: Any, X: MatrixLike) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """Return the nodes on the paths of each row, as scikit-learn's forests do.

        A row may reach several leaves of a tree: in :class:`LdSMClassifier` because routers may
        send it to several children, in :class:`RecallTreeClassifier` because of the beam
        (``beam_size``). The order of the leaves is not kept.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        indicator : CSR matrix of shape (n, number of nodes of all trees), int64
            1 if the node is on a path of the row.
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
        # Paths to several leaves of a tree share nodes, whose entries were summed.
        indicator.data[:] = 1
        return indicator, ends

    def _ended(self, tree: Bunch) -> NDArray[np.float64]:
        """Return the number of examples whose path ends at each node."""
        leaves = np.all(tree.children < 0, axis=1)
        return np.where(leaves, tree.n_examples, 0.0)


def upper_nodes(tree: Any, levels: int) -> Iterator[tuple[int, int, bool]]:
    """Yield number, level and whether more is below, for nodes of the upper levels, depth first."""
    stack = [(0, 0)]
    while stack:
        node, level = stack.pop()
        inside = [int(child) for child in tree.children[node] if child >= 0]
        yield node, level, bool(inside) and level == levels
        if level < levels:
            stack.extend((child, level + 1) for child in reversed(inside))
