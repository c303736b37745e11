"""Columns of text in tables, which GAMBLE and SAMME take as categories."""

import csv
import datetime
import json

import cli_files as files
import numpy as np
import pandas as pd
import pytest
import xmtree
from cli_files import run
from xmtree import GambleClassifier, SAMMEClassifier

N = 400
_random = np.random.default_rng(3)
SIZE = _random.normal(size=N).round(3)
COLOR = np.array(["red", "green", "blue", "grey", "7"], object)[_random.integers(0, 5, N)]
#: Numbers in the first 300 rows, and names in the others.
CODE = _random.integers(10, 40, N).astype(str).astype(object)
CODE[300:] = "x" + CODE[300:]
Y = np.isin(COLOR, ["red", "7"]) + 2 * (SIZE > 0) + 4 * (CODE > "3")
COLOR[::9] = None
SIZE[::11] = np.nan
FRAME = pd.DataFrame({"size": SIZE, "color": COLOR, "code": CODE})
FEW = ["--set", "n_estimators=8"]
CLASSES = {"gamble": GambleClassifier, "samme": SAMMEClassifier}
FORMATS = ["csv", "tsv", "jsonl", "parquet"]


def write(path, frame):
    """Write a data frame in the format of the path's ending; missing values are empty or null."""
    rows = [[None if pd.isna(v) else v for v in row] for row in frame.astype(object).to_numpy()]
    columns = dict(zip(frame.columns, map(list, zip(*rows, strict=True)), strict=True))
    {
        ".csv": files.write_csv,
        ".tsv": files.write_tsv,
        ".jsonl": files.write_jsonl,
        ".parquet": files.write_parquet,
    }[path.suffix](path, columns)
    return path


def python_model(cls=GambleClassifier, frame=FRAME, weights=None, **more):
    return cls(n_estimators=8, random_state=0, **more).fit(frame, Y, weights)


def predicted(path):
    """Return labels and scores of a table of predictions."""
    with open(path, newline="") as file:
        _, *rows = csv.reader(file)
    width = len(rows[0]) // 2 * 2
    rows = [row[-width:] for row in rows]
    return [[int(v) for v in row[::2]] for row in rows], [
        [float(v) for v in row[1::2]] for row in rows
    ]


def check(found, expected):
    assert found[0] == expected[0].tolist()
    np.testing.assert_allclose(found[1], expected[1], 1e-5)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("categories")
    data = write(folder / "t.csv", FRAME.assign(label=Y))
    assert run("fit", data, "--learner", "gamble", *FEW, "-o", folder / "model") == 0
    return folder / "model"


