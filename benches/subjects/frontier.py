"""Error against the time of a prediction, to decide when a tree is worth using.

Compares every learner of single labels with its defaults, on one thread, and one-against-all with
the trees on synthetic tasks of 256 to 16,384 classes.
"""

from harness import plot
from harness.case import UNCALIBRATED, Case
from harness.pages import fill, markdown

TITLE = "Error and times by data set and by number of classes, one thread"
#: Data sets with the learners that are left out: GAMBLE on texts, and one-against-all if its
#: weights would take more than a GB.
SETS = {
    "naics2017-index": ("GAMBLE, 20 rounds",),
    "omniglot": (),
    "next-word-100000": ("OAA", "GAMBLE, 20 rounds"),
    "wordnet-rarest": ("OAA", "GAMBLE, 20 rounds"),
}
LEARNERS = UNCALIBRATED | {
    "Recall Tree, no beam": UNCALIBRATED["Recall Tree"] | {"beam_size": 1},
    "LdSM": {"estimator": "LdSM"},
    "GAMBLE, 20 rounds": {"estimator": "Gamble", "n_estimators": 20},
}
CROSSING = ("OAA", "Recall Tree", "LOMtree", "10 LOMtrees")
NUMBERS = [2**power for power in range(8, 15)]


def cases(seeds=1):
    for seed in range(seeds):
        for task, left_out in SETS.items():
            one_pass = {"n_passes": 1} if task.startswith("next-word") else {}
            for name, settings in LEARNERS.items():
                if name not in left_out:
                    more = one_pass if "calibrate" in settings else {}
                    yield Case("frontier", task, name, settings | more, seed, "estimators.XMTree")
        for n in NUMBERS:
            for name in CROSSING:
                settings = LEARNERS[name] | {"n_passes": 1}
                yield Case("frontier", f"crossing-{n}", name, settings, seed, "estimators.XMTree")


def table(record, _):
    """Return errors and times of a prediction by the number of classes."""
    lines, rows = [], []
    for n in NUMBERS:
        found = {row["program"]: row for row in record.of(f"crossing-{n}")}
        rows += found.values()
        pairs = ((found[name]["error"], found[name]["batch_us"]) for name in CROSSING)
        lines.append([f"{n:,}", *(f"{error:.1f} %, {us:.1f}" for error, us in pairs)])
    text = markdown(["classes", *CROSSING], lines)
    return f"{text}\n{fill(record.circumstances(rows))}\n"


def pictures(record):
    style = plot.looks(LEARNERS)
    panels = {
        task: {row["program"]: (row["batch_us"], row["error"]) for row in record.of(task)}
        for task in SETS
    }
    title = "Error against the time of a prediction"
    axes = "µs a row in a batch, left is better", "error, %"
    yield "frontier", title, plot.points(panels, style, *axes, n_columns=4)
