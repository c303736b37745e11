"""Training on a reader: the whole file at once, or batch after batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree import TextClassifier
from xmtree._online import OnlineLearner
from xmtree._progress import progress
from xmtree.cli import columns, labels
from xmtree.cli.formats import Batch, NamedRows, Reader, Sets
from xmtree.cli.labels import Scan, Vocabulary
from xmtree.cli.trained import Model, learner_of, numbered

#: From a batch and the number of its first row to what an estimator takes.
RowsOf = Callable[[Batch, int], Any]


def fit_whole(estimator: Any, reader: Reader, sets: Sets) -> None:
    """Loads all examples and fits the estimator on them."""
    numbers: dict[str, int] = {}

    def of_names(rows: NamedRows) -> Any:
        estimator._hashes_names = hashes(estimator)
        if estimator._hashes_names:
            return columns.hashed(rows)
        return columns.numbered(rows, numbers, grow=True)

    batch = reader.load(sets, of_names)
    y = labels.target(reader, batch, sets)
    try:
        estimator.fit(batch.rows, y, sample_weight=_weights(batch))
    finally:
        # Also where Ctrl-C has stopped it.
        _set_names(estimator, list(numbers) if numbers else batch.columns)


def hashes(estimator: Any) -> bool:
    """Whether an estimator that is not trained yet will hash its features."""
    return getattr(estimator, "n_bits", None) is not None


def _set_names(estimator: Any, names: list[str] | None) -> None:
    if names is not None and estimator.__sklearn_is_fitted__():
        learner_of(estimator).feature_names_in_ = np.array(names, object)


def stream(
    estimator: Any, reader: Reader, sets: Sets, given: list[Any] | None, verbose: int
) -> None:
    """Trains a new online estimator on one batch after the other.

    ``given``: the labels that may occur; None: they are found by reading the file once more, or
    from stdin are those of the header.
    """
    if reader.is_stdin and sets == "auto" and not reader.labels_in_header:
        sets = False
    batches = numbered(reader, sets)
    names: list[str] | None = None
    numbers: dict[str, int] | None = None
    if given is not None:
        vocabulary = labels.named(given, sets is True, reader)
    elif reader.is_stdin:
        first = next(batches, None)
        if first is None:
            raise reader.empty()
        batches = chain([first], batches)
        scan = _scan(reader, iter([first]), numbers)
        if reader.labels_in_header:
            any_set = scan.any_set if sets == "auto" else sets
            vocabulary = labels.announced(first[1].labels, any_set, reader)
        else:
            vocabulary = scan.vocabulary(sets)
    else:
        if not hashes(estimator) and not isinstance(estimator, TextClassifier):
            numbers = {}
        vocabulary = _scan(reader, numbered(reader, sets), numbers).vocabulary(sets)

    def rows_of(batch: Batch, first_row: int) -> Any:
        nonlocal names
        names = batch.columns
        if not isinstance(batch.rows, NamedRows):
            return batch.rows
        if numbers is None:
            estimator._hashes_names = True
            return columns.hashed(batch.rows)
        return columns.numbered(batch.rows, numbers, grow=False)

    try:
        _learn(estimator, reader, batches, vocabulary, rows_of, verbose)
    finally:
        _set_names(estimator, list(numbers) if numbers else names)


def _scan(
    reader: Reader,
    batches: Iterator[tuple[int, Batch]],
    numbers: dict[str, int] | None,
) -> Scan:
    """What labels there are; names of features of VW text are put into ``numbers``."""
    scan = Scan(reader)
    for _, batch in batches:
        scan.add(batch.labels)
        if isinstance(batch.rows, NamedRows) and numbers is not None:
            for name in batch.rows.names:
                numbers.setdefault(name, len(numbers))
    return scan


def learn_on(
    model: Model, reader: Reader, n_passes: int, ignores_unknown: bool, verbose: int
) -> None:
    """Trains a model further, in the order of the file."""
    vocabulary = Vocabulary.of_model(model.learner, reader)

    def rows_of(batch: Batch, first_row: int) -> Any:
        if isinstance(model.estimator, TextClassifier):
            return batch.rows
        return model.rows(batch, reader, first_row, ignores_unknown)

    def all_passes() -> Iterator[tuple[int, Batch]]:
        for _ in range(n_passes):
            yield from numbered(reader, vocabulary.sets)

    try:
        _learn(model.estimator, reader, all_passes(), vocabulary, rows_of, verbose)
    finally:
        _set_names(model.estimator, None if model.numbers is None else list(model.numbers))


def _learn(
    estimator: Any,
    reader: Reader,
    batches: Iterator[tuple[int, Batch]],
    vocabulary: Vocabulary,
    rows_of: RowsOf,
    verbose: int,
) -> None:
    n_examples = 0
    with progress(verbose, type(estimator).__name__) as report:
        for row, batch in batches:
            y, classes = vocabulary.target(reader, batch, row)
            X = rows_of(batch, row)
            with _silent(estimator):
                estimator.partial_fit(X, y, classes=classes, sample_weight=_weights(batch))
            n_examples += len(batch)
            learner = learner_of(estimator)
            if report and isinstance(learner, OnlineLearner):
                recall = getattr(learner, "progressive_recall_", None)
                report(n_examples, 0, learner.progressive_loss_, recall)
    if n_examples == 0:
        raise reader.empty()


@contextmanager
def _silent(estimator: Any) -> Iterator[None]:
    """Without the estimator's own progress, which would begin anew with each batch."""
    verbose, estimator.verbose = estimator.verbose, 0
    try:
        yield
    finally:
        estimator.verbose = verbose


def _weights(batch: Batch) -> NDArray[np.float64] | None:
    """Importances, None where all are 1."""
    weights = batch.weights
    return None if weights is None or np.all(weights == 1) else weights
