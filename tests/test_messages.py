"""Messages name the problem in the user's words and what to do."""

import estimators
import numpy as np
import pandas as pd
import pytest
import xmtree
from sklearn.exceptions import NotFittedError
from xmtree.cli import main

X = np.repeat(np.eye(2), 20, axis=0)
Y = np.repeat([0, 1], 20)
TEXTS = ["a text", "and another"] * 20


class Shallow(xmtree.LOMTreeClassifier):
    """A subclass as users write it: fewer arguments, a new one, the rest fixed."""

    def __init__(self, *, n_passes=3, note="", random_state=None):
        super().__init__(n_passes=n_passes, loss="logistic", random_state=random_state)
        self.note = note


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", ["oaa", "gamble", "ldsm"])
@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        np.array(TEXTS),
        pd.Series(TEXTS),
        [[text] for text in TEXTS],
        pd.DataFrame({"text": TEXTS, "length": 3}),
    ],
    ids=["list", "array", "series", "column", "frame"],
)
def test_text_as_x_points_to_vectorizers(name, texts):
    # Boosting takes the strings of a data frame as categories.
    if name != "gamble" or not isinstance(texts, pd.DataFrame):
        with pytest.raises(ValueError, match=r"'a text'.* must contain numbers; .*TfidfVectorizer"):
            estimators.ALL[name]().fit(texts, Y)
    model = estimators.ALL[name]().fit(X, Y)
    with pytest.raises(ValueError, match=r"X must contain numbers; .*TfidfVectorizer"):
        model.predict(texts)


class Arrow:
    """The methods of a pyarrow array that this package uses, without pyarrow."""

    def __init__(self, values):
        self.values = values

    def to_pylist(self):
        return self.values


def test_lists_of_pyarrow_are_label_lists():
    lists = [["a", "b"], ["c"]] * 20
    X = np.tile(np.eye(2), (20, 1))
    model = xmtree.OAAClassifier(random_state=0).fit(X, Arrow(lists))
    assert model.predict(X) == lists
    one = xmtree.OAAClassifier(random_state=0).fit(X, Arrow(["a", "c"] * 20))
    assert one.predict(X).tolist() == ["a", "c"] * 20
    found = xmtree.metrics.precision_at_k(Arrow(lists), model.predict_topk(X, 1)[0], 1)
    assert found == 1


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        ((int(label) for label in Y), "generator"),
        (map(int, Y), "map"),
        (set(Y), "set"),
        (dict(enumerate(Y)), "dict"),
        ("ab", "str"),
        (3, "int"),
    ],
    ids=["generator", "map", "set", "dict", "str", "int"],
)
def test_y_that_is_not_a_sequence(y, kind):
    with pytest.raises(ValueError, match=rf"y is of type {kind}; .*list\(y\)"):
        xmtree.OAAClassifier().fit(X, y)


@pytest.mark.parametrize("name", ["lomtree", "recall-tree", "filter-tree", "gamble", "samme"])
@pytest.mark.parametrize("y", [[["a"], ["b", "c"]] * 20, np.eye(2, dtype=int)[Y]])
def test_label_sets_for_a_learner_of_one_label(name, y):
    learners = "LdSMClassifier, OAAClassifier and RandomTreeClassifier learn label sets"
    with pytest.raises(ValueError, match=f"one label per row; {learners}"):
        estimators.ALL[name]().fit(X, y)


@pytest.mark.parametrize("form", [list, np.array])
def test_labels_are_shown_as_the_user_writes_them(form, tmp_path, capsys):
    with pytest.raises(ValueError, match="contains the label 'a' twice"):
        xmtree.OAAClassifier().fit(X, [form(["a", "a"]), form(["b"])] * 20)
    model = xmtree.OAAClassifier().fit(X, form(["a", "b"] * 20))
    model.save(tmp_path / "model")
    (tmp_path / "test.svm").write_text("0 1:1\n1 2:1\n")
    assert main(["evaluate", str(tmp_path / "model"), str(tmp_path / "test.svm")]) == 1
    assert "('a', ...)" in capsys.readouterr().err


def test_a_subclass_is_restored_from_its_file(tmp_path):
    path = tmp_path / "model"
    model = Shallow(n_passes=2, note="mine", random_state=0).fit(X, Y)
    # Parameters that the constructor sets count, even if they are not its arguments.
    assert model._fitted_params()["loss"] == "logistic"
    model.save(path)
    again = xmtree.load(path)
    assert type(again) is Shallow
    assert again.note == "mine"
    estimators.same_predictions(again, model, X)
    for learner in (model, again):
        learner.partial_fit(X, Y)
    estimators.same_predictions(again, model, X)
    # Another class of the same name is refused, and loading never imports a class.
    del xmtree._persistence.LEARNERS[f"{__name__}.Shallow"]
    with pytest.raises(
        xmtree.ModelFileError, match=r"has no class test_messages.Shallow; .* import"
    ):
        xmtree.load(path)
    xmtree._persistence.LEARNERS[f"{__name__}.Shallow"] = Shallow


