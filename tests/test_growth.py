"""``partial_fit(classes="grow")``: labels that are new to a model."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import estimators
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xmtree
from xmtree import metrics
from xmtree._labels.forms import positions
from xmtree._one_row import class_labels
from xmtree.datasets import make_xmc

GROWING = ["oaa", "lomtree", "recall-tree"]
#: Labels in the order of their arrival, which is not alphabetical.
NAMES = np.array([f"{chr(97 + at * 11 % 26)}{at}" for at in range(26)])
STARTS = range(0, 1300, 50)


def stream(n=1300, seed=0):
    """Return rows of 26 labels, with one more label every 50 rows."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(26, 12)) * 3
    y = np.minimum(random.integers(0, 26, n), np.arange(n) // 50)
    y[::50] = np.arange(len(y[::50]))
    return centres[y] + random.normal(size=(n, 12)), y


X, Y = stream()


def grown(name, y=NAMES[Y], between=lambda model: model, **params):
    model = estimators.ALL[name](**params)
    for start in STARTS:
        part = slice(start, start + 50)
        model = between(model.partial_fit(X[part], y[part], classes="grow"))
    return model


def known(name, classes, y=NAMES[Y], **params):
    model = estimators.ALL[name](**params)
    for start in STARTS:
        part = slice(start, start + 50)
        model.partial_fit(X[part], y[part], classes=classes)
    return model


def state(model):
    return model._model.to_bytes()


@pytest.mark.parametrize("name", GROWING)
def test_new_labels_are_learned(name):
    model = estimators.ALL[name]()
    for start in STARTS:
        part = slice(start, start + 50)
        old = getattr(model, "classes_", np.empty(0, str))
        model.partial_fit(X[part], NAMES[Y[part]], classes="grow")
        new = np.setdiff1d(NAMES[Y[part]], old)
        np.testing.assert_array_equal(model.classes_, [*old, *new])
    assert list(model.classes_) != sorted(model.classes_)
    fixed = known(name, NAMES)
    right = [np.mean(found.predict(X) == NAMES[Y]) for found in (model, fixed)]
    assert min(right) > 0.9
    assert abs(right[0] - right[1]) < 0.05
    assert abs(model.progressive_loss_ - fixed.progressive_loss_) < 0.05
    assert model.score(X, NAMES[Y]) == right[0]
    best, _ = model.predict_topk(X, 3)
    assert metrics.precision_at_k(NAMES[Y], best, 1) == pytest.approx(right[0])
    probabilities = model.predict_proba(X[:50])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(
        model.classes_[probabilities.argmax(axis=1)], model.predict(X[:50])
    )


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("how", ["file", "pickle", "threads"])
def test_a_grown_model_continues_after_storing(name, how, tmp_path):
    def between(model):
        if how == "file":
            model.save(tmp_path / "model")
            return xmtree.load(tmp_path / "model")
        return pickle.loads(pickle.dumps(model)) if how == "pickle" else model

    straight = grown(name)
    other = grown(name, between=between, n_jobs=3 if how == "threads" else None)
    assert state(other) == state(straight)
    np.testing.assert_array_equal(other.classes_, straight.classes_)
    assert other._calibration == straight._calibration


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("lomtree", {"paper_tree": True}),
        ("oaa", {}),
        ("recall-tree", {"max_candidates": 6, "max_depth": 4}),
    ],
)
def test_the_model_does_not_depend_on_the_arrival_of_labels(name, params):
    """Compare bit for bit; numbers that arrive in increasing order are sorted."""
    params = {**params, "calibrate": False}
    model, fixed = grown(name, Y, **params), known(name, range(26), Y, **params)
    np.testing.assert_array_equal(model.classes_, np.arange(26))
    assert state(model) == state(fixed)


