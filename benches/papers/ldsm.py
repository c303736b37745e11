"""LdSM: Majzoubi and Choromanska, AISTATS 2020."""

from math import log

import numpy as np
import scipy.sparse as sp
from harness import data
from harness.measuring import cpu_seconds
from papers.statements import DEFAULT, PAPER, Item
from sklearn.preprocessing import normalize
from xmtree import LdSMClassifier
from xmtree.metrics import ndcg_at_k, precision_at_k, propensities, psndcg_at_k, psp_at_k

TREES = (1, 5, 10, 20, 50)
MAX_NODES = (100, 300, 1000, 3000, 8000, 32000)
#: Trees of the curve over the nodes.
N_CURVE = 10
EPOCHS = (2, 5, 20)
#: Re-ranking in logarithms (Jain et al., KDD 2016): its gamma, weight, and labels of a row.
GAMMA, BETA, N_RERANKED = 30.0, 0.8, 100
#: With 8,000 nodes trees are as deep as in Table 6, with the paper's 32,000 or 64,000 deeper.
LARGE = {"max_nodes": 8000}
#: Settings per data set: arities of Table 6, and re-ranking of the last set as in Section 5. The
#: learning rate of bibtex is the best on held-out rows; on delicious 0.1 to 0.3 were equal.
OWN = {
    "bibtex": LARGE | {"learning_rate": 0.3},
    "delicious": LARGE,
    "mediamill": LARGE,
    "amazoncat-13k": {"arity": 2},
    "delicious-200k": {"arity": 2},
    "amazon-670k": {"arity": 2, "beta": 0.8},
}
SETS = (
    *("bibtex", "delicious", "mediamill"),
    *("amazoncat-13k", "wiki10-31k", "delicious-200k", "amazon-670k"),
)


def own(name):
    """Return the paper's settings for a data set."""
    return LdSMClassifier.PAPER | OWN.get(name, {})


def modes(name):
    """Return settings with the paper's M, with the other M, and the default."""
    settings = own(name)
    arities = settings["arity"], 6 - settings["arity"]
    return {f"{PAPER}, M = {m}": settings | {"arity": m} for m in arities} | {DEFAULT: {}}


def ldsm(settings, seed, **more):
    return LdSMClassifier(**settings | more, random_state=seed, n_jobs=1)


def measures(task, model):
    """Return the measures of Tables 2 and 9 in %, with propensities from the test part's N."""
    return measured(task, model.predict_topk(task.X_test, 5)[0])


def measured(task, best):
    """Return the same for the five best labels of each row."""
    known = of_test_part(propensities(task.y), task)
    found = {}
    for name, measure, more in (
        ("P", precision_at_k, ()),
        ("N", ndcg_at_k, ()),
        ("PSP", psp_at_k, (known,)),
        ("PSN", psndcg_at_k, (known,)),
    ):
        values = 100 * measure(task.y_test, best, *more, [1, 3, 5], empty="skip")
        found |= {f"{name}@{k}": float(v) for k, v in zip((1, 3, 5), values, strict=True)}
    return found


def of_test_part(usual, task):
    """Return the propensities with N the number of test rows instead of training rows.

    N occurs in C = (ln N - 1)(B + 1)^A, a factor of 1 / p - 1.
    """
    evaluated, trained = (log(part.shape[0]) - 1 for part in (task.y_test, task.y))
    return 1 / (1 + (1 / usual - 1) * evaluated / trained)


def deepest(model):
    """Return the number of levels of the deepest tree."""
    return int(max(tree.depth.max() for tree in model.trees_))


def sizes(settings, seed, rows, name):
    """Return the size of a data set."""
    task = data.load(name, rows)
    n, columns, labels = task.shape
    found = {"train": n, "test": task.X_test.shape[0], "features": columns, "labels": labels}
    return found | {"labels a row": task.y.nnz / n}


def table(settings, seed, rows, name):
    """Return measures and depths by the number of trees."""
    return by_trees(settings, seed, data.load(name, rows))


def resplit(settings, seed, rows, name):
    """Return the same on a random split of the sizes of the official one."""
    return by_trees(settings, seed, data.redrawn(data.load(name, rows), seed))


def by_trees(settings, seed, task):
    model = ldsm(settings, seed)
    if model.scorers != "none":
        return measures(task, model.fit(task.X, task.y))
    # Trees are added to the ensemble instead of training it again.
    model.set_params(warm_start=True)
    by_trees = {"P@1": [], "N@5": []}
    for count in TREES:
        found = measures(task, model.set_params(n_estimators=count).fit(task.X, task.y))
        for key, values in by_trees.items():
            values.append(found[key])
    first, levels = by_trees["P@1"], deepest(model)
    share = log(model.arity) / log(task.y.shape[1])
    found |= {f"{key} by trees": values for key, values in by_trees.items()}
    early = (first[2] - first[0]) - (first[4] - first[2])
    return found | {"early": early, "levels": levels, "levels in log_M K": levels * share}


