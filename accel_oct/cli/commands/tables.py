"""Input tables of commands."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.cli.options import DisplayOptions, TableOptions, TargetOptions
from accel_oct.encoding.tables import Table, table_fingerprint
from accel_oct.errors import InvalidInputError, shown
from accel_oct.io.tables import missing_column, read_table

#: Seconds before the first progress line of a file, and between lines.
_FIRST_LINE, _PAUSE = 1.0, 10.0


@dataclass(frozen=True, eq=False)
class Training:
    """A table with the classes and optional weights of its rows."""

    X: Table
    y: NDArray[Any]
    weights: NDArray[np.float64] | None

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the table, independent of the file format."""
        return table_fingerprint(self.X, self.y, self.weights)


def read_features(options: TableOptions, display: DisplayOptions, like: Any = None) -> Table:
    """Read the table without a target; with the columns of a model if one is given."""
    path = _path(options)
    found: Table = read_table(path, like=like, progress=_progress(path, display), **_arguments(options))
    return found


def read_training(options: TableOptions, columns: TargetOptions, display: DisplayOptions, like: Any = None) -> Training:
    """Read the table, its target and its weights."""
    path = _path(options)
    if columns.target is None:
        raise InvalidInputError("no target was given: name the column of the classes with --target")
    where = _name(path)
    more = [columns.sample_weight] if columns.sample_weight is not None else []
    arguments = _arguments(options) | {"progress": _progress(path, display)}
    X, y = read_table(path, target=columns.target, like=with_columns(like, more), **arguments)
    weights, names = None, list(X.names or ())
    if more:
        if more[0] not in names:
            raise InvalidInputError(f"--sample-weight: {missing_column(where, more[0], names)}")
        weights = _weights(X.columns[names.index(more[0])], more[0])
        X = X.select([name for name in names if name != more[0]])
    if not len(y):
        raise InvalidInputError(f"{where} has no rows below its header")
    if not X.columns:
        raise InvalidInputError(f"{where} has no column besides {shown(columns.target)}, which is the target")
    return Training(X, y, weights)


class _ReadingLines:
    """Progress lines on standard error for a file that is slow to read; the first after a second."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin = time.monotonic()
        self._due = _FIRST_LINE

    def __call__(self, n_bytes: int) -> None:
        seconds = time.monotonic() - self._begin
        if seconds >= self._due:
            self._due = seconds + _PAUSE
            print(f"reading {self._name}: {n_bytes / 1e6:.0f} MB in {seconds:.0f} s", file=sys.stderr, flush=True)


def _progress(path: str, display: DisplayOptions) -> _ReadingLines | None:
    return None if display.quiet else _ReadingLines(_name(path))


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _path(options: TableOptions) -> str:
    if options.data is None:
        raise InvalidInputError("no table was given: name a file, or - for standard input")
    return options.data


@dataclass(frozen=True)
class _Like:
    """Argument `like` of `read_table`: a model with more columns."""

    feature_names_in_: list[str]
    kinds_: tuple[str, ...]


def with_columns(like: Any, more: list[str]) -> Any:
    """Return the argument `like` of `read_table` for a model, with more columns of numbers."""
    names = getattr(like, "feature_names_in_", None)
    if names is None or not more:
        return like
    own = [str(name) for name in names]
    added = [name for name in more if name not in own]
    kinds = tuple(getattr(like, "encoder_", like).kinds_)
    return _Like([*own, *added], (*kinds, *("numeric" for _ in added)))


def _weights(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values.astype(np.float64))
    except (TypeError, ValueError):
        raise InvalidInputError(f"--sample-weight: column {shown(name)} must hold numbers") from None


def _arguments(options: TableOptions) -> dict[str, Any]:
    dtype = {}
    for entry in options.dtype or []:
        name, mark, wanted = entry.rpartition("=") if "=ordered:" not in entry else _ordered(entry)
        if not mark:
            raise InvalidInputError(f"--dtype must be NAME=TYPE, got {shown(entry)}")
        dtype[name] = wanted
    return {
        "format": options.input_format,
        "delimiter": options.delimiter,
        "header": options.header is not False,
        "decimal": options.decimal if options.decimal is not None else ".",
        "encoding": options.text_encoding or "utf-8",
        "na_values": options.na_values or [],
        "dtype": dtype,
        "sheet": options.sheet,
    }


def _ordered(entry: str) -> tuple[str, str, str]:
    """Split an entry; categories may contain the separator."""
    name, _, order = entry.partition("=ordered:")
    return name, "=", f"ordered:{order}"
