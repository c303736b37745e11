"""The time of each hot loop of the core, relative to a lower bound for this machine.

``rust/benches/floors.rs`` times a loop and computes the bound.
"""

import re
import subprocess

from harness.case import Case
from harness.pages import fill, markdown

TITLE = "Hot loops of the core over what the machine allows"
LOOP = re.compile(r"([\w-]+), ([\w ]+), (\w+) +(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+)")


def cases(seeds=1):
    for seed in range(seeds):
        yield Case("floors", "loops", "all", {}, seed)


def needs(_):
    return ()


def measure(_):
    command = ["cargo", "bench", "--locked", "--quiet", "--bench", "floors"]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {"rows": parsed(run.stdout)}


def parsed(text):
    """Return the measures of each loop and kind of call."""
    found = {}
    for name, way, kind, products, size, ns, floor, times in LOOP.findall(text):
        numbers = {"products": int(products), "bytes": int(size), "ns": int(ns)}
        row = numbers | {"floor_ns": int(floor), "times": float(times)}
        found[f"{name}, {kind}: {way}"] = row
    return found


def table(record, _):
    ways = {"together": "together", "one by one": "one by one", "learning": "fit"}
    loops: dict[str, dict[str, float]] = {}
    for row in record.of():
        loop, _, way = row["program"].partition(": ")
        loops.setdefault(loop, {})[way] = row["times"]
    cells = [[loop, *(of.get(w, of.get(ways[w], "")) for w in ways)] for loop, of in loops.items()]
    return f"{markdown(['loop', *ways], cells)}\n{fill(record.circumstances())}\n"
