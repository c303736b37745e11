"""LdSM on a cluster: trees on all workers, then the scorers on one of them."""

import json
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar

from distributed import Future, get_worker

from xmtree import _class_weight, _core, _validation
from xmtree._labels import Labels
from xmtree._ldsm import LdSMClassifier
from xmtree.dask._base import DaskEstimator, snapshot
from xmtree.dask._cluster import Tasks, Workers, refuse
from xmtree.dask._partitions import Source


def ldsm_tasks(
    tasks: Tasks, local: LdSMClassifier, data: Source, classes: Any, workers: Workers
) -> Future:
    """Submit the tasks of a training, and return the one of the fitted estimator."""
    params = {**local._core_params(), "seed": _validation.seed(local.random_state)}
    prepared = data(partial(_read, local, json.dumps(params), classes, workers))
    training = tasks.submit("examples", itemgetter(0), prepared)
    # A tree is trained on one worker.
    threads = [int(worker["nthreads"]) for worker in workers.values()]
    n_trees = int(params["n_estimators"])
    n_threads = max(1, min(min(threads), sum(threads) // n_trees))
    trees = [
        tasks.submit("tree", _core.LdsmTraining.trees, training, [number], n_threads=n_threads)
        for number in range(n_trees)
    ]
    return tasks.submit("model", _fitted, prepared, trees, n_threads=None)


def _read(
    local: LdSMClassifier,
    params_json: str,
    classes: Any,
    workers: Workers,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> tuple[_core.LdsmTraining, Any, Labels]:
    """Prepare examples as ``fit`` of a local estimator does.

    Returns the examples, the estimator without its model, and the labels.
    """
    # A task may run again, so its arguments must stay as they were.
    local = snapshot(local)
    X = local._validated(X, reset=True)
    target = local._target(y, classes)
    weights = _validation.weights(sample_weight, X)
    weights = _class_weight.times(local.class_weight, weights, target)
    arguments = params_json, len(target.classes)
    training = _validation.canonical(
        X, lambda X: _core.LdsmTraining(*arguments, X, target.codes, weights)
    )
    n_bytes = training.__sizeof__()
    # Memory for the examples, their scaled values for the scorers (half as much), and per thread a
    # copy of a node's examples (at the root at least half of them); more for a second model.
    fits, what = isinstance(local.threshold, str), "each worker holds all examples"
    refuse(lambda threads: n_bytes * (3 + 2 * fits + threads) // 2, what, workers)
    if fits:
        second = snapshot(local).set_params(n_jobs=get_worker().state.nthreads, verbose=0)
        second._set_thresholds(json.loads(params_json), X, target, sample_weight)
        local._thresholds = second._thresholds
    return training, local, target.labels


def _fitted(
    prepared: tuple[_core.LdsmTraining, Any, Labels],
    trees: list[_core.Classifier],
    n_threads: int | None = None,
) -> Any:
    """Return the estimator with its model, trained on ``n_threads`` (None: all of the worker)."""
    training, local, labels = prepared
    # Workers can be threads of one process, which may be reading the prepared estimator.
    fitted = snapshot(local)
    model = training.model(trees, n_threads or get_worker().state.nthreads)
    fitted._model = model.with_labels(labels)
    return fitted


class DaskLdSMClassifier(DaskEstimator):
    """LdSM on a cluster: trees on all workers, scorers on one worker.

    The model equals that of :class:`xmtree.LdSMClassifier`. Every worker holds all prepared
    examples: use it if training takes too long on one machine, not if data do not fit there. The
    model that fits thresholds is trained by one worker.

    Training is a graph of Dask tasks that depend only on their arguments. Tasks of a lost worker
    run again elsewhere; a task that has killed several workers is given up (see
    ``distributed.scheduler.allowed-failures``). Idle workers take over waiting tasks.
    The dashboard shows tasks by name (``ldsm-tree``, ``ldsm-model``); logs go to the logger
    ``distributed.xmtree``.

    Parameters
    ----------
    client : distributed.Client, optional
        The current client by default; ``clone`` and pickle leave it out.
    **params
        Parameters of :class:`xmtree.LdSMClassifier` except ``n_jobs`` (a worker's threads are
        used) and ``warm_start``. ``verbose=1`` shows a progress bar of the tasks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), if ``X`` was a data frame

    Examples
    --------
    >>> from distributed import Client
    >>> from xmtree.dask import DaskLdSMClassifier
    >>> from xmtree.datasets import load_demo
    >>> data = load_demo("onet-titles")  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     model = DaskLdSMClassifier(random_state=0).fit(data.X_train, data.y_train)
    >>> model.to_local().save("model.xmtree")  # doctest: +SKIP
    """

    _local_class = LdSMClassifier
    _tasks = staticmethod(ldsm_tasks)
    _left_out: ClassVar[dict[str, str]] = {
        **DaskEstimator._left_out,
        "warm_start": "all trees are trained at once",
    }

    def _adopt(self, local: Any) -> None:
        local._warn_collapsed(0, stacklevel=5)
        super()._adopt(local)
