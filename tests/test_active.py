"""Active GAMBLE chooses uncertain rows and uses only the labels it was taught."""

import pickle
import re

import estimators
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.exceptions import NotFittedError
from xmtree import ActiveGamble, GambleClassifier, SAMMEClassifier

QUICK = GambleClassifier(n_estimators=15)
BATCHES = {"n_initial": 12, "n_per_round": 6, "n_rounds": 5}


def active(**more):
    return ActiveGamble(**{"estimator": QUICK, "random_state": 0, **BATCHES, **more})


def bands(n=3000, seed=0):
    """Return four classes that meet in thin bands; rows far from them are not informative."""
    X = np.random.default_rng(seed).uniform(0, 4, size=(n, 2))
    return X, np.floor(X[:, 0]).astype(int)


def lessons(model, y):
    """Answer all queries, and return the queried rows of each round."""
    asked = []
    while model.stop_reason_ is None:
        rows = model.query()
        asked.append(rows)
        model.teach(rows, y[rows])
    return asked


def test_uncertain_rows_beat_random_rows():
    X, y = bands()
    X_test, y_test = bands(seed=1)
    scores = {}
    for selection in ("margin", "random"):
        models = [active(selection=selection, n_rounds=10, random_state=s) for s in range(5)]
        scores[selection] = np.mean([m.fit(X, y).score(X_test, y_test) for m in models])
    assert 1 - scores["margin"] < 0.6 * (1 - scores["random"])


@pytest.mark.parametrize("selection", ["margin", "random"])
@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_session_equals_fit(selection, share, convert):
    X, y = estimators.dense()
    X = convert(X)
    settings = {"selection": selection, "pool_share": share}
    simulated = active(**settings).fit(X, y)
    session = active(**settings).start(X)
    first = simulated.selected_[:12]
    session.teach(first, y[first])
    lessons(session, y)
    np.testing.assert_array_equal(session.selected_, simulated.selected_)
    np.testing.assert_array_equal(session.utilities_, simulated.utilities_)
    for name, values in simulated.learning_curve_.items():
        np.testing.assert_array_equal(session.learning_curve_[name], values)
    estimators.same_predictions(session, simulated, X)


def test_only_taught_rows_have_labels():
    X, _ = estimators.dense()
    session = active(n_initial=5).start(X)
    rows = session.query()
    assert len(set(rows)) == 5
    with pytest.raises(NotFittedError):
        session.predict(X)
    session.teach(rows, np.full(5, "known"))
    assert session.classes_.tolist() == ["known"]
    assert set(session.predict(X)) == {"known"}
    assert session.learning_curve_.n_samples.tolist() == [5]
    assert session._labels.tolist() == ["known"] * 5
    # All rows are equally certain to a committee of one class, so the next are random.
    rows = session.query()
    np.testing.assert_array_equal(session.query(), rows)
    assert not set(rows) & set(session.selected_)
    assert session.learning_curve_.utility.tolist() == [0]
    assert session.teach(rows, ["known"] * 6).utilities_[5:].tolist() == [0] * 6


def test_the_first_working_set_has_all_classes():
    X, y = estimators.dense(n_classes=6)
    assert set(y[active(n_initial=2, n_rounds=1).fit(X, y).selected_]) == set(range(6))
    model = active(n_initial=12, n_rounds=1).fit(X, y)
    assert len(model.selected_) == 12
    assert len(model.classes_) == 6


def test_the_least_certain_rows_are_added():
    X, y = estimators.dense()
    model = active(n_rounds=1).fit(X, y)
    session = active().start(X)
    session.teach(model.selected_, y[model.selected_])
    asked = session.query()
    _, scores = model.predict_topk(X, 2)
    with np.errstate(divide="ignore"):
        utilities = 1 / (scores[:, 0].astype(float) - scores[:, 1])
    rest = np.setdiff1d(np.arange(len(X)), model.selected_)
    assert min(utilities[asked]) >= max(utilities[np.setdiff1d(rest, asked)])
    np.testing.assert_array_equal(np.sort(utilities[asked])[::-1], utilities[asked])
    assert session.learning_curve_.utility[0] == np.median(utilities[rest])
    session.teach(asked, y[asked])
    np.testing.assert_array_equal(session.utilities_[-6:], utilities[asked])
    assert np.isnan(session.utilities_[:-6]).all()


