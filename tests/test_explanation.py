"""Contributions of features, explanations, and the weights of linear scorers."""

import csv
import json
from itertools import combinations
from math import factorial

import cli_files as files
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import xmtree
from cli_files import run
from sklearn.feature_selection import SelectFromModel
from sklearn.preprocessing import normalize
from sklearn.utils.fixes import parse_version
from xmtree import (
    FilterTreeClassifier,
    GambleClassifier,
    LdSMClassifier,
    LOMTreeClassifier,
    OAAClassifier,
    RecallTreeClassifier,
    SAMMEClassifier,
    TextClassifier,
)

_random = np.random.default_rng(0)
X = _random.normal(size=(240, 5)).astype(np.float32)
Y = np.array(["a", "b", "c", "d"])[(X[:, 0] > 0) + 2 * (X[:, 1] + X[:, 2] > 0)]
NEW = _random.normal(size=(20, 5)).astype(np.float32)

OAA = {
    "standard": {},
    "none": {"scaling": "none", "loss": "logistic"},
    "row": {"scaling": "row"},
    "log": {"scaling": "log", "loss": "softmax"},
    "hashed": {"n_bits": 6},
    "pruned": {"prune": 0.01},
}


def sums(found):
    return np.asarray(found.sum(axis=1)).ravel()


@pytest.mark.parametrize("name", OAA)
def test_contributions_of_oaa_sum_to_the_scores(name, tmp_path):
    model = OAAClassifier(random_state=0, **OAA[name]).fit(X, Y)
    scores = model.decision_function(NEW)
    best = model.contributions(NEW)
    assert best.shape == (20, 6)
    assert best.dtype == np.float64
    np.testing.assert_allclose(sums(best), scores.max(axis=1), atol=1e-5)
    for at, label in enumerate(model.classes_):
        found = model.contributions(NEW, label)
        np.testing.assert_allclose(sums(found), scores[:, at], atol=1e-5)
        np.testing.assert_array_equal(found, model.contributions(NEW, [label] * 20))
        sparse = model.contributions(sp.csr_matrix(NEW), label)
        assert sparse.format == "csr"
        np.testing.assert_array_equal(sparse.toarray(), found)
    if name in ("standard", "none", "pruned"):
        linear = NEW @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(linear, scores, atol=1e-5)
    # A file for prediction only explains as well.
    model.save(tmp_path / "m", compact=True)
    again = xmtree.load(tmp_path / "m").contributions(NEW)
    np.testing.assert_allclose(again, best, atol=0.1)


def test_contributions_are_those_of_the_score_before_it_is_clamped():
    model = OAAClassifier(optimizer="nag", scaling="none", random_state=0).fit(X, Y)
    scores = sums(model.contributions(3 * NEW, "b"))
    clamped = model.decision_function(3 * NEW)[:, 1]
    assert np.abs(scores).max() > 1
    np.testing.assert_allclose(np.clip(scores, -1, 1), clamped, atol=1e-5)


def test_classes_without_examples_have_no_score():
    model = OAAClassifier(random_state=0).fit(X, Y, classes=["a", "b", "c", "d", "e"])
    assert model.intercept_[4] == model.contributions(NEW, "e")[0, -1] == -np.inf
    assert model.coef_[4].nnz == 0


def test_contributions_of_ldsm_sum_to_the_margins_of_its_scorers():
    model = LdSMClassifier(n_estimators=2, random_state=0).fit(X, Y)
    rows = normalize(np.sign(NEW) * np.log1p(abs(NEW)))
    for at, label in enumerate(model.classes_):
        found = model.contributions(NEW, label)
        np.testing.assert_allclose(found[:, :-1], rows * model.coef_[at].toarray(), atol=1e-6)
        np.testing.assert_array_equal(found[:, -1], model.intercept_[at])


def test_contributions_of_ldsm_by_dense_columns():
    rows = np.random.default_rng(1).normal(size=(400, 20)).astype(np.float32)
    labels = (rows[:, 0] > 0) + 2 * (rows[:, 1] > 0)
    model = LdSMClassifier(n_estimators=2, scaling="none", random_state=0).fit(rows, labels)
    assert model._model.summary()["n_scorer_weights"] == 0, "all weights are dense"
    margins = normalize(rows) @ model.coef_.T + model.intercept_
    for label in range(4):
        found = sums(model.contributions(rows, label))
        np.testing.assert_allclose(found, margins[:, label], atol=1e-5)
    assert np.mean(margins.argmax(axis=1) == model.predict(rows)) > 0.9


