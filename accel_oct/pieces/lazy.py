"""Collections of dask, and relations of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.batches import check_named
from accel_oct.pieces.recognising import is_dask
from accel_oct.pieces.sources import TARGET, FramePiece, Source

__all__ = ["DelayedPiece", "dask_source", "duckdb_source"]


@dataclass(frozen=True, eq=False)
class DelayedPiece:
    """A partition that is yet to be computed, by whoever reads it: ``with_parts(*values of parts)`` is the piece."""

    name: str
    parts: tuple[Any, ...]

    def with_parts(self, frame: Any, target: Any = None) -> FramePiece:
        """The piece, once its parts are there."""
        return FramePiece(self.name, frame, target)


def dask_source(X: Any, y: Any = None) -> Source:
    """A dask DataFrame or array, with the target as a dask Series or array beside it where it is no column.

    Partitions are computed one by one, twice: where they are costly to make, ``persist()`` them before.
    """
    is_array = hasattr(X, "chunks") and hasattr(X, "rechunk")
    if is_array:
        if X.ndim != 2:
            raise InvalidInputError(f"X must be two-dimensional, got a dask array of {X.ndim} dimension(s)")
        whole = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts = whole.to_delayed().ravel().tolist()
        names = tuple(f"x{j}" for j in range(X.shape[1]))
    elif hasattr(X, "columns"):
        whole, parts = X, X.to_delayed()
        names = check_named(list(X.columns), "X")
    else:
        raise InvalidInputError(f"X must be a dask DataFrame or array, got {shown(X)}")
    targets = None if y is None else _aligned(y, whole, len(parts))
    pieces = tuple(
        DelayedPiece(f"partition {place}", (part,) if targets is None else (part, targets[place]))
        for place, part in enumerate(parts)
    )
    columns = names if y is None else (*names, TARGET)
    return Source(
        "a dask array" if is_array else "a dask DataFrame",
        columns,
        lambda: pieces,
        len(pieces),
        portable=True,
        named=not is_array,
        target=None if y is None else TARGET,
    )


def _aligned(y: Any, X: Any, n_parts: int) -> list[Any]:
    """The parts of y, cut as X is."""
    if not is_dask(y) or getattr(y, "ndim", 1) != 1:
        raise InvalidInputError(f"y must be the name of a column, or a dask Series or array, got {shown(y)}")
    if hasattr(y, "rechunk") and hasattr(X, "chunks") and y.chunks[0] != X.chunks[0]:
        known = not any(np.isnan(size) for size in (*y.chunks[0], *X.chunks[0]))
        y = y.rechunk((X.chunks[0],)) if known and sum(y.chunks[0]) == sum(X.chunks[0]) else y
    parts = y.to_delayed()
    found = parts.ravel().tolist() if hasattr(parts, "ravel") else list(parts)
    if len(found) != n_parts:
        raise InvalidInputError(f"y has {len(found)} partitions, but X has {n_parts}: they must be cut alike")
    return found


def duckdb_source(relation: Any, batch_rows: int) -> Source:
    """A relation of DuckDB, which is run once for each pass; its rows come in batches, never all at once."""
    try:
        import pyarrow as pa
    except ImportError:
        raise InvalidInputError(
            "source: DuckDB hands over its rows through pyarrow, which is not installed: pip install pyarrow"
        ) from None

    def pieces() -> Iterator[FramePiece]:
        with _computing():
            reader = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch
            for place, batch in enumerate(reader(batch_rows)):
                yield FramePiece(f"batch {place}", pa.Table.from_batches([batch]))

    with _computing():
        columns = check_named(list(relation.columns), "source")
    return Source("a relation of DuckDB", columns, pieces, None)


@contextmanager
def _computing() -> Iterator[None]:
    """What DuckDB says of a relation that it cannot compute, as an error of ours."""
    # A relation was made, so it is installed.
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        said = " ".join(str(error).split())
        raise InvalidInputError(f"source: DuckDB cannot compute the relation: {said:.200}") from error
