"""Tables on the command line: columns of weights and ids, and tables of predictions."""

import csv
import json
import os
import re
import stat

import cli_files as files
import numpy as np
import pytest
import xmtree
from cli_files import LABELS, TEXTS, run

WEIGHTS = (np.arange(len(TEXTS)) % 4).astype(float)
IDS = [f'q "{at}", x' for at in range(len(TEXTS))]
COLUMNS = {"text": TEXTS, "label": LABELS, "w": WEIGHTS.tolist(), "ticket": IDS}
_random = np.random.default_rng(5)
X = _random.normal(size=(200, 3)).astype(np.float32)
Y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)


def write(path, columns):
    """Write columns in the format of the path's ending."""
    if path.suffix == ".parquet":
        files.write_parquet(path, columns)
    elif path.suffix == ".jsonl":
        rows = zip(*columns.values(), strict=True)
        path.write_text(
            "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
        )
    else:
        with open(path, "w", newline="") as out:
            table = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else ",")
            table.writerow(columns)
            table.writerows(zip(*columns.values(), strict=True))
    return path


def read(path):
    """Return the rows of a table of predictions."""
    with open(path, newline="") as file:
        return list(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.fixture(params=["csv", "tsv", "jsonl", "parquet"])
def table(request, tmp_path):
    return write(tmp_path / f"data.{request.param}", COLUMNS)


def test_weights_and_ids(table, tmp_path, capsys):
    model = tmp_path / "model"
    roles = ["--weight-column", "w", "--id-column", "ticket"]
    assert run("fit", table, "--learner", "oaa", *roles, "-o", model) == 0
    assert "unused" not in capsys.readouterr().err
    found = xmtree.load(model)
    expected = xmtree.TextClassifier(xmtree.OAAClassifier(), random_state=0)
    expected.fit(TEXTS, LABELS, WEIGHTS)
    np.testing.assert_array_equal(found.predict_topk(TEXTS)[1], expected.predict_topk(TEXTS)[1])
    # The model remembers both columns.
    labels, scores = expected.predict_topk(TEXTS, 2)
    for name in ("out.csv", "OUT.TSV", "out.jsonl", "out.ndjson"):
        out = tmp_path / name
        assert run("predict", model, table, "-k", 2, "-o", out, "--batch-size", 7) == 0
        if "json" in name:
            rows = [json.loads(line) for line in out.read_text().splitlines()]
            assert [row["id"] for row in rows] == IDS
            assert [row["labels"] for row in rows] == labels.tolist()
            continue
        out = out.rename(out.with_suffix(out.suffix.lower()))
        header, *rows = read(out)
        assert header == ["id", "label_1", "score_1", "label_2", "score_2"]
        assert [row[0] for row in rows] == IDS
        assert [[row[1], row[3]] for row in rows] == labels.tolist()
        np.testing.assert_allclose([[float(row[2]), float(row[4])] for row in rows], scores, 1e-5)


def test_numbers_with_weights_in_a_stream(tmp_path):
    columns = {"a": X[:, 0], "w": np.ones(200), "b": X[:, 1], "id": np.arange(200), "label": Y}
    columns["w"][::3] = 0
    table, model = write(tmp_path / "n.csv", columns), tmp_path / "model"
    roles = ["--weight-column", "w", "--id-column", "id"]
    for more in (["--passes", 1], ["--passes", 2], ["--passes", 1, "--batch-size", 64]):
        assert run("fit", table, "--learner", "lomtree", *roles, *more, "-o", model) == 0
        found = xmtree.load(model)
        assert found.feature_names_in_.tolist() == ["a", "b"]
    expected = xmtree.LOMTreeClassifier(random_state=0)
    for part in np.array_split(np.arange(200), [64, 128, 192]):
        expected.partial_fit(X[part, :2], Y[part], range(4), columns["w"][part])
    del found.feature_names_in_
    np.testing.assert_array_equal(
        found.predict_topk(X[:, :2], 2)[1], expected.predict_topk(X[:, :2], 2)[1]
    )
    # Ids and weights need not be in later files, nor in the validation file.
    less = write(tmp_path / "less.csv", {"b": X[:, 1], "label": Y, "a": X[:, 0]})
    assert run("predict", model, less, "-o", tmp_path / "p.csv", "-k", 99) == 0
    assert read(tmp_path / "p.csv")[0] == [
        f"{x}_{at}" for at in range(1, 5) for x in ("label", "score")
    ]
    assert run("evaluate", model, less, "--train", less) == 0
    assert run("fit", table, "--learner", "oaa", *roles, "--valid", less, "-o", model) == 0
    # Another id, and the true label beside the predictions.
    for name in ("w", "label"):
        assert run("predict", model, table, "--id-column", name, "-o", tmp_path / "p.csv") == 0
        assert [row[0] for row in read(tmp_path / "p.csv")[1:3]] == [
            str(x) for x in columns[name][:2]
        ]


def test_missing_labels_are_empty_cells(tmp_path):
    table, model = write(tmp_path / "t.csv", COLUMNS), tmp_path / "model"
    assert run("fit", table, "-o", model) == 0
    out = tmp_path / "p.csv"
    options = ["-k", 3, "--scores", "probability", "--threshold", 0.3, "-o", out]
    assert run("predict", model, table, *options) == 0
    header, *rows = read(out)
    assert header[0] == "label_1"
    assert {len(row) for row in rows} == {6}
    assert any(row[2:] == ["", "", "", ""] for row in rows)


def test_a_table_without_a_header_and_with_tabs(tmp_path):
    lines = [f"{text.replace(chr(10), ' ')}\t{label}\t{at}\n" for at, (text, label) in enumerate(
        zip(TEXTS, LABELS, strict=True))]  # fmt: skip
    data, model = tmp_path / "plain.csv", tmp_path / "model"
    data.write_text("".join(lines).replace('"', ""))
    columns = ["--text-column", 0, "--label-column", 1, "--id-column", 2]
    assert run("fit", data, "--no-header", "--delimiter", r"\t", *columns, "-o", model) == 0
    out = tmp_path / "p.tsv"
    assert run("predict", model, data, "-k", 1, "-o", out) == 0
    assert [row[0] for row in read(out)[1:]] == [str(at) for at in range(len(TEXTS))]


WRONG_WEIGHTS = ["", "-1", "nan", "inf", "two", "1e39", "1_0"]


@pytest.mark.parametrize("weight", WRONG_WEIGHTS)
def test_wrong_weights_are_refused(weight, tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text(f"text,label,w\nred card,a,1\nblue card,b,{weight}\n")
    assert run("fit", data, "--weight-column", "w", "-o", tmp_path / "m") == 1
    message = f"data.csv:3: column 'w' holds {weight!r}, expected a weight, a finite number of 0 or"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_wrong_options_are_refused(tmp_path, capsys):
    table, model = write(tmp_path / "t.csv", COLUMNS), tmp_path / "model"
    assert run("fit", table, "-o", model) == 0
    plain = tmp_path / "plain.txt"
    plain.write_text("my card\n")
    fit, predict = ["fit", table, "-o", tmp_path / "m"], ["predict", model, table]
    for arguments, code, message in [
        ([*fit, "--weight-column", "weight"], 1, "--weight-column: .*no column 'weight'"),
        ([*fit, "--id-column", "tickets"], 1, "no column 'tickets'; did you mean 'ticket'"),
        ([*fit, "--id-column", "w", "--weight-column", "w"], 2, "--weight-column and --id-column"),
        ([*fit, "--id-column", "text", "--text-column", "text"], 2, "are both 'text'"),
        ([*predict, "--id-column", "ticket"], 2, "lines of text have no ids"),
        ([*predict, "-o", tmp_path / "p.csv", "--json"], 2, "--json does not suit"),
        ([*predict, "-o", tmp_path / "p.csv.gz"], 2, "does not write compressed files"),
        ([*predict, "-o", tmp_path / "p.parquet"], 2, "does not write parquet"),
        ([*predict, "-o", tmp_path / "no" / "p.csv"], 1, "p.csv: No such file"),
        (
            ["predict", model, plain, "--format", "text", "--json", "--id-column", "x"],
            2,
            "--id-column is for",
        ),
    ]:
        assert run(*arguments) == code, arguments
        assert re.search(message, capsys.readouterr().err), arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "plain.txt", "t.csv"]


def test_an_error_keeps_the_output_of_before(tmp_path, capsys):
    table, model = write(tmp_path / "t.csv", COLUMNS), tmp_path / "model"
    assert run("fit", table, "--id-column", "ticket", "-o", model) == 0
    out, link = tmp_path / "out.csv", tmp_path / "link.csv"
    assert run("predict", model, table, "-o", out) == 0
    before = out.read_bytes()
    broken = tmp_path / "broken.csv"
    broken.write_bytes(table.read_bytes() + b"one field\n")
    assert run("predict", model, broken, "-o", out, "--batch-size", 8) == 1
    assert "broken.csv:" in capsys.readouterr().err
    assert out.read_bytes() == before
    assert not list(tmp_path.glob(".out*"))
    # A link keeps its target, a file its permissions, and the input may be the output.
    out.chmod(0o640)
    link.symlink_to(out)
    assert run("predict", model, table, "-k", 1, "-o", link) == 0
    assert link.is_symlink()
    assert len(read(out)[0]) == 3
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert run("predict", model, table, "-o", table) == 0
    assert table.read_bytes() == before
    assert run("predict", model, broken, "-o", os.devnull) == 1


@pytest.mark.parametrize(
    ("text", "options", "hint"),
    [
        ("a;label\n1;x\n", [], "if ';' separates the fields, give --delimiter ';'"),
        ("a\tlabel\n1\tx\n", [], r"if '\t' separates the fields, give --delimiter '\t'"),
        ("a,label\n1,x\n", ["--delimiter", ";"], "if ',' separates the fields, give --delimiter"),
        ("1,x\n2,y\n", [], "if the first row is an example and not a header, give --no-header"),
        ("a;label\n1;x\n", ["--label-column", "label"], "give --delimiter ';'"),
        ("1,x\n2,y\n", ["--label-column", "label"], "give --no-header"),
        ("a label\n1 x\n", ["--delimiter", ";"], "';' may not separate the fields"),
    ],
)  # fmt: skip
def test_hints(text, options, hint, tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text(text)
    assert run("fit", data, "--learner", "gamble", *options, "-o", tmp_path / "m") == 1
    assert hint in capsys.readouterr().err


def test_hints_where_a_model_takes_other_rows(tmp_path, capsys):
    table, model = write(tmp_path / "t.csv", COLUMNS), tmp_path / "model"
    assert run("fit", table, "-o", model) == 0
    other = tmp_path / "other.csv"
    other.write_text("1,2\n3,4\n")
    assert run("predict", model, other) == 2
    error = capsys.readouterr().err
    assert "other.csv holds numbers; name the column of texts by --text-column; if the" in error
    assert "--no-header" in error
