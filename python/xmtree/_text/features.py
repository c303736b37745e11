"""Texts as rows of numbers: weighted counts of words, word pairs and character n-grams.

The core counts and weighs as scikit-learn's vectorizers do, with the same results. The fitted state
is a vocabulary and idf weights, which files and pickles store as arrays.
"""

import re
from dataclasses import dataclass
from itertools import repeat
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _core, _one_row
from xmtree._explanation import Pairs, sorted_pairs
from xmtree._persistence import Arrays, pack, unpack

#: Longest character n-gram: every length adds about a feature per character.
_LONGEST_CHAR_NGRAM = 32

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
    """Return a text as the core reads it: ASCII, or its words, separated by spaces.

    Python's own tables decide which characters make a word. Pickles of version 0.1 name this
    function.
    """
    return text if text.isascii() else " ".join(words_of(text))


def count_words(texts: list[str]) -> int:
    """Return the number of words, separated by spaces."""
    return sum(len(text.split()) for text in texts)


@dataclass(frozen=True)
class TextCounts:
    """Numbers of texts with each n-gram in a part of the texts."""

    n_texts: int
    n_words: int
    #: The n-grams of each kind, and the number of texts with each; none if they are hashed.
    ngrams: list[list[str]]
    counts: list[NDArray[np.int64]]
    #: The number of texts with each column, if n-grams are hashed.
    hashed: NDArray[np.int64]

    @staticmethod
    def of(settings: Settings, texts: list[str]) -> "TextCounts":
        """Count the n-grams of some texts."""
        n_words = count_words(texts)
        kinds = settings.word_ngrams, settings.char_ngrams
        n_kinds = bool(kinds[0]) + bool(kinds[1])
        none = np.zeros(0, np.int64)
        if settings.n_bits is not None:
            features = TextFeatures(settings)
            return TextCounts(len(texts), n_words, [], [], _texts_with(features._counted(texts)))
        if not any(_WORD.search(text) for text in texts):
            return TextCounts(len(texts), 0, [[]] * n_kinds, [none] * n_kinds, none)
        counter = _core.NgramCounter.learn(*kinds, list(map(_plain, texts)), 1)
        ngrams = counter.vocabularies()
        found = _texts_with(TextFeatures(settings, ngrams)._counted(texts))
        ends = np.cumsum([len(kind) for kind in ngrams])[:-1]
        return TextCounts(len(texts), n_words, ngrams, np.split(found, ends), none)


