"""Pipelines: ``pipeline_topk``, and files of their parts."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import xmtree
from model_bytes import changed
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from xmtree import ModelFileError, OAAClassifier, TextClassifier, pipeline_topk
from xmtree._pipelines import checks, parts

RANDOM = np.random.default_rng(0)
X = RANDOM.random((60, 6)) / 3
X[::7, 2] = 0
Y = np.arange(60) % 3
X[np.arange(60), Y] += 1
GAPS = np.where(RANDOM.random(X.shape) < 0.1, np.nan, X)
TEXTS = [f"word{i % 3} Wörter {'more ' * (i % 5)}{i % 11}th of it" for i in range(60)]
NAMES = np.array([["a", 1], ["b", 2], ["c", 1]] * 20, object)
FRAME = pd.DataFrame({"text": TEXTS, "size": X[:, 0], "kind": ["x", "y", "zz"] * 20, "n": Y})

PARTS = {
    "Binarizer": (Binarizer(threshold=0.1), X),
    "MaxAbsScaler": (MaxAbsScaler(), sp.csr_array(X)),
    "MinMaxScaler": (MinMaxScaler((-1, 0.3), clip=True), X),
    "MinMaxScaler of float32": (MinMaxScaler(), X.astype(np.float32)),
    "Normalizer": (Normalizer("l1"), X),
    "OneHotEncoder": (OneHotEncoder(min_frequency=21, handle_unknown="ignore"), NAMES),
    "OneHotEncoder, drop": (OneHotEncoder(drop="first", dtype=np.float32), NAMES),
    "OneHotEncoder of a frame": (OneHotEncoder(categories=[["zz", "y", "x"]]), FRAME[["kind"]]),
    "OrdinalEncoder": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
        np.where(NAMES == "b", None, NAMES),
    ),
    "PolynomialFeatures": (PolynomialFeatures(2, interaction_only=True), X),
    "PowerTransformer": (PowerTransformer(), X),
    "QuantileTransformer": (QuantileTransformer(n_quantiles=9, random_state=0), X),
    "RobustScaler": (RobustScaler(quantile_range=(10.0, 80.0)), X),
    "StandardScaler": (StandardScaler(), X),
    "StandardScaler, sparse": (StandardScaler(with_mean=False), sp.csr_matrix(X)),
    "StandardScaler, output": (StandardScaler().set_output(transform="pandas"), FRAME[["size"]]),
    "CountVectorizer": (CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)), TEXTS),
    "CountVectorizer, words": (CountVectorizer(vocabulary=["of", "it", "wörter"]), TEXTS),
    "HashingVectorizer": (HashingVectorizer(n_features=64, alternate_sign=False), TEXTS),
    "TfidfTransformer": (TfidfTransformer(sublinear_tf=True), sp.csr_matrix(X)),
    "TfidfTransformer, no idf": (TfidfTransformer(use_idf=False), sp.csr_matrix(X)),
    "TfidfVectorizer": (TfidfVectorizer(stop_words="english", dtype=np.float32), TEXTS),
    "TfidfVectorizer, stop words": (TfidfVectorizer(stop_words=["of"], max_df=0.9), TEXTS),
    "PCA": (PCA(3, whiten=True, random_state=0), X),
    "TruncatedSVD": (TruncatedSVD(3, random_state=0), X),
    "TruncatedSVD, sparse": (TruncatedSVD(3, random_state=0), sp.csr_matrix(X)),
    "VarianceThreshold": (VarianceThreshold(0.05), X),
    "SimpleImputer": (SimpleImputer(), GAPS),
    "SimpleImputer, indicator": (SimpleImputer(strategy="median", add_indicator=True), GAPS),
    "FunctionTransformer": (FunctionTransformer(), X),
    "FeatureUnion": (
        FeatureUnion([("a", StandardScaler()), ("b", "passthrough"), ("c", "drop")]),
        X,
    ),
    "FeatureUnion of texts": (
        make_union(TfidfVectorizer(), CountVectorizer(analyzer="char", binary=True)),
        TEXTS,
    ),
    "ColumnTransformer": (
        ColumnTransformer(
            [
                ("text", TfidfVectorizer(), "text"),
                ("kind", OneHotEncoder(), ["kind"]),
                ("size", make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
            ],
            transformer_weights={"text": 0.3},
            remainder="passthrough",
        ),
        FRAME,
    ),
    "ColumnTransformer by number": (
        ColumnTransformer([("a", PCA(2), slice(0, 3)), ("b", "passthrough", [5])]),
        X,
    ),
}


def same(a, b):
    """Return whether two results of transformers are equal to the last bit and in type."""
    assert type(a) is type(b)
    if sp.issparse(a):
        assert a.dtype == b.dtype
        return a.shape == b.shape and all(
            np.array_equal(getattr(a, name), getattr(b, name))
            for name in ("indptr", "indices", "data")
        )
    if isinstance(a, pd.DataFrame):
        return a.equals(b)
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize(("part", "rows"), PARTS.values(), ids=PARTS)
def test_a_part_is_restored_exactly(part, rows, tmp_path):
    learner = xmtree.GambleClassifier(n_estimators=2, random_state=0)
    pipe = Pipeline([("part", part), ("learner", learner)], verbose=False).fit(rows, Y)
    path = tmp_path / "model"
    xmtree.save(pipe, path)
    again = xmtree.load(path)
    assert type(again) is Pipeline
    assert list(again.named_steps) == ["part", "learner"]
    assert same(again[0].transform(rows), part.transform(rows))
    assert repr(again[0]) == repr(part)
    np.testing.assert_array_equal(again.predict_proba(rows), pipe.predict_proba(rows))
    np.testing.assert_array_equal(again.classes_, pipe.classes_)
    # A loaded part can be saved again.
    xmtree.save(again, tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_every_part_of_the_table_is_tested():
    tested = {name.partition(",")[0].partition(" ")[0] for name in PARTS}
    assert tested | {"MissingIndicator", "Pipeline"} == set(parts.known().split(", "))
    for name in set(parts.known().split(", ")) - {"MissingIndicator"}:
        assert name in xmtree.save.__doc__


def test_topk():
    learner = OAAClassifier(random_state=0)
    pipe = make_pipeline(StandardScaler(), "passthrough", Normalizer(), learner).fit(X, Y)
    labels, scores = pipeline_topk(pipe, X, k=2)
    assert labels.shape == scores.shape == (60, 2)
    np.testing.assert_array_equal(labels[:, 0], pipe.predict(X))
    expected = learner.predict_topk(pipe[:-1].transform(X), 2)
    np.testing.assert_array_equal(scores, expected[1])
    search = GridSearchCV(pipe, {"oaaclassifier__n_passes": [1, 2]}, cv=2).fit(X, Y)
    found = pipeline_topk(search, X, k=1)[0]
    np.testing.assert_array_equal(found[:, 0], search.predict(X))
    outer = make_pipeline(MaxAbsScaler(), pipe).fit(X, Y)
    np.testing.assert_array_equal(pipeline_topk(outer, X, 1)[0][:, 0], outer.predict(X))
    texts = make_pipeline(TextClassifier(random_state=0)).fit(TEXTS, Y)
    np.testing.assert_array_equal(pipeline_topk(texts, TEXTS)[0][:, 0], texts.predict(TEXTS))

    class Doubled(OAAClassifier):
        def predict_topk(self, X, k=5, *, factor=2):
            labels, scores = super().predict_topk(X, k)
            return labels, factor * scores

    pipe = make_pipeline(StandardScaler(), Doubled(random_state=0)).fit(X, Y)
    once, twice = (pipeline_topk(pipe, X, k=1, factor=factor)[1] for factor in (1, 2))
    np.testing.assert_array_equal(2 * once, twice)
    with pytest.raises(TypeError, match="DummyClassifier, which has no predict_topk"):
        pipeline_topk(make_pipeline(StandardScaler(), DummyClassifier()).fit(X, Y), X)


def test_parts_that_cannot_be_stored(tmp_path):
    path = tmp_path / "model"
    learner = OAAClassifier(random_state=0)

    def refuse(pipe, message, rows=X):
        with pytest.raises(TypeError, match=message):
            xmtree.save(pipe.fit(rows, Y), path)
        assert not path.exists()

    refuse(make_pipeline(SelectKBest(k=2), learner), r"step 'selectkbest' is a SelectKBest.*PCA,")
    refuse(
        make_pipeline(FunctionTransformer(np.log1p), learner),
        r"step 'functiontransformer', func: <ufunc 'log1p'> of type ufunc cannot be stored",
    )
    words = CountVectorizer(tokenizer=str.split, token_pattern=None)
    refuse(
        make_pipeline(words, learner), "'countvectorizer', tokenizer: .*holds only numbers", TEXTS
    )
    seed = TruncatedSVD(random_state=np.random.RandomState(0))
    refuse(make_pipeline(seed, learner), "random_state: RandomState.* cannot be stored")
    refuse(make_pipeline(StandardScaler(), DummyClassifier()), "must be a learner of xmtree")
    refuse(DummyClassifier(), "cannot save a DummyClassifier: expected an estimator")

    class Scaler(StandardScaler):
        pass

    refuse(make_pipeline(Scaler(), learner), "is a Scaler, which cannot be stored")
    scaler = StandardScaler()
    pipe = make_pipeline(scaler, learner).fit(X, Y)
    scaler.new_ = 1
    with pytest.raises(TypeError, match=r"has the attribute new_, which xmtree .* does not store"):
        xmtree.save(pipe, path)
    with pytest.raises(NotFittedError):
        xmtree.save(make_pipeline(StandardScaler(), OAAClassifier()), path)


def test_estimators_are_saved_as_by_their_method(tmp_path):
    for model, rows in ((OAAClassifier(random_state=0), X), (TextClassifier(), TEXTS)):
        model.fit(rows, Y)
        xmtree.save(model, tmp_path / "function", compact=True)
        model.save(tmp_path / "method", compact=True)
        assert (tmp_path / "function").read_bytes() == (tmp_path / "method").read_bytes()


def test_another_version_of_scikit_learn(tmp_path, monkeypatch):
    path = tmp_path / "model"
    scaler = StandardScaler()
    pipe = make_pipeline(scaler, OAAClassifier(random_state=0)).fit(X, Y)

    def message(change):
        """Return the error of a file whose step was changed by ``change``."""
        original = parts.describe

        def described(part, writer, where):
            stored = original(part, writer, where)
            change(stored)
            return stored

        with monkeypatch.context() as patch:
            patch.setattr(parts, "describe", described)
            patch.setattr(sklearn, "__version__", "9.9")
            xmtree.save(pipe, path)
        with pytest.raises(ModelFileError) as caught:
            xmtree.load(path)
        assert f"written with scikit-learn 9.9, installed is {sklearn.__version__}" in str(
            caught.value
        )
        assert str(path) in str(caught.value)
        return str(caught.value)

    assert "no parameter 'new'" in message(lambda stored: stored["params"].update(new=1))
    assert "no attribute 'transform'" in message(lambda stored: stored["state"].update(transform=1))
    assert "the attribute 'mean_' is missing" in message(
        lambda stored: stored["state"].pop("mean_")
    )
    assert "has no part 'Popen'" in message(lambda stored: stored.update({"class": "Popen"}))
    xmtree.save(pipe, path)
    with monkeypatch.context() as patch:
        patch.setattr(sklearn, "__version__", "9.9")
        # Another version with the same parameters and attributes is not refused.
        np.testing.assert_array_equal(xmtree.load(path).predict(X), pipe.predict(X))


def test_a_changed_file_is_damaged(tmp_path):
    path = tmp_path / "model"
    xmtree.save(make_pipeline(StandardScaler(), OAAClassifier(random_state=0)).fit(X, Y), path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"StandardScaler", b"StandardScalex"))
    with pytest.raises(ModelFileError):
        xmtree.load(path)
    assert b"pickle" not in data


def damaged(name, change, tmp_path):
    """Return the error of a file of the part ``name`` whose description ``change`` changes.

    In ``change(params, state, array)``, ``array`` returns the array of a value.
    """
    part, rows = PARTS[name]
    learner = xmtree.GambleClassifier(n_estimators=1, random_state=0)
    xmtree.save(make_pipeline(part, learner).fit(rows, Y), tmp_path / "model")

    def change_both(meta, arrays):
        stored = meta["pipeline"]["steps"][0][1]
        change(stored["params"], stored["state"], lambda value: arrays[value["name"]])

    changed(tmp_path / "model", change_both)
    with pytest.raises(ModelFileError) as caught:
        xmtree.load(tmp_path / "model")
    return str(caught.value)


@pytest.mark.parametrize("value", [23, -1, 20_000_000, 0])
@pytest.mark.parametrize("name", ["CountVectorizer", "TfidfVectorizer"])
def test_a_vocabulary_numbers_its_words(name, value, tmp_path):
    def change(params, state, array):
        numbers = array(state["vocabulary_"]["values"])
        numbers[numbers == 1] = value

    assert "vocabulary_ must number" in damaged(name, change, tmp_path)


def with_infinity(values):
    values[-1] = np.inf


#: By part: the change, and the error it causes.
DAMAGE = {
    "a matrix of another width": (
        "TruncatedSVD, sparse",
        lambda params, state, array: state.update(n_features_in_=7),
        r"components_ must be float\[k,n\], got an array of float64 of shape \(3, 6\)",
    ),
    "a matrix that is infinite": (
        "PCA",
        lambda params, state, array: with_infinity(array(state["components_"])),
        "components_",
    ),
    "too few means": (
        "StandardScaler",
        lambda params, state, array: state.update(mean_={"type": "list", "items": [1]}),
        "mean_",
    ),
    "idf of other words": (
        "TfidfVectorizer",
        lambda params, state, array: state["_tfidf"]["state"].update(n_features_in_=5),
        "idf_",
    ),
    "no idf": (
        "TfidfTransformer",
        lambda params, state, array: state.pop("idf_"),
        "the attribute 'idf_' is missing",
    ),
    "columns of another encoder": (
        "OneHotEncoder, drop",
        lambda params, state, array: state["_n_features_outs"].update(items=[1, 1]),
        "columns must be",
    ),
    "a category that is not there is left out": (
        "OneHotEncoder, drop",
        lambda params, state, array: state["_drop_idx_after_grouping"].update(items=[0, 9]),
        "dropped categories",
    ),
    "groups beyond the columns": (
        "OneHotEncoder",
        lambda params, state, array: array(
            state["_default_to_infrequent_mappings"]["items"][0]
        ).fill(7),
        "groups",
    ),
    "categories that do not ascend": (
        "OneHotEncoder",
        lambda params, state, array: state["categories_"]["items"][1].update(items=[2, 1]),
        "ascending",
    ),
    "a missing value that is no category": (
        "OrdinalEncoder",
        lambda params, state, array: state["_missing_indices"].update(
            keys={"type": "list", "items": [9]}, values={"type": "list", "items": [1]}
        ),
        "missing values",
    ),
    "polynomials of another number": (
        "PolynomialFeatures",
        lambda params, state, array: state.update(_n_out_full=23),
        "_n_out_full must be 22, got 23",
    ),
    "columns of other rows": (
        "ColumnTransformer by number",
        lambda params, state, array: state["_transformer_to_input_indices"]["values"]["items"][
            0
        ].update(items=[6]),
        "below 6",
    ),
    "an indicator of other rows": (
        "SimpleImputer, indicator",
        lambda params, state, array: state["indicator_"]["state"].update(_n_features=7),
        "features, got 7",
    ),
    "another part": (
        "PowerTransformer",
        lambda params, state, array: state["_scaler"].update(
            {"class": "Normalizer", "params": {}, "state": {}}
        ),
        "_scaler must be StandardScaler",
    ),
    "a step that was not fitted": (
        "FeatureUnion",
        lambda params, state, array: params["transformer_list"]["items"][0]["items"][1].update(
            state={}
        ),
        "not fitted",
    ),
    "a parameter of another type": (
        "StandardScaler",
        lambda params, state, array: params.update(with_mean="yes"),
        "with_mean",
    ),
    "a number that is too large": (
        "Binarizer",
        lambda params, state, array: params.update(threshold={"type": "float", "hex": "0x1p99999"}),
        "damaged",
    ),
    "texts that are file names": (
        "CountVectorizer",
        lambda params, state, array: params.update(input="filename"),
        "input must be 'content'",
    ),
    "a pattern that takes exponential time": (
        "CountVectorizer",
        lambda params, state, array: params.update(token_pattern="(a+)+$"),
        "token_pattern must be a run",
    ),
    "endless n-grams": (
        "HashingVectorizer",
        lambda params, state, array: params["ngram_range"].update(items=[1, 10**9]),
        "ngram_range must be two lengths from 1 to 32",
    ),
    "an endless degree": (
        "PolynomialFeatures",
        lambda params, state, array: params.update(degree=10**9),
        "degree must be at most 32",
    ),
    "what is called": (
        "CountVectorizer",
        lambda params, state, array: params.update(
            tokenizer={"type": "scalar type", "name": "<f8"}
        ),
        "tokenizer must be None",
    ),
    "values of a huge type": (
        "HashingVectorizer",
        lambda params, state, array: params.update(dtype={"type": "dtype", "name": "<U99999"}),
        "damaged",
    ),
}


@pytest.mark.parametrize(("name", "change", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_part_is_refused(name, change, message, tmp_path):
    assert re.search(message, damaged(name, change, tmp_path))


@pytest.mark.parametrize(
    ("pattern", "is_safe"),
    [
        (r"(?u)\b\w\w+\b", True),
        (r"\w+", True),
        (r"\S+", True),
        (r"(?u)\b[a-zA-Z]{3,}\b", True),
        (r"[^\W\d_]+", True),
        (r"\w+\b", False),
        (r"(\w+)+", False),
        (r"o+r[dt]", False),
    ],
)
def test_only_patterns_of_linear_time_can_be_stored(pattern, is_safe, tmp_path):
    words = CountVectorizer(token_pattern=pattern)
    pipe = make_pipeline(words, OAAClassifier(random_state=0)).fit(TEXTS, Y)
    if is_safe:
        xmtree.save(pipe, tmp_path / "model")
        assert (xmtree.load(tmp_path / "model").predict(TEXTS) == pipe.predict(TEXTS)).all()
    else:
        with pytest.raises(TypeError, match="'countvectorizer': token_pattern must be"):
            xmtree.save(pipe, tmp_path / "model")


def test_a_cache_is_not_stored(tmp_path):
    learner = OAAClassifier(random_state=0)
    union = make_union(StandardScaler(), n_jobs=2)
    pipe = Pipeline([("union", union), ("learner", learner)], memory=str(tmp_path / "cache"))
    path = tmp_path / "model"
    xmtree.save(pipe.fit(X, Y), path)
    again = xmtree.load(path)
    assert again.memory is None
    assert again[0].n_jobs is None
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))
    changed(path, lambda meta, arrays: meta["pipeline"]["params"].update(memory="/tmp"))
    assert xmtree.load(path).memory is None


def test_a_pipeline_whose_output_is_a_frame(tmp_path):
    columns = ColumnTransformer(
        [("kind", OneHotEncoder(sparse_output=False), ["kind"]), ("size", PCA(1), ["size"])]
    )
    learner = xmtree.GambleClassifier(n_estimators=2, random_state=0)
    pipe = make_pipeline(columns, learner).set_output(transform="pandas").fit(FRAME, Y)
    np.testing.assert_array_equal(pipe[:-1].transform(FRAME).shape, (60, 4))
    xmtree.save(pipe, tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert pipe[:-1].transform(FRAME).equals(again[:-1].transform(FRAME))
    np.testing.assert_array_equal(again.predict(FRAME), pipe.predict(FRAME))


@pytest.mark.parametrize(
    ("values", "are_valid"),
    [
        (["a", "b", None], True),
        (["a", "a"], False),
        (["a", 1], False),
        ([1, 2, np.nan], True),
        ([2, 1], False),
    ],
    ids=str,
)
def test_categories_are_distinct_strings_or_ascending_numbers(values, are_valid):
    assert checks._categories(np.array(values, object), ascending=True) == are_valid
