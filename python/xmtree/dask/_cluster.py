"""The cluster as estimators see it: client, workers, tasks, results and errors."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, Self
from uuid import uuid4
from weakref import WeakSet

import dask
from distributed import Client, Future, default_client, progress

#: A call in this process, with results of tasks among its arguments.
Here = partial[Any]
#: The scheduler's facts about each worker, by address.
Workers = dict[str, dict[str, Any]]

logger = logging.getLogger("distributed.xmtree")

#: Share of its memory from which a worker takes no further tasks.
_USABLE = 0.8
#: End of messages about too little memory.
_ADVICE = "Give workers more memory or fewer threads, or use fewer rows"
#: Dask's option for the size from which it warns about data in tasks.
_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


def client_of(given: Any) -> Client:
    """Return ``given``, or the current client."""
    if given is None:
        try:
            return default_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client; create one by distributed.Client(...) or pass client="
            ) from error
    if not isinstance(given, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(given).__name__}")
    if given.asynchronous:
        raise TypeError("client must not be asynchronous; create it with asynchronous=False")
    return given


def workers_of(client: Client) -> Workers:
    """Return the workers of a cluster by address, after waiting for the first."""
    with clear_errors(client, "training"):
        workers: Workers = {}
        while not workers:  # the only worker may leave after the wait
            client.wait_for_workers(1, timeout=60)
            workers = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def refuse(needed: Callable[[int], int], what: str, workers: Workers) -> None:
    """Raise a MemoryError, which ``what`` begins, if a worker has fewer than ``needed`` bytes."""
    for address, worker in workers.items():
        limit, threads = int(worker["memory_limit"] or 0), int(worker["nthreads"])
        if limit and needed(threads) > _USABLE * limit:
            raise MemoryError(
                f"{what} and needs about {needed(threads) / 2**30:.2f} GiB with "
                f"{threads} threads; worker {address} has {limit / 2**30:.2f} GiB "
                f"(memory_limit), of which {_USABLE:.0%} can be used. {_ADVICE}"
            )


def send(client: Client, data: Any, what: str) -> Future:
    """Submit ``data`` as a task, which each worker that needs it copies once from another.

    The scheduler keeps tasks, so that they survive the loss of all workers, unlike scattered data.
    """
    with clear_errors(client, what), dask.config.set({_LARGE_GRAPH: 1 << 60}):
        return client.submit(_same, data, key=f"xmtree-data-{uuid4().hex}", pure=False)


def _same(data: Any) -> Any:
    return data


class Tasks:
    """Tasks of a training, named for the dashboard, until the last of them is done."""

    def __init__(self, client: Client, workers: Workers, prefix: str, what: str) -> None:
        self.client, self._workers, self.what = client, list(workers), what
        # Keys are unique among all tasks of all trainings.
        self._prefix, self._token, self._numbers = prefix, uuid4().hex, count()
        # To be released after an error. Weak references let workers release unused results before.
        self.sent: WeakSet[Future] = WeakSet()

    def submit(self, name: str, function: Any, *args: Any, turn: int | None = None) -> Future:
        """Submit a task that calls ``function``; ``args`` may be results of other tasks.

        Workers take tasks with a ``turn`` in turns, others if one is lost or late. Else Dask may
        give two of the last equal tasks to one worker, none to another.
        """
        self._check()
        key = f"{self._prefix}-{name}-{self._token}-{next(self._numbers)}"
        # Tasks have priority in their order.
        options: dict[str, Any] = {"key": key, "pure": False, "fifo_timeout": 0}
        if turn is not None:
            worker = self._workers[turn % len(self._workers)]
            options |= {"workers": worker, "allow_other_workers": True}
        with clear_errors(self.client, self.what):
            future = self.client.submit(function, *args, **options)
        self.sent.add(future)
        return future

    def together(self, name: str, function: Any, *args: Any) -> Here:
        """Return a call for :meth:`result`, so that no worker has to hold all of ``args``."""
        return partial(function, *args)

    def send(self, data: Any) -> Future:
        """Send ``data`` to the cluster, as an argument of tasks."""
        future = send(self.client, data, self.what)
        self.sent.add(future)
        return future

    def result(self, last: Future | Here, verbose: int = 0) -> Any:
        """Wait for a task, or all of a call in this process, and return the result."""
        with clear_errors(self.client, self.what):
            if verbose:
                with self.client.as_current():  # which the progress bar uses
                    progress(list(self.sent), notebook=False)
            return self._value(last, isinstance(last, partial))

    def _value(self, of: Any, is_last: bool) -> Any:
        """Return ``of`` with results of tasks, one by one; if it ``is_last``, release them."""
        if isinstance(of, partial):
            return of.func(*self._value(of.args, is_last))
        if type(of) in (list, tuple):
            return type(of)(self._value(each, is_last) for each in of)
        if not isinstance(of, Future):
            return of
        # result(timeout=...) can fail under load.
        is_done = threading.Event()
        of.add_done_callback(lambda _: is_done.set())
        while not of.done():
            self._check()
            is_done.wait(0.5)  # seconds between checks for Ctrl-C
        result = of.result()
        if is_last:
            of.release()
        return result

    def _check(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt

    def _interrupt(self, *_: object) -> None:
        # The flag is needed as well: distributed has a callback of the garbage collector, in
        # which exceptions are lost.
        self._interrupted = True
        raise KeyboardInterrupt

    def __enter__(self) -> Self:
        self._interrupted, self._handler = False, None
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if kind is not None or self._interrupted:
            # Client.cancel fails an assertion in the scheduler if an unreferenced task depends on
            # these, and the client then loses all its data.
            for future in list(self.sent):
                future.release()
        if kind is None:
            self._check()


@contextmanager
def clear_errors(client: Client, what: str) -> Iterator[None]:
    """Replace Dask's errors about tasks by errors that name the cause."""
    try:
        yield
    except Exception as error:
        # Losing the scheduler can raise an error of the connection, the client or a task.
        if client.status != "running" or "connection-lost" in str(error):
            raise RuntimeError(
                f"{what} stopped: the connection to the scheduler was lost. The estimator is "
                "unchanged; restart the cluster and call again"
            ) from error
        if isinstance(error, MemoryError) and _ADVICE not in str(error):
            # Dask compares the inputs of a task with the memory of workers, too.
            raise MemoryError(f"{error} {_ADVICE}") from error
        if isinstance(error, CancelledError):
            raise RuntimeError(
                f"{what} stopped: it was canceled, or all workers with the data are gone ({error})"
                "; persist or send the data again and call again"
            ) from error
        raise
