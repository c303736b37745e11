"""Runs the items, each setting and seed in a process of its own, and remembers their values.

What was run already of the same sources, settings, seed and rows is not run again, so an
interrupted run goes on. A change of xmtree's sources is seen by their commit, one of a measure by
the text of its function. Of what that function calls it is not seen: whoever changes that deletes
the lines of its items.
"""

import datetime
import hashlib
import inspect
import json
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

from extreme.runs import Records, source, spawn

from reproduce.items import Item

#: What all records of a setting on the page have in common.
STATE = ("source", "measure", "options")


@dataclass(frozen=True)
class Run:
    """A setting of an item and a seed, with all rows or no more than some."""

    item: Item
    setting: str
    seed: int
    rows: int | None = None

    def __str__(self) -> str:
        return f"{self.item.name}, {self.setting}, seed {self.seed}"

    def key(self) -> dict[str, Any]:
        """What the values depend on."""
        measure = self.item.measure
        arguments = measure.keywords if isinstance(measure, partial) else {}
        function = measure.func if isinstance(measure, partial) else measure
        text = inspect.getsource(function) + json.dumps(arguments)
        return {
            "item": self.item.name,
            "setting": self.setting,
            "options": self.item.settings[self.setting],
            "seed": self.seed,
            "rows": self.rows,
            "measure": hashlib.sha256(text.encode()).hexdigest()[:8],
            "source": source(None),
        }


def wanted(items, rows=None, seeds=None):
    """All runs, the first seeds of all items first, so that a part of them is of use, too."""
    most = max((item.seeds for item in items), default=0)
    for seed in range(most if seeds is None else min(most, seeds)):
        for item in items:
            if seed < item.seeds:
                yield from (Run(item, setting, seed, rows) for setting in item.settings)


class Results(Records):
    """What was measured of each run."""

    def find(self, run):
        """The record of a run of these very sources, or None."""
        key = json.loads(json.dumps(run.key()))
        if key["source"].endswith("-dirty"):
            return None
        found = (record for record in self.records if key.items() <= record.items())
        return next(found, None)

    def newest(self, item, rows=None):
        """Per setting the records that were measured last, of one state of sources and options.

        They stay until the item is measured again, though options may have changed since.
        """
        found: dict[str, dict[int, Any]] = {setting: {} for setting in item.settings}
        for record in self.records:
            if (record["item"], record["rows"]) != (item.name, rows):
                continue
            if (seeds := found.get(record["setting"])) is None:
                continue
            of = [record[name] for name in STATE]
            if any([other[name] for name in STATE] != of for other in seeds.values()):
                seeds.clear()
            seeds[record["seed"]] = record
        return {setting: list(seeds.values()) for setting, seeds in found.items() if seeds}


def measured(run):
    """The values of a run and what they took, from a process of its own."""
    rows = [] if run.rows is None else ["--rows", run.rows]
    of = run.item.name, run.setting, run.seed
    said = spawn(sys.executable, "reproduce.one", *of, *rows, threads=1)
    return json.loads(said.splitlines()[-1])


def run_all(runs, results, jobs=2, measure=measured, say=print):
    """Measures what is not known; returns what failed, with its error."""
    missing = [run for run in runs if results.find(run) is None]
    failed = {}
    with ThreadPoolExecutor(jobs) as pool:
        started = {pool.submit(measure, run): run for run in missing}
        try:
            for count, done in enumerate(as_completed(started), 1):
                run = started[done]
                try:
                    found = done.result()
                except RuntimeError as error:
                    failed[str(run)] = str(error)
                    say(f"FAILED: {error}")
                    continue
                now = datetime.datetime.now(datetime.UTC)
                results.add(run.key() | {"date": f"{now:%Y-%m-%d %H:%M}"} | found)
                say(f"{count} of {len(missing)}: {run}, {found['seconds']:.1f} s")
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return failed
