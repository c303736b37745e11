"""Predictions of estimators that delegate to a trained learner of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from xmtree._prediction import Ranking, Scores
from xmtree._sklearn import BaseEstimator, ClassifierMixin
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

    def _predicting(self, X: Rows) -> tuple[Any, Any]:
        """Return the learner that predicts ``X``, and its rows."""
        return self._trained(), self._rows(X)

    def predict(self, X: Rows) -> Any:
        """Return the best label of each row, or its label set, as the learner's ``predict``.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        array of shape (n,), or label sets
        """
        learner, rows = self._predicting(X)
        return learner.predict(rows)

    def predict_topk(self, X: Rows, k: int = 5, *, scores: Scores = "raw") -> Ranking:
        """Return the ``k`` best labels of each row, best first, as the learner's ``predict_topk``.

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
        found: Ranking = learner.predict_topk(rows, k, scores=scores)
        return found

    def predict_proba(self, X: Rows) -> NDArray[np.float32]:
        """Return the probability of each class, as the learner's ``predict_proba``.

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
        """Return the score of each class, if the learner has ``decision_function``.

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
        """Return the nodes on the path of each row, if the learner has ``decision_path``.

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
        """Return the accuracy, the share of rows whose label or whole label set is predicted.

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
        """Return the labels of the learner."""
        classes: NDArray[Any] = self._trained().classes_
        return classes