@pytest.mark.parametrize("learner", CLASSES)
@pytest.mark.parametrize("ending", FORMATS)
def test_the_model_is_that_of_a_data_frame(ending, learner, tmp_path, capsys):
    data, model, out = tmp_path / f"t.{ending}", tmp_path / "model", tmp_path / "out.csv"
    weights = 1 + np.arange(N) % 3
    ids = [f"row {at}" for at in range(N)]
    write(data, FRAME.assign(label=Y, w=weights, key=ids))
    options = ["--weight-column", "w", "--id-column", "key", "--batch-size", 64]
    assert run("fit", data, "--learner", learner, *FEW, *options, "-o", model) == 0
    assert "columns of categories: 'color' (5), 'code' (60)" in capsys.readouterr().err
    expected, found = python_model(CLASSES[learner], weights=weights), xmtree.load(model)
    assert found._model.to_bytes() == expected._model.to_bytes()
    assert found._category_names == expected._category_names
    assert found.categorical_features == "from_dtype"
    np.testing.assert_array_equal(found.predict_proba(FRAME), expected.predict_proba(FRAME))
    # Other rows, columns in another order, an unseen name, and no ids.
    part = FRAME.iloc[250:350].reset_index(drop=True)
    part.loc[3, "color"], part.loc[4, "color"] = "pink", None
    write(tmp_path / f"new.{ending}", part[["code", "size", "color"]])
    for more in ([], ["--batch-size", 7]):
        command = ["predict", model, tmp_path / f"new.{ending}", "-k", 8, *more, "-o", out]
        assert run(*command) == 0
        check(predicted(out), expected.predict_topk(part, 8))
    assert run("predict", model, data, "-k", 8, "-o", out) == 0
    check(predicted(out), expected.predict_topk(FRAME, 8))
    with open(out, newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ids
    assert run("evaluate", model, data, "--train", data, "--json") == 0
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == pytest.approx(np.mean(expected.predict(FRAME) != Y))


def test_explain(model, tmp_path):
    data, out = write(tmp_path / "new.csv", FRAME[["code", "color", "size"]]), tmp_path / "o.jsonl"
    assert run("explain", model, data, "--top", 3, "-o", out) == 0
    expected = python_model().contributions(FRAME)
    for line, row in zip(out.read_text().splitlines(), expected, strict=True):
        found = json.loads(line)
        shown = dict(zip(found["features"], found["contributions"], strict=True))
        by_name = {n: shown.get(n, 0) for n in FRAME.columns}
        np.testing.assert_allclose(list(by_name.values()), row[:3], 1e-4, 1e-6)
        assert found["base"] == pytest.approx(row[3], 1e-4)


def test_models_of_data_frames(tmp_path):
    # Names or, without them, column numbers; the file has text where the frame had some numbers.
    data, out = write(tmp_path / "t.csv", FRAME), tmp_path / "out.csv"
    plain = tmp_path / "plain.csv"
    plain.write_text("".join(data.read_text().splitlines(True)[1:]))
    mixed = FRAME.assign(code=[int(v) if at < 300 else v for at, v in enumerate(CODE)])
    for frame in (FRAME, mixed):
        for names, more in ((FRAME.columns, [data]), (range(3), [plain, "--no-header"])):
            expected = python_model(frame=frame.set_axis(names, axis=1))
            expected.save(tmp_path / "model")
            assert run("predict", tmp_path / "model", *more, "-k", 8, "-o", out) == 0
            check(predicted(out), expected.predict_topk(frame.set_axis(names, axis=1), 8))


def test_declared_columns(tmp_path, capsys):
    zips = (10000 + 7 * (np.arange(N) % 20)).tolist()
    frame = FRAME.assign(zip=zips, label=Y)
    data, model = write(tmp_path / "t.csv", frame), tmp_path / "model"
    given = ["zip", "color", "code"]
    fit = ["fit", data, "--learner", "gamble", *FEW, "-o", model, "--set"]
    expected = python_model(frame=frame.drop(columns="label"), categorical_features=given)
    for text in (json.dumps(given), "[3, 1, 2]", "[false, true, true, true]"):
        assert run(*fit, f"categorical_features={text}") == 0
        found = xmtree.load(model)
        assert found._model.to_bytes() == expected._model.to_bytes()
        assert run("predict", model, data, "-k", 8, "-o", tmp_path / "out.csv") == 0
        wanted = expected.predict_topk(frame.drop(columns="label"), 8)
        check(predicted(tmp_path / "out.csv"), wanted)
    capsys.readouterr()
    for text, message in [
        ('["zip"]', "t.csv:4: column 'color' holds 'grey', which is not a number"),
        ('["zip"]', "; or name it in categorical_features"),
        ('["zap"]', "categorical_features contains 'zap', which is not a column name"),
        ("none", "t.csv:4: column 'color' holds 'grey', which is not a number"),
    ]:
        assert run(*fit, f"categorical_features={text}") == 1
        assert message in capsys.readouterr().err
    write(data, frame.assign(zip=[2**24 + at for at in range(N)]))
    assert run(*fit, f"categorical_features={json.dumps(given)}") == 1
    assert "equals another in single precision" in capsys.readouterr().err


def test_stdin_tuning_and_validation(model, tmp_path, capsys):
    data = write(tmp_path / "t.csv", FRAME.assign(label=Y))
    fit = ["--learner", "gamble", *FEW, "-o", tmp_path / "m"]
    found = files.piped("fit", "-", "--format", "csv", *fit, stdin=data.read_text())
    assert found.returncode == 0
    assert xmtree.load(tmp_path / "m")._model.to_bytes() == xmtree.load(model)._model.to_bytes()
    small = ["--batch-size", 100]
    found = files.piped("fit", "-", "--format", "csv", *fit, *small, stdin=data.read_text())
    assert found.returncode == 1
    assert "<stdin>: column 'code' holds text after a batch of numbers; use a file" in found.stderr
    assert run("fit", data, *fit, "--tune", 2, "--valid", data) == 0
    tuned = xmtree.load(tmp_path / "m")
    assert f"error {np.mean(tuned.predict(FRAME) != Y):.4f} " in capsys.readouterr().err
    assert tuned.categorical_features == "from_dtype"


@pytest.mark.parametrize("learner", ["gamble", "samme"])
def test_boosting_stops_early_by_the_rows_of_valid(learner, tmp_path, capsys):
    train, valid = FRAME[::2], FRAME[1::2]
    data = write(tmp_path / "t.csv", train.assign(label=Y[::2], weight=1.0))
    weights = np.linspace(0, 1, len(valid))
    more = {"label": Y[1::2], "weight": weights}
    valid_data = write(
        tmp_path / "v.csv", valid.assign(**more)[["code", "label", "weight", "color", "size"]]
    )
    options = ["--learner", learner, "--weight-column", "weight", "-o", tmp_path / "m"]
    options += ["--set", "n_estimators=60", "--set", "early_stopping=true", "--valid"]
    assert run("fit", data, *options, valid_data) == 0
    model = CLASSES[learner](n_estimators=60, early_stopping=True, random_state=0)
    model.fit(train, Y[::2], X_val=valid, y_val=Y[1::2], sample_weight_val=weights)
    found = xmtree.load(tmp_path / "m")
    assert found._model.to_bytes() == model._model.to_bytes()
    assert found.evals_result_["error"].tolist() == model.evals_result_["error"].tolist()
    lacking = write(tmp_path / "w.csv", valid.assign(**more).drop(columns="size"))
    assert run("fit", data, *options, lacking) == 1
    assert "w.csv lacks the model's column 'size'" in capsys.readouterr().err


@pytest.mark.parametrize("learner", ["oaa", "lomtree", "ldsm", "auto"])
def test_other_learners_refuse_text(learner, tmp_path, capsys):
    frame = FRAME.assign(label=Y).dropna()
    data = write(tmp_path / "t.csv", frame[frame.color != "7"])
    assert run("fit", data, "--learner", learner, "-o", tmp_path / "m") == 1
    error = capsys.readouterr().err
    assert "t.csv:2: column 'color' holds 'grey', which is not a number; " in error
    assert "--learner gamble and samme also take text, as categories" in error
    assert not (tmp_path / "m").exists()


def test_wrong_values_are_refused(model, tmp_path, capsys):
    row = {"size": 1.0, "color": "red", "code": "x12"}
    for ending, value, message in [
        ("jsonl", 5, "new.jsonl:2: column 'color' holds 5, which is not text, as all that the mod"),
        ("jsonl", ["red"], "new.jsonl:2: column 'color' holds ['red'], which is not text"),
        ("parquet", 5, "new.parquet, row 0: column 'color' holds 5, which is not text"),
    ]:
        values = [value, value] if ending == "parquet" else ["red", value]
        columns = {name: [v, v] for name, v in row.items()} | {"color": values}
        path = tmp_path / f"new.{ending}"
        (files.write_parquet if ending == "parquet" else files.write_jsonl)(path, columns)
        assert run("predict", model, path) == 1
        assert message in capsys.readouterr().err
    for day in (datetime.date(2020, 1, 1), ["a list"]):
        path = tmp_path / "days.parquet"
        files.write_parquet(path, {"day": [day] * 4, "label": [0, 1, 0, 1]})
        assert run("fit", path, "--learner", "gamble", "-o", tmp_path / "m") == 1
        message = f"row 0: column 'day' holds {day!r}, which is neither text nor a number"
        assert message in capsys.readouterr().err
    (tmp_path / "n.svm").write_text("1 1:0 2:1 3:1\n")
    assert run("predict", model, tmp_path / "n.svm") == 2
    message = "n.svm, read as svmlight, cannot hold; use csv, tsv, jsonl or parquet"
    assert message in capsys.readouterr().err
