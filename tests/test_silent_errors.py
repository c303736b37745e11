"""What was once answered wrongly without a word."""

import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from xmtree.cli import main

X = np.repeat(np.eye(2), 60, axis=0)


def test_columns_of_an_indicator_must_be_in_the_order_of_classes_():
    # MultiLabelBinarizer(classes=["z", "a"]) makes columns in that order; classes_ is sorted.
    Y = np.repeat(np.eye(2, dtype=int), 60, axis=0)
    for indicator in (Y, sp.csr_matrix(Y)):
        with pytest.raises(ValueError, match="sorted"):
            xmtree.OAAClassifier().partial_fit(X, indicator, classes=["z", "a"])
        model = xmtree.OAAClassifier(random_state=0)
        model.partial_fit(X, indicator[:, ::-1], classes=["a", "z"])
        assert model.predict_topk(X[:1], 1)[0].tolist() == [["z"]]
    # Labels and lists say themselves which class is meant.
    model = xmtree.OAAClassifier(random_state=0)
    model.partial_fit(X, [["z"]] * 60 + [["a"]] * 60, classes=["z", "a"])
    assert model.predict_topk(X[:1], 1)[0].tolist() == [["z"]]


def test_nested_lists_of_0_and_1_of_one_length_are_an_indicator():
    y = [[1, 0]] * 60 + [[0, 1]] * 60
    model = xmtree.OAAClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.predict_topk(X[[0, -1]], 1)[0].tolist() == [[0], [1]]
    # Lists of one label each, or of other labels, are label lists.
    model = xmtree.OAAClassifier(random_state=0).fit(X, [[1]] * 60 + [[0]] * 60)
    assert model.predict(X[:1]) == [[1]]
    model = xmtree.OAAClassifier(random_state=0).fit(X, [[1, 2]] * 60 + [[2, 3]] * 60)
    assert model.classes_.tolist() == [1, 2, 3]


def test_labels_beyond_int64_keep_their_sign():
    labels = np.array([2**63 + 5, 3], np.uint64)
    model = xmtree.LOMTreeClassifier(random_state=0).fit(X, np.repeat(labels, 60))
    found, _ = model.predict_topk(X[:1], 3)
    assert found.tolist() == [[2**63 + 5, 3, None]]


def test_probabilities_are_those_of_the_loss_that_was_fitted():
    model = xmtree.OAAClassifier(loss="softmax", random_state=0).fit(X, np.repeat([0, 1], 60))
    before = model.predict_proba(X[:5])
    for other in ("logistic", "hinge"):
        model.set_params(loss=other)
        np.testing.assert_array_equal(model.predict_proba(X[:5]), before)
    sets = xmtree.OAAClassifier(loss="softmax", random_state=0).fit(X, np.repeat(np.eye(2), 60, 0))
    expected = sets.predict(X)
    sets.set_params(loss="hinge")
    np.testing.assert_array_equal(sets.predict(X), expected)
    plain = xmtree.OAAClassifier(random_state=0).fit(X, np.repeat([0, 1], 60))
    assert not hasattr(plain.set_params(loss="softmax"), "predict_proba")


@pytest.mark.parametrize("name", ["OAAClassifier", "LOMTreeClassifier", "GambleClassifier"])
def test_k_far_beyond_the_number_of_classes_is_refused(name):
    model = getattr(xmtree, name)(random_state=0).fit(X, np.repeat([0, 1], 60))
    with pytest.raises(ValueError, match=r"k must be at most 1000"):
        model.predict_topk(X, 10**8)
    assert model.predict_topk(X, 5)[0].shape == (120, 5)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("4 2 2\n0 0:1\n1 1:1\n0 0:1\n1 1:1\n")
    return path


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--model", "gamble", "--passes", "3"], "--passes", 2),
        (["--model", "lomtree", "--n-labels", "2"], "--n-labels", 2),
        (["--model", "lomtree", "--n-features", "2"], "--n-features", 2),
        (["--model", "lomtree", "-o", "-"], "standard output", 2),
        (["--model", "lomtree", "-o", "no/such/folder/model"], "no/such/folder", 1),
    ],
)
def test_options_of_fit_act_or_are_refused(file, capsys, tmp_path, options, message, code):
    output = [] if "-o" in options else ["-o", str(tmp_path / "model")]
    assert main(["fit", str(file), *options, *output]) == code
    assert not (tmp_path / "model").exists()
    assert message in capsys.readouterr().err


def test_the_index_base_is_part_of_the_model(tmp_path, capsys):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("0 0:1\n1 1:1\n2 2:1\n" * 30)
    # Index 0 happens not to occur: guessed anew, every column would be off by one.
    test.write_text("1 1:1\n2 2:1\n" * 10)
    model = str(tmp_path / "model")
    assert main(["fit", str(train), "--model", "oaa", "-o", model]) == 0
    assert main(["evaluate", model, str(test)]) == 0
    assert "error" in (out := capsys.readouterr().out)
    assert float(out.split("error")[1].split()[0]) == 0
    assert main(["predict", model, str(test), "-k", "1"]) == 0
    assert capsys.readouterr().out.split("\n")[0].startswith("1")
