"""All cases: each learner on each kind of data in nearly all of its settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import data as made
import xmtree
from data import Data
from kinds import Case, fitted, pickled, restored, saved, streamed

WORDS, BLOBS = made.sparse_words(), made.dense_blobs()
BOTH = {"sparse": WORDS, "dense": BLOBS}
SETS = {"sets": made.label_sets()}
SMALL = {"sparse": made.sparse_words(600, 20), "dense": made.dense_blobs(500, 6)}
TABLES = {
    "table": made.table(),
    "words": made.sparse_words(600, 30),
    "many classes": made.dense_blobs(1200, 150, 40),
    "large": made.dense_blobs(12_000, 12, 6),
}
LOSSES = ("hinge", "squared_hinge", "logistic", "squared", "quantile")
#: Values of options that are tried one at a time; of all online learners, and of each.
Values = dict[str, tuple[Any, ...]]
ONLINE: Values = {
    "loss": LOSSES,
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
Learner = tuple[Any, dict[str, Data], dict[str, Any], Values]
#: Short name -> class, kinds of data, settings that all cases have, values that are tried.
STREAMS: dict[str, Learner] = {
    "oaa": (
        xmtree.OAAClassifier,
        BOTH | SETS,
        {"n_passes": 2},
        {"prune": (0.01,)} | NAG,
    ),
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
            "router_importance": ("none",),
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


def options_of(
    cls: Any, options: dict[str, tuple[Any, ...]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A name and settings for every value of every option that the class has."""
    known = cls().get_params(deep=False)
    for option, values in options.items():
        if option in known:
            yield from ((f"{option}={value}", {option: value}) for value in values)
    for mode in ("PAPER", "VW"):
        # What makes runs long stays as it is.
        if hasattr(cls, mode):
            named = getattr(cls, mode).items()
            yield mode, {name: value for name, value in named if not name.startswith("n_e")}


def learners() -> Iterator[Case]:
    """Every learner: settings one at a time, weights, streams, files and pickles."""
    for short, (cls, kinds, base, options) in (STREAMS | BATCHES).items():
        is_online = short in STREAMS
        own_loss = {"loss": ()} if "loss" in base else {}
        tried = (ONLINE | own_loss | options) if is_online else options
        for kind, data in kinds.items():
            name = f"{short} {kind}"
            yield fitted(f"{name} default", cls, data, **base)
            for change, settings in options_of(cls, tried):
                yield fitted(f"{name} {change}", cls, data, **base | settings)
            if kind == "table":
                more = base | {"categorical_features": (3, 4)}
                yield fitted(f"{name} categories", cls, data, weighted=True, **more)
            yield fitted(f"{name} weighted", cls, data, weighted=True, **base)
            warm = {} if is_online else {"warm_start": True}
            for copy in (saved, pickled):
                yield restored(f"{name} {copy.__name__}", cls, data, copy, **base, **warm)
            if is_online:
                for scaling in ("none", "row", "standard"):
                    settings = base | {"scaling": scaling}
                    yield streamed(f"{name} stream {scaling}", cls, data, **settings)
                yield streamed(f"{name} stream weighted", cls, data, weighted=True, **base)
