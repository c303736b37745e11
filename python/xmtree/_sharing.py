"""Thread safety of estimators.

Only the thread that holds :func:`learning` trains. It works on a draft of the estimator, whose
attributes replace those of the estimator in one step (:class:`Change`). A reader works on its own
copy, :func:`view`, with one model and its labels.

Estimator and draft share a model that is trained further in place. Such a model therefore keeps
its labels in the core, which changes both in one step.
"""

import os
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from xmtree import _core
from xmtree._labels import Labels

T = TypeVar("T")

#: Locks of estimators. They are not attributes, so that copies and pickles do not contain them.
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def learning(estimator: Any) -> Any:
    """Return the lock that a thread holds while it changes ``estimator``."""
    # Callers enter the lock itself by "with", so that Ctrl-C never leaves it locked.
    return _locks.get(estimator) or _locks.setdefault(estimator, RLock())


def _forget_locks() -> None:
    global _locks
    _locks = WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    # In a forked process, the threads that hold the locks do not exist.
    os.register_at_fork(after_in_child=_forget_locks)


def copied(estimator: T) -> T:
    """Return another estimator with the same attributes."""
    copy = object.__new__(type(estimator))
    copy.__dict__ = vars(estimator).copy()
    return copy


def view(estimator: T, *, brief: bool = False) -> T:
    """Return a copy of a fitted estimator with a snapshot of its model.

    A ``brief`` view is for one call: training waits for its end instead of copying the model.
    """
    copy: Any = copied(estimator)
    copy._model = copy._model.snapshot(brief)
    return copy  # type: ignore[no-any-return]


class Change(Generic[T]):
    """A ``draft`` of an estimator, which replaces the estimator's state when it is kept."""

    def __init__(self, estimator: T) -> None:
        self._estimator = estimator
        self.draft: T = copied(estimator)

    def keep(self) -> None:
        """Make the draft's attributes, also later ones, those of the estimator."""
        self._estimator.__dict__ = vars(self.draft)


def packed(
    attributes: dict[str, Any], to_bytes: Callable[[_core.Classifier], bytes]
) -> dict[str, Any]:
    """Return attributes for pickle, joblib and skops: the model as bytes, and its labels."""
    if "_model" not in attributes:
        return attributes
    model = attributes["_model"].snapshot()
    labels = {"classes_": model.labels.classes, "_y_form": model.labels.form}
    return {**attributes, **labels, "_model": to_bytes(model)}


def unpacked(state: dict[str, Any], learner: str) -> dict[str, Any]:
    """Return the attributes from a ``state`` that :func:`packed` returned."""
    if "_model" not in state:
        return state
    attributes = dict(state)
    labels = Labels.of(attributes.pop("classes_"), attributes.pop("_y_form"))
    model = _core.Classifier.from_bytes(attributes["_model"], learner)
    return {**attributes, "_model": model.with_labels(labels)}
