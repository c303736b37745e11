"""GAMBLE and SAMME: comparison with slow references, categories, missing values, stages."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import xmtree
from reference import gamble as reference
from scipy.special import softmax
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from xmtree import ActiveGamble, GambleClassifier, SAMMEClassifier, _validation

PAPER = GambleClassifier.PAPER


def task(n=60, n_features=3, n_classes=4, seed=0):
    """Return overlapping classes without tied values, so that splits have no ties."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = random.normal(size=(n, n_features)) + 1.5 * np.eye(n_classes, n_features)[y]
    return X.astype(np.float32), y


@pytest.mark.parametrize("general", [True, False], ids=["algorithm 1", "algorithm 2"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize(("clip", "rate"), [(False, 1.0), (True, 0.3)])
def test_the_reference_gives_the_same_committee(general, n_classes, clip, rate):
    X, y = task(n_classes=n_classes)
    expected, rounds = reference.boost(X, y, n_classes, 4, 5, general=general, clip=clip, rate=rate)
    model = GambleClassifier(
        **PAPER | {"n_estimators": 4, "max_leaves": 5, "clip": clip, "learning_rate": rate}
    ).fit(X, y)
    for tree, splits in zip(model.trees_, rounds, strict=True):
        inner = tree.feature >= 0
        found = set(zip(tree.feature[inner], tree.threshold[inner], strict=True))
        assert found == {split[1:] for split in splits}
    scores = model._model.predict_scores(X, '{"first_tree": 0, "last_tree": 4}')
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


#: Labels at the values 0, 1, 2 and so on, and the number of leaves.
LIGHT = [
    ("0 0 442 1 2420042 13 0241 3", 7),
    ("535 4445120 3501 12521 00031 2 0", 7),
    ("0 3 010 233 3222 110330 2", 9),
]


@pytest.mark.parametrize(("labels", "max_leaves"), LIGHT)
def test_rows_far_below_all_others_follow_algorithm_2(labels, max_leaves):
    """Follow the reference over 50 rounds, to leaves below e^-80 of all weight."""
    X = np.repeat(np.arange(labels.count(" ") + 1), [len(part) for part in labels.split()])
    X, y = X[:, None].astype(np.float32), np.array([int(c) for c in labels if c != " "])
    expected, _ = reference.boost(X, y, max(y) + 1, 50, max_leaves, general=False)
    model = GambleClassifier(**PAPER | {"n_estimators": 50, "max_leaves": max_leaves}).fit(X, y)
    assert min(tree.weight.min() for tree in model.trees_) < np.exp(-80)
    scores = model._model.predict_scores(X, '{"first_tree": 0, "last_tree": 50}')
    np.testing.assert_allclose(scores, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(3))
def test_samme_equals_scikit_learn(seed):
    X, y = task(n=200, seed=seed)
    model = SAMMEClassifier(n_estimators=20, max_leaves=5, splits="exact").fit(X, y)
    tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0)
    other = AdaBoostClassifier(tree, n_estimators=20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    for stage, expected in zip(model.staged_predict(X), other.staged_predict(X), strict=True):
        np.testing.assert_array_equal(stage, expected)


@pytest.mark.parametrize(
    ("n_classes", "n_rounds", "max_leaves", "rate"),
    [(2, 10, 5, 1.0), (3, 10, 5, 1.0), (5, 10, 5, 1.0), (3, 10, 4, 0.3), (5, 9, 120, 1.0)],
)
def test_samme_r_equals_the_reference(n_classes, n_rounds, max_leaves, rate):
    X, y = task(n=120, n_classes=n_classes)
    expected = reference.samme_r(X, y, n_classes, n_rounds, max_leaves, rate)
    model = SAMMEClassifier(
        votes="real",
        n_estimators=n_rounds,
        max_leaves=max_leaves,
        learning_rate=rate,
        splits="exact",
    ).fit(X, y)
    last = json.dumps({"first_tree": 0, "last_tree": model.n_estimators_})
    scores = model._model.predict_scores(X, last)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    # With 120 leaves the first tree makes no error.
    assert model.n_estimators_ == (1 if max_leaves == 120 else n_rounds)
    proba = softmax(expected / (n_classes - 1), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-4)


def test_samme_r_has_weights_missing_values_and_files(tmp_path):
    X, y = task(n=200, n_classes=5)
    X[::7, 1] = np.nan
    weights = np.random.default_rng(0).integers(0, 3, 200)
    settings = {"votes": "real", "n_estimators": 10, "subsample": 0.7, "random_state": 0}
    model = SAMMEClassifier(**settings).fit(X, y, sample_weight=weights)
    model.save(tmp_path / "model")
    loaded = xmtree.load(tmp_path / "model")
    assert loaded.votes == "real"
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    loaded.set_params(warm_start=True, n_estimators=20).fit(X, y, sample_weight=weights)
    more = SAMMEClassifier(**settings | {"n_estimators": 20}).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(loaded.decision_function(X), more.decision_function(X))
    discrete = SAMMEClassifier(**settings | {"votes": "discrete"}).fit(X, y, sample_weight=weights)
    assert np.any(discrete.decision_function(X) != model.decision_function(X))
    with pytest.raises(ValueError, match="votes"):
        SAMMEClassifier(votes="SAMME.R").fit(X, y)
    assert not hasattr(GambleClassifier(), "votes")


def test_a_leaf_sums_to_zero():
    X, y = task(n_classes=5)
    model = GambleClassifier(n_estimators=10, random_state=0).fit(X, y)
    for tree in model.trees_:
        for leaf, other in enumerate(tree.other_votes):
            named = tree.votes[tree.vote_starts[leaf] : tree.vote_starts[leaf + 1]]
            total = named.sum() + (5 - len(named)) * other
            assert abs(total) < 1e-4
    np.testing.assert_allclose(model.decision_function(X).sum(axis=1), 0, atol=1e-4)


@pytest.mark.parametrize("settings", [{}, PAPER], ids=["default", "paper"])
def test_sparse_rows_equal_dense_rows(settings):
    random = np.random.default_rng(0)
    y = np.arange(300) % 5
    X = random.poisson(0.15 + (random.random((300, 40)) < 0.1), size=(300, 40)).astype(float)
    X[np.arange(300), y * 3] += 1
    X[random.random(X.shape) < 0.01] = np.nan
    settings = settings | {"n_estimators": 15, "random_state": 0}
    dense = GambleClassifier(**settings).fit(X, y)
    sparse = GambleClassifier(**settings).fit(sp.csr_array(X), y)
    assert dense._model.to_bytes() == sparse._model.to_bytes()
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csr_array(X)))


