"""Which values of a column of the user's table have a binary feature."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ValueSet:
    """The values of a column that have a binary feature; created by `accel_oct.encoding.conditions.value_sets`.

    All values that the features of a column do not tell apart are one value here. Those that are in an order come
    first, increasing: numbers, times, ordered categories, False and True. A missing value and the categories of an
    unordered column have no place in the order.

    Attributes
    ----------
    column : int
        Position of the column; features of one column have the same values.
    holds : int
        Bit v is set if value v has the feature.
    n_values : int
    n_ordered : int
        Number of values in the order.
    is_simple : bool
        Whether sets of values that are given by some features of the column and overlap in pairs have a common value,
        and no missing value is apart from the lowest one: for thresholds, for categories, and for a single feature.
    """

    column: int
    holds: int
    n_values: int
    n_ordered: int
    is_simple: bool

    @property
    def every(self) -> int:
        """Bits of all values."""
        return (1 << self.n_values) - 1

    @classmethod
    def of_feature(cls, column: int) -> ValueSet:
        """Return the set of a binary feature that is a column of its own: value 1 of 0 and 1."""
        return cls(column, 0b10, 2, 2, True)
