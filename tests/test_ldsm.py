"""LdSM: effects of options, consistency of arrays, predicted sets and scores."""

import copy
import warnings
from concurrent.futures import ThreadPoolExecutor

import estimators
import numpy as np
import pytest
import scipy.sparse as sp
from model_bytes import pack, unpack
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from xmtree import LdSMClassifier, _core, metrics

N_LABELS = 30


def data(n=900, seed=0):
    """Return feature counts and label sets: each feature has its own label, in groups of three."""
    random = np.random.default_rng(seed)
    group = random.integers(0, N_LABELS // 3, n)
    Y = np.zeros((n, N_LABELS), np.int64)
    for j in range(3):
        Y[np.arange(n), 3 * group + j] = random.random(n) < (0.9, 0.6, 0.3)[j]
    Y[Y.sum(axis=1) == 0, 0] = 1
    X = Y * random.poisson(3, Y.shape) + (random.random(Y.shape) < 0.05)
    return sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y)


X, Y = data()
X_NEW, Y_NEW = data(300, seed=1)
FEW = {"n_estimators": 3, "max_nodes": 60, "n_epochs": 3, "random_state": 0}


@pytest.fixture(scope="module")
def few():
    return LdSMClassifier(**FEW).fit(X, Y)


def scores(model, rows=X_NEW):
    return model.predict_scores(rows).toarray()


def test_many_threads_predict_single_rows_at_once(few):
    """Check that concurrent calls do not share buffers that are kept between calls."""
    rows = [X_NEW[i] for i in range(X_NEW.shape[0])]
    labels, found = few.predict_topk(X_NEW, 3)
    with ThreadPoolExecutor(8) as pool:
        alone = list(pool.map(lambda row: few.predict_topk(row, 3), rows * 3))
    for i, (row_labels, row_scores) in enumerate(alone):
        assert np.array_equal(row_labels[0], labels[i % len(rows)])
        assert np.array_equal(row_scores[0], found[i % len(rows)])


def test_buffers_of_a_former_model_are_not_used(few):
    """Check single rows against batches after adding trees and after training on fewer columns."""
    model = copy.deepcopy(few)
    model.predict_topk(X_NEW[0], 3)
    more_trees = {"n_estimators": 5, "warm_start": True}
    for options, columns in ((more_trees, X.shape[1]), ({"warm_start": False}, 20)):
        rows = X_NEW[:, :columns]
        model.set_params(**options).fit(X[:, :columns], Y)
        together = model.predict_topk(rows, 3)[1]
        assert not np.array_equal(together, few.predict_topk(X_NEW, 3)[1])
        for i in range(5):
            assert np.array_equal(model.predict_topk(rows[i], 3)[1][0], together[i])


def test_the_arguments_equal_those_of_the_core(few):
    known = set(few._model.params) - {"seed"}
    assert known == set(few._core_names)
    assert set(few._parameter_constraints) == set(few.get_params())
    assert set(LdSMClassifier.AUTHORS) | set(LdSMClassifier.PAPER) < known


