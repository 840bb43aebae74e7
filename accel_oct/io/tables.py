"""Tables in files: text, Parquet, Feather (Arrow) and Excel."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.scales import Scale
from accel_oct.encoding.tables import Table, frame_columns
from accel_oct.encoding.values import as_categories, infer_kind
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.io.cells import TextColumn
from accel_oct.io.column_types import ColumnTypes, labels, order_of, plain_labels, typed
from accel_oct.io.delimited import read_delimited
from accel_oct.support.files import MAX_BYTES, OpenedFile, opened_file, replacing, wanted_package

_CELL_BYTES = 8
_INDEX = re.compile(r"__index_level_\d+__\Z")


def read_arrow(source: OpenedFile, max_bytes: int) -> Table:
    """Read Parquet or Feather by pyarrow, without the unnamed index that pandas adds."""
    arrow = wanted_package("pyarrow", source.name)
    content = io.BytesIO(source.file.read())
    try:
        if source.format == "parquet":
            file = wanted_package("pyarrow.parquet", source.name).ParquetFile(content)
            groups = (file.metadata.row_group(j).total_byte_size for j in range(file.metadata.num_row_groups))
            _check_size(sum(groups), source.name, max_bytes)
            frame = file.read()
        else:
            frame = wanted_package("pyarrow.feather", source.name).read_table(content)
        frame = frame.drop_columns([name for name in set(frame.column_names) if _INDEX.match(name)])
        _check_size(frame.nbytes, source.name, max_bytes)
        frame.validate(full=True)  # finds invalid text and offsets outside of the file
    except (arrow.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, InvalidInputError):
            raise
        what = "Parquet" if source.format == "parquet" else "Feather"
        raise InvalidInputError(f"{source.name} is no {what} file, damaged or cut off: {_short(error)}") from None
    columns, names, scales = frame_columns(frame)
    return Table(columns, names, len(frame), scales)


def read_excel(source: OpenedFile, sheet: str | int | None, header: bool, max_bytes: int) -> Table:
    """Read a sheet by openpyxl, with the types of its cells; empty cells and #N/A are missing.

    A formula has the value that is stored with it.
    """
    package = wanted_package("openpyxl", source.name)
    content = io.BytesIO(source.file.read())
    try:
        with zipfile.ZipFile(content) as packed:
            _check_size(sum(entry.file_size for entry in packed.infolist()), source.name, max_bytes)
        book = package.load_workbook(content, read_only=True, data_only=True)
        try:
            rows, used = _cells(_sheet(book, sheet, source.name), source.name, max_bytes)
        finally:
            book.close()
    except InvalidInputError:
        raise
    except Exception as error:  # XML, zip and openpyxl have different errors for damaged files
        raise InvalidInputError(f"{source.name} is no Excel file, damaged or cut off: {_short(error)}") from None
    if not rows:
        raise InvalidInputError(f"{source.name} is empty")
    names = [str(rows[0].get(j, "")).strip() for j in used] if header else []
    names = names or [f"x{j}" for j in range(len(used))]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{source.name} names two columns alike")
    rows = rows[1:] if header else rows
    return Table(tuple(_column([row.get(j) for row in rows]) for j in used), tuple(names), len(rows))


def _cells(sheet: Any, name: str, max_bytes: int) -> tuple[list[dict[int, Any]], list[int]]:
    """Return the non-empty cells of each row, and the columns that have any; empty cells take no memory.

    The size that the sheet declares is not used: some programs write too little, and a cell in the last row and column
    makes it 17 billion cells. The limit `max_bytes` is on the cells that openpyxl creates, from column A on, and on the
    cells of the resulting table.
    """
    sheet.reset_dimensions()
    rows: list[dict[int, Any]] = []
    used: set[int] = set()
    made = 0
    for row in sheet.iter_rows():
        if not row:
            continue
        made += len(row)
        found = {j: value for j, cell in enumerate(row) if (value := _cell(cell, name)) is not None}
        if found:
            rows.append(found)
            used.update(found)
            _check_size(_CELL_BYTES * max(made, len(rows) * len(used)), name, max_bytes)
    return rows, sorted(used)


def _sheet(book: Any, sheet: str | int | None, name: str) -> Any:
    if sheet is None:
        return book.worksheets[0]
    if isinstance(sheet, str) and sheet in book.sheetnames:
        return book[sheet]
    place = int(sheet) if isinstance(sheet, int) or (sheet.isascii() and sheet.isdigit()) else 0
    if not 1 <= place <= len(book.worksheets):
        raise InvalidInputError(f"{name} has no sheet {shown(sheet)}; it has {', '.join(map(repr, book.sheetnames))}")
    return book.worksheets[place - 1]


def _cell(cell: Any, name: str) -> Any:
    value = cell.value
    if cell.data_type == "e":
        if value == "#N/A":
            return None
        raise InvalidInputError(f"{name} holds the error {shown(value)} in cell {cell.coordinate}")
    if isinstance(value, str):
        value = value.strip()
    return None if value == "" else value


def _column(cells: list[Any]) -> NDArray[Any]:
    """Return numbers as a numeric array, other cells as objects."""
    kinds = {type(cell) for cell in cells}
    if kinds == {int} and all(abs(cell) < 2**63 for cell in cells):
        return np.array(cells, dtype=np.int64)
    if kinds <= {float, type(None)}:
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    result = np.empty(len(cells), dtype=object)
    result[:] = cells
    return result


def _check_size(size: int, name: str, max_bytes: int) -> None:
    if size > max_bytes:
        raise InvalidInputError(f"{name} has {size} bytes, more than the limit of {max_bytes}")


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."


Format = Literal["csv", "tsv", "parquet", "feather", "excel"]
FORMATS = ("csv", "tsv", "parquet", "feather", "excel")
_TABS = (".tsv", ".tab")
#: Other possible delimiters of a file that seems to have a single column.
_DELIMITERS = (";", "\t", "|", ",", ":", " ")
_MOST_NAMES = 20
#: From types of `ColumnTypes` to kinds of columns.
_KINDS = {"number": "numeric", "boolean": "boolean", "datetime": "datetime", "duration": "duration"}
#: From kinds of columns to the types as which text is read.
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
    """Read a CSV, TSV, Parquet, Feather (Arrow) or Excel file, optionally compressed by gzip, bzip2, xz or zstd.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    target : str, optional
        The column of the classes, returned separately: ``X, y = read_table(path, target="class")``.
    format : {"csv", "tsv", "parquet", "feather", "excel"}, optional
        By default, the first bytes identify the last three formats, and the file extension TSV.
    delimiter : str, optional
        Between the cells of a line: by default a comma, or a tab in files that end in ``.tsv`` or ``.tab``.
    header : bool
        Whether the first row names the columns; otherwise they are x0, x1, ...
    decimal : str
        Decimal mark of numbers in text files.
    encoding : str
        Encoding of text files.
    na_values : iterable of str
        Texts that mean a missing value, exactly as written. An empty cell is always missing.
    dtype : mapping from names of columns to types, optional
        "text", "number", "boolean", "datetime", "duration" or ``ordered:low<mid<high``. Other values are an error.
    sheet : str or int, optional
        Sheet of an Excel file: its name, or its number from 1; by default the first.
    like : fitted classifier or encoder, optional
        Read the columns that it was fitted on, in their order and with their types.
    max_bytes : int
        Limit on the bytes read, after decompression.
    progress : callable, optional
        Called repeatedly with the number of bytes read so far of a text file.

    Returns
    -------
    table : Table
        Input of `OptimalTreeClassifier` and the encoders; ``table.select(names)`` picks columns.
    labels : array
        Only with `target`.

    Raises
    ------
    InvalidInputError
        In one sentence that names the file, and the row or column that does not fit.

    Notes
    -----
    A column of a text file is numeric if every cell that is not missing is a plain decimal number (``12``, ``-0.5``,
    ``1e-5``), boolean if all are true or false in any case, and otherwise text: ``007`` and ``1_0`` are text, and so
    are ``NA`` and ``none`` unless they are in `na_values`. See ``docs/files.md``.
    """
    if format is not None and format not in FORMATS:
        raise InvalidInputError(f"format must be one of {', '.join(FORMATS)}, got {shown(format)}")
    missing = frozenset(str(value).strip() for value in ((na_values,) if isinstance(na_values, str) else na_values))
    types = ColumnTypes(missing, decimal, dict(dtype or {}), _expected(like))
    with opened_file(path, max_bytes) as source:
        found = format or source.format
        if found == "old excel":
            raise InvalidInputError(f"{source.name} is in the old format of Excel; save it as .xlsx")
        if found in ("parquet", "feather", "excel"):
            if source.format != found:
                raise InvalidInputError(f"{source.name} is no {found} file")
            binary = read_excel(source, sheet, header, max_bytes) if found == "excel" else read_arrow(source, max_bytes)
            table, classes = _from_typed_file(binary, types, target, source.name)
        else:
            tabs = format == "tsv" or (format is None and source.stem.endswith(_TABS))
            between = delimiter if delimiter is not None else "\t" if tabs else ","
            if between == decimal:
                raise InvalidInputError(f"delimiter and decimal must differ, both are {shown(between)}")
            columns, n_rows = read_delimited(
                source, delimiter=between, header=header, encoding=encoding, decimal=decimal, progress=progress
            )
            table, classes = _from_text_columns(columns, n_rows, types, target, source.name)
    names = getattr(like, "feature_names_in_", None)
    if names is not None:
        for name in map(str, names):
            if name not in (table.names or ()):
                raise InvalidInputError(missing_column(source.name, name, table.names or ()))
        table = table.select([str(name) for name in names])
    return table if target is None else (table, classes)


def _from_text_columns(
    columns: list[TextColumn], n_rows: int, types: ColumnTypes, target: str | None, name: str
) -> tuple[Table, NDArray[Any] | None]:
    names = [column.name for column in columns]
    _check_names(types, names, name)
    classes = None if target is None else labels(columns.pop(_place(names, target, name)), types)
    found = []
    while columns:  # frees the texts of each column as soon as it has its type
        column = columns.pop(0)
        values, scale, remark = typed(column, types)
        found.append((column.name, values, scale))
        if remark is not None:
            warnings.warn(f"{name}: {remark}", UserWarning, stacklevel=3)
    named, arrays, scales = zip(*found, strict=True) if found else ((), (), ())
    return Table(arrays, named, n_rows, scales), classes


def _from_typed_file(
    table: Table, types: ColumnTypes, target: str | None, name: str
) -> tuple[Table, NDArray[Any] | None]:
    """Apply missing values and types to the table of a file that stores types."""
    pairs = [_typed_column(table, j, types) for j in range(len(table.columns))]
    table = Table(tuple(values for values, _ in pairs), table.names, table.n_rows, tuple(scale for _, scale in pairs))
    names = list(table.names or ())
    _check_names(types, names, name)
    if target is None:
        return table, None
    place = _place(names, target, name)
    return table.select(names[:place] + names[place + 1 :]), plain_labels(table.columns[place])


def _expected(like: Any) -> dict[str, str]:
    """Return the types of the columns that a fitted model needs."""
    names = getattr(like, "feature_names_in_", None)
    kinds = getattr(getattr(like, "encoder_", like), "kinds_", None)
    if names is None or kinds is None:
        return {}
    return {str(name): _TYPES[kind] for name, kind in zip(names, kinds, strict=True) if kind in _TYPES}


def _typed_column(table: Table, index: int, types: ColumnTypes) -> tuple[NDArray[Any], Scale | None]:
    values, scale, name = table.columns[index], table.scale(index), table.name(index)
    wanted = types.type_of(name)
    is_text = infer_kind(values, name) == "categorical" and all(
        v is None or isinstance(v, str) for v in values.tolist()
    )
    if types.na_values and is_text:
        values = np.array([None if value in types.na_values else value for value in values.tolist()], dtype=object)
    expected = name not in types.dtype and (not is_text or wanted == "text")
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
    ruled, ordered, _ = typed(TextColumn.of(name, cells, types.decimal), types)
    return ruled, ordered


def _place(names: list[str], target: str, name: str) -> int:
    if target not in names:
        raise InvalidInputError(missing_column(name, target, names))
    return names.index(target)


def missing_column(name: str, wanted: str, names: Sequence[str]) -> str:
    """Return the message for a column that a file does not have, with a suggestion."""
    text = f"{name} has no column {shown(wanted)}"
    mark = next((mark for mark in _DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if mark is not None:
        return f"{text}: it has a single column, {shown(names[0])}; set the delimiter to {mark!r} if that is right"
    if near := did_you_mean(wanted, names):
        return text + near
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{text}; it has {', '.join(map(repr, names[:_MOST_NAMES]))}{more}"


def _check_names(types: ColumnTypes, names: Iterable[str], name: str) -> None:
    for column in types.dtype:
        if column not in names:
            raise InvalidInputError(f"dtype names a column {shown(column)} that {name} does not have")


_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_PARQUET = (".parquet", ".pq")
_FEATHER = (".feather", ".arrow")


def is_binary(path: str | None) -> bool:
    """Return whether the path ends as a Parquet or Feather file."""
    return path is not None and path.lower().endswith(_PARQUET + _FEATHER)


def write_columns(path: str, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
    """Write a Parquet or Feather file, by the ending of its path; it is replaced as a whole or not at all."""
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
    """Write a header and rows.

    With `escape_formulas`, an apostrophe is added before text that begins with ``= + - @``, a tab or a carriage return,
    so that no spreadsheet reads it as a formula; numbers are unchanged.
    """
    writer = csv.writer(file, lineterminator="\n")
    for row in (names, *rows) if not escape_formulas else map(_escaped, (names, *rows)):
        writer.writerow(row)


def _escaped(row: Sequence[Any]) -> list[Any]:
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell for cell in row]
