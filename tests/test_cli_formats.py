"""Formats of the command line train and predict the same as Python."""

import json

import cli_files as files
import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from cli_files import LABELS, NAMES, NUMBER_LABELS, NUMBERS, SETS, TEXTS, run
from model_bytes import rewritten
from xmtree.cli import formats
from xmtree.cli.formats.reader import Batch, joined


def predictions(model, data, capsys, *options):
    capsys.readouterr()
    assert run("predict", model, data, "-k", 3, "--json", *options) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def assert_same(rows, labels, scores):
    """Compare printed predictions with those of ``predict_topk``."""
    assert [row["labels"] for row in rows] == [
        [label for label, score in zip(*pair, strict=True) if score > -np.inf]
        for pair in zip(labels.tolist(), scores.tolist(), strict=True)
    ]
    printed = np.concatenate([row["scores"] for row in rows])
    np.testing.assert_allclose(printed, scores[scores > -np.inf], rtol=1e-4, atol=1e-6)


def error(model, data, capsys, *options):
    capsys.readouterr()
    assert run("evaluate", model, data, "--json", *options) == 0
    return json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(("name", "write"), files.TEXT_FILES)
@pytest.mark.parametrize("sets", [False, True])
def test_texts(name, write, sets, tmp_path, capsys):
    data, model = tmp_path / name, tmp_path / "model"
    labels = SETS if sets else LABELS
    write(data, {"text": TEXTS, "labels" if sets else "label": labels})
    assert run("fit", data, "-o", model) == 0
    assert "OAAClassifier, " in capsys.readouterr().err
    texts = TEXTS
    if write.__name__ != "write_csv" and "txt" in name:
        texts = [" ".join(text.split()) for text in TEXTS]
        joined = [[x.replace(" ", "-") for x in ([y] if isinstance(y, str) else y)] for y in labels]
        labels = joined if sets else [row[0] for row in joined]
    expected = xmtree.TextClassifier(random_state=0).fit(texts, labels)
    found, scores = expected.predict_topk(texts, 3)
    assert_same(predictions(model, data, capsys), found, scores)
    pairs = zip(found[:, 0], labels, strict=True)
    right = [label in row if sets else label == row for label, row in pairs]
    assert error(model, data, capsys) == pytest.approx(1 - np.mean(right))
    # The same in small batches.
    assert_same(predictions(model, data, capsys, "--batch-size", 7), found, scores)


@pytest.mark.parametrize(("name", "write"), files.TABLES)
@pytest.mark.parametrize("learner", ["oaa", "lomtree", "gamble"])
def test_tables_of_numbers(name, write, learner, tmp_path, capsys):
    data, model = tmp_path / name, tmp_path / "model"
    columns = {name: NUMBERS[:, at] for at, name in enumerate(NAMES)}
    write(data, {"label": NUMBER_LABELS, **columns})
    assert run("fit", data, "--learner", learner, "-o", model) == 0
    loaded = xmtree.load(model)
    assert loaded.feature_names_in_.tolist() == NAMES
    assert loaded.classes_.tolist() == [0, 1, 2, 3]
    classes = {cls._short_name: cls for cls in vars(xmtree).values() if hasattr(cls, "_short_name")}
    expected = classes[learner](random_state=0).fit(NUMBERS, NUMBER_LABELS)
    found, scores = expected.predict_topk(NUMBERS, 3)
    assert_same(predictions(model, data, capsys), found, scores)
    assert error(model, data, capsys) == pytest.approx(np.mean(found[:, 0] != NUMBER_LABELS))
    # The order of the columns does not matter, and without labels there are still predictions.
    write(data, dict(reversed(columns.items())))
    assert_same(predictions(model, data, capsys), found, scores)