@pytest.mark.parametrize(
    ("optimizer", "loss"), [("pn", "softmax"), ("pn", "logistic"), ("nag", "logistic")]
)
def test_all_steps_of_one_against_all(optimizer, loss):
    assert grown("oaa", optimizer=optimizer, loss=loss).score(X, NAMES[Y]) > 0.9
    assert grown("oaa", n_negatives=3, loss="squared_hinge").score(X, NAMES[Y]) > 0.8


@pytest.mark.parametrize("name", GROWING)
def test_a_label_is_not_predicted_before_it_was_seen(name):
    model = grown(name)
    weights = np.ones(50)
    weights[0] = 0
    model.partial_fit(X[:50], ["new", *NAMES[Y[1:50]]], "grow", weights)
    assert model.classes_[-1] == "new"
    assert "new" not in model.predict_topk(X, 27)[0]
    for _ in range(5):
        model.partial_fit(X[:50] + 9, ["new"] * 50, classes="grow")
    assert np.mean(model.predict(X[:50] + 9) == "new") > 0.7


@pytest.mark.parametrize("name", GROWING)
def test_a_batch_that_fails_adds_no_label(name):
    model = grown(name)
    before, classes = state(model), model.classes_
    calibration = model._calibration
    broken = X[:50].copy()
    broken[49, 3] = np.nan
    for rows, labels, weights, message in [
        (broken, ["new"] * 50, None, "row 49, column 3"),
        (X[:50, :5], ["new"] * 50, None, "features"),
        (X[:50], ["new"] * 49, None, "49"),
        (X[:50], ["new"] * 50, [np.inf] * 50, "infinity"),
        (X[:50], [3] * 50, None, "y mixes types"),
        (X[:50], [["new"]] * 50, None, "label"),
        (sp.csr_array(broken), ["new"] * 50, None, "column 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, labels, "grow", weights)
        assert model.classes_ is classes
        assert model._calibration == calibration
        assert state(model) == before
    with pytest.raises(ValueError, match=r"not in classes: 'new'; .*classes=\"grow\""):
        model.partial_fit(X[:50], ["new"] * 50)
    assert state(model) == before


def test_an_interruption_leaves_labels_and_model_consistent(monkeypatch):
    model = grown("oaa")

    def stopped(*arguments, **more):
        raise KeyboardInterrupt

    learn = type(model)._train

    def train(self, *arguments):
        learn(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_train", train)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[:50], ["new"] * 50, classes="grow")
    assert len(model.classes_) == model._model.n_classes == 27
    monkeypatch.setattr(type(model), "_train", stopped)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[:50], ["newer"] * 50, classes="grow")
    assert len(model.classes_) == model._model.n_classes == 27


@pytest.mark.parametrize("name", ["filter-tree", "random-tree"])
def test_trees_over_a_fixed_set_of_labels_refuse_to_grow(name):
    with pytest.raises(
        ValueError, match=r'classes="grow" is not allowed for \w+TreeClassifier, whose tree'
    ):
        estimators.ALL[name]().partial_fit(X, Y, classes="grow")


def test_models_that_cannot_be_trained_further_refuse(tmp_path):
    model = grown("oaa")
    model.save(tmp_path / "compact", compact=True)
    with pytest.raises(ValueError, match="compact=True"):
        xmtree.load(tmp_path / "compact").partial_fit(X[:5], ["new"] * 5, classes="grow")
    pruned = xmtree.OAAClassifier(prune=0.01, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="prune must be None for partial_fit"):
        pruned.partial_fit(X[:5], [99] * 5, classes="grow")
    for wrong in ("Grow", "all"):
        with pytest.raises(ValueError, match='or "grow" in partial_fit, got'):
            model.partial_fit(X, NAMES[Y], classes=wrong)
    with pytest.raises(ValueError, match='or "grow" in partial_fit, got'):
        xmtree.OAAClassifier().fit(X, Y, classes="grow")


@pytest.mark.parametrize("name", GROWING)
def test_growing_after_fit_and_between_other_calls(name):
    early = Y < 10
    model = estimators.ALL[name]().fit(X[early], NAMES[Y[early]])
    first = model.classes_
    model.partial_fit(X[:50], NAMES[Y[:50]])
    for _ in range(3):
        model.partial_fit(X, NAMES[Y], classes="grow")
    np.testing.assert_array_equal(model.classes_[:10], first)
    np.testing.assert_array_equal(model.classes_[10:], np.sort(NAMES[10:]))
    assert model.score(X, NAMES[Y]) > 0.9
    # The order of the classes argument does not matter.
    model.partial_fit(X[:50], NAMES[Y[:50]], classes=NAMES)
    with pytest.raises(ValueError, match="must be those of fit or of the first partial_fit"):
        model.partial_fit(X[:50], NAMES[Y[:50]], classes=NAMES[:25])


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (np.array([5, 2]), np.array([3, 9]), np.array([2, 5, 3, 9])),
        (np.array([5, 2], np.int8), np.array([300, 2]), np.array([2, 5, 300])),
        (np.array([5, 2]), np.array([3.0, 9.0]), np.array([2, 5, 3, 9])),
        (np.array([1.0, 2.0]), np.array([7, 2]), np.array([1.0, 2.0, 7.0])),
        (np.array(["b", "c"]), np.array(["longer", "a"]), np.array(["b", "c", "a", "longer"])),
        (np.array(["b", "c"], object), np.array(["a", "c"]), np.array(["b", "c", "a"], object)),
        (np.array([5, 2], np.uint64), np.array([2**63 + 2, 5], np.uint64), None),
    ],
)
def test_types_of_labels(first, then, expected):
    model = xmtree.OAAClassifier(random_state=0, calibrate=False)
    model.partial_fit(X[:2], first, classes="grow").partial_fit(X[:2], then, classes="grow")
    if expected is None:
        expected = np.array([2, 5, 2**63 + 2], np.uint64)
    assert model.classes_.dtype == expected.dtype
    np.testing.assert_array_equal(model.classes_, expected)
    assert model.predict_topk(X[:2], 6)[0].shape == (2, 6)
    assert model.score(X[:2], then) >= 0


