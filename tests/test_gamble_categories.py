"""Category names in data frames, with ``categorical_features="from_dtype"`` or column names."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xmtree
from xmtree import ActiveGamble, GambleClassifier, SAMMEClassifier

COLORS = ["red", "green", "blue", "grey", "black"]


def table(n=300):
    random = np.random.default_rng(0)
    color = random.integers(0, 5, n)
    size = random.normal(size=n)
    return size, color, np.isin(color, [0, 3]).astype(int) + 2 * (size > 0)


def pandas_frame(size, color, dtype="category"):
    names = pd.Series(np.array(COLORS, object)[color]).astype(dtype)
    return pd.DataFrame({"size": size, "color": names})


def polars_frame(size, color, dtype=pl.Categorical):
    names = pl.Series(np.array(COLORS)[color].tolist()).cast(dtype)
    return pl.DataFrame({"size": size, "color": names})


FRAMES = {
    "pandas": (pandas_frame, "category"),
    "pandas object": (pandas_frame, object),
    "pandas string": (pandas_frame, "string"),
    "polars": (polars_frame, pl.Categorical),
    "polars enum": (polars_frame, pl.Enum(COLORS)),
    "polars string": (polars_frame, pl.String),
}


@pytest.mark.parametrize("cls", [GambleClassifier, SAMMEClassifier])
@pytest.mark.parametrize(("frame", "dtype"), FRAMES.values(), ids=FRAMES)
def test_names_are_numbered(frame, dtype, cls, tmp_path):
    size, color, y = table()
    # black, blue, green, grey, red: numbered in the order of the names.
    numbers = np.array([4, 2, 1, 3, 0])[color]
    settings = {"n_estimators": 5, "random_state": 0}
    plain = cls(categorical_features=[1], **settings).fit(np.column_stack([size, numbers]), y)
    for way in (["color"], [1], [False, True], "from_dtype"):
        model = cls(categorical_features=way, **settings).fit(frame(size, color, dtype), y)
        assert model._model.to_bytes() == plain._model.to_bytes()
    model.save(tmp_path / "model")
    for again in (model, xmtree.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        # A frame whose categories have other numbers and are incomplete.
        few = frame(size[color == 3], color[color == 3], dtype)
        np.testing.assert_array_equal(again.predict(few), y[color == 3])
        np.testing.assert_array_equal(
            again.decision_function(few),
            plain.decision_function(np.column_stack([size, numbers])[color == 3]),
        )


def test_unseen_names_go_to_the_heavier_side():
    color = np.array([0, 0, 0, 1, 2] * 20)
    frame = pandas_frame(np.zeros(100), color)[["color"]]
    model = GambleClassifier(
        **GambleClassifier.PAPER | {"n_estimators": 1, "max_leaves": 2},
        categorical_features="from_dtype",
    ).fit(frame, color == 0)
    unseen = pd.DataFrame({"color": pd.Series(["pink"], dtype="category")})
    assert model.predict(unseen).tolist() == [True]
    assert model.predict(frame[3:4]).tolist() == [False]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_name_is_a_category(missing):
    names = pd.Series(["a", "b", missing] * 30, dtype="category")
    frame = pd.DataFrame({"name": names})
    y = names.isna().to_numpy()
    settings = {"n_estimators": 3, "categorical_features": "from_dtype", "random_state": 0}
    model = GambleClassifier(**settings).fit(frame, y)
    assert model.score(frame, y) == 1
    frame = pl.DataFrame({"name": pl.Series(["a", "b", None] * 30, dtype=pl.Categorical)})
    assert GambleClassifier(**settings).fit(frame, y).score(frame, y) == 1


def test_numbers_as_categories_stay_numbers():
    size, color, y = table()
    frame = pd.DataFrame({"size": size, "color": pd.Series(10 * color).astype("category")})
    model = GambleClassifier(n_estimators=3, categorical_features="from_dtype", random_state=0)
    X = np.column_stack([size, 10 * color])
    other = GambleClassifier(n_estimators=3, categorical_features=[1], random_state=0).fit(X, y)
    assert model.fit(frame, y)._model.to_bytes() == other._model.to_bytes()
    # A column of numbers or booleans is categorical only if it is named.
    objects = pd.Series([0, 1.5, None] * 100, dtype=object)
    plain = pd.DataFrame({"size": size, "large": size > 0, "objects": objects})
    assert model.fit(plain, y)._model.params["categorical_features"] == []


def test_errors_name_the_column():
    size, color, y = table()
    frame = pandas_frame(size, color)
    model = GambleClassifier(n_estimators=30, random_state=0).fit(frame, y)
    with pytest.raises(TypeError, match=r"column 1 of X held .* data frame, got ndarray"):
        model.predict(np.column_stack([size, color]))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["size"]])
    frame["when"] = pd.Series(pd.date_range("2020-01-01", periods=300)).astype("category")
    with pytest.raises(TypeError, match=r"column 'when' .* type Timestamp.*strings or numbers"):
        model.fit(frame, y)
    assert model.score(frame[["size", "color"]], y) > 0.9
    frame["when"] = [["a"]] * 300
    with pytest.raises(TypeError, match=r"column 'when' contains .* type list.*strings or numbers"):
        GambleClassifier(categorical_features=["when"]).fit(frame, y)
    for values in ([datetime.date(2020, 1, 1)] * 300, pd.date_range("2020-01-01", periods=300)):
        for form in (pd.DataFrame, pl.DataFrame):
            with pytest.raises((TypeError, ValueError), match=r"column 'when'.*number of days"):
                model.fit(form({"size": size, "when": values}), y)
        objects = pd.DataFrame({"when": pd.Series(list(values), dtype=object)})
        with pytest.raises(TypeError, match=r"column 'when' contains the category .*of days"):
            model.fit(objects, y)
    with pytest.raises(TypeError, match=r"'color' held strings in fit and now .* number 4"):
        model.predict(pd.DataFrame({"size": size, "color": color}))
    plain = GambleClassifier(categorical_features=None)
    with pytest.raises(ValueError, match=r'categorical_features .*"from_dtype"'):
        plain.fit(pandas_frame(size, color, object), y)
    with pytest.raises(ValueError, match=r"'color' of X holds categories, which active learning"):
        ActiveGamble().fit(pandas_frame(size, color), y)


def test_any_number_of_categories():
    color = np.arange(3000) % 1000
    y = np.random.default_rng(0).integers(0, 3, 1000)[color]
    frame = pd.DataFrame({"color": pd.Series(color).astype(str)})
    model = GambleClassifier(n_estimators=20, random_state=0).fit(frame, y)
    assert model.score(frame, y) == 1


@pytest.mark.parametrize("cls", [GambleClassifier, SAMMEClassifier])
def test_many_names_of_one_row_are_not_learned(cls):
    random = np.random.default_rng(0)
    x = random.normal(size=800)
    y = (x > 0) ^ (random.random(800) < 0.2)
    frame = pd.DataFrame({"x": x, "id": [f"n{i}" for i in range(800)]})
    train, test = slice(None, 400), slice(400, None)

    def score(columns):
        model = cls(n_estimators=10, random_state=0).fit(frame[columns][train], y[train])
        return model.score(frame[columns][test], y[test])

    assert score(["x", "id"]) > score(["x"]) - 0.05


def test_a_column_without_values_may_have_any_type():
    frame = pd.DataFrame({"x": [0.0, 1] * 20, "s": pd.Series([None] * 40, dtype="string")})
    model = GambleClassifier(n_estimators=3, random_state=0).fit(frame, [0, 1] * 20)
    assert model.score(frame, [0, 1] * 20) == 1
