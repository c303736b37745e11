"""Precision, recall and the most frequent confusion of every label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree._printable import printable


class PerLabel:
    """Counts of all labels that a model knows, over batches."""

    def __init__(self, classes: NDArray[Any]) -> None:
        n = len(classes)
        self._classes = classes
        self._support = np.zeros(n, np.int64)
        self._predicted = np.zeros(n, np.int64)
        self._right = np.zeros(n, np.int64)
        #: How often row's label was missed where column's label was wrongly predicted.
        self._confused: Any = sp.csr_array((n, n), dtype=np.int64)

    def add(self, true: Any, predicted: Any) -> None:
        """Counts a batch: ``true`` is an indicator, which may have more columns for labels that
        the model does not know; ``predicted`` an indicator or one class number per row."""
        n = len(self._classes)
        if isinstance(predicted, np.ndarray):
            given = predicted >= 0
            starts = np.concatenate([[0], np.cumsum(given)])
            parts = (np.ones(starts[-1], np.int64), predicted[given], starts)
            predicted = sp.csr_array(parts, shape=(len(predicted), n))
        true = sp.csr_array(true, dtype=np.int64)[:, :n]
        predicted = sp.csr_array(predicted, dtype=np.int64)
        right = true.multiply(predicted)
        self._support += true.sum(axis=0)
        self._predicted += predicted.sum(axis=0)
        self._right += right.sum(axis=0)
        self._confused = self._confused + (true - right).T @ (predicted - right)

    def rows(self) -> Iterator[dict[str, Any]]:
        """What is known of each label that occurs or is predicted, the most frequent first.

        None stands for a share of nothing, and for no label.
        """
        names = self._classes.tolist()
        occurs = np.flatnonzero(self._support + self._predicted)
        for at in occurs[np.argsort(-self._support[occurs], kind="stable")].tolist():
            confused, times = self._most_confused(at)
            yield {
                "label": names[at],
                "support": int(self._support[at]),
                "precision": _share(self._right[at], self._predicted[at]),
                "recall": _share(self._right[at], self._support[at]),
                "most_confused_with": None if confused is None else names[confused],
                "times": times,
            }

    def _most_confused(self, at: int) -> tuple[int | None, int]:
        """The label that was most often predicted where this one was missed, and how often."""
        start, end = self._confused.indptr[at : at + 2]
        counts = self._confused.data[start:end]
        if not counts.any():
            return None, 0
        # Of equal ones the first, whatever the order in the matrix.
        most = counts.max()
        return int(self._confused.indices[start:end][counts == most].min()), int(most)


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The rows as aligned lines below a heading."""
    width = max([len("label"), *(len(printable(row["label"])) for row in rows)])
    yield f"{'label':<{width}}  support  precision  recall  most confused with"
    for row in rows:
        shares = [
            "-" if row[name] is None else f"{row[name]:.4f}" for name in ("precision", "recall")
        ]
        most = printable(row["most_confused_with"])
        confused = f"{most} ({row['times']})" if row["times"] else "-"
        label = f"{printable(row['label']):<{width}}"
        line = f"{label}  {row['support']:>7}  {shares[0]:>9}  {shares[1]:>6}"
        yield f"{line}  {confused}"
