"""Explanations of scores: contributions of features, and the weights of linear scorers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from xmtree import _validation
from xmtree._labels import encode_single
from xmtree._labels.forms import positions
from xmtree._typing import MatrixLike

#: Features with their contributions.
Pairs = list[tuple[Any, float]]
#: Memory of an entry of a dense result: pairs of the core, a CSR matrix, and the array.
_ENTRY_BYTES = 36


class Explanation(NamedTuple):
    """Explanation of a row's score of a label: the sum of ``base`` and all contributions."""

    label: Any
    score: float
    base: float
    contributions: Pairs


class ExplainMixin:
    """Contributions of features to scores."""

    def contributions(
        self: Any, X: MatrixLike, labels: ArrayLike | None = None
    ) -> NDArray[np.float64] | sp.csr_matrix:
        """Return what each feature contributes to the score of a label.

        Linear scorers: the products of weights and scaled values. Boosting: exact SHAP values, the
        mean effect of a feature over all orders in which features become known, where unknown ones
        follow the training rows of each tree (path-dependent TreeSHAP).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        labels : label, or array of shape (n,), optional
            Label to explain, one for all rows or one for each. By default each row's best label.

        Returns
        -------
        float64 array of shape (n, n_features + 1), or a CSR matrix if ``X`` is sparse
            The last column is the base, the score without features. A row sums to the score: in
            :class:`LdSMClassifier` and :class:`RecallTreeClassifier` the margin of the label's
            scorer, without ``path_features``; with ``optimizer="nag"`` before it is clamped.

        Raises
        ------
        ValueError
            If a label is unknown, the model has no scorers, or a dense result would take more than
            8 GiB or half of the memory.
        MemoryError
            If a sparse result does not fit into memory.
        """
        now, rows = self._now(X)
        n, width = rows.shape
        if not sp.issparse(rows):
            _validation.check_dense_size(n, width + 1, _ENTRY_BYTES, columns="features")
        found = contributions(now, rows, codes_of(now, rows, labels))
        return found if sp.issparse(rows) else found.toarray()

    def explain(self: Any, X: Any, k: int = 3) -> list[Explanation]:
        """Explain the scores of the best labels of one row by :meth:`contributions`.

        Parameters
        ----------
        X : array of shape (n_features,), or one row as in ``predict``
        k : int, default=3
            Number of labels to explain.

        Returns
        -------
        list of Explanation
            One for each label, best first: ``label``, ``score``, ``base``, and ``contributions``
            as pairs of a feature's name or column and its contribution, those of the largest size
            first. Features that contribute nothing are left out.
        """
        now, rows = self._now(np.reshape(X, (1, -1)) if np.ndim(X) == 1 else X)
        if rows.shape[0] != 1:
            raise ValueError(f"explain takes one row, got {rows.shape[0]}; see contributions")
        names = getattr(now, "feature_names_in_", range(rows.shape[1]))
        return explain_best(now, rows, k, lambda row: named_pairs(names, row))


class LinearMixin(ExplainMixin):
    """Weights of linear scorers."""

    @property
    def coef_(self: Any) -> sp.csr_matrix:
        """Return the weights of the scorers; each access computes them."""
        found = self._coefficients("coef_")
        shape = (len(self.classes_), self.n_features_in_)
        return sp.csr_matrix((found["values"], (found["classes"], found["columns"])), shape)

    @property
    def intercept_(self: Any) -> NDArray[np.float64]:
        """Return the scores of a row without values."""
        return np.asarray(self._coefficients("intercept_")["intercepts"])

    def _coefficients(self: Any, name: str) -> Any:
        model = self._fitted()
        try:
            return model.coefficients()
        except ValueError as error:
            raise AttributeError(f"this {type(self).__name__} has no {name}: {error}") from error


def check_explains(learner: Any) -> None:
    """Refuse a learner without contributions."""
    if not isinstance(learner, ExplainMixin):
        raise TypeError(
            f"{type(learner).__name__} does not explain its scores; OAAClassifier, LdSMClassifier, "
            "RecallTreeClassifier, GambleClassifier and SAMMEClassifier do"
        )


def codes_of(learner: Any, rows: Any, labels: Any) -> NDArray[np.uint32]:
    """Return the number of the class to explain for each validated row."""
    if labels is None:
        codes = learner._best(rows)
        if (codes < 0).any():
            raise ValueError(f"row {np.argmin(codes)} has no label with a score")
        return np.asarray(codes, np.uint32)
    is_one = isinstance(labels, str) or not np.iterable(labels)
    given = [labels] * rows.shape[0] if is_one else labels
    check_consistent_length(rows, given)
    encoded = encode_single(given, "labels")
    at = positions(encoded.classes, learner.classes_)
    if (at < 0).any():
        raise ValueError(f"labels has {encoded.classes[at < 0].tolist()[0]!r}, which is unknown")
    return np.asarray(at[encoded.codes], np.uint32)


def contributions(learner: Any, rows: Any, codes: NDArray[np.uint32]) -> sp.csr_matrix:
    """Return the contributions for validated rows; the base is the last entry of each."""
    starts, columns, values = learner._call(learner._model.contributions, rows, codes)
    return sp.csr_matrix((values, columns, starts), (rows.shape[0], rows.shape[1] + 1))


def explained(label: Any, row: sp.csr_matrix, pairs: Pairs, top: int | None = None) -> Explanation:
    """Return the explanation for a row of contributions, with the ``top`` first of all ``pairs``.

    The base includes features that are not in ``pairs``: those that a text lacks.
    """
    score = float(row.data.sum())
    base = score - sum(contribution for _, contribution in pairs)
    return Explanation(label, score, base, pairs[:top])


def explain_best(
    learner: Any, row: Any, k: int, pairs_of: Callable[[sp.csr_matrix], Pairs]
) -> list[Explanation]:
    """Return the explanations of the ``k`` best labels of a validated row."""
    codes, scores = learner._ranked_codes(row, k, "raw")
    codes = codes[scores > -np.inf].astype(np.uint32)
    found = contributions(learner, row[np.zeros(len(codes), int)], codes)
    labels = learner.classes_[codes].tolist()
    return [explained(label, found[i], pairs_of(found[i])) for i, label in enumerate(labels)]


def named_pairs(names: Any, row: sp.csr_matrix) -> Pairs:
    """Return the features of a row of contributions, given the ``names`` of all columns."""
    return sorted_pairs([names[at] for at in row.indices[:-1].tolist()], row.data[:-1])


def sorted_pairs(names: list[Any], values: NDArray[np.float64]) -> Pairs:
    """Return names with their values, those of the largest size first, without zeros."""
    order = np.argsort(-abs(values), kind="stable")
    return [(names[at], float(values[at])) for at in order if values[at] != 0]
