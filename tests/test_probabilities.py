"""Probabilities of all learners: calibration, storage, label sets."""

import copy
import pickle
from functools import cache

import estimators
import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, top_k_accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from xmtree import _calibration
from xmtree._calibration import HeldOut
from xmtree.datasets import make_xmc
from xmtree.metrics import calibration_error


def noisy(n=3000, n_classes=5, seed=0):
    """Return overlapping classes, of which no learner can predict more than about two thirds."""
    random = np.random.default_rng(seed)
    y = random.integers(0, n_classes, n)
    X = random.normal(size=(n, 8))
    X[np.arange(n), y] += 1.7
    return X, y


def error_of_best(model, X, y):
    labels, probabilities = model.predict_topk(X, 1, scores="probability")
    return calibration_error(y, labels[:, 0], probabilities[:, 0])


@pytest.mark.parametrize("name", estimators.ALL)
@pytest.mark.parametrize("data", [estimators.dense, estimators.sparse], ids=["dense", "sparse"])
def test_topk_probabilities_equal_predict_proba(name, data):
    X, y = data()
    model = estimators.ALL[name]().fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.dtype == np.float32
    assert probabilities.shape == (X.shape[0], len(model.classes_))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    labels, best = model.predict_topk(X, 3, scores="probability")
    ranked, scores = model.predict_topk(X, 3)
    np.testing.assert_array_equal(labels, ranked)
    known = scores > -np.inf
    np.testing.assert_array_equal(best > -np.inf, known)
    found = np.take_along_axis(probabilities, np.maximum(labels, 0), axis=1)
    np.testing.assert_allclose(best[known], found[known], rtol=1e-4, atol=1e-7)
    assert np.all(np.diff(np.where(known, best, 0)) <= 1e-6)


@pytest.mark.parametrize("name", ["oaa", "oaa-softmax", "lomtree-3", "recall-tree", "filter-tree"])
def test_probabilities_of_the_best_label_are_calibrated(name):
    X, y = noisy()
    model = estimators.ALL[name]().fit(X, y)
    X_test, y_test = noisy(4000, seed=1)
    assert error_of_best(model, X_test, y_test) < 0.06


@cache
def five_best_of_many(name):
    """Return the labels of test rows, and the five best labels with their probabilities."""
    X, y = make_xmc(12_000, 3000, 1000, noise=0.6, exponent=0.5, random_state=0)
    known = np.isin(y, y[:8000]) & (np.arange(12_000) >= 8000)
    model = estimators.ALL[name]().fit(X[:8000], y[:8000])
    return y[known], *model.predict_topk(X[known], 5, scores="probability")


@pytest.mark.parametrize(
    ("name", "most"),
    [("oaa", 0.03), ("recall-tree", 0.03), ("filter-tree", 0.06), ("ldsm", 0.03)],
)
def test_probabilities_of_many_labels_are_calibrated(name, most):
    y, labels, probabilities = five_best_of_many(name)
    assert calibration_error(y, labels[:, 0], probabilities[:, 0]) < most


@pytest.mark.parametrize("name", ["oaa", "recall-tree", "filter-tree", "ldsm"])
def test_probabilities_of_the_five_best_labels_are_calibrated(name):
    y, labels, probabilities = five_best_of_many(name)
    each = np.repeat(y, 5), labels.ravel(), probabilities.clip(0).ravel()
    assert calibration_error(*each) < 0.03


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree"])
def test_with_few_rows_the_model_itself_is_calibrated(name):
    X, y = noisy()
    model = estimators.ALL[name](n_passes=5).fit(X, y)
    # Three passes leave a fifth of the rows out, three learn all.
    assert model.n_examples_seen_ == 3 * 2400 + 3 * 3000
    brief = estimators.ALL[name](n_passes=1).fit(X, y)
    assert brief.n_examples_seen_ == 3000
    assert brief.progressive_loss_ == model.progressive_loss_
    few = estimators.ALL[name](n_passes=5).fit(X[:95], y[:95])
    assert (few.n_examples_seen_, few._calibration.rest) == (5 * 95, None)


