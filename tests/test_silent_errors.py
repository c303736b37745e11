"""Input that once gave wrong results without an error."""

import estimators
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xmtree
from cli_files import piped
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
    # Labels and lists name their classes.
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


def test_probabilities_are_those_of_the_fitted_loss():
    model = xmtree.OAAClassifier(loss="softmax", random_state=0).fit(X, np.repeat([0, 1], 60))
    before = model.predict_proba(X[:5])
    for other in ("logistic", "hinge"):
        model.set_params(loss=other)
        np.testing.assert_array_equal(model.predict_proba(X[:5]), before)
    sets = xmtree.OAAClassifier(loss="softmax", random_state=0).fit(X, np.repeat(np.eye(2), 60, 0))
    expected = sets.predict(X)
    sets.set_params(loss="hinge")
    np.testing.assert_array_equal(sets.predict(X), expected)


@pytest.mark.parametrize("name", ["OAAClassifier", "LOMTreeClassifier", "GambleClassifier"])
def test_k_far_above_the_number_of_classes_is_refused(name):
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
        (["--learner", "gamble", "--passes", "3"], "--passes", 2),
        (["--learner", "lomtree", "--n-labels", "2"], "--n-labels", 2),
        (["--learner", "lomtree", "--n-features", "2"], "--n-features", 2),
        (["--learner", "lomtree", "-o", "-"], "cannot be written to stdout", 2),
        (["--learner", "lomtree", "-o", "no/such/folder/model"], "no/such/folder", 1),
    ],
)
def test_options_of_fit_work_or_are_refused(file, capsys, tmp_path, options, message, code):
    output = [] if "-o" in options else ["-o", str(tmp_path / "model")]
    assert main(["fit", str(file), *options, *output]) == code
    assert not (tmp_path / "model").exists()
    assert message in capsys.readouterr().err


def test_the_index_base_is_part_of_the_model(tmp_path, capsys):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("0 0:1\n1 1:1\n2 2:1\n" * 30)
    # Index 0 does not occur here: a new guess would shift every column by one.
    test.write_text("1 1:1\n2 2:1\n" * 10)
    model = str(tmp_path / "model")
    assert main(["fit", str(train), "--learner", "oaa", "-o", model]) == 0
    assert main(["evaluate", model, str(test)]) == 0
    assert "error" in (out := capsys.readouterr().out)
    assert float(out.split("error")[1].split()[0]) == 0
    assert main(["predict", model, str(test), "-k", "1"]) == 0
    assert capsys.readouterr().out.split("\n")[0].startswith("1")


HASHING = {name: make for name, make in estimators.ALL.items() if hasattr(make(), "n_bits")}
WORDS, TOPICS = estimators.sparse()


def with_width(rows, width):
    """Return the rows in a matrix of another width, without columns beyond it."""
    rows = sp.csr_matrix(rows, copy=True)
    rows.resize(rows.shape[0], width)
    return rows


@pytest.mark.parametrize("name", HASHING)
def test_hashing_accepts_any_number_of_columns(name, tmp_path):
    hashed = {"n_bits": 12, "scaling": "row"}
    # Half of the columns first occur in a later batch.
    model = HASHING[name](**hashed).fit(with_width(WORDS, 24), TOPICS)
    model.save(tmp_path / "model")
    for learner in (model, xmtree.load(tmp_path / "model")):
        for width in (10, 24, 48, 2**31 - 1):
            few = with_width(with_width(WORDS, min(width, 24)), width)
            np.testing.assert_array_equal(
                learner.predict_topk(few, 3)[1],
                learner.predict_topk(with_width(few, 24), 3)[1],
            )
    if name not in estimators.ONLINE:
        return
    # The place of a column does not depend on the width of its batch.
    growing, wide = (HASHING[name](**hashed) for _ in range(2))
    for start in range(0, 300, 100):
        batch, labels = WORDS[start : start + 100], TOPICS[start : start + 100]
        narrow = with_width(batch, 24) if start == 0 else batch
        growing.partial_fit(narrow, labels, classes=np.arange(12))
        wide.partial_fit(with_width(narrow, 48), labels, classes=np.arange(12))
    estimators.same_predictions(growing, wide, WORDS)
    # The model has learned from the later columns.
    narrow_scores = growing.predict_topk(with_width(WORDS, 24), 3)[1]
    assert np.any(growing.predict_topk(WORDS, 3)[1] != narrow_scores)


def test_hashed_columns_of_a_frame_keep_their_names():
    frame = pd.DataFrame(WORDS.toarray(), columns=[f"f{at}" for at in range(48)])
    model = xmtree.OAAClassifier(n_bits=10, random_state=0).fit(frame.iloc[:, :30], TOPICS)
    model.partial_fit(frame, TOPICS)
    assert model.predict(frame.iloc[:, :20]).shape == (300,)
    with pytest.raises(ValueError, match=r"feature names .* column 0 was 'f0' and is now 'f1'"):
        model.predict(frame.iloc[:, 1:])


@pytest.fixture
def widening(tmp_path):
    """Write training and test files, with an additional feature in the test file."""
    (tmp_path / "train.svm").write_text("0 0:1\n1 1:1\n" * 30)
    (tmp_path / "test.svm").write_text("0 0:1\n1 1:1 5:3\n" * 5)
    (tmp_path / "train.xmc").write_text("60 2 2\n" + "0 0:1\n1 1:1\n" * 30)
    (tmp_path / "test.xmc").write_text("10 6 2\n" + "0 0:1\n1 1:1 5:3\n" * 5)
    return tmp_path


@pytest.mark.parametrize("kind", ["svm", "xmc"])
@pytest.mark.parametrize("model", ["oaa", "ldsm", "gamble"])
def test_unknown_features_of_a_file_are_left_out_on_request(kind, model, widening, capsys):
    path, test = str(widening / "model"), str(widening / f"test.{kind}")
    settings = [] if kind == "xmc" else ["--index-base", "0"]
    train = str(widening / f"train.{kind}")
    assert main(["fit", train, "--learner", model, "-o", path, *settings]) == 0
    for command in ("predict", "evaluate"):
        capsys.readouterr()
        assert main([command, path, test]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert f"test.{kind}" in err
        assert "--unknown-features ignore" in err
        assert ("row 1: feature index 5, the model has 0 to 1" in err) == (kind == "svm")
    ignoring = [path, test, "--unknown-features", "ignore"]
    assert main(["evaluate", *ignoring, "--train", test]) == 0
    assert float(capsys.readouterr().out.split("error")[1].split()[0]) == 0
    assert main(["predict", *ignoring, "-k", "1"]) == 0
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == ["0", "1"] * 5


def test_the_command_line_accepts_any_hashed_feature(widening, capsys):
    path, test = str(widening / "model"), str(widening / "test.svm")
    options = ["--learner", "lomtree", "--set", "n_bits=10", "--index-base", "0", "-o", path]
    assert main(["fit", str(widening / "train.svm"), *options]) == 0
    assert "hashed features" in capsys.readouterr().err
    assert main(["evaluate", path, test]) == 0


def test_hashed_features_need_no_number_on_stdin(widening, capsys):
    described = ["--format", "svmlight", "--index-base", "0", "--n-labels", "2"]
    fit = ["fit", "-", "--learner", "lomtree", *described, "-o", str(widening / "model")]
    assert main(fit) == 2
    assert "n_bits" in capsys.readouterr().err
    done = piped(*fit, "--set", "n_bits=10", stdin=(widening / "test.svm").read_text())
    assert done.returncode == 0, done.stderr
    assert xmtree.load(widening / "model").n_examples_seen_ == 10
