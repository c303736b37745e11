"""Texts in, labels out: features of texts and a learner, as one estimator."""

from __future__ import annotations

import sys
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from xmtree._base import Learner
from xmtree._labels import encode
from xmtree._persistence import LEARNERS, Arrays, name_in_files
from xmtree._prediction import Scores
from xmtree._sharing import learning
from xmtree._sklearn import Interval, InvalidParameterError, validate_params
from xmtree._text import files
from xmtree._text.explanation import Explanation, explain
from xmtree._text.features import Settings, TextFeatures, as_texts
from xmtree._text.rules import choose, weighs_by_idf
from xmtree._typing import Classes, LabelsLike, Seed, TextsLike, Weights

#: A word has about as many features of a length as it has characters.
_LONGEST_CHAR_NGRAM = 32


def _learner_has(method: str) -> Any:
    """For ``available_if``: whether the learner has ``method``."""

    def check(estimator: TextClassifier) -> bool:
        learner = vars(estimator).get("learner_", estimator.learner)
        # "auto" can be one that learns on; where it is none, the method itself says what to set.
        if isinstance(estimator.learner, str) and method == "partial_fit":
            return True
        if isinstance(learner, str):
            return False
        getattr(learner, method)  # AttributeError, in the learner's words
        return True

    return check


