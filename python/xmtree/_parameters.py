"""Parameters of the learners as the compiled core declares them."""

import json
from numbers import Integral, Real
from typing import Any

from xmtree import _core
from xmtree._sklearn import Interval, StrOptions
from xmtree._validation import MAX_COUNT

#: Names for ``closed`` of an interval, by the kinds of its two ends.
_CLOSED = {
    ("Included", "Included"): "both",
    ("Included", "Excluded"): "left",
    ("Excluded", "Included"): "right",
    ("Excluded", "Excluded"): "neither",
}


def declared(learner: str) -> dict[str, dict[str, Any]]:
    """Return kind, default, choices and range of each parameter of ``learner`` except the seed."""
    found = {entry["name"]: entry for entry in json.loads(_core.parameters(learner))}
    del found["seed"]
    return found


def constraints(learner: str) -> dict[str, list[Any]]:
    """Return scikit-learn's constraints for the parameters of ``learner``."""
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
    """Return the interval; each end is {"Included": x}, {"Excluded": x} or "Unbounded"."""
    ends = [end if end != "Unbounded" else {"Excluded": None} for end in bounds.values()]
    (below, low), (above, high) = (next(iter(end.items())) for end in ends)
    if kind == "real":
        return Interval(Real, low, high, closed=_CLOSED[below, above])
    low = 0 if low is None else int(low)
    high = MAX_COUNT if high is None else int(high)
    return Interval(Integral, low, high, closed="both")