def test_the_sorting_order_is_updated():
    model = grown("lomtree")
    labels, _, order = model._labels
    assert labels is model.classes_
    np.testing.assert_array_equal(labels[order], np.sort(NAMES))
    again = pickle.loads(pickle.dumps(model))
    again.partial_fit(X[:9], NAMES[Y[:9]])
    np.testing.assert_array_equal(again._labels.order, order)
    model.fit(X, Y).partial_fit(X, Y)
    assert model._labels.order is None


def run(*works):
    """Run each of ``works`` in its own thread, and raise their errors here."""
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result()


ONE_HOT = np.eye(120, dtype=np.float32)


def learn_alone(model, labels):
    for label in labels:
        model.partial_fit(ONE_HOT[[label] * 8], np.full(8, label), classes="grow")


@pytest.mark.parametrize("name", GROWING)
def test_concurrent_reads_are_consistent(name, tmp_path):
    model = estimators.ALL[name]()
    learn_alone(model, range(3))

    def is_whole(other):
        labels = set(range(len(other.classes_)))
        assert set(other.classes_.tolist()) == labels
        assert other.predict_proba(ONE_HOT).shape == (120, len(labels))
        assert set(other.predict(ONE_HOT).tolist()) <= labels

    def read():
        for _ in range(8):
            is_whole(model.predictor())
            is_whole(copy.deepcopy(model))
            is_whole(pickle.loads(pickle.dumps(model)))
            model.save(tmp_path / "model")
            is_whole(xmtree.load(tmp_path / "model"))
            n_before = len(model.classes_)
            assert n_before <= model.predict_proba(ONE_HOT).shape[1] <= len(model.classes_)
            assert 0 <= model.score(ONE_HOT, np.arange(120)) <= 1
            labels, scores = model.predict_topk(ONE_HOT, 3, scores="probability")
            assert np.isfinite(scores[:, 0]).all()
            assert labels.max() < len(model.classes_)

    run(read, lambda: learn_alone(model, range(3, 120)))
    is_whole(model)
    assert len(model.classes_) == 120


