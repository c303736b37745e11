"""What one-against-all answers while classes, or all of them, have no example."""

import numpy as np
import pytest
from xmtree import OAAClassifier

X = np.repeat(np.eye(3), 20, axis=0)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_a_label_never_learned_has_probability_0(loss, n_classes):
    model = OAAClassifier(loss=loss, random_state=0)
    model.partial_fit(X, [[]] * 60, classes=range(n_classes))
    np.testing.assert_array_equal(model.predict_proba(X), np.zeros((60, n_classes)))
    assert model.predict(X) == [[]] * 60
    # From the first label on it is an ordinary softmax again.
    model.partial_fit(X[:1], [[0]])
    chances = model.predict_proba(X)
    assert (chances[:, 0] > 0).all()
    np.testing.assert_array_equal(chances[:, 1:], 0)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_that_vanish_leave_no_nan(loss, n_classes):
    model = OAAClassifier(loss=loss, scale_weights=False, random_state=0)
    y = np.arange(60) % n_classes
    # Squares of these are 0 in single precision, and steps next to nothing.
    model.partial_fit(X, y, classes=range(n_classes), sample_weight=np.full(60, 1e-36))
    for answers in (model.predict_proba(X), model.decision_function(X)):
        assert not np.isnan(answers).any()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-6)
    model.partial_fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
