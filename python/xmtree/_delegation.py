"""Predictions of estimators that train a learner of this package and predict by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from xmtree._prediction import Scores
from xmtree._sklearn import BaseEstimator, ClassifierMixin
from xmtree._typing import LabelsLike, Weights

Rows = TypeVar("Rows", contravariant=True)


def learner_has(method: str) -> Callable[[Any], bool]:
    """For ``available_if``: whether the learner has ``method``; where not, the error is its own."""

    def check(estimator: Any) -> bool:
        learner = estimator._known_learner()
        if learner is not None:
            getattr(learner, method)
        return learner is not None

    return check


class DelegatedPredictions(ClassifierMixin, BaseEstimator, Generic[Rows]):
    """Base of estimators that predict by a learner that they have trained."""

    def _trained(self) -> Any:
        """The trained learner; NotFittedError without one."""
        raise NotImplementedError

    def _known_learner(self) -> Any:
        """The trained learner, else the one to be trained; None while that is not known."""
        raise NotImplementedError

    def _rows(self, X: Rows) -> Any:
        """``X`` as rows for the learner."""
        return X

    def _predicting(self, X: Rows) -> tuple[Any, Any]:
        """What predicts ``X``, and its rows."""
        return self._trained(), self._rows(X)

    def predict(self, X: Rows) -> Any:
        """The best label of each row, or its label set, as ``predict`` of the learner.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        array of shape (n,), or label sets
        """
        learner, rows = self._predicting(X)
        return learner.predict(rows)

    def predict_topk(
        self, X: Rows, k: int = 5, *, scores: Scores = "raw"
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each row, best first, as ``predict_topk`` of the learner.

        Parameters
        ----------
        X : as in ``fit``
        k : int, default=5
        scores : {"raw", "probability"}, default="raw"

        Returns
        -------
        labels : array of shape (n, k)
        scores : float32 array of shape (n, k)
        """
        learner, rows = self._predicting(X)
        found: tuple[NDArray[Any], NDArray[np.float32]]
        found = learner.predict_topk(rows, k, scores=scores)
        return found

    def predict_proba(self, X: Rows) -> NDArray[np.float32]:
        """The probability of each class, as ``predict_proba`` of the learner.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        float32 array of shape (n, n_classes)
            Columns as in ``classes_``.
        """
        learner, rows = self._predicting(X)
        found: NDArray[np.float32] = learner.predict_proba(rows)
        return found

    @available_if(learner_has("decision_function"))
    def decision_function(self, X: Rows) -> NDArray[np.float32]:
        """The score of each class, where the learner has ``decision_function``.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        float32 array of shape (n, n_classes), or (n,) with two classes
        """
        found: NDArray[np.float32] = self._trained().decision_function(self._rows(X))
        return found

    @available_if(learner_has("decision_path"))
    def decision_path(self, X: Rows) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """The nodes that each row passes, where the learner has trees, as its ``decision_path``.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        indicator : CSR matrix of shape (n, number of nodes of all trees), int64
        n_nodes_ptr : int64 array of shape (number of trees + 1,)
        """
        found: tuple[sp.csr_matrix, NDArray[np.int64]]
        found = self._trained().decision_path(self._rows(X))
        return found

    def score(self, X: Rows, y: LabelsLike, sample_weight: Weights = None) -> float:
        """The share of rows whose label, or label set, is predicted exactly.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``

        Returns
        -------
        float
        """
        return float(self._trained().score(self._rows(X), y, sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the learner."""
        classes: NDArray[Any] = self._trained().classes_
        return classes
