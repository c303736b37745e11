"""Probabilities of labels, from the scores of any learner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from xmtree import _core, _validation
from xmtree._calibration import Calibration, Scale
from xmtree._sharing import Labelled
from xmtree._typing import MatrixLike

TopK = tuple[NDArray[np.int32], NDArray[np.float32]]

#: Which scores ``predict_topk`` returns.
Scores = Literal["raw", "probability"]

#: Bytes of scores held at a time.
CHUNK_BYTES = 64 << 20


class ProbabilityMixin(Labelled):
    """``predict_proba`` and what else rests on probabilities.

    A learner says by ``_n_scored`` how many labels of a row can have a score, None for all, and
    by ``_scale`` what its scores are; or all of it by ``_chances``.
    """

    _topk: Any
    _call: Any
    _now: Any
    _calibration: Calibration = Calibration()
    _scale: ClassVar[Scale] = "logit"

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
            Where the array would take more than 8 GiB or half of the memory;
            ``predict_topk(X, k, scores="probability")`` has those of the best labels.
        """
        now, rows = self._now(X)
        now._check_dense_size(rows)
        chances: NDArray[np.float32] = now._all_chances(rows)
        return chances

    def _check_dense_size(self, rows: Any) -> None:
        """Refuses scores of all classes where they would not fit in memory."""
        _validation.check_dense_size(
            rows.shape[0], len(self.classes_), 4, "predict_topk(X, k) gives the k best per row"
        )

    def _n_scored(self) -> int | None:
        """How many labels of a row can have a score; None: all, by ``predict_scores``."""
        return None

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
        n, n_classes = X.shape[0], len(self.classes_)
        parts = list(self._parts(n, n_classes))
        if len(parts) == 1:
            return self._chances_of_part(X)
        chances = np.empty((n, n_classes), np.float32)
        for part in parts:
            chances[part] = self._chances_of_part(X[part])
        return chances

    def _chances_of_part(self, X: Any) -> NDArray[np.float32]:
        """As ``_all_chances`` of so few rows that scores of all classes fit in memory."""
        n_classes, n_scored = len(self.classes_), self._n_wanted()
        if n_scored is None:
            chances = self._chances(self._call(self._model.predict_scores, X))
            codes = np.tile(np.arange(n_classes, dtype=np.int32), (len(chances), 1))
        else:
            codes, scores = self._topk(X, n_scored)
            chances = self._chances(scores)
        return _core.spread_over_labels(codes, chances, n_classes, self._y_form == "labels")

    def _probabilities(self, X: Any, k: int) -> TopK:
        """As ``_topk`` of the validated rows ``X``, with probabilities for scores."""
        codes = np.empty((X.shape[0], k), np.int32)
        chances = np.empty((X.shape[0], k), np.float32)
        n_scored = self._n_wanted()
        for part in self._parts(X.shape[0], n_scored or len(self.classes_)):
            # scipy takes longer to cut out a row than the model to predict it.
            rows = X if part == slice(0, X.shape[0]) else X[part]
            if n_scored is None:
                best, _ = self._topk(rows, k)
                of_best = self._all_chances(rows)[np.arange(len(best))[:, np.newaxis], best]
            else:
                best, scores = self._topk(rows, max(k, n_scored))
                of_best = self._chances(scores)[:, :k]
            codes[part] = best[:, :k]
            chances[part] = np.where(best[:, :k] >= 0, of_best, -np.inf)
        return codes, chances

    @staticmethod
    def _parts(n_rows: int, width: int) -> Iterator[slice]:
        """The rows, as many at a time as scores of this ``width`` are to be held for."""
        step = max(1, CHUNK_BYTES // (8 * width))
        return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))
