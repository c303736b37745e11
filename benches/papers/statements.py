"""Items, which are measured together, and lines, which compare a value with the paper's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, stdev
from typing import Any

#: Values of a run by name: numbers, or lists of numbers for a curve.
Values = Mapping[str, Any]
#: Columns of nearly every item.
PAPER, DEFAULT = "paper's mode", "default"
#: Relative differences below this come from the rounding of the papers.
ROUNDED = 0.005


@dataclass(frozen=True)
class Found:
    """A value over the seeds.

    Attributes
    ----------
    mean : a number, or one for each point of a curve
    error : standard error of the mean, for a curve the largest; None with a single seed
    """

    mean: Any
    error: float | None

    @classmethod
    def of(cls, values: list[Any]) -> "Found":
        if isinstance(values[0], list):
            points = [cls.of(list(point)) for point in zip(*values, strict=True)]
            errors = [point.error for point in points if point.error is not None]
            return cls([point.mean for point in points], max(errors, default=None))
        error = stdev(values) / sqrt(len(values)) if len(values) > 1 else None
        return cls(mean(values), error)


#: Verdicts without a difference from the paper.
SAME = ("agrees", "reached", "holds", "holds (one seed)", "undecided", "no difference")


@dataclass(frozen=True)
class Line:
    """A value or a statement of a paper, compared with ours.

    Attributes
    ----------
    where : table, figure or section
    what : the measure, with its unit
    value : name of a value, or a function of the values of one run
    paper : the paper's value, or a text if it has no number or one of other data
    cause : a sentence about the cause of a difference, if it is known
    data : the data set, for an item with several
    ranged : true if data sets share a row, with the range of their values
    """

    where: str
    what: str
    value: str | Callable[[Values], Any]
    paper: float | str
    cause: str = ""
    data: str = field(default="", kw_only=True)
    ranged: bool = field(default=False, kw_only=True)

    @property
    def key(self) -> str:
        """Return the line's name in the record."""
        return f"{self.where}: {self.what}" + (f", {self.data}" if self.data else "")

    def of(self, values: Values) -> Any:
        return values[self.value] if isinstance(self.value, str) else self.value(values)

    def verdict(self, found: Found) -> str:
        """Return the verdict about our value in the paper's mode; empty without a number."""
        if isinstance(self.paper, str):
            return ""
        apart = found.mean - self.paper
        if abs(apart) <= max(2 * (found.error or 0.0), ROUNDED * abs(self.paper)):
            return "agrees"
        return f"{apart:+.1f}"


@dataclass(frozen=True)
class AtMost(Line):
    """An upper limit: an error, or a number of examples."""

    def verdict(self, found: Found) -> str:
        assert not isinstance(self.paper, str)
        apart = found.mean - self.paper
        if apart <= 0:
            return "reached"
        return f"missed by {apart:,.0f}" if apart >= 100 else f"missed by {apart:.3g}"


@dataclass(frozen=True)
class Claim(Line):
    """A statement, as a margin that is above 0 if it holds."""

    paper: float | str = "stated"
    ranged: bool = field(default=True, kw_only=True)

    def verdict(self, found: Found) -> str:
        if found.mean == 0:
            return "no difference"
        if found.error is None:
            return "holds (one seed)" if found.mean > 0 else "does not hold"
        if abs(found.mean) <= 2 * found.error:
            return "undecided"
        return "holds" if found.mean > 0 else "does not hold"


@dataclass(frozen=True, eq=False)
class Item:
    """Lines that are measured together, in a process for each setting and seed.

    Attributes
    ----------
    name : short, without spaces
    title : heading of the table; items with the same title share it
    measure : the values of a run: ``measure(settings, seed, rows)``, and ``data`` if it is given
    settings : by the heads of their columns; the first is compared with the paper
    seeds : number of seeds
    note : a sentence for the page
    data : the data set, or ""
    needs : data sets, if there are several or none
    """

    name: str
    title: str
    measure: Callable[..., Values]
    settings: dict[str, dict[str, Any]]
    lines: tuple[Line, ...]
    seeds: int = 3
    note: str = ""
    data: str = ""
    needs: tuple[str, ...] = ()

    def data_sets(self) -> tuple[str, ...]:
        return (self.data,) if self.data else self.needs

    def values(self, settings: dict[str, Any], seed: int, rows: int | None) -> Values:
        """Measure the values of a run."""
        return self.measure(settings, seed, rows, *([self.data] if self.data else []))
