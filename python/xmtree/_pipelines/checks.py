"""Checks of pipeline parts: their parameters, and the consistency of their fitted attributes.

scikit-learn's transformers trust their attributes: an index out of range reads memory out of
bounds. Parts are therefore checked when they are read from a file. The same function checks them
before they are written, so that a saved file can be loaded.
"""

import itertools
import math
import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from xmtree._sklearn import validate_params

#: Longest n-gram and highest polynomial degree: the cost of a row grows with them.
_LONGEST = 32

# Patterns whose search takes time linear in the text: one or more characters of given kinds, then
# a run of one kind, optionally between word boundaries.
_CHARACTER = r"(?:\\[wWdDsS]|\[\^?(?:[^\]\[\\]|\\[wWdDsS])+\])"
_RUN = rf"{_CHARACTER}+(?:\+|\{{\d{{1,2}},\}})"
_TOKEN_PATTERN = re.compile(rf"(?:\(\?u\))?(?:\\b{_RUN}\\b|(?:\\b)?{_RUN})")


def _is_pair(value: Any, kind: type, least: float, most: float) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(end, kind) for end in value)
        and bool(least <= value[0] <= value[1] <= most)
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | str | Real)


def _is_token_pattern(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, str) or len(value) > 100 or not _TOKEN_PATTERN.fullmatch(value):
        return False
    try:
        re.compile(value)
    except re.error:
        return False
    return True


def _is_dtype(value: Any) -> bool:
    is_short = not isinstance(value, str) or len(value) < 20
    return is_short and not isinstance(value, int) and np.dtype(value).kind in "biufO"


#: Constraints beyond scikit-learn's, by parameter: the form of texts, anything that is called or
#: formatted, and the cost of a row.
_PARAMETERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "input": (lambda value: value == "content", "'content'"),
    "token_pattern": (
        _is_token_pattern,
        r"a run of characters of given kinds such as (?u)\b\w\w+\b, [a-z]+ or \S+, which is "
        "found in linear time",
    ),
    "ngram_range": (
        lambda value: _is_pair(value, Integral, 1, _LONGEST),
        f"two lengths from 1 to {_LONGEST}, the shorter first",
    ),
    "degree": (
        lambda value: all(
            _is_index(end, _LONGEST + 1)
            for end in (value if isinstance(value, tuple | list) else (value,))
        ),
        f"at most {_LONGEST}",
    ),
    "dtype": (_is_dtype, "a numeric type"),
    "feature_range": (lambda value: _is_pair(value, Real, -math.inf, math.inf), "two numbers"),
    "analyzer": (lambda value: value in ("word", "char", "char_wb"), "'word', 'char' or 'char_wb'"),
    "stop_words": (
        lambda value: _is_plain(value) or all(isinstance(word, str) for word in value),
        "'english' or a list of strings",
    ),
    "verbose_feature_names_out": (lambda value: isinstance(value, bool), "true or false"),
    "feature_names_out": (lambda value: value in (None, "one-to-one"), "None or 'one-to-one'"),
    "transform_input": (lambda value: value is None, "None"),
    "fill_value": (_is_plain, "a number, a string or None"),
    "transformer_weights": (
        lambda value: (
            value is None
            or (isinstance(value, dict) and all(isinstance(at, Real) for at in value.values()))
        ),
        "None or a dictionary of numbers",
    ),
    **dict.fromkeys(
        ["tokenizer", "preprocessor", "func", "inverse_func", "kw_args", "inv_kw_args"],
        (lambda value: value is None, "None"),
    ),
}


def check(part: Any, attributes: dict[str, str], *, complete: bool = True) -> None:
    """Raise ValueError or TypeError unless parameters and attributes of a part are consistent.

    The part may be unfitted. With ``complete``, private attributes must be present too.
    ``attributes`` has the expected type of each, alternatives separated by |:

    - ``int`` (at least 0), ``float`` (finite), ``gaps`` (finite or NaN), ``bool``, ``str``,
      ``dtype``, ``none``, or the name of the class of a fitted part;
    - ``float[k,n]``, an array of this shape. A letter is the same length in all attributes,
      ``#k`` that length itself, and ``n`` is ``n_features_in_``;
    - ``plain[n]``, an array of numbers, strings and None;
    - ``*``, anything; a function below checks it.

    ``?`` at the end: may be absent. ``/name``: may be absent or None if the attribute or
    parameter ``name`` is false.
    """
    params = part.get_params(deep=False)
    # Pipeline and FeatureUnion have no constraints; their steps are checked below.
    if hasattr(part, "_parameter_constraints"):
        validate_params(part)
    for key, value in params.items():
        is_allowed, allowed = _PARAMETERS.get(key, (lambda value: True, ""))
        if not is_allowed(value):
            raise ValueError(f"{key} must be {allowed} in a model file, got {value!r}")
    name = type(part).__name__
    state = {key: value for key, value in vars(part).items() if key not in params}
    output = state.pop("_sklearn_output_config", {"transform": "default"})
    if output.keys() != {"transform"} or output["transform"] not in ("default", "pandas", "polars"):
        raise ValueError(
            f"the output must be 'default', 'pandas' or 'polars' for transform, got {output!r:.60}"
        )
    # Unfitted parts pass, as the parameters of a ColumnTransformer hold some.
    if not state and name not in _STEP_PARAMS:
        return
    lengths: dict[str, int] = {}
    for key, words in attributes.items():
        words, _, condition = words.partition("/")
        is_optional = words.endswith("?") or (condition and not getattr(part, condition))
        if key not in state:
            if not is_optional and (complete or not key.startswith("_")):
                raise ValueError(f"the attribute {key!r} is missing")
        elif not (is_optional and state[key] is None) and not any(
            _fits(state[key], word, lengths) for word in words.rstrip("?").split("|")
        ):
            raise ValueError(f"{key} must be {words.rstrip('?')}, got {_shown(state[key])}")
    if name in _DETAILS:
        _DETAILS[name](part)


