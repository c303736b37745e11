"""``class_weight``: factors of the examples' weights, one for each class."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from xmtree import _validation
from xmtree._labels import Target
from xmtree._labels.forms import as_label_lists, label_array, positions, shown
from xmtree._sklearn import StrOptions

#: What the parameter may be.
CONSTRAINT: list[Any] = [StrOptions({"balanced"}), dict, None]


def times(
    class_weight: Any, sample_weight: NDArray[np.float64] | None, target: Target
) -> NDArray[np.float64] | None:
    """``sample_weight`` times the weight of each row's class; None: all are 1."""
    if class_weight is None:
        return sample_weight
    if target.multilabel:
        raise ValueError(
            "class_weight is for one label per row: a label set has no weight of its own that "
            "follows from those of its labels; pass sample_weight"
        )
    if sample_weight is not None:
        check_consistent_length(target.codes, sample_weight)
    if isinstance(class_weight, dict):
        of_class = _named(class_weight, target.classes, target.is_open)
    else:
        of_class = _balanced(target, sample_weight)
    of_row: NDArray[np.float64] = of_class[target.codes]
    return of_row if sample_weight is None else of_row * sample_weight


def _balanced(target: Target, sample_weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Weights with which every class that occurs has the same total."""
    totals = np.bincount(target.codes, sample_weight, len(target.classes)).astype(np.float64)
    share = totals.sum() / max(np.count_nonzero(totals), 1)
    of_class: NDArray[np.float64] = np.zeros(len(totals))
    np.divide(share, totals, out=of_class, where=totals > 0)
    return of_class


def _named(
    class_weight: dict[Any, Any], classes: NDArray[Any], is_open: bool
) -> NDArray[np.float64]:
    """The weights that the dictionary has; 1 for the other classes."""
    found = np.ones(len(classes))
    if not class_weight:
        return found
    for label, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0 <= float(weight) <= _validation.MAX_REAL):
            raise ValueError(
                f"class_weight must be finite and not negative, got {weight!r} for {label!r}"
            )
    labels = label_array(list(class_weight), "class_weight")
    is_flat = labels.ndim == 1
    at = positions(labels, classes) if is_flat else np.full(len(labels), -1, np.int64)
    unknown = as_label_lists([*class_weight])[at < 0]
    # As in scikit-learn: where each class has a weight, others may be missing in this part of y.
    if len(unknown) and not is_open and len(labels) - len(unknown) < len(classes):
        raise ValueError(
            f"class_weight names {shown(unknown)}, no label of y; the classes are {shown(classes)}"
        )
    found[at[at >= 0]] = np.array([*class_weight.values()], np.float64)[at >= 0]
    return found
