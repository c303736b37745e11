"""Misclassification costs: their matrix, and probabilities that expected costs can rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from xmtree import _validation

#: Logarithms of the temperatures that are searched: probabilities of 0 and 1, and equal ones.
_RANGE = (-7.0, 14.0)


def checked(given: Any, n_classes: int) -> NDArray[np.float64] | None:
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


def expected(chances: NDArray[np.floating], costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected cost of predicting each class, by row."""
    # Not as a matrix product: the last bits of that depend on how many rows there are.
    found: NDArray[np.float64] = np.einsum("ij,jk->ik", chances, costs)
    return found


def folds(codes: NDArray[np.uint32], n_folds: int, seed: int) -> NDArray[np.intp]:
    """A fold for each row, at random, the rows of each class shared out evenly."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    found = np.empty(len(codes), np.intp)
    found[order] = np.arange(len(codes)) % n_folds
    return found


def temperature(
    scores: NDArray[np.float64], codes: NDArray[np.uint32], weights: NDArray[np.float64] | None
) -> float:
    """What to divide scores by so that their softmax has the lowest log loss."""
    own = np.arange(len(codes)), codes

    def loss(log_temperature: float) -> float:
        scaled = scores * np.exp(-log_temperature)
        return float(np.average(logsumexp(scaled, axis=1) - scaled[own], weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=_RANGE, method="bounded").x))
