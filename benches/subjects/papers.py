"""The tables, figures and statements of the papers, measured and written as pages.

``papers/lines.toml`` has what the papers state, ``papers/statements.py`` the verdicts, and the
other modules of ``papers/`` the measurements. The record has every value of every seed, so pages
can be written again without a run. The first page has a row for each claim, the page of a paper
its tables and all lines.
"""

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from harness.case import Case, rows
from harness.pages import fill, markdown
from papers import gamble, ldsm, lomtree, recall_tree
from papers.statements import (
    BETTER,
    DEFAULT,
    LATER,
    MARKS,
    NOT,
    RULES,
    SAME,
    UNTESTED,
    Found,
    Item,
    Line,
    number,
    overall,
)

TITLE = "Statements of the papers: values by seed"
LIMIT = 7200
#: Runs of more than 80 seconds have three seeds, the others five or more.
SLOW = 80, 3
#: Times are processor seconds, and ratios are of times in one process.
JOBS = 2
MODULES = {"ldsm": ldsm, "lomtree": lomtree, "recall-tree": recall_tree, "gamble": gamble}
ITEMS = {item.name: item for module in MODULES.values() for item in module.ITEMS}
PAPERS = tomllib.loads((Path(gamble.__file__).parent / "lines.toml").read_text(encoding="utf-8"))
#: Data sets of the papers that cannot be had.
UNAVAILABLE = {*ldsm.SETS[2:], *lomtree.CLASSES} - {*lomtree.OURS}
NO_DATA = "The data cannot be had."
NO_CAUSE = "No experiment has tested the cause."


def cases(seeds=99):
    """Yield the cases of the first seed first, so that an interrupted run has all items."""
    for seed in range(min(seeds, max(item.seeds for item in ITEMS.values()))):
        for item in ITEMS.values():
            if seed < item.seeds:
                for setting, options in item.settings.items():
                    yield Case("papers", item.name, setting, options, seed)


def needs(case):
    return ITEMS[case.task].data_sets()


def measure(case):
    """Return each value of an item."""
    values = ITEMS[case.task].values(case.settings, case.seed, case.rows)
    return {"rows": {f"{case.program} | {name}": {"value": v} for name, v in values.items()}}


def summarize(runs):
    """Return the values of all seeds."""
    values = {name: [run["rows"][name]["value"] for run in runs] for name in rows(runs)}
    return {
        "rows": {name: {f"seed {i}": v for i, v in enumerate(of)} for name, of in values.items()}
    }


class Values:
    """The values of the record: item and setting -> a dictionary for each seed."""

    def __init__(self, record):
        self.runs, self.places = {}, {}
        for row in record.of():
            setting, _, name = row["program"].partition(" | ")
            key = row["task"], setting
            runs = self.runs.setdefault(key, [])
            seeds = [value for column, value in row.items() if column.startswith("seed ")]
            runs += [{} for _ in seeds[len(runs) :]]
            for run, value in zip(runs, seeds, strict=False):
                run[name] = value
            self.places.setdefault(row["task"], []).append(row["at"].split("; "))

    def found(self, item, setting, line):
        return line.found(self.runs.get((item.name, setting), []))

    def source(self, items):
        """Return commits, days and numbers of seeds of some items."""
        places = [place for item in items for place in self.places.get(item.name, [])]
        commits = sorted({place[1].removeprefix("xmtree ") for place in places})
        keys = ((item.name, next(iter(item.settings))) for item in items)
        seeds = sorted({len(self.runs[key]) for key in keys if key in self.runs})
        if not seeds:
            return ""
        n = " to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
        n += " seed" if seeds == [1] else " seeds"
        return f"{n}; {', '.join(commits)}; {max(place[2] for place in places)}."

    def ages(self):
        """Return a sentence about the days and commits of all runs."""
        places = {(place[2], place[1]) for of in self.places.values() for place in of}
        if not places:
            return ""
        (day, newest), *older = sorted(places, reverse=True)
        text = f"The newest runs are of {newest}, {day}."
        if older:
            names = ", ".join(f"{commit} ({day})" for day, commit in older)
            text += f" Runs of {names} are older than it; each table names its commits."
        return text.replace("xmtree ", "")


@dataclass(frozen=True)
class Entry:
    """A line with our values and its verdict."""

    line: Line
    item: Item
    ours: Found | None
    default: Found | None
    verdict: str

    @property
    def cause(self):
        if self.verdict in (SAME, BETTER, LATER, ""):
            return ""
        missing = self.verdict == UNTESTED and self.item.data in UNAVAILABLE
        return NO_DATA if missing else self.line.cause or NO_CAUSE


