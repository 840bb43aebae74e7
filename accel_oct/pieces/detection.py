"""Recognition of data in pieces by type, without importing other packages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: How names of Parquet files end.
PARQUET = (".parquet", ".parq", ".pq")


def is_dask(X: Any) -> bool:
    """Return whether X is a dask collection."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_dataset(X: Any) -> bool:
    """Return whether X is a pyarrow dataset."""
    kinds = ((kind.__module__, kind.__name__) for kind in type(X).__mro__)
    return any(module.startswith("pyarrow.") and name == "Dataset" for module, name in kinds)


def is_relation(X: Any) -> bool:
    """Return whether X is a DuckDB relation."""
    return type(X).__name__ == "DuckDBPyRelation"


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame of any library, in memory or lazy."""
    # Checked on the type: the columns of a lazy frame may take long to compute.
    named = any(hasattr(type(X), name) for name in ("columns", "column_names"))
    return named and not type(X).__module__.startswith("accel_oct") and not is_dask(X) and not is_relation(X)


def is_table_file(X: Any) -> bool:
    """Return whether X is the path of a file other than Parquet, such as CSV or Excel, which is read at once."""
    if not isinstance(X, str | os.PathLike) or str(X).lower().endswith(PARQUET):
        return False
    try:
        path = Path(X).expanduser()
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) != b"PAR1"
    except (OSError, ValueError, RuntimeError):  # not a path, or not readable: a later error names it
        return False


def is_source(X: Any) -> bool:
    """Return whether X is read piece by piece for any y."""
    if isinstance(X, list | tuple):
        return bool(X) and (all(isinstance(each, str | os.PathLike) for each in X) or all(map(is_frame, X)))
    if isinstance(X, str | os.PathLike) or is_dataset(X) or is_dask(X) or is_relation(X):
        return True
    return callable(X) and not is_frame(X) and not hasattr(X, "__array__")


def is_in_pieces(X: Any, y: Any) -> bool:
    """Return whether X and y, as passed to `fit`, `solve` or `frontier`, are read piece by piece.

    A lazy frame beside a target in memory is small enough to be read at once. A data frame that holds its target is a
    source of one piece.
    """
    if is_dask(X) or is_relation(X):
        return isinstance(y, str) or is_dask(y)
    return is_source(X) or (isinstance(y, str) and is_frame(X))
