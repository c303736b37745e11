"""Data as lists of partitions on a cluster, or local."""

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
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
    rows = parts_of(X, "X", X)
    labels = parts_of(y, "y", X)
    weights = [None] * len(rows)
    if sample_weight is not None:
        weights = parts_of(sample_weight, "sample_weight", X)
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


def together(parts: Sequence[Any], name: str) -> Any:
    """Join partitions of rows, labels or weights; ``name`` is their name in messages."""
    missing = [part is None for part in parts]
    if any(missing):
        if all(missing):
            return None
        raise ValueError(
            f"partition {missing.index(True)} of {name} is None, partition {missing.index(False)} "
            "is not; all or none must be None"
        )
    # Empty partitions may have any type.
    parts = [part for part in parts if n_rows(part)] or parts
    if len(parts) == 1:
        return parts[0]
    if any(hasattr(part, "columns") for part in parts):
        return _frames_together(parts, name)
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    if any(isinstance(part, list) for part in parts):
        return list(chain.from_iterable(map(_as_list, parts)))
    arrays = [np.asarray(part) for part in parts]
    if arrays[0].ndim == 1 and len({array.dtype for array in arrays}) > 1:
        # numpy's common type may not represent all labels.
        return list(chain.from_iterable(map(_as_list, arrays)))
    return np.concatenate(arrays)


def _frames_together(parts: Sequence[Any], name: str) -> Any:
    first = parts[0]
    for number, part in enumerate(parts):
        if set(getattr(part, "columns", ())) != set(getattr(first, "columns", ())):
            raise ValueError(
                f"partitions 0 and {number} of {name} do not have the same columns; all must be "
                "data frames with the same columns, or arrays"
            )
    if not hasattr(first, "iloc"):  # polars
        return np.concatenate([np.asarray(part[list(first.columns)]) for part in parts])
    import pandas as pd

    return pd.concat(parts)


def _as_list(values: Any) -> list[Any]:
    # tolist of an array of times may return integers.
    is_plain = isinstance(values, np.ndarray) and values.dtype.kind not in "mM"
    return values.tolist() if is_plain else list(values)


def n_rows(part: Any) -> int:
    """Return the number of rows of a partition."""
    return int(part.shape[0] if hasattr(part, "shape") else len(part))


def n_bytes(rows: Any) -> int:
    """Return the number of bytes of an array or a CSR matrix."""
    is_sparse = hasattr(rows, "indptr")
    parts = (rows.data, rows.indices, rows.indptr) if is_sparse else (rows,)
    return int(sum(array.nbytes for array in parts))


def stacked(parts: Sequence[Any]) -> Any:
    """Join arrays or CSR matrices by rows."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


#: Converts rows, labels and weights into training data.
Read = Callable[[Any, Any, Any], Any]

#: Local data become at most so many partitions, of at least so many rows.
_LOCAL_PARTITIONS, _LEAST_ROWS = 8, 500


class Source:
    """Rows, labels and weights in partitions on the cluster."""

    def __init__(self, tasks: Tasks, parts: list[Partition]) -> None:
        self._tasks, self.parts = tasks, parts

    @classmethod
    def of(cls, tasks: Tasks, X: Any, y: Any, sample_weight: Any) -> "Source":
        """Take partitions on the cluster, or cut data of this process and send the pieces."""
        if not is_remote(X):
            return cls(tasks, [_sent(tasks, part) for part in _cut(X, y, sample_weight)])
        given = list(chain.from_iterable(partitions(X, y, sample_weight)))
        # Lazy partitions are computed on the workers.
        computed = tasks.client.compute(given)
        for before, after in zip(given, computed, strict=True):
            if before is not after:
                tasks.hold(after)
        return cls(tasks, list(zip(computed[::3], computed[1::3], computed[2::3], strict=True)))

    def __call__(self, read: Read) -> Future:
        """Return the result of ``read`` on the data, which one worker joins, as a task."""
        columns = map(list, zip(*self.parts, strict=True))
        return self._tasks.submit("read", _read, read, *columns)


def _sent(tasks: Tasks, part: Partition) -> Partition:
    X, y, weights = (None if data is None else tasks.send(data) for data in part)
    return X, y, weights


def _cut(*data: Any) -> list[Partition]:
    """Cut rows, labels and weights into pieces of about the same length."""
    data = tuple(given.tocsr() if hasattr(given, "tocsr") else given for given in data)
    n = n_rows(data[0])
    for name, given in (("y", data[1]), ("sample_weight", data[2])):
        if given is not None and n_rows(given) != n:
            raise ValueError(f"X has {n} rows, {name} has {n_rows(given)}")
    n_parts = min(_LOCAL_PARTITIONS, max(1, n // _LEAST_ROWS))
    bounds = [n * number // n_parts for number in range(n_parts + 1)]

    def piece(given: Any, rows: slice) -> Any:
        return given if given is None else getattr(given, "iloc", given)[rows]

    cuts = [slice(*pair) for pair in pairwise(bounds)]
    return [(piece(data[0], cut), piece(data[1], cut), piece(data[2], cut)) for cut in cuts]


def _read(read: Read, X: list[Any], y: list[Any], weights: list[Any]) -> Any:
    return read(together(X, "X"), together(y, "y"), together(weights, "sample_weight"))
