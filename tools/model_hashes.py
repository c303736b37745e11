"""Hashes of what every learner learns and predicts, for changes that must change nothing.

Fits all learners, in nearly all of their settings, on the data inside the package and on small
made-up data. Each case prints a line: its name, the number of threads, and a hash of all
predictions, scores, probabilities and trees and of the progressive loss, to the last bit. Only
the public Python API is used, so the script runs on any two commits whose API agrees:

    python tools/model_hashes.py > before.txt
    python tools/model_hashes.py > after.txt     # with the other commit installed
    diff before.txt after.txt

The hashes of one commit depend on the versions of numpy and SciPy and may depend on the machine:
take both files in the same environment. Bytes of model files are not hashed, their format may
change; models that were saved and loaded, or pickled, are hashed by what they predict and learn.

The script fails if a case gives different hashes on 1 and on 2 threads. To see what
differs, ``--parts`` prints a line for every hashed array, and ``--only TEXT`` runs just the cases
whose names contain TEXT.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import xmtree
from sklearn.exceptions import ConvergenceWarning
from xmtree.datasets import load_demo, make_xmc

THREADS = (1, 2)
SEED = 7

LOSSES = ("hinge", "squared_hinge", "logistic", "squared", "quantile")
OPTIMIZERS = ("pn", "nag", "adagrad", "sgd")
JOINT_OPTIMIZERS = ("pn", "sgd")
SCALINGS = ("none", "row", "standard")

#: Things computed by a case: names and values.
Parts = Iterator[tuple[str, Any]]


@dataclass(frozen=True)
class Data:
    """Rows to learn, and rows to predict."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @property
    def weights(self) -> np.ndarray:
        """Importances, every fifth of them 0."""
        weights = np.random.default_rng(3).uniform(0.25, 4.0, self.X.shape[0])
        weights[2::5] = 0
        return weights


@dataclass(frozen=True)
class Case:
    """One line of the output; ``run`` takes the number of threads."""

    name: str
    run: Callable[[int], Parts]


# Data


def split(X: Any, y: Any, n_test: int) -> Data:
    """The last rows to predict, the others to learn."""
    at = X.shape[0] - n_test
    return Data(X[:at], y[:at], X[at:], y[at:])


def sparse_words(n: int = 900, n_classes: int = 40) -> Data:
    """CSR rows of one label each, of all lengths; some are empty, some values negative."""
    X, y = make_xmc(n, 300, n_classes, nnz=8, exponent=0.5, random_state=1)
    lengths = np.random.default_rng(1).uniform(0.2, 3.0, n).astype(np.float32)
    lengths[::50] = 0
    X = sp.csr_matrix(sp.diags(lengths, dtype=np.float32) @ X)
    X.eliminate_zeros()
    X.data[::7] *= -1
    return split(X, y, 200)


def dense_blobs(n: int = 900, n_classes: int = 24, n_features: int = 12) -> Data:
    """Dense rows around a centre per class, columns of different scales."""
    draw = np.random.default_rng(2)
    centres = draw.normal(size=(n_classes, n_features))
    y = draw.integers(n_classes, size=n)
    X = (centres[y] + 0.7 * draw.normal(size=(n, n_features))) * np.logspace(-1, 1, n_features)
    return split(X, y, 200)


def label_sets(n: int = 900, n_classes: int = 30) -> Data:
    """CSR rows with label sets as a sparse indicator; some sets are empty."""
    X, y = make_xmc(
        n, 250, n_classes, nnz=8, multilabel=True, n_labels=2.0, exponent=0.5, random_state=4
    )
    keep = np.ones(n)
    keep[20::40] = 0
    y = sp.csr_matrix(sp.diags(keep).astype(np.int64) @ y)
    y.eliminate_zeros()
    return split(X, y, 200)


def dense_label_sets(n: int = 600, n_classes: int = 8) -> Data:
    """Dense float32 rows with label sets as a dense indicator."""
    draw = np.random.default_rng(5)
    X = draw.normal(size=(n, 10)).astype(np.float32)
    y = (X @ draw.normal(size=(10, n_classes)) > 2).astype(np.int64)
    return split(X, y, 150)


