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

    A subclass says by ``_short_name`` which learner of the core it wraps, and which arguments
    its constructor takes; those that the core declares go there as JSON, under the
    same name, with ``random_state`` as ``seed``.
    """

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
    random_state: Any
    verbose: int
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
            then as it was before; that of a learner that is not online also after Ctrl-C.
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
        """Make a light object for serving: the predictions of the model as it is now.

        Returns
        -------
        Predictor
            Its ``predict``, ``predict_topk`` and ``predict_proba`` answer to the bit as this
            estimator does now, whatever it learns later; single rows may have one dimension. It
            can be pickled, and called by many threads at a time. It shares the model's memory, so
            that the estimator copies the model where it learns on meanwhile.
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
                X,
                lambda X: learn(X, target.codes, weights, _one_row.n_threads(self.n_jobs), report),
            )

    def _adopt(self, model: _core.Classifier, change: Change[Any]) -> None:
        """Keeps a trained model."""
        self._model = model
        change.keep()
