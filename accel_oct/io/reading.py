"""One function for every file that holds a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.columns import Table, as_categories, infer_kind
from accel_oct.encoding.scales import Scale
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.io.cells import TextColumn
from accel_oct.io.delimited import read_delimited
from accel_oct.io.formats import read_arrow, read_excel
from accel_oct.io.rules import Rules, labels, order_of, plain_labels, typed
from accel_oct.support.files import MAX_BYTES, OpenedFile, opened_file

__all__ = ["FORMATS", "missing_column", "read_table"]

Format = Literal["csv", "tsv", "parquet", "feather", "excel"]
FORMATS = ("csv", "tsv", "parquet", "feather", "excel")
_TABS = (".tsv", ".tab")
#: What else may stand between cells, in a file that seems to have a single column.
_DELIMITERS = (";", "\t", "|", ",", ":", " ")
_MOST_NAMES = 20
#: What a type of `Rules` is among the kinds of columns.
_KINDS = {"number": "numeric", "boolean": "boolean", "datetime": "datetime", "duration": "duration"}
#: And the other way round, for the kinds that text can be read as.
_TYPES = {"numeric": "number", "categorical": "text", "ordered": "text", "datetime": "datetime", "duration": "duration"}


def read_table(
    path: str | Path,
    *,
    target: str | None = None,
    format: Format | None = None,
    delimiter: str | None = None,
    header: bool = True,
    decimal: str = ".",
    encoding: str = "utf-8",
    na_values: Iterable[str] = (),
    dtype: Mapping[str, str] | None = None,
    sheet: str | int | None = None,
    like: Any = None,
    max_bytes: int = MAX_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """Read a CSV, TSV, Parquet, Feather (Arrow) or Excel file, compressed by gzip, bzip2, xz or zstd or not.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    target : str, optional
        The column that holds the classes. It is kept apart: ``X, y = read_table(path, target="class")``.
    format : {"csv", "tsv", "parquet", "feather", "excel"}, optional
        Otherwise the first bytes say whether it is one of the last three, and the ending whether tabs separate cells.
    delimiter : str, optional
        Between the cells of a line: a comma, or a tab in files that end in ``.tsv`` or ``.tab``.
    header : bool
        Whether the first row names the columns; else they are x0, x1, ...
    decimal : str
        The decimal mark of numbers in text files.
    encoding : str
        Of text files.
    na_values : iterable of str
        Texts that mean a missing value, exactly as written. An empty cell always does.
    dtype : mapping from names of columns to types, optional
        "text", "number", "boolean", "datetime", "duration" or ``ordered:low<mid<high``. What does not fit is an error.
    sheet : str or int, optional
        Of an Excel file: its name, or its number from 1; the first by default.
    like : fitted classifier or encoder, optional
        Read the columns that it was fitted on, in their order, and texts as what they were then.
    max_bytes : int
        Of what is read, after decompression.
    progress : callable, optional
        Called with the number of bytes that were read so far, now and then while a text file is read.

    Returns
    -------
    table : Table
        What `OptimalTreeClassifier` and the encoders take; ``table.select(names)`` picks columns.
    labels : array
        Only with `target`.

    Raises
    ------
    InvalidInputError
        In one sentence that names the file, and the row or column that does not fit.

    Notes
    -----
    A column of a text file is numeric if every cell that is not missing is a plain decimal number (``12``, ``-0.5``,
    ``1e-5``), boolean if all are true or false in any case, and else text: ``007`` and ``1_0`` are text, and so are
    ``NA`` and ``none`` unless `na_values` has them. See ``docs/files.md``.
    """
    if format is not None and format not in FORMATS:
        raise InvalidInputError(f"format must be one of {', '.join(FORMATS)}, got {shown(format)}")
    if isinstance(na_values, str):
        na_values = (na_values,)
    rules = Rules(frozenset(str(value).strip() for value in na_values), decimal, dict(dtype or {}), _expected(like))
    table = _read(path, target, rules, format, delimiter, header, encoding, sheet, max_bytes, progress)
    names = getattr(like, "feature_names_in_", None)
    if names is None:
        return table
    wanted = [str(name) for name in names]
    found = table if isinstance(table, Table) else table[0]
    for name in wanted:
        if name not in (found.names or ()):
            where = "standard input" if path == "-" else str(path)
            raise InvalidInputError(missing_column(where, name, found.names or ()))
    return found.select(wanted) if isinstance(table, Table) else (found.select(wanted), table[1])


def _read(
    path: str | Path,
    target: str | None,
    rules: Rules,
    format: Format | None,
    delimiter: str | None,
    header: bool,
    encoding: str,
    sheet: str | int | None,
    max_bytes: int,
    progress: Callable[[int], None] | None,
) -> Table | tuple[Table, NDArray[Any]]:
    with opened_file(path, max_bytes) as source:
        found = format or source.format
        if found == "old excel":
            raise InvalidInputError(f"{source.name} is in the old format of Excel; save it as .xlsx")
        if found in ("parquet", "feather", "excel"):
            if source.format != found:
                raise InvalidInputError(f"{source.name} is no {found} file")
            binary = read_excel(source, sheet, header, max_bytes) if found == "excel" else read_arrow(source, max_bytes)
            table = _ruled(binary, rules)
        else:
            tabs = format == "tsv" or (format is None and source.stem.endswith(_TABS))
            between = delimiter if delimiter is not None else "\t" if tabs else ","
            if between == rules.decimal:
                raise InvalidInputError(f"delimiter and decimal must differ, both are {shown(between)}")
            return _from_text(source, rules, target, between, header, encoding, progress)
    _check_names(rules, table.names or (), source.name)
    return table if target is None else _split(table, target, source.name)


def _expected(like: Any) -> dict[str, str]:
    """By column, what a fitted model needs: what a file looks like does not decide how it is read then."""
    names = getattr(like, "feature_names_in_", None)
    kinds = getattr(getattr(like, "encoder_", like), "kinds_", None)
    if names is None or kinds is None:
        return {}
    return {str(name): _TYPES[kind] for name, kind in zip(names, kinds, strict=True) if kind in _TYPES}


def _from_text(
    source: OpenedFile,
    rules: Rules,
    target: str | None,
    delimiter: str,
    header: bool,
    encoding: str,
    progress: Callable[[int], None] | None,
) -> Table | tuple[Table, NDArray[Any]]:
    columns, n_rows = read_delimited(
        source, delimiter=delimiter, header=header, encoding=encoding, decimal=rules.decimal, progress=progress
    )
    names = [column.name for column in columns]
    _check_names(rules, names, source.name)
    classes = None if target is None else labels(columns.pop(_place(names, target, source.name)), rules)
    found = []
    while columns:  # each is let go of as soon as it has its type
        column = columns.pop(0)
        found.append((column.name, *typed(column, rules)))
    for *_, remark in found:
        if remark is not None:
            warnings.warn(f"{source.name}: {remark}", UserWarning, stacklevel=3)
    table = Table(
        tuple(values for _, values, _, _ in found),
        tuple(name for name, *_ in found),
        n_rows,
        tuple(scale for _, _, scale, _ in found),
    )
    return table if classes is None else (table, classes)


def _ruled(table: Table, rules: Rules) -> Table:
    """The columns of a file that has types, with missing values and types as they were asked for."""
    pairs = [_ruled_column(table, j, rules) for j in range(len(table.columns))]
    return Table(tuple(values for values, _ in pairs), table.names, table.n_rows, tuple(scale for _, scale in pairs))


def _ruled_column(table: Table, index: int, rules: Rules) -> tuple[NDArray[Any], Scale | None]:
    values, scale, name = table.columns[index], table.scale(index), table.name(index)
    wanted = rules.type_of(name)
    is_text = infer_kind(values, name) == "categorical" and all(
        v is None or isinstance(v, str) for v in values.tolist()
    )
    if rules.na_values and is_text:
        values = np.array([None if value in rules.na_values else value for value in values.tolist()], dtype=object)
    expected = name not in rules.dtype and (not is_text or wanted == "text")
    if wanted == "auto" or expected or infer_kind(values, name) == _KINDS.get(wanted):
        return values, scale
    if wanted != "text" and not wanted.startswith("ordered:") and not is_text:
        raise InvalidInputError(f"column {name!r} must hold a {wanted}, but has the type {values.dtype}")
    texts = as_categories(values, name)
    if wanted == "text":
        return texts, None
    cells = ["" if text is None else text.replace("\0", "\N{REPLACEMENT CHARACTER}") for text in texts.tolist()]
    if wanted.startswith("ordered:"):
        order_of(wanted, name)
    ruled, ordered, _ = typed(TextColumn.of(name, cells, rules.decimal), rules)
    return ruled, ordered


def _split(table: Table, target: str, name: str) -> tuple[Table, NDArray[Any]]:
    names = list(table.names or ())
    place = _place(names, target, name)
    return table.select(names[:place] + names[place + 1 :]), plain_labels(table.columns[place])


def _place(names: list[str], target: str, name: str) -> int:
    if target not in names:
        raise InvalidInputError(missing_column(name, target, names))
    return names.index(target)


def missing_column(name: str, wanted: str, names: Sequence[str]) -> str:
    """A sentence about a column that a file does not have, with what may have been meant."""
    text = f"{name} has no column {shown(wanted)}"
    mark = next((mark for mark in _DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if mark is not None:
        return f"{text}: it has a single column, {shown(names[0])}; set the delimiter to {mark!r} if that is meant"
    if near := did_you_mean(wanted, names):
        return text + near
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{text}; it has {', '.join(map(repr, names[:_MOST_NAMES]))}{more}"


def _check_names(rules: Rules, names: Iterable[str], name: str) -> None:
    for column in rules.dtype:
        if column not in names:
            raise InvalidInputError(f"dtype names a column {shown(column)} that {name} does not have")
