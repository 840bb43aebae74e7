"""Jobs, and the workers that do them: those of a dask cluster, or this thread.

A job is a pure function of the data, so it does not matter which worker does it, or how often.
"""

from __future__ import annotations

import logging
import operator
import signal
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import numpy as np

from accel_oct._version import __version__
from accel_oct.errors import ClusterError, InvalidInputError, shown
from accel_oct.exact.frontier import ProfileSolver, Start
from accel_oct.exact.levels import Profile
from accel_oct.exact.samples import RowSamples
from accel_oct.support.arguments import as_whole
from accel_oct.support.arrays import FloatArray

Literal = tuple[int, int]
"""A feature of the original data and its value."""
Path = tuple[Literal, ...]


@dataclass(frozen=True)
class Job:
    """The profile of the samples that satisfy a path, for trees of some depth.

    Attributes
    ----------
    path : tuple of (feature, value)
        From the root on, in features of the original data.
    whole : bool
        The whole profile; else its bounds before root features are opened.
    """

    path: Path
    depth: int
    whole: bool


@dataclass(frozen=True)
class JobResult:
    """Lower and upper profile in table units; or the start of a board."""

    lower: FloatArray
    upper: FloatArray
    start: Start | None = None


@dataclass(frozen=True)
class JobContext:
    """The data that all jobs of a search share.

    Attributes
    ----------
    version : str
        Of this library; workers with another version refuse.
    """

    data: RowSamples
    memory_limit: int
    version: str


def place_of(data: RowSamples, literal: Literal) -> tuple[int, int]:
    """Return column and side in the reduced data for a literal."""
    column = int(np.flatnonzero(data.feature == literal[0])[0])
    return column, literal[1] ^ int(data.flipped[column])


def literal_of(data: RowSamples, column: int, side: int) -> Literal:
    """Return the literal for a column and side of the reduced data."""
    return int(data.feature[column]), side ^ int(data.flipped[column])


def run_job(task: JobContext, job: Job, version: str) -> JobResult:
    """Do a job on a worker with a version of the library."""
    if version != task.version:
        raise ClusterError(f"a worker has accel_oct {version}, not {task.version}: install the same everywhere")
    data = task.data
    for literal in job.path:
        data = data.at(place_of(data, literal))
    solver = ProfileSolver(memory_limit=task.memory_limit)
    if job.whole:
        found = solver.solve(data, job.depth)
        return JobResult(found.lower, found.upper)
    known = solver.begin(data, job.depth)
    if isinstance(known, Profile):
        return JobResult(known.lower, known.upper)
    return JobResult(known.start.lower, known.start.lower, known.start)


# ---------------------------------------------------------------- workers


CONNECT_SECONDS = 10.0
"""Most seconds for a scheduler to answer."""

PATIENCE = 120.0
"""Most seconds for which a cluster may have no worker."""

_LOOK_EVERY = 2.0
"""Seconds between two counts of the workers."""


class Workers(Protocol):
    """Take jobs and return answers in any order."""

    def free(self) -> int:
        """Return how many more jobs would keep all workers busy."""
        ...

    def submit(self, job: Job) -> None:
        """Submit a job."""
        ...

    def collect(self, seconds: float) -> list[tuple[Job, JobResult]]:
        """Return the answers so far, waiting some seconds for the first. Raises the error of a job."""
        ...


class ThisThread:
    """Does one job after the other, when answers are collected."""

    def __init__(self, task: JobContext) -> None:
        self._task = task
        self._waiting: deque[Job] = deque()

    def free(self) -> int:
        return 0 if self._waiting else 1

    def submit(self, job: Job) -> None:
        self._waiting.append(job)

    def collect(self, seconds: float) -> list[tuple[Job, JobResult]]:
        job = self._waiting.popleft()
        return [(job, run_job(self._task, job, __version__))]


class DaskWorkers:
    """The workers of a dask cluster, as many as there are at a time.

    dask repeats a job on another worker when its worker is lost. The data are the result of a task, not scattered:
    scattered data are lost with the worker that holds them.
    """

    def __init__(self, client: Any, task: JobContext) -> None:
        self._client = client
        self._task = client.submit(_same, task, pure=False)
        self._futures: dict[Job, Any] = {}
        self._done: SimpleQueue[tuple[Job, Any]] = SimpleQueue()
        self._threads = 0
        self._looked = -float("inf")
        self._seen = time.monotonic()

    def free(self) -> int:
        """Return the free slots: per thread one job runs and one waits, so that no worker idles."""
        self._look()
        return 2 * self._threads - len(self._futures)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY:
            return
        self._looked = now
        try:
            self._threads = sum(self._client.nthreads().values())
        except Exception as error:  # of many types
            raise ClusterError(f"the scheduler of the cluster does not answer: {_error_text(error)}") from error
        if self._threads:
            self._seen = now
        elif now - self._seen > PATIENCE:
            raise ClusterError(f"the cluster has had no worker for {PATIENCE:g} s")

    def submit(self, job: Job) -> None:
        future = self._client.submit(_do, self._task, job, pure=False)
        self._futures[job] = future
        future.add_done_callback(lambda done: self._done.put((job, done)))

    def collect(self, seconds: float) -> list[tuple[Job, JobResult]]:
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

    def _answer(self, job: Job, future: Any) -> list[tuple[Job, JobResult]]:
        from distributed import KilledWorker, TimeoutError
        from distributed.client import FutureCancelledError

        try:
            found: JobResult = future.result(timeout=_LOOK_EVERY)
        except TimeoutError:
            if future.status == "error":
                raise
            # The worker was lost with the answer: dask repeats the job.
            self._done.put((job, future))
            return []
        except KilledWorker as error:
            raise ClusterError(
                f"workers ended again and again during the same job, perhaps for want of memory: {_error_text(error)}"
            ) from error
        except FutureCancelledError as error:
            raise ClusterError(f"the cluster has dropped a job: {_error_text(error)}") from error
        del self._futures[job]
        return [(job, found)]

    def close(self) -> None:
        """Cancel the jobs; a running one ends by itself."""
        futures = [*self._futures.values(), self._task]
        self._futures = {}
        # A cluster that is gone needs no message.
        if self._client.status == "running":
            self._client.cancel(futures)


@contextmanager
def workers_of(client: Any, task: JobContext) -> Iterator[Workers]:
    """Yield the workers for a client, an address, a number of processes, or None for this thread."""
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
    """Raise InvalidInputError for an argument that cannot be a client."""
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
    if (as_whole(client) or 0) < 1:
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
            raise InvalidInputError(f"client: there is no scheduler at {client!r}: {_error_text(error)}") from None
        with own:
            yield own
        return
    with local_client(operator.index(client)) as own:
        # Ctrl-C on a terminal goes to all processes; this one handles it and ends the others.
        own.run(_ignore_interrupts)
        yield own


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _same(task: JobContext) -> JobContext:
    return task


def _do(task: JobContext, job: Job) -> JobResult:
    """Do a job on a worker, with the version that is installed there."""
    return run_job(task, job, __version__)


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


# ---------------------------------------------------------------- a cluster on this machine


_LOOPBACK = "127.0.0.1"


@contextmanager
def local_client(n_workers: int) -> Iterator[Any]:
    """Start workers of one thread each, yield a client of theirs, and end them.

    Every socket listens on the loopback interface only, and there is no dashboard. The HTTP server of the scheduler
    takes a free port, like every other socket.
    """
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host=_LOOPBACK,
            dashboard_address=f"{_LOOPBACK}:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.ERROR,  # workers that are closed in the middle of a job would warn of it
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
