"""Rows of several folders and files, compressed ones too, with every duplicate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from accel_oct.errors import InvalidInputError
from accel_oct.support.files import as_path, opened_file
from accel_oct_bench.reading import PARTS, ROWS, read_lines, read_results
from accel_oct_bench.rows import FAILED, Row

__all__ = ["Source", "all_rows", "best_rows"]

#: Limits of a compressed file after unpacking: all of it, and one row.
_MOST_BYTES = 1 << 30
_MOST_ROW_BYTES = 1 << 26


@dataclass(frozen=True)
class Source:
    """A folder or file, and its rows in the order in which they were written."""

    path: Path
    rows: tuple[Row, ...]


def all_rows(paths: Iterable[object]) -> list[Source]:
    """Every row of folders, of ``rows.jsonl`` files, and of these compressed as ``.jsonl.gz``.

    Raises
    ------
    InvalidInputError
        When there are no results at a path, or a line is not a row; it names file and line.
    """
    found = []
    for given in paths:
        place = as_path(given, "results")
        if place.suffix == ".gz":
            found.append(Source(place, _unzipped(place)))
            continue
        read_results(place)  # says what is wrong, should there be nothing to read
        files = [place] if place.is_file() else [place / ROWS, *sorted((place / PARTS).glob("*.jsonl"))]
        rows = [row for file in files if file.is_file() for row in read_lines(file).rows]
        found.append(Source(place, tuple(rows)))
    return found


def best_rows(sources: Iterable[Source]) -> list[Row]:
    """One row per run: of several with one key, the last one that is no failure, else the first."""
    chosen: dict[str, Row] = {}
    for source in sources:
        for row in source.rows:
            if row.key not in chosen or row.status not in FAILED:
                chosen[row.key] = row
    return list(chosen.values())


def _unzipped(place: Path) -> tuple[Row, ...]:
    """The rows of a compressed file, unpacked one line at a time."""
    rows: list[Row] = []
    with opened_file(place, _MOST_BYTES) as source:
        while line := source.file.readline(_MOST_ROW_BYTES + 1):
            where = f"{place} line {len(rows) + 1}"
            if len(line) > _MOST_ROW_BYTES:
                raise InvalidInputError(f"{where} has more than the {_MOST_ROW_BYTES} bytes that a row may have")
            rows.append(Row.from_json(line, where))
    return tuple(rows)
