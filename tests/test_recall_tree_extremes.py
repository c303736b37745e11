"""Recall Tree on extreme data and settings, and on random streams."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from hypothesis import given, settings
from hypothesis import strategies as st
from xmtree import RecallTreeClassifier

N_CLASSES = 9
JOINT = ["softmax", "margin"]
SINGLE = ["squared", "logistic", "quantile", "hinge"]


def data(n=400, seed=0):
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(size=(N_CLASSES, 6)) * 4
    y = random.integers(0, N_CLASSES, n)
    return centres[y] + random.normal(size=(n, 6)) * 0.5, y


X, Y = data()
NEW = data(seed=1)


def tree(**more):
    return RecallTreeClassifier(**{"random_state": 0, "calibrate": False, **more})


def assert_sound(model, rows, n_classes=N_CLASSES):
    """Check predictions, the order of scores, the counts of the tree, and a copy."""
    k = n_classes + 1
    for beam_size in (1, 3):
        model.set_params(beam_size=beam_size)
        labels, scores = model.predict_topk(rows, k)
        found = ~np.isneginf(scores)
        assert not np.isnan(scores).any()
        assert found[:, 0].all()
        assert (scores[:, 1:] <= scores[:, :-1]).all()
        for row, some in zip(labels, found, strict=True):
            assert len(set(row[some])) == some.sum()
            assert set(row[some]) <= set(model.classes_)
        np.testing.assert_array_equal(labels[:, 0], model.predict(rows))
        if beam_size == 1:
            assert found.sum(axis=1).max() <= model.max_candidates_
    shape = model.tree_
    assert shape.depth.max() <= model.max_depth_
    assert np.isfinite(shape.recall_bound).all()
    assert np.isfinite(shape.label_entropy).all()
    assert (shape.recall <= 1 + 1e-9).all()
    assert 0 <= model.progressive_loss_ <= 1
    assert 0 <= 1 - model.progressive_recall_ <= model.progressive_loss_ + 1e-9
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_topk(rows, k)[1], scores)


#: Least accuracy on new rows if below 0.85, as five passes are few for small steps.
LEAST = {"squared": 0.8, "logistic": 0.7}


@pytest.mark.parametrize("loss", JOINT + SINGLE)
def test_every_loss(loss):
    paths = [{"path_features": "all"}] if loss in SINGLE else []
    for more in ({}, {"max_candidates": 3}, *paths):
        model = tree(loss=loss, scaling="row", **more).fit(X, Y)
        assert_sound(model, X[:50])
        assert model.score(*NEW) > LEAST.get(loss, 0.85)


@pytest.mark.parametrize("mode", ["PAPER", "VW"])
def test_reference_settings_find_the_label_among_few_candidates(mode):
    """Use two candidates of nine, so that the tree and the scorers have to separate classes."""
    settings = getattr(RecallTreeClassifier, mode) | {"n_passes": 5, "max_candidates": 2}
    model = tree(**settings).fit(X, Y)
    assert model.score(*NEW) > 0.97
    assert model.candidate_recall(*NEW) > 0.98
    assert model.tree_.depth.max() >= 3
    assert model.tree_.held.any()


EDGES = {
    "one candidate": {"max_candidates": 1},
    "more candidates than classes": {"max_candidates": 1000},
    "no depth": {"max_depth": 0},
    "deepest": {"max_depth": 60, "bern_hyper": 0.0},
    "bound that nothing passes": {"bern_hyper": 3e38},
    "smallest bound": {"bern_hyper": 1e-300},
    "one bit": {"n_bits": 1},
    "margin beyond": {"margin": 1e30},
    "smallest rate": {"learning_rate": 1e-45},
    "largest rate of routers": {"learning_rate": 3e38, "loss": "hinge"},
    "paper": RecallTreeClassifier.PAPER,
    "authors' program": RecallTreeClassifier.VW,
}


@pytest.mark.parametrize("edge", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_extreme_settings(edge, form):
    model = tree(**edge).fit(form(X), Y)
    assert_sound(model, form(X[:60]))
    model.partial_fit(form(X[:50]), Y[:50])
    assert_sound(model, form(X[:60]))


ROWS = {
    "rows without values": np.zeros((400, 6)),
    "columns without values": X * [1, 0, 0, 1, 1, 0],
    "equal rows": np.repeat(X[:4], 100, axis=0),
    "tiny": X * 1e-25,
    "large": X * 1e15,
    "far apart": X * np.array([1e-12, 1e-6, 1, 1e6, 1e12, 0]),
    "one column": X[:, :1],
    "denormal": np.full((400, 6), 1e-40),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_strange_rows(rows, form):
    for scaling in ("auto", "none"):
        for loss in ("softmax", "hinge"):
            model = tree(loss=loss, scaling=scaling, max_candidates=4).fit(form(rows), Y)
            assert_sound(model, form(rows[:40]))
            assert_sound(model, form(X[:40, : rows.shape[1]]))


def test_without_features_the_most_frequent_label_is_predicted():
    y = np.repeat([2, 0, 1], [50, 30, 20])
    model = tree(max_candidates=2, beam_size=1).fit(np.zeros((100, 3)), y)
    assert model.predict([[0, 0, 0]])[0] == 2


def test_ties_are_in_order_of_frequency():
    y = np.repeat([2, 0, 1], [20, 30, 50])
    settings = {"learning_rate": 1e-45, "loss": "hinge", "beam_size": 1, "max_depth": 0}
    # Steps round to 0.
    model = tree(**settings, scale_weights=False)
    model.fit(np.zeros((100, 3)), y, np.full(100, 0.25))
    labels, scores = model.predict_topk([[0, 0, 0]], 3)
    np.testing.assert_array_equal(scores, 0)
    np.testing.assert_array_equal(labels, [[1, 0, 2]])


@pytest.mark.parametrize("settings", [{}, RecallTreeClassifier.VW], ids=["default", "paper"])
def test_few_classes_and_few_rows(settings):
    one = tree(**settings).fit(X, np.full(400, "only"))
    assert_sound(one, X[:20], 1)
    assert (one.predict(X) == "only").all()
    assert (one.max_candidates_, one.max_depth_) == (1, 0)
    assert one.progressive_loss_ == pytest.approx(1 / 400)
    two = tree(**settings).fit(X, Y % 2)
    assert_sound(two, X[:20], 2)
    row = tree(**settings).fit(X[:1], Y[:1])
    assert (row.predict(X) == Y[0]).all()
    same = tree(**settings).partial_fit(X, np.full(400, 3), classes=np.arange(N_CLASSES))
    assert (same.predict(X) == 3).all()
    assert_sound(same, X[:20])


def test_labels_that_were_never_seen():
    seen = Y < 5
    model = tree(max_candidates=2)
    model.partial_fit(X[seen], Y[seen], classes=np.arange(N_CLASSES))
    assert_sound(model, X)
    labels, _ = model.set_params(beam_size=1024).predict_topk(X, N_CLASSES)
    assert labels.max() == 4
    assert model.candidate_recall(X[~seen], Y[~seen]) == 0
    model.partial_fit(X[~seen], Y[~seen])
    assert model.set_params(beam_size=1).score(X[~seen], Y[~seen]) > 0.3


def test_a_class_for_every_row():
    y = np.random.default_rng(0).permutation(400)
    model = tree(max_candidates=8, n_passes=2).fit(X, y)
    assert_sound(model, X[:20], 400)
    assert model.tree_.n_labels[0] == 400


@pytest.mark.parametrize("heavy", [1e8, 1e30])
@pytest.mark.parametrize("loss", JOINT)
def test_a_heavy_example_does_not_overshoot(loss, heavy):
    weights = np.ones(400)
    weights[17] = heavy
    # Relative to the mean, the other weights would be nearly 0.
    model = tree(loss=loss, n_passes=2, scale_weights=False).fit(X, Y, weights)
    assert_sound(model, X)
    assert model.predict(X[17:18]) == Y[17]
    assert model.score(X, Y) > 0.8
    # They stop at the margin.
    assert np.abs(model.predict_topk(X, 3)[1]).max() < 50


@pytest.mark.parametrize("loss", ["softmax", "margin", "logistic"])
@pytest.mark.parametrize("light", [1e-6, 1e-30])
def test_light_examples_have_little_effect(loss, light):
    weights = np.where(np.arange(400) % 4 == 0, light, 1)
    y = np.where(weights == light, (Y + 1) % N_CLASSES, Y)
    model = tree(loss=loss, n_passes=2, beam_size=1).fit(X, y, weights)
    assert_sound(model, X[:50])
    assert model.score(X, Y) > 0.9
    without = tree(loss=loss, n_passes=2).fit(X, Y, weights == 1)
    assert without.n_examples_seen_ == 600


def test_rows_of_weight_0_do_not_count():
    keep = np.arange(400) % 3 > 0
    whole = tree(max_candidates=3).partial_fit(X, Y, np.arange(N_CLASSES), keep.astype(float))
    part = tree(max_candidates=3).partial_fit(X[keep], Y[keep], np.arange(N_CLASSES))
    for a, b in zip(whole.predict_topk(X, 3), part.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_early_stopping_restores_the_best_pass():
    random = np.random.default_rng(0)
    y = random.integers(0, N_CLASSES, 400)  # nothing to learn
    model = tree(early_stopping=True, n_passes=50, max_candidates=3).fit(X, y)
    assert model.n_examples_seen_ < 50 * 360
    assert model.n_examples_seen_ % 360 == 0
    assert_sound(model, X[:50])
    for n in (2, 3):
        assert_sound(tree(early_stopping=True).fit(X[:n], Y[:n]), X[:5])
    with pytest.raises(ValueError, match="none is left for training"):
        tree(early_stopping=True).fit(X[:1], Y[:1])


def test_a_beam_wider_than_the_tree():
    model = tree(max_candidates=2).fit(X, Y)
    narrow = model.set_params(beam_size=4).candidate_recall(X, Y)
    wide = model.set_params(beam_size=1024)
    assert_sound(wide, X)
    # Improbable paths are dropped, however wide the beam.
    assert wide.candidate_recall(X, Y) >= narrow


def test_an_interrupted_model_can_be_trained_further(monkeypatch):
    from contextlib import contextmanager

    @contextmanager
    def progress(verbose, what):
        def report(done, total, loss, recall):
            if done > 0:
                raise KeyboardInterrupt

        yield report

    for more in ({}, {"loss": "hinge"}, {"loss": "hinge", "path_features": "all"}):
        model = tree(n_passes=1_000_000, **more)
        with monkeypatch.context() as patched:
            patched.setattr("xmtree._base.progress", progress)
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, Y)
        assert 0 < model.n_examples_seen_ < 400 * 1_000_000
        assert_sound(model, X[:50])
        model.partial_fit(X, Y)
        assert_sound(model, X[:50])


options = st.fixed_dictionaries(
    {
        "max_candidates": st.integers(1, 12),
        "max_depth": st.one_of(st.none(), st.integers(0, 6)),
        "bern_hyper": st.sampled_from([0.0, 0.1, 1.0, 30.0]),
        "loss": st.sampled_from(JOINT + SINGLE),
        "margin": st.sampled_from([0.0, 1.0, 4.0]),
        "scaling": st.sampled_from(["auto", "none", "row"]),
        "n_bits": st.sampled_from([None, 10]),
        "router_importance": st.sampled_from(["entropy", "average_entropy", "none"]),
        "recall_bound": st.sampled_from(["vw", "paper"]),
        "paper_tree": st.booleans(),
        "path_features": st.sampled_from(["none", "all", "node_only"]),
        "early_stopping": st.booleans(),
        "n_passes": st.integers(1, 3),
    }
)


@given(options, st.integers(0, 2**32 - 1), st.floats(0.02, 1.0), st.booleans())
@settings(max_examples=60, deadline=None)
def test_random_streams(options, seed, density, weighted):
    random = np.random.default_rng(seed)
    n, n_classes = int(random.integers(20, 150)), int(random.integers(1, 30))
    rows = sp.random(n, 25, density, "csr", np.float32, random_state=random)
    y = random.integers(0, n_classes, n)
    weights = 10.0 ** random.integers(-6, 4, n) if weighted else None
    if options["loss"] in JOINT:
        options["path_features"] = "none"
    if options["n_bits"] and options["scaling"] == "auto":
        options["scaling"] = "row"
    model = RecallTreeClassifier(random_state=seed, **options).fit(rows, y, weights)
    assert_sound(model, rows[:20], n_classes)
    same = RecallTreeClassifier(random_state=seed, n_jobs=2, **options).fit(rows, y, weights)
    # Dense and sparse rows of the same numbers give the same result.
    forms = [rows.toarray(), rows.astype(np.float64), rows]
    expected = model.predict_topk(rows, 3)
    for form in forms:
        labels, values = same.set_params(beam_size=3).predict_topk(form, 3)
        np.testing.assert_array_equal(labels, expected[0])
        np.testing.assert_array_equal(values, expected[1])
    parts = [model.predict_topk(rows[at : at + 7], 3)[1] for at in range(0, n, 7)]
    np.testing.assert_array_equal(np.vstack(parts), expected[1])


def test_a_saved_model_continues_unchanged(tmp_path):
    for more in ({}, {"paper_tree": True}, {"loss": "hinge", "path_features": "all"}):
        model = tree(max_candidates=3, **more).fit(X[:200], Y[:200])
        model.save(tmp_path / "model")
        again = xmtree.load(tmp_path / "model")
        for part in (X[200:300], X[300:]):
            model.partial_fit(part, Y[: len(part)])
            again.partial_fit(part, Y[: len(part)])
        assert again._model.to_bytes() == model._model.to_bytes()
