"""The steps of pipelines that a model file can hold: a table of scikit-learn's transformers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import sklearn

from xmtree import _core
from xmtree._persistence import Arrays
from xmtree._pipelines.checks import check

if TYPE_CHECKING:
    from xmtree._pipelines.values import Writer

#: By module the classes, with the attributes that ``fit`` sets and what they must be, in the words
#: of :func:`xmtree._pipelines.checks.check`.
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

#: Attributes that any of them may have.
_SHARED = {"n_features_in_": "#n?", "feature_names_in_": "str[n]?", "_sklearn_output_config": "*?"}
#: Those that predictions do not read: which stop words were checked, or left out, and names that
#: each transformation sets before it uses them.
_UNUSED = {"_stop_words_id", "stop_words_", "_transformers_feature_names_out"}
#: Parameters that are not those of a part but of the machine it runs on: they are not stored.
OF_THE_MACHINE = {"memory", "n_jobs"}

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
    described = {
        "class": name,
        "params": {
            key: writer.value(item, where if of_steps else f"{where}, {key}")
            for key, item in sorted(params.items())
            if key not in OF_THE_MACHINE
        },
        "state": {
            key: writer.value(item, f"{where}, {key}") for key, item in sorted(state.items())
        },
    }
    try:
        check(part, _attributes(name))
    except (ValueError, TypeError) as error:
        raise TypeError(f"{where}: {error}") from error
    return described


def restore(stored: dict[str, Any], arrays: Arrays, source: Source) -> Any:
    """The part that :func:`describe` has described."""
    from xmtree._pipelines.values import read

    name = stored["class"]
    cls = _class(name)
    if cls is None:
        raise source.refuse(f"xmtree {_core.__version__} has no part {name!r}")
    params, state = (
        {key: read(item, arrays, source) for key, item in stored[kind].items()}
        for kind in ("params", "state")
    )
    for key in params:
        if key not in cls._get_param_names():
            raise source.refuse(f"{name} has no parameter {key!r}")
    part = cls(**{key: item for key, item in params.items() if key not in OF_THE_MACHINE})
    attributes = _attributes(name)
    for key, item in state.items():
        if key not in attributes:
            raise source.refuse(f"{name} has no attribute {key!r}")
        setattr(part, key, item)
    try:
        # Private attributes come and go with versions: of the same one all that it needs are there.
        check(part, attributes, complete=source.version == sklearn.__version__)
    except (ValueError, TypeError, AttributeError) as error:
        raise source.refuse(f"{name}: {error}") from error
    return part


def _class(name: str) -> Any:
    """The class of the table; None where it has none of this name."""
    module = _MODULES.get(name)
    return None if module is None else getattr(import_module(module), name)


def _attributes(name: str) -> dict[str, str]:
    """The attributes of a class of the table, and what they must be."""
    found = dict(word.split("=") for word in _TABLE[_MODULES[name]][name].split())
    return {**_SHARED, **found}
