"""The pool: checking its rows, and finding those that the caller means."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _validation
from xmtree._active.selection import Rows
from xmtree._gamble import GambleClassifier
from xmtree._oaa import OAAClassifier
from xmtree._sparse import check_structure


def checked(X: Any, takes_nan: bool) -> Any:
    """Validated rows whose values the core accepts, of a CSR matrix in canonical form.

    All are checked at once: of some of them later on, the core would name the wrong row.
    """
    # The core checks all rows that it predicts, so a small model is made to predict them.
    small = GambleClassifier(n_estimators=1, max_leaves=2) if takes_nan else OAAClassifier()
    empty = sp.csr_matrix if sp.issparse(X) else np.zeros
    model: Any = small.fit(empty((2, X.shape[1]), dtype=X.dtype), [0, 1])

    def check(X: Any) -> Any:
        model._model.predict_topk(X, 1)
        return X

    return _validation.canonical(X, check)


def free_numbers(rows: Any, free: NDArray[np.bool_], left_out: Rows, n_features: int) -> Rows:
    """``rows`` as row numbers of the pool, each ``free`` to be taught."""
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise TypeError(
            "rows must be row numbers of the pool, one dimension of at least one integer, or "
            f"rows of shape (n, {n_features}); got {numbers.dtype} {numbers.shape}"
        )
    outside = numbers[(numbers < 0) | (numbers >= len(free))]
    if len(outside):
        raise ValueError(
            f"rows must be from 0 to {len(free) - 1}, the rows of the pool, got {outside[0]}"
        )
    values, counts = np.unique(numbers, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"rows names row {values[counts.argmax()]} twice")
    taken = numbers[~free[numbers]]
    if len(taken):
        how = "was skipped" if taken[0] in left_out else "has a label already"
        raise ValueError(f"row {taken[0]} of the pool {how}")
    return numbers.astype(np.int64)


def find_rows(rows: Any, pool: Any, order: Rows) -> Rows:
    """Where in ``pool`` the validated ``rows`` are, searched in this ``order``."""
    if sp.issparse(pool):
        check_structure(rows, "rows")
        rows = sp.csr_array(rows, copy=True)
        rows.sum_duplicates()
    elif hasattr(rows, "toarray"):
        rows = rows.toarray()
    at: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, key in zip(order[::-1].tolist(), _keys(pool[order[::-1]]), strict=True):
        at[key].append(number)
    numbers = []
    for row, key in enumerate(_keys(rows)):
        if not at[key]:
            raise ValueError(
                f"row {row} is no row of the pool that is without a label; "
                "rows to learn from belong to the X of start"
            )
        numbers.append(at[key].pop())
    return np.array(numbers, np.int64)


def _keys(X: Any) -> list[bytes]:
    """Rows as bytes, alike where the rows are to the core."""
    if not sp.issparse(X):
        return [row.tobytes() for row in _single(X)]
    matrix: Any = X
    csr: Any = matrix.copy()
    csr.data = _single(csr.data)
    csr.eliminate_zeros()
    parts = zip(csr.indptr[:-1].tolist(), csr.indptr[1:].tolist(), strict=True)
    columns = csr.indices.astype(np.int64)
    return [columns[a:b].tobytes() + csr.data[a:b].tobytes() for a, b in parts]


def _single(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values as the core reads them, each number and NaN in one form."""
    with np.errstate(over="ignore"):
        # Adding 0 makes 0 of -0.
        single = values.astype(np.float32) + np.float32(0)
    single[np.isnan(single)] = np.nan
    return single
