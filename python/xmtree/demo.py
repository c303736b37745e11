"""Compare every learner on the data inside the package, for ``xmtree demo``."""

import tempfile
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import xmtree
from xmtree._base import Learner
from xmtree.datasets import load_demo
from xmtree.metrics import precision_at_k

#: Number of timed prediction runs; the fastest counts.
_REPEATS = 3
_SEED = 0

_TITLES = ("data", "learner", "test error, or P@1 / 3 / 5", "fit, s", "µs/prediction", "MB")
_WIDTHS = (13, 14, 27, 9, 15, 9)


@dataclass(frozen=True)
class DataSet:
    """A data set inside the package; ``text`` data is wide and sparse."""

    name: str
    title: str
    multilabel: bool = False
    text: bool = True

    def load(self, n_rows: int | None = None) -> Any:
        """Return the training and test parts, with about ``n_rows`` training rows if given."""
        parts = load_demo(self.name)
        if n_rows is not None:
            step = max(1, parts.X_train.shape[0] // n_rows)
            parts.X_train, parts.y_train = parts.X_train[::step], parts.y_train[::step]
        return parts


@dataclass(frozen=True)
class Contender:
    """A learner and the settings that differ from its defaults.

    ``text`` is False for boosting, which is slower on text than linear learners and less accurate.
    """

    name: str
    learner: Callable[..., Learner]
    settings: Mapping[str, Any] = field(default_factory=dict)
    multiclass: bool = True
    multilabel: bool = False
    text: bool = True

    def competes_on(self, data: DataSet) -> bool:
        """Return whether the learner is compared on this data."""
        kind = self.multilabel if data.multilabel else self.multiclass
        return kind and (self.text or not data.text)


DATA_SETS = (
    DataSet("naics2017-index", "naics"),
    # A numeric table, where boosting competes too.
    DataSet("letter", "letter", text=False),
    DataSet("onet-titles", "onet-titles", multilabel=True),
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
    """One row of the comparison."""

    data: DataSet
    contender: Contender
    #: Share of test rows whose best label is wrong.
    error: float
    #: P@1, P@3 and P@5 for label sets, else empty.
    precision: tuple[float, ...]
    fit_seconds: float
    #: Microseconds per row of predicting one label for each row of the test set.
    us_per_prediction: float
    #: Size of the file written by ``save``.
    megabytes: float


def measure(contender: Contender, data: DataSet, parts: Any, verbose: int) -> Result:
    """Train and time a learner on one thread, so that times do not depend on the core count."""
    learner = contender.learner(**contender.settings, random_state=_SEED, verbose=verbose)
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
    X, predict = parts.X_test, learner.predict
    if data.multilabel:
        predict = partial(learner.predict_topk, k=1)
    seconds = min(timeit.repeat(lambda: predict(X), number=1, repeat=_REPEATS))
    return Result(
        data=data,
        contender=contender,
        error=1 - precision[0],
        precision=precision if data.multilabel else (),
        fit_seconds=fit_seconds,
        us_per_prediction=seconds * 1e6 / X.shape[0],
        megabytes=megabytes,
    )


def header() -> str:
    """Return the two header lines of the table."""
    return f"{_in_columns(_TITLES)}\n{'-' * sum(_WIDTHS)}"


def line(result: Result) -> str:
    """Return one row of the table."""
    quality = f"{100 * result.error:.1f} %"
    if result.precision:
        quality = " / ".join(f"{100 * p:.1f}" for p in result.precision) + " %"
    # Two digits keep a small model from being shown as 0.0.
    size = f"{result.megabytes:.1f}" if result.megabytes >= 1 else f"{result.megabytes:.2g}"
    times = f"{result.fit_seconds:.2f}", f"{result.us_per_prediction:.2f}"
    return _in_columns((result.data.title, result.contender.name, quality, *times, size))


def _in_columns(texts: Sequence[str]) -> str:
    return "".join(
        f"{text:<{width}}" if at < 3 else f"{text:>{width}}"
        for at, (text, width) in enumerate(zip(texts, _WIDTHS, strict=True))
    )
