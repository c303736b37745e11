"""Examples from files and stdin for all commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _core, datasets
from xmtree._base import Learner
from xmtree._labels.forms import positions, row_sets
from xmtree.cli.errors import WrongUsage
from xmtree.cli.models import load

#: Rows per batch.
BATCH = 4096
#: Columns that svmlight text can have.
MAX_FEATURES = 2**31 - 1


def add_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """DATA and its options, whose group is returned."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="XMC or svmlight text, plain or packed (.gz, .xz, .zst); - is stdin",
    )
    group = parser.add_argument_group("options for DATA")
    group.add_argument(
        "--format",
        choices=["auto", "xmc", "svmlight"],
        default="auto",
        help="auto: xmc if the first line is the header 'N D K', and for stdin",
    )
    group.add_argument(
        "--index-base",
        choices=["auto", "0", "1"],
        default="auto",
        help="svmlight: whether indices start at 0 or 1; auto: as in the file that the model was "
        "trained on, and there 0 if an index is 0",
    )
    group.add_argument(
        "--batch-size",
        type=int,
        default=BATCH,
        metavar="N",
        help=f"rows held at a time while streaming (default {BATCH})",
    )
    return group


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, DATA and their options, for the commands that apply a model."""
    parser.add_argument("model", metavar="MODEL", help="a file of xmtree fit or of save()")
    add_arguments(parser).add_argument(
        "--unknown-features",
        choices=["error", "ignore"],
        default="error",
        help="features of DATA that the model does not have: refused (default) or left out; a "
        "model that hashes features (n_bits) takes all",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="threads; -1: all cores (default 1)")


def open_model(options: argparse.Namespace) -> tuple[Learner, Source]:
    """The model of the options, and the source that it is applied to."""
    learner = load(options.model)
    learner.set_params(n_jobs=options.jobs)
    return learner, Source.of(options, learner._index_base)


@dataclass
class Source:
    """A file of examples, or stdin."""

    path: str
    format: Literal["xmc", "svmlight"]
    zero_based: bool | Literal["auto"]
    batch_size: int
    #: Whether ``batches_for`` leaves out features that a model does not have.
    ignores_unknown: bool = False

    @classmethod
    def of(cls, options: argparse.Namespace, index_base: int | None = None) -> Source:
        """The source that the options describe; ``index_base`` is the model's, if it has one."""
        if options.batch_size < 1:
            raise WrongUsage(f"--batch-size must be at least 1, got {options.batch_size}")
        zero_based: bool | Literal["auto"] = "auto"
        if options.index_base != "auto":
            zero_based = options.index_base == "0"
        elif index_base is not None:
            zero_based = index_base == 0
        form = _format_of(options.data, options.format)
        ignores = getattr(options, "unknown_features", "error") == "ignore"
        return cls(options.data, form, zero_based, options.batch_size, ignores)

    def fix_index_base(self) -> int | None:
        """Decides where indices begin, from the whole file; None where that is no question."""
        if self.format != "svmlight":
            return None
        if self.zero_based == "auto" and not self.is_stdin:
            self.zero_based = bool(_core.scan_svmlight(self.path, (None, None, None))[0])
        return None if self.zero_based == "auto" else int(not self.zero_based)

    @property
    def is_stdin(self) -> bool:
        """Whether it can be read only once."""
        return self.path == "-"

    def load(self, multilabel: bool | Literal["auto"]) -> tuple[Any, Any]:
        """All of X and y at once."""
        if self.format == "xmc":
            X, y = datasets.load_xmc(self.path, multilabel=multilabel)
            if X.shape[0] == 0:
                raise self.empty()
            return X, y
        X, y = datasets.load_svmlight(self.path, zero_based=self.zero_based, multilabel=multilabel)
        # Numbers in svmlight text may have fractions; labels usually do not.
        if isinstance(y, np.ndarray) and np.array_equal(y, y.astype(np.int64)):
            y = y.astype(np.int64)
        return X, y

    def batches(
        self, n_features: int | None, multilabel: bool | Literal["auto"]
    ) -> Iterator[tuple[Any, Any]]:
        """X and y, some rows at a time, in constant memory.

        XMC labels are always an indicator, whose width is the number of labels.
        """
        if self.format == "xmc":
            return iter(datasets.iter_xmc(self.path, self.batch_size, multilabel=True))
        return iter(
            datasets.iter_svmlight(
                self.path,
                self.batch_size,
                n_features=n_features,
                zero_based=self.zero_based,
                multilabel=multilabel,
            )
        )

    def batches_for(
        self, learner: Learner, multilabel: bool | Literal["auto"]
    ) -> Iterator[tuple[Any, Any]]:
        """As :meth:`batches`, with the columns of the learner, or any where it hashes them."""
        self.fix_index_base()
        row = 0
        for X, y in self.batches(MAX_FEATURES, multilabel):
            if not learner._takes_any_width() and X.shape[1] > learner.n_features_in_:
                if not self.ignores_unknown:
                    self._check_columns(X, learner.n_features_in_, row)
                X.resize(X.shape[0], learner.n_features_in_)
            yield X, y
            row += X.shape[0]

    def _check_columns(self, X: Any, width: int, first_row: int) -> None:
        """Refuses columns that a model of this ``width`` does not have."""
        advice = "--unknown-features ignore leaves out the others"
        if self.format == "xmc":
            raise ValueError(
                f"{self.path} has {X.shape[1]} features, the model {width} features; {advice}"
            )
        beyond = np.flatnonzero(X.indices >= width)
        if len(beyond):
            base = 0 if self.zero_based else 1
            row = first_row + int(np.searchsorted(X.indptr, beyond[0], side="right")) - 1
            raise ValueError(
                f"{self.path}, row {row}: feature index {X.indices[beyond[0]] + base}; the model "
                f"has those from {base} to {width - 1 + base}; {advice}; if indices of this file "
                f"begin at {1 - base}, say --index-base {1 - base}"
            )

    def empty(self) -> ValueError:
        """The error of a source without examples."""
        return ValueError(f"{self.path} holds no examples")


