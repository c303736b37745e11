"""Predictions of a trained learner: labels, rankings, probabilities and label sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, gen_batches
from sklearn.utils.validation import check_is_fitted

from xmtree import _core, _one_row, _validation
from xmtree._calibration import Calibration, Scale
from xmtree._labels import Labels, decode, matching
from xmtree._labels.forms import Form
from xmtree._sharing import view
from xmtree._sklearn import BaseEstimator, ClassifierMixin
from xmtree._typing import LabelsLike, MatrixLike, Weights

T = TypeVar("T")
TopK = tuple[NDArray[np.int32], NDArray[np.float32]]
#: Labels of each row, best first, and their scores.
Ranking = tuple[NDArray[Any], NDArray[np.float32]]

#: Methods whose docstring is copied.
F = TypeVar("F", bound=Callable[..., Any])
#: Rows in docstrings.
_ROWS = "array or sparse matrix of shape (n, n_features), or a data frame"

#: Kinds of scores that ``predict_topk`` returns.
Scores = Literal["raw", "probability"]

#: Largest number of bytes of scores in memory at the same time.
CHUNK_BYTES = 64 << 20
#: Largest ``k`` of ``predict_topk``, unless there are more classes.
_MAX_K = 1000


def documented_as(method: Any, rows: str = "as in ``fit``") -> Callable[[F], F]:
    """Give a method the docstring of a learner's ``method``, with ``rows`` as the type of ``X``."""

    def decorate(function: F) -> F:
        # With -OO there are no docstrings.
        function.__doc__ = method.__doc__ and method.__doc__.replace(_ROWS, rows)
        return function

    return decorate


