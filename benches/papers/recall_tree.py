"""Recall Tree: Daume, Karampatziakis, Langford, Mineiro, 2016."""

from itertools import pairwise
from math import log2

import numpy as np
import scipy.sparse as sp
from harness import data
from harness.measuring import cpu_seconds
from papers.lomtree import AS_VW, PLAIN, error, size
from papers.statements import DEFAULT, PAPER, Item, z_score
from sklearn.decomposition import TruncatedSVD
from sklearn.tree import DecisionTreeClassifier
from xmtree import LOMTreeClassifier, OAAClassifier, RecallTreeClassifier

#: The next-word task.
TEXT = "next-word-1"
#: Examples of the next-word task; the paper has 10^8.
N_TRAIN, N_TEST = 100_000, 20_000
#: Numbers of training examples by which the effect of the bound is compared.
BOUND_GROWTH = (30_000, 100_000, 300_000, 1_000_000, 3_000_000)
#: Classes of the synthetic rows, twenty rows each, over which times are compared.
CROSSING = (256, 1024, 4096)
#: Classes and rows of the partitions of the plane, and random settings that are tried.
N_CELLS, N_POINTS, N_PROBES = 16, 20_000, 59
#: Sets on which random settings are tried.
PROBED = ("letter", "naics2017-index")
#: Numbers of examples after which the progressive error is reported.
ORDERED = (10_000, 30_000, 100_000)
#: Numbers of candidates that are compared.
CANDIDATES = (1, 2, 5, 10, 20, 50, 100)
#: Multipliers of the bound; with the second it equals the empirical recall.
MULTIPLIERS = {"1": 1.0, "recall": 1e-12, "0": 0.0}
VW = "as the program (VW)"
MODES = {PAPER: RecallTreeClassifier.PAPER, DEFAULT: {}, VW: RecallTreeClassifier.VW}
#: ALOI, and the sets that replace it.
OBJECTS = ("aloi", "letter", "naics2017-index", "omniglot")
#: One-against-all as in the paper, and its accelerated form, which samples classes. Pruning keeps
#: the weights sparse.
OAA = AS_VW | {"loss": "logistic", "learning_rate": 1.0, "prune": 1e-6}
SAMPLED = OAA | {"n_negatives": 64}


def tree(settings, seed, **more):
    return RecallTreeClassifier(**settings | more, random_state=seed, **PLAIN)


def next_word(settings, seed, rows):
    """Return errors and times of Recall Tree, LOMtree and one-against-all after one pass."""
    task = data.words(N_TRAIN, N_TEST, seed, rows)
    one_pass = {"n_passes": 1}
    models = {
        "tree": tree(settings["tree"], seed, **one_pass),
        "LOMtree": LOMTreeClassifier(**settings["LOMtree"] | one_pass, random_state=seed, **PLAIN),
        "OAA": OAAClassifier(**settings["OAA"] | one_pass, random_state=seed, **PLAIN),
    }
    found = {}
    for name, model in models.items():
        _, found[f"{name} train"] = cpu_seconds(model.fit, task.X, task.y)
        model.predict(task.X_test[:10])
        answers, seconds = cpu_seconds(model.predict, task.X_test)
        found[f"{name} us"] = 1e6 * seconds / len(task.y_test)
        found[name] = 100 * float(np.mean(answers != task.y_test))
        found[f"{name} bytes"] = size(model)
    return found


def stretches(marks, rows):
    """Return the parts of a stream between numbers of examples, of which at most ``rows`` count."""
    ends = [n for n in marks if rows is None or n <= rows] or [rows]
    return [slice(*pair) for pair in pairwise((0, *ends))]


def in_order(settings, seed, rows):
    """Return progressive errors in the order of the text and in random order."""
    parts = stretches(ORDERED, rows)
    X, y = data.next_word(parts[-1].stop)
    labels = np.unique(y)
    order = np.random.default_rng(seed).permutation(len(y))
    found = {}
    for name, at in (("in-order", np.arange(len(y))), ("permuted", order)):
        model = tree(settings, seed, n_passes=1)
        found[name] = []
        for part in parts:
            model.partial_fit(X[at[part]], y[at[part]], classes=labels)
            found[name].append(100 * model.progressive_loss_)
    return found | {"z": z_score(found["permuted"][-1], found["in-order"][-1], len(y))}


