"""A case: what is run in a process of its own, and what its measures depend on.

A subject is a module of ``subjects/`` with

- ``TITLE``: what it compares, for the head of its record;
- ``cases(seeds)``: its cases, those first whose figures are wanted most;
- ``measure(case)``: the measures of a case by their names, unless a program's adapter has them;
  of a case that has several rows, ``{"rows": {name: measures}}``;
- ``needs(case)``: the data sets of a case, unless its task is the only one;
- ``LIMIT``: the seconds after which a run is ended, unless 900;
- ``summarize(runs)``: a row's measures from those of its seeds, unless the median is meant;
- ``table(record, argument)`` and ``pictures(record)``: what pages show, if they do.
"""

import importlib
import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import Any

#: All subjects, in the order in which they are measured.
SUBJECTS = (
    *("peers", "labels", "frontier", "one_row", "threads", "boosting", "calibration", "dask"),
    *("floors", "papers"),
)


@dataclass(frozen=True)
class Case:
    """A program with its settings on a task.

    Attributes
    ----------
    task, program : the names of its row in the record
    settings : as JSON has them
    adapter : module of ``programs/`` that runs it; without one the subject measures it
    package : whose version the measures depend on; without one it is this repository
    threads : in training
    rows : no more rows than these, to see that everything runs
    """

    subject: str
    task: str
    program: str
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    adapter: str = ""
    package: str = ""
    threads: int = 1
    rows: int | None = None

    def __str__(self) -> str:
        return f"{self.subject}: {self.task}, {self.program}, seed {self.seed}"

    def key(self) -> dict[str, Any]:
        """What the measures depend on, with the version of the program."""
        return asdict(self)

    def of_seed(self, seed: int) -> "Case":
        return replace(self, seed=seed)


def subject(name):
    """The module of a subject."""
    return importlib.import_module(f"subjects.{name}")


def medians(runs):
    """The median of each measure; of measures that are lists, point by point."""

    def of(values):
        if isinstance(values[0], list):
            return [of(list(point)) for point in zip(*values, strict=True)]
        return values[0] if isinstance(values[0], int | str) else statistics.median(values)

    if "rows" in runs[0]:
        return {"rows": {name: medians([run["rows"][name] for run in runs]) for name in rows(runs)}}
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: of([run[name] for run in runs if name in run]) for name in names}


def rows(runs):
    """The names of the rows that all runs have."""
    return [name for name in runs[0]["rows"] if all(name in run["rows"] for run in runs)]
