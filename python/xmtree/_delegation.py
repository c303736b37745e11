"""Predictions of estimators that delegate to a trained learner of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from xmtree._prediction import DecisionMixin, FittedClassifier, Ranking, Scores, documented_as
from xmtree._predictor import Predictor
from xmtree._sklearn import BaseEstimator, ClassifierMixin
from xmtree._trees import TreeMixin
from xmtree._typing import LabelsLike, Weights

Rows = TypeVar("Rows", contravariant=True)


def learner_has(method: str) -> Callable[[Any], bool]:
    """Return a check for ``available_if``: whether the learner has ``method``.

    If it has not, the learner's own AttributeError is raised.
    """

    def check(estimator: Any) -> bool:
        learner = estimator._known_learner()
        if learner is not None:
            getattr(learner, method)
        return learner is not None

    return check


class DelegatedPredictions(ClassifierMixin, BaseEstimator, Generic[Rows]):
    """Base of estimators that train a learner and predict with it."""

    def _trained(self) -> Any:
        """Return the trained learner; raise NotFittedError without one."""
        raise NotImplementedError

    def _known_learner(self) -> Any:
        """Return the trained learner, or the one to train; None while it is not known."""
        raise NotImplementedError

    def _rows(self, X: Rows) -> Any:
        """Return ``X`` as rows for the learner."""
        return X

    def _predicting(self, X: Rows) -> tuple[FittedClassifier | Predictor, Any]:
        """Return the learner that predicts ``X``, and its rows."""
        return self._trained(), self._rows(X)

    @documented_as(FittedClassifier.predict)
    def predict(self, X: Rows) -> Any:
        learner, rows = self._predicting(X)
        return learner.predict(rows)

    @documented_as(FittedClassifier.predict_topk)
    def predict_topk(self, X: Rows, k: int = 5, *, scores: Scores = "raw") -> Ranking:
        learner, rows = self._predicting(X)
        return learner.predict_topk(rows, k, scores=scores)

    @documented_as(FittedClassifier.predict_proba)
    def predict_proba(self, X: Rows) -> NDArray[np.float32]:
        learner, rows = self._predicting(X)
        return learner.predict_proba(rows)

    @available_if(learner_has("decision_function"))
    @documented_as(DecisionMixin.decision_function)
    def decision_function(self, X: Rows) -> NDArray[np.float32]:
        learner: DecisionMixin = self._trained()
        return learner.decision_function(self._rows(X))

    @available_if(learner_has("decision_path"))
    @documented_as(TreeMixin.decision_path)
    def decision_path(self, X: Rows) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        learner: TreeMixin = self._trained()
        return learner.decision_path(self._rows(X))

    @documented_as(FittedClassifier.score)
    def score(self, X: Rows, y: LabelsLike, sample_weight: Weights = None) -> float:
        return float(self._trained().score(self._rows(X), y, sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the labels of the learner."""
        classes: NDArray[Any] = self._trained().classes_
        return classes
