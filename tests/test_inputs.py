"""X of any form gives the same model; invalid input is refused and changes nothing."""

import copy

import estimators
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.exceptions import NotFittedError
from xmtree import _validation

X_SPARSE, Y_SPARSE = estimators.sparse()
X_DENSE, Y_DENSE = estimators.dense()

EQUIVALENT = {
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "csc_array": sp.csc_array,
    "coo_matrix": sp.coo_matrix,
    "coo_array": sp.coo_array,
    "float64": lambda X: X.astype(np.float64),
    "int": lambda X: X.astype(np.int64),
    "dense": lambda X: X.toarray(),
    "dense64": lambda X: X.toarray().astype(np.float64),
    "fortran": lambda X: np.asfortranarray(X.toarray()),
    "strided": lambda X: np.repeat(X.toarray(), 2, axis=1)[:, ::2],
    "list": lambda X: X.toarray().tolist(),
}


@pytest.mark.filterwarnings("ignore:.*feature names")
@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree", "gamble"])
@pytest.mark.parametrize("convert", EQUIVALENT.values(), ids=EQUIVALENT)
def test_every_form_of_x_gives_the_same_model(name, convert):
    reference = estimators.ALL[name](scaling="row").fit(X_SPARSE, Y_SPARSE)
    other = estimators.ALL[name](scaling="row").fit(convert(X_SPARSE), Y_SPARSE)
    estimators.same_predictions(reference, other, X_SPARSE)
    estimators.same_predictions(reference, reference, convert(X_SPARSE))


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree", "gamble"])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_their_names(name, frame):
    columns = [f"f{at}" for at in range(6)]
    X = frame(dict(zip(columns, X_DENSE.T, strict=True)))
    model = estimators.ALL[name]().fit(X, Y_DENSE)
    np.testing.assert_array_equal(model.feature_names_in_, columns)
    reference = estimators.ALL[name]().fit(X_DENSE, Y_DENSE)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X_DENSE))
    renamed = frame(dict(zip(columns[::-1], X_DENSE.T, strict=True)))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(renamed)


def unsorted_and_repeated():
    """Return X_SPARSE with each row reversed and its first value split into two halves."""
    X = sp.csr_matrix(X_SPARSE)
    indices, data, starts = [], [], [0]
    for row in range(X.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[part][::-1], X.data[part][::-1].copy()
        values[0] /= 2
        indices += [*columns, columns[0]]
        data += [*values, values[0]]
        starts.append(len(indices))
    return sp.csr_matrix((np.array(data, np.float32), indices, starts), shape=X.shape)


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree", "gamble"])
def test_unsorted_and_repeated_indices_are_fixed_on_a_copy(name):
    X = unsorted_and_repeated()
    before = X.indices.copy()
    model = estimators.ALL[name]().fit(X, Y_SPARSE)
    np.testing.assert_array_equal(X.indices, before)
    reference = estimators.ALL[name]().fit(X_SPARSE, Y_SPARSE)
    estimators.same_predictions(model, reference, X_SPARSE)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X_SPARSE))


def with_value(value):
    X = X_DENSE.copy()
    X[3, 2] = value
    return X


def with_index(index):
    X = X_SPARSE.copy()
    X.indices[7] = index
    return X


BAD_X = {
    "nan": (with_value(np.nan), r"row 3.*column 2.*NaN"),
    "infinite": (with_value(np.inf), r"row 3.*column 2.*inf"),
    "beyond float32": (with_value(1e300), "row 3.*column 2"),
    "index too large": (with_index(9999), "9999"),
    "negative index": (with_index(-1), "-1"),
    "one dimension": (X_DENSE[:, 0], "2D"),
    "no rows": (X_DENSE[:0], "0 sample"),
    "no columns": (X_DENSE[:, :0], "0 feature"),
    "text": (np.full((240, 6), "a"), "could not convert"),
    "complex": (X_DENSE * 1j, "[Cc]omplex"),
    "masked": (np.ma.masked_greater(X_DENSE, 1), "X contains masked values"),
    "dates": (
        pd.DataFrame(X_DENSE).assign(day=np.datetime64("2020-01-01", "s")),
        r"X contains dates or times \(datetime64\[s\]\), but must be numbers",
    ),
}


