"""Running a suite: on this machine, on a dask cluster, or a share of it in a job of an array.

Rows that are there already are not made again. A row is written as soon as its run ends, so that an interrupted suite
continues where it stopped.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from accel_oct._version import __version__
from accel_oct.cluster.workers import local_client
from accel_oct.errors import AccelOctError, InvalidInputError, shown
from accel_oct_bench.data import Registry, data_folder
from accel_oct_bench.isolation import Cancelled, Isolation
from accel_oct_bench.machine import machine
from accel_oct_bench.results import ResultsFile, ResultsFolder, read_lines
from accel_oct_bench.rows import FAILED, Row, Task, run_label
from accel_oct_bench.suite import Choice, load_suite, planned, whole

__all__ = ["LOCAL", "Step", "Summary", "array_of", "print_step", "run_suite", "time_text"]

#: Instead of the address of a scheduler: a cluster on this machine.
LOCAL = "local"
#: How often a run is started again when the dask worker that had it is lost.
_RETRIES = 3
#: How long to wait for the answer of a scheduler.
_PATIENCE = "20s"


class Step(NamedTuple):
    """The progress of a suite.

    Attributes
    ----------
    done, total : int
        Runs to make now; rows that were there before are not counted.
    seconds : float
        Since the beginning.
    row : Row or None
        The last row; None at the beginning.
    seconds_left : float or None
        An estimate from the mean time of the rows so far; None until there are two.
    """

    done: int
    total: int
    seconds: float
    row: Row | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class Summary:
    """The result of `run_suite`.

    Attributes
    ----------
    folder : Path
    planned, there, made : int
        Runs that the suite asks for (of this array job), those that were there before, those made now.
    statuses : mapping from status to number
        Of all planned runs.
    missing : tuple of str
        Data sets of the suite that are missing.
    """

    folder: Path
    planned: int
    there: int
    made: int
    statuses: Mapping[str, int]
    missing: tuple[str, ...]


def run_suite(
    suite: Any,
    out: Any,
    *,
    data_dir: Any = None,
    choice: Choice | None = None,
    jobs: int = 1,
    dask: str | None = None,
    array: tuple[int, int] | None = None,
    redo: Sequence[str] = (),
    progress: Callable[[Step], None] | None = None,
) -> Summary:
    """Make the runs of a suite that a folder of results does not have yet.

    Parameters
    ----------
    suite : str or path
        The name of a suite that comes with the package, or the path of a TOML file.
    out : path
        The folder of results; created if it does not exist.
    data_dir : path, optional
        The data folder; by default the one that the variable ACCEL_OCT_DATA names, if any.
    choice : Choice, optional
        Which runs of the suite to make, and limits that differ from it.
    jobs : int
        Number of simultaneous runs on this machine. More than half of the cores make times unreliable.
    dask : str, optional
        The address of a scheduler, or "local" for a cluster of `jobs` workers on this machine.
    array : (index, count), optional
        Make only the runs number index, index + count, ... (from 1), and write them into ``parts/``.
    redo : sequence of str
        Statuses whose runs are made again; "failed" stands for all statuses that say little about the instance.
    progress : callable (Step), optional
        Called at the beginning and after each row.

    Returns
    -------
    Summary

    Raises
    ------
    InvalidInputError
        Naming the argument that is wrong.
    LockedError
        If another process writes to the folder.
    KeyboardInterrupt
        After Ctrl-C, with a sentence that says how to continue; all rows are kept.
    """
    whole(jobs, "jobs", 1)
    again = _statuses(redo)
    chosen = Choice() if choice is None else choice
    loaded = load_suite(suite)
    plan = planned(loaded, Registry(data_folder(data_dir)), chosen)
    tasks = plan.tasks if array is None else _share(plan.tasks, array)
    folder = ResultsFolder(out)
    with folder.rows_file() if array is None else folder.part_file(*array) as file:
        keys = {task.key for task in tasks}
        file.put_aside(lambda row: row.key in keys and row.status in again)
        known = folder.rows()
        todo = [task for task in tasks if task.key not in known]
        if array is None or array[0] == 1:
            folder.describe(
                {
                    "suite": loaded.name,
                    "choice": {name: value for name, value in asdict(chosen).items() if value is not None},
                    "jobs": jobs,
                    "dask": dask,
                    "missing": list(plan.missing),
                    "accel_oct": __version__,
                    "machine": machine(),
                    "started": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            )
        rows = _local_rows(todo, jobs) if dask is None else _dask_rows(todo, dask, jobs)
        made = _written(file, todo, rows, progress or (lambda step: None))
        found = known | {row.key: row for row in made}
    statuses = Counter(found[key].status for key in keys)
    return Summary(folder.path, len(tasks), len(tasks) - len(todo), len(made), dict(statuses), plan.missing)


def array_of(text: str) -> tuple[int, int]:
    """Read ``3/10`` as (3, 10)."""
    index, slash, count = text.partition("/")
    if not slash or not index.isdigit() or not count.isdigit():
        raise InvalidInputError(f"array must be INDEX/COUNT with 1 <= INDEX <= COUNT, got {shown(text)}")
    return int(index), int(count)


def _share(tasks: Sequence[Task], array: tuple[int, int]) -> tuple[Task, ...]:
    index, count = array
    if not 1 <= index <= count:
        raise InvalidInputError(f"array must be INDEX/COUNT with 1 <= INDEX <= COUNT, got {index}/{count}")
    return tuple(tasks[index - 1 :: count])


def _statuses(redo: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for status in redo:
        if status not in ("failed", "time_limit", *FAILED):
            raise InvalidInputError(
                f"redo must be 'failed', 'time_limit' or one of {', '.join(FAILED)}, got {shown(status)}"
            )
        found |= set(FAILED) if status == "failed" else {status}
    return found


def _written(
    file: ResultsFile, todo: Sequence[Task], rows: Generator[Row, None, None], progress: Callable[[Step], None]
) -> list[Row]:
    """Write rows as they come."""
    made: list[Row] = []
    began = first = time.monotonic()
    try:
        progress(Step(0, len(todo), 0.0))
        with closing(rows):
            for row in rows:
                file.append(row)
                made.append(row)
                now = time.monotonic()
                if len(made) == 1:
                    first = now  # the first row includes the start-up
                left = (now - first) / (len(made) - 1) * (len(todo) - len(made)) if len(made) > 1 else None
                progress(Step(len(made), len(todo), now - began, row, left))
    except KeyboardInterrupt:
        asked = {task.key for task in todo}
        there = sum(row.key in asked for row in read_lines(file.path)[0])  # it may have come right after a row
        raise KeyboardInterrupt(
            f"{there} of {len(todo)} runs were made and are in {file.path}; the same command makes the others"
        ) from None
    return made


# ---------------------------------------------------------------- this machine


def _local_rows(tasks: Sequence[Task], jobs: int) -> Generator[Row, None, None]:
    """Run tasks on this machine, `jobs` at a time, and yield rows in the order in which runs end."""
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
    except BaseException as error:  # raised again by the thread that waits for rows
        found.put(error)


# ---------------------------------------------------------------- dask


def _dask_rows(tasks: Sequence[Task], address: str, jobs: int) -> Generator[Row, None, None]:
    """Run tasks on a dask cluster, each in a process of its own on the machine of the worker.

    When a worker is lost, other workers start its runs again.

    Parameters
    ----------
    address : str
        Of the scheduler; `LOCAL` starts a cluster of `jobs` workers on this machine.
    """
    if not tasks:
        return
    try:
        from distributed import as_completed
    except ImportError:
        raise InvalidInputError("dask: dask.distributed is not installed: pip install 'accel-oct[dask]'") from None

    by_key = {f"accel-oct-{task.key}": task for task in tasks}
    with _client(address, jobs) as client:
        futures = [
            client.submit(_run_on_worker, task.to_json(), key=key, retries=_RETRIES, pure=False)
            for key, task in by_key.items()
        ]
        try:
            for future in as_completed(futures):
                task = by_key[future.key]
                try:
                    text = future.result()
                except AccelOctError:
                    raise
                except Exception as error:  # anything that the loss of a worker raises
                    said = " ".join(str(error).split())[:300]
                    outcome = {"status": "crashed", "error": f"{type(error).__name__}: {said}", "wall_seconds": 0.0}
                    yield task.row(versions={}, machine={}, started="", **outcome)
                else:
                    yield Row.from_json(text, f"the answer of a dask worker, {run_label(task.instance, task.method)},")
                future.release()
        finally:
            client.cancel(futures)


@contextmanager
def _client(address: str, jobs: int) -> Iterator[Any]:
    from distributed import Client

    if address == LOCAL:
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
    """Make one run on a dask worker; the process that runs are forked from serves all tasks of the same thread."""
    if not hasattr(_here, "isolation"):
        _here.isolation = Isolation()
    row: Row = _here.isolation.run(Task.from_json(text))
    return row.to_json()


# ---------------------------------------------------------------- progress


def print_step(step: Step, stream: TextIO | None = None) -> None:
    """Print one line per row, with an estimate of the remaining time."""
    row = step.row
    if row is None:
        return
    error = f" ({row.error})" if row.error else ""
    parts = [f"{step.done}/{step.total}", f"{run_label(row.instance, row.method)}, {row.status}"]
    parts[1] += f" {row.wall_seconds:.2f} s{error}"
    if step.seconds_left is not None and step.done < step.total:
        parts.append(f"about {time_text(step.seconds_left)} left")
    print("  ".join(parts), file=stream or sys.stderr, flush=True)


def time_text(seconds: float) -> str:
    """Return a duration such as ``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
