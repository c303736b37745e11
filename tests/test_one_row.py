"""Fast paths for single rows give the results and errors of full validation."""

import pickle
import warnings

import estimators
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from xmtree import _one_row
from xmtree._online import OnlineLearner

X, Y = estimators.dense()
FORMS = {
    "float64": lambda row: row,
    "float32": lambda row: row.astype(np.float32),
    "csr_matrix": sp.csr_matrix,
    "csr_array": lambda row: sp.csr_array(row.astype(np.float32)),
}


def fitted(name):
    """Return a small model."""
    return estimators.ALL[name]().fit(X, Y)


def streaming(name, labels=Y):
    """Return a model that learns row by row, after two calls with full validation."""
    model = estimators.ALL[name]().fit(X, labels)
    return model.partial_fit(X[:1], labels[:1])


def fully(monkeypatch):
    """Disable the fast paths from here on."""
    monkeypatch.setattr(_one_row, "is_valid", lambda *arguments: False)


def outcome(call):
    """Return the values, or the type and message of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of feature names
        try:
            found = call()
        except Exception as error:
            return type(error), str(error)
    if isinstance(found, OnlineLearner):
        return found._model.to_bytes()
    return [np.asarray(part).tolist() for part in found]


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", estimators.PYTHON)
def test_predictions_of_one_row_equal_those_of_full_validation(name, form, monkeypatch):
    model = fitted(name)
    rows = [form(X[at : at + 1]) for at in range(20)]
    whole = form(X[:20])
    together, (labels, scores) = model.predict(whole), model.predict_topk(whole, 3)
    fast = [
        outcome(lambda row=row: (model.predict(row), *model.predict_topk(row, 3))) for row in rows
    ]
    fully(monkeypatch)
    full = [
        outcome(lambda row=row: (model.predict(row), *model.predict_topk(row, 3))) for row in rows
    ]
    assert fast == full
    np.testing.assert_array_equal([one[0][0] for one in fast], together)
    np.testing.assert_array_equal([one[1][0] for one in fast], labels)
    np.testing.assert_allclose([one[2][0] for one in fast], scores, rtol=1e-5)


LABELS = {
    "int64": Y,
    "int32": Y.astype(np.int32),
    "uint8": Y.astype(np.uint8),
    "text": np.array(["c", "bb", "f", "a", "e", "d"])[Y],
    "objects": np.array(["c", "bb", "f", "a", "e", "d"], object)[Y],
    "bool": Y > 2,
    "float": Y.astype(float),
    "dates": np.datetime64("2026-11-22") + Y,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", [name for name in estimators.PYTHON if name in estimators.ONLINE])
def test_learning_one_row_equals_full_validation(name, form, monkeypatch):
    learned_both_ways(name, form, Y, monkeypatch)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", ["oaa", "recall-tree"])
def test_learning_labels_of_any_type_equals_full_validation(name, labels, monkeypatch):
    learned_both_ways(name, FORMS["float64"], labels, monkeypatch)


def learned_both_ways(name, form, labels, monkeypatch):
    fast, full = streaming(name, labels), streaming(name, labels)
    for at in range(10, 40):
        fast.partial_fit(form(X[at : at + 1]), labels[at : at + 1])
    monkeypatch.setattr(_one_row, "learnable_codes", lambda *arguments: None)
    fully(monkeypatch)
    for at in range(10, 40):
        full.partial_fit(form(X[at : at + 1]), labels[at : at + 1])
    assert fast._model.to_bytes() == full._model.to_bytes()
    assert fast.n_examples_seen_ == full.n_examples_seen_


@pytest.mark.parametrize("name", estimators.ONLINE)
@pytest.mark.parametrize("labels", ["int64", "int32", "uint8", "text", "objects", "bool"])
def test_parameters_are_checked_once(name, labels, monkeypatch):
    labels = LABELS[labels]
    model = streaming(name, labels)
    monkeypatch.setattr("xmtree._online.validate_params", None)
    for form in FORMS.values():
        model.partial_fit(form(X[5:6]), labels[5:6])
        model.partial_fit(form(X[5:9]), labels[5:9])
    if labels.dtype.kind in "iU" and labels.dtype.itemsize >= 8:
        model.partial_fit(X[5:6], [labels[5]])
        model.partial_fit(X[5:6], labels[5:6].tolist())


def with_value(value, dtype=np.float64):
    row = X[:1].astype(dtype)
    row[0, 2] = value
    return row


def csr(data, indices, indptr=(0, 2), width=6, dtype=np.float64):
    """Return a matrix of the given arrays without checks."""
    row = sp.csr_matrix((1, width), dtype=dtype)
    row.data, row.indices = np.array(data, dtype), np.array(indices, np.int32)
    row.indptr = np.array(indptr, np.int32)
    return row


class Rows(np.ndarray):
    """An array of another class."""


ROWS = {
    "nan": with_value(np.nan),
    "infinite": with_value(np.inf, np.float32),
    "beyond float32": with_value(1e300),
    "too wide": np.ones((1, 7)),
    "too narrow": np.ones((1, 5), np.float32),
    "one dimension": X[0],
    "three dimensions": X[None, :1],
    "no dimension": np.float64(1.0),
    "no row": X[:0],
    "float16": X[:1].astype(np.float16),
    "integers": X[:1].astype(int),
    "bools": X[:1] > 0,
    "objects": X[:1].astype(object),
    "text": np.full((1, 6), "a"),
    "complex": X[:1] * 1j,
    "other byte order": X[:1].astype(">f8"),
    "fortran": np.asfortranarray(X[:2]),
    "strided": np.repeat(X[:1], 2, axis=1)[:, ::2],
    "read only": np.broadcast_to(X[:1], (1, 6)),
    "subclass": X[:1].view(Rows),
    "masked": np.ma.masked_array(X[:1], X[:1] > 3),
    "list": X[:1].tolist(),
    "none": None,
    "frame": pd.DataFrame(X[:1]),
    "named frame": pd.DataFrame(X[:1], columns=list("abcdef")),
    "csc": sp.csc_matrix(X[:1]),
    "coo": sp.coo_array(X[:1]),
    "integers in csr": sp.csr_matrix(X[:1].astype(int)),
    "empty csr": sp.csr_matrix((1, 6)),
    "narrow csr": sp.csr_matrix((1, 5)),
    "unsorted csr": csr([1, 2], [3, 1]),
    "repeated csr": csr([1, 2], [3, 3]),
    "outside csr": csr([1, 2], [3, 6]),
    "negative csr": csr([1, 2], [-1, 3]),
    "nan in csr": csr([1, np.nan], [1, 3]),
    "falling csr": csr([1, 2], [1, 3], (0, 3)),
    "short csr": csr([1], [1, 3]),
    "sparse of one dimension": sp.coo_array(X[0]),
}


# One estimator of each kind of fast path learns names of columns.
NAMED = ["oaa", "random-tree-probable", "recall-tree", "gamble", "ldsm"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "named"),
    [*((name, False) for name in estimators.PYTHON), *((name, True) for name in NAMED)],
)
def test_hostile_rows_have_the_outcome_of_full_validation(name, named, monkeypatch):
    def new():
        given = pd.DataFrame(X, columns=list("abcdef")) if named else X
        model = estimators.ALL[name]().fit(given, Y)
        return model.partial_fit(given[:1], Y[:1]) if name in estimators.ONLINE else model

    def outcomes(model):
        found = {}
        for kind, row in ROWS.items():
            found[kind, "predict"] = outcome(lambda row=row: [model.predict(row)])
            found[kind, "topk"] = outcome(lambda row=row: model.predict_topk(row, 2))
            if hasattr(model, "partial_fit"):
                found[kind, "learn"] = outcome(lambda row=row: model.partial_fit(row, Y[:1]))
        return found

    fast = outcomes(new())
    monkeypatch.setattr(_one_row, "learnable_codes", lambda *arguments: None)
    fully(monkeypatch)
    assert fast == outcomes(new())


LABELS_OF_A_ROW = {
    "unknown": np.array([17]),
    "before all": np.array([-1]),
    "beyond": np.array([2**63], np.uint64),
    "fraction": np.array([0.5]),
    "nan": np.array([np.nan]),
    "float": np.array([2.0]),
    "text": np.array(["2"]),
    "bool": np.array([True]),
    "object": np.array([2], object),
    "none in it": np.array([None], object),
    "column": np.array([[2]]),
    "indicator": np.array([[0, 1, 0, 0, 0, 0]]),
    "no dimension": np.array(2),
    "number": 2,
    "none": None,
    "two": np.array([1, 2]),
    "nothing": np.array([], int),
    "empty list": [],
    "list": [2],
    "list of a bool": [True],
    "list of text": ["2"],
    "list of a float": [2.0],
    "list of a list": [[2]],
    "huge": [2**70],
    "tuple": (2,),
    "series": pd.Series([2]),
    "other byte order": np.array([2], ">i8"),
    "masked": np.ma.masked_array([2], [True]),
    "dates": np.array(["2026-11-22"], "M8[D]"),
}


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree"])
@pytest.mark.parametrize("labels", ["int64", "uint8", "text", "objects", "float"])
def test_hostile_labels_have_the_outcome_of_full_validation(name, labels, monkeypatch):
    fast, full = (streaming(name, LABELS[labels]) for _ in range(2))

    def outcomes(model):
        return {
            kind: outcome(lambda y=y: model.partial_fit(X[:1], y))
            for kind, y in LABELS_OF_A_ROW.items()
        }

    found = outcomes(fast)
    monkeypatch.setattr(_one_row, "learnable_codes", lambda *arguments: None)
    assert found == outcomes(full)


X_SETS, Y_SETS = estimators.label_sets()
SETS = {
    "csr_array": Y_SETS[5:6],
    "csr_matrix of floats": sp.csr_matrix(Y_SETS[5:6].astype(float)),
    "bool": Y_SETS[5:6].astype(bool),
    "no label": sp.csr_array((1, 8), dtype=int),
    "two": Y_SETS[5:6] * 2,
    "stored zero": csr([1, 0], [1, 3], width=8, dtype=int),
    "unsorted": csr([1, 1], [3, 1], width=8, dtype=int),
    "repeated": csr([1, 1], [3, 3], width=8, dtype=int),
    "outside": csr([1, 1], [3, 8], width=8, dtype=int),
    "too wide": sp.csr_array((1, 9), dtype=int),
    "two rows": Y_SETS[5:7],
    "coo": sp.coo_array(Y_SETS[5:6]),
    "dense": Y_SETS[5:6].toarray(),
    "labels": np.array([2]),
    "lists": [[1, 2]],
    "sparse again": Y_SETS[6:7],
}


@pytest.mark.parametrize("form", ["sparse", "indicator", "lists"])
@pytest.mark.parametrize("name", ["oaa", "oaa-logistic-nag"])
def test_label_sets_have_the_outcome_of_full_validation(name, form, monkeypatch):
    def new():
        Y = {
            "sparse": Y_SETS,
            "indicator": Y_SETS.toarray(),
            "lists": [row.indices.tolist() for row in Y_SETS],
        }[form]
        model = estimators.ALL[name]().fit(X_SETS, Y)
        return model.partial_fit(X_SETS[:1], Y[:1])

    def outcomes(model):
        row = X_SETS[5:6]
        return {
            kind: (outcome(lambda y=y: model.partial_fit(row, y)), model._y_form)
            for kind, y in SETS.items()
        }

    fast = new()
    if form == "sparse":
        with monkeypatch.context() as patch:
            patch.setattr("xmtree._online.validate_params", None)
            fast.partial_fit(X_SETS[:2], Y_SETS[:2])
        fast = new()
    found = outcomes(fast)
    monkeypatch.setattr(_one_row, "learnable_codes", lambda *arguments: None)
    assert found == outcomes(new())


@pytest.mark.parametrize("name", estimators.ONLINE)
def test_changed_parameters_are_detected(name):
    model = streaming(name)
    model.partial_fit(X[:1], Y[:1])
    before = model._model.to_bytes()
    for changed in (
        {"n_jobs": 1.5},
        {"scaling": "standard"},
        {"calibrate": "yes"},
        {"n_passes": 0},
    ):
        known = {key: getattr(model, key) for key in changed}
        model.set_params(**changed)
        with pytest.raises((ValueError, TypeError), match=next(iter(changed))):
            model.partial_fit(X[:1], Y[:1])
        model.set_params(**known)
    assert model._model.to_bytes() == before
    model.class_weight = "balanced"
    with pytest.raises(ValueError, match="balanced"):
        model.partial_fit(X[:1], Y[:1])


def test_class_weight_is_used():
    def learned(sample_weight):
        model = estimators.ALL["oaa"](class_weight={label: 1.0 + label for label in range(6)})
        model.partial_fit(X, Y, classes=range(6))
        for at in range(12):
            row, label = X[at : at + 1], Y[at : at + 1]
            model.partial_fit(row, label, sample_weight=sample_weight)
        return model._model.to_bytes()

    # With sample_weight, everything is validated.
    assert learned(None) == learned([1.0])


def test_fit_resets_the_checked_parameters():
    model = streaming("oaa")
    model.set_params(learning_rate=0.25).fit(X, Y)
    model.set_params(learning_rate=None)
    with pytest.raises(ValueError, match="learning_rate"):
        model.partial_fit(X[:1], Y[:1])


def test_pickles_can_be_trained_further():
    model = streaming("lomtree")
    copy = pickle.loads(pickle.dumps(model))
    assert "_compared" not in vars(copy)
    for one in (model, copy):
        for at in range(3):
            one.partial_fit(X[at : at + 1], Y[at : at + 1])
    assert model._model.to_bytes() == copy._model.to_bytes()


@pytest.mark.parametrize("value", [1.0, 0, 2.5, "4"])
def test_beam_sizes_of_other_types_are_checked(value):
    model = estimators.ALL["recall-tree"](beam_size=1).fit(X, Y)
    with pytest.raises((ValueError, TypeError), match="beam_size"):
        model.set_params(beam_size=value).predict(X[:1])


@pytest.mark.parametrize("name", ["lomtree-3", "recall-tree", "ldsm", "gamble"])
def test_one_row_starts_no_threads(name, monkeypatch):
    model = fitted(name)
    before = model.predict(X[:1]), model.predict(X[:2])
    many = model.set_params(n_jobs=2).predict(X[:2])
    np.testing.assert_array_equal(many, before[1])
    monkeypatch.setattr(_one_row, "effective_n_jobs", None)
    np.testing.assert_array_equal(model.predict(X[:1]), before[0])
    monkeypatch.undo()
    for wrong, error in ((0, ValueError), ("two", TypeError)):
        with pytest.raises(error):
            model.set_params(n_jobs=wrong).predict(X[:1])


@pytest.mark.parametrize("name", estimators.ONLINE)
def test_predictions_between_updates_equal_those_of_many_rows(name):
    """Compare predictions of the updated model with those of its frozen form."""
    model, many = streaming(name), np.tile(X, (40, 1))
    for at in range(0, 60, 3):
        model.partial_fit(X[at : at + 3], Y[at : at + 3])
        row = X[at + 1 : at + 2]
        first = model.predict(row), *model.predict_topk(row, 3)
        model.predict(many)
        np.testing.assert_array_equal(first[0], model.predict(row))
        for part, later in zip(first[1:], model.predict_topk(row, 3), strict=True):
            np.testing.assert_array_equal(part, later)
