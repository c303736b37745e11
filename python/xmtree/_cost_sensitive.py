"""Boosting that predicts the class of lowest expected cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from xmtree import _core, _costs, _validation
from xmtree._base import without_own_name
from xmtree._boosting import Boosting
from xmtree._labels import Target
from xmtree._probabilities import CHUNK_BYTES, TopK
from xmtree._sharing import Change
from xmtree._typing import MatrixLike

#: Committees that the temperature is found with; five find much the same.
_N_FOLDS = 3


@without_own_name
class CostSensitiveBoosting(Boosting):
    """Base of a boosting classifier with the parameter ``cost_matrix``.

    Boosting goes on raising its scores, so that their probabilities are near 0 and 1 and costs
    would change few predictions. So with costs ``fit`` calibrates them: it divides the scores by
    a temperature, that of the lowest log loss on rows that a committee was not trained on.
    """

    _python_constraints: ClassVar[dict[str, Any]] = {
        **Boosting._python_constraints,
        "cost_matrix": [None, "array-like"],
    }
    cost_matrix: Any
    #: Those of ``fit``, whatever the constructor's are now.
    _costs: NDArray[np.float64] | None = None
    _temperature: float = 1.0

    @property
    def temperature_(self) -> float:
        """What F / (n_classes - 1) is divided by before the softmax gives probabilities."""
        return super().temperature_ if self._costs is None else self._temperature

    def staged_predict(self, X: MatrixLike) -> Iterator[NDArray[Any]]:
        """The predicted label of each row after each round.

        With ``cost_matrix`` that of lowest expected cost, at the temperature of the whole.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Yields
        ------
        array of shape (n,)

        Raises
        ------
        ValueError
            Where the labels of all rounds, or with ``cost_matrix`` the scores of all classes,
            would not fit in memory.
        """
        now, rows = self._now(X)
        costs = now._costs
        if costs is None:
            yield from super(CostSensitiveBoosting, now).staged_predict(X)
            return
        for scores in now._staged_scores(rows):
            expected = _costs.expected(now._chances(scores), costs)
            yield now.classes_[expected.argmin(axis=1)]

    def _learn(
        self,
        learn: Callable[..., object],
        model: Any,
        X: Any,
        target: Target,
        sample_weight: Any,
        change: Change[Any],
    ) -> None:
        costs = _costs.checked(self.cost_matrix, len(target.classes))
        self._costs, self._temperature = costs, 1.0

        def learn_all(X: Any, codes: Any, weights: Any, *how: Any) -> None:
            learn(X, codes, weights, *how)
            if costs is not None:
                self._temperature = _temperature(model, X, codes, weights, *how)

        super()._learn(learn_all, model, X, target, sample_weight, change)

    def _topk(self, X: Any, k: int) -> TopK:
        if self._costs is None:
            return super()._topk(X, k)
        step = max(1, CHUNK_BYTES // (8 * len(self.classes_)))
        starts = range(0, X.shape[0], step)
        parts = [self._cheapest(X[start : start + step], self._costs, k) for start in starts]
        codes, costs = (np.concatenate(part) for part in zip(*parts, strict=True))
        return codes, costs

    def _cheapest(self, X: Any, costs: NDArray[np.float64], k: int) -> TopK:
        chances = self._chances(self._call(self._model.predict_scores, X))
        expected = _costs.expected(chances, costs)
        codes = np.argsort(expected, axis=1, kind="stable")[:, :k]
        scores = -np.take_along_axis(expected, codes, axis=1)
        return codes.astype(np.int32), scores.astype(np.float32)

    def _more_state(self) -> dict[str, Any]:
        state = super()._more_state()
        if self._costs is not None:
            state |= {"costs": self._costs.tolist(), "temperature": self._temperature}
        return state

    def _set_more_state(self, state: dict[str, Any]) -> None:
        super()._set_more_state(state)
        if "costs" in state:
            self._costs = _costs.checked(state["costs"], len(self.classes_))
            self._temperature = float(state["temperature"])


def _temperature(
    model: Any, X: Any, codes: NDArray[np.uint32], weights: Any, n_threads: int, report: Any
) -> float:
    """The temperature of ``model``, by committees trained like it on parts of the rows."""
    n_classes, n_trees = model.n_classes, int(model.summary()["n_trees"])
    _validation.check_dense_size(len(codes), n_classes, 8, "calibration for cost_matrix needs them")
    present = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
    if n_trees == 0 or len(present) < _N_FOLDS:
        return 1.0
    # As many rounds as the model has, which early stopping may have chosen.
    params = model.params | {"n_estimators": n_trees, "early_stopping": False}
    of_row = _costs.folds(codes[present], _N_FOLDS, params["seed"])
    kept, scores = [], []
    for fold in range(_N_FOLDS):
        train, held_out = present[of_row != fold], present[of_row == fold]
        # A class that is in no other fold says nothing about the scores of those that are.
        held_out = held_out[np.isin(codes[held_out], codes[train])]
        if len(held_out):
            part = _core.Classifier("gamble", json.dumps(params), n_classes, False)
            of_train = None if weights is None else weights[train]
            part.fit(X[train], codes[train], of_train, n_threads, report)
            scores.append(part.predict_scores(X[held_out], n_threads=n_threads))
            kept.append(held_out)
    if not kept:
        return 1.0
    rows = np.concatenate(kept)
    weights = None if weights is None else weights[rows]
    return _costs.temperature(np.concatenate(scores) / (n_classes - 1), codes[rows], weights)
