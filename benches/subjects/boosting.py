"""GAMBLE against LightGBM and SAMME: test error on eight small tables, processor time of ``fit``.

Only tables with an official split of many test rows are split once. LightGBM has 100 rounds of 15
leaves and its other defaults, which use no random numbers; SAMME 300 rounds.
"""

import statistics

import numpy as np
from harness import data, plot
from harness.case import Case
from harness.measuring import cpu_seconds
from harness.pages import fill, markdown
from xmtree import GambleClassifier, SAMMEClassifier

TITLE = "Test error and processor time of boosting on small tables, one thread"
TABLES = ("glass", "vehicle", "vowel", "segment")
TABLES += ("soybean-large", "splice", "satimage", "pendigits")
N_SPLITS = 50
PROGRAMS = ("GAMBLE", "LightGBM", "SAMME")


def cases(seeds=1):
    """Yield cases, each with all splits and several seeds, because one split decides nothing."""
    for seed in range(seeds):
        for task in TABLES:
            for program in PROGRAMS:
                package = "lightgbm" if program == "LightGBM" else ""
                yield Case("boosting", task, program, {}, seed, package=package)


def make(program, seed):
    if program == "GAMBLE":
        return GambleClassifier(random_state=seed)
    if program == "SAMME":
        return SAMMEClassifier(n_estimators=300)
    import lightgbm

    how = {"n_estimators": 100, "num_leaves": 15, "n_jobs": 1, "verbose": -1}
    return lightgbm.LGBMClassifier(**how, random_state=seed)


def measure(case):
    parts = data.splits(case.task, 3 if case.rows else N_SPLITS, rows=case.rows)
    # The error of GAMBLE varies by a tenth with the seed. The others use no random numbers.
    n_seeds = 1 if case.program != "GAMBLE" else 20 if len(parts) == 1 else 5
    errors, seconds = [], []
    for part in parts:
        for seed in range(n_seeds):
            model, taken = cpu_seconds(make(case.program, seed).fit, part.X, part.y)
            errors.append(100 * float(np.mean(model.predict(part.X_test) != part.y_test)))
            seconds.append(taken)
    return {"error": statistics.mean(errors), "train_s": statistics.median(seconds)}


def by_table(record):
    """Return the rows by task and program."""
    return {task: {row["program"]: row for row in record.of(task)} for task in record.tasks()}


def table(record, _):
    head = ["data", "GAMBLE %", "fit s", "LightGBM %", "fit s", "SAMME %"]
    cells, ahead = [], []
    for task, rows in by_table(record).items():
        gamble, other, samme = (rows[program] for program in PROGRAMS)
        line = gamble["error"], f"{gamble['train_s']:.3f}", other["error"]
        cells.append([task, *line, f"{other['train_s']:.3f}", samme["error"]])
        if gamble["error"] <= other["error"]:
            ahead.append(task)
    summary = f"GAMBLE's error is at most LightGBM's on {len(ahead)} of {len(cells)} tables."
    return f"{markdown(head, cells)}\n{summary}\n\n{fill(record.circumstances())}\n"


def pictures(record):
    tables = by_table(record)
    groups = {name: [rows[name]["error"] for rows in tables.values()] for name in PROGRAMS}
    bars = plot.bars(groups, list(tables), "test error, %", other=plot.GRAY)
    yield "boosting", "Test error of boosting", bars
