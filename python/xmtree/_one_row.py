"""Fast paths for calls with one or few rows, where checks and conversions outlast the core.

Full validation takes about fifty times as long as learning a row. Each function here either gives
the result of full validation, or reports that the input needs it.
"""

from operator import is_
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray

from xmtree import _calibration

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class Csr(NamedTuple):
    """The arrays of a CSR matrix of float32. Making scipy's takes longer than predicting a row."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]
    shape: tuple[int, int]
    dtype: np.dtype[np.float32] = np.dtype(np.float32)
    ndim: int = 2


_CSR = (sp.csr_matrix, sp.csr_array, Csr)

#: Largest number of labels to look up one by one.
_FEW = 8

#: Types of labels whose values an array holds exactly.
_EXACT_TYPES = (int, str, np.int64, np.str_)


def is_ready(X: Any) -> bool:
    """Return whether the core accepts the rows without conversion."""
    is_contiguous = X.flags.c_contiguous if type(X) is np.ndarray else type(X) in _CSR
    return is_contiguous and X.ndim == 2 and X.dtype in _FLOATS


def is_valid(estimator: Any, X: Any, any_width: bool) -> bool:
    """Return whether full validation would return ``X`` itself.

    Everything that scikit-learn checks in such rows is checked here or in the core.
    """
    return (
        is_ready(X)
        and X.shape[0] > 0
        and X.shape[1] > 0
        and (any_width or X.shape[1] == estimator.n_features_in_)
        and not hasattr(estimator, "feature_names_in_")
    )


def learnable_codes(estimator: Any, X: Any, y: Any) -> Any:
    """Return the codes of labels of rows that ``partial_fit`` can learn at once, else None.

    No check is skipped: the parameters are the very objects that the last call checked, and the
    core checks all values.
    """
    attributes, checked = vars(estimator), estimator._compared
    if checked is None or not all(map(is_, map(attributes.get, checked), checked.values())):
        return None
    # A class_weight may have been changed in place, and verbose shows a progress bar.
    if estimator.class_weight is not None or estimator.verbose:
        return None
    if not is_valid(estimator, X, estimator._takes_any_width()):
        return None
    if X.shape[0] >= _calibration.LEAST_ROWS:  # such a batch may calibrate
        return None
    codes = known_codes(y, estimator.classes_, estimator._y_form)
    return codes if codes is not None and codes.shape[0] == X.shape[0] else None


def known_codes(y: Any, classes: NDArray[Any], form: str) -> Any:
    """Return the codes of a few labels if all are certain to be among ``classes``, else None.

    These are integers, strings or booleans in an array of the type of the sorted classes, or in a
    list of one. For the form "sparse" a CSR indicator of ones is returned as it is.
    """
    if form == "sparse":
        is_csr = type(y) in _CSR and y.ndim == 2 and y.shape[1] == len(classes)
        return y if is_csr and y.has_canonical_format and (y.data == 1).all() else None
    if form != "labels":
        return None
    if type(y) is list and len(y) == 1 and type(y[0]) in _EXACT_TYPES:
        label, y = y[0], np.array(y)
        if y[0] != label:  # numpy drops "\0" at the end
            return None
    if type(y) is not np.ndarray or y.ndim != 1:
        return None
    if y.dtype.kind != classes.dtype.kind or y.dtype.itemsize > classes.dtype.itemsize:
        return None
    if y.dtype.kind == "O":
        if any(type(label) is not str for label in y):
            return None
    elif y.dtype.kind not in "iubU":
        return None
    at = classes.searchsorted(y)
    return at.astype(np.uint32) if (classes.take(at, mode="clip") == y).all() else None


def class_labels(codes: NDArray[np.int32], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of class numbers; -1 is read as 0.

    The time does not depend on the number of classes. Few labels are looked up one by one:
    indexing by an array releases the interpreter, which is expensive if several threads predict
    few rows each.
    """
    if codes.size > _FEW:
        # mode="clip" would hide a class number that does not exist.
        return classes.take(np.maximum(codes, 0))
    labels = np.empty(codes.size, classes.dtype)
    for i, code in enumerate(codes.ravel().tolist()):
        labels[i] = classes[max(code, 0)]
    return labels.reshape(codes.shape)


def has_stored_options(estimator: Any, stored: dict[str, Any]) -> bool:
    """Return whether the parameters of predictions equal the ``stored`` ones of the model.

    The model has checked those, and checking them again takes as long as a prediction.
    """
    for name in estimator._prediction_params:
        value = getattr(estimator, name)
        if type(value) is not type(stored[name]) or value != stored[name]:
            return False
    return True


def n_threads(n_jobs: int | None, n_rows: int | None = None) -> int:
    """Return the number of threads for ``n_jobs``: None is 1, -1 all cores, -2 all but one, ..."""
    if n_rows == 1 and (n_jobs is None or (type(n_jobs) is int and n_jobs != 0)):
        # Starting threads, and even counting the cores, takes longer than a row.
        return 1
    return int(effective_n_jobs(n_jobs))
