"""The estimator of texts: feature extraction and a learner in one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from xmtree import _class_weight, _persistence
from xmtree._base import Learner
from xmtree._delegation import DelegatedPredictions, learner_has
from xmtree._explanation import Explanation, check_explains, explain_best
from xmtree._labels import encode
from xmtree._persistence import LEARNERS, Arrays, name_in_files
from xmtree._prediction import documented_as
from xmtree._predictor import Predictor
from xmtree._sharing import learning
from xmtree._sklearn import Interval, InvalidParameterError, validate_params
from xmtree._text.features import TextFeatures, as_texts, count_words, settings_of
from xmtree._text.rules import check_partial_fit, learner_and_settings, new_learner
from xmtree._typing import Classes, LabelsLike, Seed, TextsLike, Weights


def _restored(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters in a file, with a tuple in place of JSON's list."""
    params = _persistence.restored_params(stored)
    if isinstance(params["char_ngrams"], list):
        params["char_ngrams"] = tuple(params["char_ngrams"])
    return params


class TextPredictor(Predictor):
    """A :class:`Predictor` of texts."""

    __slots__ = ("_features",)

    def __init__(self, classifier: TextClassifier) -> None:
        super().__init__(classifier._trained())
        self._features = classifier._features

    def _rows(self, X: TextsLike) -> Any:
        return self._features.rows([X] if isinstance(X, str) else as_texts(X))

    def __getstate__(self) -> Any:
        return super().__getstate__(), self._features

    def __setstate__(self, state: Any) -> None:
        learner, self._features = state
        super().__setstate__(learner)