def table(n: int = 1500, n_classes: int = 7) -> Data:
    """Columns of few and many different values, two of categories, with gaps."""
    draw = np.random.default_rng(6)
    X = draw.normal(size=(n, 8))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = draw.integers(2, size=n)
    X[:, 3] = draw.integers(12, size=n)
    X[:, 4] = draw.integers(200, size=n)
    group = np.random.default_rng(8).integers(n_classes, size=200)
    score = 2 * X[:, 0] + X[:, 1] + group[X[:, 4].astype(int)] + (X[:, 3] % 3)
    X[draw.random(X.shape) < 0.08] = np.nan
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return split(X, np.searchsorted(edges, score), 300)


def sparse_table(n: int = 1500) -> Data:
    """CSR rows, mostly 0, with gaps."""
    draw = np.random.default_rng(9)
    X = draw.poisson(0.25, size=(n, 60)).astype(np.float64)
    X[:, 0] = draw.normal(size=n)
    y = (X[:, :20].sum(axis=1) + 2 * X[:, 1]).astype(np.int64) % 6
    X = sp.csr_matrix(X)
    X.data[draw.random(len(X.data)) < 0.05] = np.nan
    return split(X, y, 300)


def few_per_class(n_classes: int = 150) -> Data:
    """Dense rows of very many classes, of which each has few."""
    return dense_blobs(8 * n_classes, n_classes, 40)


def demo(name: str, n: int | None = None) -> Data:
    """Data inside the package, or its first ``n`` rows."""
    bunch = load_demo(name)
    return Data(bunch.X_train[:n], bunch.y_train[:n], bunch.X_test, bunch.y_test)


# What is hashed


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


# Kinds of cases


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
    name: str, cls: Any, data: Data, joint: tuple[str, ...] = (), **settings: Any
) -> Iterator[Case]:
    """One case for every loss with every optimizer it goes with.

    ``joint`` are losses of several regressors at once.
    """
    for loss in (*LOSSES, *joint):
        for optimizer in JOINT_OPTIMIZERS if loss in joint else OPTIMIZERS:
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
    early = {"early_stopping": True, "validation_fraction": 0.25, "patience": 1, "n_passes": 12}
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


# Cases of the learners


def forms() -> Iterator[Case]:
    """X and y of every kind: all learners share how they are read."""
    dense, sparse, sets = dense_blobs(300, 5), sparse_words(500, 12), label_sets(300, 6)

    def rows(data: Data, change: Callable[[Any], Any]) -> Data:
        return Data(change(data.X), data.y, change(data.X_test), data.y_test)

    def labels(data: Data, change: Callable[[Any], Any]) -> Data:
        return Data(data.X, change(data.y), data.X_test, change(data.y_test))

    def wide(X: Any) -> Any:
        return sp.csr_array((X.data.astype(float), X.indices.astype("i8"), X.indptr.astype("i8")))

    def names(y: Any) -> Any:
        return np.array([f"class {label:03}" for label in y])

    def lists(y: Any) -> Any:
        return [[f"tag {tag}" for tag in part] for part in np.split(y.indices, y.indptr[1:-1])]

    learners: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("oaa", xmtree.OAAClassifier, {}),
        ("lomtree", xmtree.LOMTreeClassifier, {"n_estimators": 2, "n_passes": 2}),
        ("recall-tree", xmtree.RecallTreeClassifier, {"n_passes": 2}),
        ("filter-tree", xmtree.FilterTreeClassifier, {}),
        ("random-tree", xmtree.RandomTreeClassifier, {}),
        ("ldsm", xmtree.LdSMClassifier, {"n_estimators": 2, "max_nodes": 30}),
        ("gamble", xmtree.GambleClassifier, {"n_estimators": 5}),
        ("samme", xmtree.SAMMEClassifier, {"n_estimators": 5}),
    )
    for name, cls, settings in learners:
        for what, data in (
            ("float32", rows(dense, lambda X: X.astype(np.float32))),
            ("fortran", rows(dense, np.asfortranarray)),
            ("integers", rows(dense, lambda X: np.round(X).astype(np.int16))),
            ("float64 int64 csr", rows(sparse, wide)),
            ("csc", rows(sparse, sp.csc_matrix)),
            ("names", labels(dense, names)),
            ("negative labels", labels(sparse, lambda y: 5 - 3 * y)),
            ("two classes", labels(dense, lambda y: y > 2)),
            ("one class", labels(dense, np.zeros_like)),
            ("floats", labels(dense, lambda y: y * 2.0)),
        ):
            yield fitted(f"forms {name} {what}", cls, data, **settings)
        if name in ("oaa", "ldsm"):
            for what, data in (
                ("lists", labels(sets, lists)),
                ("indicator", labels(sets, lambda y: y.toarray())),
                ("csr_array", labels(sets, sp.csr_array)),
            ):
                yield fitted(f"forms {name} {what}", cls, data, **settings)


