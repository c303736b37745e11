"""Estimators as files: ``Learner.save`` and :func:`load`.

The file is the container of the core's models (with checksums and a version, written
completely or not at all). It holds the core's model, the labels and feature
names as arrays, and the constructor's arguments as JSON.
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

from xmtree import _core, _validation
from xmtree._labels import Labels
from xmtree._labels.forms import Form
from xmtree._sharing import view

#: Raised when an older version could not read what this one writes.
STATE_VERSION = 2

#: Parameters that are not those of a model but of the machine it runs on: they are not stored.
_OF_THE_MACHINE = ("n_jobs",)

#: Bytes of an array of strings, all as wide as the dtype says, that are allowed for each byte that
#: the file has of them, and for any array: a file cannot ask for more memory than that.
_MOST_PER_BYTE = 16
_ALWAYS = 1 << 20

#: The types of arrays that a file can name; others are not even looked at.
_DTYPE = re.compile(r"[<>|=]?[biufmMUO]\d{0,9}(\[\d{0,9}[a-zA-Z]{1,2}\])?")

#: What reading raises where a file holds something else than was written.
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)

#: Options of the command line that say how a table is read: a model remembers them.
TABLE_OPTIONS = frozenset(
    ["text_column", "label_column", "label_separator", "ignore_column", "no_header", "delimiter"]
)

Arrays = dict[str, NDArray[Any]]

#: The learners by their names in files. Each registers itself, subclasses of users too.
LEARNERS: dict[str, type[Any]] = {}


def name_in_files(cls: type[Any]) -> str:
    """The class name; outside of this package with its module."""
    if cls.__module__.partition(".")[0] == __package__:
        return cls.__name__
    return f"{cls.__module__}.{cls.__qualname__}"


def save_around(
    outer: Any, learner: Any, path: str | Path, arrays: Arrays, *, compact: bool, **state: Any
) -> None:
    """Writes ``outer``, an estimator that holds ``learner``, a fitted one, as one file.

    ``arrays`` and ``state`` (of JSON types) are what the class of ``outer`` makes it from, with
    its method ``_from_file``. Without ``outer`` the file holds the learner alone.
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
    """Refuses to save what has learned nothing."""
    if not estimator.__sklearn_is_fitted__():
        raise sklearn.exceptions.NotFittedError(
            f"this {type(estimator).__name__} has learned nothing yet; call fit before save"
        )