def test_the_side_of_missing_values_is_learned():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    X[::4, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1, (X[:, 0] > 0.5).astype(int))
    settings = PAPER | {"n_estimators": 1, "max_leaves": 2}
    model = GambleClassifier(**settings).fit(X, y)
    assert model.score(X, y) == 1
    tree = model.trees_[0]
    assert (tree.feature[0], tree.missing_left[0]) == (0, 0)
    assert abs(tree.threshold[0] - 0.5) < 0.1
    turned = GambleClassifier(**settings).fit(-X, y)
    assert turned.score(-X, y) == 1
    assert turned.trees_[0].missing_left[0] == 1
    # All values go to one side, missing ones to the other.
    only = GambleClassifier(**settings).fit(X[:, :1], np.isnan(X[:, 0]))
    assert only.score(X[:, :1], np.isnan(X[:, 0])) == 1
    assert only.trees_[0].threshold[0] == np.inf


def test_missing_values_that_fit_has_not_seen():
    X, y = task()
    model = GambleClassifier(n_estimators=5, random_state=0).fit(X, y)
    X[:, 0] = np.nan
    F = np.zeros((len(y), 4))
    for tree in model.trees_:
        for row in range(len(y)):
            node = 0
            while tree.feature[node] >= 0:
                value = X[row, tree.feature[node]]
                is_left = (
                    tree.missing_left[node] if np.isnan(value) else value <= tree.threshold[node]
                )
                node = tree.children[node, 0 if is_left else 1]
            leaf = tree.leaf[node]
            votes = slice(*tree.vote_starts[leaf : leaf + 2])
            own = np.full(4, tree.other_votes[leaf])
            own[tree.vote_classes[votes]] = tree.votes[votes]
            F[row] += own
    np.testing.assert_allclose(model.decision_function(X), F, atol=1e-5)
    X[0, 1] = np.inf
    with pytest.raises(ValueError, match=r"row 0, column 1: .*infinity.*or NaN where missing"):
        model.predict(X)


