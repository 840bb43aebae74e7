"""Running a suite: what is done already is not done again, and what is done is never lost."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from accel_oct._version import __version__
from accel_oct.errors import InvalidInputError, shown
from accel_oct_bench.engines import dask_rows, local_rows
from accel_oct_bench.instances import DATA_VARIABLE
from accel_oct_bench.machine import machine
from accel_oct_bench.plans import Choice, planned
from accel_oct_bench.reading import ROWS, read_lines
from accel_oct_bench.registry import Registry
from accel_oct_bench.rows import FAILED, Row
from accel_oct_bench.store import ResultsFile, ResultsFolder
from accel_oct_bench.suite_files import load_suite, whole
from accel_oct_bench.tasks import Task

__all__ = ["LOCAL", "Step", "Summary", "array_of", "run_suite"]

#: In the place of a scheduler's address: a cluster on this machine.
LOCAL = "local"
_SLURM = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_STEP")


class Step(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Of all runs that are to be made now, those that were there before not counted.
    seconds : float
        Since the beginning.
    row : Row or None
        The one that has just been written; None at the beginning.
    seconds_left : float or None
        If the others take as long as those so far; None until there are two.
    """

    done: int
    total: int
    seconds: float
    row: Row | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class Summary:
    """What `run_suite` did.

    Attributes
    ----------
    folder : Path
    planned, there, made : int
        Runs that the suite asks for (of this array job), those that were there before, those made now.
    statuses : mapping from status to number
        Of all planned runs.
    missing : tuple of str
        Data sets that the suite names and that are not there.
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
        The name of a suite that comes with the library, or the path of a TOML file.
    out : path
        The folder of results; made if need be.
    data_dir : path, optional
        The folder of the data; by default what the variable ACCEL_OCT_DATA names, if anything.
    choice : Choice, optional
        What of the suite to run, and limits that differ from it.
    jobs : int
        Runs at a time on this machine. More than half of the cores make figures of time unreliable.
    dask : str, optional
        The address of a scheduler, or "local" for a cluster of `jobs` workers on this machine.
    array : (index, count), optional
        Make the runs with number index, index + count, ... (from 1) alone, and write them into ``parts/``.
    redo : sequence of str
        Statuses whose runs are made again; "failed" is all that tell nothing of the instance.
    progress : callable (Step), optional
        Called at the beginning and after each row.

    Returns
    -------
    Summary

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used.
    LockedError
        When another process writes to the folder.
    KeyboardInterrupt
        After Ctrl-C, with a sentence that says how to go on; all rows are kept.
    """
    whole(jobs, "jobs", 1)
    again = _statuses(redo)
    chosen = Choice() if choice is None else choice
    loaded = load_suite(suite)
    plan = planned(loaded, Registry(data_dir or os.environ.get(DATA_VARIABLE) or None), chosen)
    tasks = plan.tasks if array is None else _share(plan.tasks, array)
    folder = ResultsFolder(out)
    with folder.rows_file() if array is None else folder.part_file(*array) as file:
        keys = {task.key for task in tasks}
        file.put_aside(lambda row: row.key in keys and row.status in again)
        known = _known(folder, file, array is not None)
        todo = [task for task in tasks if task.key not in known]
        if array is None or array[0] == 1:
            folder.describe(_described(loaded.name, chosen, jobs, dask, plan.missing))
        made = _made(file, todo, _rows(todo, jobs, dask), progress)
        found = known | {row.key: row for row in made}
    statuses = Counter(found[key].status for key in keys)
    return Summary(folder.path, len(tasks), len(tasks) - len(todo), len(made), dict(statuses), plan.missing)


def array_of(text: str) -> tuple[int, int]:
    """``3/10`` as (3, 10); ``slurm`` from the variables that SLURM sets in the jobs of an array."""
    if text == "slurm":
        found = [os.environ.get(name, "") for name in _SLURM]
        if not all(value.isdigit() for value in found[:3]):
            raise InvalidInputError(f"array 'slurm': the variables {', '.join(_SLURM[:3])} are not set")
        number, first, count = map(int, found[:3])
        return (number - first) // int(found[3] or 1) + 1, count
    index, slash, count_text = text.partition("/")
    if not slash or not index.isdigit() or not count_text.isdigit() or not 1 <= int(index) <= int(count_text):
        raise InvalidInputError(f"array must be INDEX/COUNT with 1 <= INDEX <= COUNT, or 'slurm', got {shown(text)}")
    return int(index), int(count_text)


def _share(tasks: Sequence[Task], array: tuple[int, int]) -> tuple[Task, ...]:
    index, count = array
    if not 1 <= whole(index, "array", 1) <= whole(count, "array", 1):
        raise InvalidInputError(f"array must be (index, count) with 1 <= index <= count, got {array}")
    return tuple(tasks[index - 1 :: count])


def _statuses(redo: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for status in redo:
        if status == "failed":
            found |= set(FAILED)
        elif status in (*FAILED, "time_limit"):
            found.add(status)
        else:
            raise InvalidInputError(
                f"redo must be 'failed', 'time_limit' or one of {', '.join(FAILED)}, got {shown(status)}"
            )
    return found


def _known(folder: ResultsFolder, file: ResultsFile, is_part: bool) -> dict[str, Row]:
    """Rows that need not be made: of this file, of parts that were not merged, and for a part those of the folder."""
    found = {row.key: row for row in folder.rows_of_parts()}
    if is_part and (folder.path / ROWS).exists():
        found |= {row.key: row for row in read_lines(folder.path / ROWS).rows}
    return found | {row.key: row for row in file.rows}


def _rows(todo: Sequence[Task], jobs: int, dask: str | None) -> Generator[Row, None, None]:
    if todo and dask is None:
        yield from local_rows(todo, jobs)
    elif todo:
        yield from dask_rows(todo, None if dask == LOCAL else dask, jobs)


def _made(
    file: ResultsFile, todo: Sequence[Task], rows: Generator[Row, None, None], progress: Callable[[Step], None] | None
) -> list[Row]:
    """Write rows as they come."""
    made: list[Row] = []
    began = first = time.monotonic()
    tell = progress or (lambda step: None)
    try:
        tell(Step(0, len(todo), 0.0))
        with closing(rows):
            for row in rows:
                file.append(row)
                made.append(row)
                now = time.monotonic()
                if len(made) == 1:
                    first = now  # what comes before is mostly start-up
                left = (now - first) / (len(made) - 1) * (len(todo) - len(made)) if len(made) > 1 else None
                tell(Step(len(made), len(todo), now - began, row, left))
    except KeyboardInterrupt:
        asked = {task.key for task in todo}
        there = sum(row.key in asked for row in read_lines(file.path).rows)  # it may have come right after a row
        raise KeyboardInterrupt(
            f"{there} of {len(todo)} runs were made and are in {file.path}; the same command makes the others"
        ) from None
    return made


def _described(suite: str, choice: Choice, jobs: int, dask: str | None, missing: Sequence[str]) -> dict[str, Any]:
    return {
        "suite": suite,
        "choice": {name: value for name, value in asdict(choice).items() if value is not None},
        "jobs": jobs,
        "dask": dask,
        "missing": list(missing),
        "accel_oct": __version__,
        "machine": machine(),
        "started": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
