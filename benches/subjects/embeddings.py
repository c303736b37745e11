"""Rows of 256 dense columns, as sentence vectors have; all programs with their defaults."""

from harness.case import Case
from harness.pages import fill, markdown

TITLE = "256 dense columns, training on two threads, prediction on one"
TASKS = "wordnet-hypernyms", "onet-titles", "banking77"
DENSE = {"predict_threads": 1, "dense": True}
PROGRAMS = {
    "LdSM": ("estimators.XMTree", "", {"estimator": "LdSM"} | DENSE),
    "one-against-all": ("estimators.XMTree", "", {"estimator": "OAA"} | DENSE),
    "PECOS": ("label_trees.Pecos", "libpecos", DENSE),
}
COLUMNS = {name: f"{name} %" for name in ("P@1", "P@3", "P@5", "error")}
COLUMNS |= {"train_s": "training s", "batch_us": "µs a row", "file_mb": "file MB"}


def cases(seeds=3):
    for seed in range(seeds):
        for task in TASKS:
            for name, (adapter, package, settings) in PROGRAMS.items():
                # One-against-all would need hours for the labels of wordnet.
                if task != TASKS[0] or name != "one-against-all":
                    case = f"{task}-embedded", name, settings, seed, adapter, package, 2
                    yield Case("embeddings", *case)


def table(record, _):
    rows = [row for task in TASKS for row in record.of(f"{task}-embedded")]
    lines = [[row.get(name, "") for name in ("task", "program", *COLUMNS)] for row in rows]
    text = markdown(["data", "program", *COLUMNS.values()], lines)
    return f"{text}\n{fill(record.circumstances(rows))}\n"
