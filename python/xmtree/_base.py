"""The base of all estimators: training, files and pickles."""

from __future__ import annotations

import json
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from xmtree import _class_weight, _core, _one_row, _validation
from xmtree._labels import Target, encode_among
from xmtree._parameters import constraints
from xmtree._persistence import LEARNERS, name_in_files, save_around
from xmtree._prediction import FittedClassifier
from xmtree._predictor import Predictor
from xmtree._progress import progress
from xmtree._sharing import Change, learning, packed, unpacked
from xmtree._sklearn import validate_params
from xmtree._typing import Classes, LabelsLike, MatrixLike, Weights


class Learner(FittedClassifier):
    """Base of all estimators.

    A subclass names the learner of the core by ``_short_name`` and declares its constructor
    arguments as dataclass fields. Arguments that the core declares are passed to it as JSON under
    the same names, ``random_state`` as ``seed``.
    """

    #: First index of the svmlight file that the command line trained on: 0 or 1.
    _index_base: int | None = None
    #: Command-line options for reading tables, as used in training.
    _table_options: dict[str, Any] | None = None
    #: True if the command line derived column numbers from hashes of feature names.
    _hashes_names: bool = False
    #: Name in the core and on the command line.
    _short_name: ClassVar[str]
    #: True if a row may have any number of labels.
    _multilabel: ClassVar[bool] = False
    #: Constructor arguments that the core declares.
    _core_names: ClassVar[frozenset[str]]
    #: Core arguments that only predictions use, and that may therefore change after ``fit``.
    _prediction_params: ClassVar[frozenset[str]] = frozenset()
    #: Constraints of the arguments that the core does not declare; a subclass adds its own.
    _python_constraints: ClassVar[dict[str, Any]] = {
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }
    _parameter_constraints: ClassVar[dict[str, Any]]
    random_state: Any
    verbose: int
    #: Constructor argument of all learners of this package.
    class_weight: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_short_name" in vars(cls):
            declared = constraints(cls._short_name)
            cls._core_names = frozenset(declared)
            cls._parameter_constraints = {**declared, **cls._python_constraints}
        if hasattr(cls, "_short_name"):
            LEARNERS[name_in_files(cls)] = cls

    def fit(
        self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None, classes: Classes = None
    ) -> Self:
        """Train from scratch.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            Training rows. float32 and float64, C-contiguous or CSR, are read in place; other types
            are converted. Values must be finite.
        y : array of shape (n,), or label sets
            Labels: numbers, strings, or dates and times, stored exactly. Labels that no common
            type holds exactly (-1 and 2**63), missing values and bytes raise an error. Learners
            for label sets also accept a dense or sparse indicator of shape (n, n_classes), or a
            list of label lists. The column names of a data frame become ``classes_`` in this
            order; frames of later calls may have the columns in any order.
        sample_weight : array of shape (n,), optional
            Importance weights, not negative; 1 by default.
        classes : array of shape (n_classes,), optional
            All labels that may occur; by default those of ``y``. If ``y`` is a data frame, they
            must be its column names.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter, ``X``, ``y`` or ``classes`` is invalid. The estimator is then unchanged.
            Ctrl-C leaves it unchanged as well, except online learners, which keep what they have
            learned.
        """
        validate_params(self)
        with learning(self):
            change = Change(self)
            draft = change.draft
            X = draft._validated(X, reset=True)
            target = draft._target(y, classes)
            draft._fit(X, target, sample_weight, change)
        return self

    def predictor(self) -> Predictor:
        """Return a light object for serving, with the predictions of the current model.

        Returns
        -------
        Predictor
            Its ``predict``, ``predict_topk`` and ``predict_proba`` return what this estimator
            returns now, bit for bit; later training does not affect it. It accepts single rows of
            one dimension, can be pickled, and is thread-safe. It shares the model's memory, so
            training the estimator further copies the model first.
        """
        self._fitted()
        return Predictor(self)

    def save(self, path: str | Path, *, compact: bool = False) -> None:
        """Write the estimator to a file that :func:`xmtree.load` reads.

        The file holds flat arrays, parameters and labels, with a version and a checksum. It is
        written completely or not at all.

        Parameters
        ----------
        path : str or Path
        compact : bool, default=False
            Store only what predictions need, without optimizer state, running sums and node
            statistics. Weights are stored in 16 bits if rows are scaled, which changes fewer than
            one prediction in a thousand. The loaded model predicts, but has no ``tree_`` and
            cannot be trained further by ``partial_fit``. Files of :class:`LdSMClassifier` always
            hold only what predictions need.
        """
        save_around(None, self, path, {}, compact=compact)

    def __getstate__(self) -> dict[str, Any]:
        return packed(super().__getstate__(), _core.Classifier.to_bytes)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(unpacked(state, self._short_name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self._multilabel
        return tags

    def _more_state(self) -> dict[str, Any]:
        """Return state of a subclass beside model and labels, in JSON types, for its file."""
        return {}

    def _set_more_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`_more_state` returned."""

    def _core_params(self) -> dict[str, Any]:
        """Return the core's parameters by name, without the seed."""
        # get_params would not do, as the constructor of a user's subclass may have fewer of them.
        params = {name: getattr(self, name) for name in sorted(self._core_names)}
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in params.items()
        }

    def _new_model(self, target: Target) -> _core.Classifier:
        """Return an untrained model for the classes of ``target``."""
        params = {**self._core_params(), "seed": _validation.seed(self.random_state)}
        return self._empty(params, target)

    def _empty(self, params: dict[str, Any], target: Target) -> _core.Classifier:
        """Return an untrained model with these parameters of the core."""
        model = _core.Classifier(
            self._short_name, json.dumps(params), len(target.classes), target.multilabel
        )
        return model.with_labels(target.labels)

    def _target(self, y: Any, classes: Any) -> Target:
        """Return the target of a training from scratch; ``classes`` is the user's argument."""
        return self._checked(encode_among(y, classes))

    def _checked(self, target: Target) -> Target:
        if target.multilabel and not self._multilabel:
            raise ValueError(
                f"Multilabel y (an indicator or label lists) was passed, but "
                f"{type(self).__name__} learns one label per row; LdSMClassifier, "
                "OAAClassifier and RandomTreeClassifier learn label sets"
            )
        return target

    def _fit(self, X: Any, target: Target, sample_weight: Any, change: Change[Any]) -> None:
        """Train a new model on checked data."""
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
        """Run ``learn``, a method of ``model``, and keep the trained model.

        An online model that was interrupted by Ctrl-C is kept too, with what it has learned.
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
        """Run ``learn``, a method of a model, on weighted rows and with a progress bar."""
        weights = _validation.weights(sample_weight, X)
        weights = _class_weight.times(self.class_weight, weights, target)
        with progress(self.verbose, type(self).__name__) as report:
            _validation.canonical(
                X,
                lambda X: learn(X, target.codes, weights, _one_row.n_threads(self.n_jobs), report),
            )

    def _adopt(self, model: _core.Classifier, change: Change[Any]) -> None:
        """Keep a trained model."""
        self._model = model
        change.keep()
