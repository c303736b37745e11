"""Numeric formats that the core parses: XMC text and svmlight (LIBSVM) text."""

import argparse
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal

import numpy as np

from xmtree import _core, datasets
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats.reader import Batch, Labels, Reader, Sets

#: Largest number of columns of svmlight text.
MAX_FEATURES = 2**31 - 1


class XmcReader(Reader):
    """The text format of the Extreme Classification Repository."""

    name = "xmc"
    endings = (".xmc",)
    opening = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")
    untyped_labels = False
    has_one_label_each = False

    def load(self, sets: Sets, as_matrix: Callable[[Batch], Any]) -> Batch:
        X, y = datasets.load_xmc(self.path, multilabel=sets)
        if X.shape[0] == 0:
            raise self.empty()
        return Batch(X, _labels(y))

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = datasets.iter_xmc(self.path, self.batch_size, multilabel=True)
        return (Batch(X, _labels(y)) for X, y in found)

    def missing_on_stdin(self, options: argparse.Namespace, hashes: bool) -> list[str]:
        return []

    def beyond(self, X: Any, width: int, first_row: int) -> str | None:
        return (
            f"{self.shown_name} has {X.shape[1]} features, the model has {width} features; "
            "--unknown-features ignore leaves out the others"
        )


class SvmlightReader(Reader):
    """``label[,label...] index:value ...``."""

    name = "svmlight"
    endings = (".svm", ".svmlight", ".libsvm")
    opening = re.compile(r"\s*[-+\d.,eE]*(\s+(qid|\d+):\S+)*\s*(#.*)?")
    takes = frozenset({"index_base", "n_features"})
    untyped_labels = False
    has_one_label_each = False

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        super().__init__(path, options)
        self._zero_based: bool | Literal["auto"] = "auto"
        if options.index_base not in (None, "auto"):
            self._zero_based = options.index_base == "0"
        #: Number of columns; None for as many as the file has.
        self._n_features: int | None = getattr(options, "n_features", None)

    @property
    def index_base(self) -> int:
        """Return the first index, 0 or 1, from the whole file unless it is known."""
        if self._zero_based == "auto":
            if self.is_stdin:
                raise WrongUsage("svmlight from stdin needs --index-base 0 or 1")
            self._zero_based = bool(_core.scan_svmlight(self.path, (None, None, None))[0])
        return int(not self._zero_based)

    def prepare_fit(self, streamed: bool) -> int | None:
        if streamed and self.is_stdin and self._n_features is None:
            self._n_features = MAX_FEATURES
        if self._zero_based == "auto" and self.is_stdin:
            return None  # known only at the end of the stream
        return self.index_base

    def prepare_for(self, index_base: int | None, only: Collection[str] | None) -> None:
        if self._zero_based == "auto" and index_base is not None:
            self._zero_based = index_base == 0
        self._zero_based = self.index_base == 0
        self._n_features = MAX_FEATURES

    def _parameters(self, sets: Sets) -> dict[str, Any]:
        return {"n_features": self._n_features, "zero_based": self._zero_based, "multilabel": sets}

    def load(self, sets: Sets, as_matrix: Callable[[Batch], Any]) -> Batch:
        X, y = datasets.load_svmlight(self.path, **self._parameters(sets))
        return Batch(X, _labels(y))

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = datasets.iter_svmlight(self.path, self.batch_size, **self._parameters(sets))
        return (Batch(X, _labels(y)) for X, y in found)

    def missing_on_stdin(self, options: argparse.Namespace, hashes: bool) -> list[str]:
        missing = super().missing_on_stdin(options, hashes)
        if self._n_features is None and not hashes:
            missing.append("--n-features D or --set n_bits=BITS")
        if self._zero_based == "auto":
            missing.append("--index-base 0 or 1")
        return missing

    def beyond(self, X: Any, width: int, first_row: int) -> str | None:
        base = self.index_base
        unknown = np.flatnonzero(X.indices >= width)
        if not len(unknown):
            return None
        row = first_row + int(np.searchsorted(X.indptr, unknown[0], side="right")) - 1
        return (
            f"{self.shown_name}, row {row}: feature index {X.indices[unknown[0]] + base}, the "
            f"model has {base} to {width - 1 + base}; --unknown-features ignore leaves out such "
            f"features; if indices of this file begin at {1 - base}, give --index-base {1 - base}"
        )


def _labels(y: Any) -> Labels:
    """Convert labels in any form that the functions of ``datasets`` return."""
    if isinstance(y, list):
        return Labels.of(y)
    if isinstance(y, np.ndarray):
        # Labels in svmlight text may have fractions, but usually are integers.
        is_whole = np.array_equal(y, y.astype(np.int64))
        return Labels(y.astype(np.int64) if is_whole else y, np.ones(len(y), np.int64))
    lengths = np.diff(y.indptr).astype(np.int64)
    return Labels(y.indices.astype(np.int64), lengths, y.shape[1])
