"""VW text: named features, importances, and refused syntax."""

import json
from argparse import Namespace

import cli_files as files
import numpy as np
import pytest
import xmtree
from cli_files import run
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from xmtree.cli import formats

_random = np.random.default_rng(3)
#: Meaning of each line: label, importance, features by name.
EXAMPLES = [
    (
        f"class-{at % 3}" if at % 5 else f"class-{(at + 1) % 3}",
        float(1 + at % 2),
        {f"words^w{at % 3}": 1.0, f"words^w{3 + at % 7}": 0.5, "size": round(_random.random(), 3)},
    )
    for at in range(60)
]
LABELS = [label for label, _, _ in EXAMPLES]
WEIGHTS = [weight for _, weight, _ in EXAMPLES]
FEATURES = [features for _, _, features in EXAMPLES]


def line(label, weight, features):
    """Return VW text, with named features in a namespace of weight 0.5."""
    names = list(features)
    half = names[1].removeprefix("words^")
    return (
        f"{label} {weight} 'tag|words:0.5 {names[0].removeprefix('words^')}:2 {half} "
        f"| size:{features['size']}"
    )


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("".join(line(*example) + "\n" for example in EXAMPLES))
    return path


def trained(learner, X, passes, **more):
    model = learner(random_state=0, n_passes=passes, **more)
    if passes == 1:
        return model.partial_fit(X, LABELS, np.unique(LABELS), sample_weight=WEIGHTS)
    return model.fit(X, LABELS, sample_weight=WEIGHTS)


def scores_of(model, data, capsys, *options):
    """Return the printed scores in the order of the labels."""
    capsys.readouterr()
    assert run("predict", model, data, "--json", *options) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return np.array(
        [[s for _, s in sorted(zip(r["labels"], r["scores"], strict=True))] for r in rows]
    )


@pytest.mark.parametrize("passes", [1, 3])
def test_names_become_columns(passes, data, tmp_path, capsys):
    options = ["--learner", "oaa", "--passes", passes]
    assert run("fit", data, *options, "-o", tmp_path / "m") == 0
    names = xmtree.load(tmp_path / "m").feature_names_in_.tolist()
    assert sorted(names) == sorted({name for row in FEATURES for name in row})
    vectorizer = DictVectorizer(dtype=np.float32).fit(FEATURES)
    X = vectorizer.transform(FEATURES)[:, [vectorizer.vocabulary_[name] for name in names]]
    expected = trained(xmtree.OAAClassifier, X, passes)
    np.testing.assert_allclose(
        scores_of(tmp_path / "m", data, capsys), expected.decision_function(X), rtol=1e-4, atol=1e-6
    )
    capsys.readouterr()
    assert run("evaluate", tmp_path / "m", data, "--json") == 0
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == pytest.approx(1 - expected.score(X, LABELS))
    assert run("inspect", tmp_path / "m") == 0
    assert "words^w0, words^w3, size" in capsys.readouterr().out


@pytest.mark.parametrize("passes", [1, 3])
def test_hashed_names(passes, data, tmp_path, capsys):
    options = ["--learner", "oaa", "--passes", passes, "--set", "n_bits=16"]
    assert run("fit", data, *options, "-o", tmp_path / "m") == 0
    hasher = FeatureHasher(2**31 - 1, dtype=np.float32, alternate_sign=False)
    X = hasher.transform(FEATURES)
    expected = trained(xmtree.OAAClassifier, X, passes, n_bits=16)
    np.testing.assert_allclose(
        scores_of(tmp_path / "m", data, capsys), expected.decision_function(X), rtol=1e-4, atol=1e-6
    )
    # The model knows that its columns were hashed.
    columns = tmp_path / "columns.svm"
    columns.write_text("1 3:1\n")
    assert run("predict", tmp_path / "m", columns) == 2
    assert "hashed names" in capsys.readouterr().err


def test_a_stream_from_stdin(data, tmp_path):
    classes = tmp_path / "classes"
    classes.write_text("class-0\nclass-1\nclass-2\n")
    text = data.read_text()
    described = ["--format", "vw", "--set", "n_bits=16", "--classes", classes]
    done = files.piped("fit", "-", "--learner", "oaa", *described, "-o", tmp_path / "m", stdin=text)
    assert done.returncode == 0, done.stderr
    hashed = ["--passes", 1, "--set", "n_bits=16"]
    assert run("fit", data, "--learner", "oaa", *hashed, "-o", tmp_path / "expected") == 0
    X = FeatureHasher(2**31 - 1, dtype=np.float32, alternate_sign=False).transform(FEATURES)
    np.testing.assert_array_equal(
        *(xmtree.load(tmp_path / name).decision_function(X) for name in ("m", "expected"))
    )


