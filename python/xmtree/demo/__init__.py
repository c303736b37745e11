"""The demonstration behind ``xmtree demo``: measure, compare, report.

``xmtree.demo.page``, which is the page with plots, needs matplotlib; all else does not.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import xmtree
from xmtree._base import Learner
from xmtree.datasets import load_demo, make_xmc
from xmtree.metrics import precision_at_k

#: Predictions are timed this often; the fastest run counts.
_REPEATS = 3
_SEED = 0

TITLES = ("data", "learner", "test error, or P@1 / 3 / 5", "fit, s", "µs/prediction", "MB")
_WIDTHS = (13, 14, 27, 9, 15, 9)


@dataclass(frozen=True)
class DataSet:
    """Data inside the package.

    ``text``: very many columns, nearly all of them 0 in each row.
    """

    name: str
    title: str
    multilabel: bool
    about: str
    text: bool = True

    def load(self, n_rows: int | None = None) -> Any:
        """The parts of the data, with about ``n_rows`` training rows where that is given."""
        parts = load_demo(self.name)
        if n_rows is not None:
            step = max(1, parts.X_train.shape[0] // n_rows)
            parts.X_train, parts.y_train = parts.X_train[::step], parts.y_train[::step]
        return parts

    def description(self, parts: Any) -> str:
        """What it is, and how much of it, in two sentences."""
        y, known = parts.y_train, len(parts.target_names)
        occur = np.count_nonzero(y.sum(axis=0)) if self.multilabel else len(np.unique(y))
        labels = f"{known:,} labels" if occur == known else f"{occur:,} of {known:,} labels"
        each = f", {y.sum() / y.shape[0]:.1f} per row" if self.multilabel else ""
        return (
            f"{self.about} {y.shape[0]:,} training rows with {labels}{each}; "
            f"{parts.X_test.shape[0]:,} test rows."
        )


@dataclass(frozen=True)
class Contender:
    """A learner and its settings, all defaults but those named.

    ``text``: whether it is for text. Boosting is not:
    it is slow there, and less accurate than linear learners.
    """

    name: str
    learner: type[Learner]
    settings: Mapping[str, Any] = field(default_factory=dict)
    multiclass: bool = True
    multilabel: bool = False
    text: bool = True

    def make(self, **more: Any) -> Learner:
        """A new learner; ``more`` are parameters that all of them have."""
        return self.learner(**self.settings, **more)

    def competes_on(self, data: DataSet) -> bool:
        """Whether it can learn such labels."""
        kind = self.multilabel if data.multilabel else self.multiclass
        return kind and (self.text or not data.text)


DATA_SETS = (
    DataSet(
        "naics2017-index",
        "naics",
        False,
        "Industries of described business activities, from words and word pairs.",
    ),
    DataSet(
        "letter",
        "letter",
        False,
        "Letters from 16 measures of their image: a table, so boosting is compared, too.",
        text=False,
    ),
    DataSet(
        "onet-titles", "onet-titles", True, "Occupations of job titles, from words and word pairs."
    ),
)

_TEN: dict[str, Any] = {"n_estimators": 10}

CONTENDERS = (
    Contender("OAA", xmtree.OAAClassifier, multilabel=True),
    Contender("OAA, softmax", xmtree.OAAClassifier, {"loss": "softmax"}),
    Contender("LOMtree", xmtree.LOMTreeClassifier),
    Contender("LOMtree x 10", xmtree.LOMTreeClassifier, _TEN),
    Contender("Recall Tree", xmtree.RecallTreeClassifier),
    Contender("LdSM x 10", xmtree.LdSMClassifier, _TEN, multiclass=False, multilabel=True),
    Contender("Filter tree", xmtree.FilterTreeClassifier),
    Contender("Random tree", xmtree.RandomTreeClassifier),
    Contender("GAMBLE", xmtree.GambleClassifier, text=False),
    Contender("SAMME", xmtree.SAMMEClassifier, text=False),
)


@dataclass(frozen=True)
class Result:
    """A line of the comparison.

    Attributes
    ----------
    error : share of test rows whose best label is wrong
    precision : P@1, P@3, P@5 for label sets, else empty
    fit_seconds : wall time of ``fit``
    us_per_prediction : wall time of ``predict`` on the whole test set, of label sets
        that of ``predict_topk`` with k = 1, per row, in microseconds
    megabytes : size of the file that ``save`` writes
    n_classes : labels that occur in training
    """

    data: DataSet
    contender: Contender
    error: float
    precision: tuple[float, ...]
    fit_seconds: float
    us_per_prediction: float
    megabytes: float
    n_classes: int


def measure(contender: Contender, data: DataSet, parts: Any, verbose: int) -> Result:
    """Trains on one thread, so that times do not depend on the number of cores."""
    learner = contender.make(random_state=_SEED, verbose=verbose)
    began = time.perf_counter()
    learner.fit(parts.X_train, parts.y_train)
    fit_seconds = time.perf_counter() - began
    cuts = (1, 3, 5) if data.multilabel else (1,)
    best, _ = learner.predict_topk(parts.X_test, cuts[-1])
    precision = tuple(precision_at_k(parts.y_test, best, cuts).tolist())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        learner.save(path)
        megabytes = path.stat().st_size / 1e6
    return Result(
        data=data,
        contender=contender,
        error=1 - precision[0],
        precision=precision if data.multilabel else (),
        fit_seconds=fit_seconds,
        us_per_prediction=_us_per_prediction(learner, parts.X_test, data.multilabel),
        megabytes=megabytes,
        n_classes=len(learner.classes_),
    )


@dataclass(frozen=True)
class Scaling:
    """Times per example, in microseconds, by number of classes."""

    contender: Contender
    n_classes: list[int] = field(default_factory=list)
    fit_us: list[float] = field(default_factory=list)
    predict_us: list[float] = field(default_factory=list)


def scaling(
    contenders: list[Contender],
    powers: Iterator[int] | range,
    n_rows: int,
    budget: float,
    show: Callable[[str], None],
) -> list[Scaling]:
    """Times one pass over synthetic problems of equal shape and growing K.

    A learner that took longer than ``budget`` seconds on one problem is not run on the
    larger ones. ``show`` is called with what is timed next.
    """
    curves = [Scaling(contender) for contender in contenders]
    slow: set[str] = set()
    for power in powers:
        n_classes = 2**power
        X, y = make_xmc(2 * n_rows, 1000, n_classes, nnz=20, exponent=0.5, random_state=_SEED)
        for curve in curves:
            if curve.contender.name in slow:
                continue
            show(f"{n_classes} classes, {curve.contender.name}")
            learner: Any = curve.contender.make(random_state=_SEED)
            began = time.perf_counter()
            learner.partial_fit(X[:n_rows], y[:n_rows], classes=np.arange(n_classes))
            seconds = time.perf_counter() - began
            if seconds > budget:
                slow.add(curve.contender.name)
            curve.n_classes.append(n_classes)
            curve.fit_us.append(seconds / n_rows * 1e6)
            curve.predict_us.append(_us_per_prediction(learner, X[n_rows:], False))
    return curves


def _us_per_prediction(learner: Any, X: Any, multilabel: bool) -> float:
    """By the shortest of some runs, each of which predicts one label per row."""
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        if multilabel:
            learner.predict_topk(X, 1)
        else:
            learner.predict(X)
        times.append(time.perf_counter() - began)
    return min(times) * 1e6 / int(X.shape[0])


def header() -> str:
    """Two lines above the rows."""
    return f"{_in_columns(TITLES)}\n{'-' * sum(_WIDTHS)}"


def line(result: Result) -> str:
    """One row of the table."""
    return _in_columns((result.data.title, *cells(result)))


def cells(result: Result) -> tuple[str, ...]:
    """What a row of the table holds, after the name of the data."""
    quality = f"{100 * result.error:.1f} %"
    if result.precision:
        quality = " / ".join(f"{100 * p:.1f}" for p in result.precision) + " %"
    # Of small models not 0.0.
    size = f"{result.megabytes:.1f}" if result.megabytes >= 1 else f"{result.megabytes:.2g}"
    times = f"{result.fit_seconds:.2f}", f"{result.us_per_prediction:.2f}"
    return result.contender.name, quality, *times, size


def _in_columns(texts: Sequence[str]) -> str:
    return "".join(
        f"{text:<{width}}" if at < 3 else f"{text:>{width}}"
        for at, (text, width) in enumerate(zip(texts, _WIDTHS, strict=True))
    )
