"""The base of all estimators: validation, calls of the core, results in the user's form."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import isfunction
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from xmtree import _class_weight, _core, _validation
from xmtree._labels import Target, decode, encode, encode_among, matching, taken
from xmtree._parameters import constraints
from xmtree._persistence import LEARNERS, name_in_files, save
from xmtree._predictor import Predictor
from xmtree._probabilities import CHUNK_BYTES, ProbabilityMixin, Scores, TopK
from xmtree._progress import progress
from xmtree._sharing import Change, learning, packed, unpacked, view
from xmtree._sklearn import validate_params
from xmtree._typing import Classes, LabelsLike, MatrixLike, Weights

T = TypeVar("T")

#: Columns of ``predict_topk`` at most, unless there are more classes.
_MAX_K = 1000


def without_own_name(cls: type[T]) -> type[T]:
    """For a base class that users do not know: errors of calls name its methods alone."""
    for name, method in vars(cls).items():
        if isfunction(method):
            method.__qualname__ = name
    return cls


@without_own_name
class Learner(ProbabilityMixin, ClassifierMixin, BaseEstimator):
    """Base of all estimators: validation, label types, top-k, persistence.

    A subclass says by ``_short_name`` which learner of the core it wraps, and which arguments
    its constructor takes; those that the core declares go there as JSON, under the
    same name, with ``random_state`` as ``seed``.
    """

    n_features_in_: int

    #: Where indices began in the svmlight file that the command line trained it on.
    _index_base: int | None = None
    #: How the table that it was trained on was read, by the names of options of the command line.
    _table_options: dict[str, Any] | None = None
    #: Whether the command line made its columns by a hash of the features' names.
    _hashes_names: bool = False
    #: Name in the core and on the command line.
    _short_name: ClassVar[str]
    #: Whether a row may have any number of labels.
    _multilabel: ClassVar[bool] = False
    #: Constructor arguments that the core knows.
    _core_names: ClassVar[frozenset[str]]
    #: Those of them that predictions read anew each time, so that they may change after ``fit``.
    _of_prediction: ClassVar[frozenset[str]] = frozenset()
    #: The checks of those arguments that the core does not check; a subclass adds its own.
    _python_constraints: ClassVar[dict[str, Any]] = {
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }
    _parameter_constraints: ClassVar[dict[str, Any]]
    #: A constructor argument of all learners but those of label sets alone.
    class_weight: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_short_name" in vars(cls):
            of_core = constraints(cls._short_name)
            cls._core_names = frozenset(of_core)
            cls._parameter_constraints = {**of_core, **cls._python_constraints}
        if hasattr(cls, "_short_name"):
            LEARNERS[name_in_files(cls)] = cls

    def fit(
        self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None, classes: Classes = None
    ) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            Examples. float32 and float64, C-contiguous or CSR, are read
            in place; other types are converted. Values must be finite.
        y : array of shape (n,), or label sets
            Labels: numbers, strings, or dates and times. Each is kept exactly as it is; what no
            type holds exactly (-1 beside 2**63) is an error, and so are missing values and bytes.
            Learners for label sets also take a dense or sparse indicator of
            shape (n, n_classes), or a list of label lists. The columns of a data frame
            are named by labels, which become ``classes_`` in this order; frames of later calls may
            have them in any order.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.
        classes : array of shape (n_classes,), optional
            Every label that may occur, where ``y`` need not have them all. By default
            those of ``y``. Of a data frame they can only be the names of its columns.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter, ``X``, ``y`` or ``classes`` cannot be used. The estimator is
            then as it was before.
        """
        validate_params(self)
        with learning(self):
            change = Change(self)
            draft = change.draft
            X = draft._validated(X, reset=True)
            target = draft._target(y, classes)
            draft._fit(X, target, sample_weight, change)
        return self

    def predict(self, X: MatrixLike) -> Any:
        """The best label of each row, or its label set.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
            Labels. Ties go to the class that comes first in ``classes_``.
        int64 array of shape (n, n_classes), or CSR matrix, or list of lists
            Where the estimator has learned label sets: those labels that are
            more likely present than not, in the form that ``y`` had in ``fit``.
        """
        now, rows = self._now(X)
        return now._predicted(rows)

    def _predicted(self, X: Any) -> Any:
        """As :meth:`predict` of the validated rows ``X``."""
        if self._y_form == "labels":
            return taken(self._best(X), self.classes_)
        if self._y_form == "indicator":
            _validation.check_dense_size(
                X.shape[0], len(self.classes_), 8, "fit on a sparse y or use predict_topk"
            )
        sets = self._label_sets(X)
        if self._y_form == "indicator":
            return sets.toarray()
        if self._y_form == "sparse":
            return sets
        named = self.classes_[sets.indices]
        return [named[start:end].tolist() for start, end in pairwise(sets.indptr)]

    def predict_topk(
        self, X: MatrixLike, k: int = 5, *, scores: Scores = "raw"
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each row, best first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        k : int, default=5
            At most 1000, or the number of classes where that is larger.
        scores : {"raw", "probability"}, default="raw"
            What is returned beside the labels. "raw": what the learner ranks labels by; the notes
            of its class say what that is. "probability": as of :meth:`predict_proba`, for which
            learners that score all classes compute the scores of all.

        Returns
        -------
        labels : array of shape (n, k)
            Ties go to the class that comes first in ``classes_``. Where fewer
            than ``k`` labels have a score the rest is -1 for integer labels, NaN for floats,
            NaT for dates and times, and None for all others (which are objects here).
        scores : float32 array of shape (n, k)
            Their scores, falling; -inf where there is no label.
        """
        now, rows = self._now(X)
        return now._ranked_labels(rows, k, scores)

    def _ranked_labels(
        self, X: Any, k: int, scores: Scores
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """As :meth:`predict_topk` of the validated rows ``X``."""
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be an integer of at least 1, got {k!r}")
        k = int(k)
        most = max(_MAX_K, len(self.classes_))
        if k > most:
            raise ValueError(
                f"k must be at most {most}, got {k}; there are {len(self.classes_)} classes"
            )
        if scores not in ("raw", "probability"):
            raise ValueError(f'scores must be "raw" or "probability", got {scores!r}')
        best = self._topk if scores == "raw" else self._probabilities
        codes, values = best(X, min(k, len(self.classes_)))
        if codes.shape[1] < k:
            rest = (X.shape[0], k - codes.shape[1])
            codes = np.hstack([codes, np.full(rest, -1, np.int32)])
            values = np.hstack([values, np.full(rest, -np.inf, np.float32)])
        return decode(codes, self.classes_), values

    def score(self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None) -> float:
        """Accuracy: the share of rows whose label, or whole label set, is predicted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,), or label sets
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        self._fitted()
        now = view(self, brief=True)
        if now._y_form == "labels":
            right = matching.are_right(y, now.predict(X), now.classes_)
            return float(np.average(right, weights=sample_weight))
        # scikit-learn's accuracy takes no label lists, and does not look at the names of columns.
        true, _ = matching.label_sets(y, now.classes_, "y", lists=now._y_form == "lists")
        found = sp.csr_array(now._label_sets(now._rows(X)))
        check_consistent_length(found, true)
        # Labels that were not learned have columns beyond those of classes_.
        found.resize(true.shape)
        right = (found != true).sum(axis=1) == 0
        return float(np.average(right, weights=sample_weight))

    def predictor(self) -> Predictor:
        """Make a light object for serving: the predictions of the model as it is now.

        Returns
        -------
        Predictor
            Its ``predict``, ``predict_topk`` and ``predict_proba`` answer to the bit as this
            estimator does now, whatever it learns later; single rows may have one dimension. It
            can be pickled, and called by many threads at a time. It shares the model's memory, so
            that the estimator copies the model where it learns on meanwhile.

        Raises
        ------
        NotFittedError
        """
        self._fitted()
        return Predictor(self)

    def save(self, path: str | Path, *, compact: bool = False) -> None:
        """Write the estimator to a file, for :func:`xmtree.load`.

        The file holds flat arrays, the parameters and the labels; it is
        versioned, has a checksum, and is written completely or not at all.

        Parameters
        ----------
        path : str or Path
        compact : bool, default=False
            Store what predictions need and no more: no state of the optimizer, no sums of
            averages, no statistics; weights in 16 bits where rows are scaled, which changes
            fewer than one prediction in a thousand. A model loaded from such a file predicts,
            but cannot learn on (``partial_fit``), and has no ``tree_``.
            What :class:`LdSMClassifier` stores is for prediction anyway.
        """
        save(self, path, compact=compact)

    def __getstate__(self) -> dict[str, Any]:
        return packed(super().__getstate__(), _core.Classifier.to_bytes)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(unpacked(state, self._short_name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self._multilabel
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _more_state(self) -> dict[str, Any]:
        """State of a subclass beside model and labels, as JSON, for its file."""
        return {}

    def _set_more_state(self, state: dict[str, Any]) -> None:
        """Restores what :meth:`_more_state` returned."""

    def _core_params(self) -> dict[str, Any]:
        """The core's parameters by their JSON names, all but the seed."""
        # Not get_params: the constructor of a user's subclass may take fewer of them.
        params = {name: getattr(self, name) for name in sorted(self._core_names)}
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in params.items()
        }

    def _fitted_params(self) -> dict[str, Any]:
        """The parameters that the model was made with, whatever the constructor's are now.

        Not to be changed: it is the model's own dictionary.
        """
        return self._model.params

    def _new_model(self, target: Target) -> _core.Classifier:
        """An empty model for the classes of ``target``."""
        params = {**self._core_params(), "seed": _validation.seed(self.random_state)}
        return self._empty(params, target)

    def _empty(self, params: dict[str, Any], target: Target) -> _core.Classifier:
        """An empty model with these parameters of the core."""
        model = _core.Classifier(
            self._short_name, json.dumps(params), len(target.classes), target.multilabel
        )
        return model.with_labels(target.labels)

    def _target(self, y: Any, classes: Any) -> Target:
        """What to learn from scratch; ``classes`` are all labels, None for those of ``y``."""
        return self._checked(encode_among(y, classes))

    def _encode(self, y: Any, classes: NDArray[Any]) -> Target:
        return self._checked(encode(y, classes, lists=self._y_form == "lists"))

    def _checked(self, target: Target) -> Target:
        if target.multilabel and not self._multilabel:
            raise ValueError(
                f"Multilabel y (an indicator or label lists) was passed, but "
                f"{type(self).__name__} learns one label per row; LdSMClassifier and "
                "OAAClassifier learn label sets"
            )
        return target

    def _fit(self, X: Any, target: Target, sample_weight: Any, change: Change[Any]) -> None:
        """Trains a new model on checked data."""
        model = self._new_model(target)
        self._learn(model.fit, model, X, target, sample_weight, change)

    def _learn(
        self,
        learn: Callable[..., object],
        model: Any,
        X: Any,
        target: Target,
        sample_weight: Any,
        change: Change[Any],
    ) -> None:
        """Runs ``learn`` of ``model`` and keeps the trained model.

        An online model that was stopped by Ctrl-C is kept as well: it is
        trained on the examples so far.
        """
        try:
            self._train(learn, X, target, sample_weight)
        except KeyboardInterrupt:
            if model.n_examples_seen > 0:
                self._adopt(model, change)
            raise
        self._adopt(model, change)

    def _train(
        self, learn: Callable[..., object], X: Any, target: Target, sample_weight: Any
    ) -> None:
        """Runs ``learn`` of a model."""
        weights = _validation.weights(sample_weight, X)
        weights = _class_weight.times(self.class_weight, weights, target)
        with progress(self.verbose, type(self).__name__) as report:
            _validation.canonical(
                X, lambda X: learn(X, target.codes, weights, self._n_threads(), report)
            )

    def _adopt(self, model: _core.Classifier, change: Change[Any]) -> None:
        """Keeps a trained model."""
        self._model = model
        change.keep()

    def _best(self, X: Any) -> NDArray[np.int32]:
        """The best class of each of the validated rows ``X``."""
        best, _ = self._topk(X, 1)
        first: NDArray[np.int32] = best[:, 0]
        return first

    def _fitted(self) -> _core.Classifier:
        """The model, of which there must be one."""
        # scikit-learn's own check takes longer than a prediction.
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        return self._model

    def _now(self, X: Any) -> tuple[Self, Any]:
        """The estimator as it is now, and ``X`` as rows for it."""
        self._fitted()
        now = view(self, brief=True)
        return now, now._rows(X)

    def _rows(self, X: Any) -> Any:
        self._fitted()
        return self._validated(X, reset=False)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        any_width = not reset and self._takes_any_width()
        return _validation.rows(self, X, reset=reset, any_width=any_width)

    def _takes_any_width(self) -> bool:
        """Whether the model hashes features, so that rows of any number of columns will do."""
        return self._fitted_params().get("n_bits") is not None

    def _call(self, method: Callable[..., T], X: Any, *arguments: Any) -> T:
        """A method of the core on validated rows."""
        return _validation.canonical(
            X, lambda X: method(X, *arguments, n_threads=self._n_threads(X.shape[0]))
        )

    def _topk(self, X: Any, k: int) -> TopK:
        """Class numbers and scores for the validated rows ``X``."""
        found: TopK = self._call(self._model.predict_topk, X, k)
        return found

    def _n_threads(self, n_rows: int | None = None) -> int:
        return _validation.n_threads(self.n_jobs, n_rows)

    def _label_sets(self, X: Any) -> Any:
        """Predicted label sets as a CSR indicator, without all scores at once."""
        step = max(1, CHUNK_BYTES // (4 * len(self.classes_)))
        starts = range(0, max(1, X.shape[0]), step)
        parts = [self._present(X if len(starts) == 1 else X[at : at + step]) for at in starts]
        sets = parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")
        return sets.astype(np.int64, copy=False)

    def _present(self, X: Any) -> Any:
        """Which labels the validated rows ``X`` have, as a sparse indicator."""
        raise NotImplementedError
