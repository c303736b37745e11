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

#: Things computed by a case: names and values.
Parts = Iterator[tuple[str, Any]]


@dataclass(frozen=True)
class Case:
    """One line of the output; ``run`` takes the number of threads."""

    name: str
    run: Callable[[int], Parts]


def outcome(estimator: Any, X: Any) -> Parts:
    """All that a fitted estimator tells of itself and of the rows ``X``."""
    for name in (
        *("classes_", "progressive_loss_", "progressive_recall_", "n_examples_seen_"),
        *("n_estimators_", "max_candidates_", "max_depth_", "feature_importances_"),
        *("feature_splits_", "trees_"),
    ):
        if hasattr(estimator, name):
            yield name, getattr(estimator, name)
    yield "predict", estimator.predict(X)
    yield "predict_topk", estimator.predict_topk(X, 5)
    for name in ("decision_function", "predict_proba", "predict_scores"):
        if hasattr(estimator, name):
            yield name, getattr(estimator, name)(X)
    if hasattr(estimator, "staged_predict_proba"):
        yield "staged_predict_proba", list(estimator.staged_predict_proba(X))


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


def fitted(name: str, cls: Any, data: Data, *, weighted: bool = False, **settings: Any) -> Case:
    """Learn everything at once."""

    def run(n_jobs: int) -> Parts:
        estimator = cls(**{"random_state": SEED, "n_jobs": n_jobs, **settings})
        estimator.fit(data.X, data.y, data.weights if weighted else None)
        yield from outcome(estimator, data.X_test)

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
    """Learn, store and restore, predict, go on learning, and store and restore again."""

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
        elif "warm_start" in settings:
            estimator.set_params(n_estimators=2 * settings["n_estimators"])
            estimator = copy(estimator.fit(data.X[:half], data.y[:half]))
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
