"""Files that know the types of their columns: Parquet, Feather (Arrow), Excel."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.columns import Table
from accel_oct.encoding.frames import frame_columns
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.files import OpenedFile, wanted_package

__all__ = ["read_arrow", "read_excel"]

_CELL_BYTES = 8
_INDEX = re.compile(r"__index_level_\d+__\Z")


def read_arrow(source: OpenedFile, max_bytes: int) -> Table:
    """Parquet or Feather by pyarrow; the nameless index that pandas adds is left out."""
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
        frame.validate(full=True)  # else text that is none, or places outside of the file, come to light later
    except (arrow.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, InvalidInputError):
            raise
        what = "Parquet" if source.format == "parquet" else "Feather"
        raise InvalidInputError(f"{source.name} is no {what} file, damaged or cut off: {_short(error)}") from None
    columns, names, scales = frame_columns(frame)
    return Table(columns, names, len(frame), scales)


def read_excel(source: OpenedFile, sheet: str | int | None, header: bool, max_bytes: int) -> Table:
    """A sheet by openpyxl: numbers, booleans, dates and text as the cells have them; empty cells and #N/A are missing.

    Formulas count by the value that was stored with them.
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
    except Exception as error:  # XML, zip and openpyxl each have errors of their own for files that are damaged
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
    """By row the cells that hold something, and the columns that they are in; what is empty takes no memory.

    What the sheet says of its own size is not used: some programs write too little, and a cell in the last row and
    column makes it 17 billion cells. Counted against `max_bytes` are the cells from column A on that openpyxl makes of
    each row, and the cells of the table that the rows become.
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
    """Numbers as numbers; anything else as it is."""
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
        raise InvalidInputError(f"{name} holds {size} bytes, more than the {max_bytes} that are allowed")


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
