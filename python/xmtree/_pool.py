"""The rows that a learner chooses from: finding some of them, and what is labelled."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _validation
from xmtree._gamble import GambleClassifier
from xmtree._labels import encode_single

Rows = NDArray[np.int64]


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


def like(pool: Any, rows: Any) -> Any:
    """``rows`` of the form that ``pool`` has."""
    if sp.issparse(pool):
        given = sp.csr_array(rows, copy=True)
        given.sum_duplicates()
        return given
    return rows.toarray() if hasattr(rows, "toarray") else rows


def places_of(given: Any, pool: Any, order: Rows) -> Rows:
    """Where in ``pool`` the rows ``given`` are, looked for in this ``order``."""
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, key in zip(order[::-1].tolist(), _keys(pool[order[::-1]]), strict=True):
        places[key].append(number)
    numbers = []
    for row, key in enumerate(_keys(given)):
        if not places[key]:
            raise ValueError(
                f"row {row} is no row of the pool that is without a label; "
                "rows to learn from belong to the X of start"
            )
        numbers.append(places[key].pop())
    return np.array(numbers, np.int64)


def labels_of(y: Any, n: int, name: str) -> NDArray[Any]:
    """One label for each of ``n`` rows."""
    target = encode_single(y, name)
    if len(target.codes) != n:
        raise ValueError(f"{name} has {len(target.codes)} labels for {n} rows")
    labels: NDArray[Any] = target.classes[target.codes]
    return labels


def first_set(usable: Rows, labels: NDArray[Any], n: int, draw: np.random.Generator) -> Rows:
    """The first working set of ``fit``: one row of every class, the rest of ``n`` at random."""
    one_each, others = _one_each(usable, labels, draw)
    return np.concatenate([one_each, others])[: max(n, len(one_each))]


def held_out(usable: Rows, labels: NDArray[Any], share: float, draw: np.random.Generator) -> Rows:
    """Validation rows from ``usable``, the last of no class."""
    _, others = _one_each(usable, labels, draw)
    if not len(others):
        raise ValueError(
            f"early_stopping needs rows to hold out, but of the {len(usable)} rows each is "
            "the only one of its class; pass X_val and y_val"
        )
    return others[: max(1, round(share * len(usable)))]


def check_kind(labels: NDArray[Any], others: NDArray[Any], where: str) -> None:
    """Refuses labels that numpy would change, or not tell apart, beside the ``others``."""
    if labels.dtype == others.dtype:
        return
    mixed = f"y mixes types: its labels are {labels.dtype}, those {where} {others.dtype}"
    if _kind(labels) != _kind(others):
        raise ValueError(mixed)
    common = np.promote_types(labels.dtype, others.dtype)
    for values in (labels, others):
        changed = _changed(values, common)
        if len(changed):
            raise ValueError(f"{mixed}; as {common}, which is both, {changed[0]} would be another")


def looked_at(X: Any) -> Any:
    """Validated rows whose values the core takes, of a CSR matrix in canonical form.

    Asked for all at once: of some of them later on, the core would name the wrong row.
    """
    # What the core checks it checks of any rows it is given, so it is asked for an answer.
    n = X.shape[1]
    model = GambleClassifier(n_estimators=1, max_leaves=2).fit(np.zeros((2, n), X.dtype), [0, 1])

    def look(X: Any) -> Any:
        model._model.predict_topk(X, 1)
        return X

    return _validation.canonical(X, look)


def _kind(labels: NDArray[Any]) -> str:
    return {"i": "number", "u": "number", "f": "number", "O": "U"}.get(
        labels.dtype.kind, labels.dtype.kind
    )


def _changed(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Those that are others as ``dtype``."""
    converted = values.astype(dtype)
    if dtype.kind in "mM":
        changed = (converted.astype(values.dtype) != values) & ~np.isnat(values)
    else:
        # Python compares integers with floats as they are, numpy as floats.
        pairs = zip(values.tolist(), converted.tolist(), strict=True)
        changed = np.array([one != other for one, other in pairs])
    found: NDArray[Any] = values[changed]
    return found


def _one_each(usable: Rows, labels: NDArray[Any], draw: np.random.Generator) -> tuple[Rows, Rows]:
    """One row of every class, and the others in random order."""
    order = draw.permutation(usable)
    _, firsts = np.unique(labels[order], return_index=True)
    return order[firsts], np.delete(order, firsts)


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
