"""Train a model on a file and save it.

Online learners with --passes 1, and all learners from stdin, are streamed:
memory is that of the model and a few batches, examples are learned in the order
of the file. (Shuffle files that are sorted by label.) Otherwise the whole file
is loaded, and shuffled in every pass.

examples:
  xmtree fit train.txt.xz --model lomtree -o model.xmtree
  xmtree fit train.txt --model oaa --passes 3 --set loss=softmax -o model.xmtree
  zcat big.txt.gz | xmtree fit - --model lomtree -o model.xmtree
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from xmtree._base import Learner
from xmtree._online import OnlineLearner
from xmtree._progress import progress
from xmtree.cli import data
from xmtree.cli.errors import WrongUsage
from xmtree.cli.models import create, names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree fit``."""
    data.add_arguments(parser)
    parser.add_argument("--model", required=True, choices=sorted(names()), help="which learner")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="file to write")
    parser.add_argument(
        "--compact", action="store_true", help="write the model for prediction only: a small file"
    )
    parser.add_argument("--passes", type=int, metavar="N", help="passes over DATA (n_passes)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="key=value",
        help="a parameter of the learner, as its constructor has it; may be repeated",
    )
    parser.add_argument("--seed", type=int, default=0, help="random_state (default 0)")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads; -1: all cores (default 1)")
    group = parser.add_argument_group("options for stdin and other streams")
    group.add_argument(
        "--labels",
        choices=["auto", "one", "sets"],
        default="auto",
        help="one label per row, or sets; auto reads the file, or the first batch of stdin",
    )
    group.add_argument(
        "--n-labels", type=int, metavar="K", help="svmlight from stdin: labels are 0 to K-1"
    )
    group.add_argument("--n-features", type=int, metavar="D", help="svmlight from stdin: columns")


