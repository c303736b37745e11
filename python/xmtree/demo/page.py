"""The comparison as one page that needs no other file."""

import os
import platform
from html import escape
from itertools import groupby
from pathlib import Path

from matplotlib.figure import Figure

import xmtree
from xmtree.demo import CONTENDERS, TITLES, DataSet, Result, Scaling, cells
from xmtree.plotting._figures import card, house_style, page, percent, plain_log_ticks

_COLORS = {contender.name: f"C{at}" for at, contender in enumerate(CONTENDERS)}


def write_page(
    path: str | Path,
    results: list[Result],
    scaled: list[Scaling],
    about: dict[DataSet, str],
) -> None:
    """Writes the page: plots, the table, and how it was measured.

    ``about`` describes each data set.
    """
    settings = "; ".join(
        f"{one.name} has {', '.join(f'{name}={value!r}' for name, value in one.settings.items())}"
        for one in CONTENDERS
        if one.settings
    )
    parts = [
        "<h1>Logarithmic-time trees against one-against-all</h1>",
        f'<p class="soft">Learners with their defaults, except that {escape(settings)}. Trained on '
        "one thread on data inside the package, measured on test rows they have not seen.</p>",
    ]
    growth = (
        "Synthetic problems of one shape (20 features per row) and more and more labels, one pass. "
        "Both axes are logarithmic."
    )
    with house_style():
        times = [
            times_figure("Prediction", scaled, "predict_us"),
            times_figure("Training", scaled, "fit_us"),
        ]
        parts.append(_section("Time against the number of labels", growth, times))
        for data, group in groupby(results, key=lambda result: result.data):
            rows = list(group)
            title = f"{data.title}: {rows[0].n_classes:,} labels"
            parts.append(_section(title, about[data], [errors_figure(rows)]))
    parts += [
        f'<h2>All figures</h2>\n<div class="card">{_table(results)}</div>',
        f"<footer>xmtree {escape(xmtree.__version__)}, Python {platform.python_version()}, "
        f"{escape(platform.system())} {escape(platform.machine())}, {os.cpu_count()} cores. "
        "Error: share of test rows whose best label is wrong; of label sets 1 - P@1. Fit: wall "
        "time of fit. Time per prediction: predict of all test rows at once (of label sets "
        "predict_topk with k = 1), the best of three, divided by their number. MB: the file that "
        "save writes. All on one thread. Times move with whatever else the machine does. Data: "
        "NAICS 2017 index (public domain), O*NET (CC BY 4.0), UCI letter (CC BY 4.0).</footer>",
    ]
    whole = page("xmtree: trees against one-against-all", "\n".join(parts))
    Path(path).write_text(whole, encoding="utf-8")


def _section(title: str, about: str, figures: list[Figure]) -> str:
    cards = "".join(card(figure, figure.axes[0].get_title()) for figure in figures)
    return (
        f'<h2>{escape(title)}</h2>\n<p class="soft">{escape(about)}</p>\n'
        f'<div class="cards">{cards}</div>'
    )


def times_figure(title: str, scaled: list[Scaling], times: str) -> Figure:
    """Time per example against the number of labels; ``times`` is an attribute of ``Scaling``."""
    figure = Figure(figsize=(5.5, 3.8), layout="constrained")
    ax = figure.subplots()
    for curve in scaled:
        name = curve.contender.name
        ax.plot(curve.n_classes, getattr(curve, times), "o-", ms=4, color=_COLORS[name], label=name)
    shown = sorted({count for curve in scaled for count in curve.n_classes})
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(shown, [f"{count:,}" for count in shown])
    plain_log_ticks(ax.yaxis)
    ax.grid(axis="y")
    ax.set(title=title, xlabel="labels", ylabel="µs per example")
    figure.legend(loc="outside right center")
    return figure


def errors_figure(rows: list[Result]) -> Figure:
    """Error against time per prediction, a point per learner."""
    figure = Figure(figsize=(5.5, 3.8), layout="constrained")
    ax = figure.subplots()
    for row in rows:
        name = row.contender.name
        ax.plot(row.us_per_prediction, row.error, "o", ms=7, color=_COLORS[name], label=name)
    ax.set_xscale("log")
    ax.margins(x=0.25, y=0.2)
    ax.set_ylim(bottom=max(0.0, ax.get_ylim()[0]))
    plain_log_ticks(ax.xaxis)
    ax.yaxis.set_major_formatter(percent)
    ax.grid()
    ax.set(title=rows[0].data.title, xlabel="µs per prediction", ylabel="test error")
    figure.legend(loc="outside right center")
    return figure


def _table(results: list[Result]) -> str:
    """All figures, the best of each data set in bold."""
    heads = "".join(
        f"<th{' class=n' if at > 1 else ''}>{escape(title)}</th>" for at, title in enumerate(TITLES)
    )
    rows = [f"<tr>{heads}</tr>"]
    for data, group in groupby(results, key=lambda result: result.data):
        members = list(group)
        values = [(r.error, r.fit_seconds, r.us_per_prediction, r.megabytes) for r in members]
        lowest = [min(column) for column in zip(*values, strict=True)]
        for row, own in zip(members, values, strict=True):
            name, *texts = cells(row)
            numbers = "".join(
                f'<td class="n{" best" if value == low else ""}">{escape(text)}</td>'
                for text, value, low in zip(texts, own, lowest, strict=True)
            )
            first = escape(data.title) if row is members[0] else ""
            rows.append(f"<tr><td>{first}</td><td>{escape(name)}</td>{numbers}</tr>")
    return f"<table>{''.join(rows)}</table>"
