"""What the papers state: items that can be run, and lines that are compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, stdev
from typing import Any

#: Values of a run by their names: numbers, or lists of numbers where a figure has a curve.
Values = Mapping[str, Any]
#: The columns that nearly every item has.
PAPER, DEFAULT = "paper's mode", "default"
#: Smaller differences are those of the digits that the papers print.
ROUNDED = 0.005


@dataclass(frozen=True)
class Found:
    """A value over the seeds.

    Attributes
    ----------
    mean : a number, or one for each point of a curve
    error : standard error of the mean, of a curve the largest; None of a single seed
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


@dataclass(frozen=True)
class Verdict:
    """What the page says of a line in a few words, and whether ours differs from the paper."""

    text: str
    differs: bool = False


@dataclass(frozen=True)
class Line:
    """A figure or a statement of a paper, and what it is in ours.

    Attributes
    ----------
    where : table, figure or section
    what : the measure, with its unit
    value : name of a value, or a function of the values of one run
    paper : the paper's value; a text where it has no number, or one of other data
    cause : a sentence about the difference; only what is known
    data : the data set, where an item has several
    ranged : whether data sets share a row, with the range of their values
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
        """Its name in the record."""
        return f"{self.where}: {self.what}" + (f", {self.data}" if self.data else "")

    def of(self, values: Values) -> Any:
        return values[self.value] if isinstance(self.value, str) else self.value(values)

    def verdict(self, found: Found) -> Verdict:
        """Whether ours, in the paper's mode, is the paper's value."""
        if isinstance(self.paper, str):
            return Verdict("", differs=True)
        apart = found.mean - self.paper
        if abs(apart) <= max(2 * (found.error or 0.0), ROUNDED * abs(self.paper)):
            return Verdict("agrees")
        return Verdict(f"{apart:+.1f}", differs=True)


@dataclass(frozen=True)
class AtMost(Line):
    """A figure that is to be reached: an error, or a number of examples."""

    def verdict(self, found: Found) -> Verdict:
        assert not isinstance(self.paper, str)
        apart = found.mean - self.paper
        if apart <= 0:
            return Verdict("reached")
        return Verdict(
            f"missed by {apart:,.0f}" if apart >= 100 else f"missed by {apart:.3g}", True
        )


@dataclass(frozen=True)
class Claim(Line):
    """A statement, as a value that is above 0 where it is true."""

    paper: float | str = "stated"
    ranged: bool = field(default=True, kw_only=True)

    def verdict(self, found: Found) -> Verdict:
        if found.mean == 0:
            return Verdict("no difference")
        if found.error is None:
            return Verdict("holds (one seed)") if found.mean > 0 else Verdict("does not hold", True)
        if abs(found.mean) <= 2 * found.error:
            return Verdict("undecided")
        return Verdict("holds") if found.mean > 0 else Verdict("does not hold", True)


@dataclass(frozen=True, eq=False)
class Item:
    """What is measured together, in a process for each setting and seed.

    Attributes
    ----------
    name : short, without spaces
    title : what is done, on what data
    needs : data sets
    measure : the values of a run: ``measure(settings, seed, rows)``
    settings : by the heads of their columns; the first is what the paper is compared with
    seeds : how many
    note : a sentence for the page
    section : the heading of the table that it shares with others; its title if it has none
    data : the data set
    """

    name: str
    title: str
    needs: tuple[str, ...]
    measure: Callable[[dict[str, Any], int, int | None], Values]
    settings: dict[str, dict[str, Any]]
    lines: tuple[Line, ...]
    seeds: int = 3
    note: str = ""
    section: str = ""
    data: str = ""
