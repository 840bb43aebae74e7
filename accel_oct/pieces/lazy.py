"""Collections of dask, and relations of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.batches import check_named
from accel_oct.pieces.recognising import is_dask
from accel_oct.pieces.sources import ARGUMENTS, TARGET, WEIGHT, FramePiece, Source

__all__ = ["DelayedPiece", "dask_source", "duckdb_source"]


@dataclass(frozen=True, eq=False)
class DelayedPiece:
    """A partition that is yet to be computed, by whoever reads it: ``with_parts(*values of parts)`` is the piece.

    Attributes
    ----------
    name : str
    parts : tuple of Delayed
        One for each collection, that of the table first; or one for all, whose value is their tuple.
    beside : tuple of str
        Of `BESIDE`, what the other collections are.
    """

    name: str
    parts: tuple[Any, ...]
    beside: tuple[str, ...] = ()

    def with_parts(self, *values: Any) -> FramePiece:
        """The piece, once its parts are there."""
        frame, *more = values[0] if isinstance(values[0], tuple) else values
        return FramePiece(self.name, frame, dict(zip(self.beside, more, strict=True)))


def dask_source(X: Any, y: Any = None, sample_weight: Any = None) -> Source:
    """A dask DataFrame or array, with target and weights as a dask Series or array beside it where they are no columns.

    Partitions are computed one by one, twice: where they are costly to make, ``persist()`` them before.
    """
    is_array = _is_array(X)
    if is_array:
        if X.ndim != 2:
            raise InvalidInputError(f"X must be two-dimensional, got a dask array of {X.ndim} dimension(s)")
        names = tuple(f"x{j}" for j in range(X.shape[1]))
    elif hasattr(X, "columns"):
        names = check_named(list(X.columns), "X")
    else:
        raise InvalidInputError(f"X must be a dask DataFrame or array, got {shown(X)}")
    given = {TARGET: _one_column(y, "y"), WEIGHT: _one_column(sample_weight, "sample_weight")}
    more = {name: collection for name, collection in given.items() if collection is not None}
    pieces = tuple(
        DelayedPiece(f"partition {place}", parts, tuple(more)) for place, parts in enumerate(_partitions(X, more))
    )
    return Source(
        "a dask array" if is_array else "a dask DataFrame",
        (*names, *more),
        lambda: pieces,
        len(pieces),
        portable=True,
        named=not is_array,
        target=TARGET if TARGET in more else None,
        weight=WEIGHT if WEIGHT in more else None,
    )


def _is_array(collection: Any) -> bool:
    return hasattr(collection, "chunks") and hasattr(collection, "rechunk")


def _one_column(values: Any, argument: str) -> Any:
    if values is None:
        return None
    flat = is_dask(values) and (getattr(values, "ndim", 0) == 1 or getattr(values, "shape", ())[1:] == (1,))
    if not flat or not (_is_array(values) or hasattr(values, "map_partitions")):
        raise InvalidInputError(
            f"{argument} must be the name of a column, or a dask Series or array as X is of dask, got {shown(values)}"
        )
    return values


def _partitions(X: Any, more: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The parts of X and of what is beside it, row by row the same in each.

    Frames are joined before anything is optimised: dask fuses small reads by the columns that are asked for, so two
    collections of one frame would be cut in two ways if each were optimised alone. Reads are not fused here: dask would
    fuse those of two `read_parquet` in two ways also inside of one expression.
    """
    collections, names = [X, *more.values()], [ARGUMENTS[name] for name in more]
    if not any(map(_is_array, collections)) and len({each.npartitions for each in collections}) == 1:
        return [(part,) for part in _joined(X, *more.values()).to_delayed(optimize_graph=False)]
    parts = [_parts(each) for each in collections]
    sizes = [_sizes(each) for each in collections]
    known = {size for size in sizes if size is not None}
    if len({len(each) for each in parts}) > 1 or len(known) > 1:
        parts = _cut_alike(parts, sizes, ["X", *names])
    return list(zip(*parts, strict=True))


def _joined(X: Any, *more: Any) -> Any:
    """A collection whose partitions are tuples of those of the frames; only columns in use are read."""
    options = {"meta": X._meta, "enforce_metadata": False, "align_dataframes": False}
    return X.map_partitions(_tuple, *more, **options).simplify()


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _parts(collection: Any) -> list[Any]:
    if not _is_array(collection):
        return list(collection.simplify().to_delayed(optimize_graph=False))  # as in `_partitions`, reads are not fused
    whole = collection.rechunk({1: -1}) if collection.ndim > 1 and collection.numblocks[1] > 1 else collection
    return list(whole.to_delayed().ravel())


def _sizes(collection: Any) -> tuple[int, ...] | None:
    """Rows of each part; None where dask does not know them."""
    sizes: tuple[float, ...] = collection.chunks[0] if _is_array(collection) else (np.nan,)
    return None if np.isnan(sizes).any() else tuple(map(int, sizes))


def _cut_alike(
    parts: Sequence[list[Any]], sizes: Sequence[tuple[int, ...] | None], names: Sequence[str]
) -> list[list[Any]]:
    """The parts of collections, those of the others cut as the first one is; rows are counted where dask does not know.

    Parameters
    ----------
    parts : sequence of lists of Delayed
        By collection.
    sizes : sequence
        See `_sizes`.
    names : sequence of str
        Of the collections, for errors.
    """
    import dask

    counted = [
        dask.delayed([dask.delayed(len)(part) for part in some]) if known is None else known
        for some, known in zip(parts, sizes, strict=True)
    ]
    first, *others = (np.cumsum([0, *lengths]) for lengths in dask.compute(*counted))
    found = [parts[0]]
    for name, some, ends in zip(names[1:], parts[1:], others, strict=True):
        if ends[-1] != first[-1]:
            raise InvalidInputError(f"{name} has {ends[-1]} rows, but {names[0]} has {first[-1]}")
        cut = []
        for start, stop in pairwise(first.tolist()):
            inside = range(np.searchsorted(ends, start, "right") - 1, np.searchsorted(ends, stop, "left"))
            within = [(max(start, ends[k]) - ends[k], min(stop, ends[k + 1]) - ends[k]) for k in inside]
            cut.append(dask.delayed(_slices)([some[k] for k in inside], within))
        found.append(cut)
    return found


def _slices(parts: Sequence[Any], within: Sequence[tuple[int, int]]) -> Any:
    """Some rows of each part, one after the other."""
    cut = [np.asarray(part)[start:stop] for part, (start, stop) in zip(parts, within, strict=True)]
    return np.concatenate(cut) if cut else np.empty(0)


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
