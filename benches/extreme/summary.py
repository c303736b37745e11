"""Label sets by program, from a results file, as a table of Markdown."""

from extreme import tables, tasks

PROGRAMS = ("xmtree", "omikuji", "PECOS")
HEADS = (
    "labels", "program", "P@1 %", "P@5 %", "training s", "prediction µs", "file MB",
)  # fmt: skip


def markdown(results):
    """A row for each program on each data set with label sets, most labels first."""
    found = results.newest()
    names = [name for name in (*tasks.LABEL_SETS, tasks.AMAZON) if (name, PROGRAMS[0]) in found]
    names.sort(key=lambda name: -n_labels(found, name))
    lines = [HEADS, ["---"] * len(HEADS)]
    for name in names:
        title = f"{name}, {n_labels(found, name):,}"
        for program in PROGRAMS:
            if runs := found.get((name, program)):
                lines.append([title, program, *cells(runs)])
                title = ""
    machines: dict[str, list[str]] = {}
    for name in names:
        machines.setdefault(found[name, PROGRAMS[0]][0]["machine"], []).append(name)
    told = "; ".join(f"{machine}: {', '.join(on)}" for machine, on in machines.items())
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{told}.\n"


def n_labels(found, name):
    return found[name, PROGRAMS[0]][0]["shape"][2]


def cells(runs):
    known = {head: text.strip() for head, text in tables.cells(runs).items()}
    precision = known.get("P@1/3/5", "//").split("/")
    costs = (known.get(head, "") for head in ("train s", "us a row", "file MB"))
    return [precision[0], precision[-1], *costs]
