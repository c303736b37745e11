"""Steps of pipelines as JSON and flat arrays.

A table lists the transformers of scikit-learn that a model file can hold. Values are restored to
the last bit.
"""

from collections import UserList
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray

from xmtree import _core
from xmtree._labels.forms import as_label_lists
from xmtree._persistence import Arrays, dtype_in_file, pack, unpack
from xmtree._pipelines.checks import check

#: Classes by module, with the attributes that ``fit`` sets and their types as in
#: :func:`xmtree._pipelines.checks.check`.
_TABLE = {
    "sklearn.preprocessing": {
        "Binarizer": "",
        "FunctionTransformer": "",
        "MaxAbsScaler": "max_abs_=gaps[n] scale_=gaps[n] n_samples_seen_=int",
        "MinMaxScaler": "data_max_=gaps[n] data_min_=gaps[n] data_range_=gaps[n] min_=gaps[n] "
        "n_samples_seen_=int scale_=gaps[n]",
        "Normalizer": "",
        "OneHotEncoder": "categories_=* drop_idx_=* _drop_idx_after_grouping=* "
        "_infrequent_enabled=bool _n_features_outs=* _infrequent_indices=*/_infrequent_enabled "
        "_default_to_infrequent_mappings=*/_infrequent_enabled",
        "OrdinalEncoder": "categories_=* _infrequent_enabled=bool _missing_indices=* "
        "_infrequent_indices=*/_infrequent_enabled "
        "_default_to_infrequent_mappings=*/_infrequent_enabled",
        "PolynomialFeatures": "n_output_features_=int _max_degree=int _min_degree=int "
        "_n_out_full=int",
        "PowerTransformer": "lambdas_=gaps[n] _scaler=StandardScaler/standardize",
        "QuantileTransformer": "quantiles_=gaps[q,n] references_=float[q] n_quantiles_=#q",
        "RobustScaler": "center_=gaps[n]/with_centering scale_=gaps[n]/with_scaling",
        "StandardScaler": "mean_=gaps[n]/with_mean n_samples_seen_=int|gaps|gaps[n] "
        "scale_=gaps[n]/with_std var_=gaps[n]/with_std",
    },
    "sklearn.feature_extraction.text": {
        "CountVectorizer": "fixed_vocabulary_=bool vocabulary_=*",
        "HashingVectorizer": "",
        "TfidfTransformer": "idf_=float[n]/use_idf",
        "TfidfVectorizer": "fixed_vocabulary_=bool vocabulary_=* _tfidf=TfidfTransformer",
    },
    "sklearn.decomposition": {
        "PCA": "components_=float[k,n] explained_variance_=gaps[k] "
        "explained_variance_ratio_=gaps[k] mean_=float[n] n_components_=#k n_samples_=int "
        "noise_variance_=gaps singular_values_=float[k] _fit_svd_solver=str",
        "TruncatedSVD": "components_=float[k,n] explained_variance_=gaps[k] "
        "explained_variance_ratio_=gaps[k] singular_values_=float[k]",
    },
    "sklearn.feature_selection": {"VarianceThreshold": "variances_=gaps[n]"},
    "sklearn.impute": {
        "MissingIndicator": "features_=* _n_features=int _precomputed=bool",
        "SimpleImputer": "indicator_=MissingIndicator/add_indicator statistics_=plain[n] "
        "_fit_dtype=dtype _fill_dtype=dtype",
    },
    "sklearn.compose": {
        "ColumnTransformer": "output_indices_=* sparse_output_=bool transformers_=* _columns=* "
        "_remainder=* _transformer_to_input_indices=*",
    },
    "sklearn.pipeline": {"FeatureUnion": "", "Pipeline": ""},
}

