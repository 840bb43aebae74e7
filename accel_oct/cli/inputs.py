"""Options of the command line that say how a table is read."""

from __future__ import annotations

import argparse
from typing import Any

from accel_oct.encoding.columns import Table
from accel_oct.errors import InvalidInputError, shown
from accel_oct.io.reading import FORMATS, read_table

__all__ = ["add_data", "labelled_table", "table"]


def add_data(parser: argparse.ArgumentParser, target_required: bool | None) -> None:
    """The file, and how to read it; `target_required` is None where no target is asked for."""
    parser.add_argument("data", help="CSV, TSV, Parquet, Feather or Excel file; - is standard input")
    parser.add_argument("--format", choices=FORMATS, dest="input_format", help="by content and ending if not given")
    parser.add_argument("--delimiter", "--separator", help="between the cells of a text file")
    parser.add_argument("--no-header", action="store_true", help="the columns are named x0, x1, ...")
    parser.add_argument("--decimal", default=".", help="decimal mark of a text file")
    parser.add_argument("--encoding", default="utf-8", help="of a text file")
    parser.add_argument(
        "--na-values", nargs="+", action="extend", default=[], metavar="TEXT", help="texts that mean a missing value"
    )
    parser.add_argument(
        "--dtype",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=TYPE",
        help="text, number, boolean, datetime, duration or ordered:low<mid<high",
    )
    parser.add_argument("--sheet", help="name or number (from 1) of an Excel sheet")
    if target_required is not None:
        parser.add_argument("--target", required=target_required, help="column that holds the classes")


def table(options: argparse.Namespace, like: Any = None) -> Table:
    """The table without a target; as a model needs it where one is given."""
    found: Table = read_table(options.data, like=like, **_arguments(options))
    return found


def labelled_table(options: argparse.Namespace) -> tuple[Any, Any]:
    """The table and its target."""
    X, y = read_table(options.data, target=options.target, **_arguments(options))
    return X, y


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    dtype = {}
    for entry in options.dtype:
        name, mark, wanted = entry.rpartition("=") if "=ordered:" not in entry else _ordered(entry)
        if not mark:
            raise InvalidInputError(f"--dtype must be NAME=TYPE, got {shown(entry)}")
        dtype[name] = wanted
    return {
        "format": options.input_format,
        "delimiter": options.delimiter,
        "header": not options.no_header,
        "decimal": options.decimal,
        "encoding": options.encoding,
        "na_values": options.na_values,
        "dtype": dtype,
        "sheet": options.sheet,
    }


def _ordered(entry: str) -> tuple[str, str, str]:
    """Categories may hold the mark themselves."""
    name, _, order = entry.partition("=ordered:")
    return name, "=", f"ordered:{order}"
