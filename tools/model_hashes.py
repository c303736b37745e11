"""Hash what every learner learns and predicts, to show that a change leaves all models the same.

Fits every learner, with nearly all of its settings, on small synthetic data. Each case prints a
line: its name, the number of threads, and a hash of all predictions, scores, probabilities and
trees and of the progressive loss, to the last bit. The script uses the public Python API only, so
it runs on any two commits with the same API:

    python tools/model_hashes.py > before.txt
    python tools/model_hashes.py > after.txt     # with the other commit installed
    diff before.txt after.txt

Record both files in the same environment: the hashes depend on the versions of numpy and SciPy and
may depend on the machine. Bytes of model files are not hashed, because their format may change.
Models that were saved and loaded, or pickled, are hashed by what they predict and learn.

The script fails if a case gives different hashes with 1 and with 2 threads. To see what differs,
``--parts`` prints a line for every hashed array, and ``--only TEXT`` runs the cases whose names
contain TEXT.
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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import xmtree
from sklearn.exceptions import ConvergenceWarning
from xmtree.datasets import make_xmc

THREADS = (1, 2)
SEED = 7

#: The named values that a case computes.
Parts = Iterator[tuple[str, Any]]
#: The name of a case, and the function that runs it with ``n_jobs`` threads.
Case = tuple[str, Callable[..., Parts]]
#: Values of each parameter, tried one at a time.
Values = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Data:
    """Rows to learn, and rows to predict."""

    X: Any
    y: Any
    X_test: Any

    @property
    def weights(self) -> np.ndarray:
        """Importance weights, every fifth of them 0."""
        weights = np.random.default_rng(3).uniform(0.25, 4.0, self.X.shape[0])
        weights[2::5] = 0
        return weights


def split(X: Any, y: Any, n_test: int = 200) -> Data:
    """Return data whose last ``n_test`` rows are predicted."""
    at = X.shape[0] - n_test
    return Data(X[:at], y[:at], X[at:])


def sparse_words(n: int = 900, n_classes: int = 40) -> Data:
    """Return CSR rows of various lengths with one label each; some are empty or negative."""
    X, y = make_xmc(n, 300, n_classes, nnz=8, exponent=0.5, random_state=1)
    lengths = np.random.default_rng(1).uniform(0.2, 3.0, n).astype(np.float32)
    lengths[::50] = 0
    X = sp.csr_matrix(sp.diags(lengths, dtype=np.float32) @ X)
    X.eliminate_zeros()
    X.data[::7] *= -1
    return split(X, y)


def dense_blobs(n: int = 900, n_classes: int = 24, n_features: int = 12) -> Data:
    """Return dense rows around a center per class; the columns have different scales."""
    draw = np.random.default_rng(2)
    centers = draw.normal(size=(n_classes, n_features))
    y = draw.integers(n_classes, size=n)
    X = (centers[y] + 0.7 * draw.normal(size=(n, n_features))) * np.logspace(-1, 1, n_features)
    return split(X, y)


def label_sets(n: int = 900, n_classes: int = 30) -> Data:
    """Return CSR rows with label sets as a sparse indicator; some sets are empty."""
    how = {"nnz": 8, "n_labels": 2.0, "exponent": 0.5, "multilabel": True}
    X, y = make_xmc(n, 250, n_classes, **how, random_state=4)
    y = sp.csr_matrix(sp.diags(1.0 * (np.arange(n) % 40 != 20)).astype(np.int64) @ y)
    y.eliminate_zeros()
    return split(X, y)


def table(n: int = 1500, n_classes: int = 7) -> Data:
    """Return a table with few or many distinct values per column, two of categories, and gaps."""
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


BOTH = {"sparse": sparse_words(), "dense": dense_blobs()}
SETS = {"sets": label_sets()}
SMALL = {"sparse": sparse_words(600, 20), "dense": dense_blobs(500, 6)}
TABLES = {
    "table": table(),
    "words": sparse_words(600, 30),
    "many classes": dense_blobs(1200, 150, 40),
    "large": dense_blobs(12_000, 12, 6),
}
#: Values of the parameters that all online learners have.
ONLINE: Values = {
    "loss": ("hinge", "squared_hinge", "logistic", "squared", "quantile"),
    "scaling": ("none", "row", "standard"),
    "n_bits": (3,),
    "learning_rate": (0.2,),
    "n_passes": (1, 12),
    "early_stopping": (True,),
    "calibrate": (False,),
    "scale_weights": (False,),
}
NAG = {"optimizer": ("nag",)}
LABEL_TREE = {"label_order": ("given", "random", "frequency"), "decay": (0.0, 2.0)} | NAG
RECALL = xmtree.RecallTreeClassifier
#: Class, kinds of data, parameters of all cases, values that are tried.
Learner = tuple[Any, dict[str, Data], dict[str, Any], Values]
STREAMS: dict[str, Learner] = {
    "oaa": (xmtree.OAAClassifier, BOTH | SETS, {"n_passes": 2}, {"prune": (0.01,)} | NAG),
    "oaa sampled": (xmtree.OAAClassifier, BOTH, {"n_passes": 2, "n_negatives": 5}, NAG),
    "oaa softmax": (xmtree.OAAClassifier, BOTH, {"loss": "softmax", "n_passes": 2}, {}),
    "lomtree": (
        xmtree.LOMTreeClassifier,
        BOTH,
        {"n_passes": 4},
        {
            "decay": (0.0, 0.3),
            "nodes_per_class": (0.0, 0.5, 2.0),
            "split_threshold": (1.0, 50.0),
            "paper_tree": (True,),
            "n_estimators": (3, 7),
        }
        | NAG,
    ),
    "lomtree swaps": (
        xmtree.LOMTreeClassifier,
        BOTH,
        {"n_passes": 6, "nodes_per_class": 0.8, "swap_resistance": 1.5},
        {"swap_resistance": (1.0, 2.0, 16.0), "split_threshold": (1.0, 3.0), "n_estimators": (3,)},
    ),
    "recall-tree": (
        RECALL,
        BOTH,
        {"n_passes": 2},
        {
            "max_candidates": (1, 3),
            "max_depth": (0, 2, 20),
            "bern_hyper": (0.0, 0.1),
            "recall_bound": ("paper",),
            "router_importance": ("none", "average_entropy"),
            "paper_tree": (True,),
            "beam_size": (1, 2, 32),
            "path_weight": (0.0, 2.0),
            "loss": ("logistic", "squared", "quantile", "hinge"),
        },
    ),
    "recall-tree margin": (RECALL, BOTH, {"loss": "margin", "n_passes": 2}, {"margin": (0.5, 8.0)}),
    "recall-tree paths": (
        RECALL,
        BOTH,
        {"loss": "logistic", "n_passes": 2, "max_candidates": 3, "path_features": "all"},
        {"path_features": ("node_only",)},
    ),
    "filter-tree": (xmtree.FilterTreeClassifier, BOTH, {"n_passes": 2}, LABEL_TREE),
    "random-tree": (xmtree.RandomTreeClassifier, BOTH, {"n_passes": 2}, LABEL_TREE),
}
BOOSTING = {
    "max_leaves": (2, 300),
    "min_samples_leaf": (5,),
    "learning_rate": (0.1, 1.0),
    "max_features": (0.05, 0.5, 1.0),
    "subsample": (0.5, 1.0),
    "trim": (0.0, 0.4),
    "splits": ("exact",),
    "early_stopping": (True,),
}
FEW = {"n_estimators": 6, "max_leaves": 40}
BATCHES: dict[str, Learner] = {
    "ldsm": (
        xmtree.LdSMClassifier,
        SETS | SMALL,
        {"n_estimators": 3, "max_nodes": 40, "n_epochs": 4},
        {
            "arity": (3, 4, 8),
            "max_nodes": (1, 2, 7, 500),
            "lambda1": (0.5,),
            "lambda2": (0.0, 3.0),
            "loss": ("logistic",),
            "learning_rate": (0.02,),
            "scaling": ("none", "row", "standard", "auto"),
            "n_bits": (3,),
            "beta": (0.8, 0.0),
            "scorers": ("none",),
            "slim_trees": (False,),
            "n_negatives": (2,),
            "cost": (0.5,),
            "threshold": (0.1,),
            "n_labels": (2,),
        },
    ),
    "gamble": (xmtree.GambleClassifier, TABLES, FEW, BOOSTING | {"clip": (False,)}),
    "gamble whole": (
        xmtree.GambleClassifier,
        TABLES,
        {"n_estimators": 6, "max_features": 1.0, "subsample": 1.0, "trim": 0.0},
        {"splits": ("exact",)},
    ),
    "samme": (xmtree.SAMMEClassifier, TABLES, FEW, BOOSTING),
}


def cases() -> Iterator[Case]:
    """Yield the cases of every learner: single settings, weights, streams, files and pickles."""
    for short, (cls, kinds, base, options) in (STREAMS | BATCHES).items():
        is_online = short in STREAMS
        own_loss = {"loss": ()} if "loss" in base else {}
        changes = list(settings(cls, (ONLINE | own_loss | options) if is_online else options))
        warm = {} if is_online else {"warm_start": True}
        for kind, data in kinds.items():
            name = f"{short} {kind}"
            yield f"{name} default", partial(fit, cls, data, **base)
            for change, values in changes:
                yield f"{name} {change}", partial(fit, cls, data, **base | values)
            if kind == "table":
                more = base | {"categorical_features": (3, 4)}
                yield f"{name} categories", partial(fit, cls, data, is_weighted=True, **more)
            yield f"{name} weighted", partial(fit, cls, data, is_weighted=True, **base)
            for copy in (saved, pickled):
                yield f"{name} {copy.__name__}", partial(restore, cls, data, copy, **base | warm)
            if is_online:
                for scaling in ("none", "row", "standard"):
                    case = partial(stream, cls, data, **base | {"scaling": scaling})
                    yield f"{name} stream {scaling}", case
                case = partial(stream, cls, data, is_weighted=True, **base)
                yield f"{name} stream weighted", case


def settings(cls: Any, options: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the parameters of every value that the class knows, and of its modes."""
    known = cls().get_params(deep=False)
    for option, values in options.items():
        if option in known:
            yield from ((f"{option}={value}", {option: value}) for value in values)
    for mode in ("PAPER", "VW"):
        # Numbers of estimators and epochs stay small, to keep the run short.
        if hasattr(cls, mode):
            named = getattr(cls, mode).items()
            yield mode, {name: value for name, value in named if not name.startswith("n_e")}


