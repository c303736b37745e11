"""Dense rows, such as embeddings, and rows with dense and sparse columns."""

import numpy as np
import pytest
import scipy.sparse as sp
import xmtree

N_LABELS, N_COLUMNS = 150, 40


@pytest.fixture(scope="module")
def embeddings():
    """Return vectors of length 1 around a center per label, and sets of one or two labels."""
    random = np.random.default_rng(3)
    centers = random.normal(size=(N_LABELS, N_COLUMNS))
    first, second = random.integers(0, N_LABELS, (2, 3000))
    X = centers[first] + 0.5 * centers[second] + 0.4 * random.normal(size=(3000, N_COLUMNS))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(np.float32), [sorted({a, b}) for a, b in zip(first, second, strict=True)], first


@pytest.fixture(scope="module")
def model(embeddings):
    X, sets, _ = embeddings
    return xmtree.LdSMClassifier(n_estimators=3, random_state=0).fit(X[:2500], sets[:2500])


def precision(clf, X, sets, k=1):
    best, _ = clf.predict_topk(X, k)
    return np.mean([len({*labels} & {*own}) / k for labels, own in zip(best, sets, strict=True)])


def test_scorers_beat_trees(embeddings, model):
    X, sets, _ = embeddings
    trees = xmtree.LdSMClassifier(n_estimators=3, scorers="none", random_state=0)
    trees.fit(X[:2500], sets[:2500])
    ours, theirs = (precision(clf, X[2500:], sets[2500:]) for clf in (model, trees))
    assert ours > 0.9
    assert ours > theirs + 0.1
    assert model._model.summary()["n_scorer_weights"] == 0, "all weights are dense"


@pytest.mark.parametrize("kind", ["float64", "float16", "csr", "memmap", "fortran", "alone"])
def test_every_form_of_rows_gives_the_same_answers(embeddings, model, kind, tmp_path):
    X = embeddings[0][2500:2580].astype(np.float16).astype(np.float32)
    wanted = model.predict_topk(X, 5)
    if kind == "alone":
        rows = [model.predict_topk(row[None], 5) for row in X]
        found = [np.concatenate(part) for part in zip(*rows, strict=True)]
    elif kind == "memmap":
        np.save(tmp_path / "rows.npy", X)
        found = model.predict_topk(np.load(tmp_path / "rows.npy", mmap_mode="r"), 5)
    else:
        forms = {"csr": sp.csr_matrix, "fortran": np.asfortranarray}
        found = model.predict_topk(forms.get(kind, lambda X: X.astype(kind))(X), 5)
    for part, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_threads_do_not_change_the_model(embeddings, model):
    X, sets, _ = embeddings
    other = xmtree.LdSMClassifier(n_estimators=3, random_state=0, n_jobs=3)
    other.fit(X[:2500], sets[:2500])
    assert other._model.to_bytes() == model._model.to_bytes()


@pytest.mark.parametrize("options", [{}, {"compact": True}])
@pytest.mark.parametrize("mmap", [False, True])
def test_files_keep_the_answers(embeddings, model, tmp_path, options, mmap):
    X = embeddings[0][2500:]
    model.save(tmp_path / "model.xm", **options)
    again = xmtree.load(tmp_path / "model.xm", mmap=mmap)
    (labels, scores), (wanted, expected) = again.predict_topk(X, 3), model.predict_topk(X, 3)
    if options:
        assert np.mean(labels[:, 0] == wanted[:, 0]) > 0.97
    else:
        np.testing.assert_array_equal(labels, wanted)
        np.testing.assert_array_equal(scores, expected)


def test_likely_labels_are_those_above_one_half(embeddings, model):
    X = embeddings[0][2500:2600]
    scores = model.predict_scores(X).toarray()
    for labels, row in zip(model.predict(X), scores, strict=True):
        likely = set(np.flatnonzero(row > 0.5))
        assert set(labels) == (likely or {int(row.argmax())})
    above = model.predict_scores(X, threshold=0.2).toarray()
    np.testing.assert_array_equal(above, np.where(scores > 0.2, scores, 0))


def test_mixed_rows_use_both_parts(embeddings):
    """Half of the labels are told apart by vectors, half by words."""
    X, _, first = embeddings
    random = np.random.default_rng(5)
    words = sp.csr_matrix((np.ones(3000), (np.arange(3000), first)), shape=(3000, N_LABELS))
    noise = sp.random(3000, N_LABELS, 0.02, format="csr", random_state=7)
    is_word = (first % 2 == 0)[:, None]
    vectors = np.where(is_word, random.permutation(X), X)
    words = (words.multiply(is_word) + noise).tocsr()
    mixed = sp.hstack([words, vectors]).tocsr()

    def error(X):
        clf = xmtree.LdSMClassifier(n_estimators=3, random_state=0).fit(X[:2500], first[:2500])
        return 1 - clf.score(X[2500:], first[2500:])

    assert error(mixed) < min(error(words), error(vectors)) - 0.15


def test_rows_of_length_1_are_not_standardized(embeddings):
    X, _, first = embeddings
    X = X + 0.3  # Centering would remove the common part.
    unit = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    for rows, scaling in ((unit, "row"), (X, "standard"), (1.01 * unit, "standard")):
        auto, same = (
            xmtree.OAAClassifier(scaling=name, random_state=0).fit(rows, first)
            for name in ("auto", scaling)
        )
        np.testing.assert_array_equal(
            auto.decision_function(rows[:50]), same.decision_function(rows[:50])
        )