class FittedClassifier(ClassifierMixin, BaseEstimator):
    """Predictions of a trained model, which has its labels.

    A learner declares by ``_n_scored`` how many labels of a row can have a score, and by ``_scale``
    how scores relate to probabilities; or it overrides ``_to_probabilities``.
    """

    n_features_in_: int
    n_jobs: int | None
    _model: _core.Classifier
    _calibration: Calibration = Calibration()
    _scale: ClassVar[Scale] = "logit"
    _bytes_of_score: ClassVar[int] = 4
    #: Largest number of labels of a row that can have a probability; None is all.
    _most_scored: ClassVar[int | None] = None

    @property
    def _labels(self) -> Labels:
        labels: Labels = self._model.labels
        return labels

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the labels by class number."""
        if "_model" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no classes_ before it is fitted")
        return self._labels.classes

    @property
    def _y_form(self) -> Form:
        """Return the form of labels that ``fit`` got."""
        return self._labels.form

    def predict(self, X: MatrixLike) -> Any:
        """Return the best label of each row, or its label set.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
            Labels. Ties go to the class that comes first in ``classes_``.
        int64 array of shape (n, n_classes), or CSR matrix, or list of lists
            If the estimator has learned label sets: the labels with a probability above the
            threshold, in the form of ``y`` in ``fit``.
        """
        now, rows = self._now(X)
        return now._predicted(rows)

    def _predicted(self, X: Any) -> Any:
        """Return the predictions for the validated rows ``X``."""
        if self._y_form == "labels":
            return _one_row.class_labels(self._best(X), self.classes_)
        if self._y_form == "indicator":
            _validation.check_dense_size(
                X.shape[0], len(self.classes_), 8, "fit on a sparse y or use predict_topk"
            )
            return self._label_sets(X).toarray()
        sets = self._label_sets(X)
        if self._y_form == "sparse":
            return sets
        named = self.classes_[sets.indices]
        return [named[start:end].tolist() for start, end in pairwise(sets.indptr)]

    def predict_topk(self, X: MatrixLike, k: int = 5, *, scores: Scores = "raw") -> Ranking:
        """Return the ``k`` best labels of each row, best first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        k : int, default=5
            At most 1000, or the number of classes if that is larger.
        scores : {"raw", "probability"}, default="raw"
            Scores to return. "raw": those by which the learner ranks labels; see the notes of its
            class. "probability": those of :meth:`predict_proba`.

        Returns
        -------
        labels : array of shape (n, k)
            Ties go to the class that comes first in ``classes_``. If fewer than ``k`` labels have
            a score, the rest is -1 for integer labels, NaN for floats, NaT for dates and times, and
            None for others (in an array of objects).
        scores : float32 array of shape (n, k)
            Scores in decreasing order; -inf without a label.
        """
        now, rows = self._now(X)
        return now._ranked_labels(rows, k, scores)

    def _ranked_labels(self, X: Any, k: int, scores: Scores) -> Ranking:
        """Return the ``k`` best labels and their scores for the validated rows ``X``."""
        codes, values = self._ranked_codes(X, k, scores)
        return decode(codes, self.classes_), values

    def _ranked_codes(self, X: Any, k: int, scores: Scores) -> TopK:
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be an integer of at least 1, got {k!r}")
        k = int(k)
        most = max(_MAX_K, len(self.classes_))
        if k > most:
            raise ValueError(
                f"k must be at most {most}, got {k}; there are {len(self.classes_)} classes"
            )
        if scores not in ("raw", "probability"):
            raise ValueError(f'scores must be "raw" or "probability", got {scores!r}')
        best = self._topk if scores == "raw" else self._topk_probabilities
        codes, values = best(X, min(k, len(self.classes_)))
        if codes.shape[1] < k:
            rest = (X.shape[0], k - codes.shape[1])
            codes = np.hstack([codes, np.full(rest, -1, np.int32)])
            values = np.hstack([values, np.full(rest, -np.inf, np.float32)])
        return codes, values

    def predict_proba(self, X: MatrixLike) -> NDArray[np.float32]:
        """Return the probabilities of all classes.

        Calibrated probabilities (see ``calibrate``) match frequencies: among rows whose best label
        has the probability p, this label is right for a share of about p.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        float32 array of shape (n, n_classes)
            Rows sum to 1. For label sets each entry is the probability that the row has the label.
            Labels without a score for a row have probability 0, or equal shares of the
            probability that the others leave.

        Raises
        ------
        ValueError
            If the array would take more than 8 GiB or half of the memory;
            ``predict_topk(X, k, scores="probability")`` needs less.
        """
        now, rows = self._now(X)
        now._check_dense_size(rows)
        return now._all_probabilities(rows)

    def score(self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None) -> float:
        """Return the accuracy, the share of rows whose label or whole label set is predicted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,), or label sets
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        self._fitted()
        now = view(self, brief=True)
        if now._y_form == "labels":
            right = matching.are_right(y, now.predict(X), now.classes_)
            return float(np.average(right, weights=sample_weight))
        # scikit-learn's accuracy does not accept label lists, and ignores column names.
        true, _ = matching.label_sets(y, now.classes_, "y", lists=now._y_form == "lists")
        found = sp.csr_array(now._label_sets(now._rows(X)))
        check_consistent_length(found, true)
        # Labels that the model does not know have columns beyond those of classes_.
        found.resize(true.shape)
        right = (found != true).sum(axis=1) == 0
        return float(np.average(right, weights=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _fitted(self) -> _core.Classifier:
        """Return the model; raise NotFittedError without one."""
        # scikit-learn's own check takes longer than a prediction.
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        return self._model

    def _fitted_params(self) -> dict[str, Any]:
        """Return the parameters of the model, whatever those of the constructor are now.

        This is the model's own dictionary and must not be changed.
        """
        return self._model.params

    def _now(self, X: Any) -> tuple[Self, Any]:
        """Return a snapshot of the estimator, and ``X`` as rows for it."""
        self._fitted()
        now = view(self, brief=True)
        return now, now._rows(X)

    def _rows(self, X: Any) -> Any:
        self._fitted()
        return self._validated(X, reset=False)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        any_width = not reset and self._takes_any_width()
        return _validation.rows(self, X, reset=reset, any_width=any_width)

    def _takes_any_width(self) -> bool:
        """Return whether the model hashes features and so accepts any number of columns."""
        return self._fitted_params().get("n_bits") is not None

    def _call(self, method: Callable[..., T], X: Any, *arguments: Any) -> T:
        """Call a method of the core on validated rows."""
        n_threads = _one_row.n_threads(self.n_jobs, X.shape[0])
        return _validation.canonical(X, lambda X: method(X, *arguments, n_threads=n_threads))

    def _topk(self, X: Any, k: int) -> TopK:
        """Return class numbers and scores for the validated rows ``X``."""
        return self._call(self._model.predict_topk, X, k)

    def _best(self, X: Any) -> NDArray[np.int32]:
        """Return the best class of each of the validated rows ``X``."""
        return self._topk(X, 1)[0][:, 0]

    def _label_sets(self, X: Any) -> Any:
        """Return the label sets of the validated rows ``X`` as a CSR indicator of int64."""
        raise NotImplementedError

    def _check_dense_size(self, rows: Any) -> None:
        """Refuse to compute scores of all classes if they would not fit in memory."""
        _validation.check_dense_size(
            rows.shape[0],
            len(self.classes_),
            self._bytes_of_score,
            "predict_topk(X, k) gives the k best per row",
        )

    def _n_scored(self) -> int | None:
        """Return the largest number of labels of a row with a score; None is all."""
        return None if self._most_scored is None else min(len(self.classes_), self._most_scored)

    def _to_probabilities(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        """Return the probabilities for ``scores`` of shape (n, m).

        These are scores of the best labels, decreasing in each row, or of all labels. Rows
        without scores get 0.
        """
        calibration = self._calibration
        if self._y_form != "labels":
            return _core.label_probabilities(scores, calibration.slope, calibration.intercept)
        return _core.share_probabilities(
            scores, self._scale, len(self.classes_), calibration.shares
        )

    def _n_wanted(self) -> int | None:
        """Return ``_n_scored``, but at most the number of labels that probabilities depend on."""
        shares = self._calibration.shares
        if self._y_form == "labels" and shares is not None:
            return min(len(self.classes_), int(shares[-1]) + 1)
        return self._n_scored()

    def _all_probabilities(self, X: Any) -> NDArray[np.float32]:
        """Return the probabilities of all classes for the validated rows ``X``."""
        n_classes, n_scored = len(self.classes_), self._n_wanted()
        all_probabilities = np.empty((X.shape[0], n_classes), np.float32)
        for part, rows in in_parts(X, n_classes):
            if n_scored is None:
                probabilities = self._to_probabilities(self._call(self._model.predict_scores, rows))
                codes = np.tile(np.arange(n_classes, dtype=np.int32), (len(probabilities), 1))
            else:
                codes, scores = self._topk(rows, n_scored)
                probabilities = self._to_probabilities(scores)
            all_probabilities[part] = _core.spread_over_labels(
                codes, probabilities, n_classes, self._y_form == "labels"
            )
        return all_probabilities

    def _topk_probabilities(self, X: Any, k: int) -> TopK:
        """Return ``_topk`` of the validated rows ``X`` with probabilities as scores."""
        codes = np.empty((X.shape[0], k), np.int32)
        probabilities = np.empty((X.shape[0], k), np.float32)
        n_scored = self._n_wanted()
        for part, rows in in_parts(X, n_scored or len(self.classes_)):
            best, scores = self._topk(rows, max(k, n_scored or 0))
            if n_scored is None:
                values = np.take_along_axis(self._all_probabilities(rows), best.clip(0), axis=1)
            else:
                values = self._to_probabilities(scores)[:, :k]
            codes[part] = best[:, :k]
            probabilities[part] = np.where(best[:, :k] >= 0, values, -np.inf)
        return codes, probabilities


class DecisionMixin:
    """Scores of all classes, for learners that compute them in any case."""

    def decision_function(self: Any, X: MatrixLike) -> NDArray[np.float32]:
        """Return the scores of all classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        float32 array of shape (n, n_classes)
            The scores of a boosting committee sum to 0 for each row. With two classes and one
            label per row, shape (n,): the score of ``classes_[1]`` minus that of ``classes_[0]``.

        Raises
        ------
        ValueError
            If the array would take more than 8 GiB or half of the memory; ``predict_topk`` needs
            less.
        """
        now, rows = self._now(X)
        now._check_dense_size(rows)
        decision: NDArray[np.float32] = now._decision(now._call(now._model.predict_scores, rows))
        return decision

    def _decision(self: Any, scores: NDArray[Any]) -> NDArray[np.float32]:
        """Return scores of all classes in the form of ``decision_function``."""
        if self._y_form == "labels" and len(self.classes_) == 2:
            first, second = scores.T
            # Without examples both scores are -inf, which must not give NaN.
            scores = np.zeros_like(first)
            np.subtract(second, first, out=scores, where=first != second)
        return scores.astype(np.float32, copy=False)


def in_parts(X: Any, width: int) -> Iterator[tuple[slice, Any]]:
    """Yield slices and parts of ``X``, so that scores of this ``width`` fit into a chunk."""
    step = max(1, CHUNK_BYTES // (8 * width))
    if X.shape[0] <= step:
        yield slice(None), X
        return
    for part in gen_batches(X.shape[0], step):
        yield part, X[part]
