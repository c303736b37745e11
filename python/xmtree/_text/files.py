"""Text classifiers as files: the learner, and its vocabulary and idf weights as arrays."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from xmtree import _persistence
from xmtree._base import Learner
from xmtree._persistence import Arrays
from xmtree._sklearn import validate_params
from xmtree._text.features import TextFeatures, settings_of

T = TypeVar("T")


def save(estimator: Any, path: str | Path, *, compact: bool) -> None:
    """Writes a fitted text classifier."""
    _persistence.check_fitted(estimator)
    seed = estimator.learner_._fitted_params()["seed"]
    params = _persistence.plain_params(estimator, seed, but="learner")
    params["learner"] = template = estimator.learner
    if not isinstance(template, str):
        params["learner"] = {
            "class": _persistence.name_in_files(type(template)),
            "params": _persistence.plain_params(template, seed),
        }
    _persistence.save_around(
        estimator,
        estimator.learner_,
        path,
        estimator._features.to_arrays(),
        compact=compact,
        params=params,
        features=asdict(estimator._features.settings),
    )


def restored(
    cls: type[T], path: str | Path, learner: Learner, meta: dict[str, Any], arrays: Arrays
) -> T:
    """What :func:`save` has written of an estimator of ``cls``, around the learner of the file."""
    template = meta["params"]["learner"]
    params = _restored({**meta["params"], "learner": "auto"})
    if template != "auto":
        params["learner"] = _persistence.class_in_file(path, template["class"])(
            **_persistence.restored_params(template["params"])
        )
    estimator: Any = cls(**params)
    estimator.learner_ = learner
    # Parameters may have changed since the features were learned.
    settings: Any = cls(**{**params, **_restored(meta["features"])})
    validate_params(settings, *meta["features"])
    features = TextFeatures.from_arrays(settings_of(settings), arrays)
    if features.n_columns() != learner.n_features_in_:
        raise ValueError(f"{features.n_columns()} features for {learner.n_features_in_} columns")
    estimator._features = features
    found: T = estimator
    return found


def _restored(stored: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a text classifier, with a tuple for JSON's list."""
    params = _persistence.restored_params(stored)
    if isinstance(params["char_ngrams"], list):
        params["char_ngrams"] = tuple(params["char_ngrams"])
    return params
