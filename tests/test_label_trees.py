"""Filter tree and random tree: comparison with the slow reference, and documented properties."""

import json
import math

import estimators
import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from reference.fixed_tree import FixedTree, LabelSetTree
from scipy.special import logit
from xmtree import FilterTreeClassifier, RandomTreeClassifier, _core

BOTH = {"filter": FilterTreeClassifier, "random": RandomTreeClassifier}
N_FEATURES = 12
X, Y = estimators.sparse()


def stream(seed, n, n_classes):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_classes, N_FEATURES))
    labels = random.integers(0, n_classes, n)
    rows = centres[labels] + random.normal(size=(n, N_FEATURES)) * 0.8
    rows[random.random(rows.shape) < 0.3] = 0
    return rows.astype(np.float32), labels.astype(np.uint32)


def new_tree(policy, loss, n_classes, label_sets=False, **more):
    params = {
        **{"policy": policy, "loss": loss, "optimizer": "nag", "scaling": "none"},
        "scale_weights": False,
        **{"n_bits": None, "learning_rate": 0.5, "decay": 0.0, "label_order": "given"},
        **{"n_passes": 1, "seed": 0, "early_stopping": False},
        **more,
    }
    return _core.Classifier(f"{policy}-tree", json.dumps(params), n_classes, label_sets)


@pytest.mark.parametrize("loss", ["quantile", "hinge"])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 16, 21])
@pytest.mark.parametrize("policy", BOTH)
def test_every_prediction_and_match_agrees(policy, n_classes, loss):
    rows, labels = stream(n_classes, 300, n_classes)
    weights = np.tile([1, 1, 2, 0.5, 0], 60)
    fast = new_tree(policy, loss, n_classes)
    slow = FixedTree(range(n_classes), N_FEATURES, policy, loss)
    for i in range(len(labels)):
        columns = np.flatnonzero(rows[i])
        if i:
            expected = slow.predict(columns, rows[i, columns])
            assert fast.predict(rows[i : i + 1])[0] == expected, i
        fast.partial_fit(rows[i : i + 1], labels[i : i + 1], weights[i : i + 1])
        if weights[i]:
            slow.learn(columns, rows[i, columns], int(labels[i]), float(weights[i]))
    (tree,) = fast.trees()
    routers = tree["children"][:, 0] >= 0
    below = [{*left, *right} for left, right in slow.nodes]
    for node in np.flatnonzero(routers):
        at = below.index(labels_below(tree, node))
        assert tree["n_trained"][node] == slow.trained[at]
        assert tree["n_won"][node] == slow.won[at]
    best, scores = fast.predict_topk(rows[:50], n_classes)
    for i in range(50):
        columns = np.flatnonzero(rows[i])
        expected = slow.log_probabilities(columns, rows[i, columns])
        assert best[i, 0] == slow.predict(columns, rows[i, columns])
        own = [expected[label] for label in best[i].tolist()]
        np.testing.assert_allclose(scores[i, 1:], own[1:], rtol=1e-5, atol=1e-6)
        assert sorted(best[i].tolist()) == list(range(n_classes))
        assert own[1:] == pytest.approx(sorted(own[1:], reverse=True), abs=1e-5)
        assert scores[i, 0] == pytest.approx(max(own), abs=1e-5)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 21])
@pytest.mark.parametrize("policy", BOTH)
def test_the_most_probable_label_agrees(policy, n_classes):
    rows, labels = stream(n_classes, 300, n_classes)
    tree = new_tree(policy, "hinge", n_classes, prediction="most_probable")
    slow = FixedTree(range(n_classes), N_FEATURES, policy, "hinge")
    for i in range(len(labels)):
        columns = np.flatnonzero(rows[i])
        tree.partial_fit(rows[i : i + 1], labels[i : i + 1])
        slow.learn(columns, rows[i, columns], int(labels[i]))
    best, scores = tree.predict_topk(rows, n_classes)
    differ = 0
    for i, row in enumerate(rows):
        columns = np.flatnonzero(row)
        expected = slow.log_probabilities(columns, row[columns])
        own = [expected[label] for label in best[i].tolist()]
        np.testing.assert_allclose(scores[i], own, rtol=1e-5, atol=1e-6)
        assert own[0] == pytest.approx(max(expected.values()), abs=1e-6)
        differ += best[i, 0] != slow.predict(columns, row[columns])
    np.testing.assert_array_equal(tree.predict(rows), best[:, 0])
    assert differ > 0 or n_classes < 4


