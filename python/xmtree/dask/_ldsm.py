"""LdSM on a cluster: a graph of steps that share nothing but the examples."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

from distributed import Future

from xmtree import _core, _validation
from xmtree._labels import Labels
from xmtree._ldsm import LdSMClassifier
from xmtree.dask._base import DaskEstimator, snapshot
from xmtree.dask._cluster import Tasks, Workers, own_threads, refuse, threads_of
from xmtree.dask._partitions import Source

#: Blocks of rows or labels for each thread: few enough to cost little, and enough for work to be
#: left when one takes long or a worker is slow.
_BLOCKS_PER_THREAD = 4


class DaskLdSMClassifier(DaskEstimator):
    """LdSM on a cluster: trees over the workers, scorers by label.

    The model is that of :class:`xmtree.LdSMClassifier` with the same parameters, data in the same
    order and the same ``random_state``, to the bit. Every worker holds all examples, prepared: so
    this is for training that takes too long on one machine, not for data that do not fit there.

    Training is a graph of Dask tasks that depend on nothing but their arguments: those of a worker
    that is gone are done again elsewhere (a task that several workers have died of is given up,
    see ``distributed.scheduler.allowed-failures``), and long ones that wait go to idle workers.
    Tasks are named by what they do (``ldsm-tree``, ``ldsm-solve`` ...) on the dashboard; logs are
    those of the logger ``distributed.xmtree``.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current client. It is no parameter of scikit-learn's: ``clone`` and pickles
        leave it out.
    **params
        Those of :class:`xmtree.LdSMClassifier`, without ``n_jobs`` (a worker's
        threads are used) and ``warm_start``.
        ``verbose=1`` shows a bar of the tasks that are done.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Where ``X`` was a data frame.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """Train all trees and scorers.

        Parameters
        ----------
        X : Dask array of shape (n, n_features), list of partitions, Dask data frame, or local rows
            Blocks of a Dask array and partitions (``Delayed`` or ``Future``) are arrays or CSR
            matrices. They are put together on one worker, which prepares them; from there they
            reach each other worker once. Local rows are prepared here and sent to each worker.
        y : Dask array, list of partitions, or local labels
            Where ``X`` is, and in the same partitions: one label per row, or label sets as
            indicators (dense or CSR blocks) or lists.
        sample_weight : as 1-D ``y``, optional
            Importances, not negative; 1 by default.
        classes : array of shape (n_classes,), optional
            Every label that may occur; by default those of ``y``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data cannot be used, or there is no client.
        MemoryError
            If the examples do not fit into the memory of each worker; it says what to do.
        RuntimeError
            If the connection to the scheduler is lost, or all workers with the data are gone.
            This estimator is then as it was before.
        KeyboardInterrupt
            On Ctrl-C, after all tasks were cancelled; those that run are let to their end.
        """
        return self._fit(X, y, sample_weight, classes)

    def _adopt(self, local: Any) -> None:
        local._warn_collapsed(0, stacklevel=5)
        super()._adopt(local)

    def _tasks(
        self, tasks: Tasks, local: Any, data: Source, classes: Any, workers: Workers
    ) -> Future:
        return ldsm_tasks(tasks, local, data, classes, workers)


def ldsm_tasks(
    tasks: Tasks, local: LdSMClassifier, data: Source, classes: Any, workers: Workers
) -> Future:
    """The task that makes a fitted estimator of ``local``, and those that it needs."""
    params = {**local._core_params(), "seed": _validation.seed(local.random_state)}
    prepared = data.read(tasks, Read(local, json.dumps(params), classes, workers))
    return Graph(tasks, prepared, params, threads_of(workers)).model()


class Read:
    """Prepares examples as ``fit`` of a local estimator does."""

    def __init__(
        self, local: LdSMClassifier, params_json: str, classes: Any, workers: Workers
    ) -> None:
        self.local, self.params_json, self.classes = local, params_json, classes
        self.workers = workers

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


