"""The classifier of an active learner: made from its estimator, used for predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from xmtree import _validation
from xmtree._base import Learner
from xmtree._sklearn import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, validate_params
from xmtree._typing import LabelsLike, MatrixLike, Seed, Weights


def _estimator_has(method: str) -> Callable[[Any], bool]:
    """Whether the estimator has ``method``; it says itself why it has not."""

    def check(active: SessionPredictor) -> bool:
        fitted = active.__sklearn_is_fitted__()
        getattr(active.estimator_ if fitted else active._template(), method)
        return True

    return check


@dataclass(eq=False, kw_only=True, repr=False)
class SessionParameters(BaseEstimator):
    """The parameters that all active learners have."""

    estimator: Any = None
    n_initial: int = 20
    n_per_round: int = 10
    n_rounds: int = 50
    selection: str = "margin"
    pool_share: float = 1.0
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 10
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0


class SessionPredictor(MetaEstimatorMixin, ClassifierMixin, SessionParameters):
    """Predicts what ``estimator_``, trained in a session, predicts."""

    estimator_: Learner
    n_features_in_: int
    _seed: int

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """The best label of each row, as ``predict`` of the estimator.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
        """
        labels: NDArray[Any] = self._trained().predict(X)
        return labels

    def predict_topk(self, X: MatrixLike, k: int = 5) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each row, best first, as ``predict_topk`` of the estimator.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        k : int, default=5

        Returns
        -------
        labels : array of shape (n, k)
        scores : float32 array of shape (n, k)
        """
        return self._trained().predict_topk(X, k)

    def predict_proba(self, X: MatrixLike) -> NDArray[np.float32]:
        """The probability of each class, as ``predict_proba`` of the estimator.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        float32 array of shape (n, n_classes)
        """
        return self._trained().predict_proba(X)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: MatrixLike) -> NDArray[np.float32]:
        """The score of each class, where the estimator has ``decision_function``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        float32 array of shape (n, n_classes), or (n,) with two classes
        """
        estimator: Any = self._trained()
        found: NDArray[np.float32] = estimator.decision_function(X)
        return found

    def score(self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None) -> float:
        """The share of rows whose label is predicted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        return self._trained().score(X, y, sample_weight)

    def save(self, path: str | Path) -> None:
        """Write ``estimator_`` to a file, from which :func:`xmtree.load` gives it back.

        The session is not in it; pickle keeps that.

        Parameters
        ----------
        path : str or Path
        """
        self._trained().save(path)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels that were learned, sorted."""
        return self._trained().classes_

    def _trained(self) -> Learner:
        check_is_fitted(self)
        return self.estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan()
        return tags

    def _template(self) -> Learner:
        """What is cloned and trained in every round."""
        raise NotImplementedError

    def _takes_nan(self) -> bool:
        """Whether values may be missing."""
        return bool(self._template().__sklearn_tags__().input_tags.allow_nan)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        double = getattr(self.estimator, "categorical_features", None) is not None
        return _validation.rows(self, X, reset=reset, double=double)

    def _new_classifier(self) -> Any:
        """A clone of the template with seed, threads and categorical columns set."""
        classifier: Any = clone(self._template())
        validate_params(classifier)
        if classifier.random_state is None:
            classifier.set_params(random_state=self._seed)
        if classifier.n_jobs is None:
            classifier.set_params(n_jobs=self.n_jobs)
        # The rows of the pool, validated, have no column names.
        if hasattr(self, "feature_names_in_"):
            classifier.feature_names_in_ = self.feature_names_in_
        classifier.n_features_in_ = self.n_features_in_
        if getattr(classifier, "categorical_features", None) is not None:
            if isinstance(classifier.categorical_features, str):
                raise ValueError(
                    'categorical_features="from_dtype" is for fit of the classifier alone; for '
                    "active learning name the columns, or pass their numbers or a mask"
                )
            classifier.set_params(categorical_features=classifier._categorical())
        return classifier
