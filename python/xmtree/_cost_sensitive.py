"""Boosting that predicts the class of lowest expected cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from xmtree import _core, _validation
from xmtree._boosting import Boosting
from xmtree._labels import Target
from xmtree._prediction import TopK, in_parts
from xmtree._sharing import Change
from xmtree._typing import MatrixLike

#: Committees that the temperature is found with; five find much the same.
_N_FOLDS = 3
#: Logarithms of the temperatures that are searched: probabilities of 0 and 1, and equal ones.
_RANGE = (-7.0, 14.0)


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
        return super().temperature_ if self._costs is None else self._temperature

    def staged_predict(self, X: MatrixLike) -> Iterator[NDArray[Any]]:
        now, rows = self._now(X)
        if now._costs is None:
            yield from super(CostSensitiveBoosting, now).staged_predict(X)
            return
        for scores in now._staged_scores(rows):
            yield now.classes_[now._expected_costs(scores).argmin(axis=1)]

    def _learn(
        self,
        learn: Callable[..., object],
        model: Any,
        X: Any,
        target: Target,
        sample_weight: Any,
        change: Change[Any],
    ) -> None:
        costs = checked_costs(self.cost_matrix, len(target.classes))
        self._costs, self._temperature = costs, 1.0

        def learn_all(X: Any, codes: Any, weights: Any, *how: Any) -> None:
            learn(X, codes, weights, *how)
            if costs is not None:
                self._temperature = _temperature(model, X, codes, weights, *how)

        super()._learn(learn_all, model, X, target, sample_weight, change)

    def _topk(self, X: Any, k: int) -> TopK:
        if self._costs is None:
            return super()._topk(X, k)
        parts = [self._cheapest(rows, k) for _, rows in in_parts(X, len(self.classes_))]
        codes, costs = (np.concatenate(part) for part in zip(*parts, strict=True))
        return codes, costs

    def _cheapest(self, X: Any, k: int) -> TopK:
        expected = self._expected_costs(self._call(self._model.predict_scores, X))
        codes = np.argsort(expected, axis=1, kind="stable")[:, :k]
        scores = -np.take_along_axis(expected, codes, axis=1)
        return codes.astype(np.int32), scores.astype(np.float32)

    def _expected_costs(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Expected cost of predicting each class, by row."""
        # Not as a matrix product: the last bits of that depend on how many rows there are.
        costs: Any = self._costs
        found: NDArray[np.float64] = np.einsum("ij,jk->ik", self._chances(scores), costs)
        return found

    def _more_state(self) -> dict[str, Any]:
        state = super()._more_state()
        if self._costs is not None:
            state |= {"costs": self._costs.tolist(), "temperature": self._temperature}
        return state

    def _set_more_state(self, state: dict[str, Any]) -> None:
        super()._set_more_state(state)
        if "costs" in state:
            self._costs = checked_costs(state["costs"], len(self.classes_))
            self._temperature = float(state["temperature"])


def checked_costs(given: Any, n_classes: int) -> NDArray[np.float64] | None:
    """``cost_matrix`` as float64, row = true class, column = predicted class."""
    if given is None:
        return None
    try:
        costs = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"cost_matrix must be a matrix of numbers: {error}") from error
    if costs.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost_matrix must have a row and a column for each of the {n_classes} classes of y, "
            f"got shape {costs.shape}"
        )
    wrong = np.argwhere(~((costs >= 0) & (costs <= _validation.MAX_REAL)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"cost_matrix must be finite and not negative, got {costs[row, column]} in row {row}, "
            f"column {column}"
        )
    right = np.flatnonzero(np.diag(costs))
    if len(right):
        raise ValueError(
            f"cost_matrix must be 0 on its diagonal, got {costs[right[0], right[0]]} in row "
            f"{right[0]}"
        )
    if n_classes > 1 and not costs.any():
        raise ValueError("cost_matrix must have a cost above 0")
    return costs


def folds(codes: NDArray[np.uint32], n_folds: int, seed: int) -> NDArray[np.intp]:
    """A fold for each row, at random, the rows of each class shared out evenly."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    found = np.empty(len(codes), np.intp)
    found[order] = np.arange(len(codes)) % n_folds
    return found


def _temperature(
    model: Any, X: Any, codes: NDArray[np.uint32], weights: Any, n_threads: int, report: Any
) -> float:
    """What to divide scores of ``model`` by so that their softmax has the lowest log loss, by
    committees trained like it on parts of the rows."""
    n_classes, n_trees = model.n_classes, int(model.summary()["n_trees"])
    _validation.check_dense_size(len(codes), n_classes, 8, "calibration for cost_matrix needs them")
    present = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
    if n_trees == 0 or len(present) < _N_FOLDS:
        return 1.0
    # As many rounds as the model has, which early stopping may have chosen.
    params = model.params | {"n_estimators": n_trees, "early_stopping": False}
    of_row = folds(codes[present], _N_FOLDS, params["seed"])
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
    held_out_scores = np.concatenate(scores) / (n_classes - 1)
    own = np.arange(len(rows)), codes[rows]

    def log_loss(log_temperature: float) -> float:
        scaled = held_out_scores * np.exp(-log_temperature)
        return float(np.average(logsumexp(scaled, axis=1) - scaled[own], weights=weights))

    return float(np.exp(minimize_scalar(log_loss, bounds=_RANGE, method="bounded").x))
