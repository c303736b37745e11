"""xmtree against other programs, on the same rows and number of threads, with default settings
unless others are named here.

Programs for many labels do not run on small tables of numbers, and boosting and forests do not run
on tens of thousands of sparse columns.
"""

from dataclasses import dataclass, field

from harness import plot
from harness.case import Case
from harness.pages import fill, markdown

TITLE = "xmtree and other programs, two threads each"
#: Kinds of tasks: rows with one label each, rows with label sets, tables of numbers.
CLASSES, SETS, TABLE = "one label a row", "label sets", "tables"
BOTH = CLASSES, TABLE
#: Limit of the bytes of a dense weight for every feature and class.
MOST_BYTES = 3e9
#: Most classes for programs that need minutes per thousand classes.
MOST_LINEAR = 2_000
#: Tasks by name: kind, columns, labels, and true if features are words.
TASKS = {
    "naics2017-index": (CLASSES, 38_982, 1_055, True),
    "news20-bydate": (CLASSES, 53_239, 20, True),
    "omniglot": (CLASSES, 784, 1_623, False),
    "bibtex": (SETS, 1_836, 159, True),
    "onet-titles": (SETS, 49_598, 1_016, True),
    "stackex-cooking": (SETS, 577, 400, True),
    "letter": (TABLE, 16, 26, False),
    "satimage": (TABLE, 36, 6, False),
    **{f"made-{k}": (CLASSES, 2**14, k, True) for k in (1_000, 10_000, 100_000)},
}


@dataclass(frozen=True)
class Program:
    """A program with its settings.

    Attributes
    ----------
    settings : kind of task -> options; the program runs on these kinds only
    weight_bytes : bytes per feature and class, for programs with dense weights
    most_classes : most classes, for programs whose training time is linear in the classes
    needs_words : true if the program ignores the values of features
    """

    name: str
    package: str
    adapter: str
    settings: dict = field(default_factory=dict)
    weight_bytes: float = 0
    most_classes: float = float("inf")
    needs_words: bool = False

    def runs_on(self, name):
        kind, n_features, n_classes, words = TASKS[name]
        return (
            kind in self.settings
            and n_classes <= self.most_classes
            and n_features * n_classes * self.weight_bytes <= MOST_BYTES
            and (words or not self.needs_words)
        )


def ours(name, estimator, kinds, weight_bytes=0, **options):
    """Return a learner of xmtree, calibrated only if the scores of other programs are too, which is
    on label sets."""
    settings = {kind: {"estimator": estimator} | options for kind in kinds}
    if estimator not in ("LdSM", "Gamble"):
        settings |= {kind: settings[kind] | {"calibrate": False} for kind in BOTH}
    return Program(f"xmtree {name}", "", "estimators.XMTree", settings, weight_bytes)


def vowpal(learner, kinds, most_classes=float("inf"), **options):
    """Return a learner of Vowpal Wabbit, which learns in one thread and reads in another."""
    settings = {kind: {"learner": learner, "passes": 5} | options for kind in kinds}
    program = f"VW --{learner}", "vowpalwabbit", "vowpal.VowpalWabbit"
    return Program(*program, settings, most_classes=most_classes)


def scikit(name, kind, weight_bytes=0, most_classes=float("inf")):
    settings = {kind: {"estimator": name}}
    program = f"scikit-learn {name}", "scikit-learn", "estimators.ScikitLearn"
    return Program(*program, settings, weight_bytes, most_classes)


def both(options):
    return {CLASSES: options, SETS: options}


#: Wide, shallow trees, like those of Bonsai.
COLLAPSED = {"collapse_every_n_layers": 5}


def fasttext(name, settings, **limits):
    """Return fastText with the settings of its tutorial."""
    tutorial = {"lr": 0.5, "epoch": 25}
    settings = {kind: tutorial | options for kind, options in settings.items()}
    return Program(name, "fasttext", "fasttext.FastText", settings, needs_words=True, **limits)