def entries(section, values):
    """Yield the lines of a section for all items, line by line."""
    items = [item for item in ITEMS.values() if re.fullmatch(section["items"], item.name)]
    shared = {key: section[key] for key in ("where", "more", "cause") if key in section}
    for each, item in product(section["lines"], items):
        fields = {"where": "", "value": each["what"]} | shared | each
        only, others = fields.pop("items", ".*"), fields.pop("others", False)
        paper = fields.get("paper")
        if isinstance(paper, dict):
            if item.data not in paper and not others:
                continue
            fields["paper"] = paper.get(item.data)
        if not re.fullmatch(only, item.name):
            continue
        if isinstance(fields.get("cause"), dict):
            fields["cause"] = fields["cause"].get(item.data, fields["cause"].get("", ""))
        line = Line(**fields)
        line = replace(line, row=line.row or item.data)
        settings = line.setting or next(iter(item.settings)), DEFAULT
        ours, default = (values.found(item, setting, line) for setting in settings)
        default = None if line.setting else default
        verdict = line.verdict(ours)
        if ours is None and item.data in UNAVAILABLE:
            verdict = UNTESTED if line.paper is not None else ""
        yield Entry(line, item, ours, default, verdict)


def grid(found):
    """Return a table in the shape of the paper's: paper | ours and a mark.

    The head has the paper's value of columns in which all rows have the same.
    """
    columns: dict[str, set[str]] = {}
    for entry in found:
        columns.setdefault(entry.line.what, set()).add(entry.line.stated())
    heads = {
        what: "".join(of) if len(of) == 1 and len(found) > 1 else "" for what, of in columns.items()
    }
    cells: dict[str, dict[str, str]] = {}
    for entry in found:
        line = entry.line
        equal = entry.ours and entry.ours.center == line.paper and not line.relation
        stated = "" if heads[line.what] else line.stated()
        shown = "|".join(filter(None, [stated, "" if equal else str(entry.ours or "")]))
        cell = f"{shown} {MARKS.get(entry.verdict, '')}".strip()
        cells.setdefault(line.row, {})[line.what] = cell
        if entry.default:
            below = cells.setdefault(f"{line.row}, default", {})
            below[line.what] = number(entry.default.center)
    order = sorted(cells, key=lambda name: list(cells).index(name.removesuffix(", default")))
    return markdown(
        ["", *(f"{what} ({head})" if head else what for what, head in heads.items())],
        ([label(name), *(cells[name].get(what, "") for what in columns)] for name in order),
    )


def label(row):
    return DEFAULT if row.endswith(f", {DEFAULT}") else row


def listed(found, title):
    """Return a table with a row for each line and data set."""
    body, above = [], None
    for entry in found:
        line = entry.line
        what = line.what if line.where in title else f"{line.where}: {line.what}"
        default = number(entry.default.center) if entry.default else ""
        cells = line.stated(), str(entry.ours or ""), default
        body.append(("" if what == above else what, line.row, *cells, entry.verdict))
        above = what
    return markdown(("statement", "data", "paper", "ours", DEFAULT, "verdict"), body)


def causes(found):
    """Return the causes of differences with the lines that they explain."""
    grouped: dict[str, list[Entry]] = {}
    for entry in found:
        if entry.cause and entry.cause != NO_DATA:
            grouped.setdefault(entry.cause, []).append(entry)
    return grouped


def names(found):
    return ", ".join(dict.fromkeys(entry.line.row for entry in found if entry.line.row))


def paper_page(paper, values):
    """Return the page of a paper."""
    about = PAPERS[paper]
    marks = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    parts = [f"# {about['title']}\n", f"{fill(about['about'].strip())}\n"]
    parts.append(f"{fill(f'[Verdicts](../reproduction.md#verdicts): {marks}.')}\n")
    parts.append(f"![{about['title']}: curves](../figures/papers-{paper}.svg)\n")
    for section in about["section"]:
        found = list(entries(section, values))
        parts += [f"## {section['title']}\n"]
        parts += [grid(found) if section.get("grid") else listed(found, section["title"])]
        for cause, of in causes(found).items():
            where = names(of) if names(of) != names(found) else ""
            parts.append(bullet(f"{where}: {cause}" if where else cause).strip())
        source = values.source(dict.fromkeys(entry.item for entry in found))
        parts += ["", source, ""] if causes(found) else [source, ""]
    return "\n".join(parts)