def test_columns_of_other_names(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    files.write_csv(data, {"id": range(80), "text": ["x"] * 80, "q": TEXTS, "topic": LABELS})
    options = ["--text-column", "q", "--label-column", "topic"]
    assert run("fit", data, *options, "-o", model) == 0
    found, scores = xmtree.TextClassifier(random_state=0).fit(TEXTS, LABELS).predict_topk(TEXTS, 3)
    assert_same(predictions(model, data, capsys, *options), found, scores)
    # By number, without a header.
    lines = data.read_text(encoding="utf-8").split("\n", 1)[1]
    data.write_text(lines.replace(",", ";"), encoding="utf-8")
    numbers = ["--text-column", 2, "--label-column", 3, "--no-header", "--delimiter", ";"]
    assert run("fit", data, *numbers, "-o", tmp_path / "again") == 0
    assert xmtree.load(tmp_path / "again").classes_.tolist() == sorted(set(LABELS))


def test_a_model_remembers_how_its_table_was_read(tmp_path, capsys):
    data, model, bare = tmp_path / "data.csv", tmp_path / "model", tmp_path / "bare.csv"
    files.write_csv(data, {"n": range(80), "Body": TEXTS, "Tag": LABELS}, ";")
    columns = ["--text-column", "Body", "--label-column", "Tag", "--delimiter", ";"]
    assert run("fit", data, *columns, "-o", model) == 0
    assert "unused columns: 'n'\n" in capsys.readouterr().err
    assert error(model, data, capsys) == error(model, data, capsys, *columns)
    files.write_csv(bare, {"Body": TEXTS}, ";")
    expected = predictions(model, bare, capsys, *columns[:2])
    assert predictions(model, bare, capsys) == expected
    # Another file with other columns and another delimiter.
    files.write_csv(bare, {"Text": TEXTS})
    message = ["--text-column", "Text", "--delimiter", ","]
    assert predictions(model, bare, capsys, *message) == expected
    # Without a header.
    data.write_text(data.read_text(encoding="utf-8").split("\n", 1)[1], encoding="utf-8")
    numbers = ["--text-column", 1, "--label-column", 2, "--delimiter", ";"]
    assert run("fit", data, *numbers, "--no-header", "-o", model) == 0
    assert error(model, data, capsys) == 0
    assert predictions(model, bare, capsys, "--header", *message) == expected
    # Other formats do not have these options.
    (tmp_path / "plain").write_text("\n".join(TEXTS), encoding="utf-8")
    assert predictions(model, tmp_path / "plain", capsys, "--format", "text")
    assert run("fit", data, "--continue", model, "-o", tmp_path / "more") == 2  # pruned
    capsys.readouterr()


def test_options_of_tables_in_files_are_checked(tmp_path):
    xmtree.OAAClassifier(random_state=0).fit(NUMBERS, NUMBER_LABELS).save(tmp_path / "model")
    for options in ({"delimiter": 7}, {"ignore_column": [1]}, {"output": "x"}, {"no_header": "y"}):
        rewritten(tmp_path / "model", table_options=options)
        with pytest.raises(xmtree.ModelFileError, match="invalid option"):
            xmtree.load(tmp_path / "model")


def test_an_ignored_column_is_not_a_feature(tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    files.write_csv(data, {"text": TEXTS, "label": LABELS, "n": range(80), "m": range(80)})
    ignore = ["--ignore-column", "text", "--ignore-column", "m"]
    assert run("fit", data, *ignore, "--learner", "oaa", "-o", model) == 0
    assert xmtree.load(model).feature_names_in_.tolist() == ["n"]


@pytest.mark.parametrize(
    ("column", "options", "expected"),
    [
        ("label", [], ["a,b", "c", "d,e"]),
        ("labels", [], ["a", "b", "c", "d", "e"]),
        ("labels", ["--labels", "one"], ["a,b", "c", "d,e"]),
        ("label", ["--labels", "sets"], ["a", "b", "c", "d", "e"]),
        ("label", ["--label-separator", ","], ["a", "b", "c", "d", "e"]),
        ("labels", ["--label-separator", "|"], ["a,b", "c", "d,e"]),
    ],
)
def test_when_labels_are_split(column, options, expected, tmp_path):
    data = tmp_path / "data.csv"
    files.write_csv(data, {"text": ["one", "two", "three"], column: ["a,b", "c", "d,e"]})
    assert run("fit", data, *options, "-o", tmp_path / "m") == 0
    assert xmtree.load(tmp_path / "m").classes_.tolist() == expected


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(["0", "12", "-3"], "i"), (["007", "1", "2"], "U"), (["1.5", "x", "2"], "U")],
)
def test_labels_are_integers_if_all_are(labels, kind, tmp_path, capsys):
    data = tmp_path / "data.csv"
    files.write_csv(data, {"text": ["one", "two", "three"], "label": labels})
    assert run("fit", data, "-o", tmp_path / "m") == 0
    assert xmtree.load(tmp_path / "m").classes_.dtype.kind == kind
    assert error(tmp_path / "m", data, capsys) == 0