def candidates(settings, seed, rows, name):
    """Return errors by the number of candidates, with path features and without."""
    task = data.load(name, rows)
    stop = {"n_passes": 2 if name == "omniglot" else 5, "early_stopping": True}
    k = len(np.unique(task.y))
    found = {}
    for kind in ("all", "none"):
        found[kind] = []
        for n in CANDIDATES:
            model = tree(settings, seed, max_candidates=min(n, k), path_features=kind, **stop)
            found[kind].append(error(model.fit(task.X, task.y), task))
    gains = np.subtract(found["none"], found["all"]).tolist()
    # If all classes are candidates, every path ends at the root, so this number is left out.
    widest = max(i for i, n in enumerate(CANDIDATES) if n < k)
    gain, few, most = gains[widest], found["all"][2], found["all"][-1]
    diminishing = (few - most) / (found["all"][0] - few)
    return found | {"gain": gain, "more": gain - gains[2], "diminishing": diminishing}


def path(settings, seed, rows, name):
    """Return the gain by path features with other routers, and with fewer columns."""
    task = data.load(name, rows)
    few = TruncatedSVD(128, random_state=seed).fit(task.X)
    X, X_test = (few.transform(part).astype(np.float32) for part in (task.X, task.X_test))
    settings = settings | {"max_candidates": 20, "n_passes": 10, "early_stopping": True}

    def gain(on, **more):
        models = (tree(settings, seed, path_features=kind, **more) for kind in ("none", "all"))
        without, with_path = (error(model.fit(on.X, on.y), on) for model in models)
        return without - with_path

    narrow = data.Task(X, task.y, X_test, task.y_test)
    routers = gain(task, router_importance="entropy")
    return {"paper": gain(task), "routers": routers, "columns": gain(narrow)}


def bound(settings, seed, rows):
    """Return errors with the bound, with the recall itself, and without the rule."""
    task = data.words(N_TRAIN, N_TEST, seed, rows)
    found = {}
    for name, multiplier in MULTIPLIERS.items():
        model = tree(settings, seed, bern_hyper=multiplier, n_passes=1)
        found[name] = error(model.fit(task.X, task.y), task)
    return found


def bound_growth(settings, seed, rows):
    """Return errors with the bound and without the rule, by the examples of a stream."""
    parts = stretches(BOUND_GROWTH, rows)
    task = data.words(parts[-1].stop, N_TEST, seed, rows)
    labels, found = np.unique(task.y), {"1": [], "0": []}
    for name, errors in found.items():
        model = tree(settings, seed, bern_hyper=MULTIPLIERS[name])
        for part in parts:
            model.partial_fit(task.X[part], task.y[part], classes=labels)
            errors.append(error(model, task))
    return found


def crossing(settings, seed, rows):
    """Return times of one-against-all over ours by the number of classes."""
    found = {"training": [], "prediction": []}
    for k in CROSSING:
        task = data.load(f"crossing-{k}", rows)
        oaa = OAAClassifier(**settings["OAA"], n_passes=1, random_state=seed, **PLAIN)
        models = oaa, tree(settings["tree"], seed, n_passes=1)
        theirs, own = (cpu_seconds(model.fit, task.X, task.y)[1] for model in models)
        found["training"].append(theirs / own)
        for model in models:
            model.predict(task.X_test[:10])
        theirs, own = (cpu_seconds(model.predict, task.X_test)[1] for model in models)
        found["prediction"].append(theirs / own)
    return found


def partition(kind, n, random):
    """Return points of the plane with the labels of Figure 3: of a Voronoi diagram, or a tree."""
    X = random.random((n, 2))
    if kind == "Voronoi":
        centers = random.random((N_CELLS, 2))
        return X, ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    y = np.zeros(n, dtype=int)
    while y.max() < N_CELLS - 1:
        below = y * 2
        for k in range(y.max() + 1):
            x = X[y == k, random.integers(2)]
            below[y == k] += x > np.quantile(x, random.uniform(0.3, 0.7))
        y = below
    return X, y


def partitions(settings, seed, rows):
    """Return errors of one-against-all, of a tree with a leaf per label, and of OAA(x, path)."""
    found = {}
    for kind in ("Voronoi", "tree"):
        n = rows or N_POINTS
        X, y = partition(kind, 2 * n, np.random.default_rng(seed))
        grown = DecisionTreeClassifier(max_leaf_nodes=N_CELLS, criterion="entropy", random_state=0)
        found[f"{kind}, tree"] = error(grown.fit(X[:n], y[:n]), data.split((X, y), n))
        with_path = sp.hstack([sp.csr_matrix(X), grown.decision_path(X)]).tocsr()
        for name, all_rows in (("OAA", X), ("OAA with path", with_path)):
            task = data.split((all_rows, y), n)
            model = OAAClassifier(**settings, n_passes=20, random_state=seed, **PLAIN)
            found[f"{kind}, {name}"] = error(model.fit(task.X, task.y), task)
    return found


