"""How sure learners are of their best label, and how often it is right.

    pytest benches/test_bench_calibration.py --figures benches/figures-calibration.txt

Expected calibration error (Guo et al. 2017, 15 bins) on test rows in per cent, of the best label
and of the five best, before -> after calibration, the log loss, and the training time with
calibration over that without, where it can be left out. Before: the softmax of the scores as they
are (of LOMtree and LdSM, shares of them).
"""

from time import perf_counter

import numpy as np
import pytest
import xmtree
from online_learners import ONLINE_LEARNERS
from scipy.special import softmax
from sklearn.metrics import log_loss
from xmtree.metrics import calibration_error

#: Text has too many columns for GAMBLE.
DENSE = ["letter", "pendigits", "satimage", "vehicle"]
SETS = [*DENSE, "news20-bydate", "banking77", "naics2017-index", "omniglot"]
LEARNERS = {
    **ONLINE_LEARNERS,
    "LdSM": xmtree.LdSMClassifier,
    "GAMBLE": xmtree.GambleClassifier,
}
SEEDS = range(3)


def without_calibration(model, X):
    """Probabilities of all classes from the scores as they are."""
    if isinstance(model, xmtree.GambleClassifier):
        scores = np.atleast_2d(model.decision_function(X))
        return softmax(scores / (len(model.classes_) - 1), axis=1)
    if isinstance(model, xmtree.LdSMClassifier):
        scores = model.predict_scores(X).toarray().astype(float)
        return scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-12)
    return None


def measured(y, chances, classes):
    k = min(5, len(classes))
    best = np.argsort(-chances, axis=1, kind="stable")[:, :k]
    likely = np.take_along_axis(chances, best, axis=1).clip(0, 1)
    error = calibration_error(y, classes[best[:, 0]], likely[:, 0])
    of_five = calibration_error(np.repeat(y, k), classes[best].ravel(), likely.ravel())
    known = np.isin(y, classes)
    own = np.searchsorted(classes, y[known])
    # A label without probability would make the loss infinite.
    chances = np.clip(chances[known].astype(float), 1e-6, 1)
    loss = log_loss(own, chances / chances.sum(axis=1, keepdims=True), labels=range(len(classes)))
    return 100 * error, 100 * of_five, loss


def trained(model, X, y):
    start = perf_counter()
    return model.fit(X, y), perf_counter() - start


@pytest.mark.parametrize("name", SETS)
def test_calibration(benchmark, real, say, name):
    X, y, X_test, y_test = real(name)
    y_test = np.asarray(y_test)

    def run():
        for title, new in LEARNERS.items():
            if title == "GAMBLE" and name not in DENSE:
                continue
            before, after, times = [], [], []
            for seed in SEEDS:
                model, time = trained(new(random_state=seed), X, y)
                chances = without_calibration(model, X_test)
                if chances is None:
                    plain, without = trained(new(random_state=seed, calibrate=False), X, y)
                    chances = plain.predict_proba(X_test)
                    times.append(time / without)
                before.append(measured(y_test, chances, model.classes_))
                after.append(measured(y_test, model.predict_proba(X_test), model.classes_))
            measures = zip(
                ("error", "of five", "log loss"),
                np.mean(before, axis=0),
                np.mean(after, axis=0),
                strict=True,
            )
            line = "".join(f"   {what} {old:6.3f} -> {now:6.3f}" for what, old, now in measures)
            time = f"   time {np.median(times):.2f}" if times else ""
            say(f"{name:16}{title:12}{line}{time}")

    benchmark.pedantic(run, rounds=1)


@pytest.mark.parametrize("name", ["onet-titles", "bibtex", "stackex-cooking", "makupalat"])
def test_label_sets(benchmark, label_sets, say, name):
    """What one-against-all predicts above its own threshold, and above score 0."""
    task = label_sets(name)

    def run():
        before, after = [], []
        for seed in SEEDS:
            for calibrate, found in ((False, before), (True, after)):
                model = xmtree.OAAClassifier(random_state=seed, n_jobs=-1, calibrate=calibrate)
                sets = model.fit(task.X, task.y).predict(task.X_test)
                found.append(agreement(sets, task.y_test))
        for title, old, new in zip(
            ("rows without a label", "F1 of rows", "micro F1"),
            np.mean(before, axis=0),
            np.mean(after, axis=0),
            strict=True,
        ):
            say(f"{name:16}OAA, label sets: {title:21}{old:5.1f} -> {new:5.1f} %")

    benchmark.pedantic(run, rounds=1)


def agreement(sets, y_test):
    """Per cent of rows for which nothing is predicted, F1 averaged over rows, micro F1."""
    hits = np.asarray(sets.multiply(y_test).sum(axis=1)).ravel()
    n_found, n_true = (np.asarray(one.sum(axis=1)).ravel() for one in (sets, y_test))
    both = n_found + n_true
    of_rows = np.where(both > 0, 2 * hits / np.maximum(both, 1), 1)
    return 100 * np.array([np.mean(n_found == 0), of_rows.mean(), 2 * hits.sum() / both.sum()])