def pictures(record):
    """Yield a picture for each paper, with the means of its curves."""
    # Hundreds of short runs need not import matplotlib.
    from harness.plot import looks, points

    values = Values(record)
    for paper, about in PAPERS.items():
        groups: dict[str, dict[str, tuple]] = {}
        for panel in about["panels"]:
            drawn = {"paper": panel["paper"]} if "paper" in panel else {}
            for label, (item, setting, name) in panel["curves"].items():
                curves = [run[name] for run in values.runs.get((item, setting), []) if name in run]
                if curves:
                    drawn[label] = panel["x"], np.mean(curves, axis=0)
            groups[panel["title"]] = drawn
        labels = dict.fromkeys(label for drawn in groups.values() for label in drawn)
        figure = points(groups, looks(labels), "", "")
        yield f"papers-{paper}", f"{about['title']}: curves of its figures, measured here", figure


def pages(record):
    """Yield paths and texts of the pages."""
    values = Values(record)
    found = {
        paper: [
            (section, entry) for section in about["section"] for entry in entries(section, values)
        ]
        for paper, about in PAPERS.items()
    }
    yield "docs/reproduction.md", first_page(found, values.ages())
    for paper in PAPERS:
        yield f"docs/reproduction/{paper}.md", paper_page(paper, values)


HEAD = """# Reproducing the papers

Which figures and statements of the four papers does this package reproduce? `make measure
SELECT=papers` measures them and writes these pages from [all single
values](../benches/records/papers.csv). *Ours* is the estimator with the settings of the paper,
*default* without any. A run takes 90 minutes on two cores; if interrupted, it goes on where it
stopped. [Theory](theory.md) has the verdicts on lemmas and theorems.

"""


def first_page(found, ages):
    """Return the page with a row for each claim."""
    lines, claims, counts = [], Counter(), {}
    for paper, about in PAPERS.items():
        lines.append(f"### [{about['title']}](reproduction/{paper}.md)\n")
        body = []
        for key, text, stated in about["claims"]:
            cells, verdict = claim(paper, key, found[paper])
            claims[verdict] += 1
            body.append((text, stated, *cells))
        lines.append(markdown(("claim", "stated", "found", "verdict", "reason"), body))
        counts[short(about)] = Counter(entry.verdict for _, entry in found[paper])
        for verdict, untested in about["untested"].items():
            counts[short(about)][verdict] += len(untested)
    counts |= {"all lines": sum(counts.values(), Counter()), "claims": claims}
    body = ([name, *(str(of[verdict]) for verdict in MARKS)] for name, of in counts.items())
    parts = [HEAD, f"{fill(ages)}\n\n", markdown(("", *MARKS), body), "\n## Verdicts\n\n", RULES]
    parts += ["\n## What the papers claim\n\n", "\n".join(lines)]
    parts.append("\n## What could not be reproduced\n\nThe pages say why, below each table.\n\n")
    for paper, about in PAPERS.items():
        where = dict.fromkeys(e.line.where for _, e in found[paper] if e.verdict == NOT)
        parts.append(bullet(f"[{short(about)}](reproduction/{paper}.md): {'; '.join(where)}."))
    tree = "\n".join(f"reproduction/{paper}" for paper in PAPERS)
    for verdict, title in ((UNTESTED, "What could not be run"), (LATER, "Not run yet")):
        untested = [
            bullet(f"{short(about)}, {where}: {what}. {reason}")
            for about in PAPERS.values()
            for where, what, reason, _ in about["untested"].get(verdict, ())
        ]
        parts += [f"\n## {title}\n\n", *untested] if untested else []
    return "".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"


def bullet(text):
    return fill(f"- {text}", indent="  ") + "\n"


def short(about):
    return about["title"].partition(" (")[0]


def claim(paper, key, found):
    """Return the cells of a claim: found, verdict and reason, and its verdict."""
    mine = [(section, entry) for section, entry in found if entry.line.claim == key]
    if not mine:
        verdict, reason = next(
            (verdict, each[2])
            for verdict, body in PAPERS[paper]["untested"].items()
            for each in body
            if each[3] == key
        )
        return ("", verdict, reason), verdict
    kinds: dict[str, list[float]] = {}
    for _, entry in mine:
        if entry.ours:
            kinds.setdefault(entry.line.what, []).append(entry.ours.center)
    verdict = overall([entry.verdict for _, entry in mine])
    worst = sorted((entry for _, entry in mine if entry.cause), key=lambda e: e.verdict != NOT)
    reason = worst[0].cause if worst else ""
    title = re.sub(r"[^\w\- ]", "", mine[0][0]["title"].lower()).replace(" ", "-")
    link = f"[{verdict}](reproduction/{paper}.md#{title})"
    ranges = "; ".join(dict.fromkeys(map(spread, kinds.values())))
    return (ranges, link, first_sentence(reason)), verdict


def first_sentence(text):
    return re.split(r"(?<=\.) ", text)[0]


def spread(values):
    """Return the range of some values."""
    least, most = number(min(values)), number(max(values))
    return least if least == most else f"{least} to {most}"