def tuned(settings, seed, rows, name):
    """Return the test error by default, and of the best of ``N_PROBES`` random settings."""
    passes = {"n_passes": 3}
    task = data.load(name, rows)
    stop = {"n_passes": 10, "early_stopping": True}
    random = np.random.default_rng(seed)
    n, *order = len(task.y) // 10, *random.permutation(len(task.y))
    held, rest = order[:n], order[n:]
    part = data.Task(task.X[rest], task.y[rest], task.X[held], task.y[held])
    levels = log2(len(np.unique(task.y)))

    def found(more, on):
        return error(tree(settings, seed, **more).fit(on.X, on.y), on)

    probes = [
        {
            "learning_rate": float(10 ** random.uniform(-1, 1)),
            "bern_hyper": float(10 ** random.uniform(-2, 1)),
            "max_candidates": int(levels * random.uniform(1, 8)),
            "max_depth": int(levels * random.uniform(0.5, 1.5)),
        }
        for _ in range(N_PROBES)
    ]
    best = min(probes, key=lambda tried: found(tried | passes, part))
    return {"default": found(stop, task), "tuned": found(best | stop, task)}


def space(settings, seed, rows, name):
    """Return the file sizes of LOMtree relative to Recall Tree, and of it relative to OAA."""
    task = data.load(name, rows)
    one_pass = {"n_passes": 1}
    nodes = {"nodes_per_class": 64.0} | one_pass
    models = (
        tree(settings["tree"], seed, **one_pass),
        LOMTreeClassifier(**settings["LOMtree"] | nodes, random_state=seed, **PLAIN),
        OAAClassifier(**settings["OAA"] | one_pass, random_state=seed, **PLAIN),
    )
    own, lomtree, oaa = (size(model.fit(task.X, task.y)) for model in models)
    return {"LOMtree": lomtree / own, "OAA": own / oaa}


def touched(settings, seed, rows, name):
    """Return how many routers and candidates a row touches, and the rows at the depth's limit."""
    task = data.load(name, rows)
    model = tree(settings, seed, n_passes=1).fit(task.X, task.y)
    routers = model.decision_path(task.X_test)[0].sum(axis=1) - 1
    deepest = 100 * float(np.mean(routers >= model.max_depth_))
    return {"touched": float(routers.mean()) + model.max_candidates_, "at the limit": deepest}


PAPERS = {
    "tree": RecallTreeClassifier.PAPER,
    "LOMtree": LOMTreeClassifier.PAPER | {"learning_rate": 1.0},
    "OAA": SAMPLED,
}
THREE = {PAPER: PAPERS, DEFAULT: {"tree": {}, "LOMtree": {}, "OAA": {"prune": 0.01}}}
STATE = {
    PAPER: {"tree": RecallTreeClassifier.PAPER, "LOMtree": LOMTreeClassifier.PAPER, "OAA": AS_VW},
    DEFAULT: {"tree": {}, "LOMtree": {}, "OAA": {}},
}
ALONE = {PAPER: RecallTreeClassifier.PAPER}
CROSSED = STATE | {PAPER: STATE[PAPER] | {"OAA": AS_VW | {"loss": "logistic"}}}
ONE = {PAPER: RecallTreeClassifier.PAPER, DEFAULT: {"beam_size": 1}}
ITEMS = (
    Item("recall-words", next_word, THREE, needs=(TEXT,)),
    Item("recall-order", in_order, MODES, needs=(TEXT,)),
    *(Item(f"recall-candidates-{name}", candidates, ALONE, data=name) for name in OBJECTS),
    Item("recall-bound", bound, MODES, needs=(TEXT,)),
    *(Item(f"recall-space-{name}", space, STATE, data=name) for name in OBJECTS[1:]),
    *(Item(f"recall-touched-{name}", touched, ONE, data=name) for name in OBJECTS[1:]),
    Item("recall-path", path, ALONE, data="naics2017-index"),
    Item("recall-bound-growth", bound_growth, ALONE, 1, needs=(TEXT,)),
    Item("recall-crossing", crossing, CROSSED),
    Item("recall-partitions", partitions, {PAPER: {"loss": "softmax"}}),
    *(Item(f"recall-tuned-{name}", tuned, ALONE, data=name) for name in PROBED),
)