def test_categories_are_split_as_sets():
    random = np.random.default_rng(0)
    color = random.integers(0, 8, 400).astype(float)
    y = np.isin(color, [1, 4, 6]).astype(int)
    X = np.column_stack([random.normal(size=400), color])
    settings = PAPER | {"n_estimators": 1, "max_leaves": 2}
    assert GambleClassifier(**settings).fit(X, y).score(X, y) < 1
    model = GambleClassifier(**settings, categorical_features=[1]).fit(X, y)
    assert model.score(X, y) == 1
    tree = model.trees_[0]
    assert tree.feature[0] == 1
    assert np.isnan(tree.threshold[0])
    # The stored set is that of the lighter side; unseen categories go to the other side.
    assert set(tree.categories) == {1, 4, 6}
    assert model.predict([[0.0, 99.0], [0.0, np.nan]]).tolist() == [0, 0]


def test_a_missing_value_is_a_category():
    color = np.array([0, 1, 2, np.nan] * 50)
    y = np.isin(color, [1]) | np.isnan(color)
    settings = PAPER | {"n_estimators": 1, "max_leaves": 2, "categorical_features": [0]}
    model = GambleClassifier(**settings).fit(color[:, None], y)
    assert model.score(color[:, None], y) == 1


@pytest.mark.parametrize(("rate", "factor"), [(0.3, 1 / 3), (1.0, 1.0)])
def test_leaves_below_a_set_of_categories_vote_with_a_third_of_the_rate(rate, factor):
    # The first split is by number, and only the rows at 7 are split by category.
    X = np.array([[0, 5], [1, 5], [0, 7], [1, 7]] * 9)
    y = np.array([0, 0, 1, 2] * 9)
    settings = PAPER | {"n_estimators": 1, "max_leaves": 3, "learning_rate": rate}
    plain = GambleClassifier(**settings).fit(X, y).decision_function(X)
    scores = GambleClassifier(**settings, categorical_features=[0]).fit(X, y).decision_function(X)
    is_below_set = y[:, None] > 0
    np.testing.assert_allclose(scores, np.where(is_below_set, factor, 1) * plain, rtol=1e-6)


def test_ways_to_name_categorical_columns(tmp_path):
    random = np.random.default_rng(0)
    X = random.integers(0, 4, (100, 3)).astype(float)
    y = (X[:, 1] % 2).astype(int)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ways = [
        *([1, 2], np.array([2, 1]), (1, 2), range(1, 3), np.array([1, 2], object)),
        *([False, True, True], np.array([False, True, True], object)),
        *(["b", "c"], np.array(["b", "c"]), np.array(["c", "b"], object)),
        *(pd.Series([1, 2]), pd.Series([1, 2], dtype=object), pd.Series([False, True, True])),
        *(pd.Index(["b", "c"]), pd.Series([np.int64(1), np.int64(2)], dtype=object)),
    ]
    models = [
        GambleClassifier(n_estimators=3, random_state=0, categorical_features=way).fit(frame, y)
        for way in ways
    ]
    for model in models:
        assert model._model.to_bytes() == models[0]._model.to_bytes()
        model.save(tmp_path / "model")
        again = xmtree.load(tmp_path / "model")
        assert type(again.categorical_features) is list
        assert list(again.categorical_features) == list(model.categorical_features)
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    for way in ([0.5], [0, None], pd.Series(pd.to_datetime(["2000-01-01"]))):
        with pytest.raises(TypeError, match="must be column numbers, column names or a mask"):
            GambleClassifier(categorical_features=way).fit(X, y)


