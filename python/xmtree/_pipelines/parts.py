"""The steps of pipelines that a model file can hold: a table of scikit-learn's transformers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import sklearn

from xmtree import _core
from xmtree._persistence import Arrays

if TYPE_CHECKING:
    from xmtree._pipelines.values import Writer

#: By module the classes, with the attributes that ``fit`` sets. Those with a question mark are not
#: always there.
_TABLE = {
    "sklearn.preprocessing": {
        "Binarizer": "",
        "FunctionTransformer": "",
        "MaxAbsScaler": "max_abs_ scale_ n_samples_seen_",
        "MinMaxScaler": "data_max_ data_min_ data_range_ min_ n_samples_seen_ scale_",
        "Normalizer": "",
        "OneHotEncoder": "categories_ drop_idx_ _drop_idx_after_grouping _infrequent_enabled "
        "_n_features_outs _infrequent_indices? _default_to_infrequent_mappings?",
        "OrdinalEncoder": "categories_ _infrequent_enabled _missing_indices _infrequent_indices? "
        "_default_to_infrequent_mappings?",
        "PolynomialFeatures": "n_output_features_ _max_degree _min_degree _n_out_full",
        "PowerTransformer": "lambdas_ _scaler?",
        "QuantileTransformer": "n_quantiles_ quantiles_ references_",
        "RobustScaler": "center_ scale_",
        "StandardScaler": "mean_ n_samples_seen_ scale_ var_",
    },
    "sklearn.feature_extraction.text": {
        "CountVectorizer": "fixed_vocabulary_ vocabulary_",
        "HashingVectorizer": "",
        "TfidfTransformer": "idf_?",
        "TfidfVectorizer": "fixed_vocabulary_ vocabulary_ _tfidf",
    },
    "sklearn.decomposition": {
        "PCA": "components_ explained_variance_ explained_variance_ratio_ mean_ n_components_ "
        "n_samples_ noise_variance_ singular_values_ _fit_svd_solver",
        "TruncatedSVD": "components_ explained_variance_ explained_variance_ratio_ "
        "singular_values_",
    },
    "sklearn.feature_selection": {"VarianceThreshold": "variances_"},
    "sklearn.impute": {
        "MissingIndicator": "features_ _n_features _precomputed",
        "SimpleImputer": "indicator_ statistics_ _fit_dtype _fill_dtype",
    },
    "sklearn.compose": {
        "ColumnTransformer": "output_indices_ sparse_output_ transformers_ _columns _remainder "
        "_transformer_to_input_indices",
    },
    "sklearn.pipeline": {"FeatureUnion": "", "Pipeline": ""},
}

#: Attributes that any of them may have.
_SHARED = {"n_features_in_", "feature_names_in_", "_sklearn_output_config"}
#: Those that predictions do not read: to note which stop words were checked, or left out.
_UNUSED = {"_stop_words_id", "stop_words_"}

_MODULES = {name: module for module, classes in _TABLE.items() for name in classes}


class Source(NamedTuple):
    """Where a description comes from: the file, and the version of scikit-learn that wrote it."""

    path: str
    version: str

    def refuse(self, what: str) -> _core.ModelFileError:
        """The error that the file does not fit the scikit-learn that is installed."""
        return _core.ModelFileError(
            f"{self.path}: {what}; it was written with scikit-learn {self.version}, and this is "
            f"{sklearn.__version__}"
        )


def known() -> str:
    """The names of all parts."""
    return ", ".join(sorted(_MODULES))


def describe(part: Any, writer: Writer, where: str) -> dict[str, Any]:
    """The parameters and fitted attributes of a part, in JSON types and arrays of ``writer``."""
    name = type(part).__name__
    if type(part) is not _class(name):
        raise TypeError(f"{where} is a {name}, which cannot be stored; known are {known()}")
    params = part.get_params(deep=False)
    state = {key: item for key, item in vars(part).items() if key not in {*params, *_UNUSED}}
    for key in state:
        if key not in _attributes(name):
            raise TypeError(
                f"{where}: {name} of scikit-learn {sklearn.__version__} has the attribute {key}, "
                f"which xmtree {_core.__version__} does not store"
            )
    of_steps = name in ("Pipeline", "FeatureUnion", "ColumnTransformer")
    return {
        "class": name,
        "params": {
            key: writer.value(item, where if of_steps else f"{where}, {key}")
            for key, item in sorted(params.items())
        },
        "state": {
            key: writer.value(item, f"{where}, {key}") for key, item in sorted(state.items())
        },
    }


def restore(stored: dict[str, Any], arrays: Arrays, source: Source) -> Any:
    """The part that :func:`describe` has described."""
    from xmtree._pipelines.values import read

    name = stored["class"]
    cls = _class(name)
    if cls is None:
        raise source.refuse(f"xmtree {_core.__version__} has no part {name!r}")
    params = {key: read(item, arrays, source) for key, item in stored["params"].items()}
    for key in params:
        if key not in cls._get_param_names():
            raise source.refuse(f"{name} has no parameter {key!r}")
    part = cls(**params)
    attributes = _attributes(name)
    for key in stored["state"]:
        if key not in attributes:
            raise source.refuse(f"{name} has no attribute {key!r}")
    # A ColumnTransformer also has its transformers as they were before fit.
    is_fitted = not stored["state"].keys() <= _SHARED
    for key, is_needed in attributes.items():
        # Private attributes come and go with versions: of the same one all that it needs are there.
        matters = not key.startswith("_") or source.version != sklearn.__version__
        if is_fitted and is_needed and matters and key not in stored["state"]:
            raise source.refuse(f"{name} lacks the attribute {key!r}")
    for key, item in stored["state"].items():
        setattr(part, key, read(item, arrays, source))
    return part


def _class(name: str) -> Any:
    """The class of the table; None where it has none of this name."""
    module = _MODULES.get(name)
    return None if module is None else getattr(import_module(module), name)


def _attributes(name: str) -> dict[str, bool]:
    """The attributes of a class of the table, and whether they are always there."""
    words = _TABLE[_MODULES[name]][name].split()
    return {word.rstrip("?"): not word.endswith("?") for word in words} | dict.fromkeys(
        _SHARED, False
    )