def test_plain_text_and_a_column_of_texts_alone(tmp_path, capsys):
    model, plain, column = tmp_path / "m", tmp_path / "plain", tmp_path / "texts.csv"
    expected = xmtree.TextClassifier(random_state=0).fit(files.PLAIN, LABELS)
    expected.save(model)
    found, scores = expected.predict_topk(["", *files.PLAIN], 3)
    plain.write_text("\n" + "\n".join(files.PLAIN) + "\n", encoding="utf-8")
    assert_same(predictions(model, plain, capsys, "--format", "text"), found, scores)
    files.write_csv(column, {"text": files.PLAIN})
    assert_same(predictions(model, column, capsys), found[1:], scores[1:])


def test_missing_numbers_need_a_learner_that_accepts_them(tmp_path, capsys):
    data = tmp_path / "data.csv"
    rows = [["", "1"], ["2", "3"], ["nan", "1"], ["2", "2"]] * 10
    files.write_csv(data, {"a": [a for a, _ in rows], "label": [b for _, b in rows]})
    assert run("fit", data, "--learner", "gamble", "-o", tmp_path / "m") == 0
    assert error(tmp_path / "m", data, capsys) == 0.25
    assert run("fit", data, "--learner", "oaa", "-o", tmp_path / "m") == 1
    assert "row 0, column 0" in capsys.readouterr().err


def test_numbers_without_names_are_taken_by_position(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    files.write_csv(data, {**dict(zip(NAMES, NUMBERS.T, strict=True)), "label": NUMBER_LABELS})
    assert run("fit", data, "--learner", "gamble", "-o", model) == 0
    xmtree.datasets.save_xmc(tmp_path / "data.txt", NUMBERS, NUMBER_LABELS)
    assert predictions(model, tmp_path / "data.txt", capsys) == predictions(model, data, capsys)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text,label\na,b,c\n", "a.csv:2: 3 fields, expected 2"),
        ("a.csv", 'text,label\nx,y\n"a"b,c\n', "a.csv:3: "),
        ("a.csv", 'text,label\n"a,b\n', "a.csv:2: unexpected end of data"),
        ("a.csv", "text,text\na,b\n", "2 columns 'text'"),
        ("a.csv", "review,label\ngood,1\n", "a.csv:2: column 'review' holds 'good'"),
        ("a.csv", "good one,1\nbad one,2\n", "not a header, give --no-header"),
        ("a.csv", "text;label\ngood;1\n", "';' separates the fields, give --delimiter ';'"),
        ("a.csv", "text;label\ngood, or not;1\n", "';' separates the fields, give --delimiter ';'"),
        ("a.csv", "text,topic\na,b\n", "no column 'label' or 'labels'"),
        ("a.csv", "text,label,labels\na,b,c\n", "choose one: --label-column"),
        ("a.csv", "", "holds no examples"),
        ("a.csv", "text,label\n", "holds no examples"),
        ("a.csv", "text,label\na,\n", "a.csv holds no label"),
        ("a.csv", "text,label\na,b\nc,\n", "a.csv:3: 0 labels, expected exactly one"),
        ("a.csv", b"text,label\nx,y\n\xe9,b\n", "a.csv:3: byte 0xe9 is not UTF-8"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', "a.jsonl:2: not JSON"),
        ("a.jsonl", '{"text": "a"}\n[1]\n', "a.jsonl:2: expected an object, got a list"),
        ("a.jsonl", '{"text": 1, "label": 2}\n', "a.jsonl:1: column 'text' holds 1"),
        ("a.jsonl", '{"text": "a", "label": {"b": 1}}\n', "a.jsonl:1: the label {'b': 1}"),
        ("a.jsonl", '{"text": "a", "label": true}\n', "a.jsonl:1: the label True"),
        ("a.jsonl", f'{{"x": 1{"0" * 400}, "label": 1}}\n', "a.jsonl:1: column 'x' holds 1000"),
        ("a.jsonl", f'{{"x": 1{"0" * 5000}, "label": 1}}\n', "a.jsonl:1: an integer has too many"),
        (
            "a.csv",
            "x,label\n1,a\n1_000,b\n",
            "a.csv:3: column 'x' holds '1_000', which is not a num",
        ),
        (
            "a.csv",
            "x,label\n\u0661,a\n",
            "a.csv:2: column 'x' holds '\u0661', which is not a number",
        ),
        ("a.parquet", "no parquet", "a.parquet: "),
        ("a.csv.gz", b"\x1f\x8b\x08\x00abc", "a.csv.gz:1: the gzip data is"),
    ],
)
def test_errors_of_files_name_the_line(name, content, message, tmp_path, capsys):
    data = tmp_path / name
    data.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert run("fit", data, "-o", tmp_path / "m") == 1
    err = capsys.readouterr().err
    assert message in err
    assert str(data) in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", f'{{"x": 1, "label": 1{"0" * 400}}}\n', "an integer of 1329 bits; neither"),
        ("a.jsonl", '{"x": 1, "label": "a"}\n{"x": 1, "label": 2}\n', "different types: int, str"),
        ("a.svm", "9007199254740993 1:1\n", "a.svm:1: label '9007199254740993' would be rounded"),
        ("a.vw", "1 1_0 | a\n", "a.vw:1: the importance must be a finite number"),
    ],
)
@pytest.mark.parametrize("n_passes", [1, 2])
def test_labels_and_numbers_that_would_change_are_refused(
    name, content, message, n_passes, tmp_path, capsys
):
    data = tmp_path / name
    data.write_text(content)
    options = ["--learner", "lomtree", "--passes", n_passes, "-o", tmp_path / "m"]
    assert run("fit", data, *options) == 1
    err = capsys.readouterr().err
    assert message in err
    assert str(data) in err