#: Layouts of the Recall Tree's scorers: by label, by column, and regressors of two optimizers.
RECALL_TREES = {
    "by label": {"scaling": "standard"},
    "by column": {"scaling": "row", "n_bits": 14},
    "margin": {"loss": "margin", "scaling": "none"},
    "regressors": {"loss": "logistic", "scaling": "none"},
    "paths": {"loss": "hinge", "scaling": "standard", "path_features": "all"},
}


@pytest.mark.parametrize("name", RECALL_TREES)
def test_contributions_of_the_recall_tree_sum_to_the_margins_of_its_scorers(name, tmp_path):
    # Each label is a candidate, and without a beam its score is the margin.
    how = {"beam_size": 1, "max_candidates": 5, "random_state": 0, **RECALL_TREES[name]}
    labels = np.where(np.arange(240) % 3 == 0, "e", Y)
    model = RecallTreeClassifier(**how).fit(X, labels)
    named, scores = model.predict_topk(NEW, 5)
    if name != "by column":
        margins = NEW @ model.coef_.T + model.intercept_
    for at, label in enumerate(model.classes_):
        found = model.contributions(NEW, label)
        assert found.shape == (20, 6)
        if name != "paths":
            of_label = scores[named == label]
            np.testing.assert_allclose(sums(found), of_label, rtol=1e-4, atol=1e-5)
        if name != "by column":
            np.testing.assert_allclose(sums(found), margins[:, at], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found, model.contributions(NEW, [label] * 20))
    best = model.contributions(NEW)
    model.save(tmp_path / "m", compact=True)
    again = xmtree.load(tmp_path / "m").contributions(NEW)
    np.testing.assert_allclose(again, best, rtol=0.01, atol=0.01)


def test_weights_of_the_recall_tree_by_column():
    columns = sp.random(300, 400, 0.02, "csr", random_state=0, dtype=np.float32)
    labels = _random.integers(0, 6, 300)
    how = {"max_candidates": 6, "beam_size": 1, "scaling": "none", "random_state": 0}
    model = RecallTreeClassifier(**how).fit(columns, labels, classes=range(7))
    margins = columns @ model.coef_.T.toarray() + model.intercept_
    named, scores = model.predict_topk(columns, 6)
    rows = np.arange(300)[:, np.newaxis]
    np.testing.assert_allclose(margins[rows, named], scores, rtol=1e-4, atol=1e-4)
    found = model.contributions(columns, labels)
    np.testing.assert_allclose(sums(found), margins[rows[:, 0], labels], rtol=1e-4, atol=1e-4)
    assert model.intercept_[6] == model.contributions(columns[0], 6)[0, 400] == -np.inf
    assert model.coef_[6].nnz == 0


@pytest.mark.parametrize("learner", [OAAClassifier, LdSMClassifier, RecallTreeClassifier])
def test_threads_share_the_rows_of_contributions(learner):
    rows = np.tile(NEW, (150, 1))
    model = learner(random_state=0).fit(X, Y)
    labels = _random.choice(["a", "b", "c", "d"], len(rows))
    alone = model.contributions(rows, labels)
    np.testing.assert_array_equal(alone, model.set_params(n_jobs=3).contributions(rows, labels))
    np.testing.assert_array_equal(alone[7:9], model.contributions(rows[7:9], labels[7:9]))


def test_the_best_labels_are_ranked_once(monkeypatch):
    model, topk, calls = OAAClassifier(random_state=0).fit(X, Y), OAAClassifier._topk, []
    counted = lambda self, *args: calls.append(args) or topk(self, *args)  # noqa: E731
    monkeypatch.setattr(OAAClassifier, "_topk", counted)
    labels = model.predict_topk(NEW[:1], 4)[0][0]
    assert [found.label for found in model.explain(NEW[0], 4)] == labels.tolist()
    assert len(calls) == 2


def test_contributions_that_do_not_fit_into_memory():
    # Standardized rows are dense.
    rows = sp.random(4, 50_000, 0.001, "csr", random_state=0, dtype=np.float32)
    model = OAAClassifier(scaling="standard", random_state=0).fit(rows, [0, 1, 0, 1])
    with pytest.raises(MemoryError, match="contributions to 500000 scores need about"):
        model.contributions(sp.csr_matrix((500_000, 50_000), dtype=np.float32), 0)


