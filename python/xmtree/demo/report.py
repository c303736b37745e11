"""The comparison as one self-contained HTML page."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Callable
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path

import xmtree
from xmtree.demo.charts import Bar, Curve, Point, bars, columns, curves, scatter
from xmtree.demo.contenders import DataSet
from xmtree.demo.measure import Result, Scaling
from xmtree.demo.table import findings, megabytes, quality, scaling_findings


def write_report(path: str | Path, results: list[Result], scaled: list[Scaling]) -> None:
    """Writes the page, which is self-contained."""
    Path(path).write_text(_page(results, scaled), encoding="utf-8")


def style() -> str:
    """The style sheet of pages and plots."""
    return (files("xmtree.demo") / "style.css").read_text(encoding="utf-8")


def page(title: str, body: str) -> str:
    """A whole self-contained page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style()}</style>\n"
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def standalone(plot: str) -> str:
    """A plot as an SVG file of its own, in light colours: few viewers know variables."""
    sheet = style()
    colours = dict(re.findall(r"(--\w+): (#\w+);", sheet.partition("}")[0]))
    rules = [
        line for line in sheet.splitlines() if line.startswith(("svg .", "svg text", ".s", ".l"))
    ]
    rules.append("svg { background: var(--card); font-family: system-ui, sans-serif; }")
    plain = re.sub(r"var\((--\w+)\)", lambda name: colours[name[1]], "\n".join(rules))
    return plot.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        ">", f"><style>\n{plain}\n</style>", 1
    )


def _page(results: list[Result], scaled: list[Scaling]) -> str:
    sentences = findings(results) + scaling_findings(scaled)
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    parts = [
        "<h1>Logarithmic-time trees against one-against-all</h1>",
        '<p class="soft">Every learner with its defaults, trained on one thread on the data '
        "inside the package, then measured on test data it has not seen.</p>",
        f"<ul>{items}</ul>" if items else "",
        "<h2>The comparison</h2>",
        f'<div class="cards"><div class="card">{_table(results)}</div></div>',
    ]
    for data, group in groupby(results, key=lambda result: result.data):
        parts.append(_data_set(data, list(group)))
    if any(curve.n_classes for curve in scaled):
        parts.append(_scaling(scaled))
    parts.append(
        f"<footer>xmtree {escape(xmtree.__version__)}, Python {platform.python_version()}, "
        f"{escape(platform.system())} {escape(platform.machine())}, {os.cpu_count()} cores. "
        "Fit: wall time of fit, one thread. Time per prediction: predict_topk of the whole "
        "test set at once, one thread, best of three, divided by its rows. Size: the model "
        "file. Times move with whatever else the machine does. "
        "Data: NAICS 2017 index (public domain), O*NET (CC BY 4.0), UCI letter (CC BY 4.0)."
        "</footer>"
    )
    return page("xmtree: trees against one-against-all", "\n".join(parts))


def _table(results: list[Result]) -> str:
    rows = [
        "<tr><th>data</th><th>learner</th>"
        '<th class="n">test error, or P@1 / 3 / 5, %</th><th class="n">fit, s</th>'
        '<th class="n">&micro;s per prediction</th><th class="n">MB</th></tr>'
    ]
    for data, group in groupby(results, key=lambda result: result.data):
        members = list(group)
        alone = len(members) == 1
        for at, row in enumerate(members):

            def cell(text: str, value: float, lowest: float, alone: bool = alone) -> str:
                best = " best" if value == lowest and not alone else ""
                return f'<td class="n{best}">{text}</td>'

            rows.append(
                f"<tr{' class=first' if at == 0 else ''}>"
                f"<td>{escape(data.title) if at == 0 else ''}</td>"
                f'<td><span class="dot b{row.contender.slot}"></span>'
                f"{escape(row.contender.name)}</td>"
                + cell(quality(row), row.error, min(r.error for r in members))
                + cell(
                    f"{row.fit_seconds:.2f}",
                    row.fit_seconds,
                    min(r.fit_seconds for r in members),
                )
                + cell(
                    f"{row.us_per_prediction:.2f}",
                    row.us_per_prediction,
                    min(r.us_per_prediction for r in members),
                )
                + cell(megabytes(row), row.megabytes, min(r.megabytes for r in members))
                + "</tr>"
            )
    return f"<table>{''.join(rows)}</table>"


def _data_set(data: DataSet, rows: list[Result]) -> str:
    """Plots of one data set, where there is something to compare."""
    plots = []
    if len(rows) > 1:
        plots = [
            _bars("Test error, %", rows, lambda r: 100 * r.error, lambda r: f"{100 * r.error:.1f}"),
            _bars(
                "Microseconds per prediction",
                rows,
                lambda row: row.us_per_prediction,
                lambda row: f"{row.us_per_prediction:.2f}",
            ),
            _bars(
                "Seconds to fit",
                rows,
                lambda row: row.fit_seconds,
                lambda row: f"{row.fit_seconds:.2f}",
            ),
            _bars("Model size, MB", rows, lambda row: row.megabytes, megabytes),
            scatter(
                "Error against time",
                [
                    Point(
                        row.contender.name,
                        row.us_per_prediction,
                        100 * row.error,
                        row.contender.slot,
                    )
                    for row in rows
                ],
                "microseconds per prediction",
                "test error, %",
            ),
        ]
    for row in rows:
        if row.depths:
            plots.append(
                columns(
                    f"{row.contender.name}: examples by depth of their last node",
                    row.depths,
                    "depth",
                    math.log2(row.n_classes),
                    f"log2 {row.n_classes} = {math.log2(row.n_classes):.1f}",
                    row.contender.slot,
                )
            )
    if not plots:
        return ""
    cards = "".join(f'<div class="card">{plot}</div>' for plot in plots)
    return (
        f'<h2>{escape(data.title)}</h2><p class="soft">{escape(data.about)}</p>'
        f'<div class="cards">{cards}</div>'
    )


def _bars(
    title: str,
    rows: list[Result],
    value: Callable[[Result], float],
    text: Callable[[Result], str],
) -> str:
    return bars(
        title,
        [Bar(row.contender.name, value(row), text(row), row.contender.slot) for row in rows],
    )


def _scaling(scaled: list[Scaling]) -> str:
    def plot(title: str, times: str) -> str:
        items = [
            Curve(
                curve.contender.name,
                list(zip(curve.n_classes, getattr(curve, times), strict=True)),
                curve.contender.slot,
            )
            for curve in scaled
            if curve.n_classes
        ]
        return curves(title, items, "classes", "microseconds per example")

    cards = "".join(
        f'<div class="card">{plot(title, times)}</div>'
        for title, times in (("Prediction", "predict_us"), ("Training, one pass", "fit_us"))
    )
    return (
        "<h2>Time against the number of classes</h2>"
        '<p class="soft">Synthetic problems of one shape (20 features per row) and more and '
        "more classes; both axes are logarithmic. One-against-all grows with the number of "
        "classes, a tree with its depth.</p>"
        f'<div class="cards">{cards}</div>'
    )