def check_fitted(part: Any) -> None:
    """Raise ValueError or TypeError unless a part, or the word in its place, can transform."""
    if isinstance(part, str) or part is None:
        if part not in ("passthrough", "drop", None):
            raise ValueError(f"a step must be a part, 'passthrough', 'drop' or None, got {part!r}")
    elif type(part).__name__ in _STEP_PARAMS:
        for _, step in _steps(part):
            check_fitted(step)
    else:
        check_is_fitted(part)


def _fits(value: Any, word: str, lengths: dict[str, int]) -> bool:
    """Return whether ``value`` matches an expected type of the table."""
    kind, _, shape = word.partition("[")
    if shape:
        letters = shape.rstrip("]").split(",")
        return (
            isinstance(value, np.ndarray)
            and value.ndim == len(letters)
            and all(
                size > 0 and lengths.setdefault(letter, size) == size
                for letter, size in zip(letters, value.shape, strict=True)
            )
            and _ARRAYS[kind](value)
        )
    if kind.startswith("#"):
        return _is_index(value) and 0 < value == lengths.setdefault(kind[1:], int(value))
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if type(value).__name__ != kind:
        return False
    check_fitted(value)
    return True


def _is_index(value: Any, size: float = math.inf) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < size


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


_SCALARS: dict[str, Callable[[Any], bool]] = {
    "*": lambda value: True,
    "none": lambda value: value is None,
    "int": _is_index,
    "float": lambda value: _is_number(value) and math.isfinite(value),
    "gaps": lambda value: _is_number(value) and not math.isinf(value),
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "str": lambda value: isinstance(value, str),
    "dtype": lambda value: isinstance(value, np.dtype),
}

_ARRAYS: dict[str, Callable[[NDArray[Any]], bool]] = {
    "int": lambda values: values.dtype.kind in "iu" and bool(np.all(values >= 0)),
    "float": lambda values: values.dtype.kind in "iuf" and bool(np.all(np.isfinite(values))),
    "gaps": lambda values: values.dtype.kind in "iuf" and not np.any(np.isinf(values)),
    "plain": lambda values: values.dtype.kind in "biufUO" and all(map(_is_plain, values.tolist())),
    "str": lambda values: all(isinstance(value, str) for value in values.tolist()),
}


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{value!r:.60}"


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(what)


def _vocabulary(part: Any) -> None:
    words = part.vocabulary_
    _require(
        isinstance(words, dict)
        and all(isinstance(word, str) for word in words)
        and all(_is_index(at) for at in words.values())
        and sorted(words.values()) == list(range(len(words))),
        "vocabulary_ must number its words from 0, without repetitions",
    )
    if type(part).__name__ == "TfidfVectorizer":
        found = part._tfidf.n_features_in_
        _require(found == len(words), f"{found} idf weights for a vocabulary of {len(words)}")


def _polynomial(part: Any) -> None:
    again = clone(part).fit(sp.csr_matrix((1, part.n_features_in_)))
    for name in ("n_output_features_", "_min_degree", "_max_degree", "_n_out_full"):
        _require(
            getattr(part, name) == getattr(again, name),
            f"{name} must be {getattr(again, name)}, got {getattr(part, name)!r}",
        )


def _imputer(part: Any) -> None:
    if part.indicator_ is not None:
        _require(
            part.indicator_._n_features == part.n_features_in_,
            f"indicator_ must have {part.n_features_in_} features, got "
            f"{part.indicator_._n_features}",
        )


def _indicator(part: Any) -> None:
    _require(
        all(_is_index(at, part._n_features) for at in part.features_.tolist()),
        f"features_ must be below {part._n_features}",
    )


