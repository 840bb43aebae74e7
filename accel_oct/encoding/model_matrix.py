"""A table as a matrix of floats, for regressors and classifiers of other libraries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.encoding.base import Column
from accel_oct.encoding.conditions import missing_values
from accel_oct.encoding.table_encoder import TableEncoder
from accel_oct.encoding.tables import Table
from accel_oct.support.arrays import FloatArray

#: Categories of a column that get a column of their own, most frequent first.
MOST_CATEGORIES = 30


@dataclass(frozen=True, eq=False)
class ModelMatrix:
    """Reads tables as matrices of floats without missing values; created by `of`.

    A column of numbers, times, booleans or ordered categories is one column, in which missing values are the median of
    the known ones, and a second column of 0 and 1 that marks them if there were any in `of`. Other categories are one
    column of 0 and 1 for each of the most frequent values.
    """

    encoder: TableEncoder
    medians: dict[int, float]
    categories: dict[int, tuple[str, ...]]
    marked: frozenset[int]

    @classmethod
    def of(cls, table: Table) -> ModelMatrix:
        """Learn medians and categories."""
        encoder = TableEncoder()
        columns = encoder._learn_columns(table, None, None)[0]
        medians, categories = {}, {}
        for column in columns:
            known = column.values[~missing_values(column.values)]
            if column.kind == "categorical":
                counted = Counter(known.tolist())
                order = sorted(counted, key=lambda text: (-counted[text], text))
                categories[column.index] = tuple(order[:MOST_CATEGORIES])
            else:
                medians[column.index] = float(np.median(known.astype(np.float64))) if len(known) else 0.0
        marked = frozenset(column.index for column in columns if column.index in medians and column.has_missing)
        return cls(encoder, medians, categories, marked)

    def read(self, table: Table) -> FloatArray:
        """Return the matrix of a table with the same columns, with at least one column."""
        parts = []
        for place, kind in enumerate(self.encoder.kinds_):
            parts += self._parts(self.encoder._column(table, place, kind))
        return np.column_stack(parts) if parts else np.zeros((len(table), 1))

    def _parts(self, column: Column) -> list[Any]:
        if column.index in self.categories:
            return [(column.values == known).astype(np.float64) for known in self.categories[column.index]]
        absent = missing_values(column.values)
        numbers = np.where(absent, self.medians[column.index], column.values).astype(np.float64)
        return [numbers, absent.astype(np.float64)] if column.index in self.marked else [numbers]
