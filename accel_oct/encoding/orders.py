"""Orders of the rows of a table: every split of the table is a cut of an order.

A column of numbers, times or ordered categories gives one order; with missing values two, where these are below or
above all others. A category against the others, or a boolean, gives an order of two values, or of three with missing
values: no, missing, yes. A cut of an order is a `Condition`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import Column
from accel_oct.encoding.categorical import OneHotCategoryEncoder
from accel_oct.encoding.conditions import Condition, missing_values
from accel_oct.encoding.table_encoder import TableEncoder
from accel_oct.encoding.thresholds import Distinct
from accel_oct.support.arrays import FloatArray

Ranks = NDArray[np.int32]

MOST_CATEGORIES = 1000
"""Limit on the categories of one column, each of which gives an order."""

MOST_CELLS = 2**28
"""Limit on the ranks of a table, of four bytes each."""


@dataclass(frozen=True, eq=False)
class Order:
    """An order of the rows.

    Attributes
    ----------
    column : int
        Column of the table.
    ranks : int32 array (n,)
        0, 1, ... by increasing value.
    distinct : Distinct or None
        Known values of a column that is split at thresholds.
    answer : Condition or None
        Condition that splits the rows, for other columns.
    missing : {"", "below", "between", "above"}
        Position of missing values: "between" no and yes of an `answer`; "" without missing values.
    """

    column: int
    ranks: Ranks
    distinct: Distinct | None = None
    answer: Condition | None = None
    missing: Literal["", "below", "between", "above"] = ""

    @property
    def n_cuts(self) -> int:
        """Number of splits."""
        return int(self.ranks.max(initial=0))

    def condition_of(self, rank: int) -> tuple[Condition, bool]:
        """Return the condition that separates ranks up to `rank` from higher ones, and whether these fulfil it."""
        if self.answer is not None:
            return (replace(self.answer, missing=True) if self.missing and rank == 0 else self.answer), True
        assert self.distinct is not None
        position = rank - 1 if self.missing == "below" else rank
        if self.missing and position in (-1, len(self.distinct.values) - 1):
            return Condition(self.column, "is_missing", scale=self.distinct.scale), self.missing == "above"
        (low,) = self.distinct.thresholds(np.array([position]))
        return Condition(
            self.column, "at_least", low=low, missing=self.missing == "above", scale=self.distinct.scale
        ), True

    def middle(self, low: int, high: int) -> int:
        """Return the cut between two ranks that is nearest to the middle of their values."""
        shift = 1 if self.missing == "below" else 0
        first, last = low - shift, high - shift
        if self.distinct is None or high - low < 2 or first < 0:
            return low
        if last >= len(self.distinct.values):
            return high - 1
        values = self.distinct.values[first : last + 1]
        try:
            sums = values[:-1] / 2 + values[1:] / 2
            return low + int(np.argmin(np.abs(sums - (values[0] / 2 + values[-1] / 2))))
        except OverflowError:  # whole numbers beyond all floats
            return low


@dataclass(frozen=True, eq=False)
class TableOrders:
    """The orders of a table.

    Attributes
    ----------
    rows : bool array
        Rows of the table with positive weight, which the orders cover.
    encoder : TableEncoder
        Encoder with the kinds of the columns and without conditions.
    """

    orders: tuple[Order, ...]
    rows: NDArray[np.bool_]
    encoder: TableEncoder
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, X: Any, weights: FloatArray, *, missing: str, ignored: frozenset[int]) -> TableOrders | None:
        """Read a table; return None if it has too many categories or cells.

        Parameters
        ----------
        X : data frame, array-like or Table
        weights : float array (n,)
            Rows of weight 0 are ignored.
        missing : {"category", "error"}
        ignored : set of int
            Columns that are not read.
        """
        encoder = TableEncoder(categorical=OneHotCategoryEncoder(), missing=missing)
        encoder.ignoring(ignored)
        encoder._check_parameters()
        columns, _, present = encoder._learn_columns(X, None, weights)
        parts = encoder._by_kind(columns)
        for column in parts["categorical"]:
            if len(set(column.values.tolist())) > MOST_CATEGORIES:
                return None
        answers = encoder._other_conditions(parts, encoder._category_encoder(), present)
        if (len(columns) + len(answers)) * len(present) > MOST_CELLS:
            return None
        asked = [*parts["categorical"], *parts["boolean"], *parts["zero_one"]]
        found = [*_by_answers(asked, answers), *_by_values([*parts["ordered"], *parts["numeric"]])]
        found = [order for order in found if order.n_cuts]
        encoder.exact_ = True
        return cls(tuple(found), np.asarray(weights > 0), encoder, tuple(columns))

    @property
    def ranks(self) -> Ranks:
        """Ranks (orders, rows) of all orders."""
        n_rows = int(self.rows.sum())
        return np.array([order.ranks for order in self.orders], dtype=np.int32).reshape(len(self.orders), n_rows)

    @property
    def n_cuts(self) -> int:
        """Number of splits of the table; some may separate the same rows."""
        return sum(order.n_cuts for order in self.orders)

    def cut(self, condition: Condition) -> tuple[int, int, bool] | None:
        """Return order, rank and whether higher ranks fulfil a condition; None if it is no cut of an order."""
        values = next(column.values for column in self.columns if column.index == condition.column)
        answers = condition.holds(values)
        for place, order in enumerate(self.orders):
            for right in (True, False) if order.column == condition.column else ():
                low = order.ranks[answers != right]
                if 0 < len(low) < len(answers) and low.max() < order.ranks[answers == right].min():
                    return place, int(low.max()), right
        return None

    def encoder_for(self, conditions: Sequence[Condition]) -> TableEncoder:
        """Return the encoder with these conditions."""
        encoder = copy.copy(self.encoder)
        encoder._set_conditions(conditions, self.columns)
        return encoder


def _by_values(columns: Sequence[Column]) -> Iterator[Order]:
    for column in columns:
        absent = missing_values(column.values)
        values, codes = np.unique(column.values[~absent], return_inverse=True)
        distinct = Distinct(values, np.zeros(len(values)), column.scale)
        ranks: Ranks = codes.reshape(-1).astype(np.int32)
        if not absent.any():
            yield Order(column.index, ranks, distinct)
            continue
        below, above = np.zeros((2, len(absent)), dtype=np.int32)
        below[~absent] = ranks + 1
        above[~absent], above[absent] = ranks, len(values)
        yield Order(column.index, below, distinct, missing="below")
        if len(values) > 1:
            yield Order(column.index, above, distinct, missing="above")


def _by_answers(columns: Sequence[Column], answers: Sequence[Condition]) -> Iterator[Order]:
    values = {column.index: column.values for column in columns}
    absent = {column.index: missing_values(column.values) for column in columns}
    for index, rows in absent.items():
        if rows.any() and not rows.all():
            yield Order(index, rows.astype(np.int32), answer=Condition(index, "is_missing"))
    for answer in answers:
        yes, rows = answer.holds(values[answer.column]), absent[answer.column]
        if yes.all() or not yes.any():
            continue
        if not rows.any():
            yield Order(answer.column, yes.astype(np.int32), answer=answer)
        elif not (yes | rows).all():
            ranks = np.where(rows, 1, 2 * yes).astype(np.int32)
            yield Order(answer.column, ranks, answer=answer, missing="between")
