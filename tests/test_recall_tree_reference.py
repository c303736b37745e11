"""Recall Tree with its defaults equals the slow reference, node for node.

Shape, counts, entropies, bounds, candidates, predictions and scores are compared, on
streams of changing classes. The same for the settings of the paper, on a reference with its
formulas.
"""

import json

import estimators
import numpy as np
import pytest
from reference import recall_tree
from reference.recall_tree_default import RecallTree
from xmtree import RecallTreeClassifier, _core

N_FEATURES = 10
N_CLASSES = 12


def stream(seed, n=350, density=0.7):
    """Return rows with drifting labels, a tenth of them noise, and importance weights."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(N_CLASSES, N_FEATURES))
    labels = (np.arange(n) * 2 // n * 4 + random.integers(0, 8, n)) % N_CLASSES
    X = centres[labels] + random.normal(size=(n, N_FEATURES)) * 0.7
    X[random.random(X.shape) > density] = 0
    noise = random.random(n) < 0.1
    labels[noise] = random.integers(0, N_CLASSES, noise.sum())
    weights = random.integers(1, 9, n) / 4
    return X.astype(np.float32), labels.astype(np.uint32), weights


def both(settings):
    """Return the core's learner and the reference with some settings."""
    given = {"max_candidates": 3, "max_depth": 3, "loss": "margin", **settings}
    given.setdefault("learning_rate", 1.0)
    given.setdefault("bern_hyper", 0.1)
    rest = {
        "scaling": "none",
        "scale_weights": False,
        "beam_size": 1,
        "n_passes": 1,
    }
    model = RecallTreeClassifier(random_state=0, **rest, **given)
    params = json.dumps(model.fit(*stream(0, n=9)[:2])._model.params)
    fast = _core.Classifier("recall-tree", params, N_CLASSES)
    paper_tree = given.pop("paper_tree", False)
    kind = {"honest": not paper_tree, "back_off": not paper_tree}
    return fast, RecallTree(N_CLASSES, N_FEATURES, **given, **kind)


def assert_same_tree(fast, slow):
    (tree,) = fast.trees()
    for name, expected in slow.table().items():
        if name in ("label_entropy", "recall_bound"):
            np.testing.assert_allclose(tree[name], expected, atol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(tree[name], expected, err_msg=name)
    assert fast.summary()["progressive_loss"] == pytest.approx(slow.wrong / slow.total)
    assert fast.summary()["progressive_recall"] == pytest.approx(1 - slow.missed / slow.total)


def assert_same_scores(fast, slow, x):
    labels, scores = slow.scores(x)
    found, values = fast.predict_topk(x[None], len(labels))
    np.testing.assert_allclose(
        values[0][np.argsort(found[0])], np.array(scores)[np.argsort(labels)], atol=1e-4
    )
    assert sorted(found[0]) == sorted(labels)


SETTINGS = [
    {},
    {"max_candidates": 1},
    {"max_candidates": 6, "max_depth": 4},
    {"max_depth": 0},
    {"bern_hyper": 0.0},
    {"bern_hyper": 1.0},
    {"paper_tree": True},
    {"paper_tree": True, "bern_hyper": 0.0},
    {"paper_tree": True, "margin": 1.0, "max_candidates": 5},
    {"learning_rate": 0.3},
]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_node_agrees(settings, weighted):
    X, labels, weights = stream(seed=len(str(settings)))
    if not weighted:
        weights[:] = 1
    fast, slow = both(settings)
    for i in range(len(labels)):
        if i:
            assert_same_scores(fast, slow, X[i])
        slow.learn(X[i], int(labels[i]), float(weights[i]))
        fast.partial_fit(X[i : i + 1], labels[i : i + 1], weights[i : i + 1])
        if i % 50 == 49:
            assert_same_tree(fast, slow)
    if slow.D > 1:
        deepest = max(v.depth for v in slow.nodes if v.counts)
        assert deepest >= 2, "the stream was to make a tree"


def test_first_steps_of_the_softmax():
    """Use gradients so large that no step is sampled."""
    fast, slow = both({"loss": "softmax", "max_depth": 0, "learning_rate": 0.5})
    X, _, _ = stream(seed=1, n=40)
    for i, label in enumerate([3, 5, 5, 3, 7, 3, 5]):
        slow.learn(X[i], label, 3.0 if i == 4 else 1.0)
        weight = np.array([3.0 if i == 4 else 1.0])
        fast.partial_fit(X[i : i + 1], np.array([label], np.uint32), weight)
        for x in X:
            assert_same_scores(fast, slow, x)


def test_sampled_steps_of_the_softmax_are_unbiased():
    X, labels, _ = stream(seed=2, n=3000)
    fast, slow = both({"loss": "softmax", "max_depth": 0, "max_candidates": N_CLASSES})
    fast.partial_fit(X, labels)
    for x, label in zip(X, labels, strict=True):
        slow.learn(x, int(label))
    found, values = fast.predict_topk(X, N_CLASSES)
    rounded = np.take_along_axis(values, np.argsort(found, axis=1), axis=1)
    exact = np.column_stack([X, np.ones(len(X))]) @ slow.scorers.T
    assert np.corrcoef(rounded.ravel(), exact.ravel())[0, 1] > 0.99
    assert abs((rounded - exact).mean()) < 0.02 * np.abs(exact).mean()
    assert fast.summary()["progressive_loss"] == pytest.approx(slow.wrong / slow.total, abs=0.02)


@pytest.mark.exhaustive
@pytest.mark.parametrize("candidates", [2, 4] if estimators.EXHAUSTIVE else [2])
def test_the_papers_settings_follow_its_formulas(candidates):
    """Section 2 and Figure 2b (importance of routers), and Eq. 1 (bound of the recall)."""
    X, labels, weights = stream(seed=3)
    model = RecallTreeClassifier(**RecallTreeClassifier.PAPER | {"max_candidates": candidates})
    settings = {"max_candidates": candidates, "loss": "logistic", "learning_rate": 1.0}
    # The references have the paper's importance and bound, and Vowpal Wabbit's.
    slow, vw = (
        recall_tree.RecallTree(N_CLASSES, N_FEATURES, **settings, paper=paper)
        for paper in (True, False)
    )
    differ = 0
    for x, label, weight in zip(X, labels, weights, strict=True):
        model.partial_fit(x[None], [label], np.arange(N_CLASSES), [weight])
        row = np.flatnonzero(x)
        for reference in (slow, vw):
            reference.learn(row, x[row], int(label), float(weight))
        (predicted,) = model.predict(x[None])
        assert predicted == slow.predict(row, x[row])
        differ += predicted != vw.predict(row, x[row])
    tree, seen = model.tree_, [v for v in slow.nodes if v.n > 0]
    assert len(tree.parent) == len(seen) > 8
    for name, expected in (
        ("n_examples", [v.n for v in seen]),
        ("label_entropy", [v.entropy for v in seen]),
        ("recall_bound", [v.bound for v in seen]),
    ):
        np.testing.assert_allclose(np.sort(tree[name]), np.sort(expected), atol=1e-6, err_msg=name)
    # The forms of Vowpal Wabbit give another tree.
    assert differ > 0.05 * len(X)
    assert len([v for v in vw.nodes if v.n > 0]) != len(seen)
