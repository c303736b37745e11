"""LdSM on a cluster: trees over the workers, then the scorers on one of them."""

import json
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar

from distributed import Future, get_worker

from xmtree import _core, _validation
from xmtree._labels import Labels
from xmtree._ldsm import LdSMClassifier
from xmtree.dask._base import DaskEstimator, snapshot
from xmtree.dask._cluster import Tasks, Workers, refuse, threads_of
from xmtree.dask._partitions import Read


def ldsm_tasks(
    tasks: Tasks,
    local: LdSMClassifier,
    read_data: Callable[[Read], Future],
    classes: Any,
    workers: Workers,
) -> Future:
    """The task that makes a fitted estimator of ``local``, and those that it needs."""
    params = {**local._core_params(), "seed": _validation.seed(local.random_state)}
    prepared = read_data(partial(_read, local, json.dumps(params), classes, workers))
    training = tasks.submit("examples", itemgetter(0), prepared)
    # A tree stays on one worker.
    threads, n_trees = threads_of(workers), int(params["n_estimators"])
    of_tree = max(1, min(min(threads), sum(threads) // n_trees))
    trees = [
        tasks.submit("tree", _core.LdsmTraining.trees, training, [number], n_threads=of_tree)
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
    """Prepares examples as ``fit`` of a local estimator does: the examples, the estimator that
    knows all but the model, and its labels."""
    # A task may run again, so its arguments must stay as they were.
    local = snapshot(local)
    X = local._validated(X, reset=True)
    target = local._target(y, classes)
    weights = _validation.weights(sample_weight, X)
    arguments = params_json, len(target.classes)
    training = _validation.canonical(
        X, lambda X: _core.LdsmTraining(*arguments, X, target.codes, weights)
    )
    n_bytes = training.__sizeof__()
    # The examples, their values as the scorers scale them, which is half as much, and for
    # each thread a copy of those of a node, at the root at least half of them.
    refuse(
        lambda threads: n_bytes * (3 + threads) // 2,
        "each worker holds all examples",
        workers,
    )
    return training, local, target.labels


def _fitted(
    prepared: tuple[_core.LdsmTraining, Any, Labels],
    trees: list[_core.Classifier],
    n_threads: int | None = None,
) -> Any:
    """The estimator of the prepared examples with its model, trained on ``n_threads``.

    None: on all threads of the worker.
    """
    training, local, labels = prepared
    # Others may be reading that one: workers can be threads of one process.
    fitted = snapshot(local)
    model = training.model(trees, n_threads or get_worker().state.nthreads)
    fitted._model = model.with_labels(labels)
    return fitted


class DaskLdSMClassifier(DaskEstimator):
    """LdSM on a cluster: trees over the workers, scorers on one worker.

    The model is that of :class:`xmtree.LdSMClassifier`. Every worker holds all examples, prepared:
    so this is for trees that take too long to train on one machine, not for data that do not fit
    there.

    Training is a graph of Dask tasks that depend on nothing but their arguments: those of a worker
    that is gone are done again elsewhere (a task that several workers have died of is given up,
    see ``distributed.scheduler.allowed-failures``), and long ones that wait go to idle workers.
    Tasks are named by what they do (``ldsm-tree``, ``ldsm-model``) on the dashboard; logs are
    those of the logger ``distributed.xmtree``.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current client; ``clone`` and pickles leave it out.
    **params
        Those of :class:`xmtree.LdSMClassifier`, without ``n_jobs`` (a worker's
        threads are used) and ``warm_start``.
        ``verbose=1`` shows a bar of the tasks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), where ``X`` was a data frame

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
    _prefix = "ldsm"
    _tasks = staticmethod(ldsm_tasks)
    _left_out: ClassVar[dict[str, str]] = {
        **DaskEstimator._left_out,
        "warm_start": "all trees are trained at once",
    }

    def _adopt(self, local: Any) -> None:
        local._warn_collapsed(0, stacklevel=5)
        super()._adopt(local)