def indicator(sets, n_classes):
    """Return label sets as CSR."""
    starts = np.cumsum([0, *map(len, sets)])
    labels = np.concatenate([sorted(labels) for labels in sets]).astype(np.int32)
    return sp.csr_matrix((np.ones(len(labels)), labels, starts), shape=(len(sets), n_classes))


def set_stream(seed, n, n_classes):
    """Return rows, and label sets of which some are empty."""
    rows, labels = stream(seed, n, n_classes)
    random = np.random.default_rng(seed)
    sets = [{int(y), *random.integers(0, n_classes, random.integers(0, 3))} for y in labels]
    return rows, [set() if i % 9 == 0 else {int(y) for y in s} for i, s in enumerate(sets)]


@pytest.mark.parametrize("n_classes", [1, 2, 3, 16, 21])
def test_label_sets_agree_with_the_reference(n_classes):
    rows, sets = set_stream(n_classes, 300, n_classes)
    weights = np.tile([1, 1, 2, 0.5, 0], 60)
    targets = indicator(sets, n_classes)
    fast = new_tree("random", "logistic", n_classes, label_sets=True)
    slow = LabelSetTree(range(n_classes), N_FEATURES)
    columns = [np.flatnonzero(row) for row in rows]
    right = []
    for i, labels in enumerate(sets):
        fast.partial_fit(rows[i : i + 1], targets[i : i + 1], weights[i : i + 1])
        if weights[i]:
            was_right = slow.learn(columns[i], rows[i, columns[i]], labels, float(weights[i]))
            right.append((was_right, weights[i]))
    right, used = np.transpose(right)
    assert fast.summary()["progressive_loss"] == pytest.approx(1 - np.average(right, weights=used))
    (tree,) = fast.trees()
    at = [slow.nodes.index(labels_below(tree, node)) for node in range(len(tree["label"]))]
    np.testing.assert_array_equal(tree["n_trained"], slow.trained[at])
    # Scores near 0 differ in their last bits.
    np.testing.assert_allclose(tree["n_won"], slow.won[at], atol=3)
    has_labels = [
        sum(w for s, w in zip(sets, weights, strict=True) if s & slow.nodes[number])
        for number in at
    ]
    np.testing.assert_array_equal(tree["n_examples"], has_labels)
    best, scores = fast.predict_topk(rows, n_classes)
    for i, row in enumerate(rows):
        expected = slow.marginals(columns[i], row[columns[i]])
        own = np.array([expected[label] for label in best[i].tolist()])
        np.testing.assert_allclose(scores[i], logit(own), rtol=1e-3, atol=1e-3)
        assert sorted(best[i].tolist()) == list(range(n_classes))
        assert np.all(np.diff(scores[i]) <= 0)
    # Learning and frozen trees agree, and so do few and many labels.
    again = _core.Classifier.from_bytes(fast.to_bytes())
    for k in {1, (n_classes + 1) // 2, n_classes}:
        few, own = again.predict_topk(rows, k)
        np.testing.assert_array_equal(few, best[:, :k])
        np.testing.assert_array_equal(own, scores[:, :k])


def test_uncalibrated_probabilities_are_the_products():
    rows, sets = set_stream(1, 400, 9)
    settings = {"calibrate": False, "random_state": 0}
    model = RandomTreeClassifier(**settings).fit(rows, indicator(sets, 9))
    probabilities = model.predict_proba(rows)
    labels, scores = model.predict_topk(rows, 9)
    own = np.take_along_axis(probabilities, labels, axis=1)
    np.testing.assert_allclose(logit(own.astype(float)), scores, rtol=1e-2, atol=1e-2)
    np.testing.assert_array_equal(model.predict(rows).toarray(), probabilities > 0.5)
    assert model.threshold_ == 0.5
    y = np.array([min(s, default=0) for s in sets])
    model = RandomTreeClassifier(loss="logistic", prediction="most_probable", **settings)
    model.fit(rows, y, classes=np.arange(9))
    labels, scores = model.predict_topk(rows, 9)
    own = np.take_along_axis(model.predict_proba(rows), labels, axis=1)
    np.testing.assert_allclose(own, np.exp(scores), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1, rtol=1e-4)
    np.testing.assert_array_equal(model.predict(rows), model.predict_proba(rows).argmax(axis=1))


def test_label_sets_online_and_in_files(tmp_path):
    rows, sets = set_stream(2, 600, 12)
    targets = indicator(sets, 12)
    one = RandomTreeClassifier(random_state=0, label_order="frequency")
    for start in range(0, 600, 100):
        one.partial_fit(rows[start : start + 100], targets[start : start + 100])
    one.save(tmp_path / "tree")
    loaded = xmtree.load(tmp_path / "tree")
    assert (loaded.loss, loaded.prediction) == (None, None)
    for model in (one, loaded):
        model.partial_fit(rows[:50], targets[:50])
    np.testing.assert_array_equal(loaded.predict_proba(rows), one.predict_proba(rows))
    estimators.same_matrix(loaded.predict(rows), one.predict(rows))
    one.save(tmp_path / "small", compact=True)
    small = xmtree.load(tmp_path / "small")
    np.testing.assert_allclose(small.predict_proba(rows), one.predict_proba(rows), atol=0.01)
    threads = RandomTreeClassifier(random_state=0, n_jobs=2).fit(rows, targets)
    alone = RandomTreeClassifier(random_state=0).fit(rows, targets)
    assert threads._model.to_bytes() == alone._model.to_bytes()
    with pytest.raises(ValueError, match="cannot report the leaves"):
        alone.decision_path(rows)


def test_a_set_may_have_more_labels_than_the_first_search():
    rows = np.repeat(np.eye(2, dtype=np.float32), 200, axis=0)
    y = np.zeros((400, 60), int)
    y[:200, :45] = 1
    y[200:, 50] = 1
    found = RandomTreeClassifier(random_state=0).fit(rows, y).predict(rows)
    np.testing.assert_array_equal(found, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, 'loss must be "logistic" or None for label sets, got "hinge"'),
        ({"prediction": "path"}, 'prediction must be "most_probable" or None for label sets'),
    ],
)
def test_settings_that_label_sets_exclude(settings, message):
    rows, sets = set_stream(0, 60, 5)
    model = RandomTreeClassifier(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(rows, indicator(sets, 5))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(rows, indicator(sets, 5))
    with pytest.raises(ValueError, match="prediction"):
        RandomTreeClassifier(prediction="best").fit(rows, np.arange(60) % 5)
    with pytest.raises(ValueError, match="FilterTreeClassifier learns one label per row"):
        FilterTreeClassifier(loss="logistic").fit(rows, indicator(sets, 5))


def labels_below(tree, node):
    if tree["label"][node] >= 0:
        return {int(tree["label"][node])}
    return set().union(*(labels_below(tree, child) for child in tree["children"][node]))


@pytest.mark.parametrize("policy", BOTH)
def test_progressive_predictions_precede_learning(policy):
    rows, labels = stream(5, 300, 9)
    whole = new_tree(policy, "hinge", 9)
    slow = FixedTree(range(9), N_FEATURES, policy, "hinge")
    columns = [np.flatnonzero(row) for row in rows]
    answers = [
        slow.learn(c, row[c], int(y)) for c, row, y in zip(columns, rows, labels, strict=True)
    ]
    whole.partial_fit(rows, labels)
    assert whole.summary()["progressive_loss"] == np.mean(np.array(answers) != labels)


@pytest.mark.parametrize("order", ["given", "random", "frequency"])
@pytest.mark.parametrize("cls", BOTH.values())
def test_every_label_has_one_leaf_in_a_balanced_tree(cls, order):
    random = np.random.default_rng(0)
    for n_classes in (2, 3, 5, 8, 13, 33):
        y = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, 40)])
        rows = random.normal(size=(len(y), 3))
        tree = cls(label_order=order, random_state=0).fit(rows, y).tree_
        leaves = tree.label[tree.label >= 0]
        assert sorted(leaves) == list(range(n_classes))
        assert tree.depth.max() == math.ceil(math.log2(n_classes))
        assert tree.depth[tree.label >= 0].min() >= math.floor(math.log2(n_classes))
        inner = np.flatnonzero(tree.label < 0)
        assert np.all(tree.parent[tree.children[inner]] == inner[:, None])
        np.testing.assert_array_equal(tree.n_examples[tree.label >= 0], 5 * np.bincount(y)[leaves])
        np.testing.assert_array_equal(
            tree.n_examples[inner], tree.n_examples[tree.children[inner]].sum(axis=1)
        )
        shares = np.bincount(y) / len(y)
        np.testing.assert_allclose(tree.label_entropy[0], -np.sum(shares * np.log(shares)))
        assert not tree.n_trained.flags.writeable