@pytest.mark.parametrize("name", ["oaa", "recall-tree"])
def test_after_early_stopping_fewer_passes_learn_all_rows(name):
    X, y = noisy()
    model = estimators.ALL[name](n_passes=50, early_stopping=True).fit(X, y)
    # Stopping holds out a tenth of the 2,400 rows. Then 40 % as many passes learn all rows.
    possible = [2160 * n + 3000 * round(0.4 * 0.9 * n) for n in range(1, 51)]
    assert model.n_examples_seen_ in possible
    assert np.mean(model.predict(X) == y) > 0.5


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree"])
def test_with_many_rows_the_model_itself_is_calibrated(name, monkeypatch):
    monkeypatch.setattr(_calibration, "MANY_ROWS", 3000)
    monkeypatch.setattr(_calibration, "HELD_OUT_SHARE", 0.2)
    X, y = noisy()
    X_test, y_test = noisy(4000, seed=1)
    model = estimators.ALL[name](n_passes=5).fit(X, y)
    # Only the last two of five passes learn the 600 rows that calibrate.
    assert model.n_examples_seen_ == 3 * 2400 + 2 * 3000
    assert error_of_best(model, X_test, y_test) < 0.06
    again = estimators.ALL[name](n_passes=5).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    # The progressive loss is that of the first pass.
    monkeypatch.setattr(_calibration, "LAST_PASSES", 0)
    brief = estimators.ALL[name](n_passes=3).fit(X, y)
    assert brief.n_examples_seen_ == 3 * 2400 + 600
    assert brief.progressive_loss_ == model.progressive_loss_
    brief = estimators.ALL[name](n_passes=1, early_stopping=True).fit(X, y)
    assert brief.n_examples_seen_ == 2400 - 240 + 600


def test_a_pruned_model_is_calibrated_by_a_second_one():
    X, y = noisy()
    X_test, y_test = noisy(4000, seed=1)
    model = xmtree.OAAClassifier(prune=0.01, random_state=0).fit(X, y)
    plain = xmtree.OAAClassifier(prune=0.01, random_state=0, calibrate=False).fit(X, y)
    assert plain._model.to_bytes() == model._model.to_bytes()
    assert error_of_best(model, X_test, y_test) < 0.06


def test_held_out_rows_lose_unseen_columns():
    X = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 0], [2, 0, 3]], np.float32))
    # If columns are empty, new rows may have other columns as well.
    wide = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(3, 9))
    learned = np.array([1.0, 1.0, 0.0])
    for rows, wanted in [(X, [2, 0, 0]), (wide, [2, 0, 3]), (X.toarray(), [2, 0, 3])]:
        codes = sp.csr_matrix(np.eye(3, dtype=np.uint8))
        held_out = HeldOut.of(rows, codes, 0, np.ones(3), learned, np.array([2]))
        found, sets, weights = held_out.usable()
        assert sp.csr_matrix(found).toarray()[0, :3].tolist() == wanted
        assert (sets.toarray().tolist(), weights.tolist()) == ([[0, 0, 1]], [1])


def test_held_out_rows_of_classes_that_others_have_need_one_that_was_learned():
    """The model has learned class 0, class 1 has two rows that are held out, class 2 one."""
    codes, weights = np.array([0, 0, 1, 1, 2], np.uint32), np.ones(5)
    learned, rows = np.array([1.0, 0, 0, 0, 0]), np.array([1, 2, 3, 4])
    held_out = HeldOut.of(np.eye(5), codes, 3, weights, learned, rows)
    assert held_out.usable()[1].tolist() == [0, 2]


def test_label_trees_share_the_probability_of_a_row():
    X, y = noisy()
    X_test, y_test = noisy(4000, seed=1)
    model = xmtree.LdSMClassifier(random_state=0).fit(X, y)
    assert error_of_best(model, X_test, y_test) < 0.1


def test_the_temperature_lowers_the_confidence_of_boosting():
    X, y = noisy()
    X_test, y_test = noisy(4000, seed=1)
    model = xmtree.GambleClassifier(random_state=0).fit(X, y)
    scores = model.decision_function(X_test) / 4
    probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    own = calibration_error(y_test, probabilities.argmax(axis=1), probabilities.max(axis=1))
    assert model.temperature_ > 5
    assert error_of_best(model, X_test, y_test) < 0.4 * own
    # Every tree has seen all rows.
    whole = xmtree.GambleClassifier(n_estimators=5, subsample=1.0, random_state=0).fit(X, y)
    assert whole.temperature_ == 1


def test_equal_rows_of_different_labels_keep_the_temperature_low():
    random = np.random.default_rng(0)
    X, X_test = (random.integers(0, 2, (3000, 4)).astype(float) for _ in range(2))
    # The columns determine the label of three rows in four.
    y, y_test = (
        np.where(random.random(3000) < 0.75, x @ [1, 2, 0, 0], random.integers(0, 4, 3000))
        for x in (X, X_test)
    )
    model = xmtree.GambleClassifier(random_state=0).fit(X, y.astype(int))
    assert error_of_best(model, X_test, y_test.astype(int)) < 0.1


