"""Learners by the names of the command line, and settings as text."""

from __future__ import annotations

import difflib
import json
from typing import Any

from sklearn.utils._param_validation import StrOptions

import xmtree
from xmtree._base import Learner
from xmtree._persistence import LEARNERS
from xmtree.cli.errors import WrongUsage


def names() -> dict[str, type[Learner]]:
    """Every learner of the package by its short name."""
    own = [learner for learner in LEARNERS.values() if "_short_name" in vars(learner)]
    return {learner._short_name: learner for learner in own}


def load(path: str) -> Learner:
    """The learner in a file."""
    learner = xmtree.load(path)
    if not isinstance(learner, Learner):
        raise WrongUsage(
            f"{path} holds a {type(learner).__name__}, which takes texts; commands read numbers, "
            "so use it in Python, by xmtree.load"
        )
    return learner


def create(name: str, settings: list[str], **fixed: Any) -> Learner:
    """The learner ``name`` with ``key=value`` settings."""
    cls = names()[name]
    known = sorted(cls._get_param_names())
    params = {key: value for key, value in fixed.items() if value is not None and key in known}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise WrongUsage(f"--set takes key=value, got {setting!r}")
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise WrongUsage(f"--model {name} has no parameter {key!r}; {hint}")
        params[key] = text if _is_option(cls, key, text) else value_of(text)
    learner = cls(**params)
    try:
        learner._validate_params()
    except ValueError as error:
        raise WrongUsage(str(error)) from error
    return learner


def _is_option(cls: type[Learner], key: str, text: str) -> bool:
    """Whether ``text`` is among the words that the parameter may be, as "none" often is."""
    checks = cls._parameter_constraints[key]
    return any(isinstance(check, StrOptions) and text in check.options for check in checks)


def value_of(text: str) -> Any:
    """None, true, false, numbers and JSON as themselves, all else as text.

    Keys of an object are read alike: in ``class_weight={"3": 2}`` the label is a number.
    """
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return json.loads(text, object_pairs_hook=_with_values)
    except json.JSONDecodeError:
        return text


def _with_values(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    return {value_of(key): value for key, value in pairs}