FORMS = {
    "dense": lambda X: X,
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "pandas": lambda X: pd.DataFrame(X).rename(columns=str),
    "pandas, nullable": lambda X: pd.DataFrame(X).rename(columns=str).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b", "c"]),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**24 + 1, np.float64),
        (2**24 + 1, np.int64),
        (-(2**24) - 1, np.int32),
        (2**60 + 1, np.int64),
        (1 + 2**-40, np.float64),
        (1e-60, np.float64),
    ],
)
def test_categories_that_single_precision_cannot_represent(form, value, dtype):
    X = (np.arange(60) % 5).reshape(20, 3).astype(dtype)
    X[7, 2] = value
    y = np.arange(20) % 2
    model = GambleClassifier(n_estimators=2, categorical_features=[0, 2])
    for learner in (model, ActiveGamble(estimator=model)):
        message = r"row 7, column 2: the category .* single precision"
        with pytest.raises(ValueError, match=message):
            learner.fit(form(X), y)
        assert not hasattr(learner, "n_features_in_")
    # As a plain number the value is rounded.
    model.set_params(categorical_features=[0, 1]).fit(form(X), y)


def test_categories_that_single_precision_represents():
    y = np.arange(20) % 2
    for X in (
        np.arange(20.0).reshape(-1, 1) % 4 / 10,
        np.where(y, np.nan, 2.0**24 + 2)[:, None],
        np.where(y, 2**40, -(2**24))[:, None],
        np.where(y, 2.0**60, 0).astype(np.float32)[:, None],
    ):
        settings = PAPER | {"n_estimators": 1, "categorical_features": [0]}
        model = GambleClassifier(**settings).fit(X, y)
        assert model.score(X, y) == 1


def test_the_last_stage_equals_the_model():
    X, y = task(n_classes=4)
    for cls in (GambleClassifier, SAMMEClassifier):
        model = cls(n_estimators=7, random_state=0).fit(X, y)
        for staged, whole in (
            (model.staged_predict, model.predict),
            (model.staged_decision_function, model.decision_function),
            (model.staged_predict_proba, model.predict_proba),
        ):
            stages = list(staged(X))
            assert len(stages) == model.n_estimators_
            np.testing.assert_allclose(stages[-1], whole(X), rtol=1e-5, atol=1e-5)


def test_expected_costs_from_probabilities_are_lowest():
    """Compare with ignoring costs, weighting rows by costs, and uncalibrated scores."""
    costs = np.array([[0, 1, 1], [1, 0, 1], [20, 20, 0]])

    def overlapping(n, seed):
        random = np.random.default_rng(seed)
        y = random.integers(0, 3, n)
        X = random.normal(size=(n, 4))
        X[:, 0] += y
        return X, y

    for seed in range(3):
        (X, y), (X_test, y_test) = overlapping(400, seed), overlapping(2000, 100 + seed)
        plain, weighted = (
            GambleClassifier(n_estimators=40, linear=False, random_state=0) for _ in range(2)
        )
        plain.fit(X, y)
        weighted.fit(X, y, sample_weight=costs.sum(axis=1)[y])
        raw = softmax(plain.decision_function(X_test) / 2, axis=1)
        own = (plain.predict_proba(X_test) @ costs).argmin(axis=1)
        others = plain.predict(X_test), weighted.predict(X_test), (raw @ costs).argmin(axis=1)
        for other in others:
            assert costs[y_test, own].mean() < 0.8 * costs[y_test, other].mean()
        # Classes that differ by a column are better told apart by linear scores.
        linear = plain.set_params(linear=True).fit(X, y)
        better = (linear.predict_proba(X_test) @ costs).argmin(axis=1)
        assert costs[y_test, better].mean() < costs[y_test, own].mean()
        assert linear.score(X_test, y_test) > np.mean(others[0] == y_test) + 0.02


