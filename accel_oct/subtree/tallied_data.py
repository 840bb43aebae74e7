"""The samples of a tally, as the profile levels see a data set: counts of column sets take the place of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import Tally
from accel_oct.data.column_sets import given
from accel_oct.data.dataset import round_to_grid
from accel_oct.subtree.local_rules import LocalRules
from accel_oct.subtree.reduction import Reduced

__all__ = ["TalliedData", "samples_at", "tallied_data"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TalliedData(Reduced):
    """Data without rows: what sets of columns earn, by class; made by `tallied_data`.

    Columns are those that can split: both sides have weight, and are allowed by the rules. None is flipped.

    Attributes
    ----------
    values : tuple of float arrays (K + J, number of sets)
        By size of the sets of columns of the tally: what the samples that have all of them earn where class k is
        predicted, then their masses.
    apart : bool array (all columns, all columns) or None
        As in `LocalRules`.
    """

    values: tuple[Floats, ...] = ()
    apart: Bools | None = None

    @cached_property
    def class_weights(self) -> Floats:
        """What a leaf of each class earns."""
        return self.values[0][: self.n_classes, 0]

    @cached_property
    def total_weight(self) -> float:
        """What a leaf of each class earns, together."""
        return float(self.class_weights.sum())

    @property
    def depth(self) -> int:
        """Of the deepest trees that can be told apart."""
        return len(self.values) - 1

    @property
    def n_columns(self) -> int:
        """Of the tally."""
        return self.values[1].shape[1] if self.depth else 0

    def at(self, *path: tuple[int, int]) -> TalliedData:
        """The samples on some sides of some columns."""
        values = self.values
        for column, side in path:
            values = given(values, self.n_columns, int(self.feature[column]), side)
        return _with_columns(values, self, self.feature[[column for column, _ in path]])

    def restricted(self, rows: NDArray[Any], *path: int) -> Reduced:
        raise NotImplementedError("a tally has no rows")


def samples_at(data: Reduced, *path: tuple[int, int]) -> Reduced:
    """The same for the samples on some sides of some columns, whatever kind of data."""
    if isinstance(data, TalliedData):
        return data.at(*path)
    rows = np.all([data.X[:, column] == side for column, side in path], axis=0)
    return data.restricted(rows, *(column for column, _ in path))


def tallied_data(
    tally: Tally, earned: Floats, n_classes: int, rules: LocalRules | None = None, grid_bits: int = 0
) -> TalliedData:
    """What the levels need of a tally.

    Parameters
    ----------
    tally : Tally
    earned : float array (n_cells, n_classes)
        What a unit of each cell earns where a class is predicted, not negative.
    n_classes : int
    rules : LocalRules, optional
        Masses of whole cells.
    grid_bits : int
        What a set of columns earns is rounded to a multiple of ``2.0 ** -grid_bits``, of which all samples together
        earn less than ``2**52``. All sums are exact then, and the sides of a split add up to what is split; what a leaf
        earns is off by at most half a multiple for each of the ``2**depth`` sets that it is made of.
    """
    factors = earned.T
    values = tuple(_combined(factors, counts, grid_bits) for counts in tally.counts)
    if rules is not None:
        units = tally.counts[0][:, 0].astype(np.float64)
        masses = rules.masses if rules.masses.shape[1] == tally.n_cells else np.zeros((len(rules.least), tally.n_cells))
        factors = np.divide(masses, units, out=np.zeros_like(masses), where=units > 0)
        heaviest = float(masses.sum(axis=1).max())
        bits = 53 - math.frexp(heaviest)[1]  # masses of whole numbers of units are not rounded
        mass = [_combined(factors, counts, bits) for counts in tally.counts]
        values = tuple(np.concatenate(parts) for parts in zip(values, mass, strict=True))
    nothing = Reduced(
        X=np.zeros((0, tally.n_features), dtype=np.uint8),
        y=np.zeros(0, dtype=np.int64),
        weights=np.zeros(0),
        row_ceiling=np.zeros(0),
        n_classes=n_classes,
        feature=np.arange(tally.n_features),
        flipped=np.zeros(tally.n_features, dtype=bool),
        rules=rules,
    )
    apart = None if rules is None else rules.apart
    return _with_columns(values, TalliedData(**vars(nothing), values=values, apart=apart))


def _combined(factors: Floats, counts: Ints, grid_bits: int) -> Floats:
    """``factors @ counts`` on a grid; cell by cell, as a copy of all counts would be as large as the tally."""
    result = np.zeros((len(factors), counts.shape[1]))
    for channel, cell in zip(*np.nonzero(factors), strict=True):
        result[channel] += factors[channel, cell] * counts[cell]
    on_it = np.array_equal(round_to_grid(factors, grid_bits), factors)
    return result if on_it else round_to_grid(result, grid_bits)


def _with_columns(values: tuple[Floats, ...], data: TalliedData, path: Ints | None = None) -> TalliedData:
    """For some of the samples, with the columns that can split them below a path."""
    n_classes, rules = data.n_classes, data.rules
    columns = np.zeros(0, dtype=np.int64) if len(values) < 2 else data.feature
    if columns.size:
        totals, single = values[0], values[1][:, columns]
        usable = (single[:n_classes].sum(axis=0) > 0) & ((totals - single)[:n_classes].sum(axis=0) > 0)
        if rules is not None:
            usable &= rules.enough(single[n_classes:]) & rules.enough((totals - single)[n_classes:])
        if data.apart is not None:
            usable &= ~np.diagonal(data.apart)[columns]
            if path is not None:
                usable &= ~data.apart[path][:, columns].any(axis=0)
        columns = columns[usable]
    if rules is not None:
        apart = None if data.apart is None else data.apart[np.ix_(columns, columns)]
        rules = LocalRules(values[0][n_classes:], rules.least, apart if apart is not None and apart.any() else None)
        if not rules.allow_a_leaf:
            columns = columns[:0]
            rules = LocalRules(rules.masses, rules.least, None)
    return TalliedData(
        X=np.zeros((0, columns.size), dtype=np.uint8),
        y=data.y,
        weights=data.weights,
        row_ceiling=values[0][:n_classes].sum(axis=1),  # no tree earns more than all there is: points are not known
        n_classes=n_classes,
        feature=columns,
        flipped=np.zeros(columns.size, dtype=bool),
        rules=rules,
        values=values,
        apart=data.apart,
    )
