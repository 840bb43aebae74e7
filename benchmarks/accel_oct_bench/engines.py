"""Where runs are made: on this machine, some at a time, or on the workers of a dask cluster.

Every engine is a generator of rows in the order in which runs end. Closing it ends what is running.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from accel_oct.cluster.workers import local_client
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct_bench.isolation import Cancelled, Isolation
from accel_oct_bench.rows import Row
from accel_oct_bench.tasks import Task

__all__ = ["dask_rows", "local_rows"]

#: How often a run is begun again when the worker of dask that had it is lost.
_RETRIES = 3
#: How long to wait for a scheduler to answer.
_PATIENCE = "20s"


def local_rows(tasks: Sequence[Task], jobs: int = 1) -> Iterator[Row]:
    """Run tasks on this machine, `jobs` at a time."""
    todo: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        todo.put(task)
    found: queue.SimpleQueue[Row | BaseException] = queue.SimpleQueue()
    places = [Isolation() for _ in range(min(jobs, len(tasks)))]
    threads = [threading.Thread(target=_serve, args=(place, todo, found)) for place in places]
    for thread in threads:
        thread.start()
    try:
        for _ in tasks:
            row = found.get()
            if isinstance(row, BaseException):
                raise row
            yield row
    finally:
        for place in places:
            place.cancelled.set()
        for thread in threads:
            thread.join()


def _serve(place: Isolation, todo: queue.SimpleQueue[Task], found: queue.SimpleQueue[Row | BaseException]) -> None:
    try:
        with place:
            while not place.cancelled.is_set():
                found.put(place.run(todo.get_nowait()))
    except (queue.Empty, Cancelled):
        return
    except BaseException as error:  # the thread that waits for rows has to hear of it
        found.put(error)


def dask_rows(tasks: Sequence[Task], address: str | None = None, jobs: int = 1) -> Iterator[Row]:
    """Run tasks on a dask cluster, each in a process of its own on the worker's machine.

    A worker that is lost loses its runs, and other workers begin them again. When this process is lost, so are the runs
    that had not ended; whoever runs the suite again makes those.

    Parameters
    ----------
    address : str or None
        Of the scheduler; None starts a cluster of `jobs` workers on this machine.
    """
    try:
        from distributed import as_completed
    except ImportError:
        raise InvalidInputError("dask: dask.distributed is not installed: pip install 'accel-oct[dask]'") from None

    by_key = {task.key: task for task in tasks}
    with _client(address, jobs) as client:
        futures = [
            client.submit(_run_on_worker, task.to_json(), key=f"accel-oct-{key}", retries=_RETRIES, pure=False)
            for key, task in by_key.items()
        ]
        try:
            for future in as_completed(futures):
                task = by_key[future.key.removeprefix("accel-oct-")]
                try:
                    text = future.result()
                except Exception as error:  # whatever a worker, or its loss, raises
                    yield _lost(task, error)
                else:
                    yield Row.from_json(text, f"what a worker of dask sent for {task.label}")
                future.release()
        finally:
            client.cancel(futures)


@contextmanager
def _client(address: str | None, jobs: int) -> Iterator[Any]:
    from distributed import Client

    if address is None:
        with local_client(jobs) as own:
            yield own
        return
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInputError(f"dask: there is no scheduler at {address!r}: {error}") from None
    with client:
        yield client


_here = threading.local()


def _run_on_worker(text: str) -> str:
    """What a worker of dask does: the process that it forks from stays for the next task of the same thread."""
    if not hasattr(_here, "isolation"):
        _here.isolation = Isolation()
    row: Row = _here.isolation.run(Task.from_json(text))
    return row.to_json()


def _lost(task: Task, error: Exception) -> Row:
    if isinstance(error, AccelOctError):
        raise error
    said = " ".join(str(error).split())[:300]
    return Row(
        key=task.key,
        suite=task.suite,
        instance=task.instance,
        method=task.method,
        versions={},
        machine={},
        started="",
        status="crashed",
        wall_seconds=0.0,
        error=f"{type(error).__name__}: {said}",
    )
