"""Rounds of boosting: a validation set given by the user, and ``warm_start``."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import xmtree
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xmtree import GambleClassifier, SAMMEClassifier


def task(n, seed, names="abcd"):
    """Return overlapping classes."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % len(names)
    X = random.normal(size=(n, 3)) + np.eye(len(names), 3)[y]
    return X, np.array(list(names))[y]


FORMS = {
    "dense": lambda X: X,
    "csr": sp.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("cls", [GambleClassifier, SAMMEClassifier])
def test_early_stopping_on_a_given_validation_set(cls, form):
    (X, y), (X_val, y_val) = task(200, 0), task(100, 1)
    weights = np.random.default_rng(2).integers(0, 3, 100)
    settings = {"n_estimators": 40, "random_state": 0}
    all_rounds = cls(**settings).fit(X, y)
    wrong = [weights[y_val != found].sum() for found in all_rounds.staged_predict(X_val)]
    best = int(np.argmin(wrong)) + 1
    assert 1 < best < 40
    model = cls(early_stopping=True, **settings)
    model.fit(form(X), y, X_val=form(X_val), y_val=y_val, sample_weight_val=weights)
    # The rounds equal those of a fit without early stopping, as no row was held out.
    assert model.n_estimators_ == best
    expected = cls(**settings | {"n_estimators": best}).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(form(X)), expected.decision_function(X))
    # The weight of a class counts as a weight of its rows.
    by_class = dict(zip("abcd", (1, 2, 3, 4), strict=True))
    weights_val = np.array([by_class[label] for label in y_val])
    weights = np.array([by_class[label] for label in y])
    model.set_params(class_weight=by_class).fit(X, y, X_val=X_val, y_val=y_val)
    other = cls(early_stopping=True, **settings)
    other.fit(X, y, sample_weight=weights, X_val=X_val, y_val=y_val, sample_weight_val=weights_val)
    assert model._model.to_bytes() == other._model.to_bytes()


def test_a_validation_set_within_a_pipeline():
    (X, y), (X_val, y_val) = task(200, 0), task(100, 1)
    model = GambleClassifier(n_estimators=30, early_stopping=True, random_state=0)
    pipe = make_pipeline(StandardScaler(), model)
    scaler = StandardScaler().fit(X)
    pipe.fit(
        X,
        y,
        gambleclassifier__X_val=scaler.transform(X_val),
        gambleclassifier__y_val=y_val,
    )
    assert 1 <= model.n_estimators_ < 30
    # As for HistGradientBoosting, a pipeline can transform them like X.
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).set_fit_request(X_val=True, y_val=True)
        routed = make_pipeline(StandardScaler(), routed, transform_input=["X_val"])
        routed.fit(X, y, X_val=X_val, y_val=y_val)
    assert routed[-1]._model.to_bytes() == model._model.to_bytes()


