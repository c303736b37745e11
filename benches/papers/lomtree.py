"""LOMtree: Choromanska and Langford, NIPS 2015 and arXiv 1406.1822."""

import tempfile
from itertools import product, repeat
from math import log2
from pathlib import Path

import numpy as np
from harness import data
from harness.measuring import cpu_seconds
from papers.statements import DEFAULT, PAPER, Item
from xmtree import FilterTreeClassifier, LOMTreeClassifier, OAAClassifier, RandomTreeClassifier

STEPS = (0.25, 1.0, 4.0)
#: The paper's grid has {1, 2, 4, 8, 16, 32, 64} k - 1 nodes and R_S in {4, 8, ..., 256}.
NODES, RESISTANCE = (4, 64), 4
#: Numbers of passes that are tried; the paper says "up to 20".
PASSES = (1, 3, 10)
#: A swap resistance that no leaf reaches.
NO_SWAPS = 1e12
#: Data sets and their numbers of classes, those of the paper first.
CLASSES = {"isolet": 26, "sector": 105, "aloi": 1000, "imagenet": 22_000, "odp": 105_000}
CLASSES |= {"letter": 26, "pendigits": 10, "satimage": 6, "news20-bydate": 20, "banking77": 77}
CLASSES |= {"naics2017-index": 1055, "omniglot": 1623}
OURS = tuple(CLASSES)[5:]
#: The arithmetic of the authors' program, for the label trees and one-against-all.
AS_VW = {"optimizer": "nag", "scaling": "none", "scale_weights": False, "loss": "squared"}
#: The papers have no calibration, which would dominate the training times.
PLAIN = {"calibrate": False, "n_jobs": 1}
LEARNERS = {
    "LOMtree": (LOMTreeClassifier, LOMTreeClassifier.PAPER),
    "random tree": (RandomTreeClassifier, AS_VW),
    "filter tree": (FilterTreeClassifier, AS_VW),
    "filter tree, random order": (FilterTreeClassifier, AS_VW | {"label_order": "random"}),
    "OAA": (OAAClassifier, AS_VW),
}
#: Numbers of classes of the synthetic rows.
GROWTH = (64, 256, 1024, 4096, 16_384)
#: Settings of the comparison with one-against-all.
TREE_AND_OAA = {
    PAPER: {"tree": LOMTreeClassifier.PAPER, "oaa": AS_VW},
    DEFAULT: {"tree": {}, "oaa": {}},
}


def error(model, task):
    return 100 * float(np.mean(model.predict(task.X_test) != task.y_test))


