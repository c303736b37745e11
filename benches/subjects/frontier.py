"""When a tree pays: error against the time of a prediction, times against the number of classes.

Every learner of one label a row with its defaults, on one thread; then one-against-all beside the
trees on made tasks of 256 to 16,384 classes.
"""

from harness import plot
from harness.case import Case
from harness.pages import fill, markdown

TITLE = "Error and times by data set and by number of classes, one thread"
#: GAMBLE boosts trees over tables of numbers, so it is left out where rows are texts;
#: one-against-all where its weights would take more than a GB.
SETS = {
    "naics2017-index": ("GAMBLE, 20 rounds",),
    "omniglot": (),
    "next-word-100000": ("OAA", "GAMBLE, 20 rounds"),
    "wordnet-rarest": ("OAA", "GAMBLE, 20 rounds"),
}
PLAIN = {"calibrate": False}
LEARNERS = {
    "OAA": {"estimator": "OAA"} | PLAIN,
    "LOMtree": {"estimator": "LOMTree"} | PLAIN,
    "10 LOMtrees": {"estimator": "LOMTree", "n_estimators": 10} | PLAIN,
    "Recall Tree": {"estimator": "RecallTree"} | PLAIN,
    "Recall Tree, no beam": {"estimator": "RecallTree", "beam_size": 1} | PLAIN,
    "filter tree": {"estimator": "FilterTree"} | PLAIN,
    "random tree": {"estimator": "RandomTree"} | PLAIN,
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
                    yield Case("frontier", task, name, settings | more, seed, "ours")
        for n in NUMBERS:
            for name in CROSSING:
                settings = LEARNERS[name] | {"n_passes": 1}
                yield Case("frontier", f"crossing-{n}", name, settings, seed, "ours")


def table(record, _):
    """Errors and times of a prediction by the number of classes."""
    lines, rows = [], []
    for n in NUMBERS:
        of = {row["program"]: row for row in record.of(f"crossing-{n}")}
        rows += of.values()
        cells = (f"{of[name]['error']:.1f} %, {of[name]['batch_us']:.1f}" for name in CROSSING)
        lines.append([f"{n:,}", *cells])
    text = markdown(["classes", *CROSSING], lines)
    return f"{text}\n{fill(record.circumstances(rows))}\n"


def pictures(record):
    style = plot.looks([[name] for name in LEARNERS])
    panels = {
        task: {row["program"]: (row["batch_us"], row["error"]) for row in record.of(task)}
        for task in SETS
    }
    title = "Error against the time of a prediction"
    axes = "µs a row in a batch, left is better", "error, %"
    yield "frontier", title, plot.points(panels, style, *axes, n_columns=4)
