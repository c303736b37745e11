"""Texts in, labels out: features of texts and a learner, as one estimator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from xmtree import _persistence
from xmtree._base import Learner
from xmtree._delegation import DelegatedPredictions, learner_has
from xmtree._labels import encode
from xmtree._persistence import LEARNERS, Arrays, name_in_files
from xmtree._sharing import learning
from xmtree._sklearn import Interval, InvalidParameterError, validate_params
from xmtree._text.explanation import Explanation, explain
from xmtree._text.features import TextFeatures, as_texts, settings_of
from xmtree._text.rules import check_learns_on, new_learner, weighs_by_idf
from xmtree._typing import Classes, LabelsLike, Seed, TextsLike, Weights


def _may_learn_on(estimator: TextClassifier) -> bool:
    """Whether there is ``partial_fit``. Where "auto" has no online learner, the method itself says
    what to set."""
    return isinstance(estimator.learner, str) or learner_has("partial_fit")(estimator)


def _restored(stored: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a text classifier that a file holds, with a tuple for JSON's list."""
    params = _persistence.restored_params(stored)
    if isinstance(params["char_ngrams"], list):
        params["char_ngrams"] = tuple(params["char_ngrams"])
    return params


class _Trained:
    """What a text classifier has learned."""

    learner_: Learner
    _features: TextFeatures


