"""Best values of the sides of columns, as tables give them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from accel_oct.support.arrays import FloatArray, IntArray

TableSides = tuple[IntArray, FloatArray, FloatArray]
"""Features, and the best values of their zero sides and one sides."""


class SideTables(ABC):
    """Best priced values of the sides of columns, from which all losses are measured.

    Attributes
    ----------
    known : bool
        False where there is no room for the tables, or the time was up.
    value, spread : float
        The best priced value, and a loss that no tree exceeds.
    columns : int array
        Features that split the samples, one of each set of equal or complementary ones.
    by_leaves : bool
        Whether sides with at least two leaves are known apart.
    knows_below : bool
        Whether there is `sides_below`.
    """

    known: bool
    value: float
    spread: float
    columns: IntArray
    by_leaves: bool
    knows_below: bool

    @abstractmethod
    def sides(self, least: int = 1) -> TableSides:
        """Below the root; of sides with at least so many leaves, where `by_leaves`."""

    @abstractmethod
    def sides_below(self, feature: int, side: bool, least: int = 1) -> TableSides:
        """Below one side of a root feature, where `knows_below`."""
