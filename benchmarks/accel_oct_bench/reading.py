"""Rows of results as they lie in a folder or a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_oct.errors import InvalidInputError
from accel_oct.support.files import as_path
from accel_oct_bench.rows import FAILED, Row

__all__ = ["PARTS", "ROWS", "RUN", "Lines", "Results", "read_lines", "read_results"]

ROWS, RUN, PARTS = "rows.jsonl", "run.json", "parts"


@dataclass(frozen=True)
class Lines:
    """The rows of one file.

    Attributes
    ----------
    rows : tuple of Row
    whole_bytes : int
        Up to where the file holds whole rows.
    torn : bytes
        What follows: the beginning of a row whose writer was killed. Empty in a file that is in order.
    """

    rows: tuple[Row, ...]
    whole_bytes: int
    torn: bytes = b""


@dataclass(frozen=True)
class Results:
    """All rows of a folder, one per key.

    Attributes
    ----------
    rows : tuple of Row
        In the order in which they were written; those of parts last.
    doubled : int
        How many further rows there were with a key that was there already.
    torn : tuple of Path
        Files that end in the middle of a row; the next `bench run` sets such ends aside.
    """

    rows: tuple[Row, ...]
    doubled: int = 0
    torn: tuple[Path, ...] = ()


def read_results(path: Any) -> Results:
    """Read a folder of results with its parts, or a single file of rows.

    Parameters
    ----------
    path : path

    Returns
    -------
    Results

    Raises
    ------
    InvalidInputError
        When there are no results, or a line is not a row of this schema; it names file and line.
    """
    place = as_path(path)
    files = _files(place)
    found: dict[str, Row] = {}
    doubled, torn = 0, []
    for file in files:
        lines = read_lines(file)
        for row in lines.rows:
            doubled += row.key in found
            if row.key not in found or (found[row.key].status in FAILED and row.status not in FAILED):
                found[row.key] = row
        if lines.torn:
            torn.append(file)
    return Results(tuple(found.values()), doubled, tuple(torn))


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise InvalidInputError(f"there is no folder or file of results {place}")
    files = [file for file in [place / ROWS, *sorted((place / PARTS).glob("*.jsonl"))] if file.is_file()]
    if not files:
        raise InvalidInputError(f"the folder {place} holds no results: neither {ROWS} nor {PARTS}/*.jsonl")
    return files


def read_lines(file: Path) -> Lines:
    """The rows of one file; an end without a line break is not a row, whatever it holds.

    A row counts from the moment its line break is on the disk, so that what was cut off is never taken for a row.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"cannot read {file}: {error.strerror or error}") from None
    whole = content.rfind(b"\n") + 1
    rows = []
    for number, line in enumerate(content[:whole].split(b"\n")[:-1], start=1):
        rows.append(Row.from_json(line, f"{file} line {number}"))
    return Lines(tuple(rows), whole, content[whole:])