@dataclass(eq=False, repr=False)
class TextClassifier(DelegatedPredictions[TextsLike]):
    """Classifier of texts, for one label per text or label sets.

    Texts become weighted counts of words and word pairs, as by scikit-learn's vectorizers,
    (1 + ln count) x idf in rows of length 1, on which a learner of this package is trained.
    A word is a run of letters, digits or underscores, in lower case.

    With ``learner="auto"`` the learner is

    - :class:`LdSMClassifier` for label sets of at least 100 labels, and for single labels if there
      are more than 2,000: its time hardly grows with the number of labels. It needs at least 1,000
      texts, as fewer hardly split its trees;
    - else ``OAAClassifier(prune=0.03)``: one linear scorer per label, and a small file;
    - ``OAAClassifier()`` if features are hashed (``n_bits``) and without idf, as in a stream: it
      supports :meth:`partial_fit`.

    Parameters
    ----------
    learner : "auto" or a classifier of xmtree, default="auto"
        Learner to clone and train on the features.
    word_ngrams : int, default=2
        Largest number of words in a feature, from 0 (no word features) to 5. 2 is words and pairs.
    char_ngrams : tuple of two int, optional
        Shortest and longest sequence of characters within a word, up to 32, used as additional
        features, such as (3, 5). Slower; for inflected languages and misspelled words.
    min_df : int, default=1
        Smallest number of texts of :meth:`fit` with a feature; others are left out. Must be 1 with
        ``n_bits``.
    idf : bool, optional
        Whether features are weighted by inverse document frequency in the texts of :meth:`fit`.
        None is True if these average 16 words or more (see docs/experiments/text.md), without
        ``n_bits``, and for learners other than :class:`LdSMClassifier`, which has such weights.
    n_bits : int, optional
        Hash features into 2^n_bits columns (twice if there are word and character features), from
        1 to 30, for streams or to store no vocabulary. None uses the features in :meth:`fit`.
    class_weight : dict or "balanced", optional, as for :class:`OAAClassifier`
        That of the learner, unless ``learner`` has a ``class_weight``.
    random_state : int, RandomState or None, default=None
        Seed of the learner, unless ``learner`` has a ``random_state``.
    n_jobs : int, optional
        Threads of the learner, unless ``learner`` has an ``n_jobs``; None is 1, -1 is all cores.
        The model does not depend on it.
    verbose : int, default=0
        With 1, ``fit`` reports on stderr what it trains, and a progress bar if that is a terminal.

    Attributes
    ----------
    learner_ : classifier of xmtree
        The trained learner.
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
    >>> model.explain("my card arrived", k=1)[0].contributions[0][0]
    'arrived'

    Label sets, as lists:

    >>> texts = ["red apple", "green apple", "red car", "green car"]
    >>> sets = [["red", "round"], ["green", "round"], ["red"], ["green"]]
    >>> TextClassifier(random_state=0).fit(texts, sets).predict(["a red and round apple"])
    [['red', 'round']]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learner": "no_validation",  # checked by set_params and _check_params
        "word_ngrams": [Interval(Integral, 0, 5, closed="both")],
        "char_ngrams": [None, tuple],
        "min_df": [Interval(Integral, 1, None, closed="left")],
        "idf": [None, "boolean"],
        "n_bits": [None, Interval(Integral, 1, 30, closed="both")],
        "class_weight": _class_weight.CONSTRAINT,
        **Learner._python_constraints,
    }

    learner: Any = "auto"
    _: KW_ONLY
    word_ngrams: int = 2
    char_ngrams: tuple[int, int] | None = None
    min_df: int = 1
    idf: bool | None = None
    n_bits: int | None = None
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    learner_: Learner = field(init=False)
    _features: TextFeatures = field(init=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        LEARNERS[name_in_files(cls)] = cls

    def fit(self, texts: TextsLike, labels: LabelsLike, sample_weight: Weights = None) -> Self:
        """Train from scratch.

        Parameters
        ----------
        texts : list, array or data frame column of strings
        labels : array of shape (n,), list of label lists, or indicator of shape (n, n_classes)
            The labels, called y in messages.
        sample_weight : array of shape (n,), optional
            Importance weights, not negative; 1 by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. The estimator is then unchanged.
        """
        learner, features, rows = self._begin(texts, labels)
        with self._keeping(learner, features):
            learner.fit(rows, labels, sample_weight)
        return self

    # With "auto" it may still raise an error.
    @available_if(lambda self: isinstance(self.learner, str) or learner_has("partial_fit")(self))
    def partial_fit(
        self,
        texts: TextsLike,
        labels: LabelsLike,
        classes: Classes | Literal["grow"] = None,
        sample_weight: Weights = None,
    ) -> Self:
        """Train on more texts in one pass, in the given order.

        After :meth:`fit`, its vocabulary and weights are kept. Training can also begin here, with
        ``n_bits=20`` and without idf; ``learner="auto"`` is then one-against-all.

        Parameters
        ----------
        texts, labels : as for :meth:`fit`
        classes : array of shape (n_classes,) or "grow", optional
            All labels that may occur in any call; required in the first call. "grow" adds new
            labels as they come, except in trees over a fixed set of labels.
        sample_weight : as for :meth:`fit`

        Returns
        -------
        self
        """
        self._check_params()
        with learning(self):
            listed = as_texts(texts)
            if self.__sklearn_is_fitted__():
                check_partial_fit(self.learner, self.learner_)
                learner = self._trained()
                if isinstance(self.learner, str) or self.learner.class_weight is None:
                    learner.class_weight = self.class_weight
                features = self._features
            else:
                settings = settings_of(self)
                if self.n_bits is None or self.idf:
                    raise ValueError(
                        "partial_fit on an untrained classifier needs n_bits (such as 20) and no "
                        "idf, as the first texts do not have all words; set n_bits or begin "
                        "with fit"
                    )
                features = TextFeatures(settings)
                learner = new_learner(self, None)
            with self._keeping(learner, features):
                learner.partial_fit(features.transform(listed), labels, classes, sample_weight)
        return self

    def predictor(self) -> Predictor:
        """Return a light object for serving, with the predictions of the current model.

        Returns
        -------
        Predictor
            Its methods take one text, or texts as :meth:`predict` does, and return what this
            estimator returns now, bit for bit; see :meth:`OAAClassifier.predictor`.
        """
        return TextPredictor(self)

    def explain(self, text: str, k: int = 3) -> list[Explanation]:
        """Explain the scores of the best labels of a text by its words.

        The contribution of a word is that of its features; a word pair counts half for each of its
        words. For learners with ``contributions``: :class:`OAAClassifier`,
        :class:`LdSMClassifier` with scorers, :class:`RecallTreeClassifier`,
        :class:`GambleClassifier` and :class:`SAMMEClassifier`.

        Parameters
        ----------
        text : str
        k : int, default=3
            Number of labels to explain.

        Returns
        -------
        list of Explanation
            As for :meth:`OAAClassifier.explain`, with words as features. ``base`` includes features
            that the text lacks, which contribute in boosting only.
        """
        learner = self._trained()
        check_explains(learner)
        if not isinstance(text, str):
            raise TypeError(f"text must be one string, got {type(text).__name__}")
        learner, row = learner._now(self._features.transform([text]))
        return explain_best(learner, row, k, partial(self._features.by_word, text))

    @documented_as(Learner.save)
    def save(self, path: str | Path, *, compact: bool = False) -> None:
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
        """Restore an estimator from a file, around the file's learner."""
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
                f"expected {learner.n_features_in_} features, got {features.n_columns()}"
            )
        estimator.learner_, estimator._features = learner, features
        return estimator

    @property
    def idf_(self) -> bool:
        """Return whether features are weighted by inverse document frequency."""
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
                "parameters; set learner to a classifier of xmtree such as OAAClassifier()"
            )
        return super().set_params(**params)

    def _check_params(self) -> None:
        is_auto = isinstance(self.learner, str) and self.learner == "auto"
        if not (is_auto or isinstance(self.learner, Learner)):
            raise InvalidParameterError(
                "learner must be 'auto' or a classifier of xmtree such as OAAClassifier(), got "
                f"{self.learner!r}"
            )
        validate_params(self)

    def _begin(self, texts: Any, labels: Any) -> tuple[Any, TextFeatures, Any]:
        """Return the learner to train, the features, and the rows of the texts."""
        self._check_params()
        settings = settings_of(self)
        listed = as_texts(texts)
        target = encode(labels)
        if target.codes.shape[0] != len(listed):
            raise ValueError(f"got {len(listed)} texts, but labels for {target.codes.shape[0]}")
        learner, settings = learner_and_settings(
            self, settings, target, partial(count_words, listed)
        )
        features = TextFeatures(settings)
        rows = features.fit_transform(listed, self.n_jobs)
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
        """Keep the trained learner and its features, also after Ctrl-C."""
        try:
            yield
        finally:
            if learner.__sklearn_is_fitted__():
                self.__dict__.update(learner_=learner, _features=features)

    def _trained(self) -> Any:
        """Return the trained learner with the current ``n_jobs``."""
        if not self.__sklearn_is_fitted__():  # faster than scikit-learn's own check
            check_is_fitted(self)
        if isinstance(self.learner, str) or self.learner.n_jobs is None:
            self.learner_.n_jobs = self.n_jobs
        return self.learner_

    def _known_learner(self) -> Any:
        learner = vars(self).get("learner_", self.learner)
        return None if isinstance(learner, str) else learner

    def _predicting(self, X: TextsLike) -> tuple[Any, Any]:
        learner, rows = self._trained(), self._rows(X)
        # scikit-learn estimators refuse empty data, which predictors accept.
        return (learner if rows.shape[0] else learner.predictor()), rows

    def _rows(self, X: TextsLike) -> Any:
        return self._features.rows(as_texts(X), self.n_jobs)


LEARNERS[name_in_files(TextClassifier)] = TextClassifier
