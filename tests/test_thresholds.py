"""Thresholds of label sets, by an average of F1 or by numbers, and the averages themselves."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.metrics
import xmtree
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_validate
from test_probabilities import some_sets
from xmtree import metrics
from xmtree._thresholds import RankedRows, fit

X, Y = some_sets()
NEW_X, NEW_Y = some_sets(2000, seed=1)
MAKE = {
    "oaa": lambda **more: xmtree.OAAClassifier(random_state=0, **more),
    "ldsm": lambda **more: xmtree.LdSMClassifier(n_estimators=3, random_state=0, **more),
    "ldsm-trees": lambda **more: xmtree.LdSMClassifier(
        n_estimators=3, scorers="none", random_state=0, **more
    ),
}
AVERAGES = ["row", "micro", "macro"]
MEASURES = ["f1_score", "precision_score", "recall_score"]


@pytest.fixture(scope="module")
def models():
    """Return a model of each learner and average, trained once."""
    pairs = itertools.product(MAKE, [None, *AVERAGES])
    return {(name, each): MAKE[name](threshold=each).fit(X, Y) for name, each in pairs}


def slow_f1(true, found, average):
    """Return F1 by its definition; rows without labels count 1, labels without rows 0."""
    axis = {"row": 1, "macro": 0, "micro": None}[average]
    hits, both = (true & found).sum(axis=axis), true.sum(axis=axis) + found.sum(axis=axis)
    return np.mean(np.where(both > 0, 2 * hits / np.maximum(both, 1), average == "row"))


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("average", AVERAGES)
def test_fitted_thresholds_are_near_the_best_on_new_rows(models, name, average):
    model = models[name, average]
    found = slow_f1(NEW_Y, model.predict(NEW_X), average)
    probabilities = model.predict_proba(NEW_X)
    is_best = np.eye(40, dtype=bool)[probabilities.argmax(axis=1)]
    grid = [slow_f1(NEW_Y, (probabilities > t) | is_best, average) for t in np.arange(1, 100) / 100]
    assert found > max(grid) - 0.01
    assert found >= slow_f1(NEW_Y, models[name, None].predict(NEW_X), average) - 0.005


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("average", AVERAGES)
def test_predictions_are_the_labels_above_their_thresholds(models, name, average, tmp_path):
    model = models[name, average]
    assert np.shape(model.threshold_) == ((40,) if average == "macro" else ())
    probabilities = model.predict_proba(NEW_X)
    is_best = np.eye(40, dtype=bool)[probabilities.argmax(axis=1)]
    expected = (probabilities > model.threshold_) | is_best
    np.testing.assert_array_equal(model.predict(NEW_X), expected)
    np.testing.assert_array_equal(model.predictor().predict(NEW_X), expected)
    # The thresholds as numbers, which never add the best label.
    numbers = copy.copy(model).set_params(threshold=model.threshold_)
    np.testing.assert_array_equal(numbers.predict(NEW_X), probabilities > model.threshold_)
    model.save(tmp_path / "model")
    for again in (xmtree.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.threshold_, model.threshold_)
        np.testing.assert_array_equal(again.predict(NEW_X), expected)
    assert clone(model).threshold == average


def test_rows_without_likely_labels_are_not_predicted_again(models, monkeypatch):
    model = models["ldsm", "macro"]
    expected = model.predict(NEW_X)
    monkeypatch.setattr(xmtree.LdSMClassifier, "_best", None)
    np.testing.assert_array_equal(model.predict(NEW_X), expected)


def slow_thresholds(average, rows, probabilities):
    """Return the thresholds by trying each of the grid on each label."""
    grid = np.arange(1, 100) / 100
    n, n_classes = rows.true.shape
    table = np.zeros((n, n_classes))
    np.put_along_axis(table, rows.best, probabilities, axis=1)
    true, weights = rows.true.toarray() > 0, rows.weights[:, None]
    if true.sum(axis=1)[rows.weights > 0].min() > 0:
        table[np.arange(n), rows.best[:, 0]] = 1
    taken = np.array([((table > t) * weights).sum(axis=0) for t in grid])
    hits = np.array([((table > t) & true) * weights for t in grid]).sum(axis=1)
    n_true = (true * weights).sum(axis=0)
    if average == "micro":
        return grid[np.argmax(2 * hits.sum(axis=1) / (taken.sum(axis=1) + n_true.sum()))]
    if average == "row":
        found = [[slow_f1(true[[i]], table[[i]] > t, "row") for i in range(n)] for t in grid]
        return grid[np.argmax(np.average(found, axis=1, weights=rows.weights))]
    occurs = n_true > 0
    all_taken, all_hits = (
        (counts[:, occurs] / n_true[occurs]).mean(axis=1, keepdims=True) for counts in (taken, hits)
    )
    return grid[((hits + 20 * all_hits) / (taken + n_true + 20 * (all_taken + 1))).argmax(axis=0)]


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("empty", [False, True])
def test_thresholds_equal_the_slow_reference(average, empty):
    random = np.random.default_rng(3)
    n, n_classes, k = 60, 7, 5
    true = sp.csr_array((random.random((n, n_classes)) < 0.3).astype(int))
    if not empty:
        true = sp.csr_array(
            np.maximum(true.toarray(), np.eye(n_classes, dtype=int)[np.arange(n) % 7])
        )
    true = sp.csr_array(true.toarray() * (np.arange(n_classes) != 4))  # a label without rows
    if not empty:
        true = sp.csr_array(
            np.maximum(true.toarray(), (true.sum(axis=1) == 0)[:, None] * [1] + [0])
        )
    best = np.array([random.permutation(n_classes)[:k] for _ in range(n)], np.int32)
    scores = -np.sort(-random.random((n, k)), axis=1).astype(np.float32)
    hits = np.take_along_axis(true.toarray() > 0, best, axis=1)
    rows = RankedRows(best, scores, hits, true, random.integers(0, 3, n).astype(float))
    found = fit(average, rows, scores)
    np.testing.assert_allclose(found.values, slow_thresholds(average, rows, scores), rtol=1e-6)
    assert found.n_least == int(not empty)


def test_thresholds_do_not_depend_on_the_blocks_of_labels(monkeypatch, models):
    monkeypatch.setattr("xmtree._thresholds._BLOCK", 7)
    again = MAKE["oaa"](threshold="macro").fit(X, Y)
    np.testing.assert_array_equal(again.threshold_, models["oaa", "macro"].threshold_)


def test_rows_for_thresholds_are_not_learned(monkeypatch):
    learned, ranked = [], []
    train, of = xmtree.LdSMClassifier._train, RankedRows.of
    monkeypatch.setattr(
        xmtree.LdSMClassifier, "_train", lambda *args: (learned.append(args[4]), train(*args))
    )
    monkeypatch.setattr(RankedRows, "of", lambda *args: (ranked.append(args[1]), of(*args))[1])
    MAKE["ldsm"](threshold="row").fit(X, Y)
    held_out = np.flatnonzero(learned[0] == 0)
    assert len(held_out) == 600
    assert sorted(map(tuple, ranked[0].toarray())) == sorted(map(tuple, X[held_out].toarray()))
    assert learned[1] is None


def test_the_model_does_not_depend_on_the_threshold(models):
    for name in MAKE:
        expected = models[name, None].predict_topk(NEW_X, 5)
        for average in AVERAGES:
            found = models[name, average].predict_topk(NEW_X, 5)
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("name", MAKE)
def test_a_number_for_each_label(models, name):
    model = copy.copy(models[name, None])
    numbers = np.linspace(0, 0.9, 40)
    expected = model.predict_proba(NEW_X) > np.float32(numbers)
    for given in (numbers, numbers.tolist(), pd.Series(numbers), tuple(numbers)):
        np.testing.assert_array_equal(model.set_params(threshold=given).predict(NEW_X), expected)
    for wrong, message in [
        (numbers[:-1], "one for each of the 40 classes"),
        (numbers[None], "one for each of the 40 classes"),
        (list("abcd") * 10, "one for each of the 40 classes"),
        (numbers + 0.2, r"from 0 to 1, got 1\.0\d+ for class 35"),
        (np.full(40, np.nan), "from 0 to 1, got nan for class 0"),
        ("weighted", "threshold"),
        ({"a": 1}, "one for each of the 40 classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.set_params(threshold=wrong).predict(NEW_X)
        with pytest.raises(ValueError, match=message):
            MAKE[name](threshold=wrong).fit(X[:50], Y[:50])


@pytest.mark.parametrize("name", ["oaa", "ldsm"])
@pytest.mark.parametrize(
    "change",
    [{"percents": [50] * 39}, {"percents": 50}, {"percents": [101] * 40}, {"percents": [0.5] * 40},
     {"average": "mean"}, {"n_least": 2}, {"n_least": None}],
)  # fmt: skip
def test_damaged_thresholds_are_refused(models, name, change, tmp_path):
    model = copy.copy(models[name, "macro"])
    state = model._more_state()
    (state["calibration"]["sets"] if name == "oaa" else state["thresholds"]).update(change)
    model._more_state = lambda: state
    model.save(tmp_path / "model")
    with pytest.raises(xmtree.ModelFileError, match="damaged"):
        xmtree.load(tmp_path / "model")


@pytest.mark.parametrize("name", MAKE)
def test_another_average_needs_another_fit(models, name):
    model = copy.copy(models[name, "micro"]).set_params(threshold="macro")
    with pytest.raises(ValueError, match='has threshold="micro"; call fit again'):
        model.predict(NEW_X)
    model = copy.copy(models[name, None]).set_params(threshold="row")
    with pytest.raises(ValueError, match="has no fitted threshold; call fit again"):
        model.predict(NEW_X)
    with pytest.raises(ValueError, match="has no fitted threshold"):
        _ = model.threshold_


@pytest.mark.parametrize("name", MAKE)
def test_few_rows_and_single_labels(name):
    model = MAKE[name](threshold="macro").fit(X[:60], Y[:60])
    assert model.threshold_.tolist() == [0.5] * 40
    small = {} if name == "oaa" else {"max_nodes": 60}
    single = MAKE[name](threshold="macro", **small).fit(X, Y.argmax(axis=1))
    assert single.predict(NEW_X).shape == (2000,)


def test_one_against_all_refuses_what_it_cannot_fit():
    for more, message in [
        ({"calibrate": False}, "needs calibrate=True"),
        ({"loss": "softmax"}, 'needs another loss than "softmax"'),
    ]:
        model = MAKE["oaa"](threshold="macro", **more)
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
        assert not model.__sklearn_is_fitted__()
        MAKE["oaa"](threshold=0.3, **more).fit(X[:50], Y[:50])


def test_a_stream_fits_thresholds():
    model = MAKE["oaa"](threshold="macro")
    for start in range(0, 3000, 200):
        part = slice(start, start + 200)
        model.partial_fit(X[part], Y[part])
    assert len(np.unique(model.threshold_)) > 1
    assert slow_f1(NEW_Y, model.predict(NEW_X), "macro") > 0.5


def test_more_trees_keep_the_thresholds(models):
    model = MAKE["ldsm"](threshold="micro", warm_start=True).fit(X, Y)
    before = model.threshold_
    assert model.set_params(n_estimators=4).fit(X, Y).threshold_ == before


# The averages.


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("average", AVERAGES)
def test_averages_equal_those_of_scikit_learn(measure, average):
    random = np.random.default_rng(0)
    theirs = average.replace("row", "samples")
    for zero in (0.0, 1.0, np.nan):
        true, found = (random.random((2, 9, 8)) < 0.2).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = getattr(sklearn.metrics, measure)(
                true, found, average=theirs, zero_division=zero
            )
        options = {"average": average, "zero_division": zero}
        lists = [[np.flatnonzero(row).tolist() for row in each] for each in (true, found)]
        words = [[[f"{label}" for label in row] for row in each] for each in lists]
        names = list(map(str, range(8)))
        ours = getattr(metrics, measure)
        for pair, more in [
            ((true, found), {}),
            ((sp.csr_array(true), sp.coo_matrix(found)), {}),
            (lists, {"classes": range(8)}),
            (words, {"classes": names}),
            ((true, words[1]), {"classes": names}),
            ((lists[0], found), {}),
            ((pd.DataFrame(true, columns=names), words[1]), {}),
        ]:
            assert ours(*pair, **options, **more) == pytest.approx(expected, nan_ok=True)
    assert ours([1, 2, 3], [1, 2, 4], "micro") == pytest.approx(2 / 3)


def test_labels_that_do_not_occur_count_only_with_classes():
    true, found = [["a"], ["b"]], [["a"], ["c"]]
    assert metrics.f1_score(true, found, "macro") == pytest.approx(1 / 3)
    assert metrics.f1_score(true, found, "macro", classes=list("abcd")) == pytest.approx(1 / 4)
    assert metrics.f1_score(true, found, "macro", classes=["a"]) == pytest.approx(1 / 3)
    # Lists of 0 and 1 beside other lists are labels too.
    assert metrics.recall_score([[0, 1], [1]], [[0, 1], [0, 1]]) == 1
    assert metrics.recall_score([[0, 1], [0, 1]], [[0, 1], [1]]) == pytest.approx(3 / 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1]], [[1]], "samples"), 'average must be "micro", "macro" or "row"'),
        (([[1]], [["a"]]), "cannot be compared"),
        (([[1], [2]], [[1]]), "inconsistent numbers of samples"),
        ((np.eye(3), np.eye(3)[:, :2]), "y_true has 3 columns and y_pred 2"),
        ((np.eye(3), np.eye(3) * 0.5), "indicator of label sets holds only 0 and 1"),
        (([[1, 1]], [["a"]]), "twice"),
        ((None, [[1]]), "y_true is None"),
    ],
)
def test_invalid_label_sets_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.f1_score(*arguments)


@pytest.mark.parametrize("zero", [-1, 2, "warn", None])
def test_invalid_zero_division_is_refused(zero):
    with pytest.raises(ValueError, match="zero_division must be from 0 to 1, or NaN"):
        metrics.f1_score([[1]], [[1]], zero_division=zero)


@pytest.mark.parametrize("form", ["dense", "sparse", "words"])
def test_scorers(form):
    names = np.array([f"label {i}" for i in range(40)])
    y = {
        "dense": Y,
        "sparse": sp.csr_matrix(Y),
        "words": [names[np.flatnonzero(row)].tolist() for row in Y],
    }[form]
    scorers = metrics.make_scorers(1, average=["micro", "row"])
    assert list(scorers)[-1] == "recall_row"
    model = MAKE["oaa"](n_passes=1).fit(X[:1000], y[:1000])
    new = y[1000:2000]
    for name, scorer in scorers.items():
        measure, _, average = name.partition("_")
        if average:
            expected = getattr(metrics, f"{measure}_score")(
                new, model.predict(X[1000:2000]), average
            )
            assert scorer(model, X[1000:2000], new) == pytest.approx(expected)
    if form != "sparse":
        found = cross_validate(MAKE["oaa"](n_passes=1), X, y, cv=KFold(2), scoring=scorers)
        assert found["test_f1_micro"].min() > 0.3
    assert list(metrics.make_scorers(1, average="macro"))[2:] == [
        "f1_macro",
        "precision_macro",
        "recall_macro",
    ]
    with pytest.raises(ValueError, match="average must be"):
        metrics.make_scorers(average=["samples"])