@dataclass(eq=False, repr=False)
class TextClassifier(_Trained, DelegatedPredictions[TextsLike]):
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
        None: where these have 16 words or more on average (see docs/experiments/text.md), not with
        ``n_bits``, and not for :class:`LdSMClassifier`, which weighs features so by itself.
    n_bits : int, optional
        Hash features into 2^n_bits columns (as many for words and for characters), for streams
        and to store no vocabulary. From 1 to 30. None: the features of the texts of :meth:`fit`.
    random_state : int, RandomState or None, default=None
        Fixes all random choices of the learner, unless ``learner`` has a ``random_state``.
    n_jobs : int, optional
        Threads of the learner, unless ``learner`` has an ``n_jobs``; None is 1, -1 all cores.
        The model does not depend on it.
    verbose : int, default=0
        1: ``fit`` reports on stderr what it trains, and a progress bar, if that is a terminal.

    Attributes
    ----------
    learner_ : classifier of xmtree
        The trained learner, of whatever was chosen.
    classes_ : array of shape (n_classes,)
        Labels, sorted.
    idf_ : bool
        Whether features are weighted by inverse document frequency.

    Examples
    --------
    >>> from xmtree import TextClassifier
    >>> texts = ["where is my new card", "my card has not arrived yet"]
    >>> texts += ["the cash machine kept my card", "an ATM took my card"]
    >>> labels = ["delivery", "delivery", "swallowed", "swallowed"]
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learner": "no_validation",  # see set_params and _check_params
        "word_ngrams": [Interval(Integral, 0, 5, closed="both")],
        "char_ngrams": [None, tuple],
        "min_df": [Interval(Integral, 1, None, closed="left")],
        "idf": [None, "boolean"],
        "n_bits": [None, Interval(Integral, 1, 30, closed="both")],
        **Learner._python_constraints,
    }

    learner: Any = "auto"
    _: KW_ONLY
    word_ngrams: int = 2
    char_ngrams: tuple[int, int] | None = None
    min_df: int = 1
    idf: bool | None = None
    n_bits: int | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        LEARNERS[name_in_files(cls)] = cls

    def fit(self, texts: TextsLike, labels: LabelsLike, sample_weight: Weights = None) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        texts : list, array or data frame column of strings
        labels : array of shape (n,), list of label lists, or indicator of shape (n, n_classes)
            Messages call it y.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument cannot be used. The estimator is then as it was.
        """
        learner, features, rows = self._begin(texts, labels)
        with self._keeping(learner, features):
            learner.fit(rows, labels, sample_weight)
        return self

    @available_if(_may_learn_on)
    def partial_fit(
        self,
        texts: TextsLike,
        labels: LabelsLike,
        classes: Classes | Literal["grow"] = None,
        sample_weight: Weights = None,
    ) -> Self:
        """Train on some more texts, one pass, in the given order.

        After :meth:`fit` features keep its vocabulary and weights. Learning can also begin here,
        with ``n_bits=20`` and without idf; ``learner="auto"`` is one-against-all then.

        Parameters
        ----------
        texts, labels : as of :meth:`fit`
        classes : array of shape (n_classes,) or "grow", optional
            Every label that may occur in any call; required in the first. "grow": labels
            that are not known yet are added, except to trees over a fixed set of labels.
        sample_weight : as of :meth:`fit`

        Returns
        -------
        self
        """
        self._check_params()
        with learning(self):
            listed = as_texts(texts)
            if self.__sklearn_is_fitted__():
                check_learns_on(self.learner, self.learner_)
                learner = self._trained()
                features = self._features
            else:
                settings = settings_of(self)
                if self.n_bits is None or self.idf:
                    raise ValueError(
                        "the first texts do not show all words and how frequent they are: to begin "
                        "with partial_fit set n_bits (20, for instance) and leave idf, or begin "
                        "with fit"
                    )
                features = TextFeatures(settings)
                features.start()
                learner = new_learner(self, None)
            with self._keeping(learner, features):
                learner.partial_fit(features.transform(listed), labels, classes, sample_weight)
        return self

    def explain(self, text: str, k: int = 3) -> list[Explanation]:
        """The words that spoke most for each of the best labels of a text.

        A word's contribution is by how much the label's score falls when the word is left out,
        with the word pairs that it is part of, which takes a prediction for each word. Words that
        change nothing are not listed, nor, of a text of more than 1,000 different ones, those whose
        features have small weights in it.

        Parameters
        ----------
        text : str
        k : int, default=3
            Labels to explain.

        Returns
        -------
        list of Explanation
            Of the best labels, best first.
        """
        learner = self._trained()
        if not isinstance(text, str):
            raise TypeError(f"text must be one string, got {type(text).__name__}")
        return explain(learner, self._features, text, k)

    def save(self, path: str | Path, *, compact: bool = False) -> None:
        """Write the estimator to one file, for :func:`xmtree.load`.

        Parameters
        ----------
        path : str or Path
        compact : bool, default=False
            Store of the learner what predictions need and no more; see its ``save``.
        """
        _persistence.check_fitted(self)
        seed = self.learner_._fitted_params()["seed"]
        params = _persistence.plain_params(self, seed, but="learner") | {"learner": self.learner}
        if not isinstance(self.learner, str):
            params["learner"] = {
                "class": _persistence.name_in_files(type(self.learner)),
                "params": _persistence.plain_params(self.learner, seed),
            }
        _persistence.save_around(
            self,
            self.learner_,
            path,
            self._features.to_arrays(),
            compact=compact,
            params=params,
            features=asdict(self._features.settings),
        )

    @classmethod
    def _from_file(
        cls, path: str | Path, learner: Learner, meta: dict[str, Any], arrays: Arrays
    ) -> Self:
        """What :meth:`save` has written, around the learner of the file."""
        template = meta["params"]["learner"]
        params = _restored({**meta["params"], "learner": "auto"})
        if template != "auto":
            params["learner"] = _persistence.class_in_file(path, template["class"])(
                **_persistence.restored_params(template["params"])
            )
        estimator = cls(**params)
        # Parameters may have changed since the features were learned.
        settings = cls(**{**params, **_restored(meta["features"])})
        validate_params(settings, *meta["features"])
        features = TextFeatures.from_arrays(settings_of(settings), arrays)
        if features.n_columns() != learner.n_features_in_:
            raise ValueError(
                f"{features.n_columns()} features for {learner.n_features_in_} columns"
            )
        estimator.learner_, estimator._features = learner, features
        return estimator

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
        tags.classifier_tags.multi_label = getattr(self.learner, "_multilabel", True)
        return tags

    def set_params(self, **params: Any) -> Self:
        inner = next((name for name in params if name.startswith("learner__")), None)
        if inner is not None and isinstance(params.get("learner", self.learner), str):
            raise ValueError(
                f"{inner}: learner is {params.get('learner', self.learner)!r}, which has no "
                "parameters; set learner to a classifier of xmtree, such as OAAClassifier()"
            )
        return super().set_params(**params)

    def _check_params(self) -> None:
        is_auto = isinstance(self.learner, str) and self.learner == "auto"
        if not (is_auto or isinstance(self.learner, Learner)):
            raise InvalidParameterError(
                "learner must be 'auto' or a classifier of xmtree, such as OAAClassifier(); got "
                f"{self.learner!r}"
            )
        validate_params(self)

    def _begin(self, texts: Any, labels: Any) -> tuple[Any, TextFeatures, Any]:
        """What ``fit`` begins with: the learner to train, the features, and the rows that these
        make of the texts."""
        self._check_params()
        settings = settings_of(self)
        listed = as_texts(texts)
        target = encode(labels)
        if target.codes.shape[0] != len(listed):
            raise ValueError(f"{len(listed)} texts, but labels for {target.codes.shape[0]}")
        stream = self.n_bits is not None and not self.idf
        learner = new_learner(self, None if stream else target)
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

    @contextmanager
    def _keeping(self, learner: Any, features: TextFeatures) -> Iterator[None]:
        """Keeps what is trained within, also after Ctrl-C where it has learned something."""
        try:
            yield
        finally:
            if learner.__sklearn_is_fitted__():
                self.__dict__.update(learner_=learner, _features=features)

    def _trained(self) -> Any:
        """The trained learner, on as many threads as ``n_jobs`` says now."""
        check_is_fitted(self)
        if isinstance(self.learner, str) or self.learner.n_jobs is None:
            self.learner_.n_jobs = self.n_jobs
        return self.learner_

    def _known_learner(self) -> Any:
        learner = vars(self).get("learner_", self.learner)
        return None if isinstance(learner, str) else learner

    def _predicting(self, X: TextsLike) -> tuple[Any, Any]:
        rows, learner = self._rows(X), self._trained()
        # scikit-learn's estimators refuse data without a row.
        return (learner if rows.shape[0] else learner.predictor()), rows

    def _rows(self, X: TextsLike) -> Any:
        check_is_fitted(self)
        return self._features.transform(as_texts(X))


LEARNERS[name_in_files(TextClassifier)] = TextClassifier
