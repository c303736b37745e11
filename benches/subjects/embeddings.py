"""Dense rows: 256 columns of latent semantic analysis, as sentence vectors have, of length 1.

Every program trains on two threads, with its defaults, and predicts five labels per row on one.
"""

from harness.case import Case
from harness.pages import fill, markdown

TITLE = "256 dense columns, training on two threads, prediction on one"
LIMIT = 3600
TASKS = ("wordnet-hypernyms", "onet-titles", "banking77")
LDSM = "estimators.XMTree", "", {"estimator": "LdSM"}
OAA = "estimators.XMTree", "", {"estimator": "OAA"}
PROGRAMS = {
    "LdSM": LDSM,
    "one-against-all": OAA,
    "PECOS": ("label_trees.Pecos", "libpecos", {}),
}
COLUMNS = {
    "P@1": "P@1 %",
    "P@3": "P@3 %",
    "P@5": "P@5 %",
    "error": "error %",
    "train_s": "training s",
    "batch_us": "µs a row",
    "file_mb": "file MB",
}


def needs(case):
    return [case.task.removesuffix("-embedded")]


def cases(seeds=3):
    """Yield the cases. One-against-all would need hours for the most labels."""
    for seed in range(seeds):
        for task in TASKS:
            for name, (adapter, package, settings) in PROGRAMS.items():
                if name == "one-against-all" and task == "wordnet-hypernyms":
                    continue
                settings = settings | {"predict_threads": 1, "dense": True}
                task_name = f"{task}-embedded"
                yield Case("embeddings", task_name, name, settings, seed, adapter, package, 2)


def table(record, _):
    lines, rows = [], []
    for task in TASKS:
        title = task
        for row in record.of(f"{task}-embedded"):
            measures = [row.get(name, "") for name in COLUMNS]
            lines.append([title, row["program"], *measures])
            rows.append(row)
            title = ""
    text = markdown(["data", "program", *COLUMNS.values()], lines)
    return f"{text}\n{fill(record.circumstances(rows))}\n"