def from_left_to_right(tree, node=0):
    if tree.label[node] >= 0:
        return [int(tree.label[node])]
    left, right = tree.children[node]
    return from_left_to_right(tree, left) + from_left_to_right(tree, right)


def test_the_order_of_the_labels():
    y = np.concatenate([Y, np.full(50, 7), np.full(20, 3), [5]])
    rows = np.random.default_rng(0).normal(size=(len(y), 4))

    def order(label_order, seed=0, weights=None, **more):
        # The rows that calibrate do not count for the order.
        settings = {"label_order": label_order, "random_state": seed, "calibrate": False}
        model = RandomTreeClassifier(**settings, **more)
        model.fit(rows, y, sample_weight=weights)
        return from_left_to_right(model.tree_)

    assert order("given") == list(range(12))
    assert order("frequency") == [7, 3, 5, 0, 1, 2, 4, 6, 8, 9, 10, 11]
    assert order("frequency", weights=np.where(y == 9, 10.0, 1.0))[:3] == [9, 7, 3]
    assert order("random") == order("random", n_passes=2)
    assert order("random") != order("random", seed=1)
    assert sorted(order("random")) == list(range(12))


def test_the_order_of_a_stream_is_that_of_its_first_batch():
    model = FilterTreeClassifier(label_order="frequency", random_state=0)
    model.partial_fit(X[:20], np.repeat([4, 2, 2, 9], 5), classes=np.arange(12))
    before = from_left_to_right(model.tree_)
    assert before == [2, 4, 9, 0, 1, 3, 5, 6, 7, 8, 10, 11]
    model.partial_fit(X, Y)
    assert from_left_to_right(model.tree_) == before


