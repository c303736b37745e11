"""Misclassification costs: GambleClassifier(cost_matrix=...)."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from xmtree import ActiveGamble, GambleClassifier, _core, _cost_sensitive, _validation

COSTS = [[0, 1, 1], [1, 0, 1], [20, 20, 0]]


def task(n=400, seed=0, labels=(0, 1, 2)):
    """Three classes that overlap widely."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    X = random.normal(size=(n, 4))
    X[:, 0] += y
    return X, np.asarray(labels)[y]


def fitted(X, y, costs=COSTS, **more):
    settings = {"n_estimators": 40, "random_state": 0} | more
    return GambleClassifier(cost_matrix=costs, **settings).fit(X, y)


def mean_cost(costs, y, predicted):
    return np.asarray(costs)[y, predicted].mean()


@pytest.mark.parametrize("seed", range(3))
def test_costs_pay_on_new_rows(seed):
    """Against ignoring them, weighting rows by them, and probabilities as boosting leaves them."""
    (X, y), (X_test, y_test) = task(seed=seed), task(2000, seed=100 + seed)
    costs = np.array(COSTS)
    plain, model = fitted(X, y, None), fitted(X, y)
    weighted = GambleClassifier(n_estimators=40, random_state=0)
    weighted.fit(X, y, sample_weight=costs.sum(axis=1)[y])
    uncalibrated = (softmax(plain.decision_function(X_test) / 2, axis=1) @ costs).argmin(axis=1)
    own = mean_cost(costs, y_test, model.predict(X_test))
    for other in (plain.predict(X_test), weighted.predict(X_test), uncalibrated):
        assert own < 0.8 * mean_cost(costs, y_test, other)


def test_training_is_the_same():
    X, y = task()
    plain, model = fitted(X, y, None), fitted(X, y)
    assert plain._model.to_bytes() == model._model.to_bytes()
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))
    assert model.temperature_ > 2
    np.testing.assert_array_equal(
        plain.predict_proba(X).argmax(axis=1), model.predict_proba(X).argmax(axis=1)
    )


def test_predictions_have_the_lowest_expected_cost():
    X, y = task()
    model = fitted(X, y)
    expected = model.predict_proba(X).astype(float) @ np.array(COSTS, float)
    np.testing.assert_array_equal(model.predict(X), expected.argmin(axis=1))
    labels, scores = model.predict_topk(X, k=3)
    np.testing.assert_array_equal(labels, expected.argsort(axis=1))
    np.testing.assert_allclose(scores, -np.sort(expected, axis=1), rtol=1e-6)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 40
    np.testing.assert_array_equal(stages[-1], model.predict(X))


def test_rows_are_columns_of_the_true_class():
    """The matrix is no symmetric one: only false alarms, or only misses, are dear."""
    X, y = task()
    predicted = {
        to: np.mean(fitted(X, y, costs).predict(X) == 2)
        for to, costs in {
            "miss": COSTS,
            "alarm": [[0, 1, 20], [1, 0, 20], [1, 1, 0]],
            "equal": [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        }.items()
    }
    assert predicted["alarm"] < predicted["equal"] < predicted["miss"]


def test_equal_costs_change_no_prediction():
    X, y = task()
    model = fitted(X, y, 3 * (1 - np.eye(3)))
    np.testing.assert_array_equal(model.predict(X), fitted(X, y, None).predict(X))


def test_the_order_is_that_of_classes():
    X, y = task(labels=("c", "a", "b"))
    number = np.searchsorted(["a", "b", "c"], y)
    np.testing.assert_array_equal(
        fitted(X, y).predict(X), np.array(["a", "b", "c"])[fitted(X, number).predict(X)]
    )


def test_two_classes():
    X, y = task()
    y = (y == 2).astype(int)
    misses, alarms = (fitted(X, y, [[0, a], [b, 0]]).predict(X).sum() for a, b in ((1, 9), (9, 1)))
    assert alarms < y.sum() < misses


def test_the_temperature_has_the_lowest_log_loss():
    """By committees of the core on the same folds, and against a plain search."""
    X, y = task()
    model = fitted(X, y)
    fold = _cost_sensitive.folds(y.astype(np.uint32), 3, 0)
    for label in range(3):
        assert np.ptp(np.bincount(fold[y == label])) <= 1
    scores = np.empty((len(y), 3))
    for part in range(3):
        train = fold != part
        core = _core.Classifier("gamble", json.dumps(model._model.params), 3, False)
        core.fit(X[train], y[train].astype(np.uint32))
        scores[~train] = core.predict_scores(X[~train]) / 2

    def loss(temperature):
        return -log_softmax(scores / temperature, axis=1)[np.arange(len(y)), y].mean()

    best = minimize_scalar(loss, bounds=(0.01, 1000), method="bounded")
    assert loss(model.temperature_) <= best.fun + 1e-6
    assert model.temperature_ == pytest.approx(best.x, rel=0.01)


def test_weights_count_in_the_temperature():
    X, y = task()
    dropped = np.arange(len(y)) % 4 == 0
    wrong = np.where(dropped, (y + 1) % 3, y)
    kept = ~dropped
    model = GambleClassifier(n_estimators=20, cost_matrix=COSTS, random_state=0)
    with_zeros = clone(model).fit(X, wrong, sample_weight=kept.astype(float))
    assert with_zeros.temperature_ == model.fit(X[kept], y[kept]).temperature_


@pytest.mark.parametrize("early_stopping", [False, True])
def test_the_same_for_any_form_and_number_of_threads(early_stopping):
    X, y = task()
    X[X < 0.3] = 0
    models = [
        fitted(form, y, n_jobs=n_jobs, early_stopping=early_stopping)
        for form in (X, sp.csr_array(X))
        for n_jobs in (1, 2)
    ]
    for model in models:
        assert model.temperature_ == models[0].temperature_
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))
        np.testing.assert_array_equal(model.predict(X[:1]), models[0].predict(X)[:1])


