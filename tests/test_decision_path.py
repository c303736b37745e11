"""``decision_path``: the nodes on the paths of rows."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.datasets import load_digits, load_iris
from xmtree import TextClassifier

X, Y = (part[:600] for part in load_digits(return_X_y=True))
TREES = {
    "lomtree": xmtree.LOMTreeClassifier(random_state=0),
    "three lomtrees": xmtree.LOMTreeClassifier(n_estimators=3, random_state=0),
    "recall tree": xmtree.RecallTreeClassifier(random_state=0),
    "one path": xmtree.RecallTreeClassifier(beam_size=1, random_state=0),
    "filter tree": xmtree.FilterTreeClassifier(random_state=0),
    "random tree": xmtree.RandomTreeClassifier(random_state=0),
    "ldsm": xmtree.LdSMClassifier(n_estimators=4, max_nodes=60, random_state=0),
    "gamble": xmtree.GambleClassifier(n_estimators=4, random_state=0),
    "samme": xmtree.SAMMEClassifier(n_estimators=4, random_state=0),
}


@pytest.fixture(scope="module", params=TREES)
def model(request):
    return TREES[request.param].fit(X, Y)


def leaves(model, rows):
    """Return the last nodes of the paths, by row and tree."""
    indicator, ends = model.decision_path(rows)
    for row in indicator.toarray():
        found = []
        for tree, (start, end) in zip(model.trees_, pairwise(ends), strict=True):
            passed = row[start:end]
            children = np.where(tree.children < 0, False, passed[tree.children])
            found.append(np.flatnonzero((passed > 0) & ~children.any(axis=1)))
        yield found


def test_paths_contain_the_parent_of_each_node(model):
    indicator, ends = model.decision_path(X[:50])
    assert indicator.shape == (50, ends[-1])
    assert set(np.unique(indicator.data)) == {1}
    assert len(ends) == len(model.trees_) + 1
    for tree, (start, end) in zip(model.trees_, pairwise(ends), strict=True):
        passed = indicator[:, start:end].toarray()
        assert passed[:, 0].all()
        np.testing.assert_array_less(passed[:, 1:], passed[:, tree.parent[1:]] + 1)
        # Rows have different paths, so the check is not vacuous.
        assert len(tree.parent) == 1 or 0 < passed.mean() < 1


def test_paths_do_not_depend_on_rows_threads_and_sparsity(model):
    expected, _ = model.decision_path(X[:40])
    alone = sp.vstack([model.decision_path(row[None])[0] for row in X[:40]])
    sparse, _ = model.set_params(n_jobs=2).decision_path(sp.csr_matrix(X[:40]))
    model.set_params(n_jobs=None)
    assert (expected != alone).nnz == (expected != sparse).nnz == 0


@pytest.mark.parametrize("name", ["lomtree", "filter tree", "random tree"])
def test_a_tree_predicts_the_label_of_the_last_node(name):
    model = TREES[name].fit(X, Y)
    reached = [found[0].item() for found in leaves(model, X)]
    np.testing.assert_array_equal(model.classes_[model.tree_.label[reached]], model.predict(X))


@pytest.mark.parametrize("name", ["gamble", "samme"])
def test_paths_of_boosted_trees_follow_features_and_thresholds(name):
    model = TREES[name].fit(X, Y)
    for row, found in zip(X[:100], leaves(model, X[:100]), strict=True):
        for tree, ends in zip(model.trees_, found, strict=True):
            node = 0
            while tree.feature[node] >= 0:
                right = row[tree.feature[node]] > tree.threshold[node]
                node = tree.children[node, int(right)]
            assert ends.tolist() == [node]


def candidates(tree, node):
    """Return the candidates of a node and of all nodes above it."""
    found = set()
    while node >= 0:
        start, end = tree.candidate_starts[node : node + 2]
        found |= set(tree.candidates[start:end].tolist())
        node = tree.parent[node]
    return found


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_recall_tree_predicts_a_candidate_of_the_leaves(beam_size):
    model = xmtree.RecallTreeClassifier(
        beam_size=beam_size, max_candidates=2, max_depth=4, random_state=0
    ).fit(X, Y)
    n_leaves = []
    predicted = model.predict(X)
    for label, (ends,) in zip(predicted, leaves(model, X), strict=True):
        n_leaves.append(len(ends))
        assert any(label in model.classes_[list(candidates(model.tree_, end))] for end in ends)
    assert max(n_leaves) <= beam_size
    assert (max(n_leaves) > 1) == (beam_size > 1)


def test_ldsm_scores_labels_of_the_reached_leaves():
    model = xmtree.LdSMClassifier(
        n_estimators=3, max_nodes=40, scorers="none", keep_statistics=True, random_state=0
    ).fit(X, Y)
    labels, scores = model.predict_topk(X[:50], 10)
    n_reached = []
    for known, score, found in zip(labels, scores, leaves(model, X[:50]), strict=True):
        reached = set()
        for tree, ends in zip(model.trees_, found, strict=True):
            for end in ends:
                start, stop = tree.label_starts[end : end + 2]
                reached |= set(tree.labels[start:stop].tolist())
        # A leaf has no scores for its rare labels.
        assert set(known[score > 0].tolist()) <= set(model.classes_[list(reached)].tolist())
        n_reached.append(len(reached))
    assert min(n_reached) < 5


def test_models_without_statistics_are_refused(tmp_path):
    TREES["lomtree"].fit(X, Y).save(tmp_path / "model", compact=True)
    with pytest.raises(AttributeError, match="prediction only"):
        xmtree.load(tmp_path / "model").decision_path(X[:1])
    assert not hasattr(xmtree.OAAClassifier(), "decision_path")
    with pytest.raises(ValueError, match="64 features"):
        TREES["lomtree"].decision_path(load_iris().data)


TEXTS = ["red apple", "green apple", "old violin", "loud violin", "fast car", "slow car"] * 40
LABELS = ["fruit", "fruit", "music", "music", "road", "road"] * 40


@pytest.mark.parametrize("name", TREES)
def test_paths_of_texts(name):
    model = TextClassifier(TREES[name], random_state=0).fit(TEXTS, LABELS)
    rows = model._features.transform(["the violin"])
    found = zip(
        model.decision_path(["the violin"]), model.learner_.decision_path(rows), strict=True
    )
    for part, expected in found:
        assert (part != expected).sum() == 0
    assert not hasattr(TextClassifier().fit(TEXTS, LABELS), "decision_path")