def test_stages_that_would_not_fit_in_memory(monkeypatch):
    X, y = task()
    model = GambleClassifier(n_estimators=7, random_state=0).fit(X, y)
    monkeypatch.setattr(_validation, "MAX_DENSE_BYTES", 1000)
    with pytest.raises(ValueError, match=r"60 rows x 7 trees .* pass fewer rows at a time"):
        next(model.staged_predict(X))
    assert len(list(model.staged_predict(X[:35]))) == 7


def test_early_stopping():
    X, y = task(n=400)
    y[::2] = np.random.default_rng(0).permutation(y[::2])
    settings = {"early_stopping": True, "validation_fraction": 0.3, "random_state": 0}

    def fitted(n_estimators, patience):
        return GambleClassifier(n_estimators=n_estimators, patience=patience, **settings).fit(X, y)

    model = fitted(1000, 20)
    best = model.n_estimators_
    assert len(model.trees_) == best
    # The model has the lowest error, which no round improved for 20 rounds. A larger patience goes
    # on.
    for n, patience in ((best, 10**6), (best + 20, 10**6)):
        np.testing.assert_array_equal(
            fitted(n, patience).decision_function(X), model.decision_function(X)
        )
    assert fitted(200, 200).n_estimators_ > best


def test_the_docstring_of_fit_names_missing_values():
    for cls in (GambleClassifier, SAMMEClassifier):
        assert "missing (NaN)" in cls.fit.__doc__
        assert "label sets" not in cls.fit.__doc__


def test_importances():
    X, y = task(n=200)
    X = np.column_stack([X, np.zeros(200), np.random.default_rng(1).normal(size=200)])
    model = GambleClassifier(n_estimators=10, random_state=0).fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[3] == 0
    assert model.feature_importances_[:3].min() > model.feature_importances_[4]
    splits = sum(np.bincount(t.feature[t.feature >= 0], minlength=5) for t in model.trees_)
    np.testing.assert_array_equal(model.feature_splits_, splits)
    unsplit = GambleClassifier(n_estimators=2).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert unsplit.feature_importances_.tolist() == [0, 0]


def test_weights_count_as_rows():
    X, y = task()
    settings = PAPER | {"n_estimators": 5}
    weights = np.arange(len(y)) % 3
    weighted = GambleClassifier(**settings).fit(X, y, sample_weight=weights)
    repeated = GambleClassifier(**settings).fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_subsampling_keeps_rare_classes():
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 2)
    X = random.normal(size=(100, 8)).repeat(2, axis=0) + 0.01 * random.normal(size=(200, 8))
    model = GambleClassifier(n_estimators=1, subsample=0.1, trim=0, random_state=0).fit(X, y)
    assert model.trees_[0].n_examples[0] == 200


def test_a_thousand_rounds_and_many_classes():
    X, y = task(n=120, n_features=3, n_classes=3)
    y = np.arange(120) % 40
    model = GambleClassifier(**PAPER).fit(X, y)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert model.score(X, y) == 1
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


def test_gamble_beats_samme_on_spheres():
    """Check that GAMBLE beats SAMME by far on the paper's example, K = 5."""
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 10))
    radius = np.sum(X**2, axis=1)
    y = np.searchsorted(np.quantile(radius, [0.2, 0.4, 0.6, 0.8]), radius)
    train, test = slice(0, 2500), slice(2500, None)
    settings = {"n_estimators": 100, "max_leaves": 15, "random_state": 0}
    paper = PAPER | settings | {"splits": "binned"}
    gamble = GambleClassifier(**paper).fit(X[train], y[train])
    samme = SAMMEClassifier(**settings).fit(X[train], y[train])
    assert gamble.score(X[test], y[test]) > samme.score(X[test], y[test]) + 0.03