def by_nodes(settings, seed, rows, name):
    """Return P@1, PSP@1 and depth by the number of nodes."""
    task = data.load(name, rows)
    found = {"P@1": [], "PSP@1": [], "levels": []}
    for most in MAX_NODES:
        model = ldsm(settings, seed, max_nodes=most, n_estimators=N_CURVE).fit(task.X, task.y)
        new = measures(task, model) | {"levels": deepest(model)}
        for key, values in found.items():
            values.append(new[key])
    return found | {"highest PSP@1": max(found["PSP@1"])}


def by_epochs(settings, seed, rows, name):
    """Return the P@1 lost with few epochs, and the speedup over many."""
    task = data.load(name, rows)
    first, seconds = [], []
    for most in EPOCHS:
        model = ldsm(settings, seed, n_epochs=most, n_estimators=N_CURVE)
        seconds.append(cpu_seconds(model.fit, task.X, task.y)[1])
        first.append(measures(task, model)["P@1"])
    return {"P@1": first, "seconds": seconds}


def objective(settings, seed, rows):
    """Return J after the first and the last epoch, at the root and below it."""
    task = data.load("delicious", rows)
    tree = ldsm(settings, seed).fit(task.X, task.y).trees_[0]
    inner = tree.children[:, 0] >= 0
    first, last = tree.j_by_epoch[inner][:, [0, -1]].T
    trained = tree.j[inner]
    return {
        "fall": float((first - last).mean()),
        "root": float(last[0] - last[1:].mean()),
        "trained root": float(trained[0] - trained[1:].mean()),
        "faster": float((first - last)[1:].mean() - (first - last)[0]),
        "levels": int(tree.depth.max()),
    }


#: One tree whose nodes run all epochs over all of their examples.
TREE = {"n_estimators": 1, "n_epochs": 20, "max_updates": None, "keep_statistics": True}
WHOLE = {
    PAPER: LdSMClassifier.PAPER | {"arity": 2, "max_nodes": 32_000} | TREE,
    DEFAULT: TREE | {"scorers": "none"},
}


def rerank(settings, seed, rows, name):
    """Return how much re-ranking changes measures and prediction time."""
    task = data.load(name, rows)
    seconds, found = [], []
    for beta in (1.0, 0.8):
        model = ldsm(settings, seed, beta=beta).fit(task.X, task.y)
        found.append(measures(task, model))
        seconds.append(cpu_seconds(model.predict_topk, task.X_test, 5)[1])
        if beta == 1.0:
            in_logarithms = measured(task, logarithmic(task, model))
    gains = {key: round(found[1][key] - found[0][key], 2) for key in ("P@1", "PSP@1")}
    gains |= {f"{key}, log": in_logarithms[key] - found[0][key] for key in gains}
    return gains | {"slower": 100 * (seconds[1] / seconds[0] - 1)}


def logarithmic(task, model):
    """Return the best labels by ``BETA`` log(score) - (1 - ``BETA``) log(1 + exp(gamma / 2 d^2)).

    d is the distance of a row of length 1 from the mean of the label's rows.
    """
    labels, scores = model.predict_topk(task.X_test, N_RERANKED)
    X, X_test = normalize(task.X), normalize(task.X_test)
    means = sp.csr_matrix(normalize(task.y, norm="l1", axis=0).T @ X)
    squares = np.asarray(means.multiply(means).sum(axis=1)).ravel()
    best = np.empty((len(labels), 5), dtype=labels.dtype)
    for first in range(0, len(labels), 1000):
        part = slice(first, first + 1000)
        products = np.take_along_axis((X_test[part] @ means.T).toarray(), labels[part], axis=1)
        distances = 1 + squares[labels[part]] - 2 * products
        near = -np.logaddexp(0, GAMMA / 2 * distances)
        score = BETA * np.log(np.maximum(scores[part], 1e-30)) + (1 - BETA) * near
        order = np.argsort(-score, axis=1, kind="stable")[:, :5]
        best[part] = np.take_along_axis(labels[part], order, axis=1)
    return best


def times(settings, seed, rows, name):
    """Return processor times on one thread."""
    task = data.load(name, rows)
    model = ldsm(settings, seed)
    training = cpu_seconds(model.fit, task.X, task.y)[1]
    model.predict_topk(task.X_test, 5)
    predicting = cpu_seconds(model.predict_topk, task.X_test, 5)[1]
    return {"us": 1e6 * predicting / task.X_test.shape[0], "training": training}


RERANKED = {PAPER: own("amazon-670k") | {"n_estimators": 10}, DEFAULT: {}}
ITEMS = (
    *(Item(f"ldsm-sizes-{name}", sizes, {PAPER: {}}, 1, name) for name in SETS[:2]),
    *(Item(f"ldsm-{name}", table, modes(name), data=name) for name in SETS),
    Item("ldsm-resplit", resplit, {PAPER: own("bibtex")}, 10, data="bibtex"),
    *(Item(f"ldsm-nodes-{name}", by_nodes, {PAPER: own(name)}, data=name) for name in SETS[:2]),
    *(Item(f"ldsm-epochs-{name}", by_epochs, {PAPER: own(name)}, data=name) for name in SETS[:2]),
    Item("ldsm-objective", objective, WHOLE, needs=("delicious",)),
    Item("ldsm-rerank-onet-titles", rerank, RERANKED, data="onet-titles"),
    *(Item(f"ldsm-times-{name}", times, {PAPER: own(name)}, 3, name) for name in SETS[:2]),
)
