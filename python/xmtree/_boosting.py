"""Base of the boosting classifiers: everything but how a tree votes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from xmtree import _categories, _class_weight, _validation
from xmtree._base import Learner, without_own_name
from xmtree._trees import TreeMixin


@without_own_name
class Boosting(TreeMixin, Learner):
    """Base of both: everything but how a tree votes."""

    _python_constraints: ClassVar[dict[str, Any]] = {
        **Learner._python_constraints,
        "categorical_features": [None, "array-like"],
        "class_weight": _class_weight.CONSTRAINT,
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            Examples. float32 and float64, C-contiguous or CSR, are read
            in place; all else is converted. Values may be missing (NaN), not infinite.
        y : array of shape (n,)
            Labels of any sortable type, one per row.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.
        classes : array of shape (n_classes,), optional
            Every label that may occur, where ``y`` need not have them all. By default
            those of ``y``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter, ``X`` or ``y`` cannot be used. The estimator is
            then as it was before.
        """
        return super().fit(X, y, sample_weight, classes)

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """The committee's scores F of all classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        float32 array of shape (n, n_classes)
            They sum to 0 over the classes. For two classes of shape (n,): the score of
            ``classes_[1]`` less that of ``classes_[0]``.

        Raises
        ------
        ValueError
            Where the array would not fit in memory; ``predict_topk`` gives the best
            classes of any number of rows.
        """
        return self._shaped(self._scores(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The best label of each row after each round.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Yields
        ------
        array of shape (n,)

        Raises
        ------
        ValueError
            Where the labels of all rounds, which are computed at once, would not fit in memory.
        """
        rows = self._rows(X)
        _validation.check_dense_size(
            rows.shape[0], self._n_trees(), 4, "pass fewer rows at a time", "trees"
        )
        stages = self._call(self._model.staged_predict, rows)
        for stage in range(stages.shape[1]):
            yield self.classes_[stages[:, stage]]

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float32]]:
        """``decision_function`` after each round.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Yields
        ------
        float32 array of shape (n, n_classes), or (n,) for two classes
        """
        for scores in self._staged_scores(X):
            yield self._shaped(scores)

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float32]]:
        """``predict_proba`` after each round.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Yields
        ------
        float32 array of shape (n, n_classes)
        """
        for scores in self._staged_scores(X):
            yield self._chances(scores)

    @property
    def n_estimators_(self) -> int:
        """Number of trees: of rounds up to the lowest held-out error, if rows are held out."""
        check_is_fitted(self)
        return self._n_trees()

    @property
    def temperature_(self) -> float:
        """What F / (n_classes - 1) is divided by before the softmax gives probabilities.

        Found on the votes of each tree for the rows that chance left out of it; 1 where
        every tree is trained on all rows.
        """
        check_is_fitted(self)
        return 1 / float(self._model.summary()["slope"])

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the gain of all splits.

        They sum to 1, or are all 0 where nothing is split.

        A split's gain is by how much it lowers the squared error, as a share of its tree's
        weight.
        """
        check_is_fitted(self)
        gains: NDArray[np.float64] = self._model.summary()["importance_gain"]
        total = gains.sum()
        return gains / total if total > 0 else gains

    @property
    def feature_splits_(self) -> NDArray[np.uint64]:
        """Number of splits by each feature, over all trees."""
        check_is_fitted(self)
        splits: NDArray[np.uint64] = self._model.summary()["importance_splits"]
        return splits

    def _scores(self, X: Any) -> NDArray[np.float64]:
        rows = self._rows(X)
        self._check_dense_size(rows)
        return self._call(self._model.predict_scores, rows)

    def _staged_scores(self, X: Any) -> Iterator[NDArray[np.float64]]:
        rows = self._rows(X)
        self._check_dense_size(rows)
        scores = np.zeros((rows.shape[0], len(self.classes_)))
        for tree in range(self._n_trees()):
            options = json.dumps({"first_tree": tree, "last_tree": tree + 1})
            scores = scores + self._call(self._model.predict_scores, rows, options)
            yield scores

    def _n_trees(self) -> int:
        return int(self._model.summary()["n_trees"])

    def _shaped(self, scores: NDArray[np.float64]) -> NDArray[np.float32]:
        if len(self.classes_) == 2:
            scores = scores[:, 1] - scores[:, 0]
        return scores.astype(np.float32)

    def _chances(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        # With a single class the divisor would be 0.
        scale = max(len(self.classes_) - 1, 1) * self.temperature_
        return np.asarray(softmax(scores / scale, axis=1), dtype=np.float32)

    def _check_dense_size(self, rows: Any) -> None:
        _validation.check_dense_size(
            rows.shape[0], len(self.classes_), 8, "predict_topk(X, k) gives the k best per row"
        )

    def _core_params(self) -> dict[str, Any]:
        params = super()._core_params()
        params["categorical_features"] = self._categorical()
        return params

    def _categorical(self) -> list[int]:
        """The categorical columns by number."""
        names = list(getattr(self, "feature_names_in_", []))
        return _categories.columns_of(self.categorical_features, self.n_features_in_, names)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        # In double precision, so that categories that single precision merges are noticed.
        if not reset:
            double = bool(self._fitted_params()["categorical_features"])
            return _validation.rows(self, X, reset=False, double=double)
        double = self.categorical_features is not None
        rows = _validation.rows(self, X, reset=True, double=double)
        _categories.check(rows, self._categorical())
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
