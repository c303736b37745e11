"""The page: for each main line of an item the paper's value, ours and a verdict.

Items of one section share a table. A value has a row for each data set; a statement has one row
for all of them, with the range of its margins.
"""

import textwrap
from functools import partial
from itertools import groupby

from reproduce import data
from reproduce.items import DEFAULT, Found

fill = partial(textwrap.fill, width=100, break_on_hyphens=False, break_long_words=False)

HEAD = """# The papers, reproduced

What the papers report and state, and what this package measures. `make reproduce` runs it and
writes this page from `benches/reproduction.jsonl`, which has every value of every seed; the items
are in `benches/reproduce/`, and `docs/experiments/` explains what was learned from them.

- *Paper's mode* is the estimator with the options of the paper, and the verdict is about it;
  *default* is the estimator as it is constructed without options.
- Values are means over the seeds, ± one standard error. *a to b* is the range of a curve, or of a
  statement over several data sets. A value agrees within two standard errors or 0.5 %.
- The value of a statement is its margin: the statement holds where it is above 0, and is undecided
  within two standard errors of 0.
- Notes under a table explain differences whose cause is known.
"""


def written(items, results, rows=None, failed=(), absent=data.absent):
    """The page, as text."""
    parts = [HEAD]
    if rows is not None:
        parts.append(
            f"**No more than {rows} rows of each set: these are not the papers' tasks.**\n"
        )
    for paper, of_paper in groupby(items, key=lambda item: item.paper):
        parts.append(f"## {paper}\n")
        missing = []
        for title, group in groupby(of_paper, key=lambda item: item.section or item.title):
            found = {item: results.newest(item, rows) for item in group}
            measured = {item: of for item, of in found.items() if of}
            if any(line.main for item in measured for line in item.lines):
                parts += section(title, measured)
            missing += [(item, absent(item.needs)) for item in found if item not in measured]
        parts += not_run(missing, failed)
    return "\n".join(parts)


def section(title, measured):
    """The table of the items of a section."""
    yield f"### {title}\n"
    yield from (f"{fill(note)}\n" for note in dict.fromkeys(item.note for item in measured) if note)
    head = next(iter(next(iter(measured)).settings))
    yield row("statement", "paper", head, DEFAULT, "verdict")
    yield "|" + "---|" * 5
    lines: dict[tuple[str, str], list] = {}
    for item, found in measured.items():
        first = next(iter(item.settings))
        for line in item.lines:
            if line.main and first in found:
                cells = {
                    setting: Found.of([line.of(record["values"]) for record in found[setting]])
                    for setting in {first, DEFAULT} & found.keys()
                }
                entry = line.data or item.data, line, cells[first], cells.get(DEFAULT)
                lines.setdefault((line.where, line.what), []).append(entry)
    causes: dict[str, dict[str, None]] = {}
    for (where, what), entries in lines.items():
        statement = f"{where}: {what}"
        if len(entries) > 1 and entries[0][1].ranged:
            cells = (spread([entry[i] for entry in entries]) for i in (2, 3))
            told = dict.fromkeys(paper(line.paper) for _, line, *_ in entries)
            yield row(statement, ", ".join(told), *cells, verdicts(entries))
        else:
            above = None
            for name, line, ours, default in entries:
                named = f"{statement}, {name}" if name else statement
                cells = shown(ours), shown(default, error=False), line.verdict(ours).text
                if above is None:
                    yield row(named, paper(line.paper), *cells)
                else:
                    same = isinstance(line.paper, str) and line.paper == above
                    yield row(name, "" if same else paper(line.paper), *cells)
                above = line.paper
        for name, line, ours, _ in entries:
            if line.cause and line.verdict(ours).differs:
                causes.setdefault(line.cause, {})[name] = None
    yield ""
    for cause, names in causes.items():
        of = ", ".join(names) if len(names) < len(measured) else ""
        yield fill(f"- {of}: {cause}" if of else f"- {cause}", subsequent_indent="  ")
    if causes:
        yield ""
    yield measured_when(measured)


def verdicts(entries):
    """The verdicts of a statement on several data sets."""
    sets: dict[str, list[str]] = {}
    for name, line, ours, _ in entries:
        sets.setdefault(line.verdict(ours).text.removesuffix(" (one seed)"), []).append(name)
    if len(sets) == 1:
        return next(iter(sets))
    most = max(sets, key=lambda text: len(sets[text]))
    told = {text: f"{text}: {', '.join(names)}" for text, names in sets.items()}
    if 2 * len(sets[most]) > len(entries):
        told = {most: f"{most} on {len(sets[most])} of {len(entries)}"} | {
            text: names for text, names in told.items() if text != most
        }
    return "; ".join(told.values())


def measured_when(measured):
    """Seeds, sources and date of a section."""
    records = [record for found in measured.values() for of in found.values() for record in of]
    seeds = sorted({len(of) for found in measured.values() for of in found.values()})
    told = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    sources = " and ".join(sorted({record["source"] for record in records}))
    return f"Seeds: {told}; {sources}, {max(record['date'] for record in records)[:10]}.\n"


def not_run(missing, failed):
    """What has no records, and why."""
    absent = dict.fromkeys(need for _, lacks in missing for need in lacks)
    if absent:
        yield f"Not run, because the data are not here: {', '.join(absent)}.\n"
    for item, lacks in missing:
        if not lacks:
            broken = any(run.startswith(f"{item.name},") for run in failed)
            yield f"{'Failed' if broken else 'Not run yet'}: {item.title}.\n"


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def paper(value):
    return value if isinstance(value, str) else f"{value:g}"


def shown(found, error=True):
    """A mean with its standard error, or the range of a curve."""
    if found is None:
        return ""
    if isinstance(found.mean, list):
        return spread([found])
    text = number(found.mean)
    return text if found.error is None or not error else f"{text} ±{number(found.error)}"


def spread(cells):
    """The range of several means and curves."""
    means = [cell.mean for cell in cells if cell is not None]
    flat = [each for mean in means for each in (mean if isinstance(mean, list) else [mean])]
    if not flat:
        return ""
    least, most = number(min(flat)), number(max(flat))
    return least if least == most else f"{least} to {most}"


def number(value):
    """Three digits, or all before the point."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 20 else f"{value:.2f}"
