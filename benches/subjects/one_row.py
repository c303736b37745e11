"""Calls with one row, as in a server or a stream: microseconds of a call from Python.

Measures are medians over new rows, for the call and for the compiled core alone, and for
scikit-learn's SGDClassifier. The tasks ``turns-N`` compare predictions right after ``partial_fit``
with predictions of a model that does not learn, on N classes.
"""

import statistics
import time

import numpy as np
import scipy.sparse as sp
from harness import data, plot
from harness.case import ONLINE, Case, make
from harness.measuring import median_us
from harness.pages import fill, markdown
from sklearn.linear_model import SGDClassifier
from xmtree.datasets import make_xmc

TITLE = "Microseconds of a call with one row"
#: Data sets: dense rows, and texts of 77 and of 1,055 classes.
SETS = ("letter", "banking77", "naics2017-index")
N_ROWS = 300
#: Rows that SGDClassifier learns first, and rows it is timed on, because it is slow.
N_SGD, N_ROWS_OF_SGD = 2000, 20
#: Numbers of classes of the tasks on which learning and predicting alternate.
TURNS = (1_000, 10_000, 100_000)
#: Rows whose prediction freezes any model of these tasks.
ENOUGH = 60_000


def cases(seeds=1):
    for seed in range(seeds):
        for task in SETS:
            for name, settings in ONLINE.items():
                yield Case("one_row", task, name, settings, seed)
            yield Case("one_row", task, "SGDClassifier", {}, seed)
        yield Case("one_row", "onet-titles", "LdSM", {"estimator": "LdSM"}, seed)
        yield Case("one_row", "letter", "GAMBLE", {"estimator": "Gamble"}, seed)
        for n in TURNS:
            for name, settings in ONLINE.items():
                # One-against-all would learn 100,000 classes for hours.
                if name != "OAA" or n <= 10_000:
                    yield Case("one_row", f"turns-{n}", name, settings, seed)


def needs(case):
    return [] if case.task.startswith("turns-") else [case.task]


def measure(case):
    if case.task.startswith("turns-"):
        return by_turns(case)
    task = data.load(case.task, case.rows)
    X, y, X_test, y_test = task.parts
    if case.task == "letter" and sp.issparse(X):
        X, X_test = X.toarray(), X_test.toarray()
    at = np.arange(X_test.shape[0])
    if y.ndim == 1:
        at = at[np.isin(y_test, y)]
    rows = [X_test[i : i + 1] for i in at[: 3 * N_ROWS]]
    if case.program == "SGDClassifier":
        model = SGDClassifier(random_state=case.seed)
        model.partial_fit(X[:N_SGD], y[:N_SGD], classes=np.unique(y))
        rows, labels = rows[:N_ROWS_OF_SGD], [y_test[i : i + 1] for i in at[:N_ROWS_OF_SGD]]
        learning = median_us(model.partial_fit, rows, labels)
        return {"predict_us": median_us(model.predict, rows), "learn_us": learning}
    model = make(case.settings, random_state=case.seed).fit(X, y)
    found = predictions(model, rows)
    if not hasattr(model, "partial_fit"):
        return found
    labels = [y_test[i : i + 1] for i in at[: len(rows)]]
    codes = [np.searchsorted(model.classes_, label).astype(np.uint32) for label in labels]
    # The first call also checks the parameters, so it is not timed.
    model.partial_fit(rows[-1], labels[-1])
    half = len(rows) // 2
    core = model._model.partial_fit
    return found | {
        "learn_us": median_us(model.partial_fit, rows[:half], labels[:half]),
        "learn_core_us": median_us(core, rows[half:], codes[half:]),
    }


def predictions(model, rows):
    """Return times of ``predict`` and ``predict_topk`` and of the core, each on different rows."""
    core = model._model
    half = len(rows) // 2
    first, second = rows[:half], rows[half:]
    # The first predictions also freeze the model, so they are not timed.
    model.predict(rows[-1])
    model.predict_topk(rows[-1])
    core_predict = core.predict if model._y_form == "labels" else core.select_labels
    return {
        "predict_us": median_us(model.predict, first),
        "predict_core_us": median_us(core_predict, second),
        "topk_us": median_us(model.predict_topk, second),
        "topk_core_us": median_us(lambda row: core.predict_topk(row, 5), first),
    }


def by_turns(case):
    """Return times of predictions between updates, and of predictions of a frozen model."""
    n_classes = int(case.task.removeprefix("turns-"))
    n = 3 * n_classes
    X, y = make_xmc(n + ENOUGH, n_classes // 2 + 1000, n_classes, random_state=0)
    model = make(case.settings, random_state=case.seed, calibrate=False)
    model.partial_fit(X[:n], y[:n], classes=np.arange(n_classes))
    rows, labels = [X[at : at + 1] for at in range(n, n + 400)], y[n : n + 400]

    def turns(call):
        seconds = []
        for at in range(100):
            model.partial_fit(rows[at], labels[at : at + 1])
            start = time.perf_counter()
            call(rows[100 + at])
            seconds.append(time.perf_counter() - start)
        return 1e6 * statistics.median(seconds)

    calls = {"predict": model.predict, "topk": model.predict_topk}
    found = {f"{name}_us": turns(call) for name, call in calls.items()}
    model.predict(X[n:])
    frozen = {f"{name}_frozen_us": median_us(call, rows[200:]) for name, call in calls.items()}
    return found | frozen


COLUMNS = {"predict_us": "predict", "topk_us": "predict_topk", "learn_us": "partial_fit"}


def page_rows(record):
    """Yield the names and rows of the page."""
    for row in record.rows:
        if row["task"] == "naics2017-index" and row["program"] in ONLINE:
            yield row["program"], row
        elif row["program"] in ("LdSM", "GAMBLE"):
            yield f"{row['program']}, {row['task']}", row


def table(record, _):
    rows = dict(page_rows(record))
    cells = [[name, *(row.get(column, "") for column in COLUMNS)] for name, row in rows.items()]
    text = markdown(["learner", *COLUMNS.values()], cells)
    return f"{text}\n{fill(record.circumstances(list(rows.values())))}\n"


def pictures(record):
    rows = dict(page_rows(record))
    groups = {head: [row.get(column) for row in rows.values()] for column, head in COLUMNS.items()}
    yield "one_row", "Calls with one row", plot.bars(groups, list(rows), "µs, left is better")
