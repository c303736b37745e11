"""Demo data and synthetic problems."""

import numpy as np
import pytest
from estimators import same_matrix
from sklearn.linear_model import SGDClassifier
from xmtree.datasets import load_demo, make_xmc


@pytest.mark.parametrize(
    ("name", "rows", "features", "classes", "licence"),
    [
        ("naics2017-index", (16045, 4012), 38982, 1055, "public domain"),
        ("onet-titles", (35015, 8754), 49598, 1016, "Attribution 4.0"),
        ("letter", (16000, 4000), 16, 26, "Attribution 4.0"),
    ],
)
def test_demo_data(name, rows, features, classes, licence):
    data = load_demo(name)
    assert data.X_train.shape == (rows[0], features)
    assert data.X_test.shape == (rows[1], features)
    assert len(data.target_names) == classes
    assert data.DESCR.startswith(name)
    assert licence in data.DESCR
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        if name == "onet-titles":
            assert y.shape == (X.shape[0], classes)
            assert y.sum(axis=1).min() == 1
        else:
            assert y.shape == (X.shape[0],)
            assert y.max() < classes


def test_demo_rows_and_names_belong_together():
    # The first image of the original file is a T, the second an I.
    data = load_demo("letter")
    assert data.target_names[data.y_train[:5]].tolist() == ["T", "I", "D", "N", "G"]
    assert data.X_train[0].toarray().ravel().tolist() == [
        2,
        8,
        3,
        5,
        1,
        8,
        13,
        0,
        6,
        6,
        10,
        8,
        0,
        8,
        0,
        8,
    ]
    names = load_demo("onet-titles").target_names
    assert names[0] == "11-1011.00 Chief Executives"


@pytest.mark.parametrize("multilabel", [False, True])
def test_make_xmc_is_reproducible_and_well_formed(multilabel):
    X, y = make_xmc(500, 300, 100, multilabel=multilabel, random_state=3)
    again_X, again_y = make_xmc(500, 300, 100, multilabel=multilabel, random_state=3)
    other, _ = make_xmc(500, 300, 100, multilabel=multilabel, random_state=4)
    same_matrix(X, again_X)
    assert (other != X).nnz > 0
    assert X.shape == (500, 300)
    assert X.dtype == np.float32
    X.check_format(full_check=True)
    assert X.has_canonical_format
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1, rtol=1e-5)
    if multilabel:
        same_matrix(y, again_y)
        y.check_format(full_check=True)
        assert y.shape == (500, 100)
        assert (y.data == 1).all()
        assert 2 < y.sum() / 500 < 3
    else:
        np.testing.assert_array_equal(y, again_y)
        assert y.dtype == np.int64
        assert 0 <= y.min() <= y.max() < 100


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5])
def test_make_xmc_frequencies_follow_the_power_law(exponent):
    _, y = make_xmc(200_000, 10, 50, nnz=1, exponent=exponent, random_state=0)
    seen = np.sort(np.bincount(y, minlength=50))[::-1] / 200_000
    expected = np.arange(1, 51) ** -exponent
    np.testing.assert_allclose(seen, expected / expected.sum(), rtol=0.15)


def test_make_xmc_is_learnable():
    X, y = make_xmc(6000, 1000, 50, random_state=0)
    model = SGDClassifier(random_state=0).fit(X[:5000], y[:5000])
    assert model.score(X[5000:], y[5000:]) > 0.9
    X, y = make_xmc(6000, 1000, 50, noise=1.0, random_state=0)
    model = SGDClassifier(random_state=0).fit(X[:5000], y[:5000])
    assert model.score(X[5000:], y[5000:]) < 0.4