OPTIONS = [
    {"n_estimators": 5},
    {"arity": 3},
    {"arity": 8, "max_nodes": 100},
    {"max_nodes": 9},
    {"n_epochs": 1},
    {"lambda1": 0.5},
    {"lambda2": 4.0},
    {"max_updates": 1000},
    {"slim_trees": False},
    {"loss": "logistic"},
    {"learning_rate": 0.5},
    {"scaling": "none"},
    {"scaling": "row"},
    {"scaling": "standard"},
    {"n_bits": 4},
    {"beta": 0.5},
    {"scorers": "none"},
    {"n_negatives": 1},
    {"tail_weight": 1.0},
    {"cost": 0.01},
    {"weight_threshold": 0.5},
    {"random_state": 1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_has_an_effect(options, few):
    model = LdSMClassifier(**FEW | options).fit(X, Y)
    assert not np.array_equal(scores(model), scores(few))
    labels, _ = model.predict_topk(X_NEW, 1)
    found = metrics.precision_at_k(Y_NEW, labels, 1)
    assert found > (0.3 if "n_bits" in options else 0.6)
    # The option is saved with the model and restored.
    again = copy.deepcopy(model)
    assert np.array_equal(scores(again), scores(model))
    assert again._model.params == model._model.params


def test_scorers_are_the_default(few):
    assert few._model.summary()["has_scorers"]
    assert not LdSMClassifier(**FEW, scorers="none").fit(X, Y)._model.summary()["has_scorers"]


def losses_of_scorers(model):
    """Return the loss of each label's scorer on rows with the label."""
    head, arrays = unpack(model._model.to_bytes())

    def logits_with(weight):
        head["meta"]["scorers/"]["meta"]["join"]["weight"] = weight
        changed = _core.Classifier.from_bytes(pack(head, arrays), "ldsm")
        model._model = changed.with_labels(model._labels)
        return logits(scores(model))

    # With a larger weight the scores would underflow.
    with np.errstate(invalid="ignore"):
        differences = logits_with(0.0) - logits_with(1.0)
    return differences / model._model.summary()["calibration_slope"]


def logits(probabilities):
    with np.errstate(divide="ignore"):
        return np.log(probabilities / (1.0 - probabilities.astype(float)))


def test_with_all_rows_as_negatives_scorers_equal_liblinear():
    options = FEW | {"scaling": "row", "n_negatives": 5000}
    options |= {"cost": 1.0, "tail_weight": 0.0, "weight_threshold": 0.0}
    model = LdSMClassifier(**options).fit(X, Y)
    assert model._model.summary()["scorer_idf_power"] == 0
    found = losses_of_scorers(model)
    rows, new = (normalize(rows) for rows in (X, X_NEW))
    svm = OneVsRestClassifier(LinearSVC(C=1.0, tol=1e-6, max_iter=100_000)).fit(rows, Y)
    expected = np.maximum(0.0, 1.0 - svm.decision_function(new)) ** 2
    known = np.isfinite(found)
    assert known.mean() > 0.5
    # The solver stops at a gradient of 0.1.
    np.testing.assert_allclose(found[known], expected[known], rtol=0.1, atol=0.05)


def words_of(kind, seed=0):
    """Return rows of words with one label each: words of the label, other rare ones, frequent ones.

    A row has half of its label's words.
    """
    random = np.random.default_rng(seed)
    n, n_labels, n_words, share_of_frequent = {
        "rare words": (1000, 100, 3, 0.5),
        "noisy labels": (1000, 40, 3, 0.0),
        "few rows of a label": (900, 300, 20, 0.1),
    }[kind]
    y = random.permutation(np.arange(n) % n_labels)
    own = random.integers(0, 600, (n_labels, 2 * n_words))
    rows = np.zeros((n, 700), np.float32)
    rows[:, 600:] = random.random((n, 100)) < share_of_frequent
    for row, label in zip(rows, y, strict=True):
        row[random.choice(own[label], n_words, replace=False)] = 1
        row[random.integers(0, 600, n_words)] = 1
    if kind == "noisy labels":
        y = np.where(random.random(n) < 0.4, random.permutation(y), y)
    return sp.csr_matrix(rows), y


@pytest.mark.parametrize(
    ("kind", "idf_power", "cost"),
    [
        ("rare words", 1.0, 1.0),
        ("noisy labels", 0.0, 0.25),
        ("few rows of a label", 0.0, 4.0),
    ],
)
def test_power_and_cost_follow_the_rows(kind, idf_power, cost):
    rows, y = words_of(kind)
    models = [LdSMClassifier(**FEW, n_jobs=n_jobs).fit(rows, y) for n_jobs in (1, 2)]
    summary = models[0]._model.summary()
    assert (summary["scorer_idf_power"], summary["scorer_cost"]) == (idf_power, cost)
    assert models[0]._model.to_bytes() == models[1]._model.to_bytes()
    # A cost that is given is not compared, but powers are.
    fixed = LdSMClassifier(**FEW, cost=1.0).fit(rows, y)._model.summary()
    assert fixed["scorer_cost"] == 1.0
    assert fixed["scorer_idf_power"] == 1.0 or idf_power == 0.0


@pytest.mark.parametrize(("n_more", "idf_power"), [(20, 1.0), (60, 0.0)])
def test_rows_that_fill_a_tenth_of_the_columns_have_no_rare_words(n_more, idf_power):
    rows, y = words_of("rare words")
    more = np.random.default_rng(1).random((rows.shape[0], n_more)) < 0.4
    rows = sp.hstack([rows, more.astype(np.float32)]).tocsr()
    summary = LdSMClassifier(**FEW).fit(rows, y)._model.summary()
    assert summary["scorer_idf_power"] == idf_power


def test_power_and_cost_are_the_simplest_without_a_clear_gain(few):
    summary = few._model.summary()
    assert (summary["scorer_idf_power"], summary["scorer_cost"]) == (0.0, 1.0)


def test_scores_of_sparse_scorers_are_probabilities():
    model = LdSMClassifier(**FEW).fit(X, Y)
    found = scores(model)
    labels, best = model.predict_topk(X_NEW, 5)
    there = np.take_along_axis(Y_NEW.toarray(), labels, axis=1)
    # In each of five bins, the share of present labels equals the mean score.
    bins = np.minimum((best * 5).astype(int), 4)
    errors = [abs((best - there)[bins == k].sum()) for k in range(5)]
    assert sum(errors) / best.size < 0.05
    is_best = np.eye(found.shape[1], dtype=bool)[labels[:, 0]]
    np.testing.assert_array_equal(model.predict(X_NEW).toarray(), (found > 0.5) | is_best)
    model.set_params(threshold=0.2)
    np.testing.assert_array_equal(model.predict(X_NEW).toarray(), found > np.float32(0.2))
    summary = model._model.summary()
    assert summary["calibration_slope"] > 0
    assert np.isfinite(summary["calibration_offset"])


def test_scorers_are_small_and_their_weight_is_fitted():
    model = LdSMClassifier(**FEW).fit(X, Y)
    summary = model._model.summary()
    assert 0 < summary["n_scorer_weights"] < N_LABELS * X.shape[1]
    assert summary["scorer_weight"] > 0
    assert summary["scorer_floor"] > 0
    alone = LdSMClassifier(**FEW, scorers="none").fit(X, Y)
    assert "scorer_weight" not in alone._model.summary()
    both = LdSMClassifier(**FEW, n_jobs=2).fit(X, Y)
    assert np.array_equal(scores(both), scores(model))


@pytest.mark.parametrize("options", [{}, {"arity": 4}], ids=str)
def test_the_arrays_of_a_tree(options):
    options = FEW | options | {"min_priority": 0.0, "keep_statistics": True}
    model = LdSMClassifier(**options, scorers="none").fit(X, Y)
    assert len(model.trees_) == 3
    for tree in model.trees_:
        n = len(tree.parent)
        assert n <= FEW["max_nodes"]
        inner = tree.children[:, 0] >= 0
        assert tree.parent[0] == -1
        for node in np.flatnonzero(inner):
            assert (tree.parent[tree.children[node]] == node).all()
            assert (tree.depth[tree.children[node]] == tree.depth[node] + 1).all()
            sizes = tree.n_examples[tree.children[node]]
            assert (sizes > 0).all()
            assert (sizes < tree.n_examples[node]).all()
            assert sizes.sum() >= tree.n_examples[node]
        assert tree.n_examples[0] == X.shape[0]
        for name in ("j", "balance", "class_integrity", "multiway_penalty", "purity"):
            assert np.isfinite(tree[name][inner]).all()
            assert np.isnan(tree[name][~inner]).all()
        expected = tree.balance - 2.0 * tree.class_integrity + 1.0 * tree.multiway_penalty
        np.testing.assert_allclose(tree.j[inner], expected[inner], atol=1e-9)
        assert tree.j_by_epoch.shape == (n, FEW["n_epochs"])
        assert np.isfinite(tree.j_by_epoch[inner]).all()
        assert (tree.n_weights[inner] > 0).all()
        assert (tree.n_weights[~inner] == 0).all()
        for node in range(n):
            part = slice(tree.label_starts[node], tree.label_starts[node + 1])
            assert (np.diff(tree.labels[part]) > 0).all()
            share = tree.label_counts[part] / tree.label_counts[part].sum()
            entropy = -(share * np.log(share)).sum()
            np.testing.assert_allclose(tree.label_entropy[node], entropy, atol=1e-5)
        with pytest.raises(ValueError, match="read-only"):
            tree.depth[0] = 1
    root = slice(0, model.trees_[0].label_starts[1])
    counts = np.zeros(N_LABELS)
    counts[model.trees_[0].labels[root]] = model.trees_[0].label_counts[root]
    np.testing.assert_array_equal(counts, np.asarray(Y.sum(axis=0)).ravel())


def test_added_trees_do_not_change_the_others():
    alone = FEW | {"scorers": "none"}
    model = LdSMClassifier(**alone | {"n_estimators": 2}, warm_start=True).fit(X, Y)
    before = model.trees_
    model.set_params(n_estimators=4, n_jobs=2).fit(X, Y)
    at_once = LdSMClassifier(**alone | {"n_estimators": 4}).fit(X, Y)
    assert np.array_equal(scores(model), scores(at_once))
    for old, new in zip(before, model.trees_, strict=False):
        np.testing.assert_array_equal(old.children, new.children)
        np.testing.assert_array_equal(old.n_weights, new.n_weights)


@pytest.mark.parametrize(
    ("change", "rows", "labels", "message"),
    [
        ({"n_estimators": 1}, X, Y, "n_estimators must be at least 3 .* got 1"),
        ({"n_estimators": 5, "arity": 3}, X, Y, "arity"),
        ({"n_estimators": 5}, X[:, :7], Y, "features"),
        ({"n_estimators": 5}, X[:5], Y, "rows|samples"),
        (
            {"n_estimators": 5},
            X,
            np.zeros(X.shape[0], int),
            "y must hold label sets as in the first fit",
        ),
    ],
    ids=str,
)
def test_trees_that_cannot_be_added(change, rows, labels, message):
    model = LdSMClassifier(**FEW, warm_start=True).fit(X, Y)
    before, params = scores(model), model._model.params
    model.set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(rows, labels)
    assert np.array_equal(scores(model), before)
    assert model._model.params == params


@pytest.mark.parametrize("warm_start", [False, True])
def test_an_interrupted_fit_changes_nothing(warm_start, monkeypatch):
    model = LdSMClassifier(**FEW, warm_start=warm_start).fit(X, Y)
    before, learn = model._model.to_bytes(), LdSMClassifier._train

    def interrupted(self, *arguments):
        # Ctrl-C may arrive after all training.
        learn(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LdSMClassifier, "_train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(n_estimators=5).fit(X, Y)
    assert model._model.to_bytes() == before
    assert model.fit(X, Y)._n_trees() == 5


def test_collapsed_trees_raise_a_warning():
    """Train on unpredictable labels with a large weight of class integrity."""
    random = np.random.default_rng(0)
    noise = sp.csr_matrix((random.random((900, 40)) < 0.2).astype(np.float32))
    labels = (random.random((900, N_LABELS)) < 0.3).astype(int)
    with pytest.warns(ConvergenceWarning, match=r"3 of 3 trees collapsed.*lambda1 \(now 8"):
        LdSMClassifier(**FEW | {"max_nodes": 8000, "lambda1": 8.0}).fit(noise, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LdSMClassifier(**FEW | {"max_nodes": 8000}).fit(X, Y)


def test_the_labels_of_a_prediction(few):
    values = scores(few)
    model = copy.deepcopy(few)
    above = model.set_params(threshold=0.3).predict(X_NEW)
    np.testing.assert_array_equal(above.toarray(), values > 0.3)
    two = model.set_params(threshold=None, n_labels=2).predict(X_NEW)
    assert (two.sum(axis=1) == 2).all()
    labels, _ = model.predict_topk(X_NEW, 2)
    assert (np.take_along_axis(two.toarray(), labels, 1) == 1).all()
    likely = model.set_params(n_labels=None).predict(X_NEW)
    wrong = (likely != Y_NEW).toarray().mean()
    assert wrong < 0.5 * Y_NEW.toarray().mean()
    with pytest.raises(ValueError, match="n_labels"):
        model.set_params(n_labels=0).predict(X_NEW)


def test_scores_of_all_labels_and_of_the_best_agree(few):
    values = scores(few)
    labels, best = few.predict_topk(X_NEW, N_LABELS + 2)
    for row in range(X_NEW.shape[0]):
        known = labels[row] >= 0
        np.testing.assert_array_equal(values[row, labels[row, known]], best[row, known])
        assert (values[row] > 0).sum() == known.sum()
        assert (best[row, ~known] == -np.inf).all()
    sparse = few.predict_scores(X_NEW, threshold=0.1)
    np.testing.assert_array_equal(sparse.toarray(), np.where(values > 0.1, values, 0))


def test_shares_sum_to_one_without_scorers():
    whole = LdSMClassifier(**FEW, scorers="none", slim_trees=False).fit(X, Y)
    np.testing.assert_allclose(scores(whole).sum(axis=1), 1, atol=1e-5)
    cut = LdSMClassifier(**FEW, scorers="none").fit(X, Y)
    assert (scores(cut).sum(axis=1) < 1.01).all()


def test_leaves_of_low_priority_are_not_split():
    random = np.random.default_rng(0)
    rows, y = random.random((3000, 20)) - 0.5, random.integers(0, 30, 3000)

    def n_nodes(min_priority):
        options = FEW | {"max_nodes": 2000, "min_priority": min_priority, "scorers": "none"}
        return sum(len(tree.parent) for tree in LdSMClassifier(**options).fit(rows, y).trees_)

    assert n_nodes(20.0) < n_nodes(10.0) < n_nodes(0.0)
    # Values above a hundredth of the root's have no effect, so small data are split too.
    assert n_nodes(1000.0) == n_nodes(100.0)


def test_statistics_are_kept_on_request():
    names = {"n_examples", "label_entropy", "labels", "label_counts", "j", "purity", "j_by_epoch"}
    slim, kept = (LdSMClassifier(**FEW, keep_statistics=keep).fit(X, Y) for keep in (False, True))
    assert not names & set(slim.trees_[0])
    assert names <= set(kept.trees_[0])
    np.testing.assert_array_equal(scores(slim), scores(kept))


def test_single_labels():
    rows, y = estimators.sparse()
    names = np.array([f"class {i}" for i in range(12)])[y]
    model = LdSMClassifier(n_estimators=5, random_state=0).fit(rows, names)
    assert model.score(rows, names) > 0.9
    assert model.predict(rows).dtype == names.dtype


@pytest.mark.parametrize("options", [{}, {"scorers": "none"}], ids=str)
def test_rows_without_labels_are_left_out(options):
    empty = sp.csr_matrix((200, N_LABELS), dtype=np.int64)
    noise = sp.random(200, X.shape[1], 0.1, "csr", np.float32, random_state=0)
    both = sp.vstack([X, noise], format="csr"), sp.vstack([Y, empty], format="csr")
    options = FEW | options
    alone, more = LdSMClassifier(**options).fit(X, Y), LdSMClassifier(**options).fit(*both)
    assert np.array_equal(scores(alone), scores(more))
    with pytest.raises(ValueError, match="label"):
        LdSMClassifier(**FEW).fit(noise, empty)


def test_weights_act_like_copies_in_the_histograms():
    weights = np.where(np.arange(X.shape[0]) % 3 == 0, 2.0, 1.0)
    options = FEW | {"scorers": "none", "keep_statistics": True}
    tree = LdSMClassifier(**options).fit(X, Y, weights).trees_[0]
    weights /= weights.mean()
    assert tree.n_examples[0] == pytest.approx(weights.sum())
    root = slice(0, tree.label_starts[1])
    expected = (sp.diags(weights) @ Y).sum(axis=0)
    np.testing.assert_allclose(tree.label_counts[root], np.asarray(expected).ravel())


@pytest.mark.parametrize("is_dense", [True, False])
def test_weights_act_like_copies(is_dense):
    """Compare weight 4 with four copies, for rows that differ only in their labels."""
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 60)
    rows = np.eye(8)[groups] + is_dense * 0.1 * random.random((len(groups), 8))
    labels = 2 * groups + random.integers(0, 2, len(groups))
    weights = np.where(labels % 2 == 0, 4.0, 1.0)
    options = FEW | {"n_estimators": 10, "scorers": "none"}
    options |= {"min_priority": 0.0, "slim_trees": False}
    repeated = np.repeat(np.arange(len(groups)), weights.astype(int))
    order = random.permutation(len(repeated))
    plain, weighted, wanted = (
        scores(LdSMClassifier(**options).fit(X, y, w), rows)[range(len(rows)), 2 * groups].mean()
        for X, y, w in [
            (rows, labels, None),
            (rows, labels, weights),
            (rows[repeated[order]], labels[repeated[order]], None),
        ]
    )
    assert weighted > plain + 0.2
    assert weighted == pytest.approx(wanted, abs=0.12)


AUTHORS = LdSMClassifier.AUTHORS | {"n_estimators": 3, "max_nodes": 60, "random_state": 0}


def precisions(**options):
    labels, _ = LdSMClassifier(**AUTHORS | options).fit(X, Y).predict_topk(X_NEW, 3)
    return [metrics.precision_at_k(Y_NEW, labels, k) for k in (1, 3)]


def test_settings_of_the_authors():
    """Check that the trees find the ten groups of labels, the aim of the objective."""
    first, third = precisions()
    # A row has 1.79 labels on average; 9 of 10 rows have the most frequent label of their group.
    assert first > 0.86
    assert third > 0.57
    for tree in LdSMClassifier(**AUTHORS).fit(X, Y).trees_:
        # -lambda1 = -2 at a perfect split.
        assert tree.j[0] < -1.3
        assert tree.balance[0] < 0.5
        assert tree.class_integrity[0] > 0.9
        assert tree.multiway_penalty[0] < 0.1
        assert tree.purity[0] < 0.02
        # The objective falls with every epoch.
        assert np.all(np.diff(tree.j_by_epoch[0]) < 0)
        # About one leaf per group, all at about the same depth.
        assert 13 <= len(tree.parent) <= 25
        assert tree.depth.max() <= 2 * np.log2(10)
        leaves = tree.children[:, 0] < 0
        entropy = np.average(tree.label_entropy[leaves], weights=tree.n_examples[leaves])
        assert entropy < 0.6 * tree.label_entropy[0]
    # Trees that split at random, or without regard to labels, miss these values.
    for blind in [{"learning_rate": 1e-6}, {"lambda1": 0.0}]:
        first, third = precisions(**blind)
        assert first < 0.82
        assert third < 0.54


def test_the_papers_settings_are_not_the_authors_sample_call():
    """Compare Section 10 and Table 6 of the paper with the sample call."""
    paper, authors = LdSMClassifier.PAPER, LdSMClassifier.AUTHORS
    changed = {name: paper[name] for name in paper if authors.get(name) != paper[name]}
    assert changed == {
        "n_estimators": 50,
        "arity": 4,
        "max_nodes": 2000,
        "keep_statistics": False,
    }
    model = LdSMClassifier(**paper, random_state=0).fit(X, Y)
    assert len(model.trees_) == 50
    assert {tree.children.shape[1] for tree in model.trees_} == {4}
    labels, _ = model.predict_topk(X_NEW, 1)
    assert metrics.precision_at_k(Y_NEW, labels, 1) > 0.86


@pytest.mark.parametrize(
    "bad",
    [
        {"n_estimators": 0},
        {"arity": 1},
        {"arity": 9},
        {"max_nodes": 0},
        {"n_epochs": 0},
        {"lambda1": -1.0},
        {"lambda2": np.inf},
        {"learning_rate": 0.0},
        {"beta": 2.0},
        {"scorers": "all"},
        {"scorers": "one_against_all"},
        {"n_negatives": -1},
        {"weight_threshold": -0.1},
        {"tail_weight": -0.1},
        {"cost": 0.0},
        {"loss": "hinge"},
        {"n_bits": 40},
    ],
    ids=str,
)
def test_bad_options_are_refused_by_name(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        LdSMClassifier(**bad).fit(X, Y)
