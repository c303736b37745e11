"""Cases of LdSM, boosting and active learning, and of the data inside the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import xmtree
from data import (
    Data,
    demo,
    dense_blobs,
    dense_label_sets,
    few_per_class,
    label_sets,
    sparse_table,
    sparse_words,
    table,
)
from kinds import (
    SEED,
    Case,
    Parts,
    fitted,
    outcome,
    pickled,
    restored,
    saved,
    varied,
)


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
            loss=("logistic",),
            learning_rate=(0.02,),
            scaling=("none", "row", "standard", "auto"),
            n_bits=(3,),
            beta=(0.8, 0.0),
            scorers=("none",),
            slim_trees=(False,),
            n_negatives=(2,),
            cost=(0.5,),
            threshold=(0.1,),
            n_labels=(2,),
        )
        yield from varied(
            f"{name} logistic",
            cls,
            data,
            {**small, "loss": "logistic", "scorers": "none"},
            arity=(2, 3, 5),
        )
        tail = {"beta": 0.7}
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
        yield fitted(f"{start} lomtree vw", lomtree, data, **lomtree.VW)
        yield fitted(f"{start} recall-tree", recall, data, k=100)
        yield fitted(f"{start} recall-tree vw", recall, data, **recall.VW)
        yield fitted(f"{start} recall-tree paper_tree", recall, data, paper_tree=True, n_passes=2)
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


GROUPS = (ldsm, boosting, demos)
