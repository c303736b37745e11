"""Predictions of any learner: labels, the best of them, and probabilities from its scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
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

#: Which scores ``predict_topk`` returns.
Scores = Literal["raw", "probability"]

#: Bytes of scores held at a time.
CHUNK_BYTES = 64 << 20
#: Columns of ``predict_topk`` at most, unless there are more classes.
_MAX_K = 1000


class FittedClassifier(ClassifierMixin, BaseEstimator):
    """Predictions by a trained model, which has its labels.

    A learner says by ``_n_scored`` how many labels of a row can have a score, and by ``_scale``
    what its scores are to probabilities; or all of it by ``_chances``.
    """

    n_features_in_: int
    n_jobs: int | None
    _model: _core.Classifier
    _calibration: Calibration = Calibration()
    _scale: ClassVar[Scale] = "logit"
    _bytes_of_score: ClassVar[int] = 4
    #: Labels that share the probability of a row, at most; None: all.
    _most_scored: ClassVar[int | None] = None

    @property
    def _labels(self) -> Labels:
        labels: Labels = self._model.labels
        return labels

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, by class number."""
        if "_model" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no classes_ before it is fitted")
        return self._labels.classes

    @property
    def _y_form(self) -> Form:
        """In which form ``y`` had labels."""
        return self._labels.form

    def predict(self, X: MatrixLike) -> Any:
        """The best label of each row, or its label set.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
            Labels. Ties go to the class that comes first in ``classes_``.
        int64 array of shape (n, n_classes), or CSR matrix, or list of lists
            Where the estimator has learned label sets: those labels that are
            more likely present than not, in the form that ``y`` had in ``fit``.
        """
        now, rows = self._now(X)
        return now._predicted(rows)

    def _predicted(self, X: Any) -> Any:
        """As :meth:`predict` of the validated rows ``X``."""
        if self._y_form == "labels":
            return _one_row.taken(self._best(X), self.classes_)
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

    def predict_topk(
        self, X: MatrixLike, k: int = 5, *, scores: Scores = "raw"
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each row, best first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        k : int, default=5
            At most 1000, or the number of classes where that is larger.
        scores : {"raw", "probability"}, default="raw"
            What is returned beside the labels. "raw": what the learner ranks labels by; see the
            notes of its class. "probability": as of :meth:`predict_proba`.

        Returns
        -------
        labels : array of shape (n, k)
            Ties go to the class that comes first in ``classes_``. Where fewer
            than ``k`` labels have a score the rest is -1 for integer labels, NaN for floats,
            NaT for dates and times, and None for all others (which are objects here).
        scores : float32 array of shape (n, k)
            Their scores, falling; -inf where there is no label.
        """
        now, rows = self._now(X)
        return now._ranked_labels(rows, k, scores)

    def _ranked_labels(
        self, X: Any, k: int, scores: Scores
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """As :meth:`predict_topk` of the validated rows ``X``."""
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
        best = self._topk if scores == "raw" else self._probabilities
        codes, values = best(X, min(k, len(self.classes_)))
        if codes.shape[1] < k:
            rest = (X.shape[0], k - codes.shape[1])
            codes = np.hstack([codes, np.full(rest, -1, np.int32)])
            values = np.hstack([values, np.full(rest, -np.inf, np.float32)])
        return decode(codes, self.classes_), values

    def predict_proba(self, X: MatrixLike) -> NDArray[np.float32]:
        """Probabilities of all classes.

        They are calibrated where the learner has calibrated itself (see ``calibrate``): among
        rows whose best label has the probability p, it is right in a share of about p.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        float32 array of shape (n, n_classes)
            Rows sum to 1; of label sets each entry is the probability that the row has
            the label. Labels that have no score for a row have probability 0, or share evenly what
            the others leave.

        Raises
        ------
        ValueError
            Where the array would take more than 8 GiB or half of the memory; see
            ``predict_topk(X, k, scores="probability")``.
        """
        now, rows = self._now(X)
        now._check_dense_size(rows)
        return now._all_chances(rows)

    def score(self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None) -> float:
        """Accuracy: the share of rows whose label, or whole label set, is predicted.

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
        # scikit-learn's accuracy takes no label lists, and does not look at the names of columns.
        true, _ = matching.label_sets(y, now.classes_, "y", lists=now._y_form == "lists")
        found = sp.csr_array(now._label_sets(now._rows(X)))
        check_consistent_length(found, true)
        # Labels that were not learned have columns beyond those of classes_.
        found.resize(true.shape)
        right = (found != true).sum(axis=1) == 0
        return float(np.average(right, weights=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _fitted(self) -> _core.Classifier:
        """The model, of which there must be one."""
        # scikit-learn's own check takes longer than a prediction.
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        return self._model

    def _fitted_params(self) -> dict[str, Any]:
        """The parameters that the model was made with, whatever the constructor's are now.

        Not to be changed: it is the model's own dictionary.
        """
        return self._model.params

    def _now(self, X: Any) -> tuple[Self, Any]:
        """The estimator as it is now, and ``X`` as rows for it."""
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
        """Whether the model hashes features, so that rows of any number of columns will do."""
        return self._fitted_params().get("n_bits") is not None

    def _call(self, method: Callable[..., T], X: Any, *arguments: Any) -> T:
        """A method of the core on validated rows."""
        n_threads = _one_row.n_threads(self.n_jobs, X.shape[0])
        return _validation.canonical(X, lambda X: method(X, *arguments, n_threads=n_threads))

    def _topk(self, X: Any, k: int) -> TopK:
        """Class numbers and scores for the validated rows ``X``."""
        return self._call(self._model.predict_topk, X, k)

    def _best(self, X: Any) -> NDArray[np.int32]:
        """The best class of each of the validated rows ``X``."""
        return self._topk(X, 1)[0][:, 0]

    def _label_sets(self, X: Any) -> Any:
        """Predicted label sets as a CSR indicator, without all scores at once."""
        parts = [self._present(rows) for _, rows in in_parts(X, len(self.classes_))]
        sets = parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")
        return sets.astype(np.int64, copy=False)

    def _present(self, X: Any) -> Any:
        """Which labels the validated rows ``X`` have, as a sparse indicator."""
        raise NotImplementedError

    def _check_dense_size(self, rows: Any) -> None:
        """Refuses scores of all classes where they would not fit in memory."""
        _validation.check_dense_size(
            rows.shape[0],
            len(self.classes_),
            self._bytes_of_score,
            "predict_topk(X, k) gives the k best per row",
        )

    def _n_scored(self) -> int | None:
        """How many labels of a row can have a score; None: all, by ``predict_scores``."""
        return None if self._most_scored is None else min(len(self.classes_), self._most_scored)

    def _chances(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        """Probabilities of the labels whose ``scores``, of shape (n, m), are given: each row's
        falling, or those of all labels. Rows without any are left 0."""
        calibration = self._calibration
        if self._y_form != "labels":
            return _core.label_probabilities(scores, calibration.slope, calibration.intercept)
        return _core.share_probabilities(
            scores, self._scale, len(self.classes_), calibration.shares
        )

    def _n_wanted(self) -> int | None:
        """As ``_n_scored``, but no more labels than probabilities depend on."""
        if self._y_form == "labels" and self._calibration.rest is not None:
            return min(len(self.classes_), _core.N_SHARING + 1)
        return self._n_scored()

    def _all_chances(self, X: Any) -> NDArray[np.float32]:
        """Probabilities of all classes for the validated rows ``X``."""
        n_classes, n_scored = len(self.classes_), self._n_wanted()
        all_chances = np.empty((X.shape[0], n_classes), np.float32)
        for part, rows in in_parts(X, n_classes):
            if n_scored is None:
                chances = self._chances(self._call(self._model.predict_scores, rows))
                codes = np.tile(np.arange(n_classes, dtype=np.int32), (len(chances), 1))
            else:
                codes, scores = self._topk(rows, n_scored)
                chances = self._chances(scores)
            all_chances[part] = _core.spread_over_labels(
                codes, chances, n_classes, self._y_form == "labels"
            )
        return all_chances

    def _probabilities(self, X: Any, k: int) -> TopK:
        """As ``_topk`` of the validated rows ``X``, with probabilities for scores."""
        codes = np.empty((X.shape[0], k), np.int32)
        chances = np.empty((X.shape[0], k), np.float32)
        n_scored = self._n_wanted()
        for part, rows in in_parts(X, n_scored or len(self.classes_)):
            best, scores = self._topk(rows, max(k, n_scored or 0))
            if n_scored is None:
                of_best = np.take_along_axis(self._all_chances(rows), best.clip(0), axis=1)
            else:
                of_best = self._chances(scores)[:, :k]
            codes[part] = best[:, :k]
            chances[part] = np.where(best[:, :k] >= 0, of_best, -np.inf)
        return codes, chances


def in_parts(X: Any, width: int) -> Iterator[tuple[slice, Any]]:
    """As many of the rows ``X`` at a time as scores of this ``width`` are to be held for."""
    step = max(1, CHUNK_BYTES // (8 * width))
    if X.shape[0] <= step:
        yield slice(None), X
        return
    for start in range(0, X.shape[0], step):
        part = slice(start, start + step)
        yield part, X[part]