def test_columns_of_categories_are_refused_with_a_hint():
    frame = pd.DataFrame({"a": X_DENSE[:, 0], "b": pd.Categorical(["x", "y"] * 120)})
    with pytest.raises(
        ValueError, match='GambleClassifier, whose categorical_features are by default "from_dtype"'
    ):
        xmtree.OAAClassifier().fit(frame, Y_DENSE)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", estimators.PYTHON)
@pytest.mark.parametrize(("X", "message"), BAD_X.values(), ids=BAD_X)
def test_bad_x_is_refused_and_changes_nothing(name, X, message):
    if "NaN" in message and name in estimators.GAPPY:
        pytest.skip("a missing value to this learner")
    n = X.shape[0]
    y = np.arange(n) % 6
    untouched = estimators.ALL[name]()
    with pytest.raises((ValueError, TypeError), match=message):
        untouched.fit(X, y)
    assert vars(untouched) == vars(estimators.ALL[name]())

    model = estimators.ALL[name]().fit(X_DENSE, Y_DENSE)
    before = copy.deepcopy(model)
    ways = [model.fit, model.partial_fit] if name in estimators.ONLINE else [model.fit]
    for method in ways:
        with pytest.raises((ValueError, TypeError)):
            method(X, y)
        estimators.same_predictions(model, before, X_DENSE)
        assert model.n_features_in_ == 6
    with pytest.raises((ValueError, TypeError)):
        model.predict(X)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", estimators.CLASSES)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "sample_weight"),
        (np.full(240, -1.0), "sample_weight|[Nn]egative"),
        (np.full(240, np.nan), "sample_weight|NaN"),
        (np.full(240, 1e300), r"row \d: sample_weight"),
        (np.zeros(240), "weight"),
        (
            np.ma.array(np.ones(240), mask=np.arange(240) == 3),
            "sample_weight contains masked values",
        ),
        (np.ones((240, 2)), "[Ss]ample weights|sample_weight"),
    ],
)
def test_bad_weights_are_refused(name, weights, message):
    with pytest.raises(ValueError, match=message):
        estimators.ALL[name]().fit(X_DENSE, Y_DENSE, sample_weight=weights)


BAD_PARAMETERS = [
    ("oaa", "loss", "absolute"),
    ("oaa", "n_bits", 0),
    ("oaa", "learning_rate", -1.0),
    ("oaa", "n_negatives", 0),
    ("oaa", "n_passes", 0),
    ("oaa", "random_state", "a"),
    ("oaa", "n_jobs", 1.5),
    ("lomtree", "optimizer", "sgd"),
    ("filter-tree", "optimizer", "adagrad"),
    ("lomtree", "nodes_per_class", -1.0),
    ("lomtree", "swap_resistance", 0.5),
    ("lomtree", "split_threshold", 0.0),
    ("lomtree", "paper_tree", "yes"),
    ("lomtree", "n_estimators", 0),
    ("lomtree", "decay", -1.0),
    ("filter-tree", "label_order", "alphabet"),
    ("filter-tree", "decay", -1.0),
    ("random-tree", "learning_rate", 0.0),
    ("gamble", "n_estimators", 0),
    ("gamble", "max_leaves", 1),
    ("gamble", "min_samples_leaf", 0),
    ("gamble", "learning_rate", 0.0),
    ("gamble", "max_features", 0.0),
    ("gamble", "subsample", 1.5),
    ("gamble", "trim", 1.0),
    ("gamble", "clip", "yes"),
    ("gamble", "splits", "random"),
    ("gamble", "categorical_features", [6]),
    ("gamble", "categorical_features", ["f1"]),
    ("gamble", "categorical_features", [True, False]),
    ("gamble", "categorical_features", [0.5]),
    ("gamble", "patience", 0),
    ("samme", "validation_fraction", 0.0),
    # Numbers outside the range of the core's types.
    ("oaa", "learning_rate", 1e308),
    ("oaa", "n_negatives", 2**32),
    ("oaa", "n_passes", 2**32),
    ("lomtree", "learning_rate", 1e308),
    ("lomtree", "decay", 1e308),
    ("random-tree", "decay", 1e308),
    ("lomtree", "n_estimators", 10**9),
    ("lomtree", "n_passes", 2**40),
]


@pytest.mark.parametrize(("name", "parameter", "value"), BAD_PARAMETERS)
def test_bad_parameters_are_named(name, parameter, value):
    with pytest.raises((ValueError, TypeError), match=parameter):
        estimators.ALL[name](**{parameter: value}).fit(X_DENSE, Y_DENSE)


