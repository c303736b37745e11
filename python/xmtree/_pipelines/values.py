"""Values of scikit-learn's estimators as JSON and flat arrays, and back, to the last bit."""

from __future__ import annotations

from collections import UserList
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xmtree._persistence import Arrays, dtype_in_file, pack, unpack
from xmtree._pipelines import parts


class Writer:
    """Turns values into JSON types; arrays, and what a dictionary maps words to, go to ``arrays``.

    Each value but None, booleans, integers and strings becomes an object that says by "type" what
    it is: JSON has neither tuples, nor NaN, nor numbers that are sure to keep their last bit.
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}

    def value(self, value: Any, where: str) -> Any:
        """``value`` in JSON types; ``where`` it is, for messages."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, np.generic):
            return self.value(value.item(), where)
        if isinstance(value, float):
            return {"type": "float", "hex": value.hex()}
        # A UserList are the columns of a ColumnTransformer's remainder, up to scikit-learn 1.6.
        if isinstance(value, tuple | list | UserList):
            items = [self.value(item, where) for item in value]
            return {"type": "tuple" if isinstance(value, tuple) else "list", "items": items}
        if isinstance(value, slice):
            ends = [self.value(end, where) for end in (value.start, value.stop, value.step)]
            return {"type": "slice", "items": ends}
        if isinstance(value, np.dtype):
            return {"type": "dtype", "name": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": "scalar type", "name": np.dtype(value).str}
        if isinstance(value, dict):
            return self._dictionary(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if hasattr(value, "get_params"):
            return {"type": "part", **parts.describe(value, self, where)}
        raise TypeError(
            f"{where}: {value!r} of type {type(value).__name__} cannot be stored in a model file, "
            "which holds numbers, strings and arrays and nothing to be executed"
        )

    def _dictionary(self, value: dict[Any, Any], where: str) -> Any:
        keys, items = list(value), list(value.values())
        # A vocabulary is an array of strings, not a million values of their own.
        if keys and all(isinstance(key, str) for key in keys):
            stored_keys = self._array(np.array(keys, object), where)
        else:
            stored_keys = self.value(keys, where)
        if items and all(type(item) is int or isinstance(item, np.integer) for item in items):
            stored_items = self._array(np.array(items, np.int64), where)
        else:
            stored_items = self.value(items, where)
        return {"type": "dictionary", "keys": stored_keys, "values": stored_items}

    def _array(self, values: NDArray[Any], where: str) -> Any:
        shape = list(values.shape)
        if values.dtype == object and not all(isinstance(item, str) for item in values.flat):
            items = [self.value(item, where) for item in values.flat]
            return {"type": "objects", "shape": shape, "items": items}
        # Products add in an order that follows from that of the values in memory.
        is_fortran = values.flags.f_contiguous and not values.flags.c_contiguous
        order: Literal["C", "F"] = "F" if is_fortran else "C"
        name = f"pipeline.{len(self.arrays)}"
        try:
            self.arrays |= pack(name, values.ravel(order=order))
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from error
        dtype = values.dtype.str
        return {"type": "array", "name": name, "dtype": dtype, "shape": shape, "order": order}


def read(stored: Any, arrays: Arrays, source: parts.Source) -> Any:
    """What :class:`Writer` has made ``stored`` of; ValueError where it never makes such."""
    if stored is None or isinstance(stored, bool | int | str):
        return stored
    kind = stored["type"]
    if kind == "part":
        return parts.restore(stored, arrays, source)
    if kind == "float":
        return float.fromhex(stored["hex"])
    if kind in ("dtype", "scalar type"):
        dtype = dtype_in_file(stored["name"])
        if dtype.kind not in "biufO":
            raise ValueError(f"values of type {dtype}")
        return dtype if kind == "dtype" else dtype.type
    if kind == "array":
        flat = unpack(stored["name"], arrays, dtype_in_file(stored["dtype"]))
        return flat.reshape(stored["shape"], order=stored["order"])
    if kind == "dictionary":
        keys, items = (read(stored[name], arrays, source) for name in ("keys", "values"))
        plain = [part.tolist() if isinstance(part, np.ndarray) else part for part in (keys, items)]
        return dict(zip(*plain, strict=True))
    items = [read(item, arrays, source) for item in stored["items"]]
    if kind == "objects":
        found = np.empty(len(items), object)
        found[:] = items
        return found.reshape(stored["shape"])
    makers: dict[str, Any] = {"list": list, "tuple": tuple, "slice": lambda ends: slice(*ends)}
    return makers[kind](items)