def oaa() -> Iterator[Case]:
    """One-against-all."""
    cls = xmtree.OAAClassifier
    sets = {"sparse": sparse_words(), "dense": dense_blobs(), "sets": label_sets()}
    for kind, data in sets.items():
        name = f"oaa {kind}"
        yield from crossed(name, cls, data, ("softmax",), n_passes=2)
        yield from online(name, cls, data)
        yield from varied(
            name, cls, data, {"n_passes": 2}, average=(True, False), l1=(1e-4,), l2=(1e-3,)
        )
        for optimizer in OPTIMIZERS:
            plain = {"optimizer": optimizer, "n_passes": 2}
            shrunk = {"l1": 1e-4, "l2": 1e-4, "average": True}
            yield fitted(f"{name} {optimizer} shrunk averaged", cls, data, **plain, **shrunk)
            yield streamed(f"{name} {optimizer} stream", cls, data, optimizer=optimizer)
            if kind != "sets" or optimizer != "nag":
                yield fitted(f"{name} {optimizer} n_negatives", cls, data, n_negatives=5, **plain)
        yield streamed(f"{name} softmax stream", cls, data, loss="softmax")
        yield restored(f"{name} softmax saved", cls, data, saved, loss="softmax")
    yield fitted("oaa dense sets", cls, dense_label_sets(), loss="logistic")
    yield fitted("oaa dense sets weighted", cls, dense_label_sets(), weighted=True)


def lomtree() -> Iterator[Case]:
    """LOMtree and its forest."""
    cls = xmtree.LOMTreeClassifier
    for kind, data in {"sparse": sparse_words(), "dense": dense_blobs()}.items():
        name = f"lomtree {kind}"
        yield from crossed(name, cls, data, n_passes=3)
        yield from online(name, cls, data)
        yield from online(f"{name} x 3", cls, data, n_estimators=3)
        yield from varied(
            name,
            cls,
            data,
            {"n_passes": 4},
            decay=(0.0, 0.3),
            nodes_per_class=(0.5, 2.0),
            max_internal=(0, 3, 15),
            split_threshold=(1.0, 50.0),
            soft_depth=(None, 0.0, 0.75),
            score_clamp=(None, 0.25),
            leaf_smoothing=(0.0, 4.0),
            n_estimators=(7,),
        )
        paper = cls.PAPER
        yield fitted(f"{name} paper", cls, data, **paper)
        yield fitted(
            f"{name} paper weighted x 2", cls, data, weighted=True, n_estimators=2, **paper
        )
        yield streamed(f"{name} paper stream", cls, data, **paper)
        yield from varied(
            f"{name} swaps weighted",
            cls,
            data,
            {"n_passes": 6, "max_internal": 9, "swap_resistance": 1.5},
            weighted=True,
            swap_resistance=(1.0, 2.0, 16.0),
            split_threshold=(1.0, 3.0),
            weighted_counts=(True, False),
            score_clamp=(None, 0.5),
            n_estimators=(3,),
        )
        yield restored(f"{name} swaps saved", cls, data, saved, max_internal=9, swap_resistance=1.5)


