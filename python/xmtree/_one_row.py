"""Shortcuts for single rows, of which checks and conversions take longer than the core.

Each gives what the long way would, or says that this is not plain. The long way takes about fifty
times as long as learning a row.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray

_CSR = (sp.csr_matrix, sp.csr_array)
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

#: Labels that are looked up one by one, at most.
_FEW = 8

#: Types of labels of which an array holds the very value.
_PLAIN_LABELS = (int, str, np.int64, np.str_)


def is_ready(X: Any) -> bool:
    """Whether the core takes the rows as they are."""
    is_plain = X.flags.c_contiguous if type(X) is np.ndarray else type(X) in _CSR
    return is_plain and X.ndim == 2 and X.dtype in _FLOATS


def is_valid(estimator: Any, X: Any, any_width: bool) -> bool:
    """Whether validation would return ``X`` itself.

    All that scikit-learn checks of such rows is looked at here, or by the core.
    """
    return (
        is_ready(X)
        and X.shape[0] > 0
        and X.shape[1] > 0
        and (any_width or X.shape[1] == estimator.n_features_in_)
        and not hasattr(estimator, "feature_names_in_")
    )


def codes(y: Any, classes: NDArray[Any], form: str) -> Any:
    """The codes of a few labels in ``y``, where it is plain that all are among ``classes``; else
    None. Plain are integers, strings or bools in an array, or a list of one, of the type of sorted
    classes; and for the form "sparse" a CSR indicator of ones, which is returned as it is."""
    if form == "sparse":
        is_csr = type(y) in _CSR and y.ndim == 2 and y.shape[1] == len(classes)
        return y if is_csr and y.has_canonical_format and (y.data == 1).all() else None
    if form != "labels":
        return None
    if type(y) is list and len(y) == 1 and type(y[0]) in _PLAIN_LABELS:
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


def taken(codes: NDArray[np.int32], classes: NDArray[Any]) -> NDArray[Any]:
    """The classes of these numbers; -1 is taken for 0. Nothing is done to all classes: there may
    be very many.

    Indexing by an array gives other threads the interpreter, which costs a call of few rows more
    than anything else where several threads ask for such.
    """
    if codes.size > _FEW:
        # Not with mode="clip", which would name a class that does not exist by another's label.
        return classes.take(np.maximum(codes, 0))
    labels = np.empty(codes.size, classes.dtype)
    for i, code in enumerate(codes.ravel().tolist()):
        labels[i] = classes[max(code, 0)]
    return labels.reshape(codes.shape)


def n_threads(n_jobs: int | None, n_rows: int | None = None) -> int:
    """Threads to use, for ``n_rows`` if that is known: None is 1, -1 all cores, -2 all but one and
    so on."""
    if n_rows == 1 and (n_jobs is None or (type(n_jobs) is int and n_jobs != 0)):
        # Threads, and even the question how many there are, take longer than a row.
        return 1
    return int(effective_n_jobs(n_jobs))
