"""What a user passed as data in pieces."""

from __future__ import annotations

import os
from typing import Any

from accel_oct.errors import InvalidInputError, shown
from accel_oct.io.tables import read_table
from accel_oct.pieces.lazy import dask_source, duckdb_source
from accel_oct.pieces.parquet import dataset_source, parquet_source
from accel_oct.pieces.recognising import is_dask, is_dataset, is_frame, is_relation, is_table_file
from accel_oct.pieces.sources import FramePiece, Source, frames_source

__all__ = ["source_of"]


def source_of(source: Any, y: Any = None, sample_weight: Any = None, *, batch_rows: int) -> Source:
    """Find out how to read what was passed; `y` and `sample_weight` are names of columns, or beside a table of dask."""
    if isinstance(source, Source):
        return source
    given = {"target": y, "sample_weight": sample_weight}
    beside = {name: None if isinstance(values, str) else values for name, values in given.items()}
    if is_dask(source):
        return dask_source(source, *beside.values())
    for name, values in beside.items():
        if values is not None:
            raise InvalidInputError(f"{name} must be the name of a column, unless source is a collection of dask")
    if is_dataset(source):
        return dataset_source(source)
    if is_relation(source):
        return duckdb_source(source, batch_rows)
    if isinstance(source, list | tuple) and source:
        paths = [isinstance(each, str | os.PathLike) for each in source]
        if any(paths) and not all(paths):
            raise InvalidInputError("source must be a list of paths or a list of data frames, not of both")
        return parquet_source(source) if paths[0] else frames_source(source)
    if is_table_file(source):
        table = FramePiece(str(source), read_table(source))
        return Source(f"the file {source}", table.columns, lambda: (table,), 1)
    if isinstance(source, str | os.PathLike):
        return parquet_source(source)
    if is_frame(source):
        return frames_source([source])
    if callable(source):
        return frames_source(source)
    raise InvalidInputError(
        "source must be a dask DataFrame or array, a path, a dataset of pyarrow, a relation of DuckDB, a data frame, a "
        f"list of data frames or a function that gives them, got {shown(source)}"
    )
