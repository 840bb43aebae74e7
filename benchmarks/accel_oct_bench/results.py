"""Folders and files of results: reading, appending one row at a time, merging the rows of array jobs.

A row is written in one call, with its line break, and is on the disk before the run continues. A writer that is killed
within a row leaves an end without a line break, which is not a row; the next writer removes it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.support.files import as_path, opened_file, replacing
from accel_oct_bench.rows import FAILED, Row

__all__ = [
    "LockedError",
    "ResultsFile",
    "ResultsFolder",
    "Source",
    "all_rows",
    "merge_parts",
    "one_per_run",
    "read_lines",
    "read_results",
]

_logger = logging.getLogger(__name__)

_ROWS, _RUN, _PARTS, _LOCK, _REDONE = "rows.jsonl", "run.json", "parts", "lock", "redone.jsonl"
#: Limits of a compressed file after unpacking: the whole file, and one row.
_MOST_BYTES = 1 << 30
_MOST_ROW_BYTES = 1 << 26


class LockedError(AccelOctError):
    """Another process writes to the folder."""


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Source:
    """A folder or file, and all of its rows in the order in which they were written; those of parts last."""

    path: Path
    rows: tuple[Row, ...]


def read_results(path: Any) -> tuple[Row, ...]:
    """Read a folder of results with its parts, or a file of rows; of several rows of a run, see `one_per_run`."""
    return one_per_run(all_rows([path]))


def all_rows(paths: Iterable[Any]) -> list[Source]:
    """Read every row of folders, of files of rows, and of such files compressed as ``.jsonl.gz``.

    Raises
    ------
    InvalidInputError
        If there are no results at a path, or a line is not a row; it names the file and the line.
    """
    return [_source(as_path(path, "results")) for path in paths]


def one_per_run(sources: Iterable[Source]) -> tuple[Row, ...]:
    """Return one row per run: the last that did not fail, else the first."""
    chosen: dict[str, Row] = {}
    for source in sources:
        for row in source.rows:
            if row.key not in chosen or row.status not in FAILED:
                chosen[row.key] = row
    return tuple(chosen.values())


def _source(place: Path) -> Source:
    if place.suffix == ".gz":
        return Source(place, _unzipped(place))
    if place.is_file():
        files = [place]
    elif place.is_dir():
        files = [file for file in [place / _ROWS, *_part_files(place)] if file.is_file()]
    else:
        raise InvalidInputError(f"there is no folder or file of results {place}")
    if not files:
        raise InvalidInputError(f"the folder {place} holds no results: neither {_ROWS} nor {_PARTS}/*.jsonl")
    return Source(place, tuple(row for file in files for row in read_lines(file)[0]))


def _part_files(folder: Path) -> list[Path]:
    return sorted((folder / _PARTS).glob("*.jsonl"))


def read_lines(file: Path) -> tuple[list[Row], int]:
    """Return the rows of a file, and the number of bytes that they take; what follows is not a whole row."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"cannot read {file}: {error.strerror or error}") from None
    whole = content.rfind(b"\n") + 1
    lines = content[:whole].split(b"\n")[:-1]
    return [Row.from_json(line, f"{file} line {number}") for number, line in enumerate(lines, start=1)], whole


def _unzipped(place: Path) -> tuple[Row, ...]:
    """Return the rows of a compressed file, unpacked one line at a time."""
    rows: list[Row] = []
    with opened_file(place, _MOST_BYTES) as source:
        while line := source.file.readline(_MOST_ROW_BYTES + 1):
            where = f"{place} line {len(rows) + 1}"
            if len(line) > _MOST_ROW_BYTES:
                raise InvalidInputError(f"{where} has more than the {_MOST_ROW_BYTES} bytes that a row may have")
            rows.append(Row.from_json(line, where))
    return tuple(rows)


# ---------------------------------------------------------------- writing


class _Lock:
    """The right to write to a file; the system releases it when its holder ends, however that happens."""

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
        os.close(self._file)


