"""The comparison as text: a table, and what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import log2
from typing import NamedTuple

import numpy as np

from xmtree.demo.contenders import DataSet
from xmtree.demo.measure import Result, Scaling

TITLES = ("data", "learner", "test error, or P@1 / 3 / 5", "fit, s", "µs/prediction", "MB")
_WIDTHS = (13, 14, 27, 9, 15, 9)
#: Trees that choose their shape, so that their depth is worth a look.
SHAPED = ("LOMtree", "Recall Tree")


class Finding(NamedTuple):
    """What the figures show of a data set, or (None) of growing numbers of labels."""

    data: DataSet | None
    title: str
    sentences: list[str]


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


def findings(results: list[Result], scaled: list[Scaling]) -> list[Finding]:
    """Time against the number of labels, then each data set."""
    found = [Finding(None, _growth(scaled), list(_scaling(scaled)))]
    for data, group in groupby(results, key=lambda result: result.data):
        rows = list(group)
        title = f"{data.title}: {rows[0].n_classes:,} labels"
        found.append(Finding(data, title, [*_best(rows), *_depths(rows)]))
    return found


def _growth(scaled: list[Scaling]) -> str:
    """How much longer predictions of the fastest tree and of one-against-all take."""
    base = next(curve for curve in scaled if curve.contender.family == "oaa")
    last = len(base.n_classes) - 1
    trees = [curve for curve in scaled if curve is not base and len(curve.predict_us) > last]
    fastest = min(trees, key=lambda curve: curve.predict_us[last])
    told = [
        f"{_ratio(curve.predict_us[last], curve.predict_us[0])}-fold with {curve.contender.name}"
        for curve in (base, fastest)
    ]
    few, many = base.n_classes[0], base.n_classes[-1]
    return f"From {few:,} to {many:,} labels the time of a prediction grows {', '.join(told)}"


def _scaling(scaled: list[Scaling]) -> Iterator[str]:
    """One-against-all beside each tree, at the largest number of labels that it was timed at."""
    base = next(curve for curve in scaled if curve.contender.family == "oaa")
    name, n_labels = base.contender.name, base.n_classes[-1]
    for what, times in (("Prediction", "predict_us"), ("Training", "fit_us")):
        own: list[float] = getattr(base, times)
        told = []
        for curve in scaled:
            other: list[float] = getattr(curve, times)
            if curve is base or len(other) < len(own):
                continue
            mine = other[len(own) - 1]
            ahead = _ahead_from(base.n_classes, own, other)
            told.append(
                f"{curve.contender.name} {mine:.3g} µs "
                + (
                    f"({_ratio(own[-1], mine)} times as fast, ahead from {ahead:,} labels on)"
                    if ahead
                    else f"({_ratio(mine, own[-1])} times as slow)"
                )
            )
        yield (
            f"{what} with {n_labels:,} labels, per example: {name} {own[-1]:.3g} µs; "
            f"{', '.join(told)}."
        )


def _ratio(one: float, other: float) -> str:
    ratio = one / other
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _ahead_from(n_labels: list[int], base: list[float], tree: list[float]) -> int | None:
    """The smallest number of labels from which on the tree took less time."""
    ahead = None
    for count, one, other in reversed(list(zip(n_labels, base, tree, strict=False))):
        if other >= one:
            break
        ahead = count
    return ahead


def _best(rows: list[Result]) -> Iterator[str]:
    """The learner of lowest error, and the fastest ones."""
    best: dict[str, list[str]] = {}
    for what, measure in (
        ("lowest error", "error"),
        ("fastest prediction", "us_per_prediction"),
        ("fastest training", "fit_seconds"),
    ):
        row = min(rows, key=lambda row: float(getattr(row, measure)))
        facts = (
            f"{row.contender.name}, {100 * row.error:.1f} % error, "
            f"{row.us_per_prediction:.3g} µs per prediction, {row.fit_seconds:.2g} s to train."
        )
        best.setdefault(facts, []).append(what)
    for facts, whats in best.items():
        yield f"{', '.join(whats).capitalize()}: {facts}"


def _depths(rows: list[Result]) -> Iterator[str]:
    """How deep examples go in trees that choose their shape."""
    for row in rows:
        if row.contender.name in SHAPED:
            tree = row.tree.tree_
            mean = np.average(tree.depth, weights=row.tree._ended(tree))
            yield (
                f"In {row.contender.name} examples stop at depth {mean:.1f} on average; a balanced "
                f"tree with a leaf per label has depth log2 {row.n_classes:,} = "
                f"{log2(row.n_classes):.1f}."
            )


def _in_columns(texts: Sequence[str]) -> str:
    return "".join(
        f"{text:<{width}}" if at < 3 else f"{text:>{width}}"
        for at, (text, width) in enumerate(zip(texts, _WIDTHS, strict=True))
    )
