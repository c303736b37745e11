"""Parameters of the learners, as the compiled core declares them."""

from __future__ import annotations

import json
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from xmtree import _core

#: Counts of the core are 32 bits wide.
_MAX_COUNT = 2**32 - 1
#: What ``closed`` of an interval is called, by whether the ends belong to it.
_CLOSED = {
    (True, True): "both",
    (True, False): "left",
    (False, True): "right",
    (False, False): "neither",
}


def declared(learner: str) -> dict[str, dict[str, Any]]:
    """Kind, default, choices and range of every parameter of ``learner`` but the seed."""
    found = {entry["name"]: entry for entry in json.loads(_core.parameters(learner))}
    del found["seed"]
    return found


def constraints(learner: str) -> dict[str, list[Any]]:
    """scikit-learn's constraints for the parameters of ``learner``."""
    return {name: _allowed(entry) for name, entry in declared(learner).items()}


def _allowed(entry: dict[str, Any]) -> list[Any]:
    allowed: list[Any] = [None] if entry["optional"] else []
    kind = entry["kind"]
    if kind == "boolean" or True in entry["choices"]:
        allowed.append("boolean")
    if kind == "choice":
        allowed.append(StrOptions({word for word in entry["choices"] if isinstance(word, str)}))
    elif kind in ("integer", "real"):
        allowed.append(_interval(entry["range"], kind))
    return allowed


def _interval(bounds: dict[str, Any], kind: str) -> Interval:
    low, high = bounds["low"], bounds["high"]
    if kind == "real":
        closed = _CLOSED[bounds["includes_low"], bounds["includes_high"]]
        return Interval(Real, low, high, closed=closed)
    low = 0 if low is None else int(low)
    high = _MAX_COUNT if high is None else int(high)
    return Interval(Integral, low, high, closed="both")