def size(model):
    """Return the bytes of the model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.stat().st_size


def wrong(model, task, labels):
    """Return test errors after each of ``PASSES`` over the rows in a fixed order."""
    errors = []
    for done in range(1, max(PASSES) + 1):
        model.partial_fit(task.X, task.y, classes=labels)
        if done in PASSES:
            errors.append(error(model, task))
    return errors


def grid(learner):
    """Return the settings that are tried."""
    if learner != "LOMtree":
        return [{"learning_rate": step} for step in STEPS]
    return [
        {"nodes_per_class": nodes, "swap_resistance": RESISTANCE, "learning_rate": step}
        for nodes, step in product(NODES, STEPS)
    ]


def tuned(learner, task, seed):
    """Return the test error of the settings that are best on a tenth of the training rows."""
    make, settings = LEARNERS[learner]
    X, y = task.X, task.y
    labels = np.unique(y)
    n = len(y) // 10
    part = data.Task(X[n:], y[n:], X[:n], y[:n])
    best = (np.inf, {}, 0)
    for tried in grid(learner):
        errors = wrong(make(**settings | tried, random_state=seed, **PLAIN), part, labels)
        at = int(np.argmin(errors))
        best = min(best, (errors[at], tried, PASSES[at]), key=lambda one: one[0])
    _, chosen, passes = best
    model = make(**settings | chosen, random_state=seed, **PLAIN)
    for _ in range(passes):
        model.partial_fit(X, y, classes=labels)
    return error(model, task)


def table(settings, seed, rows, name):
    """Return errors of all learners, tuned as in the paper or by default."""
    task, found = data.load(name, rows), {}
    order = np.random.default_rng(seed).permutation(len(task.y))
    task = data.Task(task.X[order], task.y[order], task.X_test, task.y_test)
    for learner, (make, _) in LEARNERS.items():
        if settings["tuned"]:
            found[learner] = tuned(learner, task, seed)
        else:
            options = {"label_order": "random"} if learner.endswith("order") else {}
            model = make(**options, random_state=seed, **PLAIN).fit(task.X, task.y)
            found[learner] = error(model, task)
    return found


def swaps(settings, seed, rows):
    """Return how much swaps lower the error with T = k - 1 nodes."""
    found = {}
    for name in OURS:
        task = data.load(name, rows)
        errors = []
        for resistance in (4.0, NO_SWAPS):
            options = settings | {"nodes_per_class": 1.0, "swap_resistance": resistance}
            options |= {"learning_rate": 1.0, "n_passes": 5}
            model = LOMTreeClassifier(**options, random_state=seed, **PLAIN)
            errors.append(error(model.fit(task.X, task.y), task))
        found[name] = errors[1] - errors[0]
    return found


def same_budget(settings, seed, rows):
    """Return how much more accurate LOMtree is than one-against-all in the same time."""
    found = {}
    one_pass = {"n_passes": 1, "random_state": seed} | PLAIN
    for name in OURS:
        task = data.load(name, rows)
        X, y = task.X, task.y
        tree = LOMTreeClassifier(**settings["tree"] | {"nodes_per_class": 1.0}, **one_pass)
        oaa = OAAClassifier(**settings["oaa"], **one_pass)
        share = min(1.0, cpu_seconds(tree.fit, X, y)[1] / cpu_seconds(oaa.fit, X, y)[1])
        part = np.random.default_rng(seed).permutation(len(y))[: max(2, int(share * len(y)))]
        oaa = OAAClassifier(**settings["oaa"], **one_pass).fit(X[part], y[part])
        found[name] = error(oaa, task) - error(tree, task)
    return found


def times(settings, seed, rows):
    """Return times of one-against-all relative to LOMtree's."""
    found = {"ratios": []}
    for name in OURS:
        task = data.load(name, rows)
        seconds = {}
        for what, make in (("tree", LOMTreeClassifier), ("oaa", OAAClassifier)):
            model = make(**settings[what], n_passes=1, random_state=seed, **PLAIN)
            _, training = cpu_seconds(model.fit, task.X, task.y)
            model.predict(task.X_test[:10])
            predictions = map(model.predict, repeat(task.X_test, 3))
            seconds[what] = training, cpu_seconds(list, predictions)[1]
        training, predicting = (seconds["oaa"][i] / max(seconds["tree"][i], 1e-9) for i in (0, 1))
        found[f"{name} training"] = training
        found["ratios"].append(log2(predicting))
        found[f"{name} ratio"] = predicting
    # Slope of log2 of the ratio against log2 of the number of classes, by least squares.
    logs = [log2(CLASSES[name]) for name in OURS]
    found["slope"] = float(np.polyfit(logs, found["ratios"], 1)[0])
    return found


def growth(settings, seed, rows):
    """Return times and depths of trees over synthetic rows of more and more classes."""
    found = {"train": [], "predict": [], "mean": [], "deepest": []}
    for k in GROWTH:
        task = data.load(f"made-{k}", rows)
        model = LOMTreeClassifier(**settings, n_passes=1, random_state=seed, **PLAIN)
        found["train"].append(cpu_seconds(model.fit, task.X, task.y)[1])
        model.predict(task.X_test[:10])
        predictions = map(model.predict, repeat(task.X_test, 5))
        found["predict"].append(cpu_seconds(list, predictions)[1])
        steps = np.asarray(model.decision_path(task.X_test)[0].sum(axis=1)) - 1
        found["mean"].append(float(steps.mean()) / log2(k))
        found["deepest"].append(float(steps.max()) / log2(k))
    logs = log2(GROWTH[-1]) / log2(GROWTH[0])
    times = {f"{key} growth": found[key][-1] / found[key][0] / logs for key in ("train", "predict")}
    return found | times | {f"{key} most": max(found[key]) for key in ("mean", "deepest")}


def on_a_line(settings, seed, rows):
    """Return the least errors of thresholds that part three labels on a line in two ways."""
    x = np.repeat([1, 2, 3], 10)
    errors = {}
    for left in ((1, 3), (1,)):
        side = np.isin(x, left)
        wrong = [np.mean((x < at) != side) for at in (0, 1.5, 2.5)]
        errors[str(left)] = min(min(e, 1 - e) for e in wrong)
    return {"pairs": 100 * float(errors["(1, 3)"] - errors["(1,)"])}


TUNED = {PAPER: {"tuned": True}, DEFAULT: {"tuned": False}}
ALONE = {PAPER: LOMTreeClassifier.PAPER, DEFAULT: {}}
ITEMS = (
    *(Item(f"lomtree-{name}", table, TUNED, data=name) for name in CLASSES),
    Item("lomtree-swaps", swaps, ALONE, needs=OURS),
    Item("lomtree-figure1", same_budget, TREE_AND_OAA, needs=OURS),
    Item("lomtree-times", times, TREE_AND_OAA, needs=OURS),
    Item("lomtree-growth", growth, ALONE, needs=tuple(f"made-{k}" for k in GROWTH)),
    Item("lomtree-line", on_a_line, {PAPER: {}}, 2, needs=("letter",)),
)
