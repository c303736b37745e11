"""Command-line options: each has its documented effect."""

import json
import os
import re

import cli_files as files
import numpy as np
import pytest
import xmtree
from cli_files import LABELS, SETS, TEXTS, piped, run
from xmtree import _progress
from xmtree.cli import fit as cli_fit
from xmtree.datasets import save_xmc
from xmtree.metrics import precision_at_k

_random = np.random.default_rng(11)
X = _random.normal(size=(300, 6)).astype(np.float32)
Y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0.3) + 4 * (_random.random(300) < 0.1)


@pytest.fixture
def texts(tmp_path):
    files.write_csv(tmp_path / "texts.csv", {"text": TEXTS, "label": LABELS})
    files.write_csv(tmp_path / "sets.csv", {"text": TEXTS, "labels": SETS})
    return tmp_path


@pytest.fixture
def numbers(tmp_path):
    save_xmc(tmp_path / "xmc.txt", X, Y)
    files.write_csv(tmp_path / "n.csv", {**{f"x{i}": X[:, i] for i in range(6)}, "label": Y})
    return tmp_path


def json_of(capsys, *arguments):
    capsys.readouterr()
    assert run(*arguments) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("data", ["xmc.txt", "n.csv"])
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("learner", ["oaa", "lomtree"])
def test_continue_trains_further(data, passes, learner, numbers):
    first, second = numbers / "first", numbers / "second"
    assert run("fit", numbers / data, "--learner", learner, "-o", first) == 0
    more = ["--passes", passes, "--batch-size", 50]
    assert run("fit", numbers / data, "--continue", first, *more, "-o", second) == 0
    expected, found = xmtree.load(first), xmtree.load(second)
    names = getattr(expected, "feature_names_in_", None)
    if data == "n.csv":
        assert found.feature_names_in_.tolist() == names.tolist()
        del expected.feature_names_in_, found.feature_names_in_
    expected.verbose = 0
    for _ in range(passes):
        for start in range(0, 300, 50):
            expected.partial_fit(X[start : start + 50], Y[start : start + 50])
    assert found.n_examples_seen_ == expected.n_examples_seen_
    np.testing.assert_array_equal(found.predict_topk(X, 3)[1], expected.predict_topk(X, 3)[1])


@pytest.mark.parametrize("name", ["texts.csv", "sets.csv"])
@pytest.mark.parametrize("options", [["--learner", "oaa"], ["--set", "n_bits=14"]])
def test_continue_a_text_model(name, options, texts):
    assert run("fit", texts / name, *options, "-o", texts / "first") == 0
    assert run("fit", texts / name, "--continue", texts / "first", "-o", texts / "second") == 0
    expected = xmtree.load(texts / "first")
    expected.partial_fit(TEXTS, SETS if "sets" in name else LABELS)
    np.testing.assert_array_equal(
        xmtree.load(texts / "second").predict_topk(TEXTS, 4)[1], expected.predict_topk(TEXTS, 4)[1]
    )


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("oaa", ["--learner", "oaa"], "--learner cannot be given with --continue"),
        ("oaa", ["--set", "loss=hinge"], "--set cannot be given with --continue"),
        ("oaa", ["--seed", "0"], "--seed cannot be given with --continue"),
        ("oaa", ["--n-labels", "3"], "--n-labels cannot be given with --continue"),
        ("oaa", ["--labels", "sets"], "was trained on one label per row"),
        ("gamble", [], "is not an online learner"),
        ("text", [], "can be trained further"),
    ],
)
def test_options_refused_with_continue(model, arguments, message, numbers, texts, capsys):
    data = texts / "texts.csv" if model == "text" else numbers / "xmc.txt"
    chosen = [] if model == "text" else ["--learner", model]
    assert run("fit", data, *chosen, "-o", numbers / "m") == 0
    capsys.readouterr()
    assert run("fit", data, "--continue", numbers / "m", *arguments, "-o", numbers / "n") == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_parameters_of_a_learner_that_auto_may_not_choose(texts, capsys):
    assert run("fit", texts / "texts.csv", "--set", "loss=hinge", "-o", texts / "m") == 2
    assert "--set loss needs a named --learner" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "n_hints"), [([], 1), (["--compact"], 0), (["--set", "prune=0.01"], 0)]
)
def test_a_large_model_gets_a_hint(more, n_hints, numbers, capsys, monkeypatch):
    monkeypatch.setattr(cli_fit, "_LARGE", 1000)
    assert run("fit", numbers / "xmc.txt", "--learner", "oaa", *more, "-o", numbers / "m") == 0
    assert capsys.readouterr().err.count("--set prune=0.03 keeps only large weights") == n_hints