def recall_tree() -> Iterator[Case]:
    """Recall Tree."""
    cls = xmtree.RecallTreeClassifier
    for kind, data in {"sparse": sparse_words(), "dense": dense_blobs()}.items():
        name = f"recall-tree {kind}"
        yield from crossed(name, cls, data, ("softmax", "margin"), n_passes=2)
        yield from online(name, cls, data, JOINT_OPTIMIZERS)
        yield from online(f"{name} batch_size=8", cls, data, JOINT_OPTIMIZERS, batch_size=8)
        yield from online(f"{name} loss=logistic", cls, data, loss="logistic")
        deep = {"n_passes": 2, "max_candidates": 6, "max_depth": 12, "bern_hyper": 0.1}
        for start, base in ((name, {"n_passes": 2}), (f"{name} deep", deep)):
            yield from varied(
                start,
                cls,
                data,
                base,
                max_candidates=(1, 3),
                candidates_per_level=(1.5,),
                max_depth=(0, 2, 20),
                depth_share=(0.25, 1.5),
                class_count=("all",),
                bern_hyper=(0.0, 1.0),
                arity=(2, 3, 5, 16),
                router_loss=LOSSES,
                router_rate=(0.1,),
                decay=(0.0, 3.0),
                router_importance=("none",),
                randomized_routing=(True,),
                honest=(False,),
                back_off=(False,),
                path_features=("all", "node_only"),
                beam_size=(1, 2, 32),
                path_weight=(0.0, 2.0),
                batch_size=(2, 64),
            )
        yield from varied(
            f"{name} margin loss", cls, data, {"loss": "margin", "n_passes": 2}, margin=(0.5, 8.0)
        )
        for path_features in ("all", "node_only"):
            for optimizer in OPTIMIZERS:
                yield fitted(
                    f"{name} path_features={path_features} {optimizer} arity=3",
                    cls,
                    data,
                    path_features=path_features,
                    optimizer=optimizer,
                    arity=3,
                    loss="logistic",
                    max_candidates=3,
                    n_passes=2,
                )
                yield restored(
                    f"{name} path_features={path_features} {optimizer} saved",
                    cls,
                    data,
                    saved,
                    path_features=path_features,
                    optimizer=optimizer,
                    loss="hinge",
                    max_candidates=3,
                )
        yield fitted(f"{name} paper", cls, data, **cls.PAPER)
        yield fitted(f"{name} paper weighted", cls, data, weighted=True, **cls.PAPER)
        yield fitted(f"{name} paper random routes", cls, data, randomized_routing=True, **cls.PAPER)
        yield fitted(f"{name} paper hashed", cls, data, n_bits=3, **cls.PAPER)
        yield streamed(f"{name} paper stream", cls, data, **cls.PAPER)
        yield restored(f"{name} paper saved", cls, data, saved, **cls.PAPER)
        yield candidate_recall(f"{name} candidate_recall", data)


def candidate_recall(name: str, data: Data) -> Case:
    """The recall of the candidates, with and without a beam, and of larger k."""

    def run(n_jobs: int) -> Parts:
        estimator = xmtree.RecallTreeClassifier(random_state=SEED, n_jobs=n_jobs, max_candidates=3)
        estimator.fit(data.X, data.y)
        for beam_size in (1, 4, 16):
            estimator.set_params(beam_size=beam_size)
            yield f"beam {beam_size}", estimator.candidate_recall(data.X_test, data.y_test)
            yield f"topk {beam_size}", estimator.predict_topk(data.X_test, 30)

    return Case(name, run)


def label_trees() -> Iterator[Case]:
    """Filter tree and random tree."""
    for short, cls in (
        ("filter-tree", xmtree.FilterTreeClassifier),
        ("random-tree", xmtree.RandomTreeClassifier),
    ):
        for kind, data in {"sparse": sparse_words(), "dense": dense_blobs()}.items():
            name = f"{short} {kind}"
            yield from crossed(name, cls, data, n_passes=2)
            yield from online(name, cls, data)
            yield from varied(
                name,
                cls,
                data,
                {"n_passes": 2},
                label_order=("given", "random", "frequency"),
                decay=(0.0, 2.0),
            )
            yield fitted(f"{name} topk 33", cls, data, k=33)
            yield streamed(f"{name} frequency stream", cls, data, label_order="frequency")
            yield restored(f"{name} frequency saved", cls, data, saved, label_order="frequency")


