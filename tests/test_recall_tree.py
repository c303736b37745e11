"""Recall Tree: effects of options, consistency of arrays, recall."""

import estimators
import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from xmtree import RecallTreeClassifier

N_CLASSES = 40


def data(n=1200, seed=0):
    """Return sparse rows of many classes, a tenth of them mislabeled."""
    X, y = estimators.sparse(n, N_CLASSES, seed)
    random = np.random.default_rng(seed)
    return X, np.where(random.random(n) < 0.1, random.integers(0, N_CLASSES, n), y)


X, Y = data()
X_NEW, Y_NEW = data(seed=1)
#: Few candidates, so that the tree has to separate the classes.
FEW = {"bern_hyper": 0.1, "max_candidates": 4, "n_passes": 2, "random_state": 0}


@pytest.fixture(scope="module")
def few():
    return RecallTreeClassifier(**FEW).fit(X, Y)


def scores(model):
    labels, scores = model.predict_topk(X_NEW, 4)
    return np.hstack([labels, scores])


def test_the_arguments_equal_those_of_the_core():
    model = RecallTreeClassifier().fit(X, Y)
    known = set(model._model.params) - {"seed"}
    assert known == set(model._core_names)
    assert set(model._parameter_constraints) == set(model.get_params())
    assert set(RecallTreeClassifier.PAPER) < known
    assert set(RecallTreeClassifier.VW) < known


