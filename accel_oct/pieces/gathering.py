"""Gathering of data in pieces into distinct rows with weights, or a tally."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.binary_matrix import distinct_names, usable_features
from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.labels import combined_groups, encode_labels
from accel_oct.data.tally import Tally
from accel_oct.encoding.base import BinaryEncoder
from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.counting import Counted, CountPass
from accel_oct.pieces.encoders import BatchEncoder, EncoderChoice, encoding_fingerprint
from accel_oct.pieces.engines import Engine
from accel_oct.pieces.reducing import (
    Labels,
    Reduced,
    ReducePass,
    check_classes,
    check_passes,
    label_values,
    rows_limit,
)
from accel_oct.pieces.sources import Roles, Source, described, source_of
from accel_oct.support.arguments import whole_number
from accel_oct.support.progress import Sink

DISTINCT = 1_000_000
SAMPLE = 100_000
BATCH = 1 << 18
MOST_GROUPS = 1000


def gather(
    source: Any,
    target: Any = None,
    *,
    features: Sequence[str] | None = None,
    sample_weight: Any = None,
    sensitive_features: str | Sequence[str] | None = None,
    encoder: Any = "auto",
    depth: int = 4,
    keep: str = "auto",
    client: Any = None,
    n_jobs: int = 1,
    progress: Sink | None = None,
    max_distinct: int = DISTINCT,
    sample_rows: int = SAMPLE,
    batch_rows: int = BATCH,
    seed: int = 0,
) -> EncodedTable:
    """Read and encode data piece by piece, and return the distinct rows or a tally.

    The first of two passes counts the values of the columns, on which the encoder is fitted. The second encodes each
    piece and adds up distinct rows, or a tally once that is smaller. Memory depends on the columns and on the size of a
    batch, not on the number of rows.

    Parameters
    ----------
    source : dask DataFrame or array, path, pyarrow Dataset, DuckDB relation, data frame or list of them, or callable
        A path names a Parquet file, a folder of them, or a pattern such as ``folder/*.parquet``; a list of paths is
        accepted too. Another file, such as CSV, is one piece. A callable without arguments returns data frames, the
        same ones in every call.
    target : str, or dask Series or array
        Column of the classes; for dask, also a collection with as many rows as `source`.
    features : sequence of str, optional
        Columns that trees may split on; by default all but target and weights.
    sample_weight : str, or dask Series or array, optional
        Column of the weights; for dask, also a collection.
    sensitive_features : str or sequence of str, optional
        Columns that constraints name, such as "sex". They are also features, unless `features` omits them.
    encoder : "auto", None or transformer
        None requires columns of 0 and 1. Encoders of accel_oct that use each column separately give the same result as
        on all rows in memory. "auto" (`AutoEncoder`) and transformers that use whole rows are fitted on a sample of
        `sample_rows` rows, or on all rows if there are no more. A fitted transformer is used unchanged.
    depth : int
        Maximum depth of the trees; a tally does not support deeper ones.
    keep : {"auto", "rows", "counts"}
        Distinct rows, a tally ("counts"), or the smaller of both; rows of up to 16 MiB, which support every use, remain
        rows.
    client : distributed.Client, optional
        Client of the cluster that reads the pieces; by default the current client of this process, if any. Data frames
        in memory and DuckDB relations are always read by this process.
    n_jobs : int
        Number of pieces that are read in parallel without a client.
    progress : callable (ProgressEvent), optional
        Called after each piece, with the figures "pieces" and "rows".
    max_distinct : int
        Maximum number of distinct values of a column that are counted exactly. Beyond that, numbers are rounded to
        fewer binary digits, with the error in `EncodedTable.rank_errors`; text is an error.
    sample_rows, seed : int
        Size and random seed of the sample.
    batch_rows : int
        Maximum number of rows that are decoded at a time.

    Raises
    ------
    InvalidInputError
        If the input is invalid; the message names the argument, the column or the piece.
    """
    for name, value in (("max_distinct", max_distinct), ("sample_rows", sample_rows), ("batch_rows", batch_rows)):
        whole_number(value, name, 1)
    for name, value in (("depth", depth), ("seed", seed)):
        whole_number(value, name)
    if keep not in ("auto", "rows", "counts"):
        raise InvalidInputError(f"keep must be 'auto', 'rows' or 'counts', got {shown(keep)}")
    engine = Engine(client, n_jobs, progress)
    found = source_of(source, target, sample_weight, batch_rows=batch_rows)
    roles = Roles.of(found, target, features, sensitive_features, sample_weight)
    choice = EncoderChoice.of(encoder, depth)
    first = CountPass(
        columns=found.columns,
        counted=tuple(dict.fromkeys([*choice.counted(roles.features), roles.target, *roles.groups])),
        sampled=tuple(dict.fromkeys([*roles.features, roles.target])) if choice.needs_rows else (),
        weight=roles.weight,
        max_distinct=max_distinct,
        sample_size=sample_rows,
        seed=seed,
        batch_rows=batch_rows,
    )
    seen, n_pieces = _first_pass(engine, found, first)
    _check_labels(seen, roles)
    if choice.needs_rows:
        check_classes(seen.columns[roles.target].values, roles.target)
    sampled = choice.needs_rows and seen.n_rows > sample_rows
    made = choice.fitted(seen, roles, found.named)
    complete = not choice.is_fitted and not sampled
    second = _reduce_pass(found, roles, seen, BatchEncoder(made, roles.features, complete), depth, keep, batch_rows)
    state = _second_pass(engine, found, second, seen.n_rows)
    rounded = {name: seen.columns[name].rank_error for name in choice.counted(roles.features)}
    errors = {name: error for name, error in rounded.items() if error}
    if (sampled or errors) and isinstance(made, BinaryEncoder) and not choice.is_fitted:
        made.exact_ = False  # the sample may lack values of the table
    return EncodedTable(
        data=_dataset(state, second, seen) if state.tally is None else _tally(state.tally, second, seen.n_rows),
        encoder=made,
        features=roles.features,
        sensitive_features=roles.groups,
        n_rows=seen.n_rows,
        weighted=sample_weight is not None,
        n_pieces=n_pieces,
        rank_errors=errors,
        sampled=sampled,
        named=found.named,
    )


def _first_pass(engine: Engine, source: Source, work: CountPass) -> tuple[Counted, int]:
    state, n_pieces = work.empty(), 0

    def take(result: Counted) -> int:
        nonlocal n_pieces
        n_pieces += 1
        return state.merge(result).n_rows

    engine.run("first pass", source, lambda: work, take)
    if not state.n_rows:
        raise InvalidInputError(f"source has no rows: all of its {n_pieces} pieces are empty")
    for counts in state.columns.values():
        counts.compact()
    return state, n_pieces


def _check_labels(seen: Counted, roles: Roles) -> None:
    """Raise for a target or groups with missing or too many values, before the encoder is fitted."""
    goal = seen.columns[roles.target]
    if goal.missing is not None:
        raise InvalidInputError(f"target: {described(roles.target)} has missing values")
    if goal.level:
        raise InvalidInputError(f"target: {described(roles.target)} has more than {goal.limit:,} distinct values")
    for name in roles.groups:
        most = min(MOST_GROUPS, seen.columns[name].limit)
        if seen.columns[name].level or len(seen.columns[name].values) > most:
            raise InvalidInputError(f"sensitive_features: column {shown(name)} has more than {most:,} distinct values")


def _reduce_pass(
    source: Source, roles: Roles, seen: Counted, encoder: BatchEncoder, depth: int, keep: str, batch_rows: int
) -> ReducePass:
    goal = seen.columns[roles.target]
    classes, _ = encode_labels(goal.values, len(goal.values))
    groups = []
    for name in roles.groups:
        counts = seen.columns[name]
        groups.append(Labels(name, "sensitive_features", label_values(counts.values, counts.missing is not None)))
    target = Labels(roles.target, "target", classes)
    n_cells = len(classes) * math.prod(len(each.values) for each in groups)
    limit = rows_limit(encoder.n_features, n_cells, depth, keep)
    columns, unit = source.columns, seen.totals.unit()
    return ReducePass(columns, encoder, target, tuple(groups), roles.weight, unit, depth, limit, batch_rows)


def _second_pass(engine: Engine, source: Source, work: ReducePass, n_rows: int) -> Reduced:
    state = work.empty()

    def take(result: Reduced) -> int:
        return work.merge(state, result).n_rows

    # Once there is a tally, later pieces need not collect distinct rows.
    engine.run("second pass", source, lambda: work.for_state(state), take)
    check_passes(n_rows, state.n_rows)
    return work.finish(state)


def _dataset(state: Reduced, work: ReducePass, seen: Counted) -> BinaryDataset:
    """Return the distinct rows as a data set, with the row values that constraints may name."""
    rows, encoder = state.rows, work.encoder
    codes, values = rows.cells, {}
    for each in reversed(work.groups):
        codes, place = np.divmod(codes, len(each.values))
        values[each.name] = np.array(each.values.tolist(), dtype=object)[place]
    X, names, sources = usable_features(rows.X, encoder.feature_names, encoder.sources)
    return BinaryDataset(
        X=X,
        y=codes.astype(np.int64),
        weights=work.unit.real(rows.units),
        classes=work.target.values.copy(),
        feature_names=names,
        class_names=tuple(map(str, work.target.values)),
        grid_bits=work.unit.grid_bits,
        sources=sources,
        value_sets=encoder.value_sets,
        row_values=values,
        samples=rows.samples,
        columns=encoder.names,
        rounded_to=0.0 if seen.totals.whole and not work.unit.exponent else math.ldexp(1.0, work.unit.exponent),
    )


def _tally(tally: Tally, work: ReducePass, n_rows: int) -> Tally:
    """Return the tally with labels instead of codes."""
    labels: NDArray[Any] = np.array([None])
    if work.groups:
        for each in work.groups:
            if None in each.values.tolist():
                raise InvalidInputError(f"sensitive_features: column {shown(each.name)} has missing values")
        columns = np.array(list(product(*(each.values.tolist() for each in work.groups))), dtype=object).T
        labels, place = np.unique(np.array(combined_groups(list(columns)).tolist()), return_inverse=True)
        tally = _regrouped(tally, place.reshape(-1), len(labels))
    return replace(
        tally,
        unit=work.unit.exponent,
        n_rows=n_rows,
        classes=work.target.values.copy(),
        group_labels=labels,
        group_name=work.groups[0].name if len(work.groups) == 1 else None,
        feature_names=distinct_names(work.encoder.feature_names),
        encoding=encoding_fingerprint(work.encoder.encoder, work.encoder.names),
        sources=work.encoder.sources,
        columns=work.encoder.names,
    )


def _regrouped(tally: Tally, place: NDArray[np.int64], n_groups: int) -> Tally:
    """Return the tally with groups sorted by label text, "10" before "9", and groups of equal labels merged."""
    if np.array_equal(place, np.arange(n_groups)):
        return tally
    cells = (np.arange(tally.n_classes)[:, None] * n_groups + place).ravel()
    counts = []
    for part in tally.counts:
        counts.append(np.zeros((tally.n_classes * n_groups, part.shape[1]), dtype=np.int64))
        np.add.at(counts[-1], cells, part)
    return replace(tally, counts=tuple(counts))
