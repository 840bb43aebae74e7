"""A folder of results that one run writes to: locked, appended to, never left with half a row.

A row is written in one call, with its line break, and on the disk before the run goes on. A writer that is killed in
the middle leaves an end without a line break; whoever opens the folder next puts it into ``torn.jsonl`` and goes on.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.support.files import as_path, replacing
from accel_oct_bench.reading import PARTS, ROWS, RUN, Lines, read_lines
from accel_oct_bench.rows import FAILED, Row

__all__ = ["LockedError", "ResultsFile", "ResultsFolder", "merge_parts"]

_logger = logging.getLogger(__name__)

_LOCK, _TORN, _REDONE, _MERGED = "lock", "torn.jsonl", "redone.jsonl", "merged"


class LockedError(AccelOctError):
    """Somebody else is writing to the folder."""


class _Lock:
    """The right to write to a file; the system takes it back when its holder dies, however that happens."""

    def __init__(self, path: Path, what: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 200).decode("utf-8", "replace").strip() or "another process"
            os.close(self._file)
            raise LockedError(
                f"{what} is being written to by {holder}; wait for it, end it, or choose another folder"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        with suppress(OSError):
            os.ftruncate(self._file, 0)
        os.close(self._file)


class ResultsFile:
    """A file of rows that this process alone appends to.

    Parameters
    ----------
    path : Path
    lock : Path
    what : str
        What errors call it.
    """

    def __init__(self, path: Path, lock: Path, what: str) -> None:
        self.path = path
        self._lock = _Lock(lock, what)
        try:
            lines = self._without_torn_end()
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except BaseException:
            self._lock.release()
            raise
        self.rows: list[Row] = list(lines.rows)

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others write."""
        os.close(self._file)
        self._lock.release()

    def append(self, row: Row) -> None:
        """Write a row; when this returns, it is on the disk.

        Raises
        ------
        AccelOctError
            When the disk is full or fails. The file then ends with the row before.
        """
        content = row.to_json().encode() + b"\n"
        end = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, content)
            while written < len(content):
                written += os.write(self._file, content[written:])
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):  # where that fails too, the next one to open the file finds a torn end
                os.ftruncate(self._file, end)
            raise AccelOctError(
                f"cannot write to {self.path}: {error.strerror or error}; all {len(self.rows)} rows before are there: "
                "make room and run the same command again"
            ) from error
        self.rows.append(row)

    def put_aside(self, of: Callable[[Row], bool]) -> int:
        """Move rows to ``redone.jsonl``, so that they are run again; returns how many."""
        moved = [row for row in self.rows if of(row)]
        if not moved:
            return 0
        with (self.path.parent / _REDONE).open("a", encoding="utf-8") as aside:
            aside.writelines(row.to_json() + "\n" for row in moved)
            aside.flush()
            os.fsync(aside.fileno())
        kept = [row for row in self.rows if not of(row)]
        os.close(self._file)
        try:
            with replacing(self.path) as file:
                file.writelines(row.to_json() + "\n" for row in kept)
        finally:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.rows = kept
        return len(moved)

    def _without_torn_end(self) -> Lines:
        if not self.path.exists():
            return Lines((), 0)
        lines = read_lines(self.path)
        if lines.torn:
            aside = self.path.parent / _TORN
            with aside.open("ab") as file:
                file.write(lines.torn + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.truncate(self.path, lines.whole_bytes)
            _logger.warning("%s ended in the middle of a row, which was put into %s", self.path, aside)
        return lines


class ResultsFolder:
    """A folder of results.

    Parameters
    ----------
    path : path
        Made if need be.
    """

    def __init__(self, path: Any) -> None:
        self.path = as_path(path, "out")
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(f"out must be a folder, and {self.path} is a file")
        try:
            (self.path / PARTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot make the folder {self.path}: {error.strerror or error}") from None

    def rows_file(self) -> ResultsFile:
        """The file of all rows; nobody else may hold it.

        Raises
        ------
        LockedError
        """
        return ResultsFile(self.path / ROWS, self.path / _LOCK, f"the folder {self.path}")

    def part_file(self, index: int, count: int) -> ResultsFile:
        """The file of one job of an array."""
        name = f"{index:05d}-of-{count:05d}"
        path = self.path / PARTS / f"{name}.jsonl"
        return ResultsFile(path, path.with_suffix(".lock"), f"part {index} of {count} in the folder {self.path}")

    def describe(self, values: dict[str, Any]) -> None:
        """Write ``run.json``: what was run last, and how."""
        with replacing(self.path / RUN) as file:
            file.write(json.dumps(values, indent=2) + "\n")

    def parts(self) -> list[Path]:
        """The files of array jobs that were not merged yet."""
        return sorted((self.path / PARTS).glob("*.jsonl"))

    def rows_of_parts(self) -> list[Row]:
        """Their whole rows, as far as they are now."""
        return [row for part in self.parts() for row in read_lines(part).rows]


def merge_parts(path: Any) -> tuple[int, int]:
    """Move the rows of array jobs into ``rows.jsonl``, one per key.

    A part whose job is still running is left for later. A row that succeeded takes the place of one that failed.

    Returns
    -------
    merged, left : int
        Rows that were added, and parts whose job is running.

    Raises
    ------
    LockedError
        When a run is writing to the folder.
    """
    place = as_path(path)
    if not place.is_dir():
        raise InvalidInputError(f"there is no folder of results {place}")
    folder = ResultsFolder(place)
    merged = left = 0
    with folder.rows_file() as rows:
        for part in folder.parts():
            try:
                held = ResultsFile(part, part.with_suffix(".lock"), f"the part {part}")
            except LockedError:
                left += 1
                continue
            with held:
                merged += _added(held.rows, rows)
                done = part.parent / _MERGED
                done.mkdir(exist_ok=True)
                os.replace(part, _free_name(done / part.name))
    return merged, left


def _added(new: Sequence[Row], rows: ResultsFile) -> int:
    known = {row.key: row for row in rows.rows}
    better = {row.key for row in new if row.status not in FAILED}
    failed = {key for key, row in known.items() if row.status in FAILED}
    rows.put_aside(lambda row: row.key in better & failed)
    present = {row.key for row in rows.rows}
    added = 0
    for row in _first_good(new):
        if row.key not in present:
            rows.append(row)
            present.add(row.key)
            added += 1
    return added


def _first_good(rows: Iterable[Row]) -> list[Row]:
    """One row per key: the first that did not fail, else the first."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.key not in found or (found[row.key].status in FAILED and row.status not in FAILED):
            found[row.key] = row
    return list(found.values())


def _free_name(path: Path) -> Path:
    """A name in the same folder that nothing has."""
    number = 1
    found = path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found