@pytest.mark.parametrize("n_passes", [1, 2])
def test_integers_and_label_lists_are_kept_as_they_are(n_passes, tmp_path, capsys):
    data, model = tmp_path / "data.jsonl", tmp_path / "model"
    ids = [2**63 + 1, 2**63 + 2, 5, 6] * 10
    X = np.tile(np.eye(4), (10, 1))
    files.write_jsonl(data, {**{f"x{at}": X[:, at] for at in range(4)}, "label": ids})
    options = ["--passes", n_passes, "-o", model, "--learner"]
    assert run("fit", data, *options, "oaa") == 0
    assert xmtree.load(model).classes_.tolist() == sorted(set(ids))
    assert error(model, data, capsys) == 0
    # Label lists must not be read as an indicator.
    files.write_jsonl(data, {"x": [1, 2] * 10, "labels": [[0, 1]] * 20})
    assert run("fit", data, *options, "oaa") == 0
    capsys.readouterr()
    assert run("predict", model, data, "--json") == 0
    assert sorted(json.loads(capsys.readouterr().out.splitlines()[0])["labels"]) == [0, 1]


def test_columns_that_do_not_fit_the_model(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    files.write_csv(data, {"a": [1, 2], "b": [2, 1], "label": [0, 1]})
    assert run("fit", data, "--learner", "oaa", "-o", model) == 0
    files.write_csv(data, {"a": [1, 2]})
    assert run("predict", model, data) == 1
    assert "lacks the model's column 'b'" in capsys.readouterr().err
    files.write_csv(data, {"a": [1, 2], "b": [2, 1], "c": ["x", "y"]})
    assert run("predict", model, data) == 1
    assert "data.csv:2: column 'c' holds 'x'" in capsys.readouterr().err
    files.write_csv(data, {"a": [1, 2], "b": [2, 1], "c": [1, 1]})
    assert run("predict", model, data) == 1
    assert "no feature 'c'" in capsys.readouterr().err
    for column in (["x", "y"], [1, 1]):
        files.write_csv(data, {"c": column, "a": [1, 2], "b": [2, 1]})
        assert len(predictions(model, data, capsys, "--unknown-features", "ignore")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text-column", "txt"], "did you mean 'text'?"),
        (["--delimiter", "ab"], "one character"),
        (["--index-base", "0"], "--index-base is for svmlight"),
        (["--ignore-column", "zzz"], "no column 'zzz'"),
        (["--learner", "gamble", "--labels", "sets"], "one label per row, not sets"),
        (["--passes", "3"], "needs a named --learner"),
        (["--passes", "3", "--learner", "gamble"], "has no passes"),
        (["--set", "word_ngram=2"], "did you mean word_ngrams?"),
        (["--set", "loss=hinge"], "--set loss needs a named --learner"),
        (["--set", "word_ngrams=9"], "word_ngrams"),
        (["--n-labels", "3"], "--n-labels and --classes are only for"),
    ],
)
def test_refused_options_of_texts(arguments, message, tmp_path, capsys):
    data = tmp_path / "data.csv"
    files.write_csv(data, {"text": TEXTS, "label": LABELS})
    assert run("fit", data, *arguments, "-o", tmp_path / "m") != 0
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_settings_are_those_of_the_text_classifier_or_of_its_learner(tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "m"
    files.write_csv(data, {"text": TEXTS, "label": LABELS})
    settings = ["word_ngrams=1", "char_ngrams=[3, 4]", "idf=true", "loss=logistic"]
    more = [word for setting in settings for word in ("--set", setting)]
    more += ["--learner", "oaa", "--passes", 2, "--seed", 5]
    assert run("fit", data, *more, "-o", model) == 0
    expected = xmtree.TextClassifier(
        xmtree.OAAClassifier(loss="logistic", n_passes=2),
        word_ngrams=1,
        char_ngrams=(3, 4),
        idf=True,
        random_state=5,
    ).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(
        xmtree.load(model).predict_topk(TEXTS, 4)[1], expected.predict_topk(TEXTS, 4)[1]
    )


def test_texts_for_a_model_of_numbers_and_the_reverse(tmp_path, capsys):
    texts, numbers = tmp_path / "texts.csv", tmp_path / "numbers.csv"
    files.write_csv(texts, {"text": TEXTS, "label": LABELS})
    files.write_csv(numbers, {"a": NUMBERS[:, 0], "label": NUMBER_LABELS})
    assert run("fit", numbers, "-o", tmp_path / "m") == 2
    err = capsys.readouterr().err
    assert "holds numbers" in err
    assert "gamble, ldsm" in err
    assert run("fit", texts, "-o", tmp_path / "t") == 0
    assert run("fit", numbers, "--learner", "oaa", "-o", tmp_path / "n") == 0
    capsys.readouterr()
    for model, data in (("t", numbers), ("n", texts)):
        for command in ("predict", "evaluate"):
            assert run(command, tmp_path / model, data) == 2
            err = capsys.readouterr().err
            assert "trained on" in err
            assert err.count("\n") == 1


def test_parquet_without_pyarrow(tmp_path, capsys, monkeypatch):
    data = tmp_path / "data.parquet"
    files.write_parquet(data, {"text": TEXTS, "label": LABELS})
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert run("fit", data, "-o", tmp_path / "m") == 1
    assert "pip install pyarrow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first_line", "name"),
    [
        ("2 5 3", "xmc"),
        ("__label__sun hello", "fasttext"),
        ("1 | a:1 b", "vw"),
        ("1 1.0 |f price:.23", "vw"),
        ("'tag |a b", "vw"),
        ("| a", "vw"),
        ('{"label": 1, "text": "hello"}', "jsonl"),
        ("1,2 3:0.5 7:1 # a | b", "svmlight"),
        ("+1 qid:3 1:2", "svmlight"),
        ("label,text", "csv"),
        ('"my text",labels,x', "csv"),
        ("label\ttext, or more", "tsv"),
    ],
)
def test_formats_by_the_first_line(first_line, name, tmp_path):
    data = tmp_path / "data"
    data.write_text(f"\n{first_line}\n")
    assert formats.format_of(str(data), None).name == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.CSV", "csv"),
        ("a.tsv.zst", "tsv"),
        ("a.b.ndjson.gz", "jsonl"),
        ("a.parquet", "parquet"),
        ("a.vw.xz", "vw"),
        ("a.svm", "svmlight"),
        ("a.xmc", "xmc"),
        ("a.ft", "fasttext"),
    ],
)
def test_formats_by_the_name(path, name):
    assert formats.format_of(path, None).name == name


def test_an_unknown_format(tmp_path, capsys):
    data = tmp_path / "data.txt"
    data.write_text("some words\n")
    assert run("fit", data, "-o", tmp_path / "m") == 2
    assert "give --format" in capsys.readouterr().err


def test_batches_with_new_columns_are_joined():
    first = Batch(sp.csr_matrix([[1.0, 2.0]]), None, np.array([0.5]))
    later = Batch(sp.csr_matrix([[0.0, 3.0, 4.0]]), None, np.array([2.0]))
    whole = joined([first, later])
    np.testing.assert_array_equal(whole.rows.toarray(), [[1, 2, 0], [0, 3, 4]])
    assert whole.weights.tolist() == [0.5, 2]
    assert joined([Batch(["a"], None), Batch(["b"], None)]).weights is None
