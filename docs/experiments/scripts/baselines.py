"""Print the tables of baselines in docs/experiments/label-trees.md and gamble.md.

    python docs/experiments/scripts/baselines.py DATA [cpt] [plt] [ecoc] [boosting]

DATA is the folder of the data sets. Figures are percent: errors and calibration errors of rows held
out of the training part (a fifth), and for boosting of the test part; means over seeds 0 to 2.
"""

# Functions in loops are called before the loop goes on.
# ruff: noqa: B023

import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import AdaBoostClassifier
from sklearn.multiclass import OutputCodeClassifier
from sklearn.preprocessing import normalize, scale
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xmtree import GambleClassifier, OAAClassifier, RandomTreeClassifier, SAMMEClassifier
from xmtree.datasets import load_xmc
from xmtree.metrics import calibration_error, precision_at_k

SEEDS = range(3)
LOGISTIC = {"loss": "logistic", "learning_rate": 3.0}


def load(name, part="train", *, multilabel=False):
    X, y = load_xmc(Path(sys.argv[1]) / name / f"{part}.txt.xz", multilabel=multilabel)
    return X, (sp.csr_matrix(y) if multilabel else np.asarray(y))


def halves(n, seed):
    order = np.random.default_rng(100 + seed).permutation(n)
    return order[n // 5 :], order[: n // 5]


def mean(measure):
    """Return the means of what ``measure`` returns for each seed, as text."""
    return " | ".join(f"{value:.1f}" for value in np.mean([measure(s) for s in SEEDS], axis=0))


def cpt():
    """Print error and calibration error, without and with calibration; microseconds of a row."""
    for name in ("letter", "banking77", "naics2017-index"):
        X, y = load(name)
        classes = np.unique(y)
        for order in ("random", "given"):
            for loss in ({}, {"loss": "logistic"}, LOGISTIC):
                for prediction in ("path", "most_probable"):

                    def measure(seed, more=loss, how=prediction, order=order):
                        train, held_out = halves(len(y), seed)
                        found = []
                        for calibrate in (False, True):
                            model = RandomTreeClassifier(
                                prediction=how,
                                label_order=order,
                                calibrate=calibrate,
                                random_state=seed,
                                **more,
                            ).fit(X[train], y[train], classes=classes)
                            labels, p = model.predict_topk(X[held_out], 1, scores="probability")
                            wrong = np.mean(labels[:, 0] != y[held_out])
                            found += [wrong, calibration_error(y[held_out], labels[:, 0], p[:, 0])]
                        start = time.perf_counter()
                        model.predict(X[held_out])
                        used = (time.perf_counter() - start) / len(held_out)
                        return [*(100 * np.array(found)), 1e6 * used]

                    kind = " ".join(map(str, loss.values())) or "hinge"
                    print(f"| {name} | {order} | {kind} | {prediction} | {mean(measure)} |")


def plt():
    """Print P@1 and P@5; calibration error and F1 without calibration, then with it."""
    trees = [
        {"label_order": order, **more}
        for order in ("random", "given", "frequency")
        for more in ({}, {"learning_rate": 3.0})
    ]
    for name in ("bibtex", "stackex-cooking", "delicious"):
        X, y = load(name, multilabel=True)
        for settings in (None, *trees):

            def measure(seed, settings=settings):
                train, held_out = halves(X.shape[0], seed)
                found = []
                for calibrate in (False, True):
                    new = OAAClassifier if settings is None else RandomTreeClassifier
                    model = new(random_state=seed, calibrate=calibrate, **(settings or {}))
                    model.fit(X[train], y[train])
                    labels, p = model.predict_topk(X[held_out], 5, scores="probability")
                    true = y[held_out]
                    found.append(calibration_error(true, labels[:, 0], p[:, 0]))
                    sets = model.predict(X[held_out])
                    both = np.asarray(true.multiply(sets).sum(axis=1)).ravel()
                    sizes = np.asarray(true.sum(axis=1) + sets.sum(axis=1)).ravel()
                    found.append(np.mean(2 * both / np.maximum(sizes, 1)))
                return 100 * np.array([*(precision_at_k(true, labels, k) for k in (1, 5)), *found])

            print(f"| {name} | {settings or 'one-against-all'} | {mean(measure)} |")


def ecoc():
    """Print the error of error-correcting output codes, of a random tree and of OAA."""
    for name in ("letter", "banking77", "naics2017-index"):
        X, y = load(name)
        rows = scale(X.toarray()) if X.nnz > 0.5 * np.prod(X.shape) else normalize(X)
        n_classes = len(np.unique(y))
        learners = {
            f"{bits} bits": lambda seed, bits=bits: OutputCodeClassifier(
                LinearSVC(random_state=0), code_size=bits / n_classes, random_state=seed
            )
            for bits in (b * int(np.ceil(np.log2(n_classes))) for b in (2, 10))
        }
        learners["random tree"] = lambda seed: RandomTreeClassifier(
            random_state=seed, prediction="most_probable", calibrate=False
        )
        learners["OAA"] = lambda seed: OAAClassifier(random_state=seed, calibrate=False)
        for title, new in learners.items():

            def measure(seed, new=new, title=title):
                train, held_out = halves(len(y), seed)
                data = rows if "bits" in title else X
                model = new(seed).fit(data[train], y[train])
                return [100 * np.mean(model.predict(data[held_out]) != y[held_out])]

            print(f"| {name} | {title} | {mean(measure)} |", flush=True)


def adaboost_mh(X, y, X_test, seed, n_rounds):
    """Return predictions of AdaBoost.MH: Schapire and Singer, Machine Learning 37, 1999, Section 3.

    It is AdaBoost on a row for each pair of a row and a class, with the class as further columns.
    Trees have three leaves per class. With 15 the first often makes no error and ends the rounds.
    """
    n_classes = y.max() + 1

    def pairs(X):
        return np.hstack([np.repeat(X, n_classes, 0), np.tile(np.eye(n_classes), (len(X), 1))])

    tree = DecisionTreeClassifier(max_leaf_nodes=3 * n_classes, random_state=seed)
    model = AdaBoostClassifier(tree, n_estimators=n_rounds, random_state=seed)
    model.fit(pairs(X), np.eye(n_classes, dtype=int)[y].ravel())
    return model.decision_function(pairs(X_test)).reshape(-1, n_classes).argmax(axis=1)


def boosting():
    """Print test errors of SAMME, SAMME.R, GAMBLE (paper's and default) and AdaBoost.MH."""
    n_rounds, max_leaves = 100, 15
    paper = GambleClassifier.PAPER | {"n_estimators": n_rounds}
    same = {"n_estimators": n_rounds, "max_leaves": max_leaves, "splits": "exact"}
    learners = {
        "SAMME": lambda: SAMMEClassifier(**same),
        "SAMME.R": lambda: SAMMEClassifier(votes="real", **same),
        "SAMME.R, rate 0.1": lambda: SAMMEClassifier(votes="real", **same | {"learning_rate": 0.1}),
        "GAMBLE, paper": lambda: GambleClassifier(**paper),
        "GAMBLE, rate 0.1": lambda: GambleClassifier(**paper | {"learning_rate": 0.1}),
        "GAMBLE, default": GambleClassifier,
    }
    for name in ("glass", "vehicle", "segment", "splice", "pendigits", "letter"):
        X, y = load(name)
        X_test, y_test = load(name, "test")
        X, X_test = X.toarray(), X_test.toarray()
        if name == "letter":
            X, y = X[:5000], y[:5000]
        resplits = name in ("glass", "vehicle", "splice")

        def split(seed, X=X, y=y, X_test=X_test, y_test=y_test, resplits=resplits):
            if not resplits:
                return X, y, X_test, y_test
            all_rows, labels = np.vstack([X, X_test]), np.concatenate([y, y_test])
            order = np.random.default_rng(seed).permutation(len(labels))
            a, b = order[: len(y)], order[len(y) :]
            return all_rows[a], labels[a], all_rows[b], labels[b]

        for title, new in learners.items():

            def measure(seed, new=new):
                X, y, X_test, y_test = split(seed)
                model = new().set_params(random_state=seed).fit(X, y)
                return [100 * np.mean(model.predict(X_test) != y_test)]

            print(f"| {name} | {title} | {mean(measure)} |", flush=True)

        def measure(seed):
            X, y, X_test, y_test = split(seed)
            found = adaboost_mh(X, y, X_test, seed, n_rounds)
            return [100 * np.mean(found != y_test)]

        if len(y) < 5000:
            print(f"| {name} | AdaBoost.MH | {mean(measure)} |", flush=True)


for part in sys.argv[2:] or ["cpt", "plt", "ecoc", "boosting"]:
    print(part)
    globals()[part]()