class Graph:
    """The steps of a training, as tasks."""

    def __init__(
        self, tasks: Tasks, prepared: Any, params: dict[str, Any], threads: list[int]
    ) -> None:
        """``threads``: of each worker."""
        self._task = tasks.submit
        self._plan = _core.LdsmTraining.plan(json.dumps(params))
        self._n_trees = int(params["n_estimators"])
        # A tree stays on one worker.
        self._threads_of_tree = max(1, min(min(threads), sum(threads) // self._n_trees))
        self._n_blocks = _BLOCKS_PER_THREAD * sum(threads)
        self._prepared = prepared
        self._training = self._task("examples", _first, prepared)

    def _step(self, step: str, *arguments: Any, **options: Any) -> Any:
        """A step of the core."""
        return self._task(step.replace("_", "-"), _run, self._training, step, *arguments, **options)

    def _by_block(self, step: str, *arguments: Any, **options: Any) -> list[Any]:
        """A step for each block of rows."""
        n = self._n_blocks
        return [self._step(step, *arguments, block=(i, n), **options) for i in range(n)]

    def model(self) -> Any:
        """The fitted local estimator."""
        trees = self._step("join_trees", self._trees())
        if self._plan is None:
            model = self._step("model", trees)
        else:
            model = self._with_scorers(trees, *self._plan)
        return self._task("model", _fitted, self._prepared, model)

    def _trees(self) -> list[Any]:
        threads = self._threads_of_tree
        return [
            self._task("tree", _run, self._training, "trees", [number], n_threads=threads)
            for number in range(self._n_trees)
        ]

    def _with_scorers(self, trees: Any, n_powers: int, n_costs: int, n_rounds: int) -> Any:
        candidates = self._step("candidates", trees, n_threads=None)
        first = self._by_block("first_negatives", trees)
        negatives = [self._step("join_negatives", first)]
        samples: list[Any] = []
        power: Any = 0
        if n_powers > 1:
            samples = [self._sample(negatives, None, power=number) for number in range(n_powers)]
            scorers = [[pair[0] for pair in sample] for sample in samples]
            power = self._step("best_power", scorers, candidates, n_threads=None)
        solved = self._rest(negatives, None, samples, power, power=power)
        for n_done in range(1, n_rounds + 1):
            index = self._step("index", [scorers for scorers, _ in solved])
            mined = self._by_block("mine", power, index, list(negatives))
            negatives.append(self._step("join_negatives", mined))
            if n_done < n_rounds:
                solved = self._rest(negatives, solved, [], 0, power=power)
        samples, cost = [], 0
        if n_costs > 1:
            samples = [
                self._sample(negatives, solved, power=power, cost=number)
                for number in range(n_costs)
            ]
            scorers = [[pair[0] for pair in sample] for sample in samples]
            cost = self._step("best_cost", power, scorers, candidates, n_threads=None)
        solved = self._rest(negatives, solved, samples, cost, power=power, cost=cost)
        parts = [scorers for scorers, _ in solved]
        return self._step("model", trees, (parts, (power, cost), candidates), n_threads=None)

    def _sample(self, negatives: list[Any], before: Any, **choice: Any) -> list[Any]:
        """Scorers and dual variables of each block, of a sample of the labels."""
        return [
            self._solve(i, negatives, before, "sample", is_sample=True, **choice)
            for i in range(self._n_blocks)
        ]

    def _rest(
        self, negatives: list[Any], before: Any, samples: list[Any], chosen: Any, **choice: Any
    ) -> list[Any]:
        """Those of all labels; of ``samples`` the chosen one is kept."""
        return [
            self._solve(
                i, negatives, before, "solve", [sample[i] for sample in samples], chosen, **choice
            )
            for i in range(self._n_blocks)
        ]

    def _solve(
        self,
        block: int,
        negatives: list[Any],
        before: Any,
        name: str,
        samples: Any = (),
        chosen: Any = 0,
        **choice: Any,
    ) -> tuple[Any, Any]:
        """Scorers and dual variables of a block, in two tasks, as few need both."""
        duals = None if before is None else before[block][1]
        both = self._task(
            name,
            _solve,
            self._training,
            list(negatives),
            (block, self._n_blocks),
            duals,
            list(samples),
            chosen,
            **choice,
        )
        return self._task("scorers", _first, both), self._task("duals", _second, both)


def _first(pair: Any) -> Any:
    return pair[0]


def _second(pair: Any) -> Any:
    return pair[1]


def _run(training: _core.LdsmTraining, step: str, *arguments: Any, **options: Any) -> Any:
    """A step of the core; ``n_threads`` None: on all threads of the worker."""
    if options.get("n_threads", 1) is None:
        options["n_threads"] = own_threads()
    return getattr(training, step)(*arguments, **options)


def _solve(
    training: _core.LdsmTraining,
    negatives: list[Any],
    block: tuple[int, int],
    duals: Any,
    samples: list[Any],
    chosen: int,
    **choice: Any,
) -> Any:
    known = tuple(samples[chosen]) if samples else None
    return training.solve(negatives, block, duals=duals, known=known, **choice)


def _fitted(prepared: tuple[Any, Any, Labels], model: _core.Classifier) -> Any:
    """The estimator of the prepared examples with its model."""
    _, local, labels = prepared
    # Others may be reading that one: workers can be threads of one process.
    fitted = snapshot(local)
    fitted._model = model.with_labels(labels)
    return fitted