@pytest.mark.parametrize("name", ["oaa", "filter-tree", "recall-tree"])
def test_without_calibration_the_error_is_larger(name):
    X, y = noisy()
    X_test, y_test = noisy(4000, seed=1)
    plain = estimators.ALL[name](calibrate=False).fit(X, y)
    model = estimators.ALL[name]().fit(X, y)
    assert error_of_best(plain, X_test, y_test) > 1.5 * error_of_best(model, X_test, y_test)
    accuracy, own = (np.mean(one.predict(X_test) == y_test) for one in (plain, model))
    assert own > accuracy - 0.01


@pytest.mark.parametrize("name", ["oaa", "lomtree-3", "recall-tree", "filter-tree"])
def test_a_stream_calibrates_before_it_learns(name):
    X, y = noisy()
    model = estimators.ALL[name]()
    slopes = set()
    for start in range(0, 3000, 100):
        part = slice(start, start + 100)
        model.partial_fit(X[part], y[part], classes=range(5))
        slopes.add(model._calibration.slope)
    # Each time a fifth more: 100, 200, 300, 400, 500, 600, 800, 1000, 1200, ...
    assert 8 < len(slopes) < 18
    X_test, y_test = noisy(4000, seed=1)
    assert error_of_best(model, X_test, y_test) < 0.12


def test_few_rows_do_not_calibrate():
    X, y = noisy(90)
    assert xmtree.OAAClassifier(random_state=0).fit(X, y)._calibration.slope == 1
    model = xmtree.OAAClassifier(random_state=0)
    for start in range(0, 90, 10):
        model.partial_fit(X[start : start + 10], y[start : start + 10], classes=range(5))
    assert model._calibration.slope == 1


@pytest.mark.parametrize("name", ["oaa", "recall-tree", "gamble"])
def test_calibration_is_stored(name, tmp_path):
    X, y = noisy(600)
    model = estimators.ALL[name]().fit(X, y)
    expected = model.predict_proba(X)
    model.save(tmp_path / "model")
    for other in (xmtree.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), expected)


@pytest.mark.parametrize("n_jobs", [2])
@pytest.mark.parametrize("name", ["oaa", "lomtree-3", "recall-tree", "gamble"])
def test_calibration_does_not_depend_on_threads(name, n_jobs):
    X, y = noisy(600)
    one, two = estimators.ALL[name]().fit(X, y), estimators.ALL[name](n_jobs=n_jobs).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_rows_of_weight_0_do_not_calibrate():
    X, y = noisy(600)
    wrong = np.where(np.arange(600) < 300, (y + 1) % 5, y)
    weights = (np.arange(600) >= 300).astype(float)
    model = xmtree.OAAClassifier(random_state=0)
    alone = copy.deepcopy(model).fit(X[300:], y[300:])
    assert model.fit(X, wrong, weights)._calibration == alone._calibration


def test_allowed_kinds_of_scores():
    X, y = estimators.dense()
    model = xmtree.LOMTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match='scores must be "raw" or "probability", got \'logit\''):
        model.predict_topk(X, scores="logit")


def test_labels_without_a_score_share_the_rest():
    X, y = estimators.sparse()
    model = estimators.ALL["recall-tree-beam"]().fit(X, y)
    assert np.all(model.predict_proba(X[:5]) >= 0)
    empty = xmtree.LdSMClassifier(random_state=0, scorers="none").fit(X, y)
    probabilities = empty.predict_proba(sp.csr_matrix((1, X.shape[1]), dtype=np.float32))
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-5)


# Label sets.


def some_sets(n=3000, n_labels=40, seed=0):
    """Return rows of one to three labels, with noisy features of them."""
    random = np.random.default_rng(seed)
    Y = np.zeros((n, n_labels), int)
    for row in Y:
        row[random.choice(n_labels, random.integers(1, 4), replace=False)] = 1
    marks = Y * (random.random(Y.shape) < 0.7) + (random.random(Y.shape) < 0.02)
    return sp.csr_matrix(marks.astype(np.float32)), Y


def f1(true, found):
    return np.mean(2 * (true & found).sum(axis=1) / (true.sum(axis=1) + found.sum(axis=1)))