def one_label_each(indicator: Any, first_row: int) -> NDArray[Any]:
    """The labels of an indicator that has one in every row."""
    counts = np.diff(indicator.indptr)
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"row {first_row + row} has {counts[row]} labels; "
            "this model learns exactly one per row (ldsm and oaa also learn label sets)"
        )
    labels: NDArray[Any] = indicator.indices.astype(np.int64)
    return labels


def as_sets(y: Any, classes: NDArray[Any]) -> Any:
    """Labels, label lists or an XMC indicator as a CSR indicator of the ``classes``.

    Labels that the model does not know have columns from ``len(classes)`` on, which are never
    predicted: each counts as a label that was missed.
    """
    if _is_sparse(y):
        lengths, flat = np.diff(y.indptr).astype(np.int64), y.indices
    elif isinstance(y, np.ndarray):
        lengths, flat = np.ones(len(y), np.int64), y
    else:
        lengths = np.fromiter((len(row) for row in y), np.int64, len(y))
        flat = np.array([label for row in y for label in row], dtype=classes.dtype)
    if len(flat) and (flat.dtype.kind in "UO") != (classes.dtype.kind in "UO"):
        raise ValueError(
            f"the model's labels are {classes.dtype} ({classes.tolist()[0]!r}, ...), "
            f"those of the file are numbers; they cannot be compared"
        )
    at = positions(flat, classes)
    # Any number will do that the row does not have yet.
    within = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    numbers = np.where(at >= 0, at, len(classes) + within)
    sets = row_sets(numbers, lengths, len(classes) + int(lengths.max(initial=0)))
    sets.sum_duplicates()
    return sets


def _is_sparse(y: Any) -> bool:
    return bool(sp.issparse(y))


def _format_of(path: str, option: str) -> Literal["xmc", "svmlight"]:
    if option == "svmlight":
        return "svmlight"
    if option == "xmc" or path == "-":
        return "xmc"
    try:
        next(iter(datasets.iter_xmc(path, 1, multilabel=True)), None)
    except ValueError as error:
        if f"{path}:1:" in str(error):
            return "svmlight"
    return "xmc"
