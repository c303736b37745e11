"""Private names of scikit-learn, used only here so that a change affects one place.

The tests run with the oldest and the newest supported version (``make release-check``).
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _check_sample_weight
from sklearn.utils.validation import _get_feature_names as feature_names

if TYPE_CHECKING:
    # scikit-learn has no types, so its classes would accept any argument.
    class ClassifierMixin: ...

    class MetaEstimatorMixin: ...

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def __sklearn_tags__(self) -> Any: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "Interval",
    "InvalidParameterError",
    "MetaEstimatorMixin",
    "StrOptions",
    "feature_names",
    "sample_weights",
    "validate_params",
]


def validate_params(estimator: Any, *names: str) -> None:
    """Check the named parameters, or all, by the estimator's ``_parameter_constraints``."""
    names = names or tuple(estimator.get_params(deep=False))
    values = {name: getattr(estimator, name) for name in names}
    validate_parameter_constraints(
        estimator._parameter_constraints, values, type(estimator).__name__
    )


def sample_weights(weights: Any, X: Any) -> NDArray[np.float64]:
    """Return one weight for each row, after checking that none is below 0."""
    checked: NDArray[np.float64] = _check_sample_weight(
        weights, X, dtype=np.float64, ensure_non_negative=True
    )
    if not checked.any():  # scikit-learn checks this from 1.9 on
        raise ValueError("sample_weight must contain at least one non-zero number")
    return checked
