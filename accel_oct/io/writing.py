"""Tables into files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import IO, Any

from accel_oct.support.files import replacing, wanted_package

__all__ = ["is_binary", "write_columns", "write_csv"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_PARQUET = (".parquet", ".pq")
_FEATHER = (".feather", ".arrow")


def is_binary(path: str | None) -> bool:
    """Whether the ending of a path asks for Parquet or Feather."""
    return path is not None and path.lower().endswith(_PARQUET + _FEATHER)


def write_columns(path: str, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
    """Write a Parquet or a Feather file, by its ending; the file is replaced as a whole or not at all."""
    arrow = wanted_package("pyarrow", path)
    table = arrow.table([arrow.array(column) for column in columns], names=list(names))
    with replacing(path, binary=True) as file:
        if path.lower().endswith(_PARQUET):
            wanted_package("pyarrow.parquet", path).write_table(table, file)
        else:
            wanted_package("pyarrow.feather", path).write_feather(table, file)


def write_csv(
    file: IO[str], names: Sequence[str], rows: Iterable[Sequence[Any]], *, escape_formulas: bool = False
) -> None:
    """A header and rows.

    With `escape_formulas`, text that begins with ``= + - @``, a tab or a carriage return gets an apostrophe in front,
    so that no spreadsheet takes it for a formula; numbers stay numbers.
    """
    writer = csv.writer(file, lineterminator="\n")
    for row in (names, *rows) if not escape_formulas else map(_escaped, (names, *rows)):
        writer.writerow(row)


def _escaped(row: Sequence[Any]) -> list[Any]:
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell for cell in row]
