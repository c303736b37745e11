"""Items, which are measured together, and lines, which compare a value with the paper's.

``lines.toml`` has the lines and claims of the papers. ``RULES``, which the page prints, defines the
verdicts.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite, log2, sqrt
from statistics import mean, median, stdev
from typing import Any

from scipy.stats import t as student

#: Values of a run by name: numbers, or lists of numbers for a curve. Infinity: never reached.
Values = Mapping[str, Any]
#: Columns of nearly every item.
PAPER, DEFAULT = "paper's mode", "default"
SAME, BETTER, WEAKER = "reproduced", "better than stated", "weaker"
NOT, UNTESTED, LATER = "not reproduced", "cannot be tested here", "not run yet"
#: Verdicts with the marks of table cells.
MARKS = {SAME: "=", BETTER: "+", WEAKER: "~", NOT: "✗", UNTESTED: "?", LATER: "…"}
#: Tolerances by unit: points of a percentage, a share of the value, doublings of a time.
TOLERANCES = {"%": 0.5, "share": 0.1, "time": 1.0}
#: A value is weaker up to so many tolerances from the paper's.
WEAK = 3
RULES = f"""- The **tolerance** is 0.5 points for percentages, a factor of 2 for times and their
  ratios, and 10 % for other values. **Intervals** are Student's, 95 %, with n - 1 degrees of
  freedom for n seeds: at least five, or three if a run takes more than 80 seconds.
- A **value** is *{SAME}* within the tolerance. Beyond it, it is *{BETTER}* if the
  whole interval is better; *{WEAKER}* up to three tolerances, or if the interval reaches the
  tolerance; else *{NOT}*.
- A **relation** (> 0) is *{SAME}* if the whole interval fulfills it, *{WEAKER}* if only
  the mean does or there is one seed, else *{NOT}*.
- A **seed that never reaches a target** is not averaged: the median counts it as infinite, and the
  cell says how many seeds reached it.
- A **claim** is *{SAME}* if all its lines are, *{NOT}* if more than half of them
  are not, else *{WEAKER}*.
