"""Training on a reader: the whole file at once or batch by batch."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree import TextClassifier, _categories
from xmtree._boosting import Boosting
from xmtree._online import OnlineLearner
from xmtree._progress import progress
from xmtree.cli import labels
from xmtree.cli.formats.categories import Categories
from xmtree.cli.formats.reader import Batch, Reader, Sets
from xmtree.cli.labels import Vocabulary
from xmtree.cli.trained import Model, hashed_columns, learner_of, numbered_columns


def fit_whole(
    estimator: Any,
    reader: Reader,
    sets: Sets,
    tune: Callable[..., None] | None = None,
    valid: Reader | None = None,
    ignores_unknown: bool = False,
) -> None:
    """Load all examples and fit the estimator on them, with the parameters that ``tune`` sets.

    Boosting stops early by the rows of ``valid``, if it is given and ``early_stopping`` is set.
    """
    numbers: dict[str, int] = {}

    def as_matrix(batch: Batch) -> Any:
        estimator._hashes_names = hashes(estimator)
        if estimator._hashes_names:
            return hashed_columns(batch)
        return numbered_columns(batch, numbers, grow=True)

    given = getattr(estimator, "categorical_features", None)
    if given is not None and reader.kind == "numbers" and reader.features is not None:
        names = list(reader.features)
        is_list = not isinstance(given, str)
        columns = _categories.columns_of(given, len(names), names) if is_list else range(len(names))
        reader.categories = Categories({}, [names[at] for at in columns], is_list)
    batch = reader.load(sets, as_matrix)
    y = labels.target(reader, batch, sets)
    categories = {}
    if reader.categories is not None:
        categories = reader.categories.sort(batch.rows, batch.columns or [])
        estimator.categorical_features = list(columns) if is_list else list(categories)
    if tune is not None:
        tune(estimator, batch.rows, y, _weights(batch))
    named = list(numbers) if numbers else batch.columns
    more = {}
    if valid is not None and isinstance(estimator, Boosting) and estimator.early_stopping:
        places = None if named is None else {name: at for at, name in enumerate(named)}
        known = {(named or [])[at]: found for at, found in categories.items()}
        width = batch.rows.shape[1]
        model = Model(reader.shown_name, estimator, width, places, ignores_unknown, known)
        more = _validation_set(model, valid, np.asarray(y))
    try:
        estimator.fit(batch.rows, y, sample_weight=_weights(batch), **more)
    finally:
        # Ctrl-C may leave a fitted model, which needs its names too.
        _set_names(estimator, named)
        if reader.categories is not None:
            estimator.categorical_features = given
            if estimator.__sklearn_is_fitted__():
                estimator._category_names = categories


def _validation_set(model: Model, valid: Reader, y: NDArray[Any]) -> dict[str, Any]:
    """Return the arguments of ``fit`` for the rows of ``valid``; ``y`` are the training labels."""
    model.prepare(valid)
    batch = valid.load(False, lambda part: model.rows(part, valid, 0))
    classes, converts = np.unique(y), valid.untyped_labels and y.dtype.kind in "iu"
    found = np.asarray(Vocabulary(classes, False, converts).target(valid, batch, 0))
    unknown = np.flatnonzero(~np.isin(found, classes))
    if len(unknown):
        first = int(unknown[0])
        raise ValueError(
            f"{valid.place(batch, first, 0)}: the label {found.tolist()[first]!r} is not in "
            f"{model.name}, but early_stopping needs rows of its labels"
        )
    rows, weights = model.rows(batch, valid, 0), _weights(batch)
    return {"X_val": rows, "y_val": found, "sample_weight_val": weights}


def hashes(estimator: Any) -> bool:
    """Return whether an untrained estimator will hash its features."""
    return getattr(estimator, "n_bits", None) is not None


def _set_names(estimator: Any, names: list[str] | None) -> None:
    if names is not None and estimator.__sklearn_is_fitted__():
        learner_of(estimator).feature_names_in_ = np.array(names, object)


def stream(
    estimator: Any, reader: Reader, sets: Sets, given: list[Any] | None, verbose: int
) -> None:
    """Train a new online estimator batch by batch.

    ``given`` holds the labels that may occur. With None a file is read once more to find them, and
    stdin takes them from its header, which only XMC has.
    """
    names: list[str] | None = None
    numbers: dict[str, int] | None = None
    if given is not None:
        sets = sets is True
        vocabulary = Vocabulary.named(reader, given, sets)
    elif not reader.is_stdin:
        if not hashes(estimator) and not isinstance(estimator, TextClassifier):
            numbers = {}
        vocabulary = _scan(reader, sets, numbers)
    batches = reader.numbered(sets)
    if given is None and reader.is_stdin:
        first = next(batches)
        batches = chain([first], batches)
        vocabulary = Vocabulary.announced(reader, first[1], sets)

    def rows_of(batch: Batch, first_row: int) -> Any:
        nonlocal names
        names = batch.columns
        if reader.kind == "texts" or not isinstance(batch.rows, list):
            return batch.rows
        if numbers is None:
            estimator._hashes_names = True
            return hashed_columns(batch)
        return numbered_columns(batch, numbers, grow=False)

    try:
        _learn(estimator, reader, batches, vocabulary, rows_of, verbose)
    finally:
        _set_names(estimator, list(numbers) if numbers else names)


def _scan(reader: Reader, sets: Sets, numbers: dict[str, int] | None) -> Vocabulary:
    """Return the labels of a file, and add its feature names to ``numbers``."""
    found: set[Any] = set()
    any_set = False
    for _, batch in reader.numbered(sets):
        its = reader.labels_of(batch)
        found.update(its.flat if isinstance(its.flat, list) else np.unique(its.flat).tolist())
        any_set |= labels.are_sets(reader, its)
        if numbers is not None and isinstance(batch.rows, list):
            for name in chain.from_iterable(batch.rows):
                numbers.setdefault(name, len(numbers))
    if not found:
        raise reader.empty()
    return Vocabulary.named(reader, list(found), any_set if sets == "auto" else sets)


def learn_on(model: Model, reader: Reader, n_passes: int, verbose: int, grows: bool) -> None:
    """Train a model further, in the order of the file; with ``grows`` also on new labels."""
    learner = model.learner
    converts = reader.untyped_labels and learner.classes_.dtype.kind in "iu"
    vocabulary = Vocabulary(learner.classes_, learner._y_form != "labels", converts, grows)

    def rows_of(batch: Batch, first_row: int) -> Any:
        return batch.rows if model.takes == "texts" else model.rows(batch, reader, first_row)

    batches = chain.from_iterable(reader.numbered(vocabulary.sets) for _ in range(n_passes))
    try:
        _learn(model.estimator, reader, batches, vocabulary, rows_of, verbose)
    finally:
        _set_names(model.estimator, None if model.numbers is None else list(model.numbers))


def _learn(
    estimator: Any,
    reader: Reader,
    batches: Iterator[tuple[int, Batch]],
    vocabulary: Vocabulary,
    rows_of: Callable[[Batch, int], Any],
    verbose: int,
) -> None:
    """Train on batches, each converted by ``rows_of``, which also gets its first row's number."""
    n_examples = 0
    # The estimator's own progress would restart with each batch.
    own, estimator.verbose = estimator.verbose, 0
    try:
        with progress(verbose, type(estimator).__name__) as report:
            for first_row, batch in batches:
                y, X = vocabulary.target(reader, batch, first_row), rows_of(batch, first_row)
                weights = _weights(batch)
                classes = "grow" if vocabulary.grows else vocabulary.classes
                estimator.partial_fit(X, y, classes=classes, sample_weight=weights)
                n_examples += len(batch)
                learner = learner_of(estimator)
                if report and isinstance(learner, OnlineLearner):
                    recall = getattr(learner, "progressive_recall_", None)
                    recent = learner.recent_loss()
                    report(n_examples, 0, learner.progressive_loss_, recall, recent)
    finally:
        estimator.verbose = own


def _weights(batch: Batch) -> NDArray[np.float64] | None:
    """Return the importance weights, or None if all are 1."""
    weights = batch.weights
    return None if weights is None or np.all(weights == 1) else weights