PROGRAMS = (
    ours("OAA", "OAA", (*BOTH, SETS), 8),
    ours("LOMtree", "LOMTree", BOTH),
    ours("10 LOMtrees", "LOMTree", BOTH, n_estimators=10),
    ours("Recall Tree", "RecallTree", BOTH),
    ours("filter tree", "FilterTree", BOTH),
    ours("LdSM", "LdSM", (SETS, CLASSES)),
    ours("GAMBLE", "Gamble", (TABLE,)),
    vowpal("oaa", BOTH, MOST_LINEAR, loss_function="logistic"),
    vowpal("log_multi", BOTH),
    vowpal("recall_tree", BOTH),
    vowpal("ect", BOTH),
    vowpal("plt", (SETS,)),
    Program("omikuji", "omikuji", "label_trees.Omikuji", both({})),
    Program("omikuji, collapsed", "omikuji", "label_trees.Omikuji", both(COLLAPSED)),
    Program("napkinXC PLT", "napkinxc", "label_trees.NapkinXC", {SETS: {"model": "PLT"}}),
    Program("napkinXC HSM", "napkinxc", "label_trees.NapkinXC", {CLASSES: {"model": "HSM"}}),
    Program("PECOS XLinear", "libpecos", "label_trees.Pecos", both({})),
    fasttext("fastText", both({}), most_classes=MOST_LINEAR),
    fasttext("fastText, ova", {SETS: {"loss": "ova"}}),
    fasttext("fastText, hierarchical", {CLASSES: {"loss": "hs"}}),
    scikit("SGDClassifier", CLASSES, 8, MOST_LINEAR),
    scikit("LinearSVC", CLASSES, 8, MOST_LINEAR),
    scikit("OneVsRestClassifier(LinearSVC)", SETS, 8, MOST_LINEAR),
    scikit("HistGradientBoostingClassifier", TABLE),
    scikit("RandomForestClassifier", TABLE),
    Program("LightGBM", "lightgbm", "estimators.LightGBM", {TABLE: {}}),
)


def cases(seeds=3):
    """Yield the cases of the first seed first."""
    for seed in range(seeds):
        for name, (kind, *_) in TASKS.items():
            for program in PROGRAMS:
                if program.runs_on(name):
                    settings = program.settings[kind] | ({"dense": True} if kind == TABLE else {})
                    how = settings, seed, program.adapter, program.package, 2
                    yield Case("peers", name, program.name, *how)


ACCURACY = {"error": "error %", "P@1": "P@1 %", "P@5": "P@5 %"}
COSTS = {
    "train_s": "training s",
    "batch_us": "µs a row, in a batch",
    "one_us": "µs, one row",
    "file_mb": "file MB",
}
#: The tasks of the pictures; the README shows the first ones.
SHOWN = ("naics2017-index", "omniglot", "onet-titles", "news20-bydate", "bibtex", "letter")
N_FEW = 3


def accuracy(row):
    """Return the percentage of rows whose first label is right."""
    return row["P@1"] if "P@1" in row else 100 - row["error"]


def is_ours(row):
    return row["program"].startswith("xmtree ")


def best_first(rows):
    return sorted(rows, key=accuracy, reverse=True)


def table(record, argument):
    """Return the most accurate programs for ``leaders``, else the learners of xmtree on a task."""
    if argument == "leaders":
        return leaders(record)
    rows = best_first(row for row in record.of(argument) if is_ours(row))
    heads = {name: head for name, head in ACCURACY.items() if name in rows[0]} | COSTS
    cells = [[row["program"].removeprefix("xmtree "), *(row[n] for n in heads)] for row in rows]
    return f"{markdown(['learner', *heads.values()], cells)}\n{record.circumstances(rows)}\n"


def leaders(record):
    """Return a table of the most accurate program of xmtree and of the others on each task."""
    lines, ahead, rows = [], [], []
    for task in [task for task in record.tasks() if not task.startswith("made-")]:
        ours, others = ([], [])
        for row in best_first(record.of(task)):
            (ours if is_ours(row) else others).append(row)
        best = [*ours[:1], *others[:1]]
        rows += best
        if accuracy(best[0]) >= accuracy(best[-1]):
            ahead.append(task)
        for place, row in enumerate(best):
            lines.append([task if place == 0 else "", row["program"], accuracy(row)])
            lines[-1] += [row[name] for name in COSTS]
    head = ["task", "program", "right first label, %", *COSTS.values()]
    missed = [task for task in dict.fromkeys(row["task"] for row in rows) if task not in ahead]
    others = f"; another program is ahead on {', '.join(missed)}" if missed else ""
    summary = (
        f"xmtree has the most accurate program on {len(ahead)} of "
        f"{len(ahead) + len(missed)} tasks{others}."
    )
    return f"{markdown(head, lines)}\n{fill(summary)}\n\n{fill(record.circumstances())}\n"


def pictures(record):
    """Yield accuracy against the time of a prediction, on all tasks and on those of the README."""
    style = plot.looks([program.name for program in PROGRAMS], plot.GRAY)
    panels = {
        task: {row["program"]: (row["batch_us"], accuracy(row)) for row in record.of(task)}
        for task in SHOWN
    }
    title = "Accuracy against the time of a prediction"
    axes = "µs a row in a batch, left is better", "right first label, %"
    yield "peers", title, plot.points(panels, style, *axes)
    few = {task: panels[task] for task in SHOWN[:N_FEW]}
    yield "peers-short", title, plot.points(few, style, *axes)