def ldsm() -> Iterator[Case]:
    """LdSM."""
    cls = xmtree.LdSMClassifier
    small = {"n_estimators": 3, "max_nodes": 40, "n_epochs": 4}
    for kind, data in {
        "sets": label_sets(),
        "dense sets": dense_label_sets(),
        "sparse": sparse_words(600, 20),
        "dense": dense_blobs(500, 6),
    }.items():
        name = f"ldsm {kind}"
        yield fitted(f"{name} default", cls, data, n_estimators=3)
        yield fitted(f"{name} weighted", cls, data, weighted=True, **small)
        yield fitted(f"{name} paper", cls, data, **{**cls.PAPER, **small})
        yield from varied(
            name,
            cls,
            data,
            small,
            arity=(3, 4, 8),
            max_nodes=(1, 2, 7, 500),
            lambda1=(0.5,),
            lambda2=(0.0, 3.0),
            reshuffle=(False,),
            loss=("logistic",),
            optimizer=("nag", "sgd"),
            learning_rate=(0.02,),
            scaling=("none", "row", "standard", "auto"),
            n_bits=(3,),
            beta=(0.8, 0.0),
            scorers=("none", "one_against_all"),
            scorer_loss=("logistic",),
            scorer_weight=(0.0, 2.0),
            threshold=(0.1,),
            n_labels=(2,),
        )
        yield from varied(
            f"{name} early_stopping",
            cls,
            data,
            {**small, "early_stopping": True},
            min_gain=(0.0, 0.02, 0.2),
            optimizer=("nag", "sgd"),
        )
        for optimizer in ("nag", "sgd"):
            yield from varied(
                f"{name} {optimizer} logistic",
                cls,
                data,
                {**small, "optimizer": optimizer, "loss": "logistic", "scorers": "none"},
                arity=(2, 3, 5),
            )
        tail = {"beta": 0.7, "gamma": 0.5}
        yield fitted(f"{name} tail", cls, data, scorers="none", **tail, **small)
        yield fitted(f"{name} tail scorers", cls, data, weighted=True, **tail, **small)
        yield warm_started(f"{name} warm_start", data, lambda estimator: estimator)
        for copy in (saved, pickled):
            yield restored(f"{name} {copy.__name__}", cls, data, copy, **small)
            yield restored(f"{name} tail {copy.__name__}", cls, data, copy, **tail, **small)
            yield warm_started(f"{name} warm_start {copy.__name__}", data, copy)
        yield scored(f"{name} predict_scores", data)


def warm_started(name: str, data: Data, copy: Callable[[Any], Any]) -> Case:
    """LdSM grown in two steps, with a seed of its own for each."""

    def run(n_jobs: int) -> Parts:
        estimator = xmtree.LdSMClassifier(
            n_estimators=2, max_nodes=30, n_epochs=3, warm_start=True, n_jobs=n_jobs, random_state=1
        )
        estimator = copy(estimator.fit(data.X, data.y))
        estimator.set_params(n_estimators=4, random_state=2).fit(data.X, data.y)
        yield from outcome(estimator, data.X_test)

    return Case(name, run)


def scored(name: str, data: Data) -> Case:
    """LdSM's scores above thresholds, and label sets by either rule."""

    def run(n_jobs: int) -> Parts:
        estimator = xmtree.LdSMClassifier(
            n_estimators=4, max_nodes=60, random_state=SEED, n_jobs=n_jobs
        ).fit(data.X, data.y)
        for threshold in (0.0, 0.05, 0.5):
            yield f"above {threshold}", estimator.predict_scores(data.X_test, threshold)
            yield (
                f"predict {threshold}",
                estimator.set_params(threshold=threshold).predict(data.X_test),
            )
        estimator.set_params(threshold=None, n_labels=3)
        yield "predict 3", estimator.predict(data.X_test)
        yield "topk 20", estimator.predict_topk(data.X_test, 20)

    return Case(name, run)


