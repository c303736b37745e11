"""Probabilities before and after calibration, compared with how often the labels are right.

For single labels: the expected calibration error (Guo et al. 2017, 15 bins) in percent on test
rows, of the best label and of the five best, and the log loss. ``time_x`` is the processor time of
training with calibration, relative to training without, each the least of seven. Uncalibrated
probabilities are the softmax of the scores, or their shares in LOMtree and LdSM. For label sets:
the predicted sets with the threshold 1/2, and with the default threshold.
"""

import numpy as np
import xmtree
from harness import data
from harness.case import ONLINE, Case, make
from harness.measuring import cpu_seconds
from scipy.special import softmax
from sklearn.metrics import log_loss
from xmtree.metrics import calibration_error

TITLE = "Calibration: before and after"
LEARNERS = ONLINE | {"LdSM": {"estimator": "LdSM"}, "GAMBLE": {"estimator": "Gamble"}}
#: Data sets with the number of seeds and the learners that are left out, because they would take
#: minutes or gigabytes.
LARGE = ("GAMBLE", "LdSM", "10 LOMtrees", "OAA")
SETS = {
    "letter": (2, ()),
    "vehicle": (1, ()),
    "banking77": (2, ("GAMBLE",)),
    "news20-bydate": (2, ("GAMBLE", "LdSM", "10 LOMtrees")),
    "naics2017-index": (2, ("GAMBLE",)),
    "omniglot": (2, tuple(LEARNERS.keys() - {"LdSM"})),
    "noisy-5000": (1, LARGE),
    "noisy-27000": (1, LARGE),
}
LABEL_SETS = ("onet-titles", "bibtex")
#: Random splits of a small set. Their test rows are measured together: with the 170 rows of one
#: split, exact probabilities would have an error of 5 to 8.
N_SPLITS = 20


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
    if case.task in LABEL_SETS:
        task = data.load(case.task, case.rows)
        model = make(case.settings, random_state=case.seed, n_jobs=-1).fit(task.X, task.y)
        after = agreement(model.predict(task.X_test), task.y_test)
        before = agreement(model.set_params(threshold=0.5).predict(task.X_test), task.y_test)
        return paired(("empty", "f1_rows", "f1_micro"), before, after)
    before, after, ratios = [], [], []
    if case.task in data.RESPLIT:
        tasks = data.splits(case.task, N_SPLITS, rows=case.rows)
    else:
        tasks = [data.load(case.task, case.rows)]
    for seed, task in enumerate(tasks, case.seed):
        model = make(case.settings, random_state=seed).fit(task.X, task.y)
        plain, raw = model, without_calibration(model, task.X_test)
        if raw is None:
            plain = make(case.settings, random_state=seed, calibrate=False)
            fits = [one.fit for one in (model, plain) * 7]
            seconds = [cpu_seconds(fit, task.X, task.y)[1] for fit in fits]
            ratios.append(min(seconds[::2]) / min(seconds[1::2]))
        before.append(predicted(plain, task, raw))
        after.append(predicted(model, task))
    found = paired(("ece", "ece_of_five", "log_loss"), measures(before), measures(after))
    return found | ({"time_x": float(np.median(ratios))} if ratios else {})


def paired(names, before, after):
    """Return each measure before and after calibration, without measures that are not finite."""
    values = zip(names, np.transpose([before, after]).tolist(), strict=True)
    return {name: pair for name, pair in values if np.isfinite(pair).all()}


def without_calibration(model, X):
    """Return uncalibrated probabilities, or None if ``calibrate=False`` gives them."""
    if isinstance(model, xmtree.GambleClassifier):
        scores = np.atleast_2d(model.decision_function(X))
        return softmax(scores / (len(model.classes_) - 1), axis=1)
    if isinstance(model, xmtree.LdSMClassifier):
        scores = model.predict_scores(X).toarray().astype(float)
        return scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-12)
    return None


def predicted(model, task, raw=None):
    """Return the true labels, the five best labels and their probabilities, and the log loss.

    The probabilities are ``raw`` if these are given, and else of the model.
    """
    k = min(5, len(model.classes_))
    if raw is None:
        labels, likely = model.predict_topk(task.X_test, k, scores="probability")
    else:
        best = np.argsort(-raw, axis=1, kind="stable")[:, :k]
        labels, likely = model.classes_[best], np.take_along_axis(raw, best, axis=1)
    loss = np.nan
    # With more labels, the matrix of probabilities would take gigabytes.
    if len(model.classes_) <= 2000:
        found = model.predict_proba(task.X_test) if raw is None else raw
        loss = loss_of(task.y_test, found, model.classes_)
    return task.y_test, labels, likely.clip(0, 1), loss


def measures(predictions):
    """Return the calibration errors of the best label and of five, and the log loss."""
    y, labels, likely, losses = zip(*predictions, strict=True)
    y, labels, likely = np.concatenate(y), np.vstack(labels), np.vstack(likely)
    error = calibration_error(y, labels[:, 0], likely[:, 0])
    y = np.repeat(y, labels.shape[1])
    error_of_five = calibration_error(y, labels.ravel(), likely.ravel())
    return 100 * error, 100 * error_of_five, np.mean(losses)


def loss_of(y, probabilities, classes):
    known = np.isin(y, classes)
    own = np.searchsorted(classes, y[known])
    # A true label with probability 0 would make the loss infinite.
    clipped = np.clip(probabilities[known].astype(float), 1e-6, 1)
    return log_loss(own, clipped / clipped.sum(axis=1, keepdims=True), labels=range(len(classes)))


def agreement(sets, y_test):
    """Return the percentage of rows without a prediction, the mean F1 of rows and the micro F1."""
    hits = np.asarray(sets.multiply(y_test).sum(axis=1)).ravel()
    n_found, n_true = (np.asarray(one.sum(axis=1)).ravel() for one in (sets, y_test))
    both = n_found + n_true
    row_f1 = np.where(both > 0, 2 * hits / np.maximum(both, 1), 1)
    return 100 * np.array([np.mean(n_found == 0), row_f1.mean(), 2 * hits.sum() / both.sum()])
