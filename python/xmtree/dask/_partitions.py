"""Data as lists of partitions on a cluster, or local."""

from itertools import chain, pairwise
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from distributed import Future

from xmtree.dask._cluster import Tasks

#: Rows, labels and weights (or None) of a partition, each a value on the cluster.
Partition = tuple[Any, Any, Any]


def is_remote(data: Any) -> bool:
    """Return whether ``data`` is a Dask collection or a list of partitions."""
    if hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed"):
        return True
    is_list = isinstance(data, list | tuple) and len(data) > 0
    return is_list and all(isinstance(part, Delayed | Future) for part in data)


def partitions(X: Any, y: Any, sample_weight: Any) -> list[Partition]:
    """Return the partitions of data on the cluster, each with its labels and weights."""
    rows, labels, weights = parts_of(X, "X", X), parts_of(y, "y", X), sample_weight
    weights = parts_of(weights, "sample_weight", X) if weights is not None else [None] * len(rows)
    for name, parts in (("y", labels), ("sample_weight", weights)):
        if len(parts) != len(rows):
            raise ValueError(
                f"X has {len(rows)} partitions, {name} has {len(parts)}; "
                "both must have the same (rechunk or repartition)"
            )
    return list(zip(rows, labels, weights, strict=True))


def parts_of(data: Any, name: str, X: Any) -> list[Any]:
    """Return the partitions of ``data`` for the rows ``X``, each with all columns."""
    if not is_remote(data):
        raise TypeError(
            f"{name} must be a Dask collection or a list of delayed partitions if X is, "
            f"got {type(data).__name__}"
        )
    if isinstance(data, list | tuple):
        return list(data)
    if isinstance(data, da.Array):
        if data.ndim == 2 and data.numblocks[1] > 1:
            data = data.rechunk({1: -1})
        # Unknown sizes are NaN.
        has_sizes = isinstance(X, da.Array) and not np.isnan(data.shape[0] + X.shape[0])
        if has_sizes and data.chunks[0] != X.chunks[0]:
            if data.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows, {name} has {data.shape[0]}")
            data = data.rechunk({0: X.chunks[0]})
        return list(data.to_delayed().ravel())
    return list(data.to_delayed())


def n_rows(part: Any) -> int:
    """Return the number of rows of a partition."""
    return int(part.shape[0] if hasattr(part, "shape") else len(part))


def n_bytes(rows: Any) -> int:
    """Return the number of bytes of an array or a CSR matrix."""
    is_sparse = hasattr(rows, "indptr")
    parts = (rows.data, rows.indices, rows.indptr) if is_sparse else (rows,)
    return int(sum(array.nbytes for array in parts))


#: Local data become at most so many partitions, of at least so many rows.
_LOCAL_PARTITIONS, _LEAST_ROWS = 8, 500


def on_cluster(tasks: Tasks, X: Any, y: Any, sample_weight: Any) -> list[Partition]:
    """Return partitions on the cluster; data of this process are cut and sent."""
    if not is_remote(X):
        cuts = chain.from_iterable(_cut(X, y, sample_weight))
        computed = [None if data is None else tasks.send(data) for data in cuts]
    else:
        given = list(chain.from_iterable(partitions(X, y, sample_weight)))
        # Lazy partitions are computed on the workers.
        computed = tasks.client.compute(given)
        pairs = zip(given, computed, strict=True)
        tasks.sent.update(after for before, after in pairs if before is not after)
    return list(zip(computed[::3], computed[1::3], computed[2::3], strict=True))


def _cut(*data: Any) -> list[Partition]:
    """Cut rows, labels and weights into pieces of about the same length."""
    data = tuple(given.tocsr() if hasattr(given, "tocsr") else given for given in data)
    n = n_rows(data[0])
    for name, given in (("y", data[1]), ("sample_weight", data[2])):
        if given is not None and n_rows(given) != n:
            raise ValueError(f"X has {n} rows, {name} has {n_rows(given)}")
    n_parts = min(_LOCAL_PARTITIONS, max(1, n // _LEAST_ROWS))
    bounds = [n * number // n_parts for number in range(n_parts + 1)]

    def piece(given: Any, cut: slice) -> Any:
        return given if given is None else getattr(given, "iloc", given)[cut]

    return [tuple(piece(given, slice(*pair)) for given in data) for pair in pairwise(bounds)]
