"""Texts as rows of numbers: weighted counts of words, word pairs and character n-grams.

scikit-learn's vectorizers count and weight. Their fitted state is a vocabulary and idf weights,
which a model file stores as arrays.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer

from xmtree._persistence import Arrays, pack, unpack

#: Longest character n-gram: every length adds about a feature per character.
_LONGEST_CHAR_NGRAM = 32

#: Largest number of words in an explanation: each needs a row as long as the text.
MOST_WORDS = 1000
#: Rows per block, each as long as the text.
_ROWS_PER_BLOCK = 64

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Settings:
    """Settings of text features; see :class:`xmtree.TextClassifier`."""

    word_ngrams: int
    char_ngrams: tuple[int, int] | None
    min_df: int
    idf: bool
    n_bits: int | None


def settings_of(estimator: Any) -> Settings:
    """Check the settings of a text classifier and return them."""
    pair, n_bits = estimator.char_ngrams, estimator.n_bits
    if pair is not None:
        is_pair = len(pair) == 2 and all(isinstance(at, Integral) for at in pair)
        if not is_pair or not 1 <= pair[0] <= pair[1] <= _LONGEST_CHAR_NGRAM:
            raise ValueError(
                f"char_ngrams must be None or two lengths from 1 to {_LONGEST_CHAR_NGRAM}, the "
                f"shorter first, such as (3, 5), got {pair!r}"
            )
        pair = (int(pair[0]), int(pair[1]))
    if estimator.word_ngrams == 0 and pair is None:
        raise ValueError("word_ngrams=0 needs char_ngrams, as texts would have no features")
    if n_bits is not None and estimator.min_df > 1:
        raise ValueError(f"min_df must be 1 with n_bits (hashing), got {estimator.min_df}")
    return Settings(
        word_ngrams=int(estimator.word_ngrams),
        char_ngrams=pair,
        min_df=int(estimator.min_df),
        idf=bool(estimator.idf),
        n_bits=None if n_bits is None else int(n_bits),
    )


def as_texts(texts: Any) -> list[str]:
    """Return a list, array or column of strings as a list; refuse anything else."""
    if isinstance(texts, str | bytes):
        raise ValueError("texts must be a list of strings, got a single string; pass [text]")
    n_dimensions = getattr(texts, "ndim", len(getattr(texts, "shape", "1")))
    if n_dimensions != 1 or isinstance(texts, dict):
        kind = type(texts).__name__
        raise ValueError(
            f"texts must be one column or a list of strings, got {kind} of {n_dimensions} "
            "dimensions"
        )
    try:
        # Arrays and columns have tolist; copying a list is cheap.
        listed = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    except TypeError as error:
        raise TypeError(f"texts must be a list of strings, got {type(texts).__name__}") from error
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(
                f"row {row} of texts is {text!r}, of type {type(text).__name__}; texts must be "
                "strings, an empty string if one is missing"
            )
    return listed


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


def _plain(text: str) -> str:
    """Return only the words, so that other characters do not get into character n-grams."""
    return " ".join(words_of(text))


class TextFeatures:
    """Extraction of features from texts, as CSR rows of length 1."""

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
        # The weight of a feature is (1 + ln count) x idf.
        self._weights = TfidfTransformer(use_idf=settings.idf, sublinear_tf=True)

    def fit_transform(self, texts: list[str]) -> sp.csr_matrix:
        """Fit vocabulary and idf weights, and return the rows of ``texts``."""
        if not any(_WORD.search(text) for text in texts):
            raise ValueError("texts contain no words")
        counts = _joined([counter.fit_transform(texts) for counter in self._counters])
        rows: sp.csr_matrix = self._weights.fit(counts).transform(counts, copy=False)
        return rows

    def start(self) -> None:
        """Prepare hashed features without idf weights, which need no training."""
        self._weights.fit(self._counts([""]))

    def transform(self, texts: list[str]) -> sp.csr_matrix:
        """Return the rows of ``texts``, without features unknown to ``fit_transform``."""
        return self._weigh(self._counts(texts))

    def without_each_word(self, text: str) -> tuple[list[str], Iterator[sp.csr_matrix]]:
        """Return the distinct words of a text with features, and rows of the text without each.

        The word's pairs and character n-grams are left out too, and its neighbors do not become
        a pair. If there are more than :data:`MOST_WORDS` words, those whose features have the
        largest weights are kept. The rows come in blocks.
        """
        words = words_of(text)
        places: dict[str, list[int]] = {}
        for at, word in enumerate(words):
            places.setdefault(word, []).append(at)
        counts, removed = self._counts([text]), self._removed(words, list(places.values()))
        removed.sum_duplicates()
        squares = self._weigh(counts.copy()).power(2)
        changes = (removed > 0) @ squares.T
        order = np.argsort(-changes.toarray().ravel(), kind="stable")[:MOST_WORDS]
        kept = np.sort(order[np.diff(removed.indptr)[order] > 0])

        def blocks() -> Iterator[sp.csr_matrix]:
            for start in range(0, len(kept), _ROWS_PER_BLOCK):
                block = removed[kept[start : start + _ROWS_PER_BLOCK]]
                ones = sp.csr_matrix(np.ones((block.shape[0], 1), np.float32))
                rows = sp.csr_matrix(ones @ counts - block)
                # Counts of 0 have no logarithm.
                rows.eliminate_zeros()
                yield self._weigh(rows)

        distinct = list(places)
        return [distinct[at] for at in kept], blocks()

    def _removed(self, words: list[str], places: list[list[int]]) -> sp.csr_matrix:
        """Return the counts that a text loses without each word, given the word's ``places``.

        Only the neighborhood of a place is counted, with the word and without it.
        """
        reach = max(self.settings.word_ngrams - 1, 0)
        pieces: list[str] = []
        signs: list[int] = []
        word_of: list[int] = []
        for number, all_places in enumerate(places):
            # Cut between places that share no n-gram.
            cuts = np.flatnonzero(np.diff(all_places) > reach) + 1
            for near in np.split(np.array(all_places), cuts):
                start, end = max(near[0] - reach, 0), near[-1] + reach + 1
                starts, ends = [start, *(near + 1)], [*near, end]
                for sign, a, b in [(1, start, end), *zip(repeat(-1), starts, ends, strict=False)]:
                    pieces.append(" ".join(words[a:b]))
                    signs.append(sign)
                    word_of.append(number)
        shape = (len(places), len(pieces))
        entries = np.array(signs, np.float32), (np.array(word_of, int), np.arange(len(pieces)))
        sums = sp.csr_matrix(entries, shape)
        removed = sp.csr_matrix(sums @ self._counts(pieces))
        removed.eliminate_zeros()
        return removed

    def to_arrays(self) -> Arrays:
        """Return the fitted state as flat arrays."""
        arrays: Arrays = {}
        if self.settings.n_bits is None:
            for number, counter in enumerate(self._counters):
                # Words are stored in the order of their columns.
                names = sorted(counter.vocabulary_, key=counter.vocabulary_.__getitem__)
                arrays |= pack(f"text.vocabulary_{number}", np.array(names, object))
        if self.settings.idf:
            arrays["text.idf"] = np.asarray(self._weights.idf_, np.float64)
        return arrays

    @staticmethod
    def from_arrays(settings: Settings, arrays: Arrays) -> "TextFeatures":
        """Restore features from :meth:`to_arrays`."""
        features = TextFeatures(settings)
        if settings.n_bits is None:
            for number, counter in enumerate(features._counters):
                names = unpack(f"text.vocabulary_{number}", arrays, np.dtype(object)).tolist()
                counter.vocabulary_ = {name: at for at, name in enumerate(names)}
                if len(counter.vocabulary_) != len(names):
                    raise ValueError("a vocabulary contains a word twice")
        n_columns = features.n_columns()
        if settings.idf and len(arrays["text.idf"]) != n_columns:
            raise ValueError(f"{len(arrays['text.idf'])} idf weights for {n_columns} features")
        features._weights.fit(sp.csr_matrix((1, n_columns), dtype=np.float64))
        if settings.idf:
            features._weights.idf_ = arrays["text.idf"]
        return features

    def words(self) -> list[str]:
        """Return the single words among the features, in order."""
        return sorted(word for word in self._counters[0].vocabulary_ if " " not in word)

    def n_columns(self) -> int:
        """Return the width of the rows."""
        if self.settings.n_bits is not None:
            return len(self._counters) << self.settings.n_bits
        return sum(len(counter.vocabulary_) for counter in self._counters)

    def _counts(self, texts: list[str]) -> sp.csr_matrix:
        if not texts:
            return sp.csr_matrix(np.empty((0, self.n_columns()), np.float32))
        return _joined([counter.transform(texts) for counter in self._counters])

    def _weigh(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        if counts.shape[0] == 0:  # scikit-learn refuses empty data
            return counts
        rows: sp.csr_matrix = self._weights.transform(counts, copy=False)
        return rows


def _counter(settings: Settings, **options: Any) -> Any:
    if settings.n_bits is None:
        return CountVectorizer(min_df=settings.min_df, **options)
    # Alternating signs could make counts negative, which have no logarithm.
    return HashingVectorizer(
        n_features=1 << settings.n_bits, norm=None, alternate_sign=False, **options
    )


def _joined(parts: list[Any]) -> sp.csr_matrix:
    return sp.csr_matrix(parts[0] if len(parts) == 1 else sp.hstack(parts, format="csr"))
