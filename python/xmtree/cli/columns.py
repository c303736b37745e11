"""Features that have names as columns of a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher

from xmtree.cli.formats import MAX_FEATURES, NamedRows


def hashed(rows: NamedRows) -> Any:
    """Columns by a hash of the names, among so many that learners fold them (``n_bits``)."""
    hasher = FeatureHasher(MAX_FEATURES, input_type="pair", dtype=np.float32, alternate_sign=False)
    return hasher.transform(_pairs(rows))


def _pairs(rows: NamedRows) -> Iterator[list[tuple[str, float]]]:
    pairs = zip(rows.names, rows.values, strict=True)
    return (list(islice(pairs, length)) for length in rows.lengths)


def numbered(rows: NamedRows, numbers: dict[str, int], *, grow: bool) -> Any:
    """Columns by the number of each name; with ``grow`` new names get the next numbers,
    else they are left out."""
    if grow:
        columns = [numbers.setdefault(name, len(numbers)) for name in rows.names]
    else:
        columns = [numbers.get(name, -1) for name in rows.names]
    indices = np.array(columns, np.int32)
    known = indices >= 0
    ends = np.concatenate([[0], np.cumsum(rows.lengths)])
    starts = np.concatenate([[0], np.cumsum(known)])[ends]
    values = np.array(rows.values, np.float32)[known]
    matrix = sp.csr_matrix((values, indices[known], starts), (len(rows.lengths), len(numbers)))
    matrix.sort_indices()
    return matrix


def unknown_name(rows: NamedRows, numbers: dict[str, int]) -> tuple[int, str] | None:
    """The first row with a name that has no number, and the name."""
    at = next((at for at, name in enumerate(rows.names) if name not in numbers), None)
    if at is None:
        return None
    return int(np.searchsorted(np.cumsum(rows.lengths), at, side="right")), rows.names[at]
