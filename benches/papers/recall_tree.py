"""Recall Tree: Daume, Karampatziakis, Langford, Mineiro, 2016."""

import numpy as np
from harness import data
from harness.measuring import cpu_seconds
from papers.lomtree import AS_VW, PLAIN, error, size
from papers.statements import DEFAULT, PAPER, Item
from xmtree import LOMTreeClassifier, OAAClassifier, RecallTreeClassifier

#: The next-word task.
TEXT = "next-word-1"
#: Examples of the next-word task; the paper has 10^8.
N_TRAIN, N_TEST = 100_000, 20_000
#: Training examples of the recall bound.
N_BOUND = 200_000
#: Numbers of examples after which the progressive error is reported.
ORDERED = (10_000, 30_000, 100_000, 300_000)
#: Numbers of candidates that are compared.
CANDIDATES = (1, 2, 5, 10, 20, 50, 100)
#: Multiplier with which the bound equals the empirical recall.
RECALL_ITSELF = 1e-12
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


def in_order(settings, seed, rows):
    """Return progressive errors in the order of the text and in random order."""
    marks = [n for n in ORDERED if rows is None or n <= rows] or [rows]
    X, y = data.next_word(marks[-1])
    labels = np.unique(y)
    order = np.random.default_rng(seed).permutation(len(y))
    found = {}
    for name, at in (("in-order", np.arange(len(y))), ("permuted", order)):
        model = tree(settings, seed, n_passes=1)
        found[name] = []
        for first, last in zip((0, *marks), marks, strict=False):
            model.partial_fit(X[at[first:last]], y[at[first:last]], classes=labels)
            found[name].append(100 * model.progressive_loss_)
    return found | {"z": z_score(found["permuted"][-1], found["in-order"][-1], marks[-1])}


def z_score(first, second, n):
    """Return z of two error rates in %, each of ``n`` examples, by the N - 1 chi-squared test."""
    p = (first + second) / 200
    return float((first - second) / 100 * np.sqrt((2 * n - 1) / (4 * p * (1 - p))))


def candidates(settings, seed, rows, name):
    """Return errors by the number of candidates, with path features and without."""
    task = data.load(name, rows)
    stop = {"n_passes": 10, "early_stopping": True}
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


def bound(settings, seed, rows):
    """Return errors with the bound, with the recall itself, and without the rule."""
    task = data.words(N_BOUND, N_TEST, seed, rows)
    found = {}
    for name, multiplier in (("1", 1.0), ("recall", RECALL_ITSELF), ("0", 0.0)):
        model = tree(settings, seed, bern_hyper=multiplier, n_passes=1)
        found[name] = error(model.fit(task.X, task.y), task)
    return found


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
    """Return how many regressors a row touches: routers and candidates."""
    task = data.load(name, rows)
    model = tree(settings, seed, n_passes=1).fit(task.X, task.y)
    routers = model.decision_path(task.X_test)[0].sum(axis=1) - 1
    return {"touched": float(routers.mean()) + model.max_candidates_}


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
NUMBERS = {PAPER: RecallTreeClassifier.PAPER, DEFAULT: {"loss": "logistic"}}
ONE = {PAPER: RecallTreeClassifier.PAPER, DEFAULT: {"beam_size": 1}}
ITEMS = (
    Item("recall-words", next_word, THREE, 3, needs=(TEXT,)),
    Item("recall-order", in_order, MODES, 3, needs=(TEXT,)),
    *(
        Item(f"recall-candidates-{name}", candidates, NUMBERS, 5 if name == "letter" else 3, name)
        for name in OBJECTS
    ),
    Item("recall-bound", bound, MODES, 3, needs=(TEXT,)),
    *(Item(f"recall-space-{name}", space, STATE, data=name) for name in OBJECTS[1:]),
    Item("recall-touched", touched, ONE, data="naics2017-index"),
)