"""


@dataclass(frozen=True)
class Found:
    """A value over the seeds.

    Attributes
    ----------
    center : the mean, or the median if a seed is infinite
    half : half of the width of the interval; None with a single seed or a median
    reached, seeds : numbers of finite values and of all
    """

    center: float
    half: float | None
    reached: int
    seeds: int

    @classmethod
    def of(cls, values: list[float]) -> "Found":
        n, finite = len(values), sum(map(isfinite, values))
        if finite < n:
            return cls(median(values), None, finite, n)
        half = student.ppf(0.975, n - 1) * stdev(values) / sqrt(n) if n > 1 else None
        return cls(mean(values), half, n, n)

    def __str__(self) -> str:
        if self.reached < self.seeds:
            return f"{number(self.center)} ({self.reached} of {self.seeds} seeds)"
        return number(self.center) + (f"±{number(self.half)}" if self.half else "")


def number(value: float) -> str:
    """Return a number with three digits, or as an integer; infinity is never reached."""
    size = abs(value)
    if size == inf:
        return "never"
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 20 else f"{value:.2f}"


@dataclass(frozen=True)
class Line:
    """A value or relation of a paper, compared with ours.

    Attributes
    ----------
    where : table, figure or section
    what : the measure; in a table, its column
    value : name of a value, followed by a dot and an index for a point of a curve
    minus, over : names of values to subtract and to divide by
    paper : the paper's value; a text if it is one of other data; None if the paper has none
    relation : ">" or "<" if the statement is that our value is above or below ``paper``
    more : whether more is better
    unit : key of ``TOLERANCES``
    cause : a sentence about the cause of a difference
    claim : key of the claim to which the line belongs
    row : its row of a table; default: the data set
    tests : number of test rows, if the line is z of ``value`` below ``minus``, two errors in %
    setting : name of the setting; default: the item's first
    """

    where: str
    what: str
    value: str
    paper: float | str | None = None
    minus: str = ""
    over: str = ""
    relation: str = ""
    more: bool = False
    unit: str = "%"
    cause: str = ""
    claim: str = ""
    row: str = ""
    tests: int = 0
    setting: str = ""

    def found(self, runs: list[Values]) -> Found | None:
        """Return the value over the seeds; None if it was not measured."""
        values = []
        for run in runs:
            with suppress(KeyError, ValueError):
                values.append(self.of(run))
        return Found.of(values) if values else None

    def of(self, values: Values) -> float:
        value = point(values, self.value)
        if self.tests:
            return z_score(point(values, self.minus), value, self.tests)
        if self.minus:
            value -= point(values, self.minus)
        return value / point(values, self.over) if self.over else value

    def stated(self) -> str:
        if self.paper is None:
            return ""
        return (
            self.paper if isinstance(self.paper, str) else f"{self.relation} {self.paper:g}".strip()
        )

    def verdict(self, found: Found | None) -> str:
        if found is None:
            return LATER
        if self.paper is None or isinstance(self.paper, str):
            return UNTESTED if self.paper else ""
        if self.relation:
            margin = (found.center - self.paper) * (1 if self.relation == ">" else -1)
            if not margin > 0:
                return NOT
            return SAME if margin > (inf if found.half is None else found.half) else WEAKER
        worse, half = self.gap(found, self.paper)
        if worse > 1:
            return WEAKER if worse <= WEAK or worse - half <= 1 else NOT
        return BETTER if worse < -1 and worse + half < 0 else SAME

    def gap(self, found: Found, paper: float) -> tuple[float, float]:
        """Return how much worse the value is, in tolerances, and half of its interval."""
        half = found.half or 0.0
        if self.unit == "time":
            gap, half = log2(found.center / paper), log2(1 + half / found.center)
        else:
            scale = abs(paper) if self.unit == "share" else 1
            gap, half = (found.center - paper) / scale, half / scale
        tolerance = TOLERANCES[self.unit] * (-1 if self.more else 1)
        # Rounded, so that a value at the tolerance is within it.
        return round(gap / tolerance, 9), half / abs(tolerance)


def z_score(first, second, n):
    """Return z of two error rates in %, each of ``n`` examples, by the N - 1 chi-squared test."""
    p = (first + second) / 200
    return float((first - second) / 100 * sqrt((2 * n - 1) / (4 * p * (1 - p))))


def point(values: Values, name: str) -> float:
    """Return a value, or a point of a curve."""
    if name in values:
        return values[name]
    curve, _, at = name.rpartition(".")
    return values[curve][int(at)]


def overall(verdicts: list[str]) -> str:
    """Return the verdict of a claim on several lines."""
    tested = [verdict for verdict in verdicts if verdict in (SAME, BETTER, WEAKER, NOT)]
    if not tested:
        return LATER if LATER in verdicts else UNTESTED
    if set(tested) <= {SAME, BETTER}:
        return SAME if SAME in tested else BETTER
    return NOT if 2 * tested.count(NOT) > len(tested) else WEAKER


@dataclass(frozen=True, eq=False)
class Item:
    """Values that are measured together, in a process for each setting and seed.

    Attributes
    ----------
    name : short, without spaces
    measure : the values of a run: ``measure(settings, seed, rows)``, and ``data`` if it is given
    settings : by their names; the first is compared with the paper
    seeds : number of seeds
    data : the data set, or ""
    needs : data sets, if there are several or none
    """

    name: str
    measure: Callable[..., Values]
    settings: dict[str, dict[str, Any]]
    seeds: int = 5
    data: str = ""
    needs: tuple[str, ...] = ()

    def data_sets(self) -> tuple[str, ...]:
        return (self.data,) if self.data else self.needs

    def values(self, settings: dict[str, Any], seed: int, rows: int | None) -> Values:
        """Measure the values of a run."""
        return self.measure(settings, seed, rows, *([self.data] if self.data else []))
