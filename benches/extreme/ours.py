"""xmtree's classifiers, measured; run by ``runs.py`` in a process of its own."""

import inspect
import statistics
import time
from math import log

import numpy as np
import xmtree

from extreme.measuring import K, main, measured, megabytes, predicted

#: Rows that are predicted one by one.
N_ALONE = 500


def train(learner, run):
    """Trains and saves; the trees are looked at last, since that takes memory."""
    X, y = run.rows("train"), run.labels()
    model = learner(**run.options, random_state=run.seed, n_jobs=run.threads)
    _, training = measured(lambda: model.fit(X, y))
    _, saving = measured(lambda: model.save(run.model))
    found = {"training": training, "saving": saving, "file_mb": megabytes(run.model)}
    if "compact" in inspect.signature(model.save).parameters:
        model.save(compact(run), compact=True)
        found["compact_mb"] = megabytes(compact(run))
    return found | (depths(model) if learner is xmtree.LdSMClassifier else {})


def learn(learner, run):
    """Trains, saves, loads and predicts: the answers are those of the file."""
    found = train(learner, run)
    if "mmap" in inspect.signature(xmtree.load).parameters:
        _, found["mapping"] = measured(lambda: xmtree.load(run.model, mmap=True))
    model, found["loading"] = measured(lambda: xmtree.load(run.model))
    model.set_params(n_jobs=1)
    X = run.rows("test")
    model.predict_topk(X[:1], K)
    answers, found["us"] = predicted(lambda: model.predict_topk(X, K)[0], X.shape[0])
    found["us_alone"] = alone(model, X)
    if compact(run).is_file():
        first = xmtree.load(compact(run)).predict_topk(X, 1)[0]
        found["compact_changed"] = 100 * float(np.mean(first[:, 0] != answers[:, 0]))
    return answers, found


def compact(run):
    """The file for prediction only."""
    return run.model.with_suffix(".compact")


def alone(model, X):
    """Microseconds of a row that is predicted by itself: the median."""
    seconds = []
    for row in [X[i] for i in range(min(N_ALONE, X.shape[0]))]:
        start = time.perf_counter()
        model.predict_topk(row, K)
        seconds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds)


def depths(model):
    """Levels of the deepest tree, and log_M K."""
    levels = max(int(tree.depth.max()) for tree in model.trees_)
    return {"depth": levels, "log_k": log(len(model.classes_)) / log(model.arity)}


PROGRAMS = {
    "ldsm": lambda run: learn(xmtree.LdSMClassifier, run),
    "oaa": lambda run: learn(xmtree.OAAClassifier, run),
    "recall-tree": lambda run: learn(xmtree.RecallTreeClassifier, run),
}

if __name__ == "__main__":
    main(PROGRAMS)
