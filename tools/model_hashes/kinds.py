"""Kinds of cases: learned at once, in a stream, stored and restored; and what is hashed."""

from __future__ import annotations

import itertools
import pickle
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import xmtree
from data import Data

SEED = 7

LOSSES = ("hinge", "squared_hinge", "logistic", "squared", "quantile")
OPTIMIZERS = ("pn", "nag")
SCALINGS = ("none", "row", "standard")

#: Things computed by a case: names and values.
Parts = Iterator[tuple[str, Any]]


@dataclass(frozen=True)
class Case:
    """One line of the output; ``run`` takes the number of threads."""

    name: str
    run: Callable[[int], Parts]


def outcome(estimator: Any, X: Any, *, k: int = 5) -> Parts:
    """All that a fitted estimator tells of itself and of the rows ``X``."""
    for name in (
        "classes_",
        "progressive_loss_",
        "progressive_recall_",
        "n_examples_seen_",
        "n_estimators_",
        "max_candidates_",
        "max_depth_",
        "feature_importances_",
        "feature_splits_",
        "trees_",
    ):
        if hasattr(estimator, name):
            yield name, getattr(estimator, name)
    yield "predict", estimator.predict(X)
    yield f"predict_topk({k})", estimator.predict_topk(X, k)
    for name in ("decision_function", "predict_proba", "predict_scores"):
        if hasattr(estimator, name):
            yield name, getattr(estimator, name)(X)


def digest(value: Any, into: Any) -> None:
    """Feeds types, shapes and bits of ``value`` to the hash ``into``."""
    if sp.issparse(value):
        value = sp.csr_matrix(value)
        value.sort_indices()
        value = ["sparse", value.shape, value.indptr, value.indices, value.data]
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        into.update(f"{value.dtype.str}{value.shape}".encode())
        into.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key in sorted(value):
            into.update(f"{key}=".encode())
            digest(value[key], into)
    elif isinstance(value, (list, tuple)):
        into.update(f"{len(value)} values".encode())
        for item in value:
            digest(item, into)
    elif isinstance(value, np.ndarray):
        digest(value.tolist(), into)
    elif isinstance(value, np.generic):
        digest(value.item(), into)
    elif value is None or isinstance(value, (bool, int, float, str)):
        into.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"no way to hash a {type(value).__name__}")


def fitted(
    name: str, cls: Any, data: Data, *, weighted: bool = False, k: int = 5, **settings: Any
) -> Case:
    """Learn everything at once."""

    def run(n_jobs: int) -> Parts:
        estimator = cls(**{"random_state": SEED, "n_jobs": n_jobs, **settings})
        estimator.fit(data.X, data.y, data.weights if weighted else None)
        yield from outcome(estimator, data.X_test, k=k)

    return Case(name, run)


def streamed(name: str, cls: Any, data: Data, *, weighted: bool = False, **settings: Any) -> Case:
    """Learn in batches of unequal length and predict in between; end with a ``fit``."""

    def run(n_jobs: int) -> Parts:
        estimator = cls(random_state=SEED, n_jobs=n_jobs, **settings)
        classes = None if sp.issparse(data.y) else np.unique(data.y)
        n = data.X.shape[0]
        starts = [0, 1, 2, 40, 300, n // 2, n]
        for start, end in itertools.pairwise(starts):
            weights = data.weights[start:end] if weighted else None
            estimator.partial_fit(
                data.X[start:end], data.y[start:end], classes=classes, sample_weight=weights
            )
            classes = None
            yield f"after {end}", [value for _, value in outcome(estimator, data.X_test[:50])]
        yield from outcome(estimator, data.X_test)
        estimator.fit(data.X, data.y)
        yield "fit after all", [value for _, value in outcome(estimator, data.X_test)]

    return Case(name, run)


def restored(name: str, cls: Any, data: Data, copy: Callable[[Any], Any], **settings: Any) -> Case:
    """Learn, store and restore, predict, and where that is possible go on learning."""

    def run(n_jobs: int) -> Parts:
        estimator = cls(random_state=SEED, n_jobs=n_jobs, **settings)
        half = data.X.shape[0] // 2
        estimator = copy(estimator.fit(data.X[:half], data.y[:half]))
        yield from outcome(estimator, data.X_test)
        if hasattr(estimator, "partial_fit"):
            X, y = data.X[half:], data.y[half:]
            if y.ndim == 1:
                known = np.isin(y, estimator.classes_)
                X, y = X[known], y[known]
            estimator = copy(estimator.partial_fit(X, y))
            yield "went on", [value for _, value in outcome(estimator, data.X_test)]

    return Case(name, run)


def saved(estimator: Any) -> Any:
    """The estimator as its file gives it back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xmtree"
        estimator.save(path)
        return xmtree.load(path)


def pickled(estimator: Any) -> Any:
    """The estimator as pickle gives it back."""
    return pickle.loads(pickle.dumps(estimator))


def varied(
    name: str,
    cls: Any,
    data: Data,
    base: dict[str, Any],
    *,
    weighted: bool = False,
    **options: Any,
) -> Iterator[Case]:
    """One case for every value of every option, the others as in ``base``."""
    for option, values in options.items():
        for value in values:
            settings = {**base, option: value}
            yield fitted(f"{name} {option}={value}", cls, data, weighted=weighted, **settings)


def crossed(
    name: str,
    cls: Any,
    data: Data,
    joint: tuple[str, ...] = (),
    optimizers: tuple[str, ...] = OPTIMIZERS,
    **settings: Any,
) -> Iterator[Case]:
    """One case for every loss with every optimizer it goes with.

    ``joint`` are losses of several regressors at once.
    """
    for loss in (*LOSSES, *joint):
        for optimizer in ("pn",) if loss in joint else optimizers:
            yield fitted(
                f"{name} {loss} {optimizer}", cls, data, loss=loss, optimizer=optimizer, **settings
            )


def online(
    name: str,
    cls: Any,
    data: Data,
    optimizers: tuple[str, ...] = OPTIMIZERS,
    **settings: Any,
) -> Iterator[Case]:
    """What every online learner goes through, whatever its options."""
    yield fitted(f"{name} default", cls, data, **settings)
    yield fitted(f"{name} weighted", cls, data, weighted=True, **settings)
    for scaling in SCALINGS:
        yield fitted(f"{name} scaling={scaling}", cls, data, scaling=scaling, **settings)
    yield fitted(f"{name} n_bits=3", cls, data, n_bits=3, scaling="row", **settings)
    yield fitted(f"{name} learning_rate=0.2", cls, data, learning_rate=0.2, **settings)
    yield fitted(f"{name} n_passes=1", cls, data, n_passes=1, **settings)
    early = {"early_stopping": True, "n_passes": 12}
    yield fitted(f"{name} early_stopping", cls, data, **early, **settings)
    yield fitted(f"{name} early_stopping weighted", cls, data, weighted=True, **early, **settings)
    yield streamed(f"{name} stream", cls, data, **settings)
    yield streamed(f"{name} stream weighted", cls, data, weighted=True, **settings)
    for scaling in SCALINGS:
        yield streamed(f"{name} stream scaling={scaling}", cls, data, scaling=scaling, **settings)
    yield streamed(f"{name} stream n_bits=3", cls, data, n_bits=3, scaling="none", **settings)
    for copy in (saved, pickled):
        yield restored(f"{name} {copy.__name__}", cls, data, copy, **settings)
        for optimizer in optimizers:
            yield restored(
                f"{name} {copy.__name__} {optimizer} standard",
                cls,
                data,
                copy,
                optimizer=optimizer,
                scaling="standard",
                **settings,
            )
