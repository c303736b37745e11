"""Runs the tasks of a training on a cluster in this process."""

import pickle
from concurrent.futures import Future, ThreadPoolExecutor


class Serial:
    """Stands in for the tasks of a cluster, runs them immediately, and counts them by name.

    Trainings with the same ``results``, a dict, run equal tasks once.
    """

    def __init__(self, results=None):
        self.names, self.results = [], results

    def submit(self, name, function, *arguments, turn=None):
        self.names.append(name)
        if self.results is None:
            return function(*arguments)
        key = pickle.dumps((function, arguments))
        if key not in self.results:
            self.results[key] = function(*arguments)
        return self.results[key]

    def together(self, name, function, *arguments):
        return self.submit(name, function, *arguments)

    def result(self, future, verbose=0):
        return future


def value(of):
    """Return ``of`` with the results of futures in it."""
    if isinstance(of, Future):
        return of.result()
    return type(of)(map(value, of)) if type(of) in (list, tuple) else of


class Threads(Serial):
    """The same in two threads. A task only waits for earlier ones, so none waits forever."""

    def __init__(self, results=None):
        super().__init__(results)
        self.pool = ThreadPoolExecutor(2)

    def submit(self, name, function, *arguments, turn=None):
        run = super().submit
        return self.pool.submit(lambda: run(name, function, *value(arguments)))

    def result(self, future, verbose=0):
        return value(future)


def fitted(
    estimator, parts, classes=None, workers=None, tasks=None, results=None, folder=None, **params
):
    """Return the local estimator that ``estimator``, a class for clusters, trains on ``parts``."""
    tasks, where = tasks or Threads(results), {} if folder is None else {"folder": folder}
    local = estimator._local_class(**params)
    workers = workers or {"here": {"nthreads": 1, "memory_limit": 0}}
    return tasks.result(estimator._tasks(tasks, local, parts, classes, workers, **where))


def in_parts(n, *data):
    """Cut rows, labels and maybe weights into ``n`` partitions."""
    rows = data[0].shape[0] if hasattr(data[0], "shape") else len(data[0])
    bounds = [rows * number // n for number in range(n + 1)]
    cuts = [slice(*bounds[number : number + 2]) for number in range(n)]
    return [(*(each[cut] for each in data), None)[:3] for cut in cuts]
