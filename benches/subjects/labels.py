"""Very many labels: xmtree against omikuji and PECOS, all with their defaults.

Every program trains on two threads and predicts five labels per row on one.
"""

from harness import plot
from harness.case import Case
from harness.data import AMAZON
from harness.pages import fill, markdown

TITLE = "Very many labels, training on two threads, prediction on one"
LIMIT = 3600
SETS = (
    *("wordnet-hypernyms", "onet-titles", "bibtex", "makupalat", "delicious"),
    "stackex-cooking",
)
CLASSES = ("omniglot", "naics2017-index", "banking77")
NEXT_WORD = "next-word-1000000"
#: Tasks that differ only in the number of labels.
SCALING = tuple(f"scaling-{2**power}" for power in range(8, 21, 2))
LDSM = {"estimator": "LdSM"}
XMTREE = "estimators.XMTree"
#: Programs by name: adapter, package, settings.
PROGRAMS = {
    "xmtree": (XMTREE, "", LDSM),
    "xmtree, trees alone": (XMTREE, "", LDSM | {"scorers": "none"}),
    "xmtree, trees re-ranked": (XMTREE, "", LDSM | {"scorers": "none", "beta": 0.8}),
    "xmtree, tail_weight=1": (XMTREE, "", LDSM | {"tail_weight": 1.0}),
    "one-against-all": (XMTREE, "", {"estimator": "OAA"}),
    "one-against-all, pruned": (XMTREE, "", {"estimator": "OAA", "prune": 0.03}),
    # Hashed, because weights of 26,368 words and 683,414 features would take 134 GiB.
    "one-against-all, 15 bits, 1 pass": (
        *(XMTREE, ""),
        {"estimator": "OAA", "n_bits": 15, "n_passes": 1},
    ),
    "Recall Tree": (XMTREE, "", {"estimator": "RecallTree"}),
    "Recall Tree, 1 pass": (XMTREE, "", {"estimator": "RecallTree", "n_passes": 1}),
    "omikuji": ("label_trees.Omikuji", "omikuji", {}),
    "omikuji, collapsed": ("label_trees.Omikuji", "omikuji", {"collapse_every_n_layers": 5}),
    "PECOS": ("label_trees.Pecos", "libpecos", {}),
}
PEERS = ("PECOS", "omikuji, collapsed", "omikuji")
HASHED = "one-against-all, 15 bits, 1 pass"
VARIANTS = (
    *("xmtree, tail_weight=1", "xmtree, trees alone", "xmtree, trees re-ranked"),
    "one-against-all, pruned",
)


def cases(seeds=3):
    """Yield the cases, the most important first."""
    every, first, rest = range(seeds), range(1), range(1, seeds)
    # One-against-all is left out on the first set: 18,970 labels take 17 GB of memory.
    few_labels = SETS[1:]
    groups = (
        (SETS, ("xmtree",), every),
        (SETS, PEERS, first),
        (CLASSES, ("xmtree", "one-against-all", "Recall Tree", "PECOS", "omikuji"), every),
        ((NEXT_WORD,), ("xmtree", "Recall Tree, 1 pass", HASHED), first),
        (SCALING, ("xmtree",), first),
        ((AMAZON,), ("xmtree",), first),
        (SETS, PEERS, rest),
        (few_labels, ("one-against-all",), every),
        (SETS, VARIANTS, first),
        ((NEXT_WORD,), ("xmtree", "Recall Tree, 1 pass"), rest),
        ((AMAZON,), PEERS, first),
    )
    for tasks, programs, group_seeds in groups:
        for seed in group_seeds:
            for name in programs:
                adapter, package, settings = PROGRAMS[name]
                settings = settings | {"predict_threads": 1}
                for task in tasks:
                    yield Case("labels", task, name, settings, seed, adapter, package, 2)


COLUMNS = {
    "P@1": "P@1 %",
    "P@5": "P@5 %",
    "train_s": "training s",
    "batch_us": "prediction µs",
    "file_mb": "file MB",
}


def sets_by_size(record):
    """Return tasks with label sets and their numbers of labels, the largest first."""
    sizes = {row["task"]: row["shape"][2] for row in record.of(program="xmtree") if "P@1" in row}
    sizes = {task: n for task, n in sizes.items() if task not in SCALING}
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1]))


def table(record, _):
    """Return a table of xmtree, omikuji and PECOS on label sets."""
    lines, rows = [], []
    for task, n_labels in sets_by_size(record).items():
        title = f"{task}, {n_labels:,}"
        for program in ("xmtree", "omikuji", "PECOS"):
            for row in record.of(task, program):
                lines.append([title, program, *(row[name] for name in COLUMNS)])
                rows.append(row)
                title = ""
    text = markdown(["labels", "program", *COLUMNS.values()], lines)
    return f"{text}\n{fill(record.circumstances(rows))}\n"


def pictures(record):
    style = {"xmtree": plot.COLORS["LdSM"], "one-against-all": plot.COLORS["OAA"]}
    style |= dict.fromkeys(("omikuji", "omikuji, collapsed", "PECOS"), plot.GRAY)
    panels = {}
    for task in [task for task in sets_by_size(record) if task != AMAZON]:
        rows = [row for row in record.of(task) if row["program"] in style]
        panels[task] = {row["program"]: (row["batch_us"], row["P@5"]) for row in rows}
    title = "Precision at 5 against the time of a prediction"
    axes = "µs a row, one thread, left is better", "P@5, %"
    yield "labels", title, plot.points(panels, style, *axes)
