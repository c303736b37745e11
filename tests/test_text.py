"""TextClassifier: training, prediction and files."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from xmtree import TextClassifier, _core
from xmtree._labels import encode
from xmtree._text.rules import choose
from xmtree.cli import main

TOPICS = {
    "fruit": "apple pear plum cherry juice peel ripe",
    "ships": "mast sail harbour anchor deck crew keel",
    "music": "violin score tempo chord opera choir flute",
}
COMMON = ["the", "a", "of", "and", "with", "one", "two", "new", "old", "good"]


def corpus(n=240, seed=0):
    """Return texts with words of three topics among common words, and their topics."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.array(sorted(TOPICS))[np.arange(n) % 3])
    texts = []
    for label in labels:
        own = random.choice(TOPICS[label].split(), 3)
        texts.append(" ".join(random.permutation([*own, *random.choice(COMMON, 5)])))
    return texts, labels


def sets_corpus(n=240, seed=0):
    """Return pairs of joined texts of different topics, with both topics."""
    texts, labels = corpus(2 * n, seed)
    pairs = zip(texts[:n], texts[n:], labels[:n], labels[n:], strict=True)
    joined = [(f"{a} {b}", sorted({str(x), str(y)})) for a, b, x, y in pairs]
    return [text for text, _ in joined], [labels for _, labels in joined]


TEXTS, LABELS = corpus()
SET_TEXTS, SETS = sets_corpus()
NEW, NEW_LABELS = corpus(60, seed=1)

#: Every option of the features, and learners of either kind.
SETTINGS = {
    "default": {},
    "words": {"word_ngrams": 1},
    "triples": {"word_ngrams": 3},
    "characters": {"char_ngrams": (2, 4)},
    "characters alone": {"word_ngrams": 0, "char_ngrams": (3, 3)},
    "frequent": {"min_df": 3},
    "idf": {"idf": True},
    "hashed": {"n_bits": 12},
    "hashed idf": {"n_bits": 12, "idf": True, "char_ngrams": (2, 3)},
    "tree": {"learner": xmtree.LOMTreeClassifier(n_passes=3)},
    "ldsm": {"learner": xmtree.LdSMClassifier(n_estimators=3)},
    "boosting": {"learner": xmtree.GambleClassifier(n_estimators=20)},
}


def same(one, other, texts=NEW):
    for a, b in zip(one.predict_topk(texts, 3), other.predict_topk(texts, 3), strict=True):
        np.testing.assert_array_equal(a, b)


def fitted(**options):
    return TextClassifier(random_state=0, **options).fit(TEXTS, LABELS)


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_labels_are_learned_and_a_file_restores_the_model(options, tmp_path):
    model = fitted(**options)
    assert model.score(NEW, NEW_LABELS) > 0.9
    model.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert type(again) is TextClassifier
    assert type(again.learner_) is type(model.learner_)
    np.testing.assert_array_equal(again.classes_, model.classes_)
    for copied in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert str(copied.get_params()) == str(model.get_params())
        same(copied, model)
        if hasattr(model.learner_, "explain"):
            assert copied.explain(NEW[0]) == model.explain(NEW[0])
    same(clone(again).fit(TEXTS, LABELS), model)
    same(xmtree.load(tmp_path / "model", mmap=True), model)
    # A loaded model can be saved again.
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_features_are_those_of_scikit_learn():
    model = fitted(idf=True, word_ngrams=2, min_df=2)
    by_hand = TfidfVectorizer(
        ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"(?u)\b\w+\b"
    ).fit(TEXTS)
    learner = xmtree.OAAClassifier(prune=0.03, random_state=0)
    learner.fit(by_hand.transform(TEXTS).astype(np.float32), LABELS)
    assert model.learner_.n_features_in_ == len(by_hand.vocabulary_)
    labels, scores = model.predict_topk(NEW, 3)
    expected, expected_scores = learner.predict_topk(by_hand.transform(NEW).astype(np.float32), 3)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-4)


@pytest.mark.parametrize(
    "learner",
    ["auto", xmtree.OAAClassifier(), xmtree.LdSMClassifier(max_nodes=60)],
    ids=["auto", "oaa", "ldsm"],
)
def test_label_sets(learner, tmp_path):
    model = TextClassifier(learner, random_state=0).fit(SET_TEXTS, SETS)
    new, sets = sets_corpus(60, seed=1)
    right = [one == other for one, other in zip(model.predict(new), sets, strict=True)]
    assert np.mean(right) > 0.6
    model.save(tmp_path / "model")
    assert xmtree.load(tmp_path / "model").predict(new) == model.predict(new)