def _categories(values: Any, *, ascending: bool) -> bool:
    """Return whether categories of a feature are distinct strings or distinct numbers."""
    if not (isinstance(values, np.ndarray) and values.ndim == 1 and len(values)):
        return False
    # Missing values come last.
    known = [value for value in values.tolist() if value is not None and value == value]
    if values.dtype.kind == "O" and not all(map(_is_plain, known)):
        return False
    if any(isinstance(value, str) for value in known):
        return all(isinstance(value, str) for value in known) and len(set(known)) == len(known)
    in_order = not ascending or all(a < b for a, b in itertools.pairwise(known))
    return in_order and values[: len(known)].tolist() == known


def _encoder(part: Any) -> None:
    """Check categories, the indices of dropped ones, and groups of rare ones."""
    name, n, found = type(part).__name__, part.n_features_in_, part.categories_
    is_one_hot = name == "OneHotEncoder"
    _require(
        isinstance(found, list)
        and len(found) == n
        # One-hot encoding finds numbers by bisection and writes to the column found.
        and all(_categories(values, ascending=is_one_hot) for values in found),
        f"categories_ must be {n} arrays of distinct strings or of ascending numbers",
    )
    sizes = [len(values) for values in found]
    if part._infrequent_enabled:
        rare, groups = part._infrequent_indices, part._default_to_infrequent_mappings
        _require(len(rare) == len(groups) == n, f"infrequent categories must be of {n} features")
        for at, (indices, group) in enumerate(zip(rare, groups, strict=True)):
            if indices is None and group is None:
                continue
            size = sizes[at] - (not is_one_hot and at in part._missing_indices)
            _require(
                _fits(indices, "int[r]", {}) and bool(np.all(indices < size)),
                f"infrequent categories must be below {size}",
            )
            others = np.setdiff1d(np.arange(size), indices)
            expected = np.full(size, len(others))
            expected[others] = np.arange(len(others))
            _require(
                len(others) + len(indices) == size and np.array_equal(group, expected),
                "groups must be those of the infrequent categories",
            )
            sizes[at] -= len(indices) - 1
    if not is_one_hot:
        _require(
            all(
                _is_index(at, n) and last == len(found[at]) - 1
                for at, last in part._missing_indices.items()
            ),
            "missing values must be the last category",
        )
        return
    before = [len(values) for values in found]
    for left_out, sizes_then in (part.drop_idx_, before), (part._drop_idx_after_grouping, sizes):
        _require(
            left_out is None
            or (
                left_out.shape == (n,)
                and left_out.dtype == object
                and all(
                    at is None or _is_index(at, size)
                    for at, size in zip(left_out, sizes_then, strict=True)
                )
            ),
            "dropped categories must be categories of their features",
        )
    _require(
        list(part._n_features_outs) == part._compute_n_features_outs(),
        f"columns must be {part._compute_n_features_outs()}, got {part._n_features_outs!r:.60}",
    )


def _steps(part: Any) -> list[Any]:
    """Return name and part of each step of a Pipeline or a FeatureUnion."""
    steps: list[Any] = getattr(part, _STEP_PARAMS[type(part).__name__])
    _require(
        isinstance(steps, list)
        and all(
            isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str)
            for step in steps
        ),
        "steps must be pairs of a name and a part",
    )
    return steps


def _are_columns(columns: Any) -> bool:
    if isinstance(columns, np.ndarray):
        columns = columns.tolist()
    items = columns if isinstance(columns, list) else [columns]
    return all(isinstance(item, str | Integral | slice) for item in items)


def _column_transformer(part: Any) -> None:
    inputs, n = part._transformer_to_input_indices, part.n_features_in_
    outputs = part.output_indices_
    _require(
        isinstance(inputs, dict)
        and all(_is_index(at, n) for indices in inputs.values() for at in indices),
        f"columns of transformers must be below {n}",
    )
    _require(
        isinstance(outputs, dict)
        and all(isinstance(at, slice) and _is_index(at.start) for at in outputs.values()),
        "output_indices_ must be slices",
    )
    for name, transformer, columns in part.transformers_:
        is_single = isinstance(columns, str | Integral)
        _require(
            name in inputs and _are_columns(columns) and not (is_single and len(inputs[name]) != 1),
            f"transformers_ has other columns for {name!r}",
        )
        if len(inputs[name]):  # a transformer without columns is not fitted
            check_fitted(transformer)


#: Parts that consist of other parts, with the parameter that holds those.
_STEP_PARAMS = {"Pipeline": "steps", "FeatureUnion": "transformer_list"}

_DETAILS: dict[str, Callable[[Any], Any]] = {
    "ColumnTransformer": _column_transformer,
    "CountVectorizer": _vocabulary,
    "FeatureUnion": _steps,
    "MissingIndicator": _indicator,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "Pipeline": _steps,
    "PolynomialFeatures": _polynomial,
    "SimpleImputer": _imputer,
    "TfidfVectorizer": _vocabulary,
}
