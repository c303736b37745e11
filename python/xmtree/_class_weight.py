"""The parameter ``class_weight``: a factor of the example weights for each class."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from xmtree import _validation
from xmtree._labels import Target
from xmtree._labels.forms import as_label_lists, entry_rows, label_array, positions, shown
from xmtree._sklearn import StrOptions

#: Constraint of the parameter.
CONSTRAINT: list[Any] = [StrOptions({"balanced"}), dict, None]


def times(
    class_weight: Any, sample_weight: NDArray[np.float64] | None, target: Target
) -> NDArray[np.float64] | None:
    """Return ``sample_weight`` times the weight of each row's class; None if all are 1.

    ``class_weight`` is the parameter, or an array with the weight of each class. A label set has
    the mean weight of its labels, and 1 without labels.
    """
    if class_weight is None:
        return sample_weight
    if sample_weight is not None:
        check_consistent_length(target.codes, sample_weight)
    if isinstance(class_weight, dict):
        weights = _named(class_weight, target.classes, target.is_open)
    elif isinstance(class_weight, str):
        weights = balanced(totals(target, sample_weight))
    else:
        weights = class_weight
    factors: NDArray[np.float64]
    if target.multilabel:
        sets = target.codes.tocsr()
        counts = np.diff(sets.indptr)
        factors = np.ones(len(counts))
        np.divide(sets.astype(np.float64) @ weights, counts, out=factors, where=counts > 0)
    else:
        factors = weights[target.codes]
    return factors if sample_weight is None else factors * sample_weight


def totals(target: Target, sample_weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the total weight of the rows of each class."""
    codes, counted = target.codes, sample_weight
    if target.multilabel:
        # A row counts once for each of its labels.
        codes = target.codes.tocsr().indices
        if counted is not None:
            counted = counted[entry_rows(target.codes.tocsr())]
    return np.bincount(codes, counted, len(target.classes)).astype(np.float64)


def balanced(*parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return class weights that give all classes the same total weight, by totals of parts."""
    totals = np.sum(parts, axis=0)
    share = totals.sum() / max(np.count_nonzero(totals), 1)
    weights: NDArray[np.float64] = np.zeros(len(totals))
    np.divide(share, totals, out=weights, where=totals > 0)
    return weights


def _named(
    class_weight: dict[Any, Any], classes: NDArray[Any], is_open: bool
) -> NDArray[np.float64]:
    """Return class weights from a dictionary, 1 for classes that are not in it."""
    weights = np.ones(len(classes))
    if not class_weight:
        return weights
    for label, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0 <= float(weight) <= _validation.MAX_REAL):
            raise ValueError(
                f"class_weight must be finite and not negative, got {weight!r} for {label!r}"
            )
    labels = label_array(list(class_weight), "class_weight")
    is_flat = labels.ndim == 1
    at = positions(labels, classes) if is_flat else np.full(len(labels), -1, np.int64)
    unknown = as_label_lists([*class_weight])[at < 0]
    # As in scikit-learn, unknown labels are allowed if each class has a weight: y may be a part.
    if len(unknown) and not is_open and len(labels) - len(unknown) < len(classes):
        raise ValueError(
            f"class_weight contains labels that are not in y: {shown(unknown)}; the classes are "
            f"{shown(classes)}"
        )
    weights[at[at >= 0]] = np.array([*class_weight.values()], np.float64)[at >= 0]
    return weights