def boosting() -> Iterator[Case]:
    """GAMBLE, SAMME and the choosing of rows."""
    tables = {
        "table": (table(), (3, 4)),
        "sparse table": (sparse_table(), (2, 5)),
        "dense": (dense_blobs(), None),
        "words": (sparse_words(600, 30), None),
        "many classes": (few_per_class(), None),
        "large": (dense_blobs(12_000, 12, 6), None),
    }
    for short, cls in (("gamble", xmtree.GambleClassifier), ("samme", xmtree.SAMMEClassifier)):
        for kind, (data, categorical) in tables.items():
            name, base = f"{short} {kind}", {"n_estimators": 6, "max_leaves": 40}
            yield fitted(f"{name} default", cls, data, n_estimators=8)
            yield fitted(f"{name} weighted", cls, data, weighted=True, **base)
            yield from varied(
                name,
                cls,
                data,
                base,
                max_leaves=(2, 300),
                min_samples_leaf=(5,),
                learning_rate=(0.1, 1.0),
                max_features=(0.05, 0.5, 1.0),
                subsample=(0.5, 1.0),
                trim=(0.0, 0.4),
                splits=("exact",),
            )
            whole = {"max_features": 1.0, "subsample": 1.0, "trim": 0.0, **base}
            yield fitted(f"{name} all", cls, data, **whole)
            yield fitted(f"{name} all exact", cls, data, splits="exact", **whole)
            yield fitted(
                f"{name} all exact weighted", cls, data, weighted=True, splits="exact", **whole
            )
            early = {"early_stopping": True, "patience": 3, "validation_fraction": 0.2}
            yield fitted(
                f"{name} early_stopping", cls, data, **early, **{**base, "n_estimators": 25}
            )
            yield fitted(
                f"{name} early_stopping weighted",
                cls,
                data,
                weighted=True,
                **early,
                **{**base, "n_estimators": 12},
            )
            if categorical is not None:
                yield fitted(
                    f"{name} categories", cls, data, categorical_features=categorical, **base
                )
                yield fitted(
                    f"{name} categories weighted",
                    cls,
                    data,
                    weighted=True,
                    categorical_features=categorical,
                    **whole,
                )
                yield fitted(
                    f"{name} categories exact",
                    cls,
                    data,
                    splits="exact",
                    categorical_features=categorical,
                    **whole,
                )
                yield restored(
                    f"{name} categories saved",
                    cls,
                    data,
                    saved,
                    categorical_features=categorical,
                    **base,
                )
            for copy in (saved, pickled):
                yield restored(f"{name} {copy.__name__}", cls, data, copy, **base)
            if kind != "many classes":
                yield staged(f"{name} staged", cls, data)
            if short == "gamble":
                yield fitted(f"{name} unclipped", cls, data, clip=False, **base)
                yield fitted(f"{name} paper", cls, data, **{**cls.PAPER, "n_estimators": 8})
    yield chosen("active gamble", table())
    yield chosen("active gamble random", table(), selection="random")
    yield chosen("active gamble share", sparse_words(600, 30), pool_share=0.3)
    yield chosen("active gamble categories", table(), categorical_features=(3, 4))
    yield chosen("active samme", dense_blobs(), xmtree.SAMMEClassifier)
    yield taught("active gamble session", dense_blobs())
    yield taught("active gamble session sparse", sparse_table())


def staged(name: str, cls: Any, data: Data) -> Case:
    """What a committee says after each of its rounds."""

    def run(n_jobs: int) -> Parts:
        estimator = cls(n_estimators=4, max_leaves=20, random_state=SEED, n_jobs=n_jobs)
        estimator.fit(data.X, data.y)
        for method in ("staged_predict", "staged_decision_function", "staged_predict_proba"):
            yield method, list(getattr(estimator, method)(data.X_test))

    return Case(name, run)


def active(n_jobs: int, committee: Any, **settings: Any) -> Any:
    """An estimator that chooses its rows."""
    return xmtree.ActiveGamble(
        estimator=committee, n_rounds=6, random_state=SEED, n_jobs=n_jobs, **settings
    )


def session(estimator: Any, X: Any) -> Parts:
    """How rows were chosen, and the committee in the end."""
    for name in ("selected_", "utilities_", "learning_curve_", "best_round_", "stop_reason_"):
        yield name, getattr(estimator, name)
    yield from outcome(estimator.estimator_, X)
    yield "by itself", [value for _, value in outcome(estimator, X)]


def chosen(
    name: str,
    data: Data,
    cls: Any = xmtree.GambleClassifier,
    categorical_features: Any = None,
    **settings: Any,
) -> Case:
    """Active learning where all labels are known."""

    def run(n_jobs: int) -> Parts:
        committee = cls(n_estimators=6, max_leaves=20, categorical_features=categorical_features)
        estimator = active(n_jobs, committee, **settings).fit(data.X, data.y)
        yield from session(estimator, data.X_test)
        estimator = active(n_jobs, committee, early_stopping=True, patience=2, **settings)
        estimator.fit(data.X, data.y, data.weights)
        yield "early_stopping", [value for _, value in session(estimator, data.X_test)]

    return Case(name, run)


