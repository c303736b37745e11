"""LOMtree with the paper's settings equals the slow reference, node for node.

Predictions, shape, counts, leaf sizes, swaps, majority labels and the sums of scores
that decide the side of a label are compared, on streams of changing classes, so that
nodes are recycled all the time.
"""

import json

import estimators
import model_bytes
import numpy as np
import pytest
from reference.lomtree import LOMTree
from xmtree import LOMTreeClassifier, _core

N_FEATURES = 12
#: Options that the paper does not mention.
REST = {
    "n_bits": None,
    "n_estimators": 1,
    "n_passes": 1,
    "seed": 0,
    "early_stopping": False,
}


def stream(seed, n, n_classes, drift):
    """Return dense rows; with drift, only a window of the classes occurs at a time."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_classes, N_FEATURES))
    window = max(2, n_classes // 3) if drift else n_classes
    start = (np.arange(n) * n_classes * 3 // n) if drift else np.zeros(n, int)
    labels = (start + random.integers(0, window, n)) % n_classes
    X = centres[labels] + random.normal(size=(n, N_FEATURES)) * 0.8
    X[random.random(X.shape) < 0.3] = 0
    return X.astype(np.float32), labels.astype(np.uint32)


def new_tree(budget, resistance, n_classes):
    params = REST | LOMTreeClassifier.VW
    params |= {"nodes_per_class": budget / max(n_classes - 1, 1)}
    params |= {"swap_resistance": float(resistance)}
    return _core.Classifier("lomtree", json.dumps(params), n_classes)


def breadth_first(tree):
    order = [(tree.root, -1, 0)]
    for j, _, depth in order:
        if not tree.nodes[j].is_leaf:
            order += [(tree.nodes[j].left, j, depth + 1), (tree.nodes[j].right, j, depth + 1)]
    return order


def assert_same_tree(fast, slow):
    order = breadth_first(slow)
    place = {j: at for at, (j, _, _) in enumerate(order)} | {-1: -1, None: -1}
    nodes = [slow.nodes[j] for j, _, _ in order]
    (tree,) = fast.trees()
    expected = {
        "parent": [place[parent] for _, parent, _ in order],
        "children": [[place[node.left], place[node.right]] for node in nodes],
        "depth": [depth for _, _, depth in order],
        "n_examples": [sum(node.l.values()) for node in nodes],
        "n_labels": [len(node.l) for node in nodes],
        "smallest_leaf": [node.C for node in nodes],
        "n_recycled": [node.recycled for node in nodes],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(tree[name], values, err_msg=name)
    for at, node in enumerate(nodes):
        if node.is_leaf:
            assert tree["label"][at] == node.majority
    shown = np.transpose([tree["objective"], tree["balance"], tree["purity"]])
    np.testing.assert_allclose(shown, [node.split() for node in nodes], rtol=0, atol=1e-12)
    assert tree["n_swaps"] == slow.swaps
    assert tree["n_internal"] == slow.used
    assert_same_sums(fast, slow, order)


def assert_same_sums(fast, slow, order):
    """Compare arrivals, trainings and sums of scores per node and label, bit for bit."""
    head, arrays = model_bytes.unpack(fast.to_bytes())
    arrays = {name.removeprefix("member0/nodes."): array for name, array in arrays.items()}
    starts = np.cumsum([0, *arrays["labels.length"].tolist()])
    at = [head["meta"]["member0/"]["meta"]["root"]]
    for (j, _, _), i in zip(order, at, strict=False):
        node = slow.nodes[j]
        part = slice(starts[i], starts[i + 1])
        labels = arrays["labels.key"][part].tolist()
        assert labels == sorted(node.l)
        arrivals = arrays["labels.before"][part] + arrays["labels.count"][part]
        assert arrivals.tolist() == [node.l[y] for y in labels]
        assert arrays["labels.score"][part].tolist() == [node.m[y] for y in labels]
        if not node.is_leaf:
            assert arrays["labels.count"][part].tolist() == [node.n[y] for y in labels]
            assert (arrays["count"][i], arrays["score"][i]) == (node.n_total, node.m_total)
            at += [arrays["left"][i], arrays["right"][i]]
    assert len(at) == len(order)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("drift", "resistance"),
    [(False, 1), (True, 1), (True, 4), *([(False, 4)] if estimators.EXHAUSTIVE else [])],
)
@pytest.mark.parametrize(("budget", "n_classes"), [(0, 4), (1, 3), (2, 5), (7, 8), (15, 24)])
def test_every_node_agrees(budget, n_classes, resistance, drift):
    X, labels = stream(0, 700, n_classes, drift)
    fast = new_tree(budget, resistance, n_classes)
    slow = LOMTree(N_FEATURES, budget, resistance)
    for i in range(len(labels)):
        columns = np.flatnonzero(X[i])
        expected = slow.learn(columns, X[i, columns], int(labels[i]))
        if i:
            assert fast.predict_topk(X[i : i + 1], 1)[0][0, 0] == expected, i
        fast.partial_fit(X[i : i + 1], labels[i : i + 1])
        if i % 100 == 99:
            assert_same_tree(fast, slow)
            slow.check()
    if drift and budget >= 7:
        few = 20 if resistance == 1 else 2
        assert slow.swaps >= few, "the stream was to recycle nodes again and again"
        assert any(node.lost_child for node in slow.nodes)
    if drift and (budget, resistance) == (2, 1):
        assert slow.root_swaps, "Vowpal Wabbit loses its tree in these"
    answers = fast.predict_topk(X, 1)[0][:, 0]
    columns = [np.flatnonzero(row) for row in X]
    expected = [slow.predict(c, row[c]) for c, row in zip(columns, X, strict=True)]
    np.testing.assert_array_equal(answers, expected)


def test_batches_equal_single_rows():
    X, labels = stream(3, 400, 12, drift=True)
    whole, single = new_tree(9, 1, 12), new_tree(9, 1, 12)
    whole.partial_fit(X, labels)
    for i in range(len(labels)):
        single.partial_fit(X[i : i + 1], labels[i : i + 1])
        single.predict_topk(X[:5], 2)  # changes nothing
    assert whole.to_bytes() == single.to_bytes()
