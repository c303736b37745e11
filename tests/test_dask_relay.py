"""Online learners and texts in partitions, without a cluster."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")

from serial_tasks import Serial, fitted, in_parts
from xmtree import OAAClassifier, TextClassifier
from xmtree.dask import (
    DaskLOMTreeClassifier,
    DaskOAAClassifier,
    DaskRecallTreeClassifier,
    DaskTextClassifier,
)
from xmtree.dask._relay import Traveler, step, travelers
from xmtree.datasets import make_xmc

N_CLASSES, N_ROWS = 150, 3000
X, Y = make_xmc(N_ROWS + 1500, 800, N_CLASSES, noise=0.2, exponent=0.3, random_state=0)
X, Y, X_TEST, Y_TEST = X[:N_ROWS], Y[:N_ROWS], X[N_ROWS:], Y[N_ROWS:]
NAMES = np.array([f"label {number:03}" for number in range(N_CLASSES)])
SETS = sp.csr_matrix(
    np.eye(N_CLASSES, dtype=np.uint8)[Y] | np.eye(N_CLASSES, dtype=np.uint8)[Y // 2]
)
LEARNERS = [
    (DaskOAAClassifier, {}),
    (DaskLOMTreeClassifier, {"n_estimators": 2}),
    (DaskRecallTreeClassifier, {}),
]


def bytes_of(model):
    return model._model.to_bytes(), model._calibration.to_json(), model.classes_.tolist()


@pytest.mark.parametrize(("estimator", "params"), LEARNERS, ids=["oaa", "lomtree", "recall tree"])
def test_eight_partitions_are_as_accurate_as_one_machine(estimator, params):
    local = estimator._local_class(random_state=0, **params).fit(X, Y)
    model = fitted(estimator, in_parts(8, X, Y), random_state=0, **params)
    assert type(model) is type(local)
    assert model.score(X_TEST, Y_TEST) > local.score(X_TEST, Y_TEST) - 0.01
    best = model.predict_topk(X_TEST, 1, scores="probability")[1][:, 0].mean()
    assert abs(best - model.score(X_TEST, Y_TEST)) < 0.06
    assert model.n_examples_seen_ >= 0.95 * local.n_examples_seen_
    # The model can be stored, and can learn on.
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X_TEST), model.predict(X_TEST))
    again.partial_fit(X_TEST, Y_TEST)
    assert again.n_examples_seen_ == model.n_examples_seen_ + 1500
    # The same partitions give the same model, another seed another one.
    few = in_parts(8, X[:800], Y[:800])
    first, same, other = (
        bytes_of(fitted(estimator, few, random_state=seed, **params)) for seed in (0, 0, 1)
    )
    assert first == same
    assert first != other


@pytest.mark.parametrize(
    "options",
    [
        {"prune": 0.01},
        {"loss": "softmax"},
        {"n_negatives": 20},
        {"n_bits": 9},
        {"calibrate": False},
    ],
    ids=str,
)
def test_options_of_one_against_all(options):
    local = OAAClassifier(random_state=0, **options).fit(X, Y)
    model = fitted(DaskOAAClassifier, in_parts(4, X, Y), random_state=0, **options)
    assert model.score(X_TEST, Y_TEST) > local.score(X_TEST, Y_TEST) - 0.015
    assert model.get_params() == local.get_params()
    if "prune" in options:
        n_weights = [each._model.summary()["n_weights"] for each in (model, local)]
        assert 0.8 < n_weights[0] / n_weights[1] < 1.25


def test_label_sets_in_partitions():
    local = OAAClassifier(random_state=0, threshold="micro").fit(X, SETS)
    params = {"random_state": 0, "threshold": "micro"}
    model = fitted(DaskOAAClassifier, in_parts(4, X, SETS), **params)
    hits = [np.mean(each.predict_topk(X_TEST, 1)[0][:, 0] == Y_TEST) for each in (model, local)]
    assert hits[0] > hits[1] - 0.015
    assert model._y_form == "sparse"
    assert model._calibration.thresholds is not None
    lists = in_parts(4, X[:800], [NAMES[row.indices].tolist() for row in SETS[:800]])
    model = fitted(DaskOAAClassifier, lists, **params)
    assert model._y_form == "lists"
    assert model._calibration.thresholds is not None


def test_classes_of_all_partitions_are_known():
    """No partition has all labels, some are empty, and one has labels of another type."""
    order = np.argsort(Y % 3, kind="stable")
    parts = [(X[:0], Y[:0], None), *in_parts(3, X[order], Y[order]), (X[:0], Y[:0], None)]
    parts[2] = (parts[2][0], parts[2][1].astype(np.uint64), None)
    model = fitted(DaskLOMTreeClassifier, parts, random_state=0)
    assert model.classes_.tolist() == np.unique(Y).tolist()
    more = fitted(DaskLOMTreeClassifier, parts, classes=np.arange(200), random_state=0)
    assert more.classes_.tolist() == list(range(200))
    with pytest.raises(ValueError, match=r"y contains labels that are not in classes: "):
        fitted(DaskLOMTreeClassifier, parts, classes=np.arange(100), random_state=0)
    names = fitted(DaskLOMTreeClassifier, in_parts(3, X, NAMES[Y]), random_state=0)
    assert names.classes_.tolist() == NAMES[np.unique(Y)].tolist()


def test_weights_of_all_partitions_count_together():
    """Weights of 2 in one partition equal those of 1 and 0.5 in others, in any unit."""
    weights = np.where(np.arange(N_ROWS) < 1000, 2.0, 1.0)
    models = [
        fitted(DaskOAAClassifier, in_parts(4, X, Y, unit * weights), random_state=0)
        for unit in (1.0, 8.0)
    ]
    assert np.array_equal(*(model.decision_function(X_TEST) for model in models))
    none = np.where(np.arange(N_ROWS) < 1000, 0.0, 1.0)
    model = fitted(DaskOAAClassifier, in_parts(4, X, Y, none), random_state=0, calibrate=False)
    assert model.n_examples_seen_ == 5 * (N_ROWS - 1000)
    rare = Y < 75
    y = np.where(rare, 0, 1)
    kept = ~rare | (np.arange(N_ROWS) % 9 == 0)
    plain, balanced = (
        fitted(DaskOAAClassifier, in_parts(4, X[kept], y[kept]), random_state=0, class_weight=each)
        for each in (None, "balanced")
    )
    found = [np.mean(each.predict(X_TEST)[Y_TEST < 75] == 0) for each in (plain, balanced)]
    assert found[1] > found[0] + 0.02


def test_columns_of_frames_are_matched_by_name():
    frame = pd.DataFrame(X[:, :6].toarray(), columns=list("abcdef"))
    parts = in_parts(2, frame, Y % 3)
    wanted = fitted(DaskOAAClassifier, parts, random_state=0)
    parts[1] = (parts[1][0][list("fedcba")], *parts[1][1:])
    model = fitted(DaskOAAClassifier, parts, random_state=0)
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert bytes_of(model) == bytes_of(wanted)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda X, y: (X[:, :5], y, None), "X has 5 features, but .* is expecting 800"),
        (lambda X, y: (X, y[1:], None), "X has 1500 rows, y has 1499"),
        (lambda X, y: (X, y.astype(str), None), "y mixes labels of different types"),
        (lambda X, y: (X, [[label] for label in y], None), "two forms, labels and lists"),
        (lambda X, y: (X, y, np.ones(3)), "sample_weight"),
        (
            lambda X, y: (X, y, np.full(N_ROWS // 2, -1.0)),
            "Negative values in data passed to `sample_weight`",
        ),
        (
            lambda X, y: (pd.DataFrame(X.toarray()).add_prefix("x"), y, None),
            "partitions 0 and 1 of X",
        ),
        (lambda X, y: (X * np.nan, y, None), "row 0"),
    ],
)
def test_inconsistent_partitions_are_refused(broken, message):
    first, second = in_parts(2, X, Y)
    with pytest.raises(ValueError, match=message):
        fitted(DaskOAAClassifier, [first, broken(*second[:2])], random_state=0)


def test_data_without_rows_or_labels_are_refused():
    with pytest.raises(ValueError, match="X has no rows"):
        fitted(DaskOAAClassifier, [(X[:0], Y[:0], None)] * 2)
    with pytest.raises(ValueError, match="y contains no labels"):
        fitted(DaskOAAClassifier, in_parts(2, X[:4], [[], [], [], []]))
    wide = sp.csr_matrix(SETS)
    parts = [(X[:9], wide[:9], None), (X[:9], wide[:9, :7], None)]
    with pytest.raises(ValueError, match="indicators with the same columns, partition 1"):
        fitted(DaskOAAClassifier, parts)


def test_memory_of_a_worker_is_compared_with_its_share():
    def fit(limit, n_workers):
        workers = {str(at): {"nthreads": 1, "memory_limit": limit} for at in range(n_workers)}
        fitted(DaskOAAClassifier, in_parts(4, X, Y), workers=workers, random_state=0, n_passes=1)

    with pytest.raises(MemoryError, match=r"its partitions and the weights of some classes"):
        fit(700_000, 1)
    # Weights of 64 classes take 410 kB, an eighth of the rows less than 100 kB.
    fit(700_000, 8)


def test_a_step_changes_no_argument():
    """Tasks may run again, and several may use the same model."""
    found = []

    class Keeping(Serial):
        def submit(self, name, function, *arguments, turn=None):
            made = super().submit(name, function, *arguments)
            if name in ("observe", "learn"):
                found.append((arguments, made, made.to_bytes()))
            return made

    tasks = Keeping()
    fitted(DaskOAAClassifier, in_parts(2, X, Y), tasks=tasks, random_state=0, n_passes=2)
    # 3 blocks of classes, observation, a pass of most rows and one of all in two partitions.
    assert tasks.names.count("observe") == 6
    assert tasks.names.count("learn") == 3 * 2 * 2
    for arguments, made, stored in found:
        assert made.to_bytes() == stored
        assert step(*arguments).to_bytes() == stored
        assert made.__sizeof__() > 0


def test_blocks_of_classes():
    class Plan:
        facts = [None] * 12

        class labels:
            classes = np.arange(1000)

    params = {"loss": "squared_hinge", "n_negatives": 10, "prune": 0.1}
    found = travelers("oaa", params, Plan)
    assert [each.block for each in found[:2] + found[-1:]] == [(0, 64), (64, 128), (896, 1000)]
    assert sum(each.n_classes for each in found) == 1000
    assert {each.params["n_negatives"] for each in found} == {1, 2}
    assert len(travelers("oaa", params | {"loss": "softmax"}, Plan)) == 1
    assert found[0].params["prune"] is None
    one = Traveler("oaa", 0, params, 64, (64, 128))

    class Target:
        multilabel = False
        codes = np.array([3, 64, 127, 128], np.uint32)

    assert one.codes(Target).toarray().nonzero()[1].tolist() == [0, 63]


WORDS = [f"w{number}" if number % 7 else f"É{number}" for number in range(300)]
TEXTS = [
    " ".join(np.random.default_rng(number).choice(WORDS, number % 40)) for number in range(600)
]
LENGTHS = np.array([f"label {len(text) % 5}" for text in TEXTS])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"idf": True, "min_df": 3, "char_ngrams": (2, 3)},
        {"word_ngrams": 0, "char_ngrams": (2, 4)},
        {"n_bits": 10},
        {"n_bits": 10, "idf": True},
    ],
    ids=str,
)
def test_features_of_texts_are_those_of_one_machine(options):
    local = TextClassifier(random_state=0, **options).fit(TEXTS, LENGTHS)
    parts = [*in_parts(5, TEXTS, LENGTHS), ([], LENGTHS[:0], None), (["", "!"], LENGTHS[:2], None)]
    model = fitted(DaskTextClassifier, parts[:6], random_state=0, **options)
    assert model._features.settings == local._features.settings
    wanted, found = local._features.to_arrays(), model._features.to_arrays()
    assert wanted.keys() == found.keys()
    assert all(np.array_equal(wanted[name], found[name]) for name in wanted)
    assert model.learner_.get_params() == local.learner_.get_params()
    assert model.score(TEXTS, LENGTHS) > local.score(TEXTS, LENGTHS) - 0.05
    # Texts without words have no features.
    assert fitted(DaskTextClassifier, parts, random_state=0, **options).predict(
        TEXTS[:3]
    ).shape == (3,)


def test_texts_that_cannot_be_learned_are_refused():
    with pytest.raises(ValueError, match="texts contain no words"):
        fitted(DaskTextClassifier, [(["", "?"], ["a", "b"], None)])
    with pytest.raises(ValueError, match=r"min_df must be at most 2, .* got 3"):
        fitted(DaskTextClassifier, [(["x y"], ["a"], None), (["x z"], ["b"], None)], min_df=3)
    with pytest.raises(ValueError, match="got a single string"):
        fitted(DaskTextClassifier, [("x y", ["a"], None)])


def test_texts_stay_in_their_partitions():
    """Only counts of words pass the worker that makes the vocabulary."""
    passed = {}

    class Watching(Serial):
        def submit(self, name, function, *arguments, turn=None):
            passed[name] = pickle.dumps(arguments)
            return super().submit(name, function, *arguments)

    texts = [f"{text} {text}" for text in TEXTS]
    params = {"learner": OAAClassifier(n_passes=1), "word_ngrams": 1, "random_state": 0}
    fitted(DaskTextClassifier, in_parts(4, texts, LENGTHS), tasks=Watching(), **params)
    assert len(passed["vocabulary"]) < 0.2 * sum(map(len, texts))
    assert texts[-1].encode() not in passed["vocabulary"]
