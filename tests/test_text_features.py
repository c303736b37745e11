# ruff: noqa: RUF001 (characters that look like others)
"""Features of texts equal those of scikit-learn's vectorizers, and predictors of texts."""

import copy
import lzma
import os
import pickle
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from xmtree import TextClassifier
from xmtree._text.features import Settings, TextFeatures, _plain, words_of

#: Texts whose characters differ in case, category, width or number, by what is special.
SPECIAL = {
    "final sigma": "ΟΔΟΣ ΣΑΣ Σ ΑΣ. ΑΣ\u0301 Σ\u0301Α",
    "lower case is longer": "İstanbul DİYARBAKIR ẞ",
    "lower case is ASCII": "\u212aelvin K \u212b",
    "titlecase": "\u01c5ep \u1f88",
    "combining marks": "e\u0301a nai\u0308ve \u0301 a\u0300\u0301b",
    "letters and marks": "हिन्दी भाषा ภาษาไทย বাংলা",
    "joiners": "a\u200db a\u200cb a\u00adb a\ufeffb",
    "no spaces": "中文文本 日本語テキスト 한국어",
    "numbers": "x² ½ Ⅷ ⑧ ٣٤ ৪ 3½",
    "circled letters": "Ⓐⓐ 🄰 ª º ℡",
    "ligatures": "ﬁn ǳ ĳ",
    "beyond 16 bits": "\U00010400\U00010428 𝔘𝔫𝔦 😀a😀 𠀀𠀁",
    "right to left": "שלום עולם مرحبا",
    "spaces": "a\u00a0b a\u2003b a\u3000b a\x1cb a\x85b a\tb\nc\r\nd",
    "joined by _": "a_b __ _ é_è",
    "surrogates": "a\ud800b \udfff Ä\ud83d",
    "null": "a\0b \0 É\0",
    "no words": "?! \u2026 \u0301",
    "empty": "",
    "repeated": "de de DE " * 40 + "été Été " * 300,
    "one long word": "ab" * 50 + " " + "é" * 60,
}


def random_texts(n, letters, seed=0):
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 60, n)
    return ["".join(random.choice(list(letters), length)) for length in lengths]


TEXTS = [
    *SPECIAL.values(),
    *random_texts(150, "abAB  ,_1"),
    *random_texts(150, "aéÉΣσς \u0301İß-  "),
]

SETTINGS = [
    Settings(words, characters, min_df, idf, n_bits)
    for (words, characters), (min_df, n_bits), idf in product(
        [(1, None), (2, None), (5, None), (0, (1, 1)), (0, (3, 5)), (2, (2, 4)), (1, (32, 32))],
        [(1, None), (2, None), (1, 3), (1, 18)],
        [False, True],
    )
]


class Vectorizers:
    """The features of version 0.1, of scikit-learn's objects."""

    def __init__(self, settings):
        kinds = []
        if settings.word_ngrams:
            words = {"ngram_range": (1, settings.word_ngrams), "token_pattern": r"(?u)\b\w+\b"}
            kinds.append(words)
        if settings.char_ngrams:
            kinds.append({"analyzer": "char_wb", "ngram_range": settings.char_ngrams})
        options = {"preprocessor": lambda text: " ".join(words_of(text)), "dtype": np.float32}
        if settings.n_bits is None:
            options["min_df"] = settings.min_df
        else:
            options |= {"n_features": 2**settings.n_bits, "norm": None, "alternate_sign": False}
        new = CountVectorizer if settings.n_bits is None else HashingVectorizer
        self.counters = [new(**options, **kind) for kind in kinds]
        self.weights = TfidfTransformer(use_idf=settings.idf, sublinear_tf=True)

    def fit(self, texts):
        counts = [counter.fit_transform(texts) for counter in self.counters]
        self.weights.fit(sp.hstack(counts, format="csr"))
        return self

    def transform(self, texts):
        counts = [counter.transform(texts) for counter in self.counters]
        return sp.csr_matrix(self.weights.transform(sp.hstack(counts, format="csr")))


def assert_same_rows(rows, expected):
    assert rows.shape == expected.shape
    assert rows.dtype == expected.dtype == np.float32
    np.testing.assert_array_equal(rows.indptr, expected.indptr)
    np.testing.assert_array_equal(rows.indices, expected.indices)
    # To the last bit:
    np.testing.assert_array_equal(rows.data, expected.data)


def compare(settings, learned, new=()):
    """Compare features, learned from texts, with scikit-learn's."""
    features, expected = TextFeatures(settings), Vectorizers(settings).fit(learned)
    assert_same_rows(features.fit_transform(learned), expected.transform(learned))
    if settings.n_bits is None:
        for names, counter in zip(features._counter.vocabularies(), expected.counters, strict=True):
            assert names == counter.get_feature_names_out().tolist()
    if new:
        assert_same_rows(features.transform(new), expected.transform(new))
        assert_same_rows(features.transform(new, n_jobs=2), expected.transform(new))


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, vars(s).values())))
def test_features_equal_those_of_scikit_learn(settings):
    compare(settings, TEXTS[::2] + TEXTS[:40], TEXTS)


def test_every_character_is_treated_as_by_scikit_learn():
    texts = [
        " ".join(f"{chr(code)}a" for code in range(start, start + 4096))
        for start in range(0, sys.maxunicode, 4096)
    ]
    compare(Settings(1, None, 1, False, 18), texts)


