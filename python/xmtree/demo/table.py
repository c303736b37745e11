"""The comparison as text."""

from __future__ import annotations

from itertools import groupby

from xmtree.demo.measure import Result, Scaling

_WIDTHS = (12, 14, 21, 10, 16, 10)


def header() -> str:
    """Two lines above the rows."""
    titles = ("data", "learner", "test error / P@1,3,5", "fit, s", "us/prediction", "MB")
    first = "".join(
        f"{title:<{width}}" if at < 3 else f"{title:>{width}}"
        for at, (title, width) in enumerate(zip(titles, _WIDTHS, strict=True))
    )
    return f"{first}\n{'-' * sum(_WIDTHS)}"


def line(result: Result) -> str:
    """One row of the table."""
    cells = (
        result.data.title,
        result.contender.name,
        quality(result),
        f"{result.fit_seconds:.2f}",
        f"{result.us_per_prediction:.2f}",
        megabytes(result),
    )
    return "".join(
        f"{cell:<{width}}" if at < 3 else f"{cell:>{width}}"
        for at, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    )


def quality(result: Result) -> str:
    """Test error, or P@1/3/5 for label sets, in percent."""
    if result.precision:
        return " / ".join(f"{100 * p:.1f}" for p in result.precision)
    return f"{100 * result.error:.1f} %"


def megabytes(result: Result) -> str:
    """Size of the model, not 0.0 for the small ones."""
    size = result.megabytes
    return f"{size:.1f}" if size >= 1 else f"{size:.2g}"


def findings(results: list[Result]) -> list[str]:
    """Compares trees with one-against-all on each data set, a sentence each."""
    sentences = []
    for data, group in groupby(results, key=lambda result: result.data):
        rows = list(group)
        trees = [row for row in rows if row.contender.family == "tree"]
        baselines = [row for row in rows if row.contender.family == "oaa"]
        if not trees or not baselines:
            continue
        base = min(baselines, key=lambda row: row.error)
        for tree in trees:
            sentences.append(
                f"{data.title}, {tree.n_classes} classes: {_speeds(tree, base)}, at "
                f"{100 * tree.error:.1f} against {100 * base.error:.1f} % error."
            )
    return sentences


def scaling_findings(scaled: list[Scaling]) -> list[str]:
    """From how many classes on each tree is faster, up to the largest number timed."""
    sentences = []
    baselines = [curve for curve in scaled if curve.contender.family == "oaa"]
    for base in baselines:
        for tree in scaled:
            shared = [k for k in base.n_classes if k in tree.n_classes]
            if tree.contender.family != "tree" or not shared:
                continue
            predict = _ahead_from(shared, base.predict_us, tree.predict_us)
            fit = _ahead_from(shared, base.fit_us, tree.fit_us)
            last = len(shared) - 1
            sentences.append(
                f"synthetic, 20 features per row: {tree.contender.name} is ahead of "
                f"{base.contender.name} {predict} in prediction and {fit} in training; "
                f"at {shared[-1]} classes {_ratio(base.predict_us[last], tree.predict_us[last])} "
                f"and {_ratio(base.fit_us[last], tree.fit_us[last])}."
            )
    return sentences


def _ahead_from(n_classes: list[int], base: list[float], tree: list[float]) -> str:
    """The smallest number of classes from which on the tree took less time."""
    ahead = None
    for k, one, other in reversed(list(zip(n_classes, base, tree, strict=False))):
        if other >= one:
            break
        ahead = k
    return f"from {ahead} classes on" if ahead else f"nowhere up to {n_classes[-1]} classes"


def _ratio(base: float, tree: float) -> str:
    return (
        f"{base / tree:.1f} times as fast" if tree <= base else f"{tree / base:.1f} times as slow"
    )


def _speeds(tree: Result, base: Result) -> str:
    who, other = tree.contender.name, base.contender.name
    predict = base.us_per_prediction / tree.us_per_prediction
    fit = base.fit_seconds / tree.fit_seconds
    if predict >= 1 and fit >= 1:
        return f"{who} predicts {predict:.1f} times and trains {fit:.1f} times as fast as {other}"
    if predict >= 1:
        return (
            f"{who} predicts {predict:.1f} times as fast as {other} "
            f"but takes {1 / fit:.1f} times as long to train"
        )
    if fit >= 1:
        return (
            f"{who} trains {fit:.1f} times as fast as {other} "
            f"but takes {1 / predict:.1f} times as long to predict"
        )
    return (
        f"{who} takes {1 / predict:.1f} times as long to predict "
        f"and {1 / fit:.1f} times as long to train as {other}"
    )