def test_features_that_the_model_does_not_have(data, tmp_path, capsys):
    assert run("fit", data, "--learner", "oaa", "-o", tmp_path / "m") == 0
    known, other = tmp_path / "known.vw", tmp_path / "other.vw"
    known.write_text("|words w0\n|words w1\n")
    other.write_text("|words w0 new:3\n|words w1 |new x\n")
    assert run("predict", tmp_path / "m", other) == 1
    assert "other.vw:1: the model has no feature 'words^new'" in capsys.readouterr().err
    np.testing.assert_array_equal(
        scores_of(tmp_path / "m", other, capsys, "--unknown-features", "ignore"),
        scores_of(tmp_path / "m", known, capsys),
    )
    xmtree.OAAClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "n")
    assert run("predict", tmp_path / "n", known) == 2
    assert "columns without names" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("3 |a b\n-1 |a c\n", [-1, 3]),
        ("cat |a b\n3 |a c\n", ["3", "cat"]),
        ("1,2 | a\n3 | b\n", None),
    ],
)
def test_labels(text, labels, tmp_path):
    (tmp_path / "a.vw").write_text(text)
    assert run("fit", tmp_path / "a.vw", "--learner", "oaa", "-o", tmp_path / "m") == 0
    model = xmtree.load(tmp_path / "m")
    assert model.classes_.tolist() == (labels or [1, 2, 3])
    assert (model._y_form == "lists") == (labels is None)


def test_words_as_values(tmp_path):
    data = tmp_path / "a.vw"
    data.write_text("1 |house color:red rooms:3 |house:2 color:red\n2 | color:red x:1,5\n")
    assert run("fit", data, "--learner", "oaa", "-o", tmp_path / "m") == 0
    names = xmtree.load(tmp_path / "m").feature_names_in_.tolist()
    assert names == ["house^color^red", "house^rooms", "color^red", "x^1,5"]
    reader = formats.open_reader(str(data), Namespace(format="auto", batch_size=9), strict=False)
    (batch,) = reader.batches()
    assert [list(row.values()) for row in batch.rows] == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 no bar", "no '|'"),
        ("1:0.3 2:1 | a", "labels with costs"),
        ("1:2:0.5 | a", "labels with costs"),
        ("shared | a", "shared features"),
        ("1 2 3 | a", "'3' after label and importance"),
        ("1 2 3 4 | a", "'3' after label and importance"),
        ("1 much | a", "importance must be a finite number, got 'much'"),
        ("1 -2 | a", "importance must not be negative, got -2"),
        ("1| a", "is a tag to VW"),
        ("1 | a:", "value of the feature 'a'"),
        ("1 | a:1:2", "value of the feature 'a'"),
        ("1 | a:nan", "value of the feature 'a'"),
        ("1 | :0.5", "a feature must have a name"),
        ("1 |n:x a", "weight of namespace 'n'"),
        ("1,,2 | a", "a label is missing"),
    ],
)
def test_refused_syntax(text, message, tmp_path, capsys):
    data = tmp_path / "a.vw"
    data.write_text(f"1 | a\n\n{text}\n2 | b\n")
    assert run("fit", data, "--learner", "oaa", "-o", tmp_path / "m") == 1
    err = capsys.readouterr().err
    assert "a.vw:3: " in err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("text", ["1 'tag| a", "1 2 tag| a", "1 2 'tag | a", "1 2| a", "| a"])
def test_tags_are_skipped(text, tmp_path, capsys):
    (tmp_path / "a.vw").write_text("1 | a\n2 | b\n")
    assert run("fit", tmp_path / "a.vw", "--learner", "oaa", "-o", tmp_path / "m") == 0
    (tmp_path / "b.vw").write_text(f"{text}\n")
    assert scores_of(tmp_path / "m", tmp_path / "b.vw", capsys).shape == (1, 2)


def test_a_line_without_a_label_does_not_train(tmp_path, capsys):
    (tmp_path / "a.vw").write_text("1 | a\n| b\n")
    assert run("fit", tmp_path / "a.vw", "--learner", "oaa", "-o", tmp_path / "m") == 1
    assert "a.vw:2: 0 labels" in capsys.readouterr().err
