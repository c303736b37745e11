"""LdSM on a cluster: trees over the workers, then the scorers on one of them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

from distributed import Future

from xmtree import _core, _validation
from xmtree._labels import Labels
from xmtree._ldsm import LdSMClassifier
from xmtree.dask._base import DaskEstimator, snapshot
from xmtree.dask._cluster import Tasks, Workers, own_threads, refuse, threads_of
from xmtree.dask._partitions import Read, Source


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
    >>> X, y, X_test, y_test = load_demo("onet")  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     model = DaskLdSMClassifier(random_state=0).fit(X, y)
    >>> model.to_local().save("model.xmtree")  # doctest: +SKIP
    """

    _local_class = LdSMClassifier
    _prefix = "ldsm"
    _left_out: ClassVar[dict[str, str]] = {
        **DaskEstimator._left_out,
        "warm_start": "all trees are trained at once",
    }

    def _adopt(self, local: Any) -> None:
        local._warn_collapsed(0, stacklevel=5)
        super()._adopt(local)

    def _tasks(
        self, tasks: Tasks, local: Any, data: Source, classes: Any, workers: Workers
    ) -> Future:
        return ldsm_tasks(tasks, local, data.read, classes, workers)


def ldsm_tasks(
    tasks: Tasks,
    local: LdSMClassifier,
    read_data: Callable[[Read], Future],
    classes: Any,
    workers: Workers,
) -> Future:
    """The task that makes a fitted estimator of ``local``, and those that it needs."""
    params = {**local._core_params(), "seed": _validation.seed(local.random_state)}
    prepared = read_data(ReadExamples(local, json.dumps(params), classes, workers))
    return _model(tasks.submit, prepared, params, threads_of(workers))


@dataclass(frozen=True)
class ReadExamples:
    """Prepares examples as ``fit`` of a local estimator does."""

    local: LdSMClassifier
    params_json: str
    classes: Any
    workers: Workers

    def __call__(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[_core.LdsmTraining, Any, Labels]:
        """The examples, the estimator that knows all but the model, and its labels."""
        # A task may be done again, and leaves what it is given as it was.
        local = snapshot(self.local)
        X = local._validated(X, reset=True)
        target = local._target(y, self.classes)
        weights = _validation.weights(sample_weight, X)
        training = _validation.canonical(
            X,
            lambda X: _core.LdsmTraining(
                self.params_json, len(target.classes), X, target.codes, weights
            ),
        )
        n_bytes = training.__sizeof__()
        # The examples, their values as the scorers scale them, which is half as much, and for
        # each thread a copy of those of a node, at the root at least half of them.
        refuse(
            lambda threads: n_bytes * (3 + threads) // 2,
            "each worker holds all examples",
            self.workers,
        )
        return training, local, target.labels


def _model(
    submit: Callable[..., Any], prepared: Any, params: dict[str, Any], threads: list[int]
) -> Any:
    """The task of the fitted local estimator; ``threads`` are those of each worker."""
    training = submit("examples", itemgetter(0), prepared)

    # A tree stays on one worker.
    n_trees = int(params["n_estimators"])
    of_tree = max(1, min(min(threads), sum(threads) // n_trees))
    trees = [
        submit("tree", _core.LdsmTraining.trees, training, [number], n_threads=of_tree)
        for number in range(n_trees)
    ]
    return submit("model", _fitted, prepared, trees, n_threads=None)


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
    model = training.model(trees, own_threads() if n_threads is None else n_threads)
    fitted._model = model.with_labels(labels)
    return fitted
