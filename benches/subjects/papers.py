"""The tables, figures and statements of the papers, measured and written as a page.

``papers/statements.py`` defines items and lines; the other modules of ``papers/`` have those of
each paper. Every line of the page has the paper's value, ours and a verdict. Items of one section
share a table. A value has a row per data set; a statement has one row for all data sets, with the
range of its margins.
"""

from itertools import groupby

from harness.case import Case, rows
from harness.data import absent
from harness.pages import fill, row
from papers import gamble, ldsm, lomtree, recall_tree
from papers.statements import DEFAULT, SAME, Found

TITLE = "Statements of the papers: mean over the seeds, standard error"
LIMIT = 7200
PAPERS = {
    "LdSM (AISTATS 2020)": ldsm.ITEMS,
    "GAMBLE (SDM 2007)": gamble.ITEMS,
    "LOMtree (NIPS 2015)": lomtree.ITEMS,
    "Recall Tree (2016)": recall_tree.ITEMS,
}
ITEMS = {item.name: item for items in PAPERS.values() for item in items}
HEAD = """# The papers, reproduced

What do the papers report and state, and what does this package measure? `make measure
SELECT=papers` runs it and writes this page from a table
([papers.csv](../benches/records/papers.csv)); [Experiments](experiments/index.md)
explains the differences, the [glossary](glossary.md) the terms.

- *Paper's mode* is the estimator with the settings of the paper, *default* the estimator without
  any. The verdict is about the paper's mode.
- Values are means over the seeds, ± one standard error. *a to b* is the range of a curve, or of a
  statement over several data sets. A value agrees within two standard errors or 0.5 %.
- The value of a statement is its margin: the statement holds if it is above 0, and is undecided
  within two standard errors of 0.
- Notes under a table explain differences whose cause is known.
- The runs of the Recall Tree are older than its present paper's mode: they weigh examples and bound
  the recall as Vowpal Wabbit does. [Experiments](experiments/recall-tree.md) compares both.
"""


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
    """Return the value of each line."""
    item = ITEMS[case.task]
    values = item.values(case.settings, case.seed, case.rows)
    return {"rows": {name(case.program, line): {"value": line.of(values)} for line in item.lines}}


def name(setting, line):
    """Return the name of a line's row in the record."""
    return f"{setting} | {line.key}"


def summarize(runs):
    """Return means and standard errors."""
    found = {}
    for line in rows(runs):
        value = Found.of([run["rows"][line]["value"] for run in runs])
        found[line] = {"mean": value.mean, "error": value.error}
        if value.error is None:
            del found[line]["error"]
    return {"rows": found}


def page(record):
    """Return the text of the page."""
    known = {(row["task"], row["program"]): row for row in record.of()}
    parts = [HEAD]
    for paper, items in PAPERS.items():
        parts.append(f"## {paper}\n")
        missing = []
        for title, group in groupby(items, key=lambda item: item.title):
            group = list(group)
            measured = [item for item in group if any(task == item.name for task, _ in known)]
            missing += [item for item in group if item not in measured]
            if measured:
                parts += section(title, measured, known)
        lacks = dict.fromkeys(need for item in missing for need in item.data_sets() if absent(need))
        if lacks:
            parts.append(f"Not run, because the data are missing: {', '.join(lacks)}.\n")
        for item in missing:
            if not set(item.data_sets()) & lacks.keys():
                parts.append(f"Not run yet: {item.name}.\n")
    return "\n".join(parts)


def section(title, items, known):
    """Yield the lines of a section: notes, table and causes of differences."""
    yield f"### {title}\n"
    yield from (f"{fill(note)}\n" for note in dict.fromkeys(item.note for item in items) if note)
    yield row("statement", "paper", next(iter(items[0].settings)), DEFAULT, "verdict")
    yield "|" + "---|" * 5
    lines, used = {}, []
    for item in items:
        for line in item.lines:
            first, *_ = item.settings
            pair = [known.get((item.name, name(setting, line))) for setting in (first, DEFAULT)]
            if pair[0]:
                used += filter(None, pair)
                entry = line.data or item.data, line, *map(found, pair)
                lines.setdefault((line.where, line.what), []).append(entry)
    causes: dict[str, dict[str, None]] = {}
    for (where, what), entries in lines.items():
        yield from statement(f"{where}: {what}", entries)
        for data_set, line, ours, _ in entries:
            if line.cause and line.verdict(ours) not in SAME:
                causes.setdefault(line.cause, {})[data_set] = None
    yield ""
    for cause, names in causes.items():
        where = f"{', '.join(names)}: " if len(names) < len(items) else ""
        yield fill(f"- {where}{cause}", indent="  ")
    if causes:
        yield ""
    seeds = sorted({row["runs"] for row in used})
    places = [row["at"].split("; ") for row in used]
    sources = " and ".join(sorted({place[1].removeprefix("xmtree ") for place in places}))
    n_seeds = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    yield f"Seeds: {n_seeds}; {sources}, {max(place[2] for place in places)}.\n"


def found(row):
    return Found(row["mean"], row.get("error")) if row else None


def statement(text, entries):
    """Yield the rows of a line, one per data set or one for all."""
    if len(entries) > 1 and entries[0][1].ranged:
        cells = (spread([entry[i] for entry in entries]) for i in (2, 3))
        values = dict.fromkeys(paper(line.paper) for _, line, *_ in entries)
        yield row(text, ", ".join(values), *cells, verdicts(entries))
        return
    above = None
    for data_set, line, ours, default in entries:
        cells = shown(ours), shown(default, error=False), line.verdict(ours)
        if above is None:
            yield row(f"{text}, {data_set}" if data_set else text, paper(line.paper), *cells)
        else:
            same = isinstance(line.paper, str) and line.paper == above
            yield row(data_set, "" if same else paper(line.paper), *cells)
        above = line.paper


def verdicts(entries):
    """Return the verdicts of a statement on several data sets."""
    sets: dict[str, list[str]] = {}
    for data_set, line, ours, _ in entries:
        sets.setdefault(line.verdict(ours).removesuffix(" (one seed)"), []).append(data_set)
    if len(sets) == 1:
        return next(iter(sets))
    most = max(sets, key=lambda text: len(sets[text]))
    parts = {text: f"{text}: {', '.join(names)}" for text, names in sets.items()}
    if 2 * len(sets[most]) > len(entries):
        del parts[most]
        parts = {most: f"{most} on {len(sets[most])} of {len(entries)}"} | parts
    return "; ".join(parts.values())


def paper(value):
    return value if isinstance(value, str) else f"{value:g}"


def shown(value, error=True):
    """Return a mean with its standard error, or the range of a curve."""
    if value is None:
        return ""
    if isinstance(value.mean, list):
        return spread([value])
    text = number(value.mean)
    return text if value.error is None or not error else f"{text} ±{number(value.error)}"


def spread(cells):
    """Return the range of several means and curves."""
    means = [cell.mean for cell in cells if cell is not None]
    flat = [each for mean in means for each in (mean if isinstance(mean, list) else [mean])]
    if not flat:
        return ""
    least, most = number(min(flat)), number(max(flat))
    return least if least == most else f"{least} to {most}"


def number(value):
    """Return a number with three digits, or as an integer."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 20 else f"{value:.2f}"
