"""Tools that take serialized models apart and put them together, as another program could."""

import json
import zlib

import numpy as np
from xmtree import _core
from xmtree._persistence import LEARNERS

_HEADER = 24
_TYPES = {
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "I16": np.int16,
    "F32": np.float32,
    "F64": np.float64,
}


def unpack(data):
    """Return ``(head, arrays)`` of a model: kind and metadata, and the named arrays."""
    size = int.from_bytes(data[_HEADER : _HEADER + 8], "little")
    index = json.loads(data[_HEADER + 8 : _HEADER + 8 + size])
    head = json.loads(index.pop("__metadata__")["xmtree"])
    body = data[_HEADER + 8 + size :]
    arrays = {}
    for name, entry in index.items():
        start, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(body[start:end], _TYPES[entry["dtype"]]).copy()
    return head, arrays


def pack(head, arrays):
    """Return the model of ``head`` and ``arrays``, with a valid checksum."""
    names = {dtype: name for name, dtype in _TYPES.items()}
    index, parts, start = {"__metadata__": {"xmtree": json.dumps(head)}}, [], 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        parts.append(array.tobytes())
        end = start + len(parts[-1])
        dtype = names[array.dtype.type]
        index[name] = {"dtype": dtype, "shape": [len(array)], "data_offsets": [start, end]}
        start = end
    text = json.dumps(index).encode()
    text += b" " * (-len(text) % 8)
    body = len(text).to_bytes(8, "little") + text + b"".join(parts)
    data = b"\x89XMTREE\n" + (3).to_bytes(4, "little") + bytes(4)
    data += len(body).to_bytes(8, "little") + body
    return data + zlib.crc32(data).to_bytes(4, "little")


def rewritten(path, **changes):
    """Write a valid estimator's file with changed metadata."""
    changed(path, lambda meta, arrays: meta.update(changes))


def changed(path, change):
    """Write a valid estimator's file after ``change(meta, arrays)``."""
    file = _core.EstimatorFile(path, False)
    meta, arrays = json.loads(file.meta), file.arrays()
    model = file.take_model(LEARNERS[meta.get("learner", meta)["class"]]._short_name)
    change(meta, arrays)
    _core.save_estimator(path, json.dumps(meta), arrays, model, False)
