"""Texts as rows of numbers: weighted counts of words, word pairs and character n-grams.

scikit-learn's vectorisers count and weigh. What they have learned is a vocabulary and idf
weights, which a model file stores as arrays.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer

from xmtree._persistence import Arrays, pack, unpack

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Settings:
    """Which features texts have; see :class:`xmtree.TextClassifier`."""

    word_ngrams: int
    char_ngrams: tuple[int, int] | None
    min_df: int
    idf: bool
    n_bits: int | None

    def as_json(self) -> dict[str, Any]:
        """The settings in JSON types."""
        return asdict(self)

    @staticmethod
    def from_json(settings: dict[str, Any]) -> Settings:
        """What :meth:`as_json` returned, with a tuple for JSON's list."""
        pair = settings["char_ngrams"]
        return Settings(**{**settings, "char_ngrams": None if pair is None else tuple(pair)})


def as_texts(texts: Any) -> list[str]:
    """A list, array or column of strings as a list; everything else is refused."""
    if isinstance(texts, str | bytes):
        raise ValueError("texts is a single string; pass a list of strings, [text] for one")
    n_dimensions = getattr(texts, "ndim", len(getattr(texts, "shape", "1")))
    if n_dimensions != 1 or isinstance(texts, dict):
        kind = type(texts).__name__
        raise ValueError(
            f"texts is a {kind} of {n_dimensions} dimensions; pass one column or a list of strings"
        )
    try:
        # Arrays and columns have tolist or to_list; a list is copied at no cost to speak of.
        listed = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    except TypeError as error:
        raise TypeError(f"texts is a {type(texts).__name__}; pass a list of strings") from error
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(
                f"row {row} of texts is {text!r}, of type {type(text).__name__}; texts must be "
                "strings, an empty one where there is none"
            )
    return listed


def words_of(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


def _plain(text: str) -> str:
    """The words alone, so that the characters between them make no character n-grams."""
    return " ".join(words_of(text))


class TextFeatures:
    """Turns texts into CSR rows of length 1."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        ngrams: list[dict[str, Any]] = []
        if settings.word_ngrams:
            pattern = r"(?u)\b\w+\b"
            ngrams.append({"ngram_range": (1, settings.word_ngrams), "token_pattern": pattern})
        if settings.char_ngrams:
            ngrams.append({"analyzer": "char_wb", "ngram_range": settings.char_ngrams})
        self._counters = [
            _counter(settings, preprocessor=_plain, dtype=np.float32, **kind) for kind in ngrams
        ]
        # (1 + ln count) x idf.
        self._weights = TfidfTransformer(use_idf=settings.idf, sublinear_tf=True)

    def fit_transform(self, texts: list[str]) -> sp.csr_matrix:
        """Learns vocabulary and idf weights, and returns the rows of ``texts``."""
        if not any(_WORD.search(text) for text in texts):
            raise ValueError("texts hold no word at all")
        counts = _joined([counter.fit_transform(texts) for counter in self._counters])
        rows: sp.csr_matrix = self._weights.fit(counts).transform(counts, copy=False)
        return rows

    def start(self) -> None:
        """Prepares hashed features without idf weights, which need not be learned."""
        self._weights.fit(self._counts([""]))

    def transform(self, texts: list[str]) -> sp.csr_matrix:
        """The rows of ``texts``; what ``fit_transform`` has not seen is left out."""
        return self._weigh(self._counts(texts))

    def without_each_word(self, text: str) -> tuple[list[str], sp.csr_matrix]:
        """The distinct words of a text, and for each the row of the text without it.

        Word pairs and characters that the word is part of go with it, and its neighbours do
        not become a pair.
        """
        words = words_of(text)
        distinct = list(dict.fromkeys(words))
        if not words:
            return [], sp.csr_matrix(np.empty((0, self.n_columns()), np.float32))
        pieces: list[str] = []
        piece_of: list[int] = []
        for number, left_out in enumerate(distinct):
            ends = [at for at, word in enumerate(words) if word == left_out]
            for start, end in zip([-1, *ends], [*ends, len(words)], strict=True):
                pieces.append(" ".join(words[start + 1 : end]))
                piece_of.append(number)
        ones = np.ones(len(pieces), np.float32)
        shape = (len(distinct), len(pieces))
        sums = sp.csr_matrix((ones, (piece_of, np.arange(len(pieces)))), shape=shape)
        return distinct, self._weigh(sp.csr_matrix(sums @ self._counts(pieces)))

    def to_arrays(self) -> Arrays:
        """All that was learned, as flat arrays."""
        arrays: Arrays = {}
        if self.settings.n_bits is None:
            for number, counter in enumerate(self._counters):
                # In the order of the columns.
                names = sorted(counter.vocabulary_, key=counter.vocabulary_.__getitem__)
                arrays |= pack(f"text.vocabulary_{number}", np.array(names, object))
        if self.settings.idf:
            arrays["text.idf"] = np.asarray(self._weights.idf_, np.float64)
        return arrays

    @staticmethod
    def from_arrays(settings: Settings, arrays: Arrays) -> TextFeatures:
        """What :meth:`to_arrays` has stored."""
        features = TextFeatures(settings)
        if settings.n_bits is None:
            for number, counter in enumerate(features._counters):
                names = unpack(f"text.vocabulary_{number}", arrays, np.dtype(object)).tolist()
                counter.vocabulary_ = {name: at for at, name in enumerate(names)}
                if len(counter.vocabulary_) != len(names):
                    raise ValueError("a vocabulary names a word twice")
        n_columns = features.n_columns()
        features._weights.fit(sp.csr_matrix((1, n_columns), dtype=np.float64))
        if settings.idf:
            if len(arrays["text.idf"]) != n_columns:
                raise ValueError(f"{len(arrays['text.idf'])} idf weights, {n_columns} features")
            features._weights.idf_ = arrays["text.idf"]
        return features

    def words(self) -> list[str]:
        """The words among the features, without word pairs and the like, in order."""
        return sorted(word for word in self._counters[0].vocabulary_ if " " not in word)

    def n_columns(self) -> int:
        """Width of the rows."""
        if self.settings.n_bits is not None:
            return len(self._counters) << self.settings.n_bits
        return sum(len(counter.vocabulary_) for counter in self._counters)

    def _counts(self, texts: list[str]) -> sp.csr_matrix:
        return _joined([counter.transform(texts) for counter in self._counters])

    def _weigh(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        rows: sp.csr_matrix = self._weights.transform(counts, copy=False)
        return rows


def _counter(settings: Settings, **options: Any) -> Any:
    if settings.n_bits is None:
        return CountVectorizer(min_df=settings.min_df, **options)
    # Counts must not be negative, as their logarithm is taken.
    return HashingVectorizer(
        n_features=1 << settings.n_bits, norm=None, alternate_sign=False, **options
    )


def _joined(parts: list[Any]) -> sp.csr_matrix:
    return sp.csr_matrix(parts[0] if len(parts) == 1 else sp.hstack(parts, format="csr"))
