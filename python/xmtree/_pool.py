"""The rows that a learner chooses from: finding some of them, and what is labelled."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _validation
from xmtree._gamble import GambleClassifier
from xmtree._labels import encode

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
    """``rows`` of the type and form that ``pool`` has."""
    given: Any = rows.astype(pool.dtype)
    if sp.issparse(pool):
        given = sp.csr_array(given)
        given.sum_duplicates()
    elif hasattr(given, "toarray"):
        given = given.toarray()
    return given


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
    target = encode(y)
    if target.multilabel:
        raise ValueError(f"{name} must hold one label per row, not label sets")
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
    """Refuses text beside numbers, which numpy would compare without a word."""
    if (labels.dtype.kind in "UO") != (others.dtype.kind in "UO"):
        raise ValueError(
            f"y mixes types: its labels are {labels.dtype}, those {where} {others.dtype}"
        )


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


def _one_each(usable: Rows, labels: NDArray[Any], draw: np.random.Generator) -> tuple[Rows, Rows]:
    """One row of every class, and the others in random order."""
    order = draw.permutation(usable)
    _, firsts = np.unique(labels[order], return_index=True)
    return order[firsts], np.delete(order, firsts)


def _keys(X: Any) -> list[bytes]:
    """Rows as bytes, alike where the rows are."""
    if not sp.issparse(X):
        # Adding 0 makes 0 of -0.
        return [row.tobytes() for row in X + 0]
    csr: Any = X
    csr = csr.copy()
    csr.eliminate_zeros()
    parts = zip(csr.indptr[:-1].tolist(), csr.indptr[1:].tolist(), strict=True)
    columns = csr.indices.astype(np.int64)
    return [columns[a:b].tobytes() + csr.data[a:b].tobytes() for a, b in parts]
