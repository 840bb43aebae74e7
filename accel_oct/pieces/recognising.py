"""Whether what a user passed is to be read in pieces; loads none of the packages that it knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = [
    "PARQUET",
    "is_dask",
    "is_dataset",
    "is_frame",
    "is_in_pieces",
    "is_relation",
    "is_source",
    "is_table_file",
]

#: How names of Parquet files end.
PARQUET = (".parquet", ".parq", ".pq")


def is_dask(X: Any) -> bool:
    """Whether it is a collection of dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_dataset(X: Any) -> bool:
    """Whether it is a dataset of pyarrow."""
    kinds = ((kind.__module__, kind.__name__) for kind in type(X).__mro__)
    return any(module.startswith("pyarrow.") and name == "Dataset" for module, name in kinds)


def is_relation(X: Any) -> bool:
    """Whether it is a relation of DuckDB."""
    return type(X).__name__ == "DuckDBPyRelation"


def is_frame(X: Any) -> bool:
    """Whether it is a data frame of some library: in memory, or a lazy one that can be collected."""
    # Asked of the type: the columns of a lazy frame may take long to find out.
    named = any(hasattr(type(X), name) for name in ("columns", "column_names"))
    return named and not type(X).__module__.startswith("accel_oct") and not is_dask(X) and not is_relation(X)


def is_table_file(X: Any) -> bool:
    """Whether it is the path of a file that is no Parquet: CSV, Excel and the like are read as a whole."""
    if not isinstance(X, str | os.PathLike) or str(X).lower().endswith(PARQUET):
        return False
    try:
        path = Path(X).expanduser()
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) != b"PAR1"
    except (OSError, ValueError, RuntimeError):  # no path, or one that cannot be read: an error names it later
        return False


def is_source(X: Any) -> bool:
    """Whether X alone says that it is to be read piece by piece."""
    if isinstance(X, list | tuple):
        return bool(X) and (all(isinstance(each, str | os.PathLike) for each in X) or all(map(is_frame, X)))
    if isinstance(X, str | os.PathLike) or is_dataset(X) or is_dask(X) or is_relation(X):
        return True
    return callable(X) and not is_frame(X) and not hasattr(X, "__array__")


def is_in_pieces(X: Any, y: Any) -> bool:
    """Whether X and y, as handed to `fit`, `solve` or `frontier`, are to be read piece by piece.

    A lazy frame beside a target in memory is small enough to be read at once. A data frame that holds its target is a
    source of one piece.
    """
    if is_dask(X) or is_relation(X):
        return isinstance(y, str) or is_dask(y)
    return is_source(X) or (isinstance(y, str) and is_frame(X))