def test_invalid_validation_sets_are_refused():
    (X, y), (X_val, y_val) = task(60, 0), task(20, 1)
    model = GambleClassifier(n_estimators=3, early_stopping=True, random_state=0)
    for arguments, message in [
        ({"X_val": X_val}, "X_val and y_val must be given together"),
        ({"y_val": y_val}, "X_val and y_val must be given together"),
        ({"sample_weight_val": np.ones(20)}, "sample_weight_val needs X_val"),
        ({"X_val": X_val, "y_val": ["z"] * 20}, "y_val contains the label 'z', which is not in y"),
        ({"X_val": X_val, "y_val": range(20)}, "y_val contains the label 0, which is not in y"),
        ({"X_val": X_val, "y_val": y_val[:9]}, "inconsistent numbers of samples"),
        ({"X_val": X_val[:, :2], "y_val": y_val}, "X has 2 features"),
        (
            {"X_val": X_val, "y_val": y_val, "sample_weight_val": np.zeros(20)},
            "at least one non-zero",
        ),
        ({"X_val": X_val, "y_val": [["a"]] * 20}, "y_val must hold one label per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, **arguments)
        assert not hasattr(model, "classes_")
    with pytest.raises(ValueError, match=r"'eval_metric' .* among \{.*\}. Got 'auc'"):
        model.set_params(eval_metric="auc").fit(X, y)


@pytest.mark.parametrize("cls", [GambleClassifier, SAMMEClassifier])
def test_rounds_are_evaluated_on_the_validation_set(cls, tmp_path):
    (X, y), (X_val, y_val) = task(200, 0), task(100, 1)
    weights = np.random.default_rng(2).integers(1, 3, 100)
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": weights}
    settings = {"random_state": 0, "eval_metric": "log_loss", "n_estimators": 30}
    model = cls(**settings).fit(X, y, **given)
    assert model.n_estimators_ == 30
    assert set(model._model.summary()) == {"n_trees", "slope"}
    errors = [np.average(found != y_val, weights=weights) for found in model.staged_predict(X_val)]
    np.testing.assert_allclose(model.evals_result_["error"], errors)
    # The log loss is the lowest that any temperature gives.
    own, losses = np.searchsorted(model.classes_, y_val), []
    for scores in model.staged_decision_function(X_val):

        def loss(slope, scores=scores):
            rows = logsumexp(slope * scores, axis=1) - slope * scores[np.arange(100), own]
            return np.average(rows, weights=weights)

        losses.append(minimize_scalar(loss, bounds=(1e-3, 1e2), method="bounded").fun)
    np.testing.assert_allclose(model.evals_result_["log_loss"], losses, rtol=1e-6)
    model.save(tmp_path / "model")
    for again in (xmtree.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_equal(again.evals_result_, model.evals_result_)
    # Early stopping restores the best round, and evaluates the same rounds until it stops.
    stopped = cls(**settings, early_stopping=True, patience=3).fit(X, y, **given)
    assert stopped.n_estimators_ == np.argmin(stopped.evals_result_["log_loss"]) + 1
    n = len(stopped.evals_result_["log_loss"])
    assert stopped.n_estimators_ + 3 == n < 30
    for name, values in stopped.evals_result_.items():
        np.testing.assert_array_equal(values, model.evals_result_[name][:n])
    assert cls(n_estimators=3).fit(X, y).evals_result_ == {}


SETTINGS = {
    "default": (GambleClassifier, {}),
    "few rows of many classes": (GambleClassifier, {"max_features": 0.5, "subsample": 0.5}),
    "paper": (GambleClassifier, GambleClassifier.PAPER),
    "early stopping": (GambleClassifier, {"early_stopping": True, "patience": 10}),
    "samme": (SAMMEClassifier, {"subsample": 0.8}),
}


@pytest.mark.parametrize(("cls", "settings"), SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("way", ["memory", "file", "pickle"])
def test_added_rounds_equal_those_of_one_fit(cls, settings, way, tmp_path):
    X, y = task(150, 0)
    X[::9, 1] = np.nan
    weights = 1 + np.arange(150) % 3
    settings = settings | {"random_state": 0, "class_weight": "balanced"}
    at_once = cls(**settings | {"n_estimators": 50}).fit(X, y, weights)
    model = cls(**settings | {"n_estimators": 25, "warm_start": True}).fit(X, y, weights)
    if way == "file":
        model.save(tmp_path / "model")
        model = xmtree.load(tmp_path / "model")
    elif way == "pickle":
        model = pickle.loads(pickle.dumps(model))
    model.set_params(n_estimators=50, n_jobs=2).fit(X, y, weights)
    assert model._model.to_bytes() == at_once._model.to_bytes()
    np.testing.assert_array_equal(model.predict_proba(X), at_once.predict_proba(X))


def test_a_generator_gives_only_the_first_seed():
    X, y = task(100, 0)
    for state in (None, np.random.RandomState(0)):
        model = GambleClassifier(n_estimators=5, warm_start=True, random_state=state).fit(X, y)
        seed = model._model.params["seed"]
        model.set_params(n_estimators=9).fit(X, y)
        assert model._model.params["seed"] == seed
        other = GambleClassifier(n_estimators=9, random_state=seed).fit(X, y)
        assert model._model.to_bytes() == other._model.to_bytes()


def test_rounds_may_be_added_on_other_rows():
    (X, y), (more, y_more) = task(40, 0), task(400, 1)
    model = GambleClassifier(n_estimators=10, warm_start=True, random_state=0).fit(X, y)
    before, trees = model.score(more, y_more), model.trees_
    model.set_params(n_estimators=60).fit(more, y_more)
    assert model.score(more, y_more) > before + 0.1
    for old, new in zip(trees, model.trees_[:10], strict=True):
        np.testing.assert_array_equal(old.votes, new.votes)


def test_added_rounds_may_have_new_categories():
    frame = pd.DataFrame({"name": pd.Series(["a", "b", "c"] * 30, dtype="category")})
    y = np.arange(90) % 3
    settings = {"categorical_features": "from_dtype", "random_state": 0, "warm_start": True}
    model = GambleClassifier(n_estimators=1, **settings).fit(frame, y)
    later = pd.DataFrame({"name": pd.Series(["z", "b", "c"] * 30, dtype="category")})
    model.set_params(n_estimators=20).fit(later, y)
    assert model.score(later, y) == 1
    assert model._category_names == {0: ["a", "b", "c", "z"]}


def test_changed_models_refuse_added_rounds():
    X, y = task(60, 0)
    model = GambleClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    before = model._model.to_bytes()
    for params, message in [
        ({}, "n_estimators must exceed the 5 of the fitted model .*, got 5"),
        ({"n_estimators": 4}, "n_estimators must exceed the 5 of the fitted model .*, got 4"),
        (
            {"n_estimators": 9, "max_leaves": 7},
            "max_leaves must not change .* was 511 and is now 7",
        ),
        (
            {"n_estimators": 9, "random_state": 1},
            "random_state must not change .* was 0 and is now 1",
        ),
        ({"n_estimators": 9, "trim": 0.2}, "trim must not change .* was 0.1 and is now 0.2"),
        ({"n_estimators": 9, "categorical_features": [1]}, r"categorical_features must not change"),
    ]:
        unlike = GambleClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match=message):
            unlike.set_params(**params).fit(X, y)
        assert unlike._model.to_bytes() == before
    model.set_params(n_estimators=9)
    with pytest.raises(ValueError, match="exactly the 4 classes of the fitted model"):
        model.fit(X, np.where(y == "a", "b", y))
    with pytest.raises(ValueError, match="X has 2 features"):
        model.fit(X[:, :2], y)
    assert model._model.to_bytes() == before
    # Without warm_start, fit trains from scratch.
    model.set_params(warm_start=False, max_leaves=3).fit(X[:, :2], y)
    assert model.n_features_in_ == 2


def test_pickles_without_evaluations_can_be_saved(tmp_path):
    X = np.arange(40.0).reshape(-1, 1)
    model = xmtree.GambleClassifier(n_estimators=2, random_state=0).fit(X, X[:, 0] > 20)
    state = model.__getstate__()
    del state["evals_result_"]
    older = xmtree.GambleClassifier.__new__(xmtree.GambleClassifier)
    older.__setstate__(state)
    older.save(tmp_path / "model")
    assert xmtree.load(tmp_path / "model").evals_result_ == {}