class TextFeatures:
    """Extraction of features from texts, as CSR rows of length 1."""

    def __init__(self, settings: Settings, vocabularies: Any = (), idf: Any = None) -> None:
        self.settings, self._idf = settings, idf
        self._kinds = settings.word_ngrams, settings.char_ngrams
        self._counter = _core.NgramCounter(*self._kinds, vocabularies, settings.n_bits)

    def fit_transform(self, texts: list[str], n_jobs: int | None = None) -> sp.csr_matrix:
        """Fit vocabulary and idf weights, and return the rows of ``texts``."""
        if not any(_WORD.search(text) for text in texts):
            raise ValueError("texts contain no words")
        if self.settings.n_bits is None:
            plain, min_df = list(map(_plain, texts)), self.settings.min_df
            self._counter = _core.NgramCounter.learn(*self._kinds, plain, min_df)
        counts = self._counted(texts, n_jobs)
        if self.settings.idf:
            self._idf = _idf(_texts_with(counts), len(texts))
        return _matrix(self._weigh(counts))

    @staticmethod
    def of_parts(settings: Settings, parts: list[TextCounts]) -> "TextFeatures":
        """Return the features of texts in parts, as :meth:`fit_transform` learns them of all."""
        n_texts, n_kinds = sum(part.n_texts for part in parts), len(parts[0].ngrams)
        if not any(part.n_words for part in parts):
            raise ValueError("texts contain no words")
        vocabularies, counts = [], [sum(part.hashed for part in parts)]
        for kind in range(n_kinds):
            total: dict[str, int] = {}
            for part in parts:
                for ngram, n in zip(part.ngrams[kind], part.counts[kind].tolist(), strict=True):
                    total[ngram] = total.get(ngram, 0) + n
            kept = sorted(ngram for ngram, n in total.items() if n >= settings.min_df)
            if not kept:
                most = max(total.values(), default=0)
                raise ValueError(
                    f"min_df must be at most {most}, as otherwise no terms remain, got "
                    f"{settings.min_df}"
                )
            vocabularies.append(kept)
            counts.append(np.array([total[ngram] for ngram in kept]))
        idf = _idf(np.concatenate(counts), n_texts) if settings.idf else None
        return TextFeatures(settings, vocabularies, idf)

    def transform(self, texts: list[str], n_jobs: int | None = None) -> sp.csr_matrix:
        """Return the rows of ``texts``, without features unknown to ``fit_transform``."""
        return _matrix(self._weigh(self._counted(texts, n_jobs)))

    def rows(self, texts: list[str], n_jobs: int | None = None) -> Any:
        """Return :meth:`transform` in a form that learners predict; faster for one text."""
        rows = self._weigh(self._counted(texts, n_jobs))
        return rows if len(texts) == 1 else _matrix(rows)

    def by_word(self, text: str, contributions: sp.csr_matrix) -> Pairs:
        """Return the contributions of a text's words, given a row of those of all features.

        The contribution of a feature is divided among the words without which it is lost, such as
        those of a word pair.
        """
        words = words_of(text)
        places: dict[str, list[int]] = {}
        for at, word in enumerate(words):
            places.setdefault(word, []).append(at)
        shares = self._removed(words, list(places.values()))
        totals = np.asarray(shares.sum(axis=0)).ravel()
        shares.data /= totals[shares.indices]
        by_word = shares @ contributions[:, :-1].T
        return sorted_pairs(list(places), by_word.toarray().ravel())

    def _removed(self, words: list[str], places: list[list[int]]) -> sp.csr_matrix:
        """Return the counts that a text loses without each word, given the word's ``places``.

        Only the neighborhood of a place is counted, with the word and without it.
        """
        reach = max(self.settings.word_ngrams - 1, 0)
        pieces: list[str] = []
        entries: list[tuple[int, int]] = []
        for number, all_places in enumerate(places):
            # Cut between places that share no n-gram.
            cuts = np.flatnonzero(np.diff(all_places) > reach) + 1
            for near in np.split(np.array(all_places), cuts):
                start, end = max(near[0] - reach, 0), near[-1] + reach + 1
                starts, ends = [start, *(near + 1)], [*near, end]
                for sign, a, b in [(1, start, end), *zip(repeat(-1), starts, ends, strict=False)]:
                    pieces.append(" ".join(words[a:b]))
                    entries.append((sign, number))
        signs, word_of = np.array(entries, int).reshape(-1, 2).T
        at = word_of, np.arange(len(pieces))
        sums = sp.csr_matrix((signs.astype(np.float32), at), (len(places), len(pieces)))
        removed = sp.csr_matrix(sums @ self._counts(pieces))
        removed.eliminate_zeros()
        return removed

    def to_arrays(self) -> Arrays:
        """Return the fitted state as flat arrays."""
        return _arrays(self._counter.vocabularies(), self._idf)

    @staticmethod
    def from_arrays(settings: Settings, arrays: Arrays) -> "TextFeatures":
        """Restore features from :meth:`to_arrays`."""
        n_kinds = bool(settings.word_ngrams) + bool(settings.char_ngrams)
        vocabularies = [
            unpack(f"text.vocabulary_{number}", arrays, np.dtype(object)).tolist()
            for number in range(n_kinds if settings.n_bits is None else 0)
        ]
        idf = arrays["text.idf"].astype(np.float64) if settings.idf else None
        features = TextFeatures(settings, vocabularies, idf)
        if idf is not None and len(idf) != features.n_columns():
            raise ValueError(f"{len(idf)} idf weights for {features.n_columns()} features")
        return features

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "arrays": self.to_arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.get("arrays")
        if arrays is None:  # a pickle of version 0.1, of scikit-learn's vectorizers
            known = [vars(counter).get("vocabulary_", {}) for counter in state["_counters"]]
            idf = getattr(state["_weights"], "idf_", None)
            arrays = _arrays([sorted(columns, key=columns.__getitem__) for columns in known], idf)
        vars(self).update(vars(TextFeatures.from_arrays(state["settings"], arrays)))

    def words(self) -> list[str]:
        """Return the single words among the features, in order."""
        return [word for word in self._counter.vocabularies()[0] if " " not in word]

    def n_columns(self) -> int:
        """Return the width of the rows."""
        return self._counter.n_columns

    def _counts(self, texts: list[str]) -> sp.csr_matrix:
        return _matrix(self._counted(texts))

    def _counted(self, texts: list[str], n_jobs: int | None = None) -> _one_row.Csr:
        n_threads = _one_row.n_threads(n_jobs, len(texts))
        found = self._counter.count(list(map(_plain, texts)), n_threads)
        return _one_row.Csr(*found, (len(texts), self.n_columns()))

    def _weigh(self, counts: Any) -> Any:
        """Turn the counts of CSR rows into weights, in place."""
        # The logarithm is numpy's, whose last bits may differ from those of others.
        np.log(counts.data, out=counts.data)
        starts = counts.indptr.astype(np.int64, copy=False)
        _core.weigh_counts(starts, counts.indices, counts.data, self._idf)
        return counts


def _matrix(rows: _one_row.Csr) -> sp.csr_matrix:
    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), rows.shape)


def _texts_with(counts: _one_row.Csr) -> NDArray[np.int64]:
    """Return the number of texts with each column."""
    return np.bincount(counts.indices, minlength=counts.shape[1])


def _idf(n_with: NDArray[np.int64], n_texts: int) -> NDArray[np.float64]:
    """Return ln((1 + texts) / (1 + texts with the feature)) + 1, rounded as scikit-learn does."""
    idf = np.float32(n_texts + 1) / (n_with.astype(np.float32) + np.float32(1))
    rounded: NDArray[np.float32] = np.log(idf) + np.float32(1)
    return rounded.astype(np.float64)


def _arrays(vocabularies: list[list[str]], idf: Any) -> Arrays:
    """Return vocabularies in the order of columns and idf weights as arrays for files."""
    arrays: Arrays = {}
    for number, names in enumerate(vocabularies):
        arrays |= pack(f"text.vocabulary_{number}", np.array(names, object))
    if idf is not None:
        arrays["text.idf"] = np.asarray(idf, np.float64)
    return arrays
