"""Top-k prediction and files of scikit-learn pipelines that end in a learner."""

from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from xmtree._base import Learner
from xmtree._persistence import LEARNERS, Arrays, name_in_files, save_around
from xmtree._persistence import check_fitted as check_learned
from xmtree._pipelines import parts
from xmtree._pipelines.checks import check, check_fitted
from xmtree._prediction import Ranking

__all__ = ["pipeline_topk", "save"]


def pipeline_topk(pipe: Any, X: Any, k: int = 5, **options: Any) -> Ranking:
    """Return the ``k`` best labels of each row from a pipeline's last step.

    scikit-learn's Pipeline does not pass on ``predict_topk``. This function transforms ``X`` by all
    steps but the last, whose ``predict_topk`` it calls.

    Parameters
    ----------
    pipe : fitted Pipeline
        Also a search such as GridSearchCV whose ``best_estimator_`` is one. The last step must be a
        learner of xmtree, a TextClassifier, or a pipeline that ends in one.
    X : input of the first step
    k : int, default=5
    **options
        Further arguments of ``predict_topk`` of the last step.

    Returns
    -------
    labels : array of shape (n, k)
        Labels from ``predict_topk`` of the last step, best first.
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
    """Return the ranking step of a pipeline, search or estimator, and ``X`` as its rows."""
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
            f"the last step is a {type(pipe).__name__}, which has no predict_topk; it must be a "
            "learner of xmtree, or a search over one fitted with refit=True"
        )
    return pipe, X


def save(estimator: Any, path: str | Path, *, compact: bool = False) -> None:
    """Write an estimator, or a pipeline that ends in one, to a file for :func:`xmtree.load`.

    The file holds parameters and fitted attributes of a pipeline's steps as flat arrays and JSON:
    nothing is pickled, and loading executes nothing. Another version of scikit-learn can load it
    if that has the same parameters and attributes.

    Parameters
    ----------
    estimator : fitted estimator of xmtree, or Pipeline
        The last step of a pipeline must be a learner of xmtree. The other steps may be

        - preprocessing: Binarizer, MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder,
          OrdinalEncoder, PolynomialFeatures, PowerTransformer, QuantileTransformer, RobustScaler,
          SimpleImputer, StandardScaler, VarianceThreshold
        - texts: CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
        - decomposition: PCA, TruncatedSVD
        - composition: ColumnTransformer, FeatureUnion, Pipeline, "passthrough",
          FunctionTransformer (without a function).

        Parameters must not be functions, ``input`` must be texts, and ``token_pattern`` a run of
        characters. ``memory`` and ``n_jobs`` are not stored.
    path : str or Path
    compact : bool, default=False
        Store only the parts of the learner that predictions need; see its ``save``.

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
                f"cannot save a {type(estimator).__name__}: expected an estimator of xmtree or a "
                "pipeline that ends in a learner (for a search pass its best_estimator_)"
            )
        # Active learners have no compact form.
        estimator.save(path, **({"compact": True} if compact else {}))
        return
    *steps, (name, learner) = estimator.steps
    if not isinstance(learner, Learner):
        raise TypeError(
            f"the last step, {name!r}, must be a learner of xmtree to save a pipeline, got a "
            f"{type(learner).__name__}"
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
            if key not in {"steps", *parts.MACHINE_PARAMS}
        },
    }
    save_around(estimator, learner, path, arrays, compact=compact, pipeline=pipeline)


def _check(pipe: Pipeline) -> None:
    """Raise ValueError or TypeError unless all steps but the last can transform."""
    check(pipe, {})
    for _, step in pipe.steps[:-1]:
        check_fitted(step)


class _PipelineFile:
    """Reader of pipelines written by :func:`save`."""

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