def test_a_filter_tree_trains_only_while_the_label_wins():
    random = np.random.default_rng(1)
    rows, y = random.normal(size=(2000, 4)), random.integers(0, 13, 2000)
    settings = {"label_order": "given", "n_passes": 1, "random_state": 0}
    filtered = FilterTreeClassifier(**settings).fit(rows, y).tree_
    inner = np.flatnonzero(filtered.label < 0)
    sent_on = np.where(filtered.label >= 0, filtered.n_examples, filtered.n_won)
    np.testing.assert_array_equal(
        filtered.n_trained[inner], sent_on[filtered.children[inner]].sum(axis=1)
    )
    assert filtered.n_trained[0] < 0.7 * 2000
    every = RandomTreeClassifier(**settings).fit(rows, y).tree_
    np.testing.assert_array_equal(every.n_trained[inner], every.n_examples[inner])


def tree_of_a_million():
    """Return a tree of few examples and many labels, with nearly all routers untrained."""
    model = RandomTreeClassifier(random_state=0)
    return model.partial_fit(X, Y, classes=np.arange(1_000_000))


def test_the_cost_of_topk_does_not_grow_with_the_classes():
    model = tree_of_a_million()
    labels, scores = model.predict_topk(X, 5)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    assert all(len(set(row)) == 5 for row in labels.tolist())
    assert np.all(np.isfinite(scores))
    assert np.all(np.diff(scores) <= 0)


@pytest.mark.parametrize("name", ["filter-tree", "random-tree"])
def test_the_first_of_topk_is_the_prediction(name):
    model = estimators.ALL[name](n_passes=1).fit(X[:100], Y[:100])
    first, score = model.predict_topk(X, 1)
    np.testing.assert_array_equal(first[:, 0], model.predict(X))
    for k in (2, 3, 12):
        labels, scores = model.predict_topk(X, k)
        np.testing.assert_array_equal(labels[:, 0], first[:, 0])
        np.testing.assert_array_equal(scores[:, 0], score[:, 0])
        assert np.all(np.diff(scores) <= 0)
        assert np.all(scores[:, 1] < scores[:, 0])
    assert np.all(scores <= 0)
    assert not hasattr(model, "decision_function")


def test_classes_beyond_the_memory_are_refused():
    rows, labels = np.ones((1, 2), np.float32), np.zeros(1, np.uint32)
    with pytest.raises(ValueError, match="no memory for 2147483647 classes"):
        new_tree("filter", "hinge", 2**31 - 1).partial_fit(rows, labels)