def test_the_curve():
    X, y = estimators.dense()
    model = active().fit(X, y, X_val=X, y_val=y)
    curve = model.learning_curve_
    assert curve.n_samples.tolist() == [12, 18, 24, 30, 36]
    assert curve.n_classes.tolist() == [6] * 5
    assert curve.validation_error[-1] == pytest.approx(1 - model.score(X, y))
    assert np.isfinite(curve.utility[:-1]).all()
    # No rows are chosen after the last round.
    assert np.isnan(curve.utility[-1])
    assert model.stop_reason_ == "rounds"
    assert model.best_round_ == 4
    assert len(set(model.selected_)) == 36
    assert np.isnan(active().fit(X, y).learning_curve_.validation_error).all()


def test_a_returned_curve_is_not_modified():
    X, y = estimators.dense()
    session = active().start(X).teach(np.arange(12), y[:12])
    curve = session.learning_curve_
    session.query()
    assert np.isnan(curve.utility).all()
    assert np.isfinite(session.learning_curve_.utility).all()


def test_all_rows_are_used_in_the_end():
    X, y = estimators.dense(n=40)
    model = active(n_rounds=50).fit(X, y)
    assert model.stop_reason_ == "pool"
    assert sorted(model.selected_) == list(range(40))
    assert model.learning_curve_.n_samples[-1] == 40


def test_early_stopping_restores_the_best_round():
    X, y = bands(600)
    y[::4] = np.random.default_rng(0).integers(0, 4, len(y[::4]))
    model = active(early_stopping=True, patience=3, n_rounds=50).fit(X, y)
    errors = model.learning_curve_.validation_error
    assert model.stop_reason_ == "validation"
    assert model.best_round_ == np.argmin(errors) == len(errors) - 4
    again = active(n_rounds=model.best_round_ + 1, early_stopping=True).fit(X, y)
    estimators.same_predictions(model, again, X)
    # A tenth is held out and never chosen.
    whole = active(early_stopping=True, patience=10**6, n_rounds=10**6).fit(X, y)
    assert len(whole.selected_) == 540
    session = active(early_stopping=True)
    with pytest.raises(ValueError, match="pass X_val and y_val to start"):
        session.start(X)
    late = active().start(X).set_params(early_stopping=True)
    with pytest.raises(ValueError, match="pass X_val and y_val to start"):
        late.query()
    lessons(session.start(X, X_val=X[:50], y_val=y[:50]), y)
    assert session.best_round_ == np.argmin(session.learning_curve_.validation_error)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_seed_gives_the_same_model(n_jobs):
    X, y = estimators.dense()
    one, other = active().fit(X, y), active(n_jobs=n_jobs).fit(X, y)
    np.testing.assert_array_equal(one.selected_, other.selected_)
    estimators.same_predictions(one, other, X)
    assert active(random_state=1).fit(X, y).selected_.tolist() != one.selected_.tolist()


def test_the_template_is_not_modified():
    X, y = estimators.dense()
    template = SAMMEClassifier(n_estimators=3, random_state=7)
    model = active(estimator=template).fit(X, y)
    assert not hasattr(template, "classes_")
    assert isinstance(model.estimator_, SAMMEClassifier)
    assert (model.estimator_.random_state, model.estimator_.n_estimators) == (7, 3)
    assert ActiveGamble(n_rounds=1).fit(X, y).estimator_.n_estimators == 200
    assert model.get_params()["estimator__n_estimators"] == 3


def test_rows_of_weight_0_are_never_chosen():
    X, y = estimators.dense()
    weights = (np.arange(240) % 3).astype(float)
    model = active(n_rounds=100).fit(X, y, sample_weight=weights)
    assert sorted(model.selected_) == np.flatnonzero(weights).tolist()
    plain = GambleClassifier(n_estimators=15, random_state=0)
    plain.fit(X[model.selected_], y[model.selected_], weights[model.selected_])
    estimators.same_predictions(model, plain, X)


def test_rows_held_out_count_by_their_weights():
    X, y = bands(300)
    y[::3] = np.random.default_rng(0).integers(0, 4, 100)
    weights = np.random.default_rng(1).uniform(1, 100, 300).astype(np.float32)
    model = active(n_rounds=1000, early_stopping=True, patience=10**6)
    # All other rows are used in the end.
    held = np.setdiff1d(np.arange(300), model.fit(X, y, weights).selected_)
    wrong = model.predict(X[held]) != y[held]
    error = model.learning_curve_.validation_error[model.best_round_]
    assert error == pytest.approx(np.average(wrong, weights=weights[held]), rel=1e-6)
    assert error != pytest.approx(wrong.mean(), rel=1e-3)
    given = active().fit(X, y, weights, X_val=X[held], y_val=y[held])
    error = given.learning_curve_.validation_error[-1]
    assert error == pytest.approx(1 - given.score(X[held], y[held]))