@pytest.mark.parametrize("name", GROWING)
def test_training_threads_wait_for_each_other(name):
    for _ in range(3):
        model = estimators.ALL[name]()
        run(*(partial(learn_alone, model, range(t, 120, 3)) for t in range(3)))
        assert sorted(model.classes_.tolist()) == list(range(120))
        assert model.n_examples_seen_ == 8 * 120
        # No row was learned with the label of another.
        counts = np.bincount(model.predict(ONE_HOT), minlength=120)
        assert name != "oaa" or (counts == 1).all()


def test_fit_changes_everything_in_one_step(monkeypatch):
    model = estimators.ALL["lomtree"]().fit(X, NAMES[Y])
    before, learn = model.predict(X), type(model)._train

    def train(self, *arguments):
        learn(self, *arguments)
        np.testing.assert_array_equal(model.predict(X), before)
        assert model.n_features_in_ == X.shape[1]

    monkeypatch.setattr(type(model), "_train", train)
    model.fit(X[:, :5], Y)
    assert model.n_features_in_ == 5
    assert model.classes_.dtype.kind == "i"


def test_an_interrupted_thread_releases_the_lock(monkeypatch):
    model = grown("oaa")
    learn = type(model)._train

    def interrupted(self, *arguments):
        learn(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[:50], ["new"] * 50, classes="grow")
    run(lambda: model.partial_fit(X[:50], ["newer"] * 50, classes="grow"))
    assert model.classes_[-2:].tolist() == ["new", "newer"]


def test_an_unknown_class_number_has_no_label():
    with pytest.raises(IndexError):
        class_labels(np.full(20, 3), np.array(["a", "b", "c"]))
    assert class_labels(np.full(20, -1), np.array(["a", "b"])).tolist() == ["a"] * 20


def test_class_weight_may_contain_later_labels():
    weights = {name: 1 + at % 3 for at, name in enumerate(NAMES)}
    model = grown("oaa", class_weight=weights, calibrate=False)
    straight = grown("oaa", Y, calibrate=False)
    assert state(model) != state(straight)
    reference = xmtree.OAAClassifier(random_state=0, calibrate=False)
    for start in STARTS:
        part = slice(start, start + 50)
        reference.partial_fit(X[part], Y[part], "grow", 1.0 + Y[part] % 3)
    order = np.argsort(np.argsort(NAMES))  # labels of a batch are sorted
    assert len(order) == 26
    np.testing.assert_allclose(
        np.sort(model.decision_function(X), axis=1),
        np.sort(reference.decision_function(X), axis=1),
        rtol=1e-4,
        atol=1e-4,
    )


