"""One-against-all: classes without examples, pruning, and memory."""

import estimators
import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from xmtree import OAAClassifier

X = np.repeat(np.eye(3), 20, axis=0)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_a_label_never_learned_has_probability_0(loss, n_classes):
    model = OAAClassifier(loss=loss, random_state=0)
    model.partial_fit(X, [[]] * 60, classes=range(n_classes))
    np.testing.assert_array_equal(model.predict_proba(X), np.zeros((60, n_classes)))
    assert model.predict(X) == [[]] * 60
    # Once all labels occur, probabilities are an ordinary softmax.
    model.partial_fit(X[:1], [[0]])
    probabilities = model.predict_proba(X)
    assert (probabilities[:, 0] > 0).all()
    np.testing.assert_array_equal(probabilities[:, 1:], 0)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_vanishing_weights_give_no_nan(loss, n_classes):
    model = OAAClassifier(loss=loss, scale_weights=False, random_state=0)
    y = np.arange(60) % n_classes
    # The squares are 0 in single precision, and steps are tiny.
    model.partial_fit(X, y, classes=range(n_classes), sample_weight=np.full(60, 1e-36))
    for answers in (model.predict_proba(X), model.decision_function(X)):
        assert not np.isnan(answers).any()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-6)
    model.partial_fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_pruning_holds_few_weights_and_hardly_changes_predictions(tmp_path):
    X, y = estimators.sparse(n=600)
    dense = xmtree.OAAClassifier(random_state=0, calibrate=False).fit(X, y)
    tiny = xmtree.OAAClassifier(random_state=0, calibrate=False, prune=1e-30).fit(X, y)
    estimators.same_predictions(tiny, dense, X)
    assert tiny.progressive_loss_ == dense.progressive_loss_
    pruned = xmtree.OAAClassifier(random_state=0, prune=0.1, n_jobs=2).fit(X, y)
    assert pruned.progressive_loss_ == dense.progressive_loss_
    n = [model._model.summary()["n_weights"] for model in (tiny, pruned)]
    assert 0 < n[1] < n[0]
    assert np.mean(pruned.predict(X) == dense.predict(X)) > 0.95
    assert pruned.decision_function(X).shape == (600, len(pruned.classes_))
    for mmap in (False, True):
        pruned.save(tmp_path / "model")
        again = xmtree.load(tmp_path / "model", mmap=mmap)
        estimators.same_predictions(again, pruned, X)
        with pytest.raises(ValueError, match="prune must be None for partial_fit"):
            again.partial_fit(X, y)


def test_pruning_is_refused_with_incompatible_options():
    X, y = estimators.sparse(n=60)
    for more, message in [
        ({"loss": "softmax"}, "softmax"),
        ({"early_stopping": True}, "early_stopping"),
    ]:
        with pytest.raises(ValueError, match=message):
            xmtree.OAAClassifier(prune=0.1, **more).fit(X, y)
    with pytest.raises(ValueError, match="prune must be None for partial_fit"):
        xmtree.OAAClassifier(prune=0.1).partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="prune"):
        xmtree.OAAClassifier(prune=0.0).fit(X, y)


def test_models_beyond_the_memory_are_refused_at_once():
    # 8 TB of weights, and a million examples that are checked quickly.
    n = 1_000_000
    X = sp.identity(n, np.float32, format="csr")
    model = xmtree.OAAClassifier(scaling="none")
    message = r"1000000 classes x \d+ features need about .* GiB .* are available; set prune="
    with pytest.raises(MemoryError, match=message):
        model.fit(X, np.arange(n))
    assert not hasattr(model, "classes_")
    with pytest.raises(MemoryError, match=message):
        model.partial_fit(X, np.arange(n), classes=np.arange(n))
    # Columns that do not occur need no memory, else this would be half a terabyte.
    few = sp.csr_matrix((np.ones(3), ([0, 1, 2], [5, 9, 49_999_999])), shape=(3, 50_000_000))
    model = xmtree.OAAClassifier().partial_fit(few, [0, 1, 2], classes=np.arange(1000))
    assert model.predict(few[:1]) == [0]