@pytest.mark.parametrize(
    "name", ["banking77", "onet-titles", "naics2017-index", "news20-bydate", "makupalat"]
)
def test_features_of_real_texts_equal_those_of_scikit_learn(name):
    folder = Path(os.environ.get("XMTREE_DATA", "")) / name
    if not (folder / "vocab.txt.xz").exists():
        pytest.skip(f"needs {name} in $XMTREE_DATA")
    with lzma.open(folder / "vocab.txt.xz", "rt", encoding="utf-8") as file:
        words = file.read().split("\n")
    texts = []
    with lzma.open(folder / "train.txt.xz", "rt", encoding="utf-8") as file:
        for line, _ in zip(file, range(100), strict=False):
            columns = [cell.split(":")[0] for cell in line.split()[1:] if ":" in cell]
            texts.append(" ".join(words[int(column)] for column in columns))
    compare(Settings(2, (3, 4), 1, True, None), texts[1:80], texts[1:])


def test_more_repetitions_than_single_precision_has_logarithms_for():
    compare(Settings(2, None, 1, True, None), ["a b " * n for n in (1, 3000, 70_000)])


def topics(learner="auto", **options):
    texts = [f"{a} {b} words" for a in ("mast", "sail", "anchor") for b in ("deck", "crew")]
    texts += [f"{a} {b} words" for a in ("apple", "pear", "plum") for b in ("juice", "peel")]
    labels = np.repeat(["ships", "fruit"], 6)
    return texts, TextClassifier(learner, random_state=0, **options).fit(texts, labels)


@pytest.mark.parametrize("options", [{}, {"char_ngrams": (2, 3), "idf": True}, {"n_bits": 8}])
def test_pickles_of_vectorizers_still_predict(options):
    texts, model = topics(**options)
    features = model._features
    before = Vectorizers(features.settings).fit(texts)
    for counter in before.counters:
        counter.preprocessor = _plain
    state = {
        "settings": features.settings,
        "_counters": before.counters,
        "_weights": before.weights,
    }
    old = object.__new__(TextFeatures)
    old.__setstate__(pickle.loads(pickle.dumps(state)))
    for restored in (old, pickle.loads(pickle.dumps(features)), copy.deepcopy(features)):
        assert restored.settings == features.settings
        assert_same_rows(restored.transform(TEXTS), features.transform(TEXTS))
        assert restored.to_arrays().keys() == features.to_arrays().keys()


LEARNERS = [
    "auto",
    xmtree.OAAClassifier(),
    xmtree.LdSMClassifier(n_estimators=2),
    xmtree.LOMTreeClassifier(),
    xmtree.RecallTreeClassifier(),
    xmtree.FilterTreeClassifier(),
    xmtree.RandomTreeClassifier(),
    xmtree.GambleClassifier(n_estimators=3),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: str(learner).split("(")[0])
def test_one_text_is_predicted_as_among_others(learner, tmp_path):
    texts, model = topics(learner, idf=True)
    model.save(tmp_path / "model")
    predictor = model.predictor()
    loaded = xmtree.load(tmp_path / "model").predictor()
    new = [*texts[:4], "Sail, apple!", "", "été"]
    methods = ["predict", "predict_topk", "predict_proba"]
    more = ["decision_function", "decision_path"]
    for method in methods + [name for name in more if hasattr(model, name)]:
        found = getattr(model, method)(new)
        for at, text in enumerate(new):
            ones = [getattr(model, method)([text])]
            if method in methods:
                several = predictor, loaded, pickle.loads(pickle.dumps(predictor))
                ones += [getattr(one, method)(text) for one in several]
                ones += [getattr(predictor, method)([text])]
            for one in ones:
                if isinstance(found, tuple) and method == "predict_topk":
                    np.testing.assert_array_equal(found[0][at], one[0][0])
                    np.testing.assert_array_equal(found[1][at], one[1][0])
                elif isinstance(found, tuple):
                    np.testing.assert_array_equal(found[0][at].toarray(), one[0].toarray())
                else:
                    np.testing.assert_array_equal(found[at], one[0])
    assert model.score(["mast deck"], ["ships"]) == 1


def test_a_predictor_takes_texts_and_keeps_its_state():
    texts, model = topics(xmtree.OAAClassifier(), n_bits=10)
    predictor = model.predictor()
    assert isinstance(predictor, xmtree.Predictor)
    before = predictor.predict_topk(texts, 2)[1]
    model.partial_fit(texts, ["fruit"] * 12)
    assert not np.array_equal(model.predict_topk(texts, 2)[1], before)
    np.testing.assert_array_equal(predictor.predict_topk(texts, 2)[1], before)
    np.testing.assert_array_equal(predictor.classes_, ["fruit", "ships"])
    assert predictor.predict([]).shape == (0,)
    assert predictor.predict_proba(iter(texts)).shape == (12, 2)
    with pytest.raises(TypeError, match="row 1 of texts is 3"):
        predictor.predict(["a", 3])
    with pytest.raises(TypeError, match="must be a list of strings, got int"):
        predictor.predict(3)
    with pytest.raises(NotFittedError, match="not fitted"):
        TextClassifier().predictor()


def test_label_sets_of_one_text():
    texts = ["red apple", "green apple", "red car", "green car"]
    sets = [["red", "round"], ["green", "round"], ["red"], ["green"]]
    model = TextClassifier(random_state=0).fit(texts, sets)
    assert [model.predictor().predict(text)[0] for text in texts] == model.predict(texts) == sets