SETS = [sorted({NAMES[label], NAMES[label // 2]}) for label in Y]


def test_label_sets_as_lists():
    model = grown("oaa", SETS)
    fixed = known("oaa", NAMES, SETS)
    assert sorted(model.classes_) == sorted(NAMES)
    assert list(model.classes_) != sorted(NAMES)
    scores = [metrics.precision_at_k(SETS, m.predict_topk(X, 2)[0], 2) for m in (model, fixed)]
    assert min(scores) > 0.8
    assert abs(scores[0] - scores[1]) < 0.02
    assert abs(model.score(X, SETS) - fixed.score(X, SETS)) < 0.05
    model.partial_fit(X[:2], [[], ["new"]], classes="grow")
    model.partial_fit(X[:2], [[], []], classes="grow")
    assert model.classes_[-1] == "new"
    assert model._calibration.n_examples > 0


def test_indicators_add_labels_only_by_name():
    frame = pd.get_dummies(pd.Series(NAMES[Y]), dtype=int)
    model = xmtree.OAAClassifier(random_state=0)
    for start in STARTS:
        present = np.unique(NAMES[Y[start : start + 50]])
        if len(present) == 1:
            present = np.array([present[0], "never"])
        part = frame.iloc[start : start + 50].reindex(columns=present, fill_value=0)
        model.partial_fit(X[start : start + 50], part, classes="grow")
    assert sorted(model.classes_) == sorted([*NAMES, "never"])
    assert metrics.precision_at_k(NAMES[Y], model.predict_topk(X, 1)[0], 1) > 0.9
    lists = [[name] for name in NAMES[Y]]
    assert model.score(X, lists) > 0.5
    n = len(model.classes_)
    model.partial_fit(X[:2], np.eye(n, dtype=int)[:2], classes="grow")
    for y in (np.eye(n + 1, dtype=int)[:2], sp.eye_array(n + 1).tocsr()[:2], [[0, 1], [1, 0]]):
        with pytest.raises(
            ValueError, match=r"must have a column for each of the .* labels of the model"
        ):
            model.partial_fit(X[:2], y, classes="grow")
    unnamed = xmtree.OAAClassifier().partial_fit(X[:2], np.eye(2, 5, dtype=int), classes="grow")
    assert unnamed.classes_.tolist() == list(range(5))


@pytest.mark.parametrize("sets", [False, True])
def test_rows_of_new_labels_do_not_calibrate(sets):
    """Compare a batch that is half new labels with the half of known labels."""
    y = SETS if sets else NAMES[Y]
    old = np.random.default_rng(1).permutation(np.flatnonzero(Y < 8))
    start = [y[at] for at in old[:200]]
    half = old[200:]
    calls = []
    for labels in ("mixed", "known"):
        model = xmtree.OAAClassifier(random_state=0).partial_fit(
            X[old[:200]], start, classes="grow"
        )
        rows, row_labels = X[half], [y[at] for at in half]
        if labels == "mixed":
            rows = np.repeat(rows, 2, axis=0)
            new = ["new"] if sets else "new"
            row_labels = [label for one in row_labels for label in (one, new)]
        calls.append(model.partial_fit(rows, row_labels, classes="grow")._calibration)
    assert calls[0] == calls[1]
    assert calls[0].n_examples == 200


def test_texts():
    texts = [f"word{label} word{label}x the" for label in Y]
    model = xmtree.TextClassifier(n_bits=12, random_state=0)
    for start, end in pairwise([*STARTS, 1300]):
        model.partial_fit(texts[start:end], NAMES[Y[start:end]], classes="grow")
    assert model.score(texts, NAMES[Y]) > 0.95
    assert list(model.classes_) != sorted(model.classes_)


def test_unsorted_labels_are_found_everywhere():
    numbers = np.random.default_rng(4).permutation(100)[:26][Y]
    model = grown("recall-tree", numbers)
    assert np.any(np.diff(model.classes_) < 0)
    recall = model.candidate_recall(X, numbers)
    assert recall >= model.score(X, numbers) > 0.9
    assert model.candidate_recall(X, np.full(len(X), 1000)) == 0
    np.testing.assert_array_equal(model.classes_[positions(numbers, model.classes_)], numbers)
    assert positions(np.array([1000, -1]), model.classes_).tolist() == [-1, -1]
    ranking, _ = model.predict_topk(X, 1)
    probabilities = model.predict_topk(X, 1, scores="probability")[1][:, 0]
    assert metrics.calibration_error(numbers, ranking[:, 0], probabilities) < 0.2


def test_a_recall_tree_recovers_from_late_labels():
    n_labels, n_test = 300, 1000
    X, y = make_xmc(12_000 + n_test, 1024, n_labels, nnz=20, exponent=0, random_state=2)
    random = np.random.default_rng(2)
    model = xmtree.RecallTreeClassifier(random_state=0)
    for at in range(35):
        n_known = n_labels * min(at + 1, 20) // 20
        part = n_test + random.choice(np.flatnonzero(y[n_test:] < n_known), 600)
        model.partial_fit(X[part], y[part], classes="grow")
    assert model.score(X[:n_test], y[:n_test]) >= 0.98
