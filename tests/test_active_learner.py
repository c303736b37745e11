"""ActiveLearner: queries, classifiers and stopping rules."""

import pickle

import estimators
import numpy as np
import pytest
import xmtree
from sklearn.linear_model import LogisticRegression
from xmtree import (
    ActiveGamble,
    ActiveLearner,
    GambleClassifier,
    LOMTreeClassifier,
    OAAClassifier,
    RecallTreeClassifier,
)
from xmtree._active.selection import margins, spread

BATCHES = {"n_initial": 12, "n_per_round": 6, "n_rounds": 5}
WAYS = ["margin", "random"]
#: One of each way to score: sums of margins, log-odds of candidates, shares of leaves.
TEMPLATES = ["oaa", "oaa-softmax", "oaa-logistic-nag", "recall-tree", "lomtree", "gamble", "ldsm"]


def learner(estimator=None, **more):
    given = OAAClassifier() if estimator is None else estimator
    return ActiveLearner(given, **{"random_state": 0, **BATCHES, **more})


def overlapping(n=400, n_classes=6, seed=0):
    """Return classes that overlap, in the proportions of ``dense``."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return np.eye(n_classes)[y] * 2 + random.normal(size=(n, n_classes)) * 0.6, y


def answered(session, y):
    """Answer all queries, and return the queried rows of each round."""
    asked = []
    while session.stop_reason_ is None:
        asked.append(session.query())
        session.teach(asked[-1], y[asked[-1]])
    return asked


def after_one_round(X, y, **settings):
    """Return a session whose classifier knows all classes, and its unlabeled rows."""
    session = learner(**settings).start(X)
    first = np.arange(30)
    session.teach(first, y[first])
    return session, np.arange(30, len(y))


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("selection", WAYS)
def test_every_classifier_works_by_fit_and_by_sessions(name, selection):
    X, y = estimators.sparse()
    template = estimators.ALL[name]()
    settings = {"selection": selection, "n_initial": 20, "n_rounds": 4}
    simulated = learner(template, **settings).fit(X, y)
    assert type(simulated.estimator_) is type(template)
    assert not hasattr(template, "classes_")
    assert len(simulated.selected_) == len(set(simulated.selected_)) == 38
    assert simulated.score(X, y) > 0.5
    session = learner(template, **settings).start(X)
    first = simulated.selected_[:20]
    session.teach(first, y[first])
    answered(session, y)
    np.testing.assert_array_equal(session.selected_, simulated.selected_)
    for measure, values in simulated.learning_curve_.items():
        np.testing.assert_array_equal(session.learning_curve_[measure], values)
    estimators.same_predictions(session, simulated, X)


@pytest.mark.parametrize("selection", WAYS)
def test_the_seed_matters_and_threads_do_not(selection):
    X, y = overlapping()
    one, other, third = (
        learner(RecallTreeClassifier(n_passes=2), selection=selection, **more).fit(X, y)
        for more in ({}, {"n_jobs": 2}, {"random_state": 1})
    )
    np.testing.assert_array_equal(one.selected_, other.selected_)
    estimators.same_predictions(one, other, X)
    assert one.selected_.tolist() != third.selected_.tolist()


def test_without_diversity_and_stopping_it_equals_active_gamble():
    X, y = overlapping()
    template = GambleClassifier(n_estimators=10)
    general = learner(template, diversity=1, stopping_ratio=None).fit(X, y)
    paper = ActiveGamble(estimator=template, random_state=0, **BATCHES).fit(X, y)
    np.testing.assert_array_equal(general.selected_, paper.selected_)
    np.testing.assert_array_equal(general.utilities_, paper.utilities_)
    estimators.same_predictions(general, paper, X)


def utilities_by_hand(model, X):
    _, scores = model.predict_topk(X, 2)
    return 1 / np.subtract(*scores.T.astype(float))


def test_margins_of_rows_with_fewer_than_two_scores():
    class Scores:
        def _topk(self, X, k):
            assert k == 2
            return None, np.array([[3, 1], [2, 2], [1, -np.inf], [-np.inf, -np.inf]], np.float32)

    assert margins(Scores(), None).tolist() == [0.5, np.inf, 0, np.inf]


@pytest.mark.parametrize("template", [OAAClassifier(loss="logistic"), LOMTreeClassifier()])
def test_utilities_are_margins(template):
    X, y = overlapping()
    session, rest = after_one_round(X, y, estimator=template, diversity=1)
    expected = utilities_by_hand(session.estimator_, X[rest])
    asked = session.query()
    known = [session._queried_utilities[row] for row in asked.tolist()]
    np.testing.assert_allclose(known, expected[asked - 30], rtol=1e-5)
    np.testing.assert_allclose(np.sort(known), np.sort(expected)[-6:], rtol=1e-5)
    assert session.learning_curve_.utility[0] == pytest.approx(np.median(expected), rel=1e-5)


def test_rows_of_a_round_cover_pairs_of_classes():
    doubts = np.array([[0, 1], [1, 0], [0, 1], [2, 0], [3, 2], [2, 0], [1, 3]])
    assert spread(doubts, 2).tolist() == [0, 3]
    assert spread(doubts, 4).tolist() == [0, 3, 4, 6]
    # With enough pairs, the first rows are taken.
    assert spread(doubts, 6).tolist() == [0, 1, 2, 3, 4, 6]
    assert spread(doubts, 7).tolist() == list(range(7))


def test_diversity():
    X, y = overlapping(n=600)

    def asked(diversity):
        session, _ = after_one_round(X, y, diversity=diversity, n_per_round=10)
        rows = session.query()
        pairs = np.sort(session.estimator_.predict_topk(X[rows], 2)[0], axis=1)
        return rows, len(np.unique(pairs, axis=0))

    most_useful, few = asked(1)
    apart, many = asked(4)
    assert many > few
    # The candidates are the 40 most useful rows.
    session, _ = after_one_round(X, y, diversity=1, n_per_round=40)
    assert set(apart) <= set(session.query())
    assert apart[0] == most_useful[0]


def test_it_stops_when_queries_are_predicted_correctly():
    X, y = overlapping(n=2000)
    X_test, y_test = overlapping(n=3000, seed=1)
    settings = {"n_initial": 20, "n_per_round": 20, "n_rounds": 300}
    model = learner(**settings).fit(X, y)
    assert model.stop_reason_ == "query_error"
    assert len(model.selected_) < 1400
    everything = OAAClassifier(random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > everything.score(X_test, y_test) - 0.01
    errors = model.learning_curve_.query_error
    assert np.isnan(errors[-1])
    recent = np.convolve(errors[:-1], np.full(3, 1 / 3), "valid")
    # The window is not aligned with rounds, so its highest error is slightly higher.
    assert recent[-1] < 0.3 * recent.max()
    assert min(recent[:-1]) > 0.25 * recent.max()
    later = learner(stopping_ratio=0.1, **settings).fit(X, y)
    np.testing.assert_array_equal(later.selected_[: len(model.selected_)], model.selected_)
    assert len(later.selected_) > len(model.selected_)
    never = learner(stopping_ratio=None, **{**settings, "n_per_round": 200}).fit(X, y)
    assert never.stop_reason_ == "pool"


def test_the_error_of_queries_counts_only_queried_rows():
    X, y = overlapping()
    session, _ = after_one_round(X, y)
    rows = session.query()
    predicted = session.predict(X[rows])
    wrong = np.where(predicted == 0, 1, 0)
    others = np.setdiff1d(np.arange(30, 400), rows)[:20]
    session.teach(others, y[others])
    assert np.isnan(session.learning_curve_.query_error).all()
    session.teach(rows[:2], predicted[:2])
    assert session.learning_curve_.query_error.tolist() == [0]
    session.teach(rows[2:4], wrong[2:4]).skip(rows[4:5])
    assert session.learning_curve_.query_error.tolist() == [0.5]
    session.teach(rows[5:], wrong[5:])
    assert session.learning_curve_.query_error[0] == 3 / 5
    assert np.isnan(session.learning_curve_.query_error[1])


def session_of(errors, **settings):
    """Return a session with these numbers of wrong predictions in rounds of 20 queries."""
    X, y = overlapping()
    session, _ = after_one_round(X, y, n_per_round=20, n_rounds=1000, **settings)
    session._missed = np.concatenate([np.arange(20) < n for n in errors])
    return session


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ([20, 20, 20, 5, 5, 6], None),
        ([20, 20, 20, 5, 5, 5], "query_error"),
        # Three rounds count together: two are too few, and one does not set the maximum.
        ([20, 0], None),
        ([12, 20, 13, 4, 4, 4], None),
        # Without errors, no error can fall.
        ([0, 0, 0, 0], None),
    ],
)
def test_the_ratio(errors, reason):
    assert session_of(errors).stop_reason_ == reason
    assert session_of(errors, stopping_ratio=None).stop_reason_ is None


def test_a_single_class_does_not_stop_the_session():
    X, _ = overlapping()
    session = learner().start(X)
    for _ in range(3):
        rows = session.query()
        session.teach(rows, ["same"] * len(rows))
    assert np.isnan(session.learning_curve_.query_error).all()
    rows = session.query()
    session.teach(rows, ["other"] * len(rows)).query()
    assert session.classes_.tolist() == ["other", "same"]


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        OAAClassifier,
        None,
        "oaa",
        ActiveGamble(),
        ActiveLearner(OAAClassifier()),
    ],
)
def test_other_estimators_are_refused(estimator):
    X, y = overlapping()
    model = ActiveLearner(estimator)
    for call in (lambda: model.fit(X, y), lambda: model.start(X)):
        with pytest.raises((ValueError, TypeError), match="must be a classifier of xmtree, such"):
            call()


def test_label_sets_are_refused():
    X, Y = estimators.label_sets(n=120)
    with pytest.raises(ValueError, match="one label per row, not label sets"):
        learner().fit(X, Y)
    session = learner().start(X)
    rows = session.query()
    with pytest.raises(ValueError, match="one label per row, not label sets"):
        session.teach(rows, Y[rows])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("selection", "best"),
        ("diversity", 0),
        ("diversity", 1.5),
        ("stopping_ratio", 0.0),
        ("stopping_ratio", 1.0),
    ],
)
def test_bad_settings(name, value):
    X, y = overlapping()
    with pytest.raises(ValueError, match=name):
        learner(**{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="n_passes"):
        learner(OAAClassifier(n_passes=0)).start(X)


def test_methods_equal_those_of_the_classifier():
    X, y = overlapping()
    oaa = learner().fit(X, y)
    assert oaa.decision_function(X).shape == (400, 6)
    tree = learner(LOMTreeClassifier()).fit(X, y)
    np.testing.assert_allclose(tree.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    with pytest.raises(AttributeError, match="decision_function"):
        _ = tree.decision_function
    # A new estimator does not change the trained model.
    assert not hasattr(tree.set_params(estimator=OAAClassifier()), "decision_function")
    assert hasattr(learner(OAAClassifier()), "decision_function")


def test_missing_values_if_the_classifier_accepts_them():
    X, y = overlapping()
    X[7, 2] = np.nan
    learner(GambleClassifier(n_estimators=5)).fit(X, y)
    with pytest.raises(ValueError, match="row 7, column 2"):
        learner().fit(X, y)


def test_each_call_uses_the_current_parameters():
    X, y = overlapping()
    session, _ = after_one_round(X, y)
    other, _ = after_one_round(X, y, selection="random")
    assert set(session.query()) != set(other.set_params(selection="margin", diversity=1).query())
    session, _ = after_one_round(X, y, estimator=OAAClassifier())
    session.set_params(estimator=RecallTreeClassifier())
    rows = session.query()
    session.teach(rows, y[rows])
    assert isinstance(session.estimator_, RecallTreeClassifier)


def test_a_session_is_pickled_and_its_classifier_saved(tmp_path):
    X, y = overlapping()
    session = learner(RecallTreeClassifier()).start(X)
    rows = session.query()
    session.teach(rows[:5], y[rows[:5]])
    again = pickle.loads(pickle.dumps(session))
    for one in (session, again):
        one.teach(rows[5:], y[rows[5:]])
        answered(one, y)
    np.testing.assert_array_equal(again.selected_, session.selected_)
    estimators.same_predictions(again, session, X)
    session.save(tmp_path / "model")
    loaded = xmtree.load(tmp_path / "model")
    assert isinstance(loaded, RecallTreeClassifier)
    estimators.same_predictions(loaded, session, X)


def test_validation_error_stops_it():
    X, y = overlapping(n=900)
    settings = {"early_stopping": True, "patience": 2, "n_rounds": 100, "stopping_ratio": None}
    model = learner(RecallTreeClassifier(), **settings).fit(X, y)
    assert model.stop_reason_ == "validation"
    assert model.best_round_ == np.argmin(model.learning_curve_.validation_error)
