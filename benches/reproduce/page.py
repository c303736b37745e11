"""The page: for every line of an item the paper's value, ours, and where they differ."""

from itertools import groupby

from reproduce import data
from reproduce.items import Found

HEAD = """# The papers, reproduced

Written by `make reproduce` from `benches/reproduction.jsonl`, not by hand; what is run, and how, is
in `benches/reproduce/`. The first column of ours is the paper's mode, which is what the remark
is about. Values are means ± standard errors over the seeds; of a curve the error is the largest of
its points. Times are of one thread, of the processor.
"""


def written(items, results, rows=None, failed=(), absent=data.absent):
    """The page, as text."""
    parts = [HEAD]
    if rows is not None:
        parts.append(
            f"**No more than {rows} rows of each set: these are not the papers' tasks.**\n"
        )
    missing = [(item, absent(item.needs)) for item in items]
    for paper, of_paper in groupby(missing, key=lambda pair: pair[0].paper):
        parts.append(f"## {paper}\n")
        group = list(of_paper)
        for item, lacks in group:
            found = results.newest(item, rows)
            if found:
                parts += section(item, found)
            elif not lacks:
                broken = any(run.startswith(f"{item.name},") for run in failed)
                parts.append(f"### {item.title}\n\n{'Failed.' if broken else 'Not run yet.'}\n")
        parts += not_here([pair for pair in group if pair[1] and not results.newest(pair[0], rows)])
    return "\n".join(parts)


def section(item, found):
    """An item's table."""
    settings = [setting for setting in item.settings if setting in found]
    yield f"### {item.title}\n"
    if item.note:
        yield f"{item.note}\n"
    yield row("where", "what", "paper", *settings, "remark")
    yield "|" + "---|" * (len(settings) + 4)
    first = next(iter(item.settings))
    for line in item.lines:
        cells = {
            setting: Found.of([line.of(record["values"]) for record in found[setting]])
            for setting in settings
        }
        remark = line.remark(cells[first]) if first in cells else ""
        told = (shown(cells[setting]) for setting in settings)
        yield row(line.where, line.what, paper(line.paper), *told, remark)
    records = [record for of in found.values() for record in of]
    seeds = "/".join(str(len(found[setting])) for setting in settings)
    sources = " and ".join(sorted({record["source"] for record in records}))
    seconds = sum(record["seconds"] for record in records)
    yield f"\nSeeds {seeds}; {sources}, {max(r['date'] for r in records)}; {seconds:.0f} s.\n"


def not_here(missing):
    """What has no data, with the lines of the papers that name it."""
    if not missing:
        return
    yield "### Not run: data sets or programs that are not here\n"
    yield row("absent", "where", "what")
    yield "|" + "---|" * 3
    for item, lacks in missing:
        where = ", ".join(dict.fromkeys(line.where for line in item.lines))
        yield row(", ".join(lacks), where, item.title)
    yield ""


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def paper(value):
    return value if isinstance(value, str) else f"{value:g}"


def shown(found):
    """Means and the standard error, with three digits or all before the point."""
    means = found.mean if isinstance(found.mean, list) else [found.mean]
    text = " / ".join(number(mean) for mean in means)
    return text if found.error is None else f"{text} ± {number(found.error)}"


def number(value):
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 20 else f"{value:.2f}"