def test_a_subclass_does_not_replace_another(tmp_path):
    own = type("LOMTreeClassifier", (xmtree.LOMTreeClassifier,), {"__module__": "elsewhere"})
    xmtree.LOMTreeClassifier().fit(X, Y).save(tmp_path / "model")
    assert type(xmtree.load(tmp_path / "model")) is xmtree.LOMTreeClassifier
    own().fit(X, Y).save(tmp_path / "model")
    assert type(xmtree.load(tmp_path / "model")) is own
    assert xmtree.cli.models.names()["lomtree"] is xmtree.LOMTreeClassifier


def test_save_names_the_path_that_was_given(tmp_path):
    path = tmp_path / "absent" / "model"
    with pytest.raises(FileNotFoundError) as caught:
        xmtree.LOMTreeClassifier().fit(X, Y).save(path)
    assert caught.value.filename == str(path)
    assert "tmp" not in str(caught.value).replace(str(tmp_path), "")


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_missing_labels_and_models_that_are_not_fitted_are_named(name):
    model = estimators.ALL[name]()
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)
    with pytest.raises(NotFittedError, match=type(model).__name__):
        model.predict(X)


FOREIGN = {
    "CSV": ["label,text\n1,hello\n", "1,0.5,2.5\n0,3,4\n", "label\ttext\n1\thello\n"],
    "JSON": ['{"label": 1, "text": "hello"}\n', '[{"label": 1}]\n'],
    "fastText's format": ["__label__sun hello\n", "__label__a __label__b 1:1\n"],
    "Vowpal Wabbit's format": ["1 | a:1 b\n", "1 1.0 |f price:.23\n"],
}


@pytest.mark.parametrize("model", ["oaa", "gamble"])
@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in FOREIGN.items() for text in texts]
)
def test_files_of_other_formats(name, text, model, tmp_path, capsys):
    (tmp_path / "train").write_text(text)
    fit = ["fit", str(tmp_path / "train"), "--learner", model, "-o", str(tmp_path / "model")]
    for form in ("xmc", "svmlight"):
        assert main([*fit, "--format", form]) == 1
        message = capsys.readouterr().err
        assert "train:1: " in message
        assert f"this looks like {name}, but only svmlight" in message
        assert "XMC text" in message


def test_only_the_first_line_decides_the_format(tmp_path):
    (tmp_path / "train").write_text("1 1:1\n1 | a:1\n")
    with pytest.raises(ValueError, match=r"train:2: '\|' is not of the form index:value$"):
        xmtree.datasets.load_svmlight(tmp_path / "train")


@pytest.mark.parametrize("model", ["oaa", "ldsm", "gamble"])
@pytest.mark.parametrize("passes", [[], ["--passes", "1"]])
def test_an_xmc_file_with_only_a_header(model, passes, tmp_path, capsys):
    if passes and model != "oaa":
        pytest.skip("has no passes")
    (tmp_path / "train").write_text("0 5 3\n")
    fit = ["fit", str(tmp_path / "train"), "--learner", model, "-o", str(tmp_path / "model")]
    assert main([*fit, *passes]) == 1
    assert "train holds no examples" in capsys.readouterr().err


def test_an_index_off_by_one_hints_at_the_index_base(tmp_path, capsys):
    path = tmp_path / "train"
    path.write_text("0 1:1\n1 3:1\n")
    load = xmtree.datasets.load_svmlight
    with pytest.raises(ValueError, match=r"index 3 is outside 0 to 2; .*\(--index-base 1\)"):
        load(path, n_features=3, zero_based=True)
    with pytest.raises(ValueError, match=r"index 3 is outside 0 to 1$"):
        load(path, n_features=2, zero_based=True)
    path.write_text("0 0:1\n1 3:1\n")
    with pytest.raises(ValueError, match=r"index 0 is outside 1 to 3; .*\(--index-base 0\)"):
        load(path, n_features=3, zero_based=False)
    path.write_text("2 3 2\n0 1:1\n1 3:1\n")
    with pytest.raises(ValueError, match="index 3 is outside 0 to 2; indices of XMC text begin at"):
        xmtree.datasets.load_xmc(path)


@pytest.mark.parametrize("output", [".", "absent/model"])
def test_the_output_is_checked_before_training(output, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").write_text("0 1:1\n1 2:1\n")
    monkeypatch.setattr(xmtree.OAAClassifier, "fit", lambda *_: pytest.fail("was trained"))
    assert main(["fit", "train", "--learner", "oaa", "-o", output]) == 1
    assert output.partition("/")[0] in capsys.readouterr().err
