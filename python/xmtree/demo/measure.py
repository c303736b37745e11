"""One learner on one data set: accuracy, time, size. And time against K."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from xmtree.datasets import make_xmc
from xmtree.demo.contenders import Contender, DataSet
from xmtree.metrics import precision_at_k

#: Predictions are timed this often; the fastest run counts.
REPEATS = 3
SEED = 0


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
    tree : the learner, where it is a single tree
    """

    data: DataSet
    contender: Contender
    error: float
    precision: tuple[float, ...]
    fit_seconds: float
    us_per_prediction: float
    megabytes: float
    n_classes: int
    tree: Any = None


def measure(contender: Contender, data: DataSet, parts: Any, verbose: int) -> Result:
    """Trains on one thread, so that times do not depend on the number of cores."""
    learner = contender.make(random_state=SEED, verbose=verbose)
    began = time.perf_counter()
    learner.fit(parts.X_train, parts.y_train)
    fit_seconds = time.perf_counter() - began
    cuts = (1, 3, 5) if data.multilabel else (1,)
    best, _ = learner.predict_topk(parts.X_test, cuts[-1])
    precision = tuple(precision_at_k(parts.y_test, best, cuts).tolist())
    return Result(
        data=data,
        contender=contender,
        error=1 - precision[0],
        precision=precision if data.multilabel else (),
        fit_seconds=fit_seconds,
        us_per_prediction=_predict_seconds(learner, parts.X_test, data.multilabel)
        / parts.X_test.shape[0]
        * 1e6,
        megabytes=_megabytes(learner),
        n_classes=len(learner.classes_),
        tree=learner if len(getattr(learner, "trees_", [])) == 1 else None,
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
        X, y = make_xmc(2 * n_rows, 1000, n_classes, nnz=20, exponent=0.5, random_state=SEED)
        for curve in curves:
            if curve.contender.name in slow:
                continue
            show(f"{n_classes} classes, {curve.contender.name}")
            learner: Any = curve.contender.make(random_state=SEED)
            began = time.perf_counter()
            learner.partial_fit(X[:n_rows], y[:n_rows], classes=np.arange(n_classes))
            seconds = time.perf_counter() - began
            if seconds > budget:
                slow.add(curve.contender.name)
            curve.n_classes.append(n_classes)
            curve.fit_us.append(seconds / n_rows * 1e6)
            curve.predict_us.append(_predict_seconds(learner, X[n_rows:], False) / n_rows * 1e6)
    return curves


def _predict_seconds(learner: Any, X: Any, multilabel: bool) -> float:
    """The shortest of some runs, each of which predicts one label per row."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        if multilabel:
            learner.predict_topk(X, 1)
        else:
            learner.predict(X)
        times.append(time.perf_counter() - began)
    return min(times)


def _megabytes(learner: Any) -> float:
    """The size of the learner's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        learner.save(path)
        return path.stat().st_size / 1e6
