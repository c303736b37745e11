"""Label sets as data frames, whose column names are labels in any order."""

import estimators
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.base import clone
from xmtree import metrics

X, SETS = estimators.label_sets(n=150)
DENSE = SETS.toarray()
# Labels that are not in alphabetical order.
NAMES = ["fig", "ash", "elm", "bay", "gum", "oak", "yew", "box"]
ORDER = [3, 0, 7, 1, 6, 2, 5, 4]
FRAMES = {
    "pandas": lambda Y, names: pd.DataFrame(Y, columns=names),
    "bool": lambda Y, names: pd.DataFrame(Y.astype(bool), columns=names),
    "polars": lambda Y, names: pl.DataFrame(Y, schema=list(names)),
    "sparse": lambda Y, names: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(Y), columns=names),
}
frame = FRAMES["pandas"]
REORDERED = frame(DENSE[:, ORDER], [NAMES[at] for at in ORDER])


def small(name):
    more = {"n_passes": 1} if name == "oaa" else {"n_estimators": 5, "scorers": "none"}
    return estimators.ALL[name](**more)


@pytest.mark.parametrize("name", ["oaa", "ldsm"])
@pytest.mark.parametrize("kind", FRAMES)
def test_column_names_are_labels_in_their_order(name, kind):
    model = small(name).fit(X, FRAMES[kind](DENSE, NAMES))
    reference = small(name).fit(X, SETS)
    assert model.classes_.tolist() == NAMES
    labels, scores = model.predict_topk(X, 3)
    codes, expected = reference.predict_topk(X, 3)
    np.testing.assert_array_equal(labels, np.array([*NAMES, None], object)[codes])
    np.testing.assert_array_equal(scores, expected)
    predicted = model.predict(X)
    assert sp.issparse(predicted) == (kind == "sparse")
    if kind == "sparse":
        predicted = predicted.toarray()
    np.testing.assert_array_equal(predicted, reference.predict(X).toarray())
    for y in (SETS, DENSE, FRAMES[kind](DENSE, NAMES), REORDERED):
        assert model.score(X, y) == reference.score(X, SETS)


@pytest.mark.parametrize("names", [[7, 5, 6, 0, 1, 2, 3, 4], range(8)])
def test_column_names_may_be_numbers(names):
    model = small("oaa").fit(X, frame(DENSE, names))
    assert model.classes_.tolist() == list(names)
    assert model.score(X, frame(DENSE[:, ORDER], np.array(names)[ORDER])) == model.score(X, SETS)


def test_later_frames_may_have_another_order(tmp_path):
    learn = lambda first, then: small("oaa").partial_fit(X[:70], first).partial_fit(X[70:], then)  # noqa: E731
    by_name = learn(frame(DENSE, NAMES)[:70], REORDERED[70:])
    estimators.same_predictions(by_name, learn(frame(DENSE, NAMES)[:70], DENSE[70:]), X)
    assert by_name.classes_.tolist() == NAMES
    by_name.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert again.classes_.tolist() == NAMES
    assert again.score(X, REORDERED) == by_name.score(X, DENSE)
    again.partial_fit(X, [[NAMES[1], NAMES[0]]] * 150, classes=sorted(NAMES))
    trees = small("ldsm").set_params(warm_start=True).fit(X, frame(DENSE, NAMES))
    trees.set_params(n_estimators=7).fit(X, REORDERED)
    straight = small("ldsm").set_params(warm_start=True).fit(X, SETS)
    straight.set_params(n_estimators=7).fit(X, SETS)
    np.testing.assert_array_equal(trees.predict_topk(X)[1], straight.predict_topk(X)[1])


def test_inconsistent_frames_are_refused():
    model = small("oaa").fit(X, frame(DENSE, NAMES))
    with pytest.raises(ValueError, match="y has no column for the class 'ash'"):
        model.score(X, frame(DENSE, ["ivy" if name == "ash" else name for name in NAMES]))
    with pytest.raises(ValueError, match="y has 7 columns, but there are 8 classes"):
        model.partial_fit(X, REORDERED.iloc[:, :7])
    with pytest.raises(ValueError, match="two columns 'ash'"):
        clone(model).fit(X, frame(DENSE, ["ash", "ash", *NAMES[2:]]))
    with pytest.raises(ValueError, match="columns of several levels"):
        clone(model).fit(X, frame(DENSE, pd.MultiIndex.from_product([list("ab"), list("cdef")])))
    with pytest.raises(ValueError, match="classes must equal the column names of y"):
        clone(model).fit(X, frame(DENSE, NAMES), classes=sorted(NAMES))
    assert clone(model).fit(X, frame(DENSE, NAMES), classes=NAMES).classes_.tolist() == NAMES
    with pytest.raises(ValueError, match=r"classes must be sorted .* or a data frame"):
        clone(model).fit(X, DENSE, classes=NAMES)


def test_measures_match_columns_by_name():
    model = small("oaa").fit(X, frame(DENSE, NAMES))
    ranking, _ = model.predict_topk(X)
    scores = model.decision_function(X)
    expected = metrics.precision_at_k(SETS, scores, 3)
    assert 0.2 < expected < 0.9
    scored = frame(scores[:, ORDER], [NAMES[at] for at in ORDER])
    for y in (frame(DENSE, NAMES), REORDERED):
        assert metrics.precision_at_k(y, ranking, 3) == expected
        assert metrics.precision_at_k(y, ranking, 3, classes=NAMES) == expected
        assert metrics.precision_at_k(y, scores, 3, classes=model.classes_) == expected
        assert metrics.precision_at_k(y, scored, 3) == expected
        assert metrics.make_scorers(3)["P@3"](model, X, y) == expected
        counts = metrics.propensities(y, classes=NAMES)
        np.testing.assert_array_equal(counts, metrics.propensities(SETS))
    lists = [np.array(NAMES)[row == 1].tolist() for row in DENSE]
    assert metrics.precision_at_k(lists, scored, 3) == expected
    # Column numbers do not count as names.
    codes, _ = small("oaa").fit(X, SETS).predict_topk(X)
    assert metrics.precision_at_k(frame(DENSE, NAMES), codes, 3) == expected
