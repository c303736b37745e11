"""Plots as inline SVG. Colours come from the page's style sheet (classes s1 to s8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 440


@dataclass(frozen=True)
class Bar:
    """A bar: its name, length, and the text at its end."""

    name: str
    value: float
    text: str
    slot: int


@dataclass(frozen=True)
class Curve:
    """A curve of points (x, y), both above 0."""

    name: str
    points: Sequence[tuple[float, float]]
    slot: int


@dataclass(frozen=True)
class Point:
    """A named point; x above 0."""

    name: str
    x: float
    y: float
    slot: int


@dataclass(frozen=True)
class Branch:
    """A node of a tree: its parent by its index in the list (-1: the root), its
    share of all examples, the text beside it, and the text of its tooltip."""

    above: int
    share: float
    text: str
    facts: str
    goes_on: bool = False
    slot: int = 1


def bars(title: str, items: Sequence[Bar]) -> str:
    """Horizontal bars from 0, with their values in words."""
    row, top, left, right = 30, 34, 104, 62
    height = top + row * len(items) + 4
    longest = max((item.value for item in items), default=0) or 1
    parts = [_text(0, 14, title, "title")]
    for at, item in enumerate(items):
        y = top + at * row
        length = max(1.5, item.value / longest * (_WIDTH - left - right))
        parts.append(_text(left - 10, y + 14, item.name, "name", "end"))
        parts.append(
            f'<rect class="s{item.slot}" x="{left}" y="{y + 1}" width="{length:.1f}" '
            f'height="{row - 12}" rx="3"><title>{escape(item.name)}: {escape(item.text)}'
            "</title></rect>"
        )
        parts.append(_text(left + length + 7, y + 14, item.text, "value"))
    return _svg(title, height, parts)


def columns(
    title: str,
    counts: Sequence[int],
    x_title: str,
    mark: float,
    mark_text: str,
    slot: int = 3,
) -> str:
    """A histogram over 0, 1, 2, ... with a line at ``mark``."""
    height, top, bottom, left = 230, 46, 44, 10
    high = max(counts, default=0) or 1
    step = (_WIDTH - 2 * left) / max(1, len(counts), math.ceil(mark) + 1)
    floor = height - bottom
    total = sum(counts) or 1
    parts = [_text(0, 14, title, "title")]
    for at, count in enumerate(counts):
        tall = count / high * (floor - top)
        parts.append(
            f'<rect class="s{slot}" x="{left + at * step + 1:.1f}" y="{floor - tall:.1f}" '
            f'width="{max(1.0, step - 2):.1f}" height="{tall:.1f}" rx="1.5">'
            f"<title>{at}: {100 * count / total:.1f} %</title></rect>"
        )
        if at % max(1, math.ceil(24 / step)) == 0:
            parts.append(_text(left + (at + 0.5) * step, floor + 15, str(at), "tick", "middle"))
    parts.append(_line(left, floor, _WIDTH - left, floor, "axis"))
    x = left + (mark + 0.5) * step
    parts.append(_line(x, top - 14, x, floor, "mark"))
    anchor = "start" if x < _WIDTH / 2 else "end"
    parts.append(_text(x + (6 if anchor == "start" else -6), top - 6, mark_text, "value", anchor))
    parts.append(_text(_WIDTH / 2, height - 8, x_title, "tick", "middle"))
    return _svg(title, height, parts)


def curves(title: str, items: Sequence[Curve], x_title: str, y_title: str) -> str:
    """Curves with both axes logarithmic, each named at its end."""
    height, top, bottom, left, right = 300, 54, 46, 46, 104
    xs = [x for item in items for x, _ in item.points]
    ys = [y for item in items for _, y in item.points]
    x_low, x_high = math.log2(min(xs)), math.log2(max(xs))
    y_low, y_high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - x_low) / ((x_high - x_low) or 1)
        up = (math.log10(y) - y_low) / ((y_high - y_low) or 1)
        return left + across * (_WIDTH - left - right), height - bottom - up * (
            height - top - bottom
        )

    parts = [_text(0, 14, title, "title"), _text(0, 36, y_title, "tick")]
    for power in range(y_low, y_high + 1):
        _, y = place(min(xs), 10.0**power)
        parts.append(_line(left, y, _WIDTH - right, y, "grid"))
        parts.append(_text(left - 8, y + 4, f"{10.0**power:g}", "tick", "end"))
    for value in sorted(set(xs)):
        x, _ = place(value, ys[0])
        parts.append(_text(x, height - bottom + 18, f"{value:g}", "tick", "middle"))
    parts.append(_text((left + _WIDTH - right) / 2, height - 6, x_title, "tick", "middle"))
    ends = []
    for item in items:
        places = [place(x, y) for x, y in item.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="line l{item.slot}" points="{path}"/>')
        for (x, y), (n, value) in zip(places, item.points, strict=True):
            parts.append(
                f'<circle class="s{item.slot}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">'
                f"<title>{escape(item.name)}, {n:g}: {value:.3g}</title></circle>"
            )
        ends.append((places[-1], item))
    for (x, _), y, item in _apart(ends):
        parts.append(_text(x + 10, y + 4, item.name, f"end t{item.slot}"))
    return _svg(title, height, parts)


def scatter(title: str, items: Sequence[Point], x_title: str, y_title: str) -> str:
    """Named points; x is logarithmic, y begins at 0."""
    height, top, bottom, left, right = 230, 54, 46, 46, 20
    x_low = math.log10(min(item.x for item in items)) - 0.15
    x_high = math.log10(max(item.x for item in items)) + 0.15
    step = _round_step(max(item.y for item in items) / 4)
    y_high = step * math.ceil(max(item.y for item in items) / step) or 1.0
    floor = height - bottom

    def across(x: float) -> float:
        return left + (math.log10(x) - x_low) / (x_high - x_low) * (_WIDTH - left - right)

    def up(y: float) -> float:
        return floor - y / y_high * (floor - top)

    parts = [_text(0, 14, title, "title"), _text(0, 36, y_title, "tick")]
    for at in range(round(y_high / step) + 1):
        parts.append(_line(left, up(at * step), _WIDTH - right, up(at * step), "grid"))
        parts.append(_text(left - 8, up(at * step) + 4, f"{at * step:g}", "tick", "end"))
    for power in range(math.floor(x_low), math.ceil(x_high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**power
            if x_low <= math.log10(value) <= x_high:
                parts.append(_text(across(value), floor + 18, f"{value:g}", "tick", "middle"))
    parts.append(_text((left + _WIDTH - right) / 2, height - 6, x_title, "tick", "middle"))
    # Horizontal spans that labels may not cover, with their base lines: first those of the points.
    taken = [(across(item.x) - 7, across(item.x) + 7, up(item.y) + 4) for item in items]
    for item in sorted(items, key=lambda item: -item.y):
        x, y = across(item.x), up(item.y)
        parts.append(
            f'<circle class="s{item.slot}" cx="{x:.1f}" cy="{y:.1f}" r="5.5">'
            f"<title>{escape(item.name)}: {item.x:.3g}, {item.y:.1f}</title></circle>"
        )
        # Beside its point if that is free, else a little lower or higher.
        long = 7.5 * len(item.name)
        shifts = sorted(range(-60, 64, 4), key=lambda shift: (abs(shift), -shift))
        spots = [
            (begin, begin + long, y + 4 + shift)
            for shift in shifts
            for begin in (x + 10, x - 10 - long)
            if begin >= left and begin + long <= _WIDTH and top - 4 <= y + 4 + shift <= floor + 4
        ]
        spot = next((spot for spot in spots if _free(spot, taken)), spots[0])
        taken.append(spot)
        anchor, near = ("start", spot[0]) if spot[0] > x else ("end", spot[1])
        parts.append(_text(near, spot[2], item.name, f"end t{item.slot}", anchor))
    return _svg(title, height, parts)


def _free(spot: tuple[float, float, float], taken: Sequence[tuple[float, float, float]]) -> bool:
    """Whether a text from, to, on a base line touches none of those."""
    begin, end, base = spot
    return all(end < low or high < begin or abs(base - at) >= 14 for low, high, at in taken)


def tree(title: str, nodes: Sequence[Branch]) -> str:
    """A tree from the root down, parents before children; a node's circle grows with its
    number of examples. Dotted lines: the node has descendants that are not shown."""
    below: list[list[int]] = [[] for _ in nodes]
    level = [0] * len(nodes)
    for at, node in enumerate(nodes):
        if node.above >= 0:
            below[node.above].append(at)
            level[at] = level[node.above] + 1
    column, row, top = 68, 76, 58
    n_columns = 0
    across = [0.0] * len(nodes)
    # From the right and from below, so that a node's children are placed before it.
    for at in _last_first(below):
        if below[at]:
            across[at] = sum(across[child] for child in below[at]) / len(below[at])
        else:
            across[at] = n_columns
            n_columns += 1
    width = max(_WIDTH, n_columns * column + 24)
    left = (width - n_columns * column) / 2 + column / 2
    places = [
        (left + (n_columns - 1 - across[at]) * column, top + level[at] * row)
        for at in range(len(nodes))
    ]
    parts = [_text(0, 14, title, "title")]
    for at, node in enumerate(nodes):
        if node.above >= 0:
            parts.append(_line(*places[node.above], *places[at], "axis"))
        if node.goes_on:
            x, y = places[at]
            parts.append(_line(x, y, x, y + 40, "mark"))
    for (x, y), node in zip(places, nodes, strict=True):
        radius = 4 + 14 * math.sqrt(min(1.0, max(0.0, node.share)))
        parts.append(
            f'<circle class="s{node.slot}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{escape(node.facts)}</title></circle>"
        )
        parts.append(_text(x + radius + 4, y + 4, node.text, "tick"))
    return _svg(title, top + max(level, default=0) * row + 48, parts, width)


def _last_first(below: list[list[int]]) -> list[int]:
    """All nodes, children before parents, the last child first."""
    order, stack = [], [0] if below else []
    while stack:
        at = stack.pop()
        order.append(at)
        stack.extend(reversed(below[at]))
    return order[::-1]


def _round_step(step: float) -> float:
    """The next of 1, 2, 5, 10, 20, ..."""
    power = 10.0 ** math.floor(math.log10(step)) if step > 0 else 1.0
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= step)


def _apart(
    ends: list[tuple[tuple[float, float], Curve]],
) -> list[tuple[tuple[float, float], float, Curve]]:
    """Names at the ends of curves, moved until none covers another."""
    placed: list[tuple[tuple[float, float], float, Curve]] = []
    last = -math.inf
    for at, item in sorted(ends, key=lambda end: end[0][1]):
        last = max(at[1], last + 15)
        placed.append((at, last, item))
    return placed


def _svg(title: str, height: float, parts: list[str], width: float = _WIDTH) -> str:
    name = escape(title, quote=True)
    box = f'<svg viewBox="0 0 {width:g} {height}" role="img" aria-label="{name}">'
    return f"{box}{''.join(parts)}</svg>"


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
