"""Recall Tree: Daume, Karampatziakis, Langford, Mineiro, 2016."""

import numpy as np
from harness import data
from harness.measuring import cpu_seconds
from papers.lomtree import AS_VW, error, size
from papers.statements import DEFAULT, PAPER, Claim, Item, Line
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
OTHER_DATA = (
    "The text is different: novels with 26,000 words, not Wikipedia with 80,000, and hundreds of "
    "times fewer examples."
)
#: One-against-all as in the paper, and its accelerated form, which samples classes. Pruning keeps
#: the weights sparse.
OAA = AS_VW | {"loss": "logistic", "learning_rate": 1.0, "prune": 1e-6}
SAMPLED = OAA | {"n_negatives": 64}


def tree(settings, seed, **more):
    return RecallTreeClassifier(**settings | more, random_state=seed, n_jobs=1)


def next_word(settings, seed, rows):
    """Return errors and times of Recall Tree, LOMtree and one-against-all after one pass."""
    task = data.words(N_TRAIN, N_TEST, seed, rows)
    one_pass = {"n_passes": 1}
    models = {
        "tree": tree(settings["tree"], seed, **one_pass),
        "LOMtree": LOMTreeClassifier(**settings["LOMtree"] | one_pass, random_state=seed, n_jobs=1),
        "OAA": OAAClassifier(**settings["OAA"] | one_pass, random_state=seed, n_jobs=1),
    }
    found = {}
    for name, model in models.items():
        _, found[f"{name} train"] = cpu_seconds(model.fit, task.X, task.y)
        model.predict(task.X_test[:10])
        answers, seconds = cpu_seconds(model.predict, task.X_test)
        found[f"{name} us"] = 1e6 * seconds / len(task.y_test)
        found[name] = 100 * float(np.mean(answers != task.y_test))
    return found


WORDS = Item(
    "recall-words",
    f"Next word: {N_TRAIN:,} examples to learn, {N_TEST:,} to test, one pass",
    next_word,
    {
        PAPER: {
            "tree": RecallTreeClassifier.PAPER,
            "LOMtree": LOMTreeClassifier.PAPER | {"learning_rate": 1.0},
            "OAA": SAMPLED,
        },
        DEFAULT: {"tree": {}, "LOMtree": {}, "OAA": {"prune": 0.01}},
    },
    (
        Line("Table 2", "test error %, Recall Tree", "tree", "78.0 (LTCB)", OTHER_DATA),
        Line("Table 2", "test error %, LOMtree", "LOMtree", "78.4 (LTCB)", OTHER_DATA),
        Line("Table 2", "test error %, OAA", "OAA", "78.7 (LTCB)", OTHER_DATA),
        Claim(
            "Section 4.2",
            "at least as good as LOMtree, ahead by % points",
            lambda values: values["LOMtree"] - values["tree"],
        ),
        Line("Table 2", "us a prediction, Recall Tree", "tree us", "76"),
        Line("Table 2", "us a prediction, LOMtree", "LOMtree us", "51"),
        Line("Table 2", "us a prediction, OAA", "OAA us", "3600"),
        Line(
            "Table 2",
            "training time, Recall Tree over LOMtree",
            lambda values: values["tree train"] / values["LOMtree train"],
            "1.1",
        ),
        Line(
            "Table 2",
            "prediction time, OAA over Recall Tree",
            lambda values: values["OAA us"] / values["tree us"],
            "47",
        ),
    ),
    note="The examples are the first of the text in random order, so test examples come from the "
    "same novels; the paper splits by articles. In the paper's mode one-against-all samples 64 "
    "classes per example. By default it trains all classes and drops weights below 0.01. Both "
    "store sparse weights, so a prediction takes less than linear time in the classes.",
    needs=(TEXT,),
)


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
    return found


ORDER = Item(
    "recall-order",
    f"Next word: progressive error after {', '.join(f'{n:,}' for n in ORDERED)} examples",
    in_order,
    MODES,
    (
        Line(
            "Figure 5a", "progressive error %, in order", "in-order", "73.3 in the end", OTHER_DATA
        ),
        Line(
            "Figure 5a", "progressive error %, permuted", "permuted", "74.6 in the end", OTHER_DATA
        ),
        Claim(
            "Figure 5a",
            "the order of the text lowers the error by",
            lambda values: values["permuted"][-1] - values["in-order"][-1],
        ),
    ),
    needs=(TEXT,),
)


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
    gains = np.subtract(found["none"], found["all"])
    # If all classes are candidates, every path ends at the root, so this number is left out.
    widest = max(i for i, n in enumerate(CANDIDATES) if n < k)
    return found | {"gain": float(gains[widest]), "more": float(gains[widest] - gains[2])}