def test_label_sets_are_the_labels_above_the_threshold():
    X, Y = some_sets()
    X_test, Y_test = some_sets(2000, seed=1)
    model = xmtree.OAAClassifier(random_state=0).fit(X, Y)
    probabilities = model.predict_proba(X_test)
    found = model.predict(X_test)
    # No training row is without labels.
    is_best = np.eye(40, dtype=bool)[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(found, (probabilities > model.threshold_) | is_best)
    assert found.sum(axis=1).min() == 1
    half = xmtree.OAAClassifier(random_state=0, threshold=0.5).fit(X, Y).predict(X_test)
    assert f1(Y_test, found) > f1(Y_test, half) + 0.005
    assert np.mean(found.sum(axis=1) == 0) < np.mean(half.sum(axis=1) == 0)
    # The mean probability of a label is its frequency.
    likely = (probabilities > 0.2) & (probabilities < 0.8)
    assert abs(np.mean(Y_test[likely]) - np.mean(probabilities[likely])) < 0.15


def test_rows_may_have_no_labels_if_training_rows_have_none():
    X, Y = some_sets()
    Y[:300] = 0
    X = sp.diags(Y.any(axis=1).astype(np.float32)) @ X
    model = xmtree.OAAClassifier(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > model.threshold_)
    assert model.predict(X)[:300].sum() == 0


def test_threshold_and_n_labels_may_change_after_fit():
    X, Y = some_sets(400)
    model = xmtree.OAAClassifier(random_state=0).fit(X, Y)
    assert model.set_params(n_labels=2).predict(X).sum(axis=1).tolist() == [2] * 400
    model.set_params(threshold=0.3)
    assert model.threshold_ == 0.3
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.3)
    for name, value in [("threshold", 1.0), ("threshold", -0.1), ("n_labels", 0)]:
        with pytest.raises(ValueError, match=name):
            xmtree.OAAClassifier(**{name: value}).fit(X, Y)


def test_a_stream_of_label_sets_finds_its_threshold():
    X, Y = some_sets()
    model = xmtree.OAAClassifier(random_state=0)
    for start in range(0, 3000, 200):
        model.partial_fit(X[start : start + 200], Y[start : start + 200])
    assert model._calibration.slope != 1
    assert 0 < model.threshold_ < 0.5


# Other tools that use probabilities.


@pytest.mark.parametrize("name", ["oaa", "ldsm"])
def test_scikit_learn_accepts_the_probabilities(name):
    X, y = noisy(400)
    model = estimators.ALL[name]()
    assert CalibratedClassifierCV(model, cv=2).fit(X, y).predict_proba(X).shape == (400, 5)
    assert OneVsRestClassifier(model).fit(X, y).predict_proba(X).shape == (400, 5)
    stack = StackingClassifier([("own", model)], LogisticRegression(), cv=2)
    assert stack.fit(X, y).score(X, y) > 0.4
    # A random guess of two of five classes has 0.4.
    scores = cross_val_score(model, X, y, scoring="top_k_accuracy", cv=2)
    assert np.all(scores > 0.55)
    loss = get_scorer("neg_log_loss")(model.fit(X, y), X, y)
    assert loss > -1.61
    assert top_k_accuracy_score(y, model.predict_proba(X), k=2) > 0.6


# Labels that are known in advance.


@pytest.mark.parametrize("name", [name for name in estimators.ALL if name != "lomtree-swapping"])
def test_labels_that_are_known_but_not_seen(name):
    X, y = estimators.dense()
    model = estimators.ALL[name]().fit(X, y * 2, classes=range(12))
    assert model.classes_.tolist() == list(range(12))
    assert np.mean(model.predict(X) == y * 2) > 0.8
    assert model.predict_proba(X).shape == (240, 12)
    with pytest.raises(ValueError, match="not in classes"):
        estimators.ALL[name]().fit(X, y, classes=[0, 1])


@pytest.mark.parametrize("name", ["gamble", "samme", "ldsm"])
def test_single_probabilities_do_not_cost_the_model_size(name):
    X, y = estimators.dense()
    few, many = (estimators.ALL[name](n_estimators=n).fit(X, y) for n in (1, 8))
    sizes = [
        {column: np.size(values) for column, values in model._model.summary().items()}
        for model in (few, many)
    ]
    # LdSM stores a flag per tree.
    assert all(size.pop("collapsed", n) == n for size, n in zip(sizes, (1, 8), strict=True))
    assert sizes[0] == sizes[1]
    # Boosting without X_val has no evaluations.
    assert set(sizes[0].values()) <= {0, 1}