@pytest.mark.parametrize(
    ("n_labels", "n_rows", "sets", "expected"),
    [
        (2000, 5000, False, xmtree.OAAClassifier),
        (2001, 5000, False, xmtree.LdSMClassifier),
        (99, 5000, True, xmtree.OAAClassifier),
        (100, 1000, True, xmtree.LdSMClassifier),
        (100, 999, True, xmtree.OAAClassifier),
    ],
)
def test_the_learner_is_chosen_by_labels_and_rows(n_labels, n_rows, sets, expected):
    labels = np.arange(n_rows) % n_labels
    target = encode([[label] for label in labels] if sets else labels)
    assert type(choose(target)) is expected
    assert type(choose(None)) is xmtree.OAAClassifier


def test_scorers_are_pruned_except_in_streams():
    assert fitted().learner_.prune == 0.03
    assert fitted(n_bits=10).learner_.prune is None
    assert fitted(n_bits=10, idf=True).learner_.prune == 0.03


def test_a_given_learner_is_cloned_and_keeps_its_seed():
    template = xmtree.LOMTreeClassifier(random_state=7)
    model = TextClassifier(template, random_state=0, n_jobs=2).fit(TEXTS, LABELS)
    assert model.learner_ is not template
    assert model.learner_.random_state == 7
    assert model.learner_.n_jobs == 2
    assert not hasattr(template, "classes_")
    model.set_params(n_jobs=1).predict(NEW)
    assert model.learner_.n_jobs == 1


def test_idf_depends_on_the_length_of_texts(tmp_path, capsys):
    def long(n_words):
        return [f"{text} " + "and " * (n_words - len(text.split())) for text in TEXTS]

    n_words = max(len(text.split()) for text in TEXTS)
    assert n_words < 15
    for texts, options, is_weighted in [
        (TEXTS, {}, False),
        (long(15), {}, False),
        (long(16), {}, True),
        (long(16), {"idf": False}, False),
        (TEXTS, {"idf": True}, True),
        (long(16), {"n_bits": 12}, False),
        (long(16), {"n_bits": 12, "idf": True}, True),
        (long(16), {"learner": xmtree.LOMTreeClassifier()}, True),
        (long(16), SETTINGS["ldsm"], False),
    ]:
        model = TextClassifier(random_state=0, verbose=1, **options).fit(texts, LABELS)
        assert model.idf_ is is_weighted
        assert ("features by idf:" in capsys.readouterr().err) is is_weighted
        model.save(tmp_path / "model")
        again = xmtree.load(tmp_path / "model")
        assert (again.idf_, again.idf) == (is_weighted, options.get("idf"))
        same(again, model, texts[:5])
    # The result equals that of the explicit setting.
    same(fitted(), fitted(idf=False))


