"""Estimators by their command-line names, and parsing of ``--set``."""

import difflib
import json
from typing import Any, TypeVar

from xmtree import TextClassifier
from xmtree._base import Learner
from xmtree._persistence import LEARNERS
from xmtree._sklearn import StrOptions, validate_params
from xmtree.cli.errors import WrongUsage

T = TypeVar("T")


def names() -> dict[str, type[Learner]]:
    """Return every learner of the package by its short name."""
    return {cls._short_name: cls for cls in LEARNERS.values() if "_short_name" in vars(cls)}


def for_numbers(name: str, settings: list[str], **fixed: Any) -> Learner:
    """Return the learner ``name`` with ``key=value`` settings and any of ``fixed`` it has."""
    if name == "auto":
        raise WrongUsage(
            "DATA holds numbers, which need a named --learner: "
            f"{', '.join(sorted(names()))}; texts must be in a column text or --text-column"
        )
    cls = names()[name]
    known = sorted(cls._get_param_names())
    if fixed.get("n_passes") is not None and "n_passes" not in known:
        raise WrongUsage(f"--passes is for online learners; --learner {name} has no passes")
    params = {key: value for key, value in fixed.items() if value is not None and key in known}
    for key, text in map(_pair, settings):
        if key not in known:
            raise _unknown(f"--learner {name}", key, known)
        params[key] = _value(cls, key, text)
    return _checked(cls, params)


def for_texts(name: str, settings: list[str], n_passes: int | None, **fixed: Any) -> TextClassifier:
    """Return a text classifier around the learner ``name``; settings may be of either."""
    own = sorted(set(TextClassifier._get_param_names()) - {"learner"})
    inner_settings: list[str] = []
    params = {key: value for key, value in fixed.items() if value is not None}
    inner = [] if name == "auto" else sorted(names()[name]._get_param_names())
    for setting in settings:
        key, text = _pair(setting)
        if key in own:
            params[key] = _value(TextClassifier, key, text)
            if key == "char_ngrams" and isinstance(params[key], list):
                params[key] = tuple(params[key])
        elif key in inner:
            inner_settings.append(setting)
        elif name == "auto" and any(key in cls._get_param_names() for cls in names().values()):
            raise WrongUsage(
                f"--set {key} needs a named --learner, as auto may choose one without this "
                "parameter"
            )
        else:
            what = "texts" if name == "auto" else f"texts with --learner {name}"
            raise _unknown(what, key, own + [key for key in inner if key not in own])
    if name != "auto":
        params["learner"] = for_numbers(name, inner_settings, n_passes=n_passes)
    elif n_passes not in (None, 1):
        raise WrongUsage("--passes needs a named --learner, as auto chooses the passes itself")
    return _checked(TextClassifier, params)


def _pair(setting: str) -> tuple[str, str]:
    key, equals, text = setting.partition("=")
    if not equals:
        raise WrongUsage(f"--set takes key=value, got {setting!r}")
    return key, text


def _unknown(what: str, key: str, known: list[str]) -> WrongUsage:
    close = difflib.get_close_matches(key, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"allowed are {', '.join(known)}"
    return WrongUsage(f"no parameter {key!r} for {what}; {hint}")


def _checked(cls: type[T], params: dict[str, Any]) -> T:
    """Return a new estimator, or raise WrongUsage if a parameter is invalid."""
    estimator = cls(**params)
    try:
        validate_params(estimator)
    except ValueError as error:
        raise WrongUsage(str(error)) from error
    return estimator


def _value(cls: Any, key: str, text: str) -> Any:
    """Return the value of ``text``, or ``text`` itself if it is an option of the parameter."""
    checks = cls._parameter_constraints[key]
    if any(isinstance(check, StrOptions) and text in check.options for check in checks):
        return text
    return _value_of(text)


def _value_of(text: str) -> Any:
    """Parse none, true, false, numbers and JSON; return any other text as it is.

    Keys of an object are parsed too: in ``class_weight={"3": 2}`` the label is a number.
    """
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return json.loads(
            text, object_pairs_hook=lambda pairs: {_value_of(key): item for key, item in pairs}
        )
    except json.JSONDecodeError:
        return text
