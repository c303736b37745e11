"""Write figures into the pages: python benches/pages.py [--check].

A page has places for them, between <!-- figures: NAME ARGUMENT --> and <!-- /figures -->. What
stands there comes from the files that benchmarks write, and from nowhere else.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import dask_tables
from extreme import summary
from extreme.runs import Results
from peers.page import number

ROOT = Path(__file__).parents[1]
PLACE = re.compile(r"(<!-- figures: (\w+) ([\w.-]+) -->\n).*?(<!-- /figures -->)", flags=re.S)
PAGES = (ROOT / "README.md", ROOT / "DESIGN.md", *sorted((ROOT / "docs").glob("*.md")))
#: Measures that a page shows, of those that peers' table has, and the heads of their columns.
ACCURACY = {"error": "error %", "P@1": "P@1 %", "P@5": "P@5 %"}
COSTS = {
    "train_s": "training s",
    "batch_us": "prediction µs, of many rows",
    "one_us": "prediction µs, of one row",
    "file_mb": "file MB",
}


def filled(page: str) -> str:
    """The page with the figures of today in all its places."""
    return PLACE.sub(lambda m: m[1] + TABLES[m[2]](m[3]) + m[4], page)


def learners(task: str) -> str:
    """This package's learners on a task of peers' table, the most accurate first."""
    table = json.loads((ROOT / "benches/figures-peers.json").read_text(encoding="utf-8"))
    rows = [
        row for row in table["table"] if row["task"] == task and row["xmtree"] and row["runs"] > 0
    ]
    if not rows:
        raise ValueError(f"benches/figures-peers.json has no task {task}")
    accuracy = {name: head for name, head in ACCURACY.items() if name in rows[0]}
    first = next(iter(accuracy))
    rows.sort(key=lambda row: row[first]["median"], reverse=first != "error")
    columns = accuracy | COSTS
    lines = [("learner", *columns.values()), ("---",) * (len(columns) + 1)]
    lines += [
        (row["program"].removeprefix("xmtree "), *(number(row[name]["median"]) for name in columns))
        for row in rows
    ]
    head = table["head"]
    machine, load = "; ".join(head["machine"]), head["load"]
    told = (
        f"{machine}, {head['threads'][0]} threads; xmtree {', '.join(head['xmtree'])}; "
        f"{head['dates'][0][:10]}, load before a run {load['median']:.1f}."
    )
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{told}\n"


def extreme(_: str) -> str:
    """Programs beside each other on label sets of very many labels."""
    return summary.markdown(Results(ROOT / "benches/figures-extreme.jsonl"))


def floors(_: str) -> str:
    """The time of each hot loop over what the machine allows."""
    text = (ROOT / "benches/figures-floors.txt").read_text(encoding="utf-8")
    head = dict(re.findall(r"^(machine|commit|load average): (.*)$", text, flags=re.M))
    ways = "together", "one by one", "learning"
    loops: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if of := re.fullmatch(r"([\w-]+), ([\w ]+), (\w+) +\d+ +\d+ +\d+ +\d+ +([\d.]+)", line):
            way = "learning" if of[2] == "fit" else of[2]
            loops.setdefault(f"{of[1]}, {of[3]}", {})[way] = of[4]
    lines = [("loop", *ways), ("---",) * (len(ways) + 1)]
    lines += [(loop, *(over.get(way, "") for way in ways)) for loop, over in loops.items()]
    told = f"{head['machine']}; commit {head['commit']}; load average {head['load average']}."
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{told}\n"


def printed(name: str) -> tuple[str, str]:
    """What benchmarks printed, and a sentence on where and when."""
    text = (ROOT / f"benches/{name}.txt").read_text(encoding="utf-8")
    head = dict(re.findall(r"^(machine|commit|date): (.*)$", text, flags=re.M))
    return text, f"{head['machine']}; commit {head['commit']}; {head['date'][:10]}."


def table(lines: list[tuple[str, ...]], told: str) -> str:
    """Markdown of a table whose first line is its head, and a sentence below it."""
    lines = [lines[0], ("---",) * len(lines[0]), *lines[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{told}\n"


def vowpal(_: str) -> str:
    """Times of learners beside Vowpal Wabbit's; of several runs of one, the last."""
    found = (
        r"^(next word|[\w-]+) ([\w-]+), (training|prediction): xmtree ([\d.]+) us .*?vw ([\d.]+)"
    )
    learners: dict[str, dict[str, str]] = {}
    for name in ("figures-recall-tree", "figures"):
        text, told = printed(name)
        for task, learner, what, ours, other in re.findall(found, text, flags=re.M):
            times = f"{ours}, {other}: {float(other) / float(ours):.1f}"
            learners.setdefault(f"{learner}, {task}", {})[what] = times
    lines = [("learner", "training: xmtree, VW: times as fast", "prediction")]
    lines += [(name, of["training"], of["prediction"]) for name, of in learners.items()]
    return table(lines, told)


def one_row(_: str) -> str:
    """Times of calls with one row, and of one right after an update."""
    text, told = printed("figures-one-row")
    names = "learner", "predict", "predict_topk", "partial_fit"
    lines = [names]
    found = (
        r"^naics2017-index (.+?) *: predict +([\d.]+) .*?topk +([\d.]+) .*?partial_fit +([\d.]+)"
    )
    lines += re.findall(found, text, flags=re.M)
    found = r"^(\S+) +(LdSM|GAMBLE) +: predict +([\d.]+) .*?topk +([\d.]+)"
    lines += [(f"{of}, {on}", *times, "") for on, of, *times in re.findall(found, text, flags=re.M)]
    return table(lines, told)


def threads(_: str) -> str:
    """How many times as fast two threads are as one."""
    text, told = printed("figures-threads")
    found = r"^(\S+) ([^:\n]+): two threads ([\d.]+) times .*?, ([\d.]+) times in training"
    lines = [("learner", "prediction", "training")]
    for task, learner, predicting, training in re.findall(found, text, flags=re.M):
        if "batches" not in learner:
            lines.append((f"{learner}, {task}", predicting, training))
    return table(lines, told)


def boosting(_: str) -> str:
    """GAMBLE beside LightGBM and SAMME."""
    text, told = printed("figures-gamble")
    names = ("data", "GAMBLE %", "fit s", "LightGBM %", "fit s", "SAMME %, 300 rounds")
    number = r" +([\d.]+)"
    found = rf"^([\w-]+){number * 4} +[+-][\d.]+ ±[\d.]+ +[\d.]+ /{number}$"
    return table([names, *re.findall(found, text, flags=re.M)], told)


TABLES = {
    "learners": learners,
    "extreme": extreme,
    "floors": floors,
    "dask": dask_tables.figures,
    "vowpal": vowpal,
    "one_row": one_row,
    "threads": threads,
    "boosting": boosting,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where a page is not up to date")
    check = parser.parse_args().check
    stale = []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        if filled(page) != page:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(filled(page), encoding="utf-8")
    print("written:" if not check else "not up to date:", *(stale or ["none"]))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
