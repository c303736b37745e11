"""The base of online learners, which learn one example after the other."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from xmtree import _class_weight, _core
from xmtree._base import Learner, transaction, without_own_name
from xmtree._labels import Target, check_classes
from xmtree._labels.forms import class_list
from xmtree._persistence import plain, restored


@without_own_name
class OnlineLearner(Learner):
    """A learner with ``partial_fit``; Ctrl-C stops it and keeps what it has learned.

    Attributes
    ----------
    progressive_loss_ : float
        Progressive validation error: share of the examples that were
        predicted wrongly just before they were learned, over all passes.
        NaN while nothing was learned.
    n_examples_seen_ : int
        Examples learned so far, each pass counted.
    """

    #: Arguments that only ``fit`` uses; they may change between calls.
    _fit_only: ClassVar[frozenset[str]] = frozenset(
        {"n_passes", "early_stopping", "validation_fraction", "patience"}
    )
    _python_constraints: ClassVar[dict[str, Any]] = {
        **Learner._python_constraints,
        "class_weight": _class_weight.CONSTRAINT,
    }
    _started_with: dict[str, Any]

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on some more examples, one pass, in the given order.

        The order matters: recent examples have the largest influence, so a model
        trained on examples sorted by label predicts the last labels. Shuffle them
        where that is possible, as ``fit`` does.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,), or label sets
        classes : array of shape (n_classes,), optional
            Every label that may occur in any call; required in the first call (except
            when ``y`` is an indicator, which has a column for each), optional
            afterwards. The columns of an indicator are those of ``classes_``, which is
            sorted; so with an indicator ``classes`` must be sorted, too.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument cannot be used, ``y`` holds a label that is not in
            ``classes``, or a parameter was changed after the first call.
            The estimator is then as it was before.
        """
        self._validate_params()
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all labels at once and so fit; for partial_fit set '
                "class_weight to a dict or None, or pass sample_weight"
            )
        started = hasattr(self, "_model")
        with transaction(self) as change:
            target = self._encode(y, self._vocabulary(classes, started))
            _check_column_order(target, classes)
            X = self._validated(X, reset=not started)
            if started:
                self._check_same(target)
                model = self._model
            else:
                self._check_first(target, classes)
                model = self._new_model(target)
            self._learn(model.partial_fit, model, X, target, sample_weight, change)
        return self

    @property
    def progressive_loss_(self) -> float:
        """Progressive validation error so far."""
        return float(self._fitted().summary()["progressive_loss"])

    @property
    def n_examples_seen_(self) -> int:
        """Examples learned so far."""
        return int(self._fitted().n_examples_seen)

    def _new_model(self, target: Target) -> _core.Classifier:
        model = super()._new_model(target)
        self._started_with = self._learning_params()
        return model

    def _learning_params(self) -> dict[str, Any]:
        """The parameters that training depends on."""
        # A copy, as the user's dictionary may change.
        return {**self._core_params(), "class_weight": copy(self.class_weight)}

    def _more_state(self) -> dict[str, Any]:
        return {"started_with": {name: plain(value) for name, value in self._started_with.items()}}

    def _set_more_state(self, state: dict[str, Any]) -> None:
        started = {name: restored(value) for name, value in state["started_with"].items()}
        # Files from before class_weight do not have it.
        self._started_with = {"class_weight": None, **started}

    def _fitted(self) -> _core.Classifier:
        """The model, of which there must be one."""
        check_is_fitted(self)
        return self._model

    def _vocabulary(self, classes: Any, started: bool) -> NDArray[Any] | None:
        if classes is not None:
            classes = check_classes(classes)
            if started and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes={classes!r} are not those of the first call to partial_fit "
                    f"or of fit, {self.classes_!r}"
                )
        return self.classes_ if started else classes

    def _check_first(self, target: Target, classes: Any) -> None:
        """Requires ``classes`` where one batch does not show all labels."""
        if classes is None and target.form in ("labels", "lists"):
            raise ValueError("classes must be passed on the first call to partial_fit.")

    def _check_same(self, target: Target) -> None:
        """Refuses label forms and parameters other than those learning began with."""
        if target.multilabel != (self._y_form != "labels"):
            had, got = ("label sets", "labels") if self._y_form != "labels" else ("labels", "sets")
            raise ValueError(f"the model was started on {had}, y now holds {got}")
        free = self._fit_only | self._of_prediction
        if self._started_with["class_weight"] == "balanced":
            # Of fit alone: there are none to go on with.
            free |= {"class_weight"}
        for name, value in self._learning_params().items():
            if name not in free and value != self._started_with[name]:
                raise ValueError(
                    f"{name} was {self._started_with[name]!r} when learning began and is now "
                    f"{value!r}; start anew with fit, or on a clone"
                )


def _check_column_order(target: Target, classes: Any) -> None:
    """Refuses an indicator beside ``classes`` in another order than that of ``classes_``."""
    if classes is None or target.form not in ("indicator", "sparse"):
        return
    if not np.array_equal(class_list(classes), target.classes):
        raise ValueError(
            "classes must be sorted and without repetition where y is an indicator, as its columns "
            "are those of classes_, which is sorted; pass np.sort(classes) and "
            "y[:, np.argsort(classes)]"
        )