def value(tree, classes, row, known, label, node=0):
    """Return the value of a tree for a row of which only the features ``known`` are known."""
    feature, (left, right) = tree.feature[node], tree.children[node]
    if feature < 0:
        votes = slice(*tree.vote_starts[tree.leaf[node] :][:2])
        found = tree.votes[votes][classes[tree.vote_classes[votes]] == label]
        return float(found[0] if len(found) else tree.other_votes[tree.leaf[node]])
    if feature in known:
        x = row[feature]
        if np.isnan(x):
            goes_left = tree.missing_left[node]
        elif np.isnan(tree.threshold[node]):
            goes_left = x in tree.categories[slice(*tree.category_starts[node : node + 2])]
        else:
            goes_left = x <= tree.threshold[node]
        return value(tree, classes, row, known, label, left if goes_left else right)
    shares = tree.n_examples[[left, right]] / tree.n_examples[[left, right]].sum()
    values = [value(tree, classes, row, known, label, child) for child in (left, right)]
    return shares @ values


def shapley(model, row, label):
    """Return Shapley values by all sets of known features, and the value of the empty set."""
    n = len(row)

    def game(known):
        return sum(value(tree, model.classes_, row, known, label) for tree in model.trees_)

    values = {known: game(known) for size in range(n + 1) for known in combinations(range(n), size)}
    found = np.zeros(n + 1)
    for known, before in values.items():
        weight = factorial(len(known)) * factorial(n - len(known) - 1) if len(known) < n else 0
        for feature in set(range(n)) - set(known):
            after = values[tuple(sorted((*known, feature)))]
            found[feature] += weight / factorial(n) * (after - before)
    found[n] = values[()]
    return found


@pytest.mark.parametrize(
    "model",
    [
        GambleClassifier(n_estimators=8, random_state=0),
        GambleClassifier(n_estimators=3, max_leaves=12, linear=False, random_state=0),
        GambleClassifier(n_estimators=3, linear=False, categorical_features=[4], random_state=0),
        SAMMEClassifier(n_estimators=3, random_state=0),
        SAMMEClassifier(n_estimators=2, votes="real", random_state=0),
    ],
)
def test_contributions_of_boosting_are_shapley_values(model, tmp_path):
    learned, new = (rows.round(1) for rows in (X, NEW[:4]))
    learned[:, 4], new[:, 4] = np.arange(240) % 6, np.arange(4) * 2
    learned[::7, 0] = new[0, 0] = np.nan
    model.fit(learned, Y)
    for label in ("a", "c"):
        found = model.contributions(new, label)
        at = list(model.classes_).index(label)
        coefficients = getattr(model, "linear_coef_", np.zeros((4, 5)))[at]
        assert coefficients.any() == (model.get_params().get("linear") is True)
        # What trees do not explain is a linear function; a missing value counts as a mean.
        rest = found - [shapley(model, row, label) for row in new]
        single = new.astype("f4").astype("f8").clip(np.nanmin(learned, 0), np.nanmax(learned, 0))
        moved = np.nan_to_num(single - single[1])
        expected = rest[1] + np.append(coefficients * moved, [[0]] * 4, 1)
        expected[0, 0] = 0
        np.testing.assert_allclose(rest, expected, rtol=1e-6, atol=1e-9)
        if not coefficients.any():
            np.testing.assert_allclose(rest, 0, atol=1e-9)
        np.testing.assert_allclose(sums(found), model.decision_function(new)[:, at], rtol=1e-5)
    # Neither the file, nor the number of threads, nor the other rows make a difference.
    model.save(tmp_path / "m")
    again = xmtree.load(tmp_path / "m").set_params(n_jobs=2)
    np.testing.assert_array_equal(
        again.contributions(new, "c")[2:], model.contributions(new, "c")[2:]
    )