class ResultsFile:
    """A file of rows that only this process appends to.

    Parameters
    ----------
    path : Path
    lock : Path
    what : str
        Its name in errors.

    Attributes
    ----------
    rows : list of Row
    """

    def __init__(self, path: Path, lock: Path, what: str) -> None:
        self.path = path
        self._lock = _Lock(lock, what)
        try:
            self.rows = self._whole_rows()
            self._file = self._opened()
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file for other writers."""
        os.close(self._file)
        self._lock.release()

    def append(self, row: Row) -> None:
        """Write a row to the disk.

        Raises
        ------
        AccelOctError
            If the disk is full or fails. The file then ends with the row before.
        """
        content = row.to_json().encode() + b"\n"
        end = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, content)
            while written < len(content):
                written += os.write(self._file, content[written:])
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):  # if that fails too, the next writer removes the end
                os.ftruncate(self._file, end)
            raise AccelOctError(
                f"cannot write to {self.path}: {error.strerror or error}; all {len(self.rows)} rows before are there: "
                "make room and run the same command again"
            ) from error
        self.rows.append(row)

    def put_aside(self, of: Callable[[Row], bool]) -> int:
        """Move rows to ``redone.jsonl``, so that they are run again; return how many."""
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
            self._file = self._opened()
        self.rows = kept
        return len(moved)

    def _opened(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def _whole_rows(self) -> list[Row]:
        """Return the rows of the file, after removing an end that is not a whole row."""
        if not self.path.exists():
            return []
        rows, whole = read_lines(self.path)
        if self.path.stat().st_size > whole:
            os.truncate(self.path, whole)
            _logger.warning("%s ended in the middle of a row, which was removed", self.path)
        return rows


class ResultsFolder:
    """A folder of results.

    Parameters
    ----------
    path : path
        Created if it does not exist.
    """

    def __init__(self, path: Any) -> None:
        self.path = as_path(path, "out")
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(f"out must be a folder, and {self.path} is a file")
        try:
            (self.path / _PARTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot make the folder {self.path}: {error.strerror or error}") from None

    def rows_file(self) -> ResultsFile:
        """Open the file of all rows for writing; LockedError if another process holds it."""
        return ResultsFile(self.path / _ROWS, self.path / _LOCK, f"the folder {self.path}")

    def part_file(self, index: int, count: int) -> ResultsFile:
        """Open the file of one job of an array for writing."""
        path = self.path / _PARTS / f"{index:05d}-of-{count:05d}.jsonl"
        return ResultsFile(path, path.with_suffix(".lock"), f"part {index} of {count} in the folder {self.path}")

    def describe(self, values: dict[str, Any]) -> None:
        """Write ``run.json``: the suite and the options of the last run."""
        with replacing(self.path / _RUN) as file:
            file.write(json.dumps(values, indent=2) + "\n")

    def rows(self) -> dict[str, Row]:
        """Return all whole rows that are there now, parts included, by key."""
        files = [file for file in [self.path / _ROWS, *_part_files(self.path)] if file.is_file()]
        return {row.key: row for file in files for row in read_lines(file)[0]}


def merge_parts(path: Any) -> tuple[int, int]:
    """Move the rows of array jobs into ``rows.jsonl``, one per run; a row that did not fail replaces one that failed.

    Returns
    -------
    merged, left : int
        The number of rows that were added, and of parts whose job is still running.

    Raises
    ------
    LockedError
        If a run is writing to the folder.
    """
    place = as_path(path)
    if not place.is_dir():
        raise InvalidInputError(f"there is no folder of results {place}")
    merged = left = 0
    with ResultsFolder(place).rows_file() as rows:
        for part in _part_files(place):
            try:
                held = ResultsFile(part, part.with_suffix(".lock"), f"the part {part}")
            except LockedError:
                left += 1
                continue
            with held:
                merged += _added(held, rows)
                part.unlink()
    return merged, left


def _added(part: ResultsFile, rows: ResultsFile) -> int:
    """Append the rows of a part that are new, or better than the row of the same run; return how many."""
    new = one_per_run([Source(part.path, tuple(part.rows))])
    good = {row.key for row in new if row.status not in FAILED}
    rows.put_aside(lambda row: row.key in good and row.status in FAILED)
    present = {row.key for row in rows.rows}
    added = [row for row in new if row.key not in present]
    for row in added:
        rows.append(row)
    return len(added)