def test_chunks_of_rows_predict_alike(monkeypatch):
    X, y = task()
    model = fitted(X, y)
    whole = model.predict_topk(X, 2)
    monkeypatch.setattr("xmtree._prediction.CHUNK_BYTES", 1000)
    for part, all_rows in zip(model.predict_topk(X, 2), whole, strict=True):
        np.testing.assert_array_equal(part, all_rows)


@pytest.mark.parametrize("costs", [COSTS, np.array(COSTS, np.int64), np.array(COSTS, object)])
def test_costs_are_stored_with_the_model(costs, tmp_path):
    X, y = task()
    model = fitted(X, y, costs)
    assert clone(model).cost_matrix is not None
    model.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert again.cost_matrix == COSTS
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert other.temperature_ == model.temperature_
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.fit(X, y).predict(X), model.predict(X))


def test_changed_costs_act_with_the_next_fit():
    X, y = task()
    model = fitted(X, y)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(cost_matrix=None).predict(X), before)
    plain = fitted(X, y, None)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), plain.predict(X))
    assert model.temperature_ == plain.temperature_


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1], [1, 0]], r"each of the 3 classes of y, got shape \(2, 2\)"),
        ([0, 1, 1], r"got shape \(3,\)"),
        ([[0, 1, 1], [1, 0, -1], [1, 1, 0]], "not negative, got -1.0 in row 1, column 2"),
        ([[0, 1, np.nan], [1, 0, 1], [1, 1, 0]], "finite .* got nan in row 0, column 2"),
        ([[0, 1, 1], [1, 0, 1], [np.inf, 1, 0]], "got inf in row 2, column 0"),
        ([[0, 1, 1], [1, 2, 1], [1, 1, 0]], "0 on its diagonal, got 2.0 in row 1"),
        (np.zeros((3, 3)), "must have a cost above 0"),
        ([["a"] * 3] * 3, "cost_matrix must be a matrix of numbers"),
        ([[0, 1], [1, 0], [1]], "cost_matrix must be a matrix of numbers"),
        (3.0, "cost_matrix"),
    ],
)
def test_costs_that_cannot_be_used(costs, message):
    X, y = task()
    model = GambleClassifier(n_estimators=2, cost_matrix=costs)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert not hasattr(model, "classes_")
    kept = fitted(X, y)
    before = kept.predict(X)
    with pytest.raises((ValueError, TypeError)):
        kept.set_params(cost_matrix=costs).fit(X, y)
    np.testing.assert_array_equal(kept.predict(X), before)


def test_few_rows():
    """Nothing can be held out where each row is the only one of its class."""
    X = np.arange(3.0)[:, None]
    model = fitted(X, [0, 1, 2], subsample=1)
    assert model.temperature_ == 1
    assert fitted(X[:1], [0], [[0]]).predict(X).tolist() == [0, 0, 0]
    assert fitted(X[:2], [0, 1], [[0, 1], [1, 0]], subsample=1).temperature_ == 1
    # Row 2 alone has its class, and counts in no fold.
    X, y = task()
    y[:] = np.where(np.arange(len(y)) == 2, 2, y % 2)
    assert 1 < fitted(X, y).temperature_ < 1000


def test_scores_that_would_not_fit_in_memory(monkeypatch):
    X, y = task()
    monkeypatch.setattr(_validation, "MAX_DENSE_BYTES", 1000)
    with pytest.raises(ValueError, match=r"400 rows x 3 classes .* calibration for cost_matrix"):
        fitted(X, y)


def test_stopped_while_calibrating(monkeypatch):
    """The estimator is as it was before."""
    X, y = task()
    model = fitted(X, y)
    before = model.predict(X)

    def stop(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(_cost_sensitive, "folds", stop)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(cost_matrix=1 - np.eye(3)).fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.predict(X), before)


def test_an_active_committee_has_costs():
    X, y = task()
    template = GambleClassifier(n_estimators=20, cost_matrix=COSTS)
    active = ActiveGamble(estimator=template, random_state=0, n_rounds=2).fit(X, y)
    assert active.estimator_.temperature_ > 1
    np.testing.assert_array_equal(active.predict(X), active.estimator_.predict(X))