def test_continue_refuses_new_labels(texts, capsys):
    assert run("fit", texts / "texts.csv", "--learner", "oaa", "-o", texts / "m") == 0
    files.write_csv(texts / "new.csv", {"text": ["a card"], "label": ["novel"]})
    assert run("fit", texts / "new.csv", "--continue", texts / "m", "-o", texts / "n") == 1
    err = capsys.readouterr().err
    assert f"{texts / 'new.csv'}:2: the model has no label 'novel'; --new-labels add" in err
    assert not (texts / "n").exists()


@pytest.mark.parametrize("name", ["texts.csv", "sets.csv"])
def test_continue_adds_new_labels_to_a_text_model(name, texts):
    column = "labels" if name == "sets.csv" else "label"
    assert run("fit", texts / name, "--learner", "oaa", "-o", texts / "m") == 0
    new = ["novel" if label == "cash" else label for label in LABELS]
    files.write_csv(texts / "new.csv", {"text": TEXTS, column: new})
    more = ["--continue", texts / "m", "--new-labels", "add", "--passes", 3, "--batch-size", 20]
    assert run("fit", texts / "new.csv", *more, "-o", texts / "n") == 0
    expected = xmtree.load(texts / "m")
    first = list(expected.classes_)
    for _ in range(3):
        for start in range(0, 80, 20):
            part = slice(start, start + 20)
            target = [[label] for label in new[part]] if column == "labels" else new[part]
            expected.partial_fit(TEXTS[part], target, classes="grow")
    found = xmtree.load(texts / "n")
    assert found.classes_.tolist() == [*first, "novel"]
    for one, other in zip(found.predict_topk(TEXTS), expected.predict_topk(TEXTS), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("learner", ["oaa", "lomtree", "recall-tree"])
@pytest.mark.parametrize("sets", [False, True])
def test_continue_adds_new_labels_of_xmc(learner, sets, numbers, capsys):
    if sets and learner != "oaa":
        return
    first, more = numbers / "first.txt", numbers / "more.txt"
    known = Y.max() > Y
    y = [[int(label), 0] for label in Y] if sets else Y
    save_xmc(first, X[known], [row for row, keep in zip(y, known, strict=True) if keep])
    save_xmc(more, X, y)
    assert run("fit", first, "--learner", learner, "-o", numbers / "m") == 0
    fit = ["fit", more, "--continue", numbers / "m", "-o", numbers / "n"]
    assert run(*fit) == 1
    place = f"more.txt, row {np.argmin(known)}" if sets else "more.txt"
    assert f"{place}" in capsys.readouterr().err
    assert run(*fit, "--new-labels", "add") == 0
    assert xmtree.load(numbers / "n").classes_.tolist() == list(range(Y.max() + 1))


def test_new_labels_that_cannot_be_added(numbers, capsys):
    data, model = numbers / "n.csv", numbers / "m"
    add = ["--continue", model, "--new-labels", "add", "-o", numbers / "n"]
    assert run("fit", data, "--learner", "filter-tree", "-o", model) == 0
    assert run("fit", data, *add) == 2
    assert "tree of the FilterTreeClassifier" in capsys.readouterr().err
    assert run("fit", data, "--learner", "oaa", "--new-labels", "add", "-o", model) == 2
    assert "--new-labels needs --continue" in capsys.readouterr().err
    # The labels of the model are integers.
    assert run("fit", data, "--learner", "oaa", "-o", model) == 0
    data.write_text(data.read_text().rpartition(",")[0] + ",seven\n")
    assert run("fit", data, *add) == 1
    assert "the label 'seven' is not an integer" in capsys.readouterr().err
    # The labels of the model are strings, and the file has integers.
    names = [f"label {label}" for label in Y]
    files.write_csv(data, {**{f"x{i}": X[:, i] for i in range(6)}, "label": names})
    assert run("fit", data, "--learner", "oaa", "-o", model) == 0
    assert run("fit", numbers / "xmc.txt", *add) == 1
    err = capsys.readouterr().err
    assert "cannot be compared with those of" in err
    assert "xmc.txt, which are numbers" in err


def test_the_error_of_a_stream_has_a_recent_one(numbers, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_BETWEEN_LINES", 0.0)
    more = ["--passes", 1, "--batch-size", 100, "--progress", "lines", "-o", numbers / "m"]
    assert run("fit", numbers / "n.csv", "--learner", "oaa", *more) == 0
    lines = capsys.readouterr().err.split("\n")
    assert re.search(r"100 examples, \d+/s, error (0\.\d+) \(recent \1\)", lines[0])
    # The window of a continued model begins with the new rows.
    again = ["--continue", numbers / "m", "-o", numbers / "n", "--batch-size", 100]
    assert run("fit", numbers / "n.csv", *again) == 0
    model = xmtree.load(numbers / "n")
    old = xmtree.load(numbers / "m").progressive_loss_
    recent = 2 * model.progressive_loss_ - old
    expected = f"progressive error {model.progressive_loss_:.4f} (recent {recent:.4f})"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("learner", ["oaa", "gamble"])
def test_valid_reports_measures_of_another_file(learner, numbers, capsys):
    half = numbers / "half.txt"
    save_xmc(half, X[:100], Y[:100], n_labels=8)
    options = ["--learner", learner, "--valid", numbers / "n.csv", "-o", numbers / "m"]
    assert run("fit", half, *options) == 0
    err = capsys.readouterr().err
    found = re.search(r"error (\S+) P@3 (\S+) P@5 (\S+) on \S+n.csv", err)
    best, _ = xmtree.load(numbers / "m").predict_topk(X, 5)
    expected = precision_at_k(Y, best, [1, 3, 5])
    expected[0] = 1 - expected[0]
    np.testing.assert_allclose([float(value) for value in found.groups()], expected, atol=1e-4)


def test_valid_stops_boosting_early(numbers, capsys):
    part = numbers / "part.txt"
    options = ["--learner", "gamble", "--set", "early_stopping=true", "-o", numbers / "m"]
    options += ["--valid", numbers / "n.csv"]
    save_xmc(part, X[:200], Y[:200], n_labels=8)
    assert run("fit", part, *options) == 0
    found = re.search(r"error (\S+) P@3", capsys.readouterr().err)
    errors = xmtree.load(numbers / "m").evals_result_["error"]
    assert abs(float(found[1]) - min(errors)) <= 1e-4
    assert len(errors) < 200
    save_xmc(part, X[:100], np.minimum(Y[:100], 3), n_labels=8)
    assert run("fit", part, *options) == 1
    first = int(np.argmax(Y > 3))
    assert f"n.csv:{first + 2}: the label {Y[first]} is not in {part}" in capsys.readouterr().err


def test_valid_is_checked_before_training(texts, numbers, capsys):
    for valid, message in (
        (texts / "absent.csv", "absent.csv"),
        (numbers / "n.csv", "n.csv holds numbers"),
    ):
        assert run("fit", texts / "texts.csv", "--valid", valid, "-o", texts / "m") != 0
        assert message in capsys.readouterr().err
        assert not (texts / "m").exists()


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_threshold_leaves_out_lower_scores(form, numbers, capsys):
    assert run("fit", numbers / "xmc.txt", "--learner", "ldsm", "-o", numbers / "m") == 0
    capsys.readouterr()
    command = ["predict", numbers / "m", numbers / "xmc.txt", "-k", 4, "--threshold", 0.3, *form]
    assert run(*command) == 0
    lines = capsys.readouterr().out.split("\n")[:-1]
    labels, scores = xmtree.load(numbers / "m").predict_topk(X, 4)
    kept = [row[s >= 0.3].tolist() for row, s in zip(labels, scores, strict=True)]
    assert 0 < sum(map(len, kept)) < 1200
    if form:
        found = [json.loads(line)["labels"] for line in lines]
    else:
        found = [[int(pair.split(":")[0]) for pair in line.split()] for line in lines]
    assert found == kept


def test_scores_may_be_probabilities(numbers, capsys):
    assert run("fit", numbers / "xmc.txt", "--learner", "lomtree", "-o", numbers / "m") == 0
    capsys.readouterr()
    options = ["-k", 2, "--scores", "probability", "--threshold", 0.2, "--json"]
    assert run("predict", numbers / "m", numbers / "xmc.txt", *options) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    labels, probabilities = xmtree.load(numbers / "m").predict_topk(X, 2, scores="probability")
    for line, row, p in zip(lines, labels, probabilities, strict=True):
        assert line["labels"] == row[p >= 0.2].tolist()
        np.testing.assert_allclose(line["scores"], p[p >= 0.2], rtol=1e-5)


@pytest.mark.parametrize("command", ["fit", "fit --passes 1", "predict", "evaluate"])
def test_progress(command, numbers, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_BETWEEN_LINES", 0.0)
    data, model = numbers / "xmc.txt", numbers / "m"
    fit = ["fit", data, "--learner", "oaa", "-o", model]
    assert run(*fit) == 0
    name, *more = command.split()
    work = [*fit, *more] if name == "fit" else [name, model, data]
    work += ["--batch-size", 100]
    message = {}
    for style in ("auto", "bar", "lines", "none"):
        capsys.readouterr()
        assert run(*work, "--progress", style) == 0
        # Without the line that says what was saved.
        err = capsys.readouterr().err
        message[style] = [
            line for line in re.split(r"[\r\n]+", err) if line and "done in" not in line
        ]
    assert message["none"] == message["auto"] == []
    assert "ex/s" in message["bar"][-1]
    # The last three passes of five learn all rows, after calibration.
    assert re.search(r": [1-9]\d\d( of 900)? examples, \d+/s", message["lines"][0])
    assert re.search(r": (300|900 of 900) examples", message["lines"][-1])
    # Long work without a terminal.
    monkeypatch.setattr(_progress, "_LONG", 0.0)
    assert run(*work, "--progress", "auto") == 0
    assert " examples, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["svmlight"], ["--n-labels K or --classes FILE", "--n-features D or", "--index-base"]),
        (["svmlight", "--n-labels", "3"], ["--n-features D or --set n_bits", "--index-base"]),
        (["svmlight", "--n-labels", "3", "--set", "n_bits=9"], ["needs --index-base"]),
        (["vw"], ["--n-labels K or --classes FILE", "--set n_bits=BITS"]),
        (["csv"], ["needs --n-labels K or --classes FILE"]),
        (["csv", "--n-labels", "3", "--classes", "n.csv"], ["not allowed with argument"]),
    ],
)
def test_all_missing_options_of_stdin_are_named(arguments, message, numbers):
    text = "a,label\n1,0\n" if arguments[0] == "csv" else ""
    options = ["--learner", "oaa", "-o", numbers / "m", "--format", *arguments]
    done = piped("fit", "-", *options, stdin=text)
    assert done.returncode == 2
    assert all(part in done.stderr for part in message)
    assert done.stderr.count("\n") == 1


def test_tables_and_texts_from_stdin(numbers, texts):
    table = (numbers / "n.csv").read_text()
    options = ["--format", "csv", "--learner", "lomtree", "--n-labels", 8]
    assert piped("fit", "-", *options, "-o", numbers / "m", stdin=table).returncode == 0
    model = xmtree.load(numbers / "m")
    assert model.feature_names_in_.tolist() == [f"x{i}" for i in range(6)]
    del model.feature_names_in_
    expected = xmtree.LOMTreeClassifier(random_state=0).partial_fit(X, Y, np.arange(8))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    done = piped("predict", numbers / "m", "-", "--format", "csv", "-k", 1, stdin=table)
    assert [int(line.split(":")[0]) for line in done.stdout.split()] == model.predict(X).tolist()
    # Texts are streamed only if words are hashed and the labels are given.
    content = (texts / "texts.csv").read_text(encoding="utf-8")
    options = ["fit", "-", "--format", "csv", "-o", texts / "t"]
    assert piped(*options, stdin=content).returncode == 0
    expected = xmtree.TextClassifier(random_state=0).fit(TEXTS, LABELS)
    assert xmtree.load(texts / "t").explain(TEXTS[0]) == expected.explain(TEXTS[0])
    (texts / "classes").write_text("\n".join(sorted(set(LABELS))))
    more = ["--set", "n_bits=14", "--classes", texts / "classes"]
    assert piped(*options, *more, stdin=content).returncode == 0
    expected = xmtree.TextClassifier(n_bits=14, random_state=0)
    expected.partial_fit(TEXTS, LABELS, sorted(set(LABELS)))
    assert xmtree.load(texts / "t").explain(TEXTS[0]) == expected.explain(TEXTS[0])


def test_the_format_of_stdin(texts, numbers):
    done = piped("fit", "-", "-o", texts / "m", stdin="text,label\na,b\n")
    assert done.returncode == 2
    assert "the format of stdin is unknown; give --format xmc, fasttext" in done.stderr
    # Models of texts read plain text; models and learners of numbers read XMC.
    assert run("fit", texts / "texts.csv", "-o", texts / "m") == 0
    done = piped("predict", texts / "m", "-", "-k", 1, stdin="withdraw cash\nplastic\n")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["cash", "card"]
    xmc = (numbers / "xmc.txt").read_text()
    done = piped("fit", "-", "--learner", "oaa", "-o", numbers / "n", stdin=xmc)
    assert done.returncode == 0, done.stderr
    done = piped("fit", "-", "--continue", numbers / "n", "-o", numbers / "n", stdin=xmc)
    assert done.returncode == 0, done.stderr
    assert "600 examples learned" in done.stderr


def test_a_pipe_by_name_is_refused(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.csv")
    assert run("fit", tmp_path / "pipe.csv", "-o", tmp_path / "m") == 2
    assert "is a pipe" in capsys.readouterr().err


def test_unknown_features_need_a_model(numbers, capsys):
    options = ["--learner", "oaa", "--unknown-features", "ignore"]
    assert run("fit", numbers / "n.csv", *options, "-o", numbers / "m") == 2
    assert "needs --continue or --valid" in capsys.readouterr().err
    assert run("fit", numbers / "n.csv", "--learner", "oaa", "-o", numbers / "m") == 0
    files.write_csv(
        numbers / "more.csv",
        {**{f"x{i}": X[:, i] for i in range(6)}, "more": ["yes"] * 300, "label": Y},
    )
    more = ["fit", numbers / "more.csv", "--continue", numbers / "m", "-o", numbers / "n"]
    assert run(*more) == 1
    assert "column 'more' holds 'yes'" in capsys.readouterr().err
    assert run(*more, "--unknown-features", "ignore") == 0
    assert xmtree.load(numbers / "n").n_features_in_ == 6


def test_texts_with_hashed_words_are_streamed(texts):
    options = ["--set", "n_bits=14", "--passes", 1, "-o", texts / "t"]
    assert run("fit", texts / "texts.csv", *options) == 0
    expected = xmtree.TextClassifier(n_bits=14, random_state=0)
    expected.partial_fit(TEXTS, LABELS, sorted(set(LABELS)))
    assert xmtree.load(texts / "t").explain(TEXTS[0]) == expected.explain(TEXTS[0])


def test_inspect_a_text_model(texts, capsys):
    assert run("fit", texts / "texts.csv", "-o", texts / "m") == 0
    capsys.readouterr()
    assert run("inspect", texts / "m") == 0
    out = capsys.readouterr().out
    assert "TextClassifier, OAAClassifier" in out
    assert "card, cash, exchange rate, transfer" in out
    words = set(re.findall(r"\w+", " ".join(TEXTS).lower()))
    assert re.search(rf"words +{len(words)}\n", out)
    assert run("fit", texts / "texts.csv", "--set", "n_bits=9", "-o", texts / "m") == 0
    capsys.readouterr()
    assert run("inspect", texts / "m") == 0
    assert "  words  " not in capsys.readouterr().out


def test_inspect_names_columns(numbers, capsys):
    assert run("fit", numbers / "n.csv", "--learner", "gamble", "-o", numbers / "m") == 0
    assert run("inspect", numbers / "m") == 0
    assert re.search(r"features +6: x0, x1, x2, x3, x4, x5\n", capsys.readouterr().out)
