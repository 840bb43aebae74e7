"""Training data that come in pieces: gathered first, then as any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.constraints import Constraint, MinLeafWeight
from accel_oct.constraints.fairness import SENSITIVE
from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.tally import Tally
from accel_oct.encoding.columns import Table
from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.engines import PiecesProgress
from accel_oct.pieces.finding import source_of
from accel_oct.pieces.gathered import Gathered
from accel_oct.pieces.gathering import BATCH, gather
from accel_oct.pieces.recognising import named_groups
from accel_oct.pieces.sources import BESIDE, Source
from accel_oct.solving.activity import Activity, activity_listener
from accel_oct.tree.tallied import TalliedTrees

__all__ = ["by_weight", "column_table", "gathered_for_fit", "gathered_rows", "in_memory_only", "opened"]


def in_memory_only(what: str) -> InvalidInputError:
    """The error for what needs the rows themselves."""
    return InvalidInputError(f"X: {what} needs the rows in memory, and cannot take data in pieces")


def opened(X: Any, y: Any, sample_weight: Any) -> Source:
    """The data that were handed to `fit`; y and weights are names of columns, or collections of dask beside X."""
    if y is None:
        raise InvalidInputError("y must be the name of the column with the classes where X is data in pieces, got None")
    return source_of(X, y, sample_weight, batch_rows=BATCH)


def column_table(source: Source, y: Any, sample_weight: Any) -> Table:
    """The columns that `fit` encodes, with a row of zeros: their names matter, where they are the user's own."""
    others = [*BESIDE, *(name for name in (y, sample_weight) if isinstance(name, str))]
    names = tuple(name for name in source.columns if name not in others)
    return Table(tuple(np.zeros(1) for _ in names), names if source.named else None, 1)


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
) -> Gathered:
    """Read the pieces.

    Parameters
    ----------
    given : sample_weight, sensitive_features, costs
        As handed to `fit`: names of columns, or None.
    encoder : transformer or None
        Not fitted.
    """
    sample_weight, sensitive, costs = given
    if costs is not None:
        raise in_memory_only("costs=")
    listed = _names(sensitive)
    groups = list(dict.fromkeys([*named_groups(constraints), *listed]))
    return gather(
        source,
        y,
        groups=groups or None,
        sample_weight=sample_weight,
        encoder=encoder,
        depth=depth,
        keep=keep,
        progress=_teller(progress),
    )


def gathered_rows(found: Gathered, sensitive: Any, weighted: bool) -> BinaryDataset:
    """The rows, with the group of each among what constraints may name where `sensitive_features` were given.

    Of a tally they are one per cell. Unless samples have weights, it is known how many of them there are.
    """
    if isinstance(found.data, Tally):
        cells = TalliedTrees(found.data).cells()
        return cells if weighted else replace(cells, samples=np.rint(cells.weights).astype(np.int64))
    values = dict(found.data.row_values)
    listed = _names(sensitive)
    if listed:
        columns = [values[name].tolist() for name in listed]
        joined = [", ".join(map(str, row)) for row in zip(*columns, strict=True)]
        values[SENSITIVE] = values[listed[0]] if len(columns) == 1 else np.array(joined)
    return replace(found.data, row_values=values)


def by_weight(constraints: list[Constraint], alike: bool) -> list[Constraint]:
    """For a tally, which knows weights: numbers of samples as weights, where all samples weigh one (`alike`)."""
    return [
        MinLeafWeight(each.samples) if alike and isinstance(each, MinLeafWeight) and each.samples is not None else each
        for each in constraints
    ]


def _names(sensitive: Any) -> list[str]:
    if sensitive is None:
        return []
    names = [sensitive] if isinstance(sensitive, str) else sensitive
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(
            f"sensitive_features must name columns where X is data in pieces, got {shown(sensitive)}"
        )
    return list(names)


def _teller(progress: Any) -> Any:
    """Tells a watcher of a fit how far the passes are."""
    listener = activity_listener(progress)
    if listener is None:
        return None

    def tell(done: PiecesProgress) -> None:
        pieces = done.pieces if done.n_pieces is None else (done.pieces, done.n_pieces)
        listener(Activity(0.0, "encoding", done.step, {"pieces": pieces, "rows": done.rows}))

    return tell
