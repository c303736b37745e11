"""Cases, each run in its own process, and subjects, which define the cases.

A subject is a module of ``subjects/`` with

- ``TITLE``: what it compares, for the head of its record;
- ``cases(seeds)``: its cases, the most important first;
- ``measure(case)``: a case's measures by name, or ``{"rows": {name: measures}}`` if it fills
  several rows of the record; not needed for cases with an adapter;
- ``needs(case)``: names of the data sets; default: the task;
- ``LIMIT``: seconds after which a run is stopped; default: 900;
- ``SLOW``: seconds and seeds: a case whose first run takes longer has only so many seeds;
- ``JOBS``: cases that run at once, on as many cores; only without adapters; default: 1;
- ``summarize(runs)``: the measures of a row from those of its seeds; default: the medians;
- ``table(record, argument)`` and ``pictures(record)``: what pages show; optional.
"""

import importlib
import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

#: Online learners with their defaults.
ONLINE = {
    "OAA": {"estimator": "OAA"},
    "LOMtree": {"estimator": "LOMTree"},
    "10 LOMtrees": {"estimator": "LOMTree", "n_estimators": 10},
    "Recall Tree": {"estimator": "RecallTree"},
    "filter tree": {"estimator": "FilterTree"},
    "random tree": {"estimator": "RandomTree"},
}
#: The same without calibration, to measure learning alone.
UNCALIBRATED = {name: settings | {"calibrate": False} for name, settings in ONLINE.items()}
#: All subjects, in the order in which they are measured.
SUBJECTS = (
    *("peers", "labels", "frontier", "one_row", "threads", "boosting", "calibration", "dask"),
    *("embeddings", "floors", "papers"),
)


@dataclass(frozen=True)
class Case:
    """A program with its settings on a task.

    Attributes
    ----------
    task, program : names of its row in the record
    settings : parameters of the program, as in JSON
    adapter : module and class in ``programs/`` that run it; if empty, the subject measures it
    package : package of the program; if empty, it is xmtree
    threads : threads of training
    rows : the most rows to use, for a trial run
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
        """Return what identifies a run, together with the version of the program."""
        return asdict(self)


def subject(name):
    """Return the module of a subject."""
    return importlib.import_module(f"subjects.{name}")


def make(settings, **more):
    """Return an estimator of this package."""
    import xmtree

    options = settings | more
    return getattr(xmtree, f"{options.pop('estimator')}Classifier")(**options)


def medians(runs):
    """Return the median of each measure; lists are reduced point by point."""

    def median(values):
        if isinstance(values[0], list):
            return [median(list(point)) for point in zip(*values, strict=True)]
        return values[0] if isinstance(values[0], int | str) else statistics.median(values)

    if "rows" in runs[0]:
        return {"rows": {name: medians([run["rows"][name] for run in runs]) for name in rows(runs)}}
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: median([run[name] for run in runs if name in run]) for name in names}


def rows(runs):
    """Return the names of the rows that all runs have."""
    return [name for name in runs[0]["rows"] if all(name in run["rows"] for run in runs)]
