"""Model files: writing an estimator for ``Learner.save``, and :func:`load`.

The file is the container of the core, with a version and checksums, written completely or not at
all. It holds the core's model, the labels and feature names as arrays, and the constructor's
arguments as JSON.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from xmtree import _core, _validation
from xmtree._labels import Labels
from xmtree._labels.forms import Form
from xmtree._sharing import view

#: Version of the state; raise it for a change that older code would misread.
STATE_VERSION = 2

#: Parameters that depend on the machine and are not stored.
_MACHINE_PARAMS = ("n_jobs",)

#: Bounds of the memory of an array of fixed-width strings: bytes per byte in the file, and bytes
#: that are always allowed. Without them, a small file could request a huge array.
_MOST_PER_BYTE = 16
_ALWAYS = 1 << 20

#: Array types that a file may name; numpy never parses others.
_DTYPE = re.compile(r"[<>|=]?[biufmMUO]\d{0,9}(\[\d{0,9}[a-zA-Z]{1,2}\])?")

#: Errors that reading raises if a file is damaged.
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)

#: Command-line options for reading tables, which a model remembers.
TABLE_OPTIONS = frozenset(
    f"{role}_column" for role in ("text", "label", "ignore", "weight", "id")
) | {"label_separator", "no_header", "delimiter"}

Arrays = dict[str, NDArray[Any]]

#: Learners by their names in files. Each class registers itself, subclasses of users too.
LEARNERS: dict[str, type[Any]] = {}


def name_in_files(cls: type[Any]) -> str:
    """Return the class name, with its module if that is outside of this package."""
    if cls.__module__.partition(".")[0] == __package__:
        return cls.__name__
    return f"{cls.__module__}.{cls.__qualname__}"


def save_around(
    outer: Any, learner: Any, path: str | Path, arrays: Arrays, *, compact: bool, **state: Any
) -> None:
    """Write a fitted ``learner``, and the estimator ``outer`` that holds it, to one file.

    The method ``_from_file`` of the class of ``outer`` restores it from ``arrays`` and ``state``
    (of JSON types). Without ``outer``, the file holds only the learner.
    """
    check_fitted(learner)
    learner = view(learner)
    meta, own = _describe(learner)
    if outer is not None:
        meta = {
            "state_version": STATE_VERSION,
            "class": name_in_files(type(outer)),
            "learner": meta,
            "versions": meta["versions"],
            **state,
        }
    _core.save_estimator(os.fspath(path), json.dumps(meta), own | arrays, learner._model, compact)


def check_fitted(estimator: Any) -> None:
    """Refuse to save an estimator that is not fitted."""
    check_is_fitted(estimator, msg="this %(name)s is not fitted; call fit before save")


def _describe(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return everything of a learner except the core's model, in JSON types and arrays."""
    arrays = pack("classes", estimator.classes_)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        arrays |= pack("feature_names", names)
    meta = {
        "state_version": STATE_VERSION,
        "class": name_in_files(type(estimator)),
        "params": plain_params(estimator, estimator._fitted_params()["seed"]),
        "y_form": estimator._y_form,
        "classes_dtype": estimator.classes_.dtype.str,
        "n_features_in": estimator.n_features_in_,
        "has_feature_names": names is not None,
        "more": estimator._more_state(),
        "index_base": estimator._index_base,
        "table_options": estimator._table_options,
        "hashes_names": estimator._hashes_names,
        "versions": {
            "xmtree": _core.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    return meta, arrays


def load(path: str | Path, *, mmap: bool = False) -> Any:
    """Load an estimator or a pipeline from a file written by ``save``.

    Nothing in the file is executed. The estimator predicts as before, and an online learner
    can be trained further as if it had never been stored. ``n_jobs`` depends on the machine, so it
    is not stored and is None after loading.

    Parameters
    ----------
    path : str or Path
    mmap : bool, default=False
        Map the file into memory and use the model's large arrays in place. Loading then takes
        milliseconds for any size, a prediction reads only what it needs, and processes share the
        memory. Use it only for trusted files that are not changed in place while the estimator
        exists, as neither the checksum nor the contents of large arrays are checked. (``save``
        replaces a file, so estimators loaded before keep the old one. On Windows, a mapped file
        cannot be replaced.) Mapped arrays are trees and scorers of :class:`LdSMClassifier` and
        weights of :class:`OAAClassifier`. If these are averaged and not pruned, the first
        prediction computes their average in memory of its own. All other arrays, and the 16-bit
        weights of a compact file, are read as without ``mmap``. Training further copies the weights
        into memory first.

    Returns
    -------
    estimator or Pipeline
        An instance of the saved class. Import a subclass of your own before, as loading a file
        never imports a module.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or of a newer version; or if it holds a pipeline
        whose steps have other parameters or attributes in the installed scikit-learn.
    OSError
        If the file cannot be read.
    """
    file = _core.EstimatorFile(os.fspath(path), mmap)
    arrays = file.arrays()
    try:
        meta = json.loads(file.meta)
        if meta["state_version"] > STATE_VERSION:
            raise _core.ModelFileError(
                f"{path}: written by xmtree {meta['versions']['xmtree']}, which is newer than "
                f"this version, {_core.__version__}; upgrade xmtree to read it"
            )
        estimator = _estimator(path, meta.get("learner", meta), arrays, file)
        if "learner" in meta:
            outer = class_in_file(path, meta["class"])
            estimator = outer._from_file(path, estimator, meta, arrays)
    except _core.ModelFileError:
        raise
    except _DAMAGE as error:
        raise _core.ModelFileError(f"{path}: damaged model: {error!r}") from error
    return estimator


def class_in_file(path: str | Path, name: str) -> type[Any]:
    """Return the class with this name in files."""
    cls = LEARNERS.get(name)
    if cls is None:
        raise _core.ModelFileError(
            f"{path}: xmtree {_core.__version__} has no class {name}; if it is your own, import "
            "it before loading the model"
        )
    return cls


def _estimator(path: str | Path, meta: Any, arrays: Arrays, file: _core.EstimatorFile) -> Any:
    """Restore a learner from what :func:`_describe` returned."""
    cls = class_in_file(path, meta["class"])
    estimator = cls(**restored_params(meta["params"]))
    classes = unpack("classes", arrays, dtype_in_file(meta["classes_dtype"]))
    if len(set(classes.tolist())) < len(classes):
        raise ValueError("two labels are equal")
    if meta["y_form"] not in get_args(Form):
        raise ValueError(f"y_form {meta['y_form']!r}")
    if meta["index_base"] not in (None, 0, 1):
        raise ValueError(f"index_base {meta['index_base']!r}")
    estimator.n_features_in_ = int(meta["n_features_in"])
    if meta["has_feature_names"]:
        estimator.feature_names_in_ = unpack("feature_names", arrays, np.dtype(object))
    model = file.take_model(cls._short_name)
    if model.n_classes != len(classes):
        raise _core.ModelFileError(
            f"{path}: damaged model: {len(classes)} labels for {model.n_classes} classes"
        )
    estimator._model = model.with_labels(Labels.of(classes, meta["y_form"]))
    estimator._set_more_state(meta["more"])
    if meta["index_base"] is not None:
        estimator._index_base = int(meta["index_base"])
    estimator._table_options = _table_options(meta.get("table_options"))
    # Older files lack this entry.
    estimator._hashes_names = bool(meta.get("hashes_names", False))
    n_features = estimator._model.n_features
    if estimator.n_features_in_ != n_features and not estimator._takes_any_width():
        raise _core.ModelFileError(
            f"{path}: damaged model: {estimator.n_features_in_} features for {n_features} columns"
        )
    return estimator


def _table_options(stored: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the stored command-line options after checking names and types."""
    for name, value in (stored or {}).items():
        items = value if name == "ignore_column" else [value]
        wanted = bool if name == "no_header" else str
        if name not in TABLE_OPTIONS or not all(isinstance(item, wanted) for item in items):
            raise ValueError(f"invalid option {name}={value!r}")
    return stored


def plain_params(estimator: Any, seed: int, *, but: str = "") -> dict[str, Any]:
    """Return constructor arguments in JSON types, without ``but`` and those of the machine.

    ``seed`` is that of the fitted model.
    """
    params = dict(estimator.get_params(deep=False))
    for name in (but, *_MACHINE_PARAMS):
        params.pop(name, None)
    if isinstance(params.get("random_state"), np.random.RandomState):
        # A generator changes with each use, but the model depends only on the seed it gave.
        params["random_state"] = seed
    for name, value in params.items():
        try:
            params[name] = plain(value)
        except TypeError as error:
            raise TypeError(
                f"the parameter {name}={value!r} cannot be stored in a model file"
            ) from error
    return params


def restored_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor arguments that :func:`plain_params` stored."""
    # Older files contain parameters of the machine that wrote them.
    kept = {name: value for name, value in params.items() if name not in _MACHINE_PARAMS}
    return {name: restored(value) for name, value in kept.items()}


def plain(value: Any) -> Any:
    """Return an argument in JSON types; a dictionary as pairs, as JSON keys are always strings."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        pairs = [[plain(key), plain(item)] for key, item in value.items()]
        if any(isinstance(key, list | dict) for key, _ in pairs):
            raise TypeError("keys must be numbers or strings")
        return {"pairs": pairs}
    is_array = hasattr(value, "__array__") or isinstance(value, Sequence)
    if is_array and not isinstance(value, str):
        value = _validation.plain_array(value).tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, (type(None), bool, int, float, str)):
        raise TypeError(f"{type(value).__name__} is not a JSON type")
    return value


def restored(value: Any) -> Any:
    """Return the argument that :func:`plain` stored, with arrays as lists."""
    return dict(value["pairs"]) if isinstance(value, dict) else value


def pack(name: str, values: NDArray[Any]) -> Arrays:
    """Return ``values`` as arrays of the few types that a model file can hold."""
    kind = values.dtype.kind
    if kind in "UO":
        if not all(isinstance(value, str) for value in values):
            raise TypeError(f"{name} of this type cannot be stored in a model file; use strings")
        encoded = [value.encode() for value in values.tolist()]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.uint64)
        # If few strings are long and many short, the data are padded to the size that unpack needs.
        lacking = _least_bytes(values.dtype, len(ends)) - sum(map(len, encoded))
        data = np.frombuffer(b"".join(encoded) + bytes(max(0, lacking)), np.uint8)
        return {name: data, f"{name}.ends": ends}
    if kind in "iu":
        return {name: values.astype(np.int64 if kind == "i" else np.uint64)}
    if kind in "mM":
        return {name: values.view(np.int64)}
    if kind in "bf":
        return {name: values.astype(np.float64)}
    raise TypeError(f"{name} of type {values.dtype} cannot be stored in a model file")


def unpack(name: str, arrays: Arrays, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values that :func:`pack` stored."""
    if dtype.kind not in "biufmMUO":
        raise ValueError(f"{name} has the type {dtype}, which a model file cannot hold")
    values = arrays[name]
    if dtype.kind in "UO":
        ends = arrays[f"{name}.ends"].astype(np.int64)
        data = values.tobytes()
        starts = np.concatenate([[0], ends[:-1]])
        if np.any(ends < starts) or (len(ends) and ends[-1] > len(data)):
            raise ValueError(f"{name} is not a list of strings")
        if len(data) < _least_bytes(dtype, len(ends)):
            raise ValueError(f"{name} has type {dtype}, but only {len(data)} bytes of strings")
        strings = [data[a:b].decode() for a, b in zip(starts, ends, strict=True)]
        return np.array(strings, object).astype(dtype)
    if dtype.kind in "mM":
        return values.view(dtype)
    return values.astype(dtype)


def _least_bytes(dtype: np.dtype[Any], n: int) -> int:
    """Return the number of bytes that a file must hold for ``n`` strings of type ``dtype``."""
    size = dtype.itemsize * n
    # Each string also has a stored end of 8 bytes.
    return 0 if size <= _ALWAYS else size // _MOST_PER_BYTE - 8 * n


def dtype_in_file(name: str) -> np.dtype[Any]:
    """Return the array type with this name in a file: numbers, times or strings."""
    if not _DTYPE.fullmatch(name):
        raise ValueError(f"{name[:50]!r} is not an array type")
    return np.dtype(name)