def test_incompatible_parameters_are_refused():
    with pytest.raises(ValueError, match="optimizer"):
        xmtree.OAAClassifier(loss="softmax", optimizer="nag").fit(X_DENSE, Y_DENSE)


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_untrained_estimators_are_refused(name, tmp_path):
    model = estimators.ALL[name]()
    calls = [
        lambda: model.predict(X_DENSE),
        lambda: model.predict_topk(X_DENSE),
        lambda: model.save(tmp_path / "model"),
    ]
    if name in estimators.ONLINE:
        calls.append(lambda: model.progressive_loss_)
    for call in calls:
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize("k", [0, -1, 1.5, "3"])
def test_bad_k_is_refused(k):
    model = xmtree.OAAClassifier(random_state=0).fit(X_DENSE, Y_DENSE)
    with pytest.raises(ValueError, match="k must be"):
        model.predict_topk(X_DENSE, k)


def test_results_that_would_not_fit_in_memory_are_refused(monkeypatch):
    X, Y = estimators.label_sets()
    sets = xmtree.OAAClassifier(random_state=0).fit(X, Y.toarray())
    oaa = xmtree.OAAClassifier(loss="logistic", random_state=0).fit(X_DENSE, Y_DENSE)
    tree = xmtree.LOMTreeClassifier(random_state=0).fit(X_DENSE, Y_DENSE)
    monkeypatch.setattr(_validation, "MAX_DENSE_BYTES", 1000)
    for call in (oaa.decision_function, oaa.predict_proba, tree.predict_proba):
        with pytest.raises(ValueError, match="predict_topk"):
            call(X_DENSE)
    with pytest.raises(ValueError, match="predict_topk"):
        sets.predict(X)
    assert oaa.predict_topk(X_DENSE, 2)[0].shape == (240, 2)


def test_probabilities():
    for name in estimators.ALL:
        model = estimators.ALL[name]().fit(X_DENSE, Y_DENSE)
        probabilities = model.predict_proba(X_DENSE)
        assert probabilities.dtype == np.float32
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(
            model.classes_[probabilities.argmax(axis=1)], model.predict(X_DENSE)
        )


@pytest.mark.parametrize("name", list(estimators.ALL))
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_model_does_not_depend_on_the_threads(name, n_jobs):
    one = estimators.ALL[name](n_jobs=1).fit(X_SPARSE, Y_SPARSE)
    many = estimators.ALL[name](n_jobs=n_jobs).fit(X_SPARSE, Y_SPARSE)
    estimators.same_predictions(one, many, X_SPARSE)
    assert one._model.to_bytes() == many._model.to_bytes()


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_seeds(name):
    same = [estimators.ALL[name](random_state=np.random.RandomState(3)) for _ in range(2)]
    one, other = (model.fit(X_SPARSE, Y_SPARSE) for model in same)
    assert one._model.to_bytes() == other._model.to_bytes()
    assert (
        one._model.to_bytes()
        != estimators.ALL[name](random_state=4).fit(X_SPARSE, Y_SPARSE)._model.to_bytes()
    )


@pytest.mark.parametrize("name", estimators.TREES)
def test_trees_as_read_only_arrays(name):
    model = estimators.ALL[name]().fit(X_SPARSE, Y_SPARSE)
    tree = model.tree_
    n = len(tree.parent)
    assert tree.children.shape == (n, getattr(model, "arity", 2))
    for field in ("parent", "children", "depth", "n_examples", "label_entropy"):
        with pytest.raises(ValueError, match="read-only"):
            tree[field][0] = 0
    for node in range(1, n):
        assert node in tree.children[tree.parent[node]]
        assert tree.depth[node] == tree.depth[tree.parent[node]] + 1
    if name not in estimators.RECALL_TREES:  # a child that no example has reached is omitted
        leaves = np.all(tree.children < 0, axis=1)
        assert leaves.sum() == (~leaves).sum() + 1