def of_candidates(name):
    numbers = ", ".join(map(str, CANDIDATES))
    return Item(
        f"recall-candidates-{name}",
        "Candidates a leaf, with path features and without",
        candidates,
        {PAPER: RecallTreeClassifier.PAPER, DEFAULT: {"loss": "logistic"}},
        (
            Line("Figure 5b", "error %, with path features", "all", "35 to 9 (plot, ALOI)"),
            Claim(
                "Section 4.4",
                "100 candidates lower the error of one by",
                lambda values: values["all"][0] - values["all"][-1],
            ),
            Claim(
                "Section 4.4",
                "path features lower the error with the most candidates below K by",
                "gain",
            ),
            Claim("Section 4.4", "and that gain exceeds the one of 5 candidates by", "more"),
        ),
        note=f"Curves have {numbers} candidates. Training has up to ten passes with early stopping "
        "on a tenth of the rows, as in the paper.",
        data=name,
    )


def bound(settings, seed, rows):
    """Return errors with the bound, with the recall itself, and without the rule."""
    task = data.words(N_BOUND, N_TEST, seed, rows)
    found = {}
    for name, multiplier in (("1", 1.0), ("recall", RECALL_ITSELF), ("0", 0.0)):
        model = tree(settings, seed, bern_hyper=multiplier, n_passes=1)
        found[name] = error(model.fit(task.X, task.y), task)
    return found


BOUND = Item(
    "recall-bound",
    f"Next word: multiplier of the recall bound, {N_BOUND:,} examples",
    bound,
    MODES,
    (
        Line("Section 4.5", "error %, multiplier 1", "1", "78 (LTCB)", OTHER_DATA),
        Line("Section 4.5", "error %, empirical recall itself (1e-12)", "recall", "91 (LTCB)"),
        Line("Section 4.5", "error %, rule switched off (0)", "0", "not given"),
        Claim(
            "Section 4.5",
            "the bound lowers the error of the recall itself by",
            lambda values: values["recall"] - values["1"],
        ),
    ),
    needs=(TEXT,),
)


def space(settings, seed, rows, name):
    """Return the file sizes of LOMtree relative to Recall Tree, and of it relative to OAA."""
    task = data.load(name, rows)
    one_pass = {"n_passes": 1}
    nodes = {"nodes_per_class": 64.0} | one_pass
    models = (
        tree(settings["tree"], seed, **one_pass),
        LOMTreeClassifier(**settings["LOMtree"] | nodes, random_state=seed, n_jobs=1),
        OAAClassifier(**settings["OAA"] | one_pass, random_state=seed, n_jobs=1),
    )
    own, lomtree, oaa = (size(model.fit(task.X, task.y)) for model in models)
    return {"LOMtree": lomtree / own, "OAA": own / oaa}


def of_space(name):
    return Item(
        f"recall-space-{name}",
        "Size of the files after one pass",
        space,
        {
            PAPER: {
                "tree": RecallTreeClassifier.PAPER,
                "LOMtree": LOMTreeClassifier.PAPER,
                "OAA": AS_VW,
            },
            DEFAULT: {"tree": {}, "LOMtree": {}, "OAA": {}},
        },
        (
            Line(
                "Section 4.2",
                "LOMtree's file (64 nodes a class) over ours",
                "LOMtree",
                32.0,
                "The paper counts regressors: 64 times those of one-against-all, against twice. "
                "Here only nodes that split store weights, and only for columns they have seen.",
            ),
            Claim(
                "Section 1",
                "at most twice the file of one-against-all",
                lambda values: 2 - values["OAA"],
                cause="The 26 scorers of letter take 11 kB, less than the nodes' other data.",
            ),
        ),
        data=name,
    )


ITEMS = (
    WORDS,
    ORDER,
    *(of_candidates(name) for name in OBJECTS),
    BOUND,
    *(of_space(name) for name in ("letter", "naics2017-index", "omniglot")),
)
