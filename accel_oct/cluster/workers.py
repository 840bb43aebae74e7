"""Who does the jobs: the workers of a dask cluster, or this thread."""

from __future__ import annotations

import operator
import signal
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from accel_oct._version import __version__
from accel_oct.cluster.jobs import Found, Job, Task, run_job
from accel_oct.cluster.local import local_client
from accel_oct.errors import ClusterError, InvalidInputError, shown

CONNECT_SECONDS = 10.0
"""That a scheduler may take to answer."""

PATIENCE = 120.0
"""Seconds for which a cluster may be without any worker."""

_LOOK_EVERY = 2.0
"""Seconds between two looks at who is there."""


class Workers(Protocol):
    """Where jobs are sent, and answers come from in any order."""

    def free(self) -> int:
        """How many more jobs would keep all of them at work."""
        ...

    def submit(self, job: Job) -> None:
        """Have a job done."""
        ...

    def collect(self, seconds: float) -> list[tuple[Job, Found]]:
        """Answers that are there; waits for the first one for so many seconds. Raises what a job raised."""
        ...


class ThisThread:
    """One job after the other, when answers are collected."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._waiting: deque[Job] = deque()

    def free(self) -> int:
        return 0 if self._waiting else 1

    def submit(self, job: Job) -> None:
        self._waiting.append(job)

    def collect(self, seconds: float) -> list[tuple[Job, Found]]:
        job = self._waiting.popleft()
        return [(job, run_job(self._task, job, __version__))]


class DaskWorkers:
    """The workers of a dask cluster, as many as there are at a time.

    dask does a job again on another worker when the one that had it is lost. The data are the result of a task, not
    scattered: what is scattered is gone with the worker that holds it.
    """

    def __init__(self, client: Any, task: Task) -> None:
        self._client = client
        self._task = client.submit(_same, task, pure=False)
        self._futures: dict[Job, Any] = {}
        self._done: SimpleQueue[tuple[Job, Any]] = SimpleQueue()
        self._threads = 0
        self._looked = -float("inf")
        self._seen = time.monotonic()

    def free(self) -> int:
        """One job at work and one waiting per thread: a worker that is done must not wait for us."""
        self._look()
        return 2 * self._threads - len(self._futures)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY:
            return
        self._looked = now
        try:
            self._threads = sum(self._client.nthreads().values())
        except Exception as error:  # of many kinds, by what is broken
            raise ClusterError(f"the scheduler of the cluster does not answer: {_said(error)}") from error
        if self._threads:
            self._seen = now
        elif now - self._seen > PATIENCE:
            raise ClusterError(f"the cluster has had no worker for {PATIENCE:g} s")

    def submit(self, job: Job) -> None:
        future = self._client.submit(_do, self._task, job, pure=False)
        self._futures[job] = future
        future.add_done_callback(lambda done: self._done.put((job, done)))

    def collect(self, seconds: float) -> list[tuple[Job, Found]]:
        answers = []
        self._look()
        try:
            item: tuple[Job, Any] | None = self._done.get(timeout=seconds)
            while item is not None:
                answers += self._answer(*item)
                item = None if self._done.empty() else self._done.get()
        except Empty:
            pass
        return answers

    def _answer(self, job: Job, future: Any) -> list[tuple[Job, Found]]:
        from distributed import KilledWorker, TimeoutError
        from distributed.client import FutureCancelledError

        try:
            found: Found = future.result(timeout=_LOOK_EVERY)
        except TimeoutError:
            if future.status == "error":
                raise
            # The worker went away with the answer: dask is at it again.
            self._done.put((job, future))
            return []
        except KilledWorker as error:
            raise ClusterError(
                f"workers ended again and again while they did the same job, perhaps for want of memory: {_said(error)}"
            ) from error
        except FutureCancelledError as error:
            raise ClusterError(f"the cluster has dropped a job: {_said(error)}") from error
        del self._futures[job]
        return [(job, found)]

    def close(self) -> None:
        """Drop what is not needed any more; a job at work runs to its end."""
        futures = [*self._futures.values(), self._task]
        self._futures = {}
        # A cluster that is gone cannot be told, and there is nothing to tell it.
        if self._client.status == "running":
            self._client.cancel(futures)


@contextmanager
def workers_of(client: Any, task: Task) -> Iterator[Workers]:
    """The workers that a user named: a client, an address, a number of processes, or None for this thread."""
    if client is None:
        yield ThisThread(task)
        return
    with _connected(client) as connected:
        workers = DaskWorkers(connected, task)
        try:
            yield workers
        finally:
            workers.close()


def check_client(client: Any) -> None:
    """Refuse what cannot be a client, before anything is computed."""
    if client is None:
        return
    try:
        import distributed
    except ImportError:
        raise InvalidInputError("client: a cluster needs dask: pip install 'accel-oct[dask]'") from None
    if isinstance(client, str):
        return
    if isinstance(client, distributed.Client):
        if client.asynchronous:
            raise InvalidInputError("client must not be asynchronous")
        if client.status != "running":
            raise InvalidInputError(f"client must be connected, and it is {client.status}")
        return
    try:
        number = 0 if isinstance(client, bool) else operator.index(client)
    except TypeError:
        number = 0
    if number < 1:
        raise InvalidInputError(
            f"client must be a dask Client, the address of a scheduler or a number of workers >= 1, got {shown(client)}"
        )


@contextmanager
def _connected(client: Any) -> Iterator[Any]:
    from distributed import Client

    if isinstance(client, Client):
        yield client
        return
    if isinstance(client, str):
        try:
            own = Client(client, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidInputError(f"client: there is no scheduler at {client!r}: {_said(error)}") from None
        with own:
            yield own
        return
    with local_client(operator.index(client)) as own:
        # Ctrl-C on a terminal goes to all processes; this one hears it and ends the others in good order.
        own.run(_ignore_interrupts)
        yield own


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _same(task: Task) -> Task:
    return task


def _do(task: Task, job: Job) -> Found:
    """Runs on a worker, with the version that is installed there."""
    return run_job(task, job, __version__)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