def test_a_round_ends_when_all_rows_have_a_label():
    X, y = estimators.dense()
    session = active().start(X)
    rows = session.query()
    session.teach(rows[:7], y[rows[:7]])
    assert session.query().tolist() == rows[7:].tolist()
    assert len(session.learning_curve_.n_samples) == 0
    other = np.setdiff1d(np.arange(240), rows)[:2]
    session.teach(other, y[other])
    assert len(session.learning_curve_.n_samples) == 0
    session.skip(rows[7:9])
    session.teach(rows[9:], y[rows[9:]])
    assert session.learning_curve_.n_samples.tolist() == [12]
    asked = lessons(session, y)
    assert not set(rows[7:9]) & set(np.concatenate(asked))
    with pytest.raises(ValueError, match=f"row {rows[7]} of the pool was skipped"):
        session.teach(rows[7:8], [0])
    # The session continues with a higher limit.
    assert len(session.query()) == 0
    assert session.stop_reason_ == "rounds"
    assert len(session.set_params(n_rounds=6).query()) == 6


def test_fit_leaves_no_session():
    X, y = estimators.dense()
    model = active().fit(X, y).set_params(n_rounds=50)
    assert model.stop_reason_ == "rounds"
    model = pickle.loads(pickle.dumps(model))
    assert model.stop_reason_ == "rounds"
    assert model.start(X).stop_reason_ is None


def test_skipping_the_last_queried_row_ends_the_round():
    X, y = estimators.dense()
    session = active().start(X)
    rows = session.query()
    session.teach(rows[1:], y[rows[1:]]).skip(rows[:1])
    assert session.learning_curve_.n_samples.tolist() == [11]
    # Without new labels, nothing is trained.
    session.skip(session.query())
    assert session.learning_curve_.n_samples.tolist() == [11]


BAD_ROWS = {
    "outside": ([0, 240], "from 0 to 239, the rows of the pool, got 240"),
    "negative": ([-1], "got -1"),
    "twice": ([4, 4], "row 4 twice"),
    "known": ([0], "row 0 of the pool already has a label"),
    "a mask": (np.ones(240, bool), "row numbers of the pool"),
    "floats": ([1.0], "row numbers of the pool"),
    "none": ([], "row numbers of the pool"),
    "rows themselves": (np.ones((1, 6)), "row numbers of the pool"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_change_nothing(rows, message):
    X, y = estimators.dense()
    session = active().start(X).teach(np.arange(12), y[:12])
    asked = session.query()
    for method in (lambda rows: session.teach(rows, np.zeros(len(rows))), session.skip):
        with pytest.raises((ValueError, TypeError), match=message):
            method(rows)
    assert len(session.selected_) == 12
    np.testing.assert_array_equal(session.query(), asked)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0], "y has 1 labels for 2 rows"),
        (["a", "b"], "mixes types"),
        ([[0, 1], [1, 1]], "one label per row"),
        ([0.5, 1], "continuous"),
    ],
)
def test_bad_labels_change_nothing(y, message):
    X, labels = estimators.dense()
    session = active().start(X).teach(np.arange(12), labels[:12])
    with pytest.raises(ValueError, match=message):
        session.teach([20, 21], y)
    assert len(session.selected_) == 12
    session.teach([20, 21], labels[20:22])


UINT = np.array([2**63 + 1, 0], np.uint64)
DAYS = np.array(["3000-01-01", "2000-01-01"], "M8[D]")


@pytest.mark.parametrize(
    ("before", "y"),
    [
        (UINT, np.array([-1, 1])),
        (np.array([2**53 + 1, 0]), np.array([1e300, 2.0])),
        (np.array([1.0, 1e300]), np.array([2**63 - 1, 0])),
        (np.array([0, 1]), np.array([True, False])),
        (np.array([True, False]), np.array([0.0, 1.0])),
        (np.array(["a", "b"]), np.array([True, False])),
        (np.array([0, 1]), DAYS),
        (DAYS, np.array(["a", "b"], object)),
        (DAYS, np.array([1, 2], "M8[ns]")),
    ],
)
def test_labels_that_would_change_are_refused(before, y):
    X, _ = estimators.dense()
    session = active().start(X).teach([0, 1], before)
    with pytest.raises(ValueError, match=re.escape(f"its labels are {y.dtype}, those before")):
        session.teach([2, 3], y)
    assert session.classes_.tolist() == sorted(before.tolist())
    assert len(session.selected_) == 2


def test_numbers_of_other_types_are_kept_exactly():
    X, _ = estimators.dense()
    session = active().start(X).teach([0, 1], np.array([1.0, 2.0]))
    session.teach([2, 3], np.array([2**63 - 1, 2**53 + 1]))
    session.teach([4, 5], np.array([2**63 + 1, 1], np.uint64))
    assert session.classes_.tolist() == [1, 2, 2**53 + 1, 2**63 - 1, 2**63 + 1]