#: Attributes that any class may have.
_SHARED = {"n_features_in_": "#n?", "feature_names_in_": "str[n]?", "_sklearn_output_config": "*?"}
#: Attributes that predictions do not read: stop words that were checked or left out, and names
#: that each transformation sets before it uses them.
_UNUSED = {"_stop_words_id", "stop_words_", "_transformers_feature_names_out"}
#: Parameters that depend on the machine and are not stored.
MACHINE_PARAMS = {"memory", "n_jobs"}

_MODULES = {name: module for module, classes in _TABLE.items() for name in classes}


class Source(NamedTuple):
    """Source of a description: the file, and the version of scikit-learn that wrote it."""

    path: str
    version: str

    def refuse(self, what: str) -> _core.ModelFileError:
        """Return the error that the file does not match the installed scikit-learn."""
        return _core.ModelFileError(
            f"{self.path}: {what}; it was written with scikit-learn {self.version}, installed is "
            f"{sklearn.__version__}"
        )


def known() -> str:
    """Return the names of all parts."""
    return ", ".join(sorted(_MODULES))


def stored(value: Any, arrays: Arrays, where: str) -> Any:
    """Return ``value`` in JSON types; ``where`` names its place in messages.

    Arrays and vocabularies go to ``arrays``. None, booleans, integers and strings are kept; other
    values become objects with a "type", as JSON lacks tuples, NaN, and numbers that keep their
    last bit.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"type": "float", "hex": value.hex()}
    # Up to scikit-learn 1.6, the columns of a ColumnTransformer's remainder are a UserList.
    if isinstance(value, tuple | list | UserList):
        items = [stored(item, arrays, where) for item in value]
        return {"type": "tuple" if isinstance(value, tuple) else "list", "items": items}
    if isinstance(value, slice):
        ends = [stored(end, arrays, where) for end in (value.start, value.stop, value.step)]
        return {"type": "slice", "items": ends}
    if isinstance(value, np.dtype):
        return {"type": "dtype", "name": value.str}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": "scalar type", "name": np.dtype(value).str}
    if isinstance(value, dict):
        keys: Any = list(value)
        values: Any = list(value.values())
        # An array of strings stores a large vocabulary compactly.
        if keys and all(isinstance(key, str) for key in keys):
            keys = np.array(keys, object)
        if values and all(type(item) is int or isinstance(item, np.integer) for item in values):
            values = np.array(values, np.int64)
        keys, values = (stored(part, arrays, where) for part in (keys, values))
        return {"type": "dictionary", "keys": keys, "values": values}
    if isinstance(value, np.ndarray):
        return _stored_array(value, arrays, where)
    if hasattr(value, "get_params"):
        return {"type": "part", **describe(value, arrays, where)}
    raise TypeError(
        f"{where}: {value!r} of type {type(value).__name__} cannot be stored in a model file, "
        "which holds only numbers, strings and arrays"
    )


def _stored_array(values: NDArray[Any], arrays: Arrays, where: str) -> dict[str, Any]:
    shape = list(values.shape)
    if values.dtype == object and not all(isinstance(item, str) for item in values.flat):
        items = [stored(item, arrays, where) for item in values.flat]
        return {"type": "objects", "shape": shape, "items": items}
    # The memory order is kept, as it determines the order of summation in products.
    is_fortran = values.flags.f_contiguous and not values.flags.c_contiguous
    order: Literal["C", "F"] = "F" if is_fortran else "C"
    name = f"pipeline.{len(arrays)}"
    try:
        arrays |= pack(name, values.ravel(order=order))
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from error
    dtype = values.dtype.str
    return {"type": "array", "name": name, "dtype": dtype, "shape": shape, "order": order}


def read(value: Any, arrays: Arrays, source: Source) -> Any:
    """Return the value that :func:`stored` has written; ValueError if it cannot be."""
    if value is None or isinstance(value, bool | int | str):
        return value
    kind = value["type"]
    if kind == "part":
        return restore(value, arrays, source)
    if kind == "float":
        return float.fromhex(value["hex"])
    if kind in ("dtype", "scalar type"):
        dtype = dtype_in_file(value["name"])
        if dtype.kind not in "biufO":
            raise ValueError(f"values must be numbers or objects, got type {dtype}")
        return dtype if kind == "dtype" else dtype.type
    if kind == "array":
        flat = unpack(value["name"], arrays, dtype_in_file(value["dtype"]))
        return flat.reshape(value["shape"], order=value["order"])
    if kind == "dictionary":
        keys, items = (read(value[name], arrays, source) for name in ("keys", "values"))
        plain = [part.tolist() if isinstance(part, np.ndarray) else part for part in (keys, items)]
        return dict(zip(*plain, strict=True))
    items = [read(item, arrays, source) for item in value["items"]]
    if kind == "objects":
        return as_label_lists(items).reshape(value["shape"])
    makers: dict[str, Any] = {"list": list, "tuple": tuple, "slice": lambda ends: slice(*ends)}
    return makers[kind](items)


def describe(part: Any, arrays: Arrays, where: str) -> dict[str, Any]:
    """Return the parameters and fitted attributes of a part, in JSON types and ``arrays``."""
    name = type(part).__name__
    if type(part) is not _class(name):
        raise TypeError(f"{where} is a {name}, which cannot be stored; allowed are {known()}")
    params = part.get_params(deep=False)
    state = {key: item for key, item in vars(part).items() if key not in {*params, *_UNUSED}}
    for key in state:
        if key not in _attributes(name):
            raise TypeError(
                f"{where}: {name} of scikit-learn {sklearn.__version__} has the attribute {key}, "
                f"which xmtree {_core.__version__} does not store"
            )
    has_steps = name in ("Pipeline", "FeatureUnion", "ColumnTransformer")
    described = {
        "class": name,
        "params": {
            key: stored(item, arrays, where if has_steps else f"{where}, {key}")
            for key, item in sorted(params.items())
            if key not in MACHINE_PARAMS
        },
        "state": {
            key: stored(item, arrays, f"{where}, {key}") for key, item in sorted(state.items())
        },
    }
    try:
        check(part, _attributes(name))
    except (ValueError, TypeError) as error:
        raise TypeError(f"{where}: {error}") from error
    return described


def restore(described: dict[str, Any], arrays: Arrays, source: Source) -> Any:
    """Return the part from :func:`describe`."""
    name = described["class"]
    cls = _class(name)
    if cls is None:
        raise source.refuse(f"xmtree {_core.__version__} has no part {name!r}")
    part = cls(**restored_params(cls, described["params"], arrays, source))
    attributes = _attributes(name)
    for key, item in described["state"].items():
        if key not in attributes:
            raise source.refuse(f"{name} has no attribute {key!r}")
        setattr(part, key, read(item, arrays, source))
    try:
        # Private attributes differ between versions, and must only be complete for the same one.
        check(part, attributes, complete=source.version == sklearn.__version__)
    except (ValueError, TypeError, AttributeError) as error:
        raise source.refuse(f"{name}: {error}") from error
    return part


def restored_params(
    cls: Any, params: dict[str, Any], arrays: Arrays, source: Source
) -> dict[str, Any]:
    """Return the parameters of a class of scikit-learn, which must know them all."""
    for key in params:
        if key not in cls._get_param_names():
            raise source.refuse(f"{cls.__name__} has no parameter {key!r}")
    kept = {key: item for key, item in params.items() if key not in MACHINE_PARAMS}
    return {key: read(item, arrays, source) for key, item in kept.items()}


def _class(name: str) -> Any:
    """Return the class of this name in the table, or None."""
    module = _MODULES.get(name)
    return None if module is None else getattr(import_module(module), name)


def _attributes(name: str) -> dict[str, str]:
    """Return the attributes of a class of the table and their types."""
    found = dict(word.split("=") for word in _TABLE[_MODULES[name]][name].split())
    return {**_SHARED, **found}