class TextClassifier(ClassifierMixin, BaseEstimator):
    """Texts in, labels out: a classifier of strings, for one label per text or label sets.

    Texts become weighted counts of words and word pairs, (1 + ln count) x idf in rows of
    length 1, by scikit-learn's vectorisers, and a learner of this package is trained on them.
    A word is a run of letters, digits or underscores, in lower case.

    With ``learner="auto"`` the learner is

    - :class:`LdSMClassifier` for label sets of 100 labels or more, and for single labels where
      there are more than 2,000: its time hardly grows with their number, and its scores are
      probabilities. Only with 1,000 texts or more, as with fewer its trees are hardly split;
    - else ``OAAClassifier(prune=0.03)``: one linear scorer per label, and a small file;
    - ``OAAClassifier()`` where features suit a stream, that is hashed (``n_bits``) and without
      idf: it can learn on by :meth:`partial_fit`.

    Parameters
    ----------
    learner : "auto" or a classifier of xmtree, default="auto"
        What is trained on the features of the texts. It is cloned.
    word_ngrams : int, default=2
        Features are sequences of up to this many words, from 0 (none) to 5. 2: words and pairs.
    char_ngrams : tuple of two int, optional
        Shortest and longest sequence of characters within a word, up to 32, that are features as
        well, for instance (3, 5): for inflected languages and misspelt words. Slower. None: none.
    min_df : int, default=1
        Features that fewer texts of :meth:`fit` have are left out. Not with ``n_bits``.
    idf : bool, optional
        Whether features are weighted by inverse document frequency in the texts of :meth:`fit`.
        None: where these have 16 words or more on average, as words that all texts share make up
        much of a longer text and little of a shorter one; see docs/experiments/text.md. Not with
        ``n_bits``, and not for :class:`LdSMClassifier`, which weighs features so by itself where
        that helps on rows that it holds out.
    n_bits : int, optional
        Hash features into 2^n_bits columns (as many for words and for characters), for streams
        and to store no vocabulary. From 1 to 30. None: the features of the texts of :meth:`fit`.
    random_state : int, RandomState or None, default=None
        Fixes all random choices of the learner, unless ``learner`` has a ``random_state``.
    n_jobs : int, optional
        Threads of the learner, unless ``learner`` has an ``n_jobs``; None is 1, -1 all cores.
        The model does not depend on it.
    verbose : int, default=0
        1: ``fit`` reports on stderr which learner it trains, on how many texts, labels and
        features, and shows a progress bar, if that is a terminal.

    Attributes
    ----------
    learner_ : classifier of xmtree
        The trained learner, of whatever was chosen.
    classes_ : array of shape (n_classes,)
        Labels, sorted.
    idf_ : bool
        Whether features are weighted by inverse document frequency.

    See Also
    --------
    OAAClassifier, LdSMClassifier : The learners, for features of other kinds.

    Examples
    --------
    >>> import csv, io
    >>> from xmtree import TextClassifier
    >>> file = io.StringIO('''text,label
    ... where is my new card,delivery
    ... my card has not arrived yet,delivery
    ... the cash machine kept my card,swallowed
    ... an ATM took my card,swallowed
    ... ''')
    >>> rows = list(csv.DictReader(file))
    >>> texts, labels = [row["text"] for row in rows], [row["label"] for row in rows]
    >>> model = TextClassifier(random_state=0).fit(texts, labels)
    >>> model.predict(["has it arrived", "this machine took it"]).tolist()
    ['delivery', 'swallowed']
    >>> labels, scores = model.predict_topk(["when will it have arrived"], k=2)
    >>> labels.tolist()
    [['delivery', 'swallowed']]
    >>> model.explain("my card arrived", k=1)[0].words[0][0]
    'arrived'

    Label sets, as lists:

    >>> texts = ["red apple", "green apple", "red car", "green car"]
    >>> sets = [["red", "round"], ["green", "round"], ["red"], ["green"]]
    >>> TextClassifier(random_state=0).fit(texts, sets).predict(["a red and round apple"])
    [['red', 'round']]
    """

    learner_: Learner
    _features: TextFeatures
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learner": "no_validation",  # see set_params and _check_params
        "word_ngrams": [Interval(Integral, 0, 5, closed="both")],
        "char_ngrams": [None, tuple],
        "min_df": [Interval(Integral, 1, None, closed="left")],
        "idf": [None, "boolean"],
        "n_bits": [None, Interval(Integral, 1, 30, closed="both")],
        **Learner._python_constraints,
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        LEARNERS[name_in_files(cls)] = cls

    def __init__(
        self,
        learner: Any = "auto",
        *,
        word_ngrams: int = 2,
        char_ngrams: tuple[int, int] | None = None,
        min_df: int = 1,
        idf: bool | None = None,
        n_bits: int | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.learner = learner
        self.word_ngrams = word_ngrams
        self.char_ngrams = char_ngrams
        self.min_df = min_df
        self.idf = idf
        self.n_bits = n_bits
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, texts: TextsLike, labels: LabelsLike, sample_weight: Weights = None) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        texts : list, array or data frame column of strings
        labels : array of shape (n,), or label sets
            One label per text, of any sortable type; or a list of label lists, or an indicator
            of shape (n, n_classes). Messages call it y.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or an argument cannot be used. The estimator is then as it was.
        """
        learner, features, rows = self._begin(texts, labels)
        try:
            learner.fit(rows, labels, sample_weight)
        finally:
            # One that was stopped by Ctrl-C is kept where it has learned something.
            if learner.__sklearn_is_fitted__():
                self.__dict__.update(learner_=learner, _features=features)
        return self

    @available_if(_learner_has("partial_fit"))
    def partial_fit(
        self,
        texts: TextsLike,
        labels: LabelsLike,
        classes: Classes | Literal["grow"] = None,
        sample_weight: Weights = None,
    ) -> Self:
        """Train on some more texts, one pass, in the given order.

        After :meth:`fit` features keep its vocabulary and weights. Learning can also begin
        here, with hashed features and without idf (``n_bits=20``, and ``idf`` not True).
        ``learner="auto"`` is one-against-all then.

        Parameters
        ----------
        texts : list, array or data frame column of strings
        labels : array of shape (n,), or label sets
        classes : array of shape (n_classes,) or "grow", optional
            Every label that may occur in any call; required in the first. "grow": labels
            that are not known yet are added, except to trees over a fixed set of labels.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.

        Returns
        -------
        self
        """
        self._check_params()
        with learning(self):
            self._learn_on(texts, labels, classes, sample_weight)
        return self

    def _learn_on(self, texts: Any, labels: Any, classes: Any, sample_weight: Any) -> None:
        """As :meth:`partial_fit`."""
        listed = as_texts(texts)
        if self.__sklearn_is_fitted__():
            self._check_learns_on()
            started: Any = self._fitted()
            started.partial_fit(self._rows(listed), labels, classes, sample_weight)
            return
        settings = self._settings()
        if self.n_bits is None or self.idf:
            raise ValueError(
                "the first texts do not show all words and how frequent they are: to begin with "
                "partial_fit set n_bits (20, for instance) and leave idf, or begin with fit"
            )
        features = TextFeatures(settings)
        features.start()
        learner = self._new_learner(choose(None))
        try:
            learner.partial_fit(features.transform(listed), labels, classes, sample_weight)
        finally:
            if learner.__sklearn_is_fitted__():
                self.__dict__.update(learner_=learner, _features=features)

    def predict(self, texts: TextsLike) -> Any:
        """The best label of each text, or its label set in the form that ``labels`` had.

        Parameters
        ----------
        texts : list, array or data frame column of strings

        Returns
        -------
        array of shape (n,), or label sets
            As ``predict`` of ``learner_``. A text without a known word has the labels that are
            most likely without any knowledge of it.
        """
        learner, rows = self._answering(texts)
        return learner.predict(rows)

    def predict_topk(
        self, texts: TextsLike, k: int = 5, *, scores: Scores = "raw"
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each text, best first.

        Parameters
        ----------
        texts : list, array or data frame column of strings
        k : int, default=5
        scores : {"raw", "probability"}, default="raw"
            What is returned beside the labels: scores of the learner, or probabilities.

        Returns
        -------
        labels : array of shape (n, k)
            Where fewer than ``k`` labels have a score the rest is -1 for integer labels, NaN
            for floats, and None for all others.
        scores : float32 array of shape (n, k)
            Their scores, falling; -inf where there is no label. Of :class:`LdSMClassifier`
            these are probabilities.
        """
        learner, rows = self._answering(texts)
        labels, found = learner.predict_topk(rows, k, scores=scores)
        return labels, found

    def predict_proba(self, texts: TextsLike) -> NDArray[np.float32]:
        """The probability of each class.

        Parameters
        ----------
        texts : list, array or data frame column of strings

        Returns
        -------
        float32 array of shape (n, n_classes)
            Columns as in ``classes_``.
        """
        learner, rows = self._answering(texts)
        found: NDArray[np.float32] = learner.predict_proba(rows)
        return found

    @available_if(_learner_has("decision_function"))
    def decision_function(self, texts: TextsLike) -> NDArray[np.float32]:
        """The score of each class, where the learner has ``decision_function``.

        Parameters
        ----------
        texts : list, array or data frame column of strings

        Returns
        -------
        float32 array of shape (n, n_classes), or (n,) with two classes
        """
        learner: Any = self._fitted()
        found: NDArray[np.float32] = learner.decision_function(self._rows(as_texts(texts)))
        return found

    def score(self, texts: TextsLike, labels: LabelsLike, sample_weight: Weights = None) -> float:
        """The share of texts whose label, or label set, is predicted exactly.

        Parameters
        ----------
        texts : list, array or data frame column of strings
        labels : array of shape (n,), or label sets as in ``fit``
        sample_weight : array of shape (n,), optional
            Weights of the texts; by default all count the same.

        Returns
        -------
        float
        """
        rows = self._rows(as_texts(texts))
        return float(self._fitted().score(rows, labels, sample_weight))

    def explain(self, text: str, k: int = 3) -> list[Explanation]:
        """The words that spoke most for each of the best labels of a text.

        A word's contribution is by how much the label's score falls when the word is left out,
        with the word pairs that it is part of. So it can be told for every learner; it takes a
        prediction for each word. Words that change nothing are not listed, nor, of a text of more
        than 1,000 different ones, those whose features have small weights in it.

        Parameters
        ----------
        text : str
        k : int, default=3
            Labels to explain.

        Returns
        -------
        list of Explanation
            For each of the best labels, best first, its ``label``, its ``score``, ``words``:
            pairs of a word and its contribution, largest first; below 0 of those that
            spoke against the label; and where the learner has trees ``paths``: pairs of a tree's
            number in ``learner_.trees_`` and the numbers of its nodes that led to the label's
            score, from the root to a leaf.
        """
        learner = self._fitted()
        if not isinstance(text, str):
            raise TypeError(f"text must be one string, got {type(text).__name__}")
        return explain(learner, self._features, text, k)

    def save(self, path: str | Path, *, compact: bool = False) -> None:
        """Write the estimator to one file, for :func:`xmtree.load`.

        It holds the learner, the vocabulary and the idf weights as flat arrays; nothing is
        executed when it is loaded.

        Parameters
        ----------
        path : str or Path
        compact : bool, default=False
            Store of the learner what predictions need and no more; see its ``save``.
        """
        files.save(self, path, compact=compact)

    @classmethod
    def _from_file(
        cls, path: str | Path, learner: Learner, meta: dict[str, Any], arrays: Arrays
    ) -> Self:
        """What :meth:`save` has written, around the learner of the file."""
        return files.restored(cls, path, learner, meta, arrays)

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the learner."""
        check_is_fitted(self)
        return self.learner_.classes_

    @property
    def idf_(self) -> bool:
        """Whether features are weighted by inverse document frequency."""
        check_is_fitted(self)
        return self._features.settings.idf

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.classifier_tags.multi_label = isinstance(self.learner, str) or bool(
            self.learner._multilabel
        )
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, and by ``learner__`` of its learner.

        Parameters
        ----------
        **params
            Parameters by their names.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no such parameter; "auto" has none.
        """
        inner = next((name for name in params if name.startswith("learner__")), None)
        if inner is not None and isinstance(params.get("learner", self.learner), str):
            raise ValueError(
                f"{inner}: learner is {params.get('learner', self.learner)!r}, which has no "
                "parameters; set learner to a classifier of xmtree, such as OAAClassifier()"
            )
        found: Self = super().set_params(**params)
        return found

    def _check_params(self) -> None:
        is_auto = isinstance(self.learner, str) and self.learner == "auto"
        if not (is_auto or isinstance(self.learner, Learner)):
            raise InvalidParameterError(
                "learner must be 'auto' or a classifier of xmtree, such as OAAClassifier(); got "
                f"{self.learner!r}"
            )
        validate_params(self)

    def _settings(self) -> Settings:
        """The settings of the features, checked."""
        pair = self.char_ngrams
        if pair is not None:
            is_pair = len(pair) == 2 and all(isinstance(at, Integral) for at in pair)
            if not is_pair or not 1 <= pair[0] <= pair[1] <= _LONGEST_CHAR_NGRAM:
                raise ValueError(
                    f"char_ngrams must be None or two lengths up to {_LONGEST_CHAR_NGRAM}, the "
                    f"shorter first, such as (3, 5); got {pair!r}"
                )
            pair = (int(pair[0]), int(pair[1]))
        if self.word_ngrams == 0 and pair is None:
            raise ValueError("word_ngrams=0 needs char_ngrams: texts would have no features")
        if self.n_bits is not None and self.min_df > 1:
            raise ValueError("min_df counts features, which are not known with n_bits; leave it 1")
        return Settings(
            word_ngrams=int(self.word_ngrams),
            char_ngrams=pair,
            min_df=int(self.min_df),
            idf=bool(self.idf),
            n_bits=None if self.n_bits is None else int(self.n_bits),
        )

    def _begin(self, texts: Any, labels: Any) -> tuple[Any, TextFeatures, Any]:
        """What ``fit`` begins with: the learner to train, the features, and the rows that these
        make of the texts."""
        self._check_params()
        settings = self._settings()
        listed = as_texts(texts)
        target = encode(labels)
        if target.codes.shape[0] != len(listed):
            raise ValueError(f"{len(listed)} texts, but labels for {target.codes.shape[0]}")
        stream = self.n_bits is not None and not self.idf
        learner = self._new_learner(choose(None if stream else target))
        if self.idf is None and self.n_bits is None:
            settings = replace(settings, idf=weighs_by_idf(listed, learner))
        features = TextFeatures(settings)
        rows = features.fit_transform(listed)
        if self.verbose:
            print(
                f"TextClassifier: {len(listed)} texts, {len(target.classes)} labels, "
                f"{rows.shape[1]} features{' by idf' * settings.idf}: "
                f"{type(learner).__name__}",
                file=sys.stderr,
            )
        return learner, features, rows

    def _new_learner(self, automatic: Learner) -> Any:
        """The learner to train: ``automatic`` or a clone of the one given."""
        learner = automatic if isinstance(self.learner, str) else clone(self.learner)
        if learner.random_state is None:
            learner.set_params(random_state=self.random_state)
        if learner.n_jobs is None:
            learner.set_params(n_jobs=self.n_jobs)
        if self.verbose:
            learner.set_params(verbose=self.verbose)
        return learner

    def _check_learns_on(self) -> None:
        """Refuses ``partial_fit`` where ``learner="auto"`` has chosen one that cannot learn on."""
        prune = self.learner_._fitted_params().get("prune")
        is_online = hasattr(self.learner_, "partial_fit") and prune is None
        if isinstance(self.learner, str) and not is_online:
            chosen = type(self.learner_).__name__ + ("" if prune is None else f"(prune={prune})")
            raise ValueError(
                f'this model cannot learn on: learner="auto" has chosen {chosen}. Set '
                "learner=OAAClassifier() and fit again; or for a stream from the first text on set "
                "n_bits=20 and begin with partial_fit"
            )

    def _fitted(self) -> Learner:
        """The trained learner, on as many threads as ``n_jobs`` says now."""
        check_is_fitted(self)
        if isinstance(self.learner, str) or self.learner.n_jobs is None:
            self.learner_.n_jobs = self.n_jobs
        return self.learner_

    def _answering(self, texts: TextsLike) -> tuple[Any, Any]:
        """What predicts the texts, and their rows."""
        rows, learner = self._rows(as_texts(texts)), self._fitted()
        # scikit-learn's estimators refuse data without a row.
        return (learner if rows.shape[0] else learner.predictor()), rows

    def _rows(self, texts: list[str]) -> Any:
        check_is_fitted(self)
        return self._features.transform(texts)


LEARNERS[name_in_files(TextClassifier)] = TextClassifier