def taught(name: str, data: Data) -> Case:
    """A session: asked, skipped, answered in parts, pickled, asked again."""

    def run(n_jobs: int) -> Parts:
        committee = xmtree.GambleClassifier(n_estimators=6, max_leaves=20)
        estimator = active(n_jobs, committee).start(data.X, X_val=data.X_test, y_val=data.y_test)
        asked = 0
        while estimator.stop_reason_ is None:
            rows = estimator.query()
            yield f"query {asked}", rows
            if asked == 1:
                estimator.skip(rows[:2])
                rows = rows[2:]
            if asked == 2:
                estimator = pickled(estimator.teach(rows[:3], data.y[rows[:3]]))
                rows = estimator.query()
            estimator.teach(rows, data.y[rows])
            asked += 1
        yield from session(estimator, data.X_test)

    return Case(name, run)


def demos() -> Iterator[Case]:
    """Data inside the package, with the settings of ``xmtree demo`` and fewer trees."""
    for name in ("naics2017-index", "letter"):
        data, start = demo(name), f"demo {name}"
        yield fitted(f"{start} oaa", xmtree.OAAClassifier, data)
        yield fitted(f"{start} oaa softmax", xmtree.OAAClassifier, data, loss="softmax", n_passes=2)
        lomtree, recall = xmtree.LOMTreeClassifier, xmtree.RecallTreeClassifier
        yield fitted(f"{start} lomtree", lomtree, data, k=100)
        yield fitted(f"{start} lomtree x 10", lomtree, data, n_estimators=10, n_passes=3)
        yield fitted(f"{start} lomtree paper", lomtree, data, **lomtree.PAPER)
        yield fitted(f"{start} recall-tree", recall, data, k=100)
        yield fitted(f"{start} recall-tree batches", recall, data, batch_size=32, n_passes=2)
        yield fitted(f"{start} recall-tree paper", recall, data, **recall.PAPER)
        counted = {"class_count": "all", "n_passes": 2}
        yield fitted(f"{start} recall-tree all classes", recall, data, **counted)
        yield fitted(f"{start} filter-tree", xmtree.FilterTreeClassifier, data, k=100)
        yield fitted(f"{start} random-tree", xmtree.RandomTreeClassifier, data, k=100)
    for name, cls in (("gamble", xmtree.GambleClassifier), ("samme", xmtree.SAMMEClassifier)):
        yield fitted(f"demo letter {name}", cls, demo("letter"), n_estimators=60)
        part = demo("naics2017-index", 4000)
        yield fitted(f"demo naics2017-index {name}", cls, part, n_estimators=4, k=100)
    sets, ldsm = demo("onet-titles"), xmtree.LdSMClassifier
    yield fitted("demo onet-titles oaa", xmtree.OAAClassifier, sets)
    yield fitted("demo onet-titles ldsm", ldsm, sets, n_estimators=4)
    paper = {**ldsm.PAPER, "n_estimators": 2, "n_epochs": 5, "lambda1": 0.5}
    yield fitted("demo onet-titles ldsm paper", ldsm, sets, **paper)


GROUPS = (forms, oaa, lomtree, recall_tree, label_trees, ldsm, boosting, demos)


def hash_of(case: Case, n_jobs: int, show_parts: bool) -> str:
    """The hash of all that a case computes."""
    total = hashlib.sha256()
    for name, value in case.run(n_jobs):
        part = hashlib.sha256()
        digest(value, part)
        total.update(name.encode() + part.digest())
        if show_parts:
            print(f"    {name} {part.hexdigest()[:16]}")
    return total.hexdigest()[:16]


def main() -> int:
    """Prints the hashes; 1 if some depend on the number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains TEXT")
    parser.add_argument("--parts", action="store_true", help="a line for every hashed array")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names, uneven = set(), []
    for group in GROUPS:
        for case in group():
            if case.name in names:
                raise ValueError(f"two cases are called {case.name!r}")
            names.add(case.name)
            if options.only not in case.name:
                continue
            hashes = []
            for n_jobs in THREADS:
                hashes.append(hash_of(case, n_jobs, options.parts))
                print(f"{case.name.replace(' ', '_')} {n_jobs} {hashes[-1]}", flush=True)
            if len(set(hashes)) > 1:
                uneven.append(case.name)
    for name in uneven:
        print(f"{name}: differs between {THREADS} threads", file=sys.stderr)
    return 1 if uneven else 0


if __name__ == "__main__":
    sys.exit(main())
