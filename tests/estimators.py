"""Tables of all estimators, with small data, for parametrized tests."""

import os

import numpy as np
import scipy.sparse as sp
import xmtree

#: Constructors by name: every class, and settings that run other code.
ALL = {
    "oaa": lambda **more: xmtree.OAAClassifier(**{"random_state": 0, **more}),
    "oaa-softmax": lambda **more: xmtree.OAAClassifier(
        **{"loss": "softmax", "random_state": 0, **more}
    ),
    "oaa-logistic-nag": lambda **more: xmtree.OAAClassifier(
        **{"loss": "logistic", "optimizer": "nag", "random_state": 0, **more}
    ),
    "oaa-negatives": lambda **more: xmtree.OAAClassifier(
        **{"n_negatives": 2, "random_state": 0, **more}
    ),
    "lomtree": lambda **more: xmtree.LOMTreeClassifier(**{"random_state": 0, **more}),
    "lomtree-3": lambda **more: xmtree.LOMTreeClassifier(
        **{"n_estimators": 3, "random_state": 0, **more}
    ),
    "lomtree-swapping": lambda **more: xmtree.LOMTreeClassifier(
        **{"nodes_per_class": 0.27, "split_threshold": 1.0, "random_state": 0, **more}
    ),
    "recall-tree": lambda **more: xmtree.RecallTreeClassifier(**{"random_state": 0, **more}),
    "recall-tree-beam": lambda **more: xmtree.RecallTreeClassifier(
        **{"beam_size": 4, "max_candidates": 3, "random_state": 0, **more}
    ),
    "recall-tree-margin": lambda **more: xmtree.RecallTreeClassifier(
        **{"loss": "margin", "beam_size": 1, "random_state": 0, **more}
    ),
    "recall-tree-nag": lambda **more: xmtree.RecallTreeClassifier(
        **xmtree.RecallTreeClassifier.VW | {"n_passes": 5, "random_state": 0, **more}
    ),
    "recall-tree-paths": lambda **more: xmtree.RecallTreeClassifier(
        **{"loss": "hinge", "path_features": "all", "random_state": 0, **more}
    ),
    "filter-tree": lambda **more: xmtree.FilterTreeClassifier(**{"random_state": 0, **more}),
    "random-tree": lambda **more: xmtree.RandomTreeClassifier(**{"random_state": 0, **more}),
    "random-tree-probable": lambda **more: xmtree.RandomTreeClassifier(
        **{"loss": "logistic", "prediction": "most_probable", "random_state": 0, **more}
    ),
    "filter-tree-nag": lambda **more: xmtree.FilterTreeClassifier(
        **{"optimizer": "nag", "label_order": "random", "random_state": 0, **more}
    ),
    "gamble": lambda **more: gamble(xmtree.GambleClassifier, **{"n_estimators": 30, **more}),
    "gamble-paper": lambda **more: gamble(
        xmtree.GambleClassifier, **xmtree.GambleClassifier.PAPER | {"n_estimators": 20, **more}
    ),
    "gamble-early": lambda **more: gamble(
        xmtree.GambleClassifier, **{"n_estimators": 30, "early_stopping": True, **more}
    ),
    "samme": lambda **more: gamble(xmtree.SAMMEClassifier, **{"n_estimators": 30, **more}),
    "samme-real": lambda **more: gamble(
        xmtree.SAMMEClassifier, **{"votes": "real", "n_estimators": 30, **more}
    ),
    "ldsm": lambda **more: xmtree.LdSMClassifier(
        **{"n_estimators": 3, "max_nodes": 60, "random_state": 0, **more}
    ),
    "ldsm-3-way": lambda **more: xmtree.LdSMClassifier(
        **{
            "n_estimators": 2,
            "arity": 3,
            "max_nodes": 40,
            "scorers": "none",
            "beta": 0.5,
            "random_state": 0,
            **more,
        }
    ),
}


def gamble(cls, *, scaling="none", **more):
    """Return boosted trees, which ignore ``scaling`` because splits do not depend on the scale."""
    return cls(**{"random_state": 0, **more})


#: True to run all cases of tests that are marked "exhaustive".
EXHAUSTIVE = os.environ.get("XMTREE_EXHAUSTIVE") == "1"
#: Settings that run the same Python code as others.
CORE_ONLY = {
    *("oaa-softmax", "oaa-logistic-nag", "lomtree-swapping", "recall-tree-margin"),
    *("recall-tree-nag", "recall-tree-paths", "filter-tree-nag", "random-tree", "gamble-paper"),
}
#: Settings for tests of Python code.
PYTHON = [name for name in ALL if EXHAUSTIVE or name not in CORE_ONLY]
#: The first setting of each class, for tests of code that does not depend on settings.
CLASSES = [*ALL] if EXHAUSTIVE else [*{type(ALL[name]()): name for name in [*ALL][::-1]}.values()]
ONLINE = [name for name, make in ALL.items() if hasattr(make(), "partial_fit")]
#: Learners that need all rows at once.
BATCH = [name for name in ALL if name not in ONLINE]
#: Learners that accept NaN as a missing value.
GAPPY = [name for name in ALL if ALL[name]().__sklearn_tags__().input_tags.allow_nan]
LDSM = [name for name in ALL if name.startswith("ldsm")]
MULTILABEL = ["oaa", "oaa-logistic-nag", "random-tree", "random-tree-probable", *LDSM]
RECALL_TREES = [name for name in ALL if name.startswith("recall-tree")]
TREES = ["lomtree", "lomtree-swapping", "filter-tree", "random-tree", *RECALL_TREES]


def dense(n=240, n_classes=6, seed=0):
    """Return well separated classes in six dimensions: X float64, y int64."""
    random = np.random.default_rng(seed)
    centers = np.eye(6)[np.arange(n_classes) % 6] * 4 + random.normal(size=(n_classes, 6)) * 0.3
    y = random.permutation(np.arange(n) % n_classes)
    return centers[y] + random.normal(size=(n, 6)) * 0.4, y


def sparse(n=300, n_classes=12, seed=0):
    """Return rows with features of their class and noise: X CSR float32, y int64."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n) % n_classes)
    own = y[:, None] * 4 + random.integers(0, 4, (n, 3))
    noise = random.integers(0, 4 * n_classes, (n, 2))
    columns = np.hstack([own, noise]).ravel()
    rows = np.repeat(np.arange(n), 5)
    values = np.ones(len(rows), np.float32)
    return sp.csr_matrix((values, (rows, columns)), shape=(n, 4 * n_classes)), y


def label_sets(n=300, n_labels=8, seed=0):
    """Return X as CSR float32 and y as CSR indicator; some rows have no label."""
    random = np.random.default_rng(seed)
    Y = sp.csr_array((random.random((n, n_labels)) < 0.2).astype(np.int64))
    noise = (random.random((n, n_labels)) < 0.05).astype(np.float32)
    X = sp.csr_matrix(sp.hstack([sp.csr_array(Y, dtype=np.float32), sp.csr_array(noise)]))
    return X, Y


def same_predictions(one, other, X):
    """Return whether two estimators predict the same labels and scores."""
    for a, b in zip(one.predict_topk(X, 3), other.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(a, b)


def same_matrix(a, b):
    """Return whether two matrices are equal, bit for bit and in their structure."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a.indptr, b.indptr)
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.data, b.data)