def test_linear_scores_of_categories_are_explained():
    rng = np.random.default_rng(0)
    learned = rng.integers(4, size=(500, 20)).astype(float)
    y = np.digitize((learned % 3).sum(1) + rng.normal(size=500), [14, 16])
    learned[:, 19] = rng.normal(size=500)
    learned[learned == 2] = np.nan
    how = {"n_estimators": 20, "categorical_features": list(range(19)), "random_state": 0}
    model, trees = (GambleClassifier(linear=on, **how).fit(learned, y) for on in (True, False))
    assert np.isnan(model.linear_coef_[:, :19]).all()
    assert np.isfinite(model.linear_coef_[:, 19]).all()
    rest = model.contributions(learned, 1) - trees.contributions(learned, 1)
    np.testing.assert_allclose(rest[:, :20].mean(0), 0, atol=1e-6)
    for of_column, values in zip(rest.T[:19], np.nan_to_num(learned.T, nan=9), strict=False):
        for category in (0, 1, 3, 9):
            of_category = of_column[values == category]
            np.testing.assert_allclose(of_category, of_category[0], rtol=1e-6, atol=1e-9)
            assert of_category[0] != 0
    scores = model.decision_function(learned) - trees.decision_function(learned)
    np.testing.assert_allclose(rest.sum(1), scores[:, 1], rtol=1e-5, atol=1e-6)


def test_explanations_name_features():
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    for model in (OAAClassifier(random_state=0), GambleClassifier(n_estimators=5, random_state=0)):
        model.fit(frame, Y)
        found = model.explain(frame[:1], k=2)
        labels, scores = model.predict_topk(frame[:1], 2)
        assert [each.label for each in found] == labels[0].tolist()
        for each, score in zip(found, scores[0], strict=True):
            assert each.score == pytest.approx(score, rel=1e-5)
            values = [value for _, value in each.contributions]
            assert each.base + sum(values) == pytest.approx(each.score)
            assert values == sorted(values, key=abs, reverse=True)
            expected = model.contributions(frame[:1], each.label)[0]
            assert dict(each.contributions) == {
                name: value for name, value in zip("vwxyz", expected[:-1], strict=True) if value
            }
        model.fit(X, Y)
        assert {name for name, _ in model.explain(X[0])[0].contributions} <= set(range(5))
        assert model.explain(X[0]) == model.explain(sp.csr_matrix(X[:1]))
    with pytest.raises(ValueError, match="one row, got 240"):
        model.explain(X)


def test_label_sets_and_labels_of_any_type():
    sets = [["x", "y"] if row[0] > 0 else ["z"] for row in X]
    model = OAAClassifier(random_state=0).fit(X, sets)
    assert [each.label for each in model.explain(X[0], 3)] == model.predict_topk(X[:1])[0][0][
        :3
    ].tolist()
    days = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")[(X[:, 0] > 0).astype(int)]
    model = OAAClassifier(random_state=0).fit(X, days)
    found = model.contributions(X[:3], days[:3])
    at = np.searchsorted(model.classes_, days[:3])
    scores = model._model.predict_scores(X[:3])[np.arange(3), at]
    np.testing.assert_allclose(sums(found), scores, atol=1e-5)


def test_wrong_labels_are_refused():
    model = OAAClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="labels has 'q', which is unknown"):
        model.contributions(NEW, "q")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.contributions(NEW, ["a", "b"])
    with pytest.raises(ValueError, match="labels must hold one label per row"):
        model.contributions(NEW[:2], [["a"], ["b", "c"]])
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        model.explain(NEW[0], 0)


def test_learners_without_scorers_do_not_explain():
    for model in (LOMTreeClassifier(), FilterTreeClassifier()):
        assert not hasattr(model, "explain")
        assert not hasattr(model, "coef_")
        texts = TextClassifier(model, random_state=0).fit(["a b", "c d"] * 5, [0, 1] * 5)
        with pytest.raises(TypeError, match="does not explain its scores; OAAClassifier, LdSM"):
            texts.explain("a")
    model = LdSMClassifier(n_estimators=2, scorers="none", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="cannot explain its scores"):
        model.explain(X[0])
    hashed = OAAClassifier(n_bits=6, random_state=0).fit(X, Y)
    for each in (model, hashed, OAAClassifier()):
        assert not hasattr(each, "coef_")
        assert not hasattr(each, "intercept_")
    with pytest.raises(AttributeError, match=r"OAAClassifier has no coef_: .* hashes columns"):
        hashed.coef_  # noqa: B018


