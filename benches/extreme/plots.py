"""P@5 against the bytes of the file, and against the time of a prediction, as SVG."""

from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path

import numpy as np

from extreme import tasks

#: Programs of the plots, in the order of their colours and shapes.
PROGRAMS = ("xmtree", "omikuji", "omikuji, collapsed", "PECOS", "one-against-all")
MEASURES = {
    "size": ("P@5 against the size of the model's file", "MB, smaller is better", "file_mb"),
    "time": ("P@5 against the time of a prediction", "us a row, one thread, left is better", "us"),
}
COLUMNS, WIDTH, HEIGHT, HEAD = 3, 320, 230, 78
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 28, 40
STYLE = """
  .page { fill: #ffffff } text { fill: #1d2330; font: 12px system-ui, sans-serif }
  .title { font-size: 15px; font-weight: 600 } .name { font-weight: 600 }
  .tick { fill: #626b7c; font-size: 11px } .grid { stroke: #e3e4e0 }
  .s0 { fill: #d9812e } .s1 { fill: #4c72b0 } .s2 { fill: #8fb0dc } .s3 { fill: #3f8f5f }
  .s4 { fill: #8d5fb0 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #1c2028 } text { fill: #e8eaee } .tick { fill: #98a1b2 }
    .grid { stroke: #2f3541 } .s0 { fill: #f0a052 } .s1 { fill: #6f9ae0 } .s2 { fill: #3f66a3 }
    .s3 { fill: #66bd8a } .s4 { fill: #b48ad8 }
  }
"""


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high`` lie between two positions."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value):
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def write(results, folder):
    """A plot for each measure, with a panel for each data set with label sets."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = results.newest()
    for measure, (title, unit, key) in MEASURES.items():
        panels = {name: points(found, name, key) for name in tasks.LABEL_SETS}
        panels = {name: at for name, at in panels.items() if at}
        if panels:
            path = folder / f"extreme-{measure}.svg"
            path.write_text(drawn(title, unit, panels), encoding="utf-8")


def points(found, name, key):
    """Program -> (logarithm of the measure, P@5), means of seeds."""
    at = {}
    for program in PROGRAMS:
        runs = [run for run in found.get((name, program), ()) if key in run]
        if runs:
            x = log10(np.mean([run[key] for run in runs]))
            at[program] = x, float(np.mean([run["p"][2] for run in runs]))
    return at


def drawn(title, unit, panels):
    xs = [x for at in panels.values() for x, _ in at.values()]
    spread = floor(min(xs)), max(ceil(max(xs)), floor(min(xs)) + 1)
    width, height = COLUMNS * WIDTH, HEAD + ceil(len(panels) / COLUMNS) * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        text(LEFT, 28, title, "title"),
        *legend(sorted({program for at in panels.values() for program in at}, key=PROGRAMS.index)),
    ]
    for i, (name, at) in enumerate(panels.items()):
        corner = i % COLUMNS * WIDTH, HEAD + i // COLUMNS * HEIGHT
        parts += panel(name, at, spread, unit, *corner)
    return "\n".join([*parts, "</svg>", ""])


def legend(programs):
    x = LEFT
    for program in programs:
        yield mark(program, x + 6, 52)
        yield text(x + 18, 56, program)
        x += 40 + 7 * len(program)


def panel(name, at, spread, unit, left, top):
    """One data set: P@5 upwards, the measure to the right by powers of ten."""
    ys = [y for _, y in at.values()]
    margin = max(0.5, 0.15 * (max(ys) - min(ys)))
    x_axis = Axis(*spread, left + LEFT, left + WIDTH - RIGHT)
    low, high = top + HEIGHT - BOTTOM, top + TOP
    y_axis = Axis(min(ys) - margin, max(ys) + margin, low, high)
    yield text(left + LEFT, top + 16, name, "name")
    for power in range(spread[0], spread[1] + 1):
        x = x_axis.at(power)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{low}" y2="{high}"/>'
        yield text(x, low + 15, f"{10.0**power:g}", "tick", "middle")
    for value in ticks(y_axis.low, y_axis.high):
        y, ends = y_axis.at(value), (x_axis.start, x_axis.end)
        yield f'<line class="grid" x1="{ends[0]}" x2="{ends[1]}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield text(left + LEFT - 6, y + 4, f"{value:g}", "tick", "end")
    yield text((x_axis.start + x_axis.end) / 2, low + 31, unit, "tick", "middle")
    # Ours last, so that it is never hidden.
    for program in reversed(at):
        x, y = at[program]
        yield mark(program, x_axis.at(x), y_axis.at(y), f"{program}: {10**x:.3g}, P@5 {y:.1f}")


def ticks(low, high):
    """Three to six round values."""
    step = next(step for step in (0.2, 0.5, 1, 2, 5, 10, 20, 50) if (high - low) / step < 6)
    return [round(i * step, 1) for i in range(ceil(low / step), floor(high / step) + 1)]


def mark(program, x, y, told=""):
    """A shape and a colour of the program's own."""
    i = PROGRAMS.index(program)
    shapes = (
        f'circle cx="{x:.1f}" cy="{y:.1f}" r="6"',
        f'rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"',
        f'path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z"',
        f'path d="M{x:.1f} {y - 6:.1f}l6 11h-12z"',
        f'path d="M{x:.1f} {y + 6:.1f}l6 -11h-12z"',
    )
    shape = shapes[i]
    return f'<{shape} class="s{i}"><title>{escape(told)}</title></{shape.split()[0]}>'


def text(x, y, words, kind="", anchor="start"):
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"
