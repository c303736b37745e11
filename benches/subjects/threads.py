"""The speedup of two threads over one: predictions of a batch, training, and calls of a predictor.

One and two threads take turns, and the speedup is the ratio of the medians.
"""

import statistics
import threading
import time

import numpy as np
from harness import data, plot
from harness.case import UNCALIBRATED, Case, make
from harness.measuring import in_turns
from harness.pages import fill, markdown

TITLE = "Speedup of two threads over one"
ROUNDS = 5
#: Predicted rows; test rows are repeated to give this number.
N_PREDICTED = 60_000
TEXT = "naics2017-index"
ONLINE = ("OAA", "LOMtree", "10 LOMtrees", "Recall Tree", "filter tree")
LEARNERS = {name: (TEXT, UNCALIBRATED[name]) for name in ONLINE} | {
    "LdSM": (TEXT, {"estimator": "LdSM"}),
    "GAMBLE": ("letter", {"estimator": "Gamble", "n_estimators": 100}),
    "GAMBLE, 50,000 rows": ("blobs-10", {"estimator": "Gamble", "n_estimators": 100}),
}
CALLED = ("OAA", "LOMtree", "Recall Tree")


def cases(seeds=1):
    for seed in range(seeds):
        for name, (task, settings) in LEARNERS.items():
            yield Case("threads", task, name, settings, seed)


def measure(case):
    task = data.load(case.task, case.rows)
    X_test, n = task.X_test, case.rows or N_PREDICTED
    rows = X_test[np.resize(np.arange(X_test.shape[0]), n)]
    model = make(case.settings, random_state=case.seed).fit(task.X, task.y)
    model.predict(rows)

    def predict(n_jobs):
        model.set_params(n_jobs=n_jobs).predict(rows)

    def fit(n_jobs):
        make(case.settings, random_state=case.seed, n_jobs=n_jobs).fit(task.X, task.y)

    predicting, training = in_turns(predict, (1, 2), ROUNDS), in_turns(fit, (1, 2), ROUNDS)
    found = {
        "predict_x": predicting[1] / predicting[2],
        "predict_us": 1e6 * predicting[1] / n,
        "train_x": training[1] / training[2],
        "train_s": training[1],
    }
    return found | (called(model.predictor(), X_test) if case.program in CALLED else {})


def called(predictor, X_test):
    """Return the calls of a predictor by two Python threads, relative to one thread."""
    predictor.predict(X_test)
    found = {}
    for n_rows in (1, 100):
        rows = [X_test[at : at + n_rows] for at in range(min(1000, X_test.shape[0]))]
        counts = {1: [], 2: []}
        for _ in range(ROUNDS):
            for n_threads, each in counts.items():
                each.append(calls(predictor, rows, n_threads))
        one, two = (statistics.median(each) for each in counts.values())
        found[f"calls_{n_rows}_x"] = two / one
    return found


def calls(predictor, rows, n_threads, seconds=0.5):
    """Return the number of calls of all threads together."""
    counts = []

    def call():
        n, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            predictor.predict(rows[n % len(rows)])
            n += 1
        counts.append(n)

    threads = [threading.Thread(target=call) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def page_rows(record):
    return {f"{row['program']}, {row['task']}": row for row in record.of()}


def table(record, _):
    rows = page_rows(record)
    cells = [[name, row["predict_x"], row["train_x"]] for name, row in rows.items()]
    text = markdown(["learner", "prediction", "training"], cells)
    return f"{text}\n{fill(record.circumstances(list(rows.values())))}\n"


def pictures(record):
    rows = page_rows(record)
    heads = {"prediction": "predict_x", "training": "train_x"}
    groups = {head: [row[name] for row in rows.values()] for head, name in heads.items()}
    title = "Two threads over one"
    yield "threads", title, plot.bars(groups, list(rows), "times as fast, two cores", mark=1)
