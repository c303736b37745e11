"""The committee of an active learner: created from the template, used for predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from xmtree import _validation
from xmtree._gamble import GambleClassifier, SAMMEClassifier


class CommitteePredictor(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Predicts what its committee ``estimator_`` predicts."""

    estimator: GambleClassifier | SAMMEClassifier | None
    estimator_: GambleClassifier | SAMMEClassifier
    n_jobs: int | None
    n_features_in_: int
    _seed: int

    def predict(self, X: Any) -> NDArray[Any]:
        """The best label of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        labels: NDArray[Any] = self.estimator_.predict(X)
        return labels

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each row and their scores; see ``GambleClassifier``."""
        check_is_fitted(self)
        return self.estimator_.predict_topk(X, k)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Probabilities of all classes; see ``GambleClassifier``."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """The committee's scores of all classes; see ``GambleClassifier``."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def save(self, path: str | Path) -> None:
        """Write the committee to a file, from which :func:`xmtree.load` gives it back.

        The session is not in it; pickle keeps that.

        Parameters
        ----------
        path : str or Path
        """
        check_is_fitted(self)
        self.estimator_.save(path)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the committee, sorted."""
        check_is_fitted(self)
        return self.estimator_.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X: Any, *, reset: bool) -> Any:
        double = getattr(self.estimator, "categorical_features", None) is not None
        return _validation.rows(self, X, reset=reset, double=double)

    def _new_committee(self) -> Any:
        """A clone of the template with seed, threads and categorical columns set."""
        committee: Any = GambleClassifier() if self.estimator is None else clone(self.estimator)
        committee._validate_params()
        if committee.random_state is None:
            committee.set_params(random_state=self._seed)
        if committee.n_jobs is None:
            committee.set_params(n_jobs=self.n_jobs)
        # The rows of the pool, validated, have no column names.
        if hasattr(self, "feature_names_in_"):
            committee.feature_names_in_ = self.feature_names_in_
        committee.n_features_in_ = self.n_features_in_
        if committee.categorical_features is not None:
            committee.set_params(categorical_features=committee._categorical())
        return committee
