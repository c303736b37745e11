"""How sure learners are of their best label, and how often it is right.

    pytest benches/test_bench_calibration.py --figures benches/figures-calibration.txt

Expected calibration error (Guo et al. 2017, 15 bins) on test rows in per cent, of the best label
and of the five best, before -> after calibration, the log loss, and the processor time of training
with calibration over that without, where it can be left out. Before: the softmax of the scores as
they are (of LOMtree and LdSM, shares of them). A few minutes.
"""

from time import process_time

import numpy as np
import pytest
import xmtree
from online_learners import ONLINE_LEARNERS
from scipy.special import softmax
from sklearn.metrics import log_loss
from xmtree.datasets import make_xmc
from xmtree.metrics import calibration_error

LEARNERS = {
    **ONLINE_LEARNERS,
    "LdSM": xmtree.LdSMClassifier,
    "GAMBLE": xmtree.GambleClassifier,
}
#: Data sets, their seeds, and learners that would take minutes or gigabytes there. Text has too
#: many columns for GAMBLE.
SETS = {
    "letter": (2, []),
    "vehicle": (2, []),
    "banking77": (2, ["GAMBLE"]),
    "news20-bydate": (2, ["GAMBLE", "LdSM", "10 LOMtrees"]),
    "naics2017-index": (2, ["GAMBLE"]),
    "made, 5,000": (1, ["GAMBLE", "LdSM", "10 LOMtrees", "OAA"]),
    "made, 27,000": (1, ["GAMBLE", "LdSM", "10 LOMtrees", "OAA"]),
}
#: Rows that are learned of those made, and labels; 4,000 more are predicted.
MADE = {"made, 5,000": (50_000, 5_000), "made, 27,000": (60_000, 27_000)}


def made(n_rows, n_labels):
    X, y = make_xmc(n_rows + 4000, 10_000, n_labels, noise=0.5, random_state=0)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def without_calibration(model, X):
    """Probabilities of all classes from the scores as they are."""
    if isinstance(model, xmtree.GambleClassifier):
        scores = np.atleast_2d(model.decision_function(X))
        return softmax(scores / (len(model.classes_) - 1), axis=1)
    if isinstance(model, xmtree.LdSMClassifier):
        scores = model.predict_scores(X).toarray().astype(float)
        return scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-12)
    return None


def ranked(model, X, chances):
    """The five best labels of each row and their probabilities."""
    k = min(5, len(model.classes_))
    if chances is None:
        labels, likely = model.predict_topk(X, k, scores="probability")
        return labels, likely.clip(0, 1)
    best = np.argsort(-chances, axis=1, kind="stable")[:, :k]
    return model.classes_[best], np.take_along_axis(chances, best, axis=1).clip(0, 1)


def loss_of(y, chances, classes):
    known = np.isin(y, classes)
    own = np.searchsorted(classes, y[known])
    # A label without probability would make the loss infinite.
    chances = np.clip(chances[known].astype(float), 1e-6, 1)
    return log_loss(own, chances / chances.sum(axis=1, keepdims=True), labels=range(len(classes)))


def measured(model, X, y, chances=None):
    labels, likely = ranked(model, X, chances)
    error = calibration_error(y, labels[:, 0], likely[:, 0])
    of_five = calibration_error(np.repeat(y, labels.shape[1]), labels.ravel(), likely.ravel())
    loss = np.nan
    # All probabilities of more labels would take gigabytes.
    if len(model.classes_) <= 2000:
        loss = loss_of(y, model.predict_proba(X) if chances is None else chances, model.classes_)
    return 100 * error, 100 * of_five, loss


def trained(model, X, y):
    start = process_time()
    return model.fit(X, y), process_time() - start


@pytest.mark.parametrize("name", SETS)
def test_calibration(benchmark, real, say, name):
    X, y, X_test, y_test = made(*MADE[name]) if name in MADE else real(name)
    y_test = np.asarray(y_test)
    n_seeds, left_out = SETS[name]

    def run():
        for title, new in LEARNERS.items():
            if title in left_out:
                continue
            before, after, times = [], [], []
            for seed in range(n_seeds):
                model, time = trained(new(random_state=seed), X, y)
                chances, plain = without_calibration(model, X_test), model
                if chances is None:
                    plain, without = trained(new(random_state=seed, calibrate=False), X, y)
                    times.append(time / without)
                before.append(measured(plain, X_test, y_test, chances))
                after.append(measured(model, X_test, y_test))
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


@pytest.mark.parametrize("name", ["onet-titles", "bibtex"])
@pytest.mark.parametrize("title", ["OAA", "LdSM"])
def test_label_sets(benchmark, label_sets, say, name, title):
    """What is predicted by default, and above a probability of 1/2."""
    task = label_sets(name)

    def run():
        model = LEARNERS[title](random_state=0, n_jobs=-1).fit(task.X, task.y)
        after = agreement(model.predict(task.X_test), task.y_test)
        before = agreement(model.set_params(threshold=0.5).predict(task.X_test), task.y_test)
        measures = zip(
            ("rows without a label", "F1 of rows", "micro F1"), before, after, strict=True
        )
        for measure, old, new in measures:
            say(f"{name:16}{title}, label sets: {measure:21}{old:5.1f} -> {new:5.1f} %")

    benchmark.pedantic(run, rounds=1)


def agreement(sets, y_test):
    """Per cent of rows for which nothing is predicted, F1 averaged over rows, micro F1."""
    hits = np.asarray(sets.multiply(y_test).sum(axis=1)).ravel()
    n_found, n_true = (np.asarray(one.sum(axis=1)).ravel() for one in (sets, y_test))
    both = n_found + n_true
    of_rows = np.where(both > 0, 2 * hits / np.maximum(both, 1), 1)
    return 100 * np.array([np.mean(n_found == 0), of_rows.mean(), 2 * hits.sum() / both.sum()])