OPTIONS = [
    {"max_candidates": 3},
    {"max_candidates": None},
    {"max_depth": 2},
    {"bern_hyper": 0.0},
    {"bern_hyper": 10.0},
    {"loss": "margin"},
    {"loss": "squared"},
    {"loss": "logistic"},
    {"loss": "quantile"},
    {"loss": "hinge"},
    {"margin": 0.0},
    {"scaling": "none"},
    {"scaling": "standard"},
    {"n_bits": 5},
    {"learning_rate": 0.1},
    {"router_importance": "none"},
    {"router_importance": "average_entropy"},
    {"paper_tree": True},
    {"loss": "hinge", "path_features": "all"},
    {"loss": "hinge", "path_features": "node_only"},
    {"beam_size": 8},
    {"path_weight": 2.0},
    {"n_passes": 3},
    {"early_stopping": True},
    {"random_state": 1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_has_an_effect(options, few):
    reference = few
    if "path_features" in options:
        reference = RecallTreeClassifier(**FEW, loss=options["loss"]).fit(X, Y)
    model = RecallTreeClassifier(**FEW | options).fit(X, Y)
    assert not np.array_equal(scores(model), scores(reference))
    # All learn something, except a tree that cannot grow and a hash of five bits.
    crippled = {"max_depth", "n_bits"} & set(options) or options.get("bern_hyper") == 10
    assert model.score(X, Y) > (0.2 if crippled else 0.5)


def test_rare_classes_do_not_enlarge_the_tree():
    """Check that two frequent classes of 60 need few candidates and no deep tree."""
    random = np.random.default_rng(0)
    y = np.where(random.random(2000) < 0.97, random.integers(0, 2, 2000), np.arange(2000) % 60)
    X = sp.csr_array(np.eye(60, dtype=np.float32)[y])
    few = RecallTreeClassifier(random_state=0).fit(X, y)
    many = RecallTreeClassifier(random_state=0, paper_tree=True).fit(X, y)
    assert few.tree_.depth.max() < many.tree_.depth.max()
    labels, _ = few.set_params(beam_size=1).predict_topk(X, 60)
    assert (labels >= 0).sum(axis=1).max() <= 8  # 4 ceil(H), H = 1.3 bits
    # The frequencies of a stream are not known in advance.
    stream = RecallTreeClassifier(random_state=0).partial_fit(X, y, classes=np.unique(y))
    assert (stream.max_candidates_, stream.max_depth_) == (4 * 6, 5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_candidates": 3, "max_depth": 3},
        {"max_candidates": 1, "paper_tree": True},
        {"bern_hyper": 0.0, "max_candidates": 5},
        {"max_depth": 0},
    ],
    ids=str,
)
def test_the_tree_respects_its_limits(options):
    model = RecallTreeClassifier(**{"random_state": 0, **options}).fit(X, Y)
    tree = model.tree_
    n = len(tree.parent)
    assert model.max_candidates_ == options.get("max_candidates", 4 * 6)
    share = 1.0 if "paper_tree" in options else 0.75
    levels = int(np.ceil(share * np.log2(N_CLASSES)))
    assert model.max_depth_ == options.get("max_depth", levels)
    assert tree.depth.max() <= model.max_depth_
    assert tree.children.shape == (n, 2)
    sizes = np.diff(tree.candidate_starts)
    assert len(sizes) == n
    assert sizes.min() >= 1
    assert sizes.max() <= model.max_candidates_
    assert tree.candidate_starts[-1] == len(tree.candidates) == len(tree.candidate_counts)
    assert tree.n_examples[0] == model.n_examples_seen_
    assert (tree.recall_bound <= tree.recall + 1e-6).all()
    assert tree.n_trained[tree.depth == model.max_depth_].sum() == 0
    for node in range(n):
        part = slice(*tree.candidate_starts[node : node + 2])
        labels, counts = tree.candidates[part], tree.candidate_counts[part]
        assert len(set(labels)) == len(labels) == min(tree.n_labels[node], model.max_candidates_)
        assert (np.diff(counts) <= 0).all()
        assert labels[0] == tree.label[node]
        assert tree.recall[node] == pytest.approx(counts.sum() / tree.n_examples[node])
    assert not tree.held[0]
    # The path of every example ends at a node, and at none that is held.
    ended = model._ended(tree)
    assert ended.sum() == tree.n_examples[0]
    assert (ended[tree.held] == 0).all()


def test_predictions_are_candidates():
    settings = FEW | {"beam_size": 1}
    labels, values = RecallTreeClassifier(**settings).fit(X, Y).predict_topk(X_NEW, 10)
    assert (labels[:, :4] >= 0).all()
    assert (labels[:, 4:] == -1).all()
    assert np.isneginf(values[:, 4:]).all()
    model = RecallTreeClassifier(**settings, paper_tree=True).fit(X, Y)
    labels, _ = model.predict_topk(X_NEW, 10)
    tree = model.tree_
    sets = [
        set(tree.candidates[start:end])
        for start, end in zip(tree.candidate_starts, tree.candidate_starts[1:], strict=False)
    ]
    assert all(set(row[row >= 0]) in sets for row in labels)
    model.set_params(beam_size=3)
    labels, values = model.predict_topk(X_NEW, 13)
    found = labels >= 0
    assert found.sum(axis=1).mean() > 4
    assert found.sum(axis=1).max() <= 12
    np.testing.assert_array_equal(np.isneginf(values), ~found)


def test_a_wider_beam_finds_more(few):
    recalls = []
    for beam_size in (1, 2, 4, 16):
        model = RecallTreeClassifier(**FEW).fit(X, Y).set_params(beam_size=beam_size)
        recalls.append(model.candidate_recall(X_NEW, Y_NEW))
    assert recalls == sorted(recalls)
    assert recalls[-1] > recalls[0] + 0.02


def test_with_all_classes_as_candidates_the_recall_is_1():
    model = RecallTreeClassifier(max_candidates=N_CLASSES, random_state=0).fit(X, Y)
    assert model.candidate_recall(X_NEW, Y_NEW) == 1


def test_the_beam_may_change_after_fit(few, tmp_path):
    model = RecallTreeClassifier(**FEW, beam_size=1).fit(X, Y)
    greedy = scores(model)
    np.testing.assert_array_equal(scores(model.set_params(beam_size=4)), scores(few))
    model.set_params(path_weight=0.0)
    assert not np.array_equal(scores(model), scores(few))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(scores(xmtree.load(tmp_path / "model")), scores(model))
    np.testing.assert_array_equal(scores(model.set_params(beam_size=1)), greedy)
    model.set_params(beam_size=3).partial_fit(X[:9], Y[:9])
    assert model.n_examples_seen_ == few.n_examples_seen_ + 9
    for settings in ({"beam_size": 0}, {"beam_size": 2.0}, {"path_weight": -1.0}):
        broken = RecallTreeClassifier(**FEW).fit(X[:100], Y[:100]).set_params(**settings)
        for call in (broken.predict, broken.predict_topk):
            with pytest.raises(ValueError, match=next(iter(settings))):
                call(X)


def test_the_recall_of_the_candidates(few, monkeypatch):
    labels, _ = few.predict_topk(X_NEW, N_CLASSES)
    found = np.any(labels == Y_NEW[:, None], axis=1)
    assert few.candidate_recall(X_NEW, Y_NEW) == pytest.approx(found.mean())
    assert few.score(X_NEW, Y_NEW) <= found.mean() < 1
    weights = np.random.default_rng(0).random(len(Y_NEW))
    expected = np.average(found, weights=weights)
    assert few.candidate_recall(X_NEW, Y_NEW, weights) == pytest.approx(expected)
    monkeypatch.setattr("xmtree._prediction.CHUNK_BYTES", 1000)
    assert few.candidate_recall(X_NEW, Y_NEW) == pytest.approx(found.mean())
    assert few.candidate_recall(X_NEW, Y_NEW + 1000) == 0
    assert few.candidate_recall(X_NEW, Y_NEW.astype(str)) == 0
    with pytest.raises(ValueError, match="1200 rows, but y has 5"):
        few.candidate_recall(X_NEW, Y_NEW[:5])
    with pytest.raises(ValueError, match="one label per row"):
        few.candidate_recall(X_NEW, [[1]] * len(Y_NEW))


def test_progressive_recall_precedes_learning():
    model = RecallTreeClassifier(**FEW, beam_size=1)
    found = []
    for at in range(300):
        row, label = X[at : at + 1], Y[at : at + 1]
        if at:
            found.append(model.candidate_recall(row, label))
        model.partial_fit(row, label, classes=np.arange(N_CLASSES))
    assert model.progressive_recall_ == pytest.approx(sum(found) / 300)
    assert 0 < 1 - model.progressive_loss_ <= model.progressive_recall_


def test_a_tiny_multiplier_compares_the_empirical_recall():
    """Section 4.5 of the paper: the rule uses the recall in place of its bound; 0 disables it."""
    settings = RecallTreeClassifier.PAPER | {"max_candidates": 2, "random_state": 0}
    itself, off, bounded = (
        RecallTreeClassifier(**settings | {"bern_hyper": bern_hyper}).fit(X, Y).tree_
        for bern_hyper in (1e-12, 0.0, 1.0)
    )
    seen = itself.n_examples > 0
    assert np.allclose(itself.recall_bound[seen], itself.recall[seen], atol=1e-5)
    assert itself.held.any()
    assert not off.held.any()
    assert np.mean(bounded.recall_bound[seen[: len(bounded.parent)]]) < np.mean(
        itself.recall_bound[seen]
    )


def test_the_papers_settings_differ_from_vw():
    """Compare Table 3 of the paper with Vowpal Wabbit's defaults."""
    paper, vw = RecallTreeClassifier.PAPER, RecallTreeClassifier.VW
    changed = {name: paper[name] for name in paper if vw.get(name) != paper[name]}
    assert changed == {
        "loss": "logistic",
        "learning_rate": 1.0,
        "recall_bound": "paper",
        "router_importance": "average_entropy",
    }
    models = [RecallTreeClassifier(**mode, random_state=0).fit(X, Y) for mode in (paper, vw)]
    assert not np.array_equal(*(scores(model) for model in models))


BAD = [
    ({"max_candidates": 0}, "max_candidates"),
    ({"max_depth": 61}, "max_depth"),
    ({"bern_hyper": -1.0}, "bern_hyper"),
    ({"loss": "poisson"}, "loss"),
    ({"recall_bound": "eq1"}, "recall_bound"),
    ({"router_importance": "much"}, "router_importance"),
    ({"path_features": "some"}, "path_features"),
    ({"path_features": "node_only"}, "path_features"),
    ({"beam_size": 1025}, "beam_size"),
    ({"path_weight": "heavy"}, "path_weight"),
    ({"paper_tree": "yes"}, "paper_tree"),
    ({"scaling": "standard", "n_bits": 8}, "n_bits|scaling"),
]


@pytest.mark.parametrize(("settings", "name"), BAD, ids=str)
def test_errors_name_the_parameter(settings, name):
    with pytest.raises(ValueError, match=name):
        RecallTreeClassifier(**settings).fit(X, Y)


def test_there_are_no_scores_of_all_classes():
    assert not hasattr(RecallTreeClassifier(), "decision_function")


def test_labels_in_the_tree_are_indices_of_classes():
    names = np.array([f"class {at:02}" for at in range(N_CLASSES)])
    model = RecallTreeClassifier(**FEW, calibrate=False).fit(X, names[Y])
    tree = model.tree_
    # At the root, which counted every example in both passes, these are the most frequent classes.
    root = slice(*tree.candidate_starts[:2])
    counts = FEW["n_passes"] * np.bincount(Y)
    np.testing.assert_array_equal(tree.candidate_counts[root], np.sort(counts)[:-5:-1])
    np.testing.assert_array_equal(tree.candidate_counts[root], counts[tree.candidates[root]])
    assert tree.label[0] == tree.candidates[0]
    numbered = RecallTreeClassifier(**FEW, calibrate=False).fit(X, Y)
    assert model.candidate_recall(X, names[Y]) == numbered.candidate_recall(X, Y)