def test_verbose_reports_the_choice(capsys):
    fitted(verbose=1)
    said = capsys.readouterr().err
    assert "240 texts, 3 labels" in said
    assert "OAAClassifier" in said
    fitted()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "column",
    [list, tuple, np.array, lambda t: np.array(t, object), pd.Series, pl.Series, iter],
    ids=["list", "tuple", "str", "object", "pandas", "polars", "iterator"],
)
def test_texts_of_any_column_type(column):
    model = fitted()
    np.testing.assert_array_equal(model.predict(column(NEW)), model.predict(NEW))
    same(TextClassifier(random_state=0).fit(column(TEXTS), LABELS), model)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "single string"),
        (["a", None], "row 1 of texts is None"),
        (["a", float("nan")], "row 1 of texts is nan"),
        ([b"a"], "row 0 of texts is b'a'"),
        (pd.DataFrame({"text": ["a"]}), "DataFrame of 2 dimensions"),
        (np.array([["a"]]), "2 dimensions"),
        (5, "texts must be a list of strings, got int"),
    ],
)
def test_refused_texts(texts, message):
    model = fitted()
    with pytest.raises((TypeError, ValueError), match=message):
        model.predict(texts)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(texts, ["x"])
    same(model, fitted())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "oaa"}, "learner must be 'auto' or a classifier of xmtree such as OAAClass"),
        ({"char_ngrams": (3, 33)}, "from 1 to 32"),
        ({"word_ngrams": 0}, "needs char_ngrams"),
        ({"char_ngrams": (3, 2)}, "shorter first"),
        ({"char_ngrams": (3,)}, "shorter first"),
        ({"min_df": 2, "n_bits": 8}, "min_df"),
        ({"min_df": 230}, "no terms remain"),
        ({"n_bits": 0}, "n_bits"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        fitted(**options)


def test_refused_arguments():
    model = TextClassifier()
    with pytest.raises(NotFittedError, match="not fitted"):
        model.predict(["a"])
    with pytest.raises(ValueError, match="is not fitted"):
        model.save("nowhere")
    with pytest.raises(ValueError, match="2 texts, but labels for 3"):
        model.fit(["a", "b"], [1, 2, 3])
    with pytest.raises(ValueError, match="no word"):
        model.fit(["", "?!"], [1, 2])
    with pytest.raises(ValueError, match="learns one label per row"):
        TextClassifier(xmtree.LOMTreeClassifier()).fit(SET_TEXTS, SETS)
    assert not hasattr(model, "learner_")


def test_texts_without_known_words_are_predicted():
    model = fitted()
    assert set(model.predict(["", "unheard"])) <= set(TOPICS)
    assert model.explain("") == model.explain("unheard")
    assert all(each.contributions == [] for each in model.explain(""))


def test_probabilities():
    model = fitted()
    probabilities = model.predict_proba(NEW)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    labels, best = model.predict_topk(NEW, 2, scores="probability")
    np.testing.assert_allclose(best[:, 0], probabilities.max(axis=1))
    np.testing.assert_array_equal(labels[:, 0], model.predict(NEW))
    assert fitted().decision_function(NEW).shape == (60, 3)


@pytest.mark.parametrize("name", ["default", "characters", "hashed idf", "ldsm", "boosting"])
def test_explanations_name_the_words_of_the_label(name):
    model = fitted(**SETTINGS[name])
    text = "The Violin of the old choir; two apples"
    best = model.explain(text, k=1)[0]
    assert best.label == "music"
    assert {word for word, _ in best.contributions[:2]} & {"violin", "choir"}
    sizes = [abs(contribution) for _, contribution in best.contributions]
    assert sizes == sorted(sizes, reverse=True)
    if name not in ("ldsm", "boosting"):
        assert best.score == pytest.approx(model.predict_topk([text], 1)[1][0, 0], rel=1e-5)
        assert best.base + sum(x for _, x in best.contributions) == pytest.approx(best.score)


@pytest.mark.parametrize("options", [{}, {"char_ngrams": (1, 3)}, {"n_bits": 12, "word_ngrams": 3}])
def test_a_feature_contributes_to_the_words_without_which_it_is_lost(options):
    features = fitted(**options)._features
    text = "violin old the violin of the old old violin choir the of"
    words = text.split()
    counts = features._counts([text])
    lost = {}
    for word in dict.fromkeys(words):
        pieces = " ".join("|" if other == word else other for other in words).split("|")
        lost[word] = (counts - features._counts(pieces).sum(axis=0)).A1
    total = np.sum(list(lost.values()), axis=0)
    row = np.append(np.where(total > 0, np.arange(len(total)) % 7 + 1.0, 0), 9.0)
    found = dict(features.by_word(text, sp.csr_matrix(row)))
    assert list(lost) == ["violin", "old", "the", "of", "choir"]
    for word, counts in lost.items():
        shares = np.divide(counts, total, where=total > 0, out=np.zeros(len(total)))
        assert found[word] == pytest.approx(shares @ row[:-1], rel=1e-5)
    assert sum(found.values()) == pytest.approx(row[:-1].sum(), rel=1e-5)


def test_no_texts():
    model = fitted()
    assert model.predict([]).shape == (0,)
    assert model.predict_proba([]).shape == (0, 3)
    assert model.predict_topk([], 2)[0].shape == (0, 2)
    assert TextClassifier(n_bits=8).fit(SET_TEXTS, SETS).predict([]) == []


def test_a_stream_of_hashed_features():
    model = TextClassifier(n_bits=12, random_state=0)
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(TEXTS[:40], LABELS[:40])
    assert not hasattr(model, "learner_")
    for start in range(0, 240, 40):
        part = slice(start, start + 40)
        model.partial_fit(TEXTS[part], LABELS[part], classes=sorted(TOPICS))
    assert model.learner_.n_examples_seen_ == 240
    assert model.score(NEW, NEW_LABELS) > 0.9
    again = pickle.loads(pickle.dumps(model))
    same(again.partial_fit(TEXTS, LABELS), model.partial_fit(TEXTS, LABELS))


def test_a_stream_can_begin_with_fit(tmp_path):
    model = fitted(learner=xmtree.OAAClassifier())
    model.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    before = model.predict_topk(NEW)[1]
    same(model.partial_fit(NEW, NEW_LABELS), again.partial_fit(NEW, NEW_LABELS))
    assert not np.array_equal(model.predict_topk(NEW)[1], before)


def test_models_without_partial_fit():
    assert not hasattr(fitted(**SETTINGS["ldsm"]), "partial_fit")
    many = fitted()
    many.learner_ = xmtree.LdSMClassifier(n_estimators=1, max_nodes=5).fit(np.eye(3), [0, 1, 2])
    for model, chosen in ((fitted(), r"OAAClassifier\(prune=0.03\)"), (many, "LdSMClassifier")):
        message = rf"has chosen {chosen}\. Set learner=OAAClassifier\(\) and fit again"
        with pytest.raises(ValueError, match=message):
            model.partial_fit(NEW, NEW_LABELS)
    # These are the settings that the message names.
    fitted(learner=xmtree.OAAClassifier()).partial_fit(NEW, NEW_LABELS)
    fitted(n_bits=12).partial_fit(NEW, NEW_LABELS)
    for options in ({}, {"n_bits": 8, "idf": True}):
        with pytest.raises(ValueError, match="set n_bits"):
            TextClassifier(**options).partial_fit(TEXTS, LABELS, classes=sorted(TOPICS))


def test_fitted_state_does_not_depend_on_changed_parameters(tmp_path):
    model = fitted()
    expected = model.explain(NEW[0])
    changed = {"word_ngrams": 1, "char_ngrams": (2, 2), "idf": True, "n_bits": 8, "min_df": 2}
    model.set_params(learner=xmtree.LOMTreeClassifier(), **changed)
    assert model.explain(NEW[0]) == expected
    model.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert again.explain(NEW[0]) == expected
    assert again.char_ngrams == (2, 2)


def test_cross_validation_and_grid_search():
    assert cross_val_score(TextClassifier(random_state=0), TEXTS, LABELS, cv=3).mean() > 0.9
    model = TextClassifier(xmtree.OAAClassifier(), random_state=0)
    grid = {"word_ngrams": [1, 2], "learner__loss": ["hinge", "logistic"]}
    assert GridSearchCV(model, grid, cv=2).fit(TEXTS, LABELS).best_score_ > 0.9
    with pytest.raises(ValueError, match=r"learner__loss: learner is 'auto', .*OAAClassifier\(\)"):
        GridSearchCV(TextClassifier(), grid, cv=2).fit(TEXTS, LABELS)
    model = TextClassifier().set_params(learner=xmtree.OAAClassifier(), learner__loss="hinge")
    assert model.learner.loss == "hinge"


def test_the_model_does_not_depend_on_threads():
    same(fitted(n_jobs=2), fitted(n_jobs=1))


FEATURES = {"word_ngrams": 2, "char_ngrams": None, "min_df": 1, "idf": False, "n_bits": None}


@pytest.mark.parametrize(
    "changes",
    [
        {"class": "OAAClassifier"},
        {"learner": {}},
        {"features": {"word_ngrams": 1}},
        {"params": {"unheard_of": 1}},
        *(
            {"features": {**FEATURES, **changes}}
            for changes in (
                {"n_bits": 20_000_000_000},
                {"n_bits": 30, "idf": True},
                {"word_ngrams": 10**9},
                {"char_ngrams": [1, 10**9]},
                {"char_ngrams": [3, 1]},
                {"unheard_of": 1},
            )
        ),
    ],
    ids=str,
)
def test_inconsistent_files_are_refused(changes, tmp_path):
    path = tmp_path / "model"
    fitted(idf=True).save(path)
    file = _core.EstimatorFile(path, False)
    meta, arrays, model = json.loads(file.meta), file.arrays(), file.take_model("oaa")
    _core.save_estimator(path, json.dumps({**meta, **changes}), arrays, model, False)
    with pytest.raises(xmtree.ModelFileError, match="damaged"):
        xmtree.load(path)
    arrays["text.idf"] = arrays["text.idf"][1:]
    _core.save_estimator(path, json.dumps(meta), arrays, model, False)
    with pytest.raises(xmtree.ModelFileError, match="idf weights"):
        xmtree.load(path)


def test_a_compact_file_predicts(tmp_path):
    model = fitted(learner=xmtree.OAAClassifier())
    model.save(tmp_path / "model")
    model.save(tmp_path / "compact", compact=True)
    assert (tmp_path / "compact").stat().st_size < (tmp_path / "model").stat().st_size
    compact = xmtree.load(tmp_path / "compact")
    assert np.mean(compact.predict(NEW) != model.predict(NEW)) <= 0.02
    with pytest.raises(ValueError, match="saved for prediction only"):
        compact.partial_fit(TEXTS, LABELS)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_commands_report_that_a_model_takes_texts(tmp_path, capsys, command):
    texts, topics = corpus(30)
    path, data = tmp_path / "model.xmtree", tmp_path / "data.txt"
    TextClassifier(random_state=0).fit(texts, topics).save(path)
    data.write_text("1 1:1\n")
    assert main([command, str(path), str(data)]) == 2
    assert "model.xmtree was trained on texts" in capsys.readouterr().err


def test_concurrent_partial_fits_train_one_model():
    model = xmtree.TextClassifier(xmtree.OAAClassifier(random_state=0), n_bits=10)

    def learn(label):
        model.partial_fit([label] * 8, [label] * 8, classes="grow")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(learn, "abcdefghijklmnop"))
    assert sorted(model.classes_) == list("abcdefghijklmnop")
    assert model.learner_.n_examples_seen_ == 8 * 16