def test_several_trees():
    model = estimators.ALL["lomtree-3"]().fit(X_SPARSE, Y_SPARSE)
    assert len(model.trees_) == 3
    with pytest.raises(AttributeError, match="trees_"):
        _ = model.tree_


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_a_prediction_depends_neither_on_other_rows_nor_on_threads(name):
    # Rows of different density are stored and multiplied in different ways.
    random = np.random.default_rng(0)
    X = np.vstack([X_SPARSE.toarray(), random.random((300, X_SPARSE.shape[1])) ** 2])
    X[300:][random.random(X[300:].shape) < random.random((300, 1))] = 0
    y = np.concatenate([Y_SPARSE, random.integers(0, 12, 300)])
    model = estimators.ALL[name](scaling="row").fit(X, y)
    labels, scores = model.predict_topk(X, 4)
    for parts in (range(0, 600, 1), range(0, 600, 7)):
        step = parts.step
        answers = [model.predict_topk(X[at : at + step], 4) for at in parts]
        np.testing.assert_array_equal(np.vstack([a for a, _ in answers]), labels)
        np.testing.assert_array_equal(np.vstack([b for _, b in answers]), scores)
    many = X[np.arange(6000) % 600]
    threads = model.set_params(n_jobs=2).predict_topk(many, 4)
    np.testing.assert_array_equal(threads[0], labels[np.arange(6000) % 600])
    np.testing.assert_array_equal(threads[1], scores[np.arange(6000) % 600])


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_rows_of_weight_0_have_no_effect(name):
    more = np.vstack([X_DENSE, X_DENSE[:60] * 100])
    weights = np.concatenate([np.ones(240), np.zeros(60)])
    model = estimators.ALL[name](scaling="standard")
    model.fit(more, np.concatenate([Y_DENSE, Y_DENSE[:60]]), sample_weight=weights)
    same = estimators.ALL[name](scaling="standard").fit(X_DENSE, Y_DENSE)
    estimators.same_predictions(model, same, X_DENSE)


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_no_labels_are_refused(name):
    with pytest.raises(ValueError, match="y contains no labels"):
        estimators.ALL[name]().fit(X_DENSE, [])


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_columns_beyond_the_memory_are_refused(name):
    few = np.arange(4, dtype=np.int64)
    starts = np.arange(5, dtype=np.int64)
    X = sp.csr_matrix((np.ones(4, np.float32), few, starts), shape=(4, 2**32 - 2))
    with pytest.raises(ValueError, match="do not fit into memory"):
        estimators.ALL[name](scaling="standard").fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_the_core_does_not_read_columns_for_rows(name):
    model = estimators.ALL[name]().fit(X_DENSE, Y_DENSE)
    with pytest.raises(TypeError, match="C-contiguous"):
        model._model.predict_topk(np.asfortranarray(X_DENSE), 1)


@pytest.mark.parametrize("name", ["lomtree", "lomtree-swapping", "filter-tree", "random-tree"])
def test_shares_are_at_most_one(name):
    model = estimators.ALL[name]().fit(X_DENSE, np.zeros(240, int))
    assert model.predict_topk(X_DENSE, 1)[1].max() <= 1


def test_arrays_that_need_no_conversion_are_not_validated_twice(monkeypatch):
    """Check that exactly the arrays that scikit-learn would return unchanged skip validation."""
    calls = []
    slow = _validation.validate_data
    monkeypatch.setattr(
        _validation, "validate_data", lambda *a, **k: calls.append(1) or slow(*a, **k)
    )
    sparse = xmtree.OAAClassifier(random_state=0).fit(X_SPARSE, Y_SPARSE)
    dense = xmtree.OAAClassifier(random_state=0).fit(X_DENSE, Y_DENSE)
    calls.clear()
    for model, X in [
        (sparse, sp.csr_matrix(X_SPARSE)),
        (sparse, sp.csr_array(X_SPARSE, dtype=np.float64)),
        (dense, X_DENSE),
        (dense, X_DENSE.astype(np.float64)),
    ]:
        model.predict(X[:1])
    assert not calls
    for X in (X_DENSE.tolist(), np.asfortranarray(X_DENSE), X_DENSE.astype(np.float16)):
        dense.predict(X)
    assert len(calls) == 3
    for X, message in [
        (X_DENSE[:, 1:], "features"),
        (X_DENSE[0], "2D"),
        (X_DENSE[:0], "minimum of 1"),
        (sp.csr_matrix(X_DENSE[:, 1:]), "features"),
        (np.where(X_DENSE > 0, np.nan, X_DENSE), "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            dense.predict(X)