def _describe(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """All of a learner but the core's model, as JSON types and arrays."""
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
    """Read what :meth:`save` of an estimator or :func:`xmtree.save` of a pipeline wrote.

    Nothing in the file is executed. The estimator predicts as before, and an
    online one goes on learning as if it had never been stored. How many threads it uses is for
    this machine to say: ``n_jobs`` is not stored, and None until it is set.

    Parameters
    ----------
    path : str or Path
    mmap : bool, default=False
        Map the file into memory and use the model's large arrays where they lie: loading takes
        milliseconds whatever the size, a prediction reads what it needs, and processes share
        the memory. Only for files that you trust and that nobody changes in place while the
        estimator lives: neither the checksum nor the contents of large arrays are checked
        (``save`` replaces a file, so that estimators loaded before go on with the old one; on
        Windows a file cannot be replaced while it is mapped). These are trees and scorers of
        :class:`LdSMClassifier`, and weights of :class:`OAAClassifier` if they are pruned or not
        averaged; all else, and 16 bits of a compact file, is read as without ``mmap``. What learns
        on copies its weights into memory first.

    Returns
    -------
    estimator or Pipeline
        Of the class that was saved. A subclass of your own must have been imported: a file
        cannot make this function import anything.

    Raises
    ------
    ModelFileError
        If the file is damaged, something else, or of a newer version; or if it holds a pipeline
        whose steps have other parameters or attributes in the installed scikit-learn.
    OSError
        If it cannot be read.
    """
    file = _core.EstimatorFile(os.fspath(path), mmap)
    arrays = file.arrays()
    try:
        meta = json.loads(file.meta)
        if meta["state_version"] > STATE_VERSION:
            raise _core.ModelFileError(
                f"{path}: written by xmtree {meta['versions']['xmtree']}, which is newer than "
                f"this one, {_core.__version__}; upgrade xmtree to read it"
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
    """The class that a file calls ``name``."""
    cls = LEARNERS.get(name)
    if cls is None:
        raise _core.ModelFileError(
            f"{path}: xmtree {_core.__version__} has no {name}; import a class of "
            "your own before you load a model of it"
        )
    return cls


def _estimator(path: str | Path, meta: Any, arrays: Arrays, file: _core.EstimatorFile) -> Any:
    """The learner that :func:`_describe` has described."""
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
    # Files from before names were hashed do not have it.
    estimator._hashes_names = bool(meta.get("hashes_names", False))
    n_features = estimator._model.n_features
    if estimator.n_features_in_ != n_features and not estimator._takes_any_width():
        raise _core.ModelFileError(
            f"{path}: damaged model: {estimator.n_features_in_} features for {n_features} columns"
        )
    return estimator


def _table_options(stored: dict[str, Any] | None) -> dict[str, Any] | None:
    """Options of the command line that a file holds, of the types that they have there."""
    for name, value in (stored or {}).items():
        items = value if name == "ignore_column" else [value]
        wanted = bool if name == "no_header" else str
        if name not in TABLE_OPTIONS or not all(isinstance(item, wanted) for item in items):
            raise ValueError(f"the option {name} is {value!r}")
    return stored


def plain_params(estimator: Any, seed: int, *, but: str = "") -> dict[str, Any]:
    """Constructor arguments, all ``but`` one and those of the machine, as JSON types; ``seed`` is
    the fitted model's."""
    params = dict(estimator.get_params(deep=False))
    for name in (but, *_OF_THE_MACHINE):
        params.pop(name, None)
    if isinstance(params.get("random_state"), np.random.RandomState):
        # A generator changes with every use; the model depends on the seed it gave.
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
    """The constructor arguments that :func:`plain_params` stored."""
    # Older files have those of the machine that they come from.
    kept = {name: value for name, value in params.items() if name not in _OF_THE_MACHINE}
    return {name: restored(value) for name, value in kept.items()}


def plain(value: Any) -> Any:
    """An argument in JSON's types; a dictionary as its pairs, as JSON has no keys but strings."""
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
        raise TypeError(f"{type(value).__name__} is none of JSON's types")
    return value


def restored(value: Any) -> Any:
    """What :func:`plain` made ``value`` of; arrays as lists."""
    return dict(value["pairs"]) if isinstance(value, dict) else value


def pack(name: str, values: NDArray[Any]) -> Arrays:
    """``values`` as arrays of the few types a model file has."""
    kind = values.dtype.kind
    if kind in "UO":
        if not all(isinstance(value, str) for value in values):
            raise TypeError(f"{name} of this type cannot be stored in a model file; use strings")
        encoded = [value.encode() for value in values.tolist()]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.uint64)
        # A few long strings among many short ones: a file is as large as their array asks for.
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
    """What :func:`pack` has packed."""
    if dtype.kind not in "biufmMUO":
        raise ValueError(f"{name} of type {dtype}")
    values = arrays[name]
    if dtype.kind in "UO":
        ends = arrays[f"{name}.ends"].astype(np.int64)
        data = values.tobytes()
        starts = np.concatenate([[0], ends[:-1]])
        if np.any(ends < starts) or (len(ends) and ends[-1] > len(data)):
            raise ValueError(f"{name} is no list of strings")
        if len(data) < _least_bytes(dtype, len(ends)):
            raise ValueError(f"{name} of type {dtype} for strings of {len(data)} bytes in all")
        strings = [data[a:b].decode() for a, b in zip(starts, ends, strict=True)]
        unpacked = np.empty(len(strings), object)
        unpacked[:] = strings
        return unpacked.astype(dtype)
    if dtype.kind in "mM":
        return values.view(dtype)
    return values.astype(dtype)


def _least_bytes(dtype: np.dtype[Any], n: int) -> int:
    """Bytes that a file must have of ``n`` strings that are to be an array of ``dtype``."""
    size = dtype.itemsize * n
    # Each string also has the end that is stored of it.
    return 0 if size <= _ALWAYS else size // _MOST_PER_BYTE - 8 * n


def dtype_in_file(name: str) -> np.dtype[Any]:
    """The type of arrays, of numbers, times or strings, that a file calls ``name``."""
    if not _DTYPE.fullmatch(name):
        raise ValueError(f"no type of an array: {name[:50]!r}")
    return np.dtype(name)