def run(options: argparse.Namespace) -> int:
    """Trains, saves, and reports in one line."""
    for name in ("passes", "n_labels", "n_features"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise WrongUsage(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    learner = create(
        options.model,
        options.set,
        n_passes=options.passes,
        random_state=options.seed,
        n_jobs=options.jobs,
        verbose=1,
    )
    source = data.Source.of(options)
    _check_output(options.output)
    online = isinstance(learner, OnlineLearner)
    if options.passes is not None and not online:
        raise WrongUsage(f"--passes is for online learners; --model {options.model} has no passes")
    for name in ("n_labels", "n_features"):
        is_used = source.is_stdin and source.format == "svmlight"
        if getattr(options, name) is not None and not is_used:
            raise WrongUsage(f"--{name.replace('_', '-')} is for svmlight from stdin only")
    learner._index_base = source.fix_index_base()
    passes = getattr(learner, "n_passes", None)
    if source.is_stdin and online and options.passes not in (None, 1):
        raise WrongUsage("stdin can be read only once; leave --passes out or use a file")
    streamed = online and (source.is_stdin or passes == 1)
    if streamed and learner.class_weight == "balanced":
        raise WrongUsage(
            "class_weight=balanced counts the labels before learning, which a stream does not "
            "allow; read a file, with --passes 2 or more, or give the weights of labels: "
            """--set 'class_weight={"3": 10}'"""
        )
    began = time.perf_counter()
    stopped = False
    try:
        if isinstance(learner, OnlineLearner) and streamed:
            _stream(learner, source, options)
        else:
            learner.fit(*source.load(_arity(learner, options)))
    except KeyboardInterrupt:
        # An online learner keeps what it has learned so far.
        if not learner.__sklearn_is_fitted__():
            raise
        stopped = True
    learner.save(options.output, compact=options.compact)
    _report(learner, options.output, time.perf_counter() - began, stopped)
    return 1 if stopped else 0


def _check_output(path: str) -> None:
    """Refuses an output that cannot be written, before anything is trained."""
    if path == "-":
        raise WrongUsage("-o: a model cannot go to standard output; name a file")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def _report(learner: Learner, path: str, seconds: float, stopped: bool) -> None:
    features = "hashed" if learner._takes_any_width() else learner.n_features_in_
    parts = [f"{len(learner.classes_)} labels", f"{features} features"]
    if isinstance(learner, OnlineLearner):
        parts.append(f"{learner.n_examples_seen_} examples learned")
        parts.append(f"progressive error {learner.progressive_loss_:.4f}")
    if hasattr(learner, "progressive_recall_"):
        parts.append(f"progressive recall {learner.progressive_recall_:.4f}")
    how = "stopped early" if stopped else "done"
    print(f"{path}: {', '.join(parts)}, {how} in {seconds:.1f} s", file=sys.stderr)


def _arity(learner: Learner, options: argparse.Namespace) -> Any:
    """Whether y is label sets, or "auto"."""
    if options.labels == "sets" and not learner._multilabel:
        raise WrongUsage(f"--model {options.model} learns one label per row, not sets")
    return (
        options.labels == "sets"
        if options.labels != "auto"
        else ("auto" if learner._multilabel else False)
    )


def _stream(learner: OnlineLearner, source: data.Source, options: argparse.Namespace) -> None:
    verbose, learner.verbose = learner.verbose, 0
    try:
        with progress(verbose, type(learner).__name__) as report:
            done = 0
            for X, y, classes in _examples(learner, source, options):
                learner.partial_fit(X, y, classes=classes)
                done += X.shape[0]
                if report:
                    recall = getattr(learner, "progressive_recall_", None)
                    report(done, 0, learner.progressive_loss_, recall)
    finally:
        learner.verbose = verbose
    if not learner.__sklearn_is_fitted__():
        raise source.empty()


def _examples(
    learner: OnlineLearner, source: data.Source, options: argparse.Namespace
) -> Iterator[tuple[Any, Any, Any]]:
    """Batches with the labels that may occur."""
    arity = _arity(learner, options)
    if source.format == "svmlight":
        yield from _svmlight_examples(learner, source, arity, options)
        return
    batches = source.batches(None, True)
    first = next(batches, None)
    if first is None:
        return
    sets = _is_sets(source, first[1]) if arity == "auto" else arity
    row = 0
    for X, y in chain([first], batches):
        classes = np.arange(y.shape[1])
        yield X, (y if sets else data.one_label_each(y, row)), classes
        row += X.shape[0]


def _is_sets(source: data.Source, first: Any) -> bool:
    """Whether any row (of the first batch, on stdin) has other than one label."""
    if np.any(np.diff(first.indptr) != 1):
        return True
    if source.is_stdin:
        return False
    return any(np.any(np.diff(y.indptr) != 1) for _, y in source.batches(None, True))


def _svmlight_examples(
    learner: Any, source: data.Source, arity: Any, options: argparse.Namespace
) -> Iterator[tuple[Any, Any, Any]]:
    n_features = options.n_features
    if source.is_stdin:
        if n_features is None and learner.n_bits is not None:
            n_features = data.MAX_FEATURES
        if not (options.n_labels and n_features):
            raise WrongUsage(
                "svmlight from stdin does not say how many labels and features there are; "
                "give --n-labels and --n-features, or hash features with --set n_bits=BITS"
            )
        if arity == "auto":
            arity = False
        if source.zero_based == "auto":
            raise WrongUsage("svmlight from stdin needs --index-base 0 or 1")
        classes = np.arange(options.n_labels)
    else:
        # Reads the file once more to find the labels; parsing is cheap beside learning.
        found: Any = np.empty(0)
        for _, y in source.batches(n_features, arity):
            found = np.union1d(found, _flat(y))
        whole = found.astype(np.int64)
        classes = whole if np.array_equal(whole, found) else found
    for X, y in source.batches(n_features, arity):
        yield X, y, classes


def _flat(y: Any) -> Any:
    if isinstance(y, np.ndarray):
        return y
    return [label for row in y for label in row]
