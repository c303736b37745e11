"""Estimators that several threads use.

One thread at a time learns, holding :func:`learning`. It works on a copy of the estimator, whose
attributes take the place of all others in one step (:class:`Change`). What reads, reads a copy of
its own, :func:`view`, with one model and the labels that belong to it.

A model that learns on in place is the same in the copy. So it has its labels in the core, which
changes both in one step.
"""

import os
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from xmtree import _core
from xmtree._labels import Labels

T = TypeVar("T")

#: Not attributes, so that no copy and no pickle has them.
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def learning(estimator: Any) -> Any:
    """The lock that a thread holds while it changes ``estimator``."""
    # To be entered by "with" itself: Ctrl-C then never leaves it locked.
    return _locks.get(estimator) or _locks.setdefault(estimator, RLock())


def _forget_locks() -> None:
    global _locks
    _locks = WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    # A forked process does not have the threads that hold them.
    os.register_at_fork(after_in_child=_forget_locks)


def copied(estimator: T) -> T:
    """Another estimator with the same attributes."""
    copy = object.__new__(type(estimator))
    copy.__dict__ = vars(estimator).copy()
    return copy


def view(estimator: T, *, brief: bool = False) -> T:
    """A copy of a fitted estimator whose model nothing changes. ``brief``: for one call; learning
    waits for it, and does not copy the model at once."""
    copy: Any = copied(estimator)
    copy._model = copy._model.snapshot(brief)
    return copy  # type: ignore[no-any-return]


class Change(Generic[T]):
    """A ``draft`` of an estimator, which becomes the estimator once it is kept."""

    def __init__(self, estimator: T) -> None:
        self._estimator = estimator
        self.draft: T = copied(estimator)

    def keep(self) -> None:
        """Gives the estimator all attributes of the draft, and those it will have later."""
        self._estimator.__dict__ = vars(self.draft)


def packed(
    attributes: dict[str, Any], to_bytes: Callable[[_core.Classifier], bytes]
) -> dict[str, Any]:
    """Attributes that pickle, joblib and skops can store: the model as bytes, beside its labels."""
    if "_model" not in attributes:
        return attributes
    model = attributes["_model"].snapshot()
    labels = {"classes_": model.labels.classes, "_y_form": model.labels.form}
    return {**attributes, **labels, "_model": to_bytes(model)}


def unpacked(state: dict[str, Any], learner: str) -> dict[str, Any]:
    """The attributes that :func:`packed` made ``state`` of."""
    if "_model" not in state:
        return state
    attributes = dict(state)
    labels = Labels.of(attributes.pop("classes_"), attributes.pop("_y_form"))
    model = _core.Classifier.from_bytes(attributes["_model"], learner)
    return {**attributes, "_model": model.with_labels(labels)}
