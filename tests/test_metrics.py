"""Measures by hand and against a slow version, with labels of any type, and their errors."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from hypothesis import given, settings
from hypothesis import strategies as st
from xmtree.metrics import (
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)

TWO = 1 / math.log2(3)
TRUTH = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
BEST = np.array([[0, 2, 1], [3, 2, -1], [0, 1, 2]])


def test_by_hand():
    np.testing.assert_allclose(precision_at_k(TRUTH, BEST, [1, 3]), [1 / 3, 1 / 3])
    np.testing.assert_allclose(recall_at_k(TRUTH, BEST, (3, 1)), [2 / 3, 0.5 / 3])
    ndcg = (1.5 / (1 + TWO) + TWO) / 3
    assert ndcg_at_k(TRUTH, BEST, 3) == pytest.approx(ndcg)
    assert ndcg_at_k(TRUTH, BEST, 3, empty="skip") == pytest.approx(1.5 * ndcg)
    assert type(precision_at_k(TRUTH, BEST, np.int64(1))) is float
    assert precision_at_k(TRUTH, BEST, [2]).shape == (1,)
    p = [0.25, 0.5, 1.0, 1.0]
    # For k = 1, row 0 gains 4 of 4 and row 1 gains 0 of 1; for k = 3, 6 of 6 and 1 of 1.
    for empty in ("zero", "skip"):
        np.testing.assert_allclose(psp_at_k(TRUTH, BEST, p, [1, 3], empty=empty), [4 / 5, 1])
    won, most = (4 + 2 / 2) / (1 + TWO) + TWO, (4 + 2 * TWO) / (1 + TWO) + 1
    assert psndcg_at_k(TRUTH, BEST, p, 3) == pytest.approx(won / most)


def test_propensities_by_hand():
    y = np.zeros((100, 3), int)
    y[:10, 1] = y[:, 2] = 1
    c = (math.log(100) - 1) * 2.5**0.55
    expected = [1 / (1 + c * (n + 1.5) ** -0.55) for n in (0, 10, 100)]
    np.testing.assert_allclose(propensities(y), expected)
    lists = [["b", "a"]] * 10 + [["b"]] * 90
    np.testing.assert_allclose(propensities(lists), expected[1:])
    np.testing.assert_allclose(propensities(lists, classes=["z", "a", "b"]), expected)
    np.testing.assert_allclose(propensities([2] * 100), [expected[0]] * 2 + expected[2:])
    np.testing.assert_allclose(propensities(y, a=0, b=1), 1 / (1 + (math.log(100) - 1)))
    # With too few rows C would be negative.
    assert propensities([[0], [0, 1]]).tolist() == [1, 1]


def slow(truth, best, p, k, empty):
    """Return P, recall, nDCG, PSP and PSnDCG at k from their definitions."""
    rows = [row for row in zip(truth, best, strict=True) if row[0] or empty == "zero"]
    discount = [1 / math.log2(r + 2) for r in range(k)]
    totals = np.zeros(7)
    for true, ranked in rows:
        if not true:
            continue
        hit = [(r, 1 / p[label]) for r, label in enumerate(ranked[:k]) if label in true]
        ideal = sorted((1 / p[label] for label in true), reverse=True)[:k]
        full = sum(discount[: len(ideal)])
        totals += [
            len(hit) / k,
            len(hit) / len(true),
            sum(discount[r] for r, _ in hit) / full,
            sum(w for _, w in hit),
            sum(ideal),
            sum(w * discount[r] for r, w in hit) / full,
            sum(w * d for w, d in zip(ideal, discount, strict=False)) / full,
        ]
    share = [won / most if most else 0 for won, most in (totals[3:5], totals[5:7])]
    return [*(totals[:3] / len(rows)), *share]


N_LABELS = 40


@st.composite
def problems(draw):
    n = draw(st.integers(1, 6))
    labels = st.integers(0, N_LABELS - 1)
    truth = [
        sorted(draw(st.sets(labels, max_size=draw(st.sampled_from([3, 40]))))) for _ in "x" * n
    ]
    scores = draw(
        st.lists(
            st.lists(st.integers(-1, 4), min_size=N_LABELS, max_size=N_LABELS),
            min_size=n,
            max_size=n,
        )
    )
    p = draw(st.lists(st.floats(0.01, 1), min_size=N_LABELS, max_size=N_LABELS))
    return truth, np.array(scores, float), p, draw(st.sampled_from([1, 3, 5, 10, 12, 40]))


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["zero", "skip"]))
def test_against_a_slow_version_in_every_form(problem, empty):
    truth, scores, p, k = problem
    if empty == "skip" and not any(truth):
        with pytest.raises(ValueError, match="no row with a label"):
            precision_at_k(truth, scores, k, empty=empty)
        return
    # -1 stands for "not predicted".
    ranked = [[c for c in np.argsort(-row, kind="stable") if row[c] >= 0] for row in scores]
    best = np.full((len(truth), N_LABELS), -1)
    for row, labels in zip(best, ranked, strict=True):
        row[: len(labels)] = labels
    # Lists could be taken for an indicator.
    truth = [set(labels) for labels in truth]
    dense = np.zeros((len(truth), N_LABELS))
    for row, labels in zip(dense, truth, strict=True):
        row[list(labels)] = 1
    at = np.nonzero(scores >= 0)
    stored = sp.coo_array((scores[at], at), shape=scores.shape)
    names = np.array([f"l{c:02}" for c in range(N_LABELS)], object)
    named = [[names[c] for c in row] for row in truth]
    scored = np.where(scores < 0, -np.inf, scores)
    forms = [
        (dense, best, None),
        (sp.csc_matrix(dense), best.astype(np.int32), None),
        (truth, best.astype(np.int16), None),
        (dense.astype(bool), scored, None),
        (truth, scored.astype(np.float32), None),
        (sp.coo_array(dense), stored, None),
        (sp.lil_array(dense), stored.tocsc(), None),
        (named, np.where(best < 0, None, names[best]), names),
        (dense, np.where(best < 0, None, names[best]), names),
        (named, np.asfortranarray(scored), names),
    ]
    expected = slow(truth, ranked, p, k, empty)
    for y_true, y_pred, classes in forms:
        options = {"k": k, "classes": classes, "empty": empty}
        found = [
            precision_at_k(y_true, y_pred, **options),
            recall_at_k(y_true, y_pred, **options),
            ndcg_at_k(y_true, y_pred, **options),
            psp_at_k(y_true, y_pred, p, **options),
            psndcg_at_k(y_true, y_pred, p, **options),
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([5, 9, 70]),
        np.array([-1, 1, 2]),
        np.array([3, 2**40, 2**41]),
        np.array(["ash", "beech", "fir"]),
        np.array(["ash", "beech", "fir"], np.dtypes.StringDType()),
        np.array([3, 2**63 + 1, 2**63 + 2], np.uint64),
        np.array([0.0, 1.0, 2.0]),
        np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]"),
        np.array([-1, 0, 1], "M8[ns]"),
    ],
)
def test_predictions_are_matched_by_value(labels):
    y = labels[[0, 1, 2] * 20]
    X = np.eye(3)[[0, 1, 2] * 20]
    model = xmtree.OAAClassifier(random_state=0).fit(X, y)
    for k, k_asked in ((1, 1), (3, 3), (3, 5)):
        if k_asked > 3 and labels.dtype == int and -1 in labels:
            continue
        best, _ = model.predict_topk(X, k_asked)
        assert precision_at_k(y, best, k_asked) == pytest.approx(1 / k_asked)
        assert recall_at_k(y, best, k) == 1
    p = propensities(y, classes=model.classes_)
    # With classes given, floats are scores.
    first = best[:, :1].astype(object) if labels.dtype.kind == "f" else best
    assert psp_at_k(y, first, p, 1, classes=model.classes_) == 1
    assert ndcg_at_k(y, model.decision_function(X), 2, classes=model.classes_) == 1
    assert precision_at_k(y, model.predict(X), 1) == 1


def test_propensities_of_huge_parameters():
    y = [[1], [2]] * 50
    found = propensities(y, a=1e308, b=1e308, classes=[1, 2])
    np.testing.assert_allclose(found, 1 / np.log(100))


def test_unknown_labels_are_missed():
    y = [["a"], ["new"], ["new", "newer"]]
    assert precision_at_k(y, [["a"], ["a"], ["b"]], 1) == pytest.approx(1 / 3)
    assert recall_at_k(y, np.eye(3, 2), 1, classes=["a", "b"]) == pytest.approx(1 / 3)
    assert precision_at_k([0, 99], [[0], [1]], 1) == 0.5


WRONG = [
    (lambda: precision_at_k(TRUTH, BEST, 0), "k must be an integer of at least 1, got 0"),
    (lambda: precision_at_k(TRUTH, BEST, True), "k must be an integer"),
    (lambda: precision_at_k(TRUTH, BEST, [1, 2.5]), "k must be a sequence of integers"),
    (lambda: precision_at_k(TRUTH, BEST, []), "k must be an integer or a sequence"),
    (lambda: precision_at_k(TRUTH, BEST, 5), "y_pred has 3 columns, k is 5"),
    (lambda: precision_at_k(TRUTH, BEST, 10**15), "y_pred has 3 columns"),
    (lambda: precision_at_k(TRUTH, BEST, 1, empty="nan"), 'empty must be "zero" or "skip"'),
    (lambda: precision_at_k(TRUTH, BEST[:2], 1), "y_true has 3 rows, y_pred 2"),
    (lambda: precision_at_k(TRUTH, BEST + 2, 1), "row 0, column 1 of y_pred: label 4 is outside"),
    (lambda: precision_at_k(TRUTH * 2, BEST, 1), "row 0, column 0 of y_true is 2"),
    (lambda: precision_at_k(TRUTH, BEST * 0, 2), "row 0 of y_pred: label 0 occurs twice"),
    (lambda: precision_at_k(TRUTH, np.eye(3), 1), "must have the 4 columns of y_true, got 3"),
    (
        lambda: precision_at_k(TRUTH, np.array([[0, 1, 2, 3.0], [0, 1, np.nan, 1], [0] * 4]), 1),
        "row 1, column 2 of y_pred: the score is NaN",
    ),
    (
        lambda: precision_at_k(TRUTH, [["a"]] * 3, 1),
        "y_pred contains strings and y_true is an indic",
    ),
    (lambda: precision_at_k(TRUTH, [["e"]] * 3, 1, classes=list("abcd")), "'e' is not in classes"),
    (
        lambda: precision_at_k(TRUTH, BEST, 1, classes=["a"]),
        "y_true has 4 columns, but there are 1",
    ),
    (lambda: precision_at_k(TRUTH, BEST, 1, classes=list("abca")), "classes contains 'a' twice"),
    (
        lambda: precision_at_k(["a", "b", "c"], BEST, 1),
        "y_pred contains numbers and y_true contains strings",
    ),
    (
        lambda: precision_at_k([["a", "a"]], [["a"]], 1),
        "row 0 of y_true contains the label 'a' twice",
    ),
    (
        lambda: precision_at_k([["a"]], [["b", "b"]], 2),
        "row 0 of y_pred: label 'b' occurs twice",
    ),
    (lambda: precision_at_k([["a"]], [["b", 1]], 2), "y_pred mixes labels"),
    (lambda: precision_at_k([["a"], ["b"]], [["b"], ["a", "c"]], 1), "different lengths"),
    (
        lambda: precision_at_k([1, 4], np.eye(2), 1),
        "row 1 of y_true: the label 4 is not one of the 2",
    ),
    (lambda: precision_at_k(["a", "b"], np.eye(2), 1), "pass the label of each column as classes"),
    (lambda: precision_at_k([0.0, 1.0], np.eye(2) / 2, 1), "give classes"),
    (
        lambda: precision_at_k([1.0, 2.0], [[1.0, 2.0], [2.0, 1.0]], 1, classes=[1.0, 2.0]),
        "are in classes; pass labels as y_pred.astype(object)",
    ),
    (lambda: precision_at_k([2**63 + 1], [[2**63 + 1, -1]], 1), "neither int64 nor uint64"),
    (lambda: precision_at_k([1, 2], np.ma.array([1, 2], mask=[0, 1]), 1), "y_pred contains masked"),
    (lambda: precision_at_k([b"a"], [b"a"], 1), "y_true contains bytes"),
    (lambda: precision_at_k(None, BEST, 1), "y_true is None"),
    (lambda: precision_at_k(TRUTH, BEST[0] / 1.0, 1), "y_pred must have two dimensions"),
    (lambda: precision_at_k([], np.empty((0, 3), int), 1), "y_true has no rows"),
    (lambda: precision_at_k([[]], [[1]], 1, empty="skip"), "no row with a label"),
    (lambda: psp_at_k(TRUTH, BEST, [0.5] * 3, 1), "got 3 propensities for 4 columns"),
    (lambda: psp_at_k(TRUTH, BEST, [0.5, 2, 0.5, 0.5], 1), "propensities[1] must be above 0"),
    (lambda: psp_at_k([[1], [7]], [[1], [1]], [0.5] * 3, 1), "row 1 of y_true: label 7 has no"),
    (lambda: psp_at_k(["a"], [["a"]], [0.5], 1), "need classes, with the label of each"),
    (lambda: psp_at_k(["a"], [["b"]], [0.5], 1, classes=["b"]), "row 0 of y_true: a label is not"),
    (
        lambda: psp_at_k(["a"], [["b"]], "x", 1, classes=["b"]),
        "propensities must be one number per label",
    ),
    (lambda: propensities(TRUTH, a=-1), "a must be a finite number of at least 0"),
    (lambda: propensities(TRUTH, a=1e308), "a must be small enough that no propensity is 0"),
    (lambda: propensities(TRUTH, b=0), "b must be a finite number above 0"),
    (lambda: propensities(np.empty((0, 3))), "y has no rows"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_errors(call, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    assert message in str(error.value)


def test_arguments_are_not_modified():
    unsorted = sp.csr_array((np.ones(2), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    scores = sp.csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    assert precision_at_k(unsorted, scores, 2) == 1
    assert unsorted.indices.tolist() == scores.indices.tolist() == [2, 0]
