"""How sure learners are of their best label, and how often it is right.

Expected calibration error (Guo et al. 2017, 15 bins) on test rows in per cent, of the best label
and of the five best, and the log loss: before and after calibration; and the processor time of
training with calibration over that without, where it can be left out. Before: the softmax of the
scores as they are (of LOMtree and LdSM, shares of them). On label sets: what is predicted above a
probability of 1/2, and by default.
"""

import numpy as np
import scipy.sparse as sp
import xmtree
from harness import data
from harness.case import Case
from harness.measuring import cpu_seconds
from scipy.special import softmax
from sklearn.metrics import log_loss
from subjects.one_row import ONLINE, make
from xmtree.metrics import calibration_error

TITLE = "Calibration: before and after"
LEARNERS = ONLINE | {"LdSM": {"estimator": "LdSM"}, "GAMBLE": {"estimator": "Gamble"}}
#: Data sets, their seeds, and learners that would take minutes or gigabytes there. Text has too
#: many columns for GAMBLE.
LARGE = ("GAMBLE", "LdSM", "10 LOMtrees", "OAA")
SETS = {
    "letter": (2, ()),
    "vehicle": (2, ()),
    "banking77": (2, ("GAMBLE",)),
    "news20-bydate": (2, ("GAMBLE", "LdSM", "10 LOMtrees")),
    "naics2017-index": (2, ("GAMBLE",)),
    "noisy-5000": (1, LARGE),
    "noisy-27000": (1, LARGE),
}
LABEL_SETS = ("onet-titles", "bibtex")


def cases(seeds=2):
    for seed in range(seeds):
        for task, (n_seeds, left_out) in SETS.items():
            for name, settings in LEARNERS.items():
                if seed < n_seeds and name not in left_out:
                    yield Case("calibration", task, name, settings, seed)
    for task in LABEL_SETS:
        for name in ("OAA", "LdSM"):
            yield Case("calibration", task, name, LEARNERS[name])


def measure(case):
    task = data.load(case.task, case.rows)
    if sp.issparse(task.y):
        model = make(case.settings, random_state=case.seed, n_jobs=-1).fit(task.X, task.y)
        after = agreement(model.predict(task.X_test), task.y_test)
        before = agreement(model.set_params(threshold=0.5).predict(task.X_test), task.y_test)
        return paired(("empty", "f1_rows", "f1_micro"), before, after)
    model, seconds = cpu_seconds(make(case.settings, random_state=case.seed).fit, task.X, task.y)
    plain, found = model, {}
    raw = without_calibration(model, task.X_test)
    if raw is None:
        plain = make(case.settings, random_state=case.seed, calibrate=False)
        plain, without = cpu_seconds(plain.fit, task.X, task.y)
        found["time_x"] = seconds / without
    before = measures(plain, task.X_test, task.y_test, raw)
    after = measures(model, task.X_test, task.y_test)
    return paired(("ece", "ece_of_five", "log_loss"), before, after) | found


def paired(names, before, after):
    """Each measure before and after, side by side; those that cannot be had are left out."""
    values = zip(names, np.transpose([before, after]).tolist(), strict=True)
    return {name: pair for name, pair in values if np.isfinite(pair).all()}


def without_calibration(model, X):
    """Probabilities of all classes from the scores as they are."""
    if isinstance(model, xmtree.GambleClassifier):
        scores = np.atleast_2d(model.decision_function(X))
        return softmax(scores / (len(model.classes_) - 1), axis=1)
    if isinstance(model, xmtree.LdSMClassifier):
        scores = model.predict_scores(X).toarray().astype(float)
        return scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-12)
    return None


def measures(model, X, y, raw=None):
    """Calibration errors in per cent of the best label and of five, and the log loss; of the
    probabilities ``raw`` where they are given."""
    k = min(5, len(model.classes_))
    if raw is None:
        labels, likely = model.predict_topk(X, k, scores="probability")
    else:
        best = np.argsort(-raw, axis=1, kind="stable")[:, :k]
        labels, likely = model.classes_[best], np.take_along_axis(raw, best, axis=1)
    likely = likely.clip(0, 1)
    error = calibration_error(y, labels[:, 0], likely[:, 0])
    of_five = calibration_error(np.repeat(y, k), labels.ravel(), likely.ravel())
    loss = np.nan
    # All probabilities of more labels would take gigabytes.
    if len(model.classes_) <= 2000:
        loss = loss_of(y, model.predict_proba(X) if raw is None else raw, model.classes_)
    return 100 * error, 100 * of_five, loss


def loss_of(y, probabilities, classes):
    known = np.isin(y, classes)
    own = np.searchsorted(classes, y[known])
    # A label without probability would make the loss infinite.
    clipped = np.clip(probabilities[known].astype(float), 1e-6, 1)
    return log_loss(own, clipped / clipped.sum(axis=1, keepdims=True), labels=range(len(classes)))


def agreement(sets, y_test):
    """Per cent of rows for which nothing is predicted, F1 averaged over rows, micro F1."""
    hits = np.asarray(sets.multiply(y_test).sum(axis=1)).ravel()
    n_found, n_true = (np.asarray(one.sum(axis=1)).ravel() for one in (sets, y_test))
    both = n_found + n_true
    of_rows = np.where(both > 0, 2 * hits / np.maximum(both, 1), 1)
    return 100 * np.array([np.mean(n_found == 0), of_rows.mean(), 2 * hits.sum() / both.sum()])