def fit(cls: Any, data: Data, is_weighted: bool = False, **parameters: Any) -> Parts:
    """Learn all rows at once."""
    estimator = cls(**{"random_state": SEED, **parameters})
    estimator.fit(data.X, data.y, data.weights if is_weighted else None)
    yield from outcome(estimator, data.X_test)


def stream(cls: Any, data: Data, is_weighted: bool = False, **parameters: Any) -> Parts:
    """Learn batches of unequal length and predict after each; end with a ``fit``."""
    estimator = cls(random_state=SEED, **parameters)
    classes = None if sp.issparse(data.y) else np.unique(data.y)
    n = data.X.shape[0]
    for start, end in itertools.pairwise([0, 1, 2, 40, 300, n // 2, n]):
        weights = data.weights[start:end] if is_weighted else None
        X, y = data.X[start:end], data.y[start:end]
        estimator.partial_fit(X, y, classes=classes, sample_weight=weights)
        classes = None
        yield f"after {end}", [value for _, value in outcome(estimator, data.X_test[:50])]
    yield from outcome(estimator, data.X_test)
    estimator.fit(data.X, data.y)
    yield "fit after all", [value for _, value in outcome(estimator, data.X_test)]


def restore(cls: Any, data: Data, copy: Callable[[Any], Any], **parameters: Any) -> Parts:
    """Learn, store and load, predict, continue to learn, and store and load again."""
    estimator = cls(random_state=SEED, **parameters)
    half = data.X.shape[0] // 2
    estimator = copy(estimator.fit(data.X[:half], data.y[:half]))
    yield from outcome(estimator, data.X_test)
    if hasattr(estimator, "partial_fit"):
        X, y = data.X[half:], data.y[half:]
        if y.ndim == 1:
            known = np.isin(y, estimator.classes_)
            X, y = X[known], y[known]
        estimator = copy(estimator.partial_fit(X, y))
    elif "warm_start" in parameters:
        estimator.set_params(n_estimators=2 * parameters["n_estimators"])
        estimator = copy(estimator.fit(data.X[:half], data.y[:half]))
    yield "went on", [value for _, value in outcome(estimator, data.X_test)]


def saved(estimator: Any) -> Any:
    """Return the estimator as it is loaded from its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xmtree"
        estimator.save(path)
        return xmtree.load(path)


def pickled(estimator: Any) -> Any:
    """Return the estimator after pickling."""
    return pickle.loads(pickle.dumps(estimator))


def outcome(estimator: Any, X: Any) -> Parts:
    """Yield the fitted attributes of an estimator and everything that it predicts for ``X``."""
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
    """Add types, shapes and bits of ``value`` to the hash ``into``."""
    if sp.issparse(value):
        value = sp.csr_matrix(value)
        value.sort_indices()
        value = ["sparse", value.shape, value.indptr, value.indices, value.data]
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        into.update(f"{value.dtype.str}{value.shape}".encode())
        into.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (np.ndarray, np.generic)):
        digest(value.tolist(), into)
    elif isinstance(value, dict):
        for key in sorted(value):
            into.update(f"{key}=".encode())
            digest(value[key], into)
    elif isinstance(value, (list, tuple)):
        into.update(f"{len(value)} values".encode())
        for item in value:
            digest(item, into)
    elif value is None or isinstance(value, (bool, int, float, str)):
        into.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"cannot hash a {type(value).__name__}")


def hash_of(parts: Parts, show_parts: bool) -> str:
    """Return the hash of everything that a case computes."""
    total = hashlib.sha256()
    for name, value in parts:
        part = hashlib.sha256()
        digest(value, part)
        total.update(name.encode() + part.digest())
        if show_parts:
            print(f"    {name} {part.hexdigest()[:16]}")
    return total.hexdigest()[:16]


def main() -> int:
    """Print the hashes; return 1 if some depend on the number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="run cases named like this")
    parser.add_argument("--parts", action="store_true", help="print a line for every hashed array")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    all_cases = dict(cases())
    failed = 0
    for name, run in all_cases.items():
        if options.only in name:
            hashes = []
            for n_jobs in THREADS:
                hashes.append(hash_of(run(n_jobs=n_jobs), options.parts))
                print(f"{name.replace(' ', '_')} {n_jobs} {hashes[-1]}", flush=True)
            if len(set(hashes)) > 1:
                print(f"{name}: differs between {THREADS} threads", file=sys.stderr)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