def test_features_are_selected_by_weights():
    model = OAAClassifier(random_state=0).fit(X, Y)
    # Older versions of scikit-learn do not take sparse weights.
    is_new = parse_version(sklearn.__version__) >= parse_version("1.9")
    getter = "auto" if is_new else lambda model: model.coef_.toarray()
    selector = SelectFromModel(model, max_features=3, prefit=True, importance_getter=getter)
    assert selector.get_support().tolist() == [True] * 3 + [False] * 2


def test_words_share_the_contributions_of_their_pairs():
    model = TextClassifier(random_state=0).fit(
        ["red car", "blue car", "red bus"] * 9, [0, 1, 2] * 9
    )
    found = model.explain("A red, red car!", k=1)[0]
    row = model._features.transform(["a red red car"])
    names = model._features._counter.vocabularies()[0]
    by_feature = dict(zip(names, model.learner_.contributions(row, 0).toarray()[0], strict=False))
    assert set(by_feature) > {"red", "car", "red car"}
    assert dict(found.contributions) == {
        "car": pytest.approx(by_feature["car"] + by_feature["red car"] / 2),
        "red": pytest.approx(by_feature["red"] + by_feature["red car"] / 2),
    }
    assert found.base == pytest.approx(model.learner_.intercept_[0])


def test_the_base_includes_words_that_a_text_lacks():
    texts, labels = ["good film", "bad film", "good song", "bad song"] * 8, [1, 0, 1, 0] * 8
    model = TextClassifier(GambleClassifier(n_estimators=5), random_state=0).fit(texts, labels)
    found = model.explain("good film", k=1)[0]
    assert found.score == pytest.approx(found.base + sum(x for _, x in found.contributions))


@pytest.fixture
def tables(tmp_path):
    """Return a model of a table and the table."""
    path = tmp_path / "data.csv"
    frame = pd.DataFrame(X, columns=["v", "w", "x", "y", "z"]).assign(label=Y, n=range(240))
    frame.to_csv(path, index=False)
    options = ["--learner", "gamble", "--set", "n_estimators=5", "--id-column", "n"]
    assert run("fit", path, *options, "-o", tmp_path / "model") == 0
    return tmp_path / "model", path, frame


def test_the_command_explains_tables(tables, tmp_path, capsys):
    model, path, frame = tables
    found = xmtree.load(model)
    out = tmp_path / "out.csv"
    assert run("explain", model, path, "--top", 2, "--label", "b", "-o", out) == 0
    with open(out, newline="") as file:
        header, *rows = csv.reader(file)
    pairs = ["feature_1", "contribution_1", "feature_2", "contribution_2"]
    assert header == ["id", "label", "score", "base", *pairs]
    expected = found.contributions(frame[list("vwxyz")].astype(np.float32), "b")
    assert len(rows) == 240
    for at in (0, 239):
        order = np.argsort(-abs(expected[at, :-1]))[:2]
        assert rows[at][:2] == [str(at), "b"]
        assert float(rows[at][2]) == pytest.approx(expected[at].sum(), rel=1e-5)
        assert rows[at][4::2] == ["vwxyz"[feature] for feature in order]
        assert [float(x) for x in rows[at][5::2]] == pytest.approx(expected[at][order], rel=1e-4)
    assert run("explain", model, path, "--json") == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert list(first) == ["id", "label", "score", "base", "features", "contributions"]
    assert first["base"] + sum(first["contributions"]) == pytest.approx(first["score"], rel=1e-4)


def test_the_command_explains_texts(tmp_path, capsys):
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(files.PLAIN) + "\n", encoding="utf-8")
    model = TextClassifier(random_state=0).fit(files.PLAIN, files.LABELS)
    model.save(tmp_path / "model")
    assert run("explain", tmp_path / "model", data, "--format", "text", "--top", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(files.PLAIN)
    best = model.explain(files.PLAIN[0], 1)[0]
    (word, value), *_ = best.contributions
    assert lines[0] == f"{best.label}:{best.score:.6g} {word}:{value:.6g}"


def test_the_command_refuses_what_it_cannot_explain(tables, tmp_path, capsys):
    model, path, _ = tables
    assert run("explain", model, path, "--label", "q") == 2
    assert "has no label 'q'" in capsys.readouterr().err
    assert run("fit", path, "--learner", "lomtree", "-o", tmp_path / "lom") == 0
    assert run("explain", tmp_path / "lom", path) == 1
    assert "LOMTreeClassifier does not explain its scores" in capsys.readouterr().err
