"""Cases of the learners that take examples one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import xmtree
from data import (
    Data,
    dense_blobs,
    dense_label_sets,
    label_sets,
    sparse_words,
)
from kinds import (
    OPTIMIZERS,
    SEED,
    Case,
    Parts,
    crossed,
    fitted,
    online,
    restored,
    saved,
    streamed,
    varied,
)


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
        yield from crossed(name, cls, data, ("softmax",), OPTIMIZERS, n_passes=2)
        yield from online(name, cls, data, OPTIMIZERS)
        for optimizer in OPTIMIZERS:
            plain = {"optimizer": optimizer, "n_passes": 2}
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
            nodes_per_class=(0.0, 0.5, 2.0),
            split_threshold=(1.0, 50.0),
            paper_tree=(True,),
            n_estimators=(7,),
        )
        vw = cls.VW
        yield fitted(f"{name} vw", cls, data, **vw)
        yield fitted(f"{name} vw weighted x 2", cls, data, weighted=True, n_estimators=2, **vw)
        yield streamed(f"{name} vw stream", cls, data, **vw)
        yield from varied(
            f"{name} swaps weighted",
            cls,
            data,
            {"n_passes": 6, "nodes_per_class": 0.8, "swap_resistance": 1.5},
            weighted=True,
            swap_resistance=(1.0, 2.0, 16.0),
            split_threshold=(1.0, 3.0),
            paper_tree=(True,),
            n_estimators=(3,),
        )
        yield restored(
            f"{name} swaps saved", cls, data, saved, nodes_per_class=0.8, swap_resistance=1.5
        )


def recall_tree() -> Iterator[Case]:
    """Recall Tree."""
    cls = xmtree.RecallTreeClassifier
    for kind, data in {"sparse": sparse_words(), "dense": dense_blobs()}.items():
        name = f"recall-tree {kind}"
        for loss in ("softmax", "margin", "logistic"):
            yield from online(f"{name} loss={loss}", cls, data, (), loss=loss)
        deep = {"n_passes": 2, "max_candidates": 6, "max_depth": 12, "bern_hyper": 0.1}
        for start, base in ((name, {"n_passes": 2}), (f"{name} deep", deep)):
            yield from varied(
                start,
                cls,
                data,
                base,
                max_candidates=(1, 3),
                max_depth=(0, 2, 20),
                bern_hyper=(0.0, 1.0),
                loss=("logistic", "squared", "quantile", "hinge"),
                learning_rate=(0.1,),
                router_importance=("none",),
                paper_tree=(True,),
                beam_size=(1, 2, 32),
                path_weight=(0.0, 2.0),
            )
        yield from varied(
            f"{name} margin loss", cls, data, {"loss": "margin", "n_passes": 2}, margin=(0.5, 8.0)
        )
        for path_features in ("all", "node_only"):
            paths = {"path_features": path_features, "max_candidates": 3}
            start = f"{name} path_features={path_features}"
            yield fitted(start, cls, data, **paths, loss="logistic", n_passes=2)
            yield restored(f"{start} saved", cls, data, saved, **paths, loss="hinge")
        yield fitted(f"{name} vw", cls, data, **cls.VW)
        yield fitted(f"{name} vw weighted", cls, data, weighted=True, **cls.VW)
        yield fitted(f"{name} vw hashed", cls, data, n_bits=3, **cls.VW)
        yield streamed(f"{name} vw stream", cls, data, **cls.VW)
        yield restored(f"{name} vw saved", cls, data, saved, **cls.VW)
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


GROUPS = (forms, oaa, lomtree, recall_tree, label_trees)
