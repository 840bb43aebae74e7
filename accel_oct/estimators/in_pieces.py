"""Data in pieces: gather them for `fit`, and predict batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints.base import named_groups
from accel_oct.constraints.fairness import SENSITIVE
from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.labels import combined_groups
from accel_oct.data.tally import Tally
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.counting import joined
from accel_oct.pieces.encoders import BatchEncoder
from accel_oct.pieces.engines import Engine
from accel_oct.pieces.gathering import BATCH, gather
from accel_oct.pieces.sources import BESIDE, Piece, Source, source_of
from accel_oct.tree.tallied import TalliedTrees


def in_memory_only(what: str) -> InvalidInputError:
    """Return the error for an operation that needs the rows in memory."""
    return InvalidInputError(f"X: {what} needs the rows in memory; data in pieces and encoded tables are not supported")


def check_rows(source: Any, what: str) -> None:
    """Raise if an encoded table holds a tally."""
    if isinstance(source, EncodedTable) and isinstance(source.data, Tally):
        raise InvalidInputError(f"X: {what} needs rows, but the table holds a tally; gather it with keep='rows'")


def opened(X: Any, y: Any, sample_weight: Any) -> Source:
    """Open the source of `fit`; y and weights are names of columns, or dask collections beside X."""
    if y is None:
        raise InvalidInputError("y must be the name of the column with the classes where X is data in pieces, got None")
    return source_of(X, y, sample_weight, batch_rows=BATCH)


def source_columns(source: Source, y: Any, sample_weight: Any) -> Table:
    """Return the columns that `fit` encodes, as a table with one row of zeros."""
    others = [*BESIDE, *(name for name in (y, sample_weight) if isinstance(name, str))]
    return column_table(tuple(name for name in source.columns if name not in others), source.named)


def column_table(names: tuple[str, ...], named: bool) -> Table:
    """Return a table with one row of zeros; it has column names only if they are the user's (`named`)."""
    return Table(tuple(np.zeros(1) for _ in names), names if named else None, 1)


def gathered_for_fit(
    source: Source,
    y: Any,
    given: tuple[Any, ...],
    *,
    encoder: Any,
    depth: int,
    constraints: Any,
    keep: str,
    progress: Any,
) -> EncodedTable:
    """Gather the pieces. Columns that only constraints name are not in the table's `sensitive_features`.

    Parameters
    ----------
    given : sample_weight, sensitive_features, costs
        Names of columns, or None.
    encoder : transformer or None
        Not fitted.
    """
    sample_weight, sensitive, costs = given
    if costs is not None:
        raise in_memory_only("costs=")
    listed = _names(sensitive)
    groups = list(dict.fromkeys([*named_groups(constraints), *listed]))
    found = gather(
        source,
        y,
        sample_weight=sample_weight,
        sensitive_features=groups or None,
        encoder=encoder,
        depth=depth,
        keep=keep,
        progress=progress,
    )
    return replace(found, sensitive_features=tuple(listed))


def table_rows(table: EncodedTable) -> BinaryDataset:
    """Return the rows of an encoded table, with the group of each row in `row_values`.

    A tally gives one row per cell, with the number of samples unless samples have weights.
    """
    if isinstance(table.data, Tally):
        cells = TalliedTrees(table.data).cells()
        return cells if table.weighted else replace(cells, samples=np.rint(cells.weights).astype(np.int64))
    listed, values = table.sensitive_features, table.data.row_values
    if not listed or SENSITIVE in values:
        return table.data
    return replace(table.data, row_values={**values, SENSITIVE: combined_groups([values[name] for name in listed])})


def _names(sensitive: Any) -> list[str]:
    if sensitive is None:
        return []
    names = [sensitive] if isinstance(sensitive, str) else sensitive
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(
            f"sensitive_features must name columns where X is data in pieces, got {shown(sensitive)}"
        )
    return list(names)


# ---------------------------------------------------------------- prediction


@dataclass(frozen=True, eq=False)
class _OutputPass:
    """Task for each piece: compute the output of a tree and the values of some columns, batch by batch."""

    encoder: BatchEncoder
    answer: Callable[[NDArray[np.bool_]], Any]
    columns: tuple[str, ...]

    def __call__(self, place: int, piece: Piece) -> tuple[int, list[tuple[Any, ...]]]:
        wanted = list(dict.fromkeys([*self.encoder.names, *self.columns]))
        _check_there(wanted, piece.columns, piece.name)
        found: list[tuple[Any, ...]] = []
        for batch in piece.batches(wanted, BATCH):
            if batch.n_rows:
                answers = self.answer(np.ascontiguousarray(self.encoder(batch).T))
                found.append((answers, *(batch.array(name) for name in self.columns)))
        return place, found


def outputs_by_batch(
    model: Any, X: Any, answer: Callable[[NDArray[np.bool_]], Any], y: Any = None, sample_weight: Any = None
) -> tuple[list[Any], list[NDArray[Any]]]:
    """Return the output of a fitted tree on data in pieces, batch by batch in the order of the rows.

    Parameters
    ----------
    model : fitted classifier
        Columns are matched by the names of `fit`; others are not read.
    answer : callable
        Function of the binary features (n_rows, n_features).
    y, sample_weight : optional
        Names of columns, or collections of dask.

    Returns
    -------
    answers : list
    columns : list of arrays
        Values of y and weights, if given.
    """
    source = source_of(X, y, sample_weight, batch_rows=BATCH)
    asked = {"y": source.target or y, "sample_weight": source.weight or sample_weight}
    more = tuple(name for name in asked.values() if name is not None)
    _check_there(more, source.columns, source.kind)
    known = getattr(model, "feature_names_in_", None)
    if known is not None and source.named:
        names = tuple(str(name) for name in known)
        _check_there(names, source.columns, source.kind)
    else:
        names = tuple(name for name in source.columns if name not in (*BESIDE, *more))
        if len(names) != model.n_features_in_:
            raise InvalidInputError(f"X has {len(names)} columns, but there were {model.n_features_in_} in fit")
    found: dict[int, list[tuple[Any, ...]]] = {}

    def take(result: tuple[int, list[tuple[Any, ...]]]) -> int:
        found[result[0]] = result[1]
        return 0

    work = _OutputPass(BatchEncoder(model.encoder_, names), answer, more)
    Engine(None, 1, None).run("prediction", source, lambda: work, take)
    batches = [batch for place in sorted(found) for batch in found[place]]
    if not batches:
        raise InvalidInputError(f"X: {source.kind} has no rows")
    answers, *columns = (list(parts) for parts in zip(*batches, strict=True))
    whole = []
    for parts in columns:
        values = parts[0]
        for part in parts[1:]:
            values = joined(values, part)
        whole.append(values)
    return answers, whole


def _check_there(names: Sequence[str], columns: Sequence[str], where: str) -> None:
    lacking = next((name for name in names if name not in columns), None)
    if lacking is not None:
        known = [name for name in columns if name not in BESIDE]
        raise InvalidInputError(f"X: {where} has no column {shown(lacking)}; it has {shown(known)}")
