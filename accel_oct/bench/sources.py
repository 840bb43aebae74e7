"""Rows of several folders and files, compressed ones too, with every duplicate."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from accel_oct.bench.reading import PARTS, ROWS, read_lines, read_results
from accel_oct.bench.rows import FAILED, Row
from accel_oct.errors import InvalidInputError
from accel_oct.support.files import as_path

__all__ = ["Source", "all_rows", "best_rows"]


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
    try:
        text = gzip.decompress(place.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"cannot read {place}: {error}") from None
    lines = text.splitlines()
    return tuple(Row.from_json(line, f"{place} line {number}") for number, line in enumerate(lines, start=1))
