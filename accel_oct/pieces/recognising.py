"""Whether what a user passed is to be read in pieces; loads none of the packages that it knows."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["is_dask", "is_dataset", "is_in_pieces", "is_relation", "named_groups"]


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


def is_in_pieces(X: Any, y: Any) -> bool:
    """Whether X and y, as handed to `fit`, `solve` or `frontier`, are to be read piece by piece.

    A lazy frame beside a target in memory is small enough to be read at once.
    """
    if isinstance(X, str | os.PathLike) or is_dataset(X):
        return True
    return (is_dask(X) or is_relation(X)) and (isinstance(y, str) or is_dask(y))


def named_groups(constraints: Any) -> list[str]:
    """Columns whose values constraints tell apart, by name."""
    listed = constraints if isinstance(constraints, list | tuple) else []
    names = [getattr(each, field, None) for each in listed for field in ("group", "given")]
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))
