"""Pipelines of scikit-learn that end in a learner: their best labels, and their files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from xmtree._base import Learner
from xmtree._persistence import LEARNERS, Arrays, name_in_files, save_around
from xmtree._persistence import check_fitted as check_learned
from xmtree._pipelines import parts
from xmtree._pipelines.checks import check, check_fitted

__all__ = ["pipeline_topk", "save"]


def pipeline_topk(
    pipe: Any, X: Any, k: int = 5, **options: Any
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The ``k`` best labels of each row, by a pipeline whose last step has ``predict_topk``.

    scikit-learn's Pipeline passes on the methods that it knows alone, and ``predict_topk`` is none
    of them. This transforms ``X`` by all steps but the last and asks that one.

    Parameters
    ----------
    pipe : fitted Pipeline
        Or a search, such as GridSearchCV, whose ``best_estimator_`` is one. The last step is a
        learner of xmtree, a TextClassifier, or a pipeline that ends in one.
    X : whatever the first step takes
    k : int, default=5
    **options
        Further arguments of ``predict_topk`` of the last step.

    Returns
    -------
    labels : array of shape (n, k)
        Best first, as ``predict_topk`` of the last step gives them.
    scores : float32 array of shape (n, k)

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> import xmtree
    >>> texts, y = ["red apple", "green pear", "red car"], ["fruit", "fruit", "thing"]
    >>> pipe = make_pipeline(TfidfVectorizer(), xmtree.OAAClassifier(random_state=0)).fit(texts, y)
    >>> labels, scores = xmtree.pipeline_topk(pipe, ["a green apple"], k=2)
    >>> labels.tolist()
    [['fruit', 'thing']]
    """
    learner, rows = last_step(pipe, X)
    labels, scores = learner.predict_topk(rows, k, **options)
    return labels, scores


def last_step(pipe: Any, X: Any) -> tuple[Any, Any]:
    """What ranks labels in a pipeline, a search or an estimator alone, and ``X`` as its rows."""
    while True:
        if hasattr(pipe, "best_estimator_"):
            pipe = pipe.best_estimator_
        elif isinstance(pipe, Pipeline):
            if len(pipe.steps) > 1:
                X = pipe[:-1].transform(X)
            pipe = pipe[-1]
        else:
            break
    if not hasattr(pipe, "predict_topk"):
        raise TypeError(
            f"the last step is a {type(pipe).__name__}, which has no predict_topk; learners of "
            "xmtree have it, and searches after fit with refit=True"
        )
    return pipe, X


def save(estimator: Any, path: str | Path, *, compact: bool = False) -> None:
    """Write an estimator, or a pipeline that ends in one, to a file, for :func:`xmtree.load`.

    Of a pipeline's steps the file holds parameters and fitted attributes as flat arrays and JSON:
    nothing is pickled, and nothing is executed when it is loaded. It can be loaded with another
    version of scikit-learn where that has the same parameters and attributes.

    Parameters
    ----------
    estimator : fitted estimator of xmtree, or Pipeline
        The last step of a pipeline must be a learner of xmtree. The other steps may be
        Binarizer, ColumnTransformer, CountVectorizer, FeatureUnion, FunctionTransformer (without
        a function), HashingVectorizer, MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder,
        OrdinalEncoder, PCA, Pipeline, PolynomialFeatures, PowerTransformer, QuantileTransformer,
        RobustScaler, SimpleImputer, StandardScaler, TfidfTransformer, TfidfVectorizer,
        TruncatedSVD, VarianceThreshold or "passthrough", with parameters that are
        no functions, texts as ``input`` and a run of characters as ``token_pattern``. ``memory``
        and ``n_jobs`` are not stored.
    path : str or Path
    compact : bool, default=False
        Store of the learner what predictions need and no more; see its ``save``.

    Raises
    ------
    TypeError
        If a step or one of its parameters cannot be stored.

    Examples
    --------
    >>> import tempfile, pathlib, xmtree
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> pipe = make_pipeline(StandardScaler(), xmtree.OAAClassifier(random_state=0)).fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.xmtree"
    >>> xmtree.save(pipe, path)
    >>> bool((xmtree.load(path).predict(X) == pipe.predict(X)).all())
    True
    """
    if type(estimator) is not Pipeline:
        if not (hasattr(estimator, "predict_topk") and hasattr(estimator, "save")):
            raise TypeError(
                f"a {type(estimator).__name__} cannot be saved: save takes estimators of xmtree "
                "and pipelines that end in a learner (of a search, its best_estimator_)"
            )
        # Active learners have no compact form.
        estimator.save(path, **({"compact": True} if compact else {}))
        return
    *steps, (name, learner) = estimator.steps
    if not isinstance(learner, Learner):
        raise TypeError(
            f"the last step, {name!r}, is a {type(learner).__name__}; to save a pipeline it must "
            "be a learner of xmtree"
        )
    check_learned(learner)
    _check(estimator)
    arrays: Arrays = {}
    pipeline = {
        "last": name,
        "steps": [[name, parts.stored(step, arrays, f"step {name!r}")] for name, step in steps],
        "params": {
            key: parts.stored(value, arrays, f"{key} of the pipeline")
            for key, value in estimator.get_params(deep=False).items()
            if key not in {"steps", *parts.OF_THE_MACHINE}
        },
    }
    save_around(estimator, learner, path, arrays, compact=compact, pipeline=pipeline)


def _check(pipe: Pipeline) -> None:
    """Raise ValueError or TypeError unless all steps but the last can transform."""
    check(pipe, {})
    for _, step in pipe.steps[:-1]:
        check_fitted(step)


class _PipelineFile:
    """Reads what :func:`save` has written of a pipeline."""

    @staticmethod
    def _from_file(path: Any, learner: Learner, meta: dict[str, Any], arrays: Arrays) -> Pipeline:
        source = parts.Source(str(path), meta["versions"]["scikit-learn"])
        stored = meta["pipeline"]
        steps = [(name, parts.read(step, arrays, source)) for name, step in stored["steps"]]
        params = parts.restored_params(Pipeline, stored["params"], arrays, source)
        found = Pipeline([*steps, (stored["last"], learner)], **params)
        _check(found)
        return found


LEARNERS[name_in_files(Pipeline)] = _PipelineFile
