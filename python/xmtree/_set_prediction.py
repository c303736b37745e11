"""Label sets by ``threshold``: a label is predicted if its probability is above its threshold."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree import _validation
from xmtree._sklearn import StrOptions, validate_params
from xmtree._thresholds import AVERAGES, Thresholds

#: Constraints of the parameter other than an interval of numbers.
CONSTRAINT: list[Any] = [None, StrOptions(set(AVERAGES)), "array-like"]


class ThresholdMixin:
    """The parameter ``threshold`` of learners of label sets."""

    threshold: Any
    #: Thresholds that training has fitted.
    _thresholds: Thresholds | None = None

    def _check_thresholds(self: Any) -> None:
        """Refuse thresholds from a file that do not fit the classes."""
        found = self._thresholds
        if found is not None and found.values.shape not in ((), (len(self.classes_),)):
            raise ValueError(f"{len(found.values)} thresholds")

    @property
    def threshold_(self: Any) -> float | NDArray[np.float32]:
        """Return the threshold of label sets, or one for each of ``classes_``."""
        self._fitted()
        threshold = self._bounds()[0]
        return threshold if np.ndim(threshold) else float(threshold)

    def _bounds(self: Any) -> tuple[Any, int]:
        """Return the thresholds, and the smallest number of labels of a row."""
        if self.threshold is None:
            calibration = self._calibration
            return calibration.threshold, calibration.n_least
        validate_params(self, "threshold")
        if not isinstance(self.threshold, str):
            return checked(self.threshold, len(self.classes_)), 0
        found = self._thresholds
        if found is None or found.average != self.threshold:
            had = "no fitted threshold" if found is None else f'threshold="{found.average}"'
            raise ValueError(
                f'threshold="{self.threshold}" is fitted in fit, and this model has {had}; call '
                "fit again, or set numbers"
            )
        return found.values if found.average == "macro" else float(found.values), found.n_least


def checked(threshold: Any, n_classes: int) -> Any:
    """Return a number, or an array with a threshold for each class; refuse other arrays."""
    if isinstance(threshold, Real):
        return float(threshold)
    values = _validation.plain_array(threshold)
    if values.shape != (n_classes,) or values.dtype.kind not in "iuf":
        raise ValueError(
            f"threshold must be one number, or one for each of the {n_classes} classes in the "
            f"order of classes_; got an array of {values.dtype} of shape {values.shape}"
        )
    if not np.all((values >= 0) & (values <= 1)):
        at = int(np.argmin((values >= 0) & (values <= 1)))
        raise ValueError(f"threshold must be from 0 to 1, got {values[at]} for class {at}")
    return np.float32(values)