@pytest.mark.parametrize(
    ("before", "y"),
    [
        ([0, 1], np.array([2.0, 3.0])),
        (UINT // np.uint64(2**40), np.array([-1, 1], np.int8)),
        (["a", "b"], np.array(["longer", "a"], object)),
        (DAYS, np.array(["2001-01-01T00", "2002-01-01T12"], "M8[h]")),
    ],
)
def test_labels_of_compatible_types(before, y):
    X, _ = estimators.dense()
    session = active().start(X).teach([0, 1], before).teach([2, 3], y)
    assert len(session.classes_) == len({*np.array(before).tolist(), *np.array(y).tolist()})
    assert np.isin(before, session.classes_).all()
    assert np.isin(y, session.classes_).all()


def test_errors_name_missing_arguments():
    X, y = estimators.dense()
    fitted = active().fit(X, y)
    for call in (fitted.query, lambda: fitted.skip([0]), lambda: fitted.teach([0], [0])):
        with pytest.raises(NotFittedError, match=r"call start\(X\) first"):
            call()
    with pytest.raises(NotFittedError, match=r"call start"):
        _ = active().stop_reason_
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        active().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="y_val has 3 labels for 240 rows"):
        active().fit(X, y, X_val=X, y_val=y[:3])
    with pytest.raises(ValueError, match=r"mixes types: .* those in y_val"):
        active().fit(X, y, X_val=X, y_val=y.astype(str))
    with pytest.raises(ValueError, match=r"mixes types: .* those in y_val"):
        active().start(X, X_val=X, y_val=y.astype(str)).teach([0], [0])
    with pytest.raises(ValueError, match="only one of its class"):
        active(early_stopping=True).fit(X[:6], np.arange(6))
    with pytest.raises(ValueError, match="at least one non-zero"):
        active().fit(X, y, sample_weight=np.zeros(240))
    with pytest.raises(ValueError, match="'estimator' parameter"):
        active(estimator=xmtree.OAAClassifier()).fit(X, y)
    for name, value in {"n_per_round": 0, "pool_share": 0.0, "selection": "best"}.items():
        with pytest.raises(ValueError, match=name):
            active(**{name: value}).start(X)
    X[200, 3] = np.inf
    for call in (lambda: active().start(X), lambda: active().fit(X, y)):
        with pytest.raises(ValueError, match="row 200, column 3"):
            call()


def test_a_failed_fit_changes_nothing():
    X, y = estimators.dense()
    model = active().fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="labels for"):
        model.fit(X, y[:-1])
    assert vars(model) == before


@pytest.mark.parametrize("settings", [{"categorical_features": [77]}, {"max_leaves": 1}])
def test_bad_settings_of_the_estimator_are_refused_at_once(settings):
    X, y = estimators.dense()
    name = next(iter(settings))
    model = active().fit(X, y)
    model.estimator = GambleClassifier(**settings)
    before = dict(vars(model))
    for call in (lambda: model.start(X), lambda: model.fit(X, y)):
        with pytest.raises(ValueError, match=name):
            call()
        assert vars(model) == before
    # The same holds during a session.
    session = active().start(X)
    with pytest.raises(ValueError, match=name):
        session.set_params(estimator=model.estimator).query()


def test_a_session_is_pickled_and_a_committee_saved(tmp_path):
    X, y = estimators.dense()
    session = active().start(X)
    rows = session.query()
    session.teach(rows[:5], y[rows[:5]])
    again = pickle.loads(pickle.dumps(session))
    for one in (session, again):
        one.teach(rows[5:], y[rows[5:]])
        lessons(one, y)
    np.testing.assert_array_equal(again.selected_, session.selected_)
    estimators.same_predictions(again, session, X)
    session.save(tmp_path / "model")
    estimators.same_predictions(xmtree.load(tmp_path / "model"), session, X)
    assert not hasattr(active().fit(X, y), "_pool")


def test_frames_with_categories_by_name():
    X, y = bands(200)
    frame = pd.DataFrame({"x": X[:, 0], "kind": np.floor(X[:, 1])})
    template = GambleClassifier(n_estimators=5, categorical_features=["kind"])
    model = active(estimator=template).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["x", "kind"]
    assert model.score(frame, y) > 0.8
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["kind", "x"]])
    with pytest.raises(ValueError, match="'color'"):
        active(estimator=GambleClassifier(categorical_features=["color"])).fit(frame, y)
