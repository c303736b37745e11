"""A predictor is a snapshot of a model, for any number of threads."""

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import estimators
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

HAS_GLOBAL_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()
X, Y = estimators.dense()
FORMS = {
    "float64": lambda rows: rows,
    "float32": lambda rows: rows.astype(np.float32),
    "fortran": np.asfortranarray,
    "csr_matrix": sp.csr_matrix,
    "csr_array": lambda rows: sp.csr_array(rows.astype(np.float32)),
}


def answers(model, rows):
    labels, scores = model.predict_topk(rows, 3)
    likely, probabilities = model.predict_topk(rows, 3, scores="probability")
    found = [model.predict(rows), labels, scores, likely, probabilities]
    if hasattr(model, "predict_proba"):
        found.append(model.predict_proba(rows))
    return found


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "form"),
    [(name, form) for name in estimators.PYTHON for form in FORMS]
    + [(name, "float64") for name in estimators.ALL if name not in estimators.PYTHON],
)
def test_predictions_equal_those_of_the_model(name, form):
    model = estimators.ALL[name]().fit(X, Y)
    predictor, rows = model.predictor(), FORMS[form](X[:30])
    expected = answers(model, rows)
    assert_same(answers(predictor, rows), expected)
    copy = pickle.loads(pickle.dumps(predictor))
    assert_same(answers(copy, rows), expected)
    np.testing.assert_array_equal(predictor.classes_, model.classes_)


@pytest.mark.parametrize("name", ["lomtree", "gamble"])
def test_a_single_row_needs_no_second_dimension(name):
    model = estimators.ALL[name]().fit(X, Y)
    predictor = model.predictor()
    for at in range(10):
        assert_same(answers(predictor, X[at]), answers(model, X[at : at + 1]))


@pytest.mark.parametrize("name", estimators.MULTILABEL)
@pytest.mark.parametrize("y_form", ["indicator", "sparse", "lists"])
def test_label_sets_have_the_models_form(name, y_form):
    sets = np.stack([Y % 2 == 0, Y % 3 == 0, Y > 1], axis=1).astype(int)
    forms = {
        "indicator": sets,
        "sparse": sp.csr_matrix(sets),
        "lists": [list(np.flatnonzero(row)) for row in sets],
    }
    model = estimators.ALL[name]().fit(X, forms[y_form])
    found, expected = model.predictor().predict(X), model.predict(X)
    assert type(found) is type(expected)
    if y_form == "sparse":
        found, expected = found.toarray(), expected.toarray()
    assert np.array_equal(found, expected) if y_form != "lists" else found == expected


@pytest.mark.parametrize("name", estimators.ONLINE)
def test_later_training_does_not_change_a_predictor(name):
    model = estimators.ALL[name]().partial_fit(X[:40], Y[:40], classes=np.unique(Y))
    predictor, expected = model.predictor(), answers(model, X)
    model.partial_fit(X[40:], Y[40:])
    after = answers(model, X)
    assert_same(answers(predictor, X), expected)
    assert any((one != other).any() for one, other in zip(after, expected, strict=True))
    # The model continues as it would without a predictor.
    plain = estimators.ALL[name]().partial_fit(X[:40], Y[:40], classes=np.unique(Y))
    answers(plain, X)
    plain.partial_fit(X[40:], Y[40:])
    assert_same(answers(plain, X), after)


@pytest.mark.parametrize("name", ["gamble", "ldsm"])
def test_another_fit_does_not_change_a_predictor(name):
    model = estimators.ALL[name]().fit(X, Y)
    predictor, expected = model.predictor(), answers(model, X)
    model.fit(X[::-1] * 2, Y)
    assert_same(answers(predictor, X), expected)


def test_a_pickle_contains_no_state_of_training():
    wide = np.tile(X, (1, 100))
    for name, share in (("oaa", 0.7), ("lomtree", 0.9), ("recall-tree", 0.95)):
        model = estimators.ALL[name](scaling="none").fit(wide, Y)
        copy = pickle.dumps(model.predictor())
        assert len(copy) < share * len(pickle.dumps(model))
        assert_same(answers(pickle.loads(copy), wide), answers(model, wide))


def test_unsupported_rows_are_refused():
    predictor = estimators.ALL["lomtree"]().fit(X, Y).predictor()
    for wrong in (X.tolist(), X.astype(int), X[np.newaxis], sp.csc_matrix(X), sp.csr_matrix(X > 0)):
        with pytest.raises(TypeError, match="X must be a float32 or float64 array"):
            predictor.predict(wrong)
    with pytest.raises(ValueError, match=r"columns|features"):
        predictor.predict(X[:, 1:])
    with pytest.raises(ValueError, match=r"NaN|not a number|finite"):
        predictor.predict(np.full(X.shape[1], np.nan))
    with pytest.raises(ValueError, match="k must be"):
        predictor.predict_topk(X, 0)
    with pytest.raises(NotFittedError):
        estimators.ALL["lomtree"]().predictor()


@pytest.mark.parametrize("name", ["oaa", "lomtree-3", "recall-tree", "ldsm", "gamble"])
def test_many_threads_predict_at_once(name):
    model = estimators.ALL[name]().fit(X, Y)
    predictor, expected = model.predictor(), model.predict(X)

    def ask(at):
        return predictor.predict(X[at % len(X)])[0] == expected[at % len(X)]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(2000)))


@pytest.fixture
def counter():
    """Run a thread that counts whenever it has the interpreter, for up to 50 ms."""
    count, done, interval = [0], threading.Event(), sys.getswitchinterval()

    def run():
        while not done.is_set():
            count[0] += 1

    thread = threading.Thread(target=run)
    sys.setswitchinterval(0.05)
    try:
        thread.start()
        yield count
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)


@pytest.mark.skipif(not HAS_GLOBAL_LOCK, reason="this Python has no global lock")
@pytest.mark.parametrize("name", ["oaa", "lomtree-3", "recall-tree", "ldsm", "gamble"])
def test_one_row_keeps_the_interpreter_and_many_release_it(counter, name):
    predictor = estimators.ALL[name]().fit(X, Y).predictor()
    # The first call freezes the model, and releases the interpreter.
    predictor.predict(X)

    def is_given_away(rows):
        before = counter[0]
        predictor.predict(rows)
        return counter[0] > before

    # After 50 ms Python switches threads in any case.
    assert sum(is_given_away(X[:1]) for _ in range(200)) <= 20
    many = np.repeat(X, 100_000 // len(X), axis=0)
    assert any(is_given_away(many) for _ in range(3))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in estimators.CLASSES if name in estimators.ONLINE])
def test_threads_predict_during_training(name):
    """Check that no thread gets an error and that training ends."""
    model = estimators.ALL[name]().partial_fit(X, Y, classes=np.unique(Y))
    row, done, errors, asked = X[:1], threading.Event(), [], [0, 0, 0]

    def ask(number):
        while not done.is_set():
            try:
                assert model.predict(row)[0] in model.classes_
                asked[number] += 1
            except BaseException as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for at in range(100):
        model.partial_fit(X[at % 50 : at % 50 + 5], Y[at % 50 : at % 50 + 5])
        if at % 20 == 0:
            model.predictor().predict(row)
    done.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert min(asked) > 0
    alone = estimators.ALL[name]().partial_fit(X, Y, classes=np.unique(Y))
    for at in range(100):
        alone.partial_fit(X[at % 50 : at % 50 + 5], Y[at % 50 : at % 50 + 5])
    assert_same(answers(model, X), answers(alone, X))
