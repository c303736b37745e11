"""scikit-learn's model selection over label sets: ``score`` and ``make_scorers``."""

import pickle

import estimators
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from xmtree import metrics

X, SETS = estimators.label_sets(n=150)
DENSE = SETS.toarray()
NAMES = np.array(list("abcdefgh"))
NUMBERS = [np.flatnonzero(row).tolist() for row in DENSE]
WORDS = [NAMES[row].tolist() for row in NUMBERS]
FORMS = {"sparse": SETS, "matrix": sp.csr_matrix(SETS), "dense": DENSE}
FORMS |= {"numbers": NUMBERS, "words": WORDS, "objects": np.array([*WORDS, None], object)[:-1]}
FOLDS = KFold(3)


def learner(name, **more):
    small = {"n_passes": 1} if name == "oaa" else {"n_estimators": 5, "scorers": "none"}
    return estimators.ALL[name](**small, **more)


@pytest.mark.parametrize("name", ["oaa", "ldsm"])
@pytest.mark.parametrize("form", FORMS)
def test_score_is_the_share_of_correct_label_sets(name, form):
    model = learner(name).fit(X[:60], FORMS[form][:60])
    expected = learner(name).fit(X[:60], DENSE[:60]).predict(X)
    assert 0.1 < accuracy_score(DENSE, expected) < 1
    weights = np.arange(150)
    assert model.score(X, FORMS[form]) == pytest.approx(accuracy_score(DENSE, expected))
    weighted = accuracy_score(DENSE, expected, sample_weight=weights)
    assert model.score(X, FORMS[form], weights) == pytest.approx(weighted)


def test_labels_that_were_not_learned_are_missed():
    model = learner("oaa").fit(X, WORDS)
    before = model.score(X, WORDS)
    right = [i for i, row in enumerate(model.predict(X)) if row == WORDS[i]]
    other = list(WORDS)
    other[right[0]] = [*other[right[0]], "new"]
    assert model.score(X, other) == pytest.approx(before - 1 / 150)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, WORDS[:100])


@pytest.mark.parametrize(
    ("name", "form"), [*(("oaa", form) for form in FORMS), ("ldsm", "dense"), ("ldsm", "sparse")]
)
def test_searches_and_cross_validation(name, form):
    y = FORMS[form]
    p = metrics.propensities(SETS)
    scorers = metrics.make_scorers(
        propensities=p, classes=NAMES if form in ("words", "objects") else None
    )
    search = GridSearchCV(
        learner(name), {"random_state": [0]}, cv=FOLDS, scoring=scorers, refit="P@1"
    ).fit(X, y)
    expected = {measure: [] for measure in scorers}
    for train, test in FOLDS.split(DENSE):
        ranking, _ = learner(name).fit(X[train], DENSE[train]).predict_topk(X[test], 5)
        for k in (1, 3, 5):
            expected[f"P@{k}"].append(metrics.precision_at_k(SETS[test], ranking, k))
            expected[f"nDCG@{k}"].append(metrics.ndcg_at_k(SETS[test], ranking, k))
            expected[f"PSP@{k}"].append(metrics.psp_at_k(SETS[test], ranking, p, k))
    for measure, values in expected.items():
        found = [search.cv_results_[f"split{i}_test_{measure}"][0] for i in range(3)]
        np.testing.assert_allclose(found, values, err_msg=measure)
    assert search.best_score_ == pytest.approx(np.mean(expected["P@1"]))
    if sp.issparse(y):  # scikit-learn's other functions refuse it
        return
    found = cross_validate(learner(name), X, y, cv=FOLDS, scoring=scorers)
    np.testing.assert_allclose(found["test_PSP@3"], expected["PSP@3"])
    scores = cross_val_score(learner(name), X, y, cv=FOLDS, error_score="raise")
    assert np.all((scores > 0) & (scores <= 1))


@pytest.mark.parametrize(("name", "grid"), [("ldsm", "n_estimators"), ("oaa", "learning_rate")])
@pytest.mark.parametrize("form", ["words", "dense", "sparse"])
def test_a_search_finds_the_best_ranking(name, grid, form):
    """Search over numbers of trees and step sizes."""
    values = [1, 8] if name == "ldsm" else [0.001, 1.0]
    scorers = metrics.make_scorers((1, 3))
    model = estimators.ALL[name](**({"scorers": "none"} if name == "ldsm" else {}))
    search = GridSearchCV(model, {grid: values}, cv=FOLDS, scoring=scorers, refit="P@3")
    search.fit(X, FORMS[form])
    found = search.cv_results_["mean_test_P@3"]
    assert found[0] != found[1]
    assert getattr(search.best_estimator_, grid) == values[int(np.argmax(found))]
    assert search.best_score_ == found.max()
    labels, _ = search.best_estimator_.predict_topk(X, 3)
    classes = NAMES if form == "words" else None
    at_3 = metrics.precision_at_k(FORMS[form], labels, 3, classes=classes)
    assert scorers["P@3"](search.best_estimator_, X, FORMS[form]) == pytest.approx(at_3)


@pytest.mark.parametrize("form", ["words", "dense", "frame"])
def test_a_search_by_accuracy_finds_a_threshold(form):
    y = pd.DataFrame(DENSE, columns=NAMES) if form == "frame" else FORMS[form]
    grid = {"threshold": [0.05, 0.3, 0.99]}
    search = GridSearchCV(learner("oaa"), grid, cv=FOLDS).fit(X, y)
    expected = []
    for threshold in grid["threshold"]:
        model = learner("oaa", threshold=threshold)
        parts = [
            accuracy_score(DENSE[test], clone(model).fit(X[train], DENSE[train]).predict(X[test]))
            for train, test in FOLDS.split(DENSE)
        ]
        expected.append(np.mean(parts))
    assert len(set(expected)) > 1
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
    assert search.best_params_["threshold"] == grid["threshold"][int(np.argmax(expected))]
    ranked = GridSearchCV(learner("oaa"), grid, cv=FOLDS, scoring=metrics.make_scorers(1)["P@1"])
    assert len(set(ranked.fit(X, y).cv_results_["mean_test_score"])) == 1


def test_one_label_per_row_in_a_pipeline():
    rows, labels = estimators.sparse(n=120)
    pipe = make_pipeline(MaxAbsScaler(), estimators.ALL["lomtree"]())
    scorer = pickle.loads(pickle.dumps(metrics.make_scorers(1)["P@1"]))
    found = cross_val_score(pipe, rows, labels, cv=FOLDS, scoring=scorer)
    np.testing.assert_allclose(found, cross_val_score(pipe, rows, labels, cv=FOLDS))
    whole = make_pipeline(estimators.ALL["lomtree"]()).fit(rows, labels)
    assert scorer(whole, rows, labels) == whole.score(rows, labels)


def test_scorers_and_their_errors():
    assert list(metrics.make_scorers([1, 5])) == ["P@1", "P@5", "nDCG@1", "nDCG@5"]
    with pytest.raises(ValueError, match="k must be"):
        metrics.make_scorers(0)
    with pytest.raises(TypeError, match="LogisticRegression, which has no predict_topk"):
        metrics.make_scorers()["P@1"](LogisticRegression(), X, DENSE)
    model = xmtree.OAAClassifier(random_state=0).fit(X, WORDS)
    unnamed = metrics.make_scorers(1, propensities=metrics.propensities(SETS))["PSP@1"]
    with pytest.raises(ValueError, match="with the label of each"):
        unnamed(model, X, WORDS)
