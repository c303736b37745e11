"""What the estimators ask of a cluster: its client, its workers, results and their errors."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import count
from typing import Any, Self
from uuid import uuid4
from weakref import WeakSet

import dask
from distributed import Client, Future, default_client, progress

#: What the scheduler knows of each worker, by its address.
Workers = dict[str, dict[str, Any]]

logger = logging.getLogger("distributed.xmtree")

#: Share of its memory at which Dask stops a worker from taking further tasks.
_USABLE = 0.8
#: Seconds after which a wait looks whether there was Ctrl-C.
_BEAT = 0.5
#: From which size on Dask warns of data in tasks.
_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


def client_of(given: Any) -> Client:
    """``given``, or the current client."""
    if given is None:
        try:
            return default_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: make one, distributed.Client(...), before this call, or "
                "pass client="
            ) from error
    if not isinstance(given, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(given).__name__}")
    if given.asynchronous:
        raise TypeError("client must not be asynchronous; make it with asynchronous=False")
    return given


def workers_of(client: Client) -> Workers:
    """The workers of a cluster by their addresses; waits for the first."""
    with clear_errors(client, "training"):
        client.wait_for_workers(1, timeout=60)
        workers: Workers = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def threads_of(workers: Workers) -> list[int]:
    """Threads of each worker."""
    return [int(worker["nthreads"]) for worker in workers.values()]


def refuse(needed: Callable[[int], int], what: str, workers: Workers) -> None:
    """A MemoryError where a worker has less memory than the bytes that it needs with so many
    threads for ``what``."""
    for address, worker in workers.items():
        limit, threads = int(worker["memory_limit"] or 0), int(worker["nthreads"])
        if limit and needed(threads) > _USABLE * limit:
            raise MemoryError(
                f"{what} and needs about {needed(threads) / 2**30:.2f} GiB with "
                f"{threads} threads; worker {address} may have {limit / 2**30:.2f} GiB "
                f"(memory_limit), of which {_USABLE:.0%} can be used. Give workers more memory or "
                "fewer threads, or take fewer rows"
            )


def send(client: Client, data: Any, what: str) -> Future:
    """``data`` as a task, which the scheduler keeps: so they survive the loss of all workers, as
    scattered data would not. Workers that need them have them from one another, once each."""
    with clear_errors(client, what), dask.config.set({_LARGE_GRAPH: 1 << 60}):
        return client.submit(_same, data, key=f"xmtree-data-{uuid4().hex}", pure=False)


def _same(data: Any) -> Any:
    return data


class Tasks:
    """The tasks of a training, named for the dashboard, until the last of them is done."""

    def __init__(self, client: Client, prefix: str, what: str) -> None:
        self.client, self.what = client, what
        # No key is ever used twice: neither of a task nor by two trainings.
        self._prefix, self._token, self._numbers = prefix, uuid4().hex, count()
        # What nobody holds any longer is let go on the workers, too.
        self._sent: WeakSet[Future] = WeakSet()

    def submit(self, name: str, function: Any, *arguments: Any, **options: Any) -> Future:
        """A task that makes ``function`` of arguments, among them results of other tasks."""
        self._check()
        key = f"{self._prefix}-{name}-{self._token}-{next(self._numbers)}"
        with clear_errors(self.client, self.what):
            future = self.client.submit(function, *arguments, key=key, pure=False, **options)
        self.hold(future)
        return future

    def hold(self, future: Future) -> None:
        """Lets go of ``future`` where this ends by an error."""
        self._sent.add(future)

    def send(self, data: Any) -> Future:
        """``data``, which tasks are given."""
        future = send(self.client, data, self.what)
        self.hold(future)
        return future

    def result(self, future: Future, verbose: int = 0) -> Any:
        """What the last task makes."""
        with clear_errors(self.client, self.what):
            if verbose:
                # The bar takes the current client.
                with self.client.as_current():
                    progress(future, notebook=False)
            # Not result(timeout=...), which under load can fail by itself.
            is_done = threading.Event()
            future.add_done_callback(lambda _: is_done.set())
            while not future.done():
                self._check()
                is_done.wait(_BEAT)
            return future.result()

    def _check(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt

    def _interrupt(self, *_: object) -> None:
        # It is noted, too: raised in a callback of the garbage collector, of which distributed
        # has one, an exception is lost.
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
            # Not Client.cancel, which stops at an assertion in the scheduler where a task depends
            # on them that nobody wants for itself, and then the client loses all that it has.
            for future in list(self._sent):
                future.release()
        if kind is None:
            self._check()


@contextmanager
def clear_errors(client: Client, what: str) -> Iterator[None]:
    """Says what has happened where Dask's errors are about tasks."""
    try:
        yield
    except Exception as error:
        # Without a scheduler it can be an error of the connection, the client or a task.
        if client.status != "running" or "connection-lost" in str(error):
            raise RuntimeError(
                f"{what} stopped: the connection to the scheduler was lost; start the cluster "
                "anew and call again. Nothing was learned"
            ) from error
        if isinstance(error, CancelledError):
            raise RuntimeError(
                f"{what} stopped: it was cancelled, or all workers with the data are gone ({error})"
                "; persist or send the data again and call again"
            ) from error
        raise
