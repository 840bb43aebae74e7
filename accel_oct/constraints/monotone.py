"""Trees that are monotone in a column: its larger values never lower the predicted class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from accel_oct.constraints.arguments import feature_places, listed
from accel_oct.constraints.base import BoundConstraint, Constraint, TreePart
from accel_oct.constraints.traits import Traits
from accel_oct.data import BinaryDataset
from accel_oct.data.value_sets import ValueSet
from accel_oct.errors import InvalidInputError, shown
from accel_oct.tree import DecisionTree

Direction = Literal["increasing", "decreasing"]


@dataclass(frozen=True, eq=False)
class Monotone(Constraint):
    """The predicted class never falls, or never rises, when the values of a column increase.

    For any two points that differ in this column only, the point with the larger value has no lower class
    ("increasing"), or no higher class ("decreasing"). The points are all combinations of values that the columns of
    the table can have, not only the training rows: any number in a column of numbers, any text in a column of
    categories, and a missing value in every column.

    Parameters
    ----------
    column : str or int
        Name of a column of the user's table: of numbers, times, durations, ordered categories, booleans (False before
        True) or 0 and 1. With binary X, as in `solve(X, y)`, every feature is a column, given by name or by index.
    direction : {"increasing", "decreasing"}
    classes : sequence, optional
        All classes, the lowest first. By default the order of `classes_`: numbers by value, two texts in alphabetical
        order. More than two classes that are texts have no order of their own, and need this argument.

    Notes
    -----
    *Missing values* have no place in the order: a missing value of the column is not compared with any other value. A
    missing value of another column is a value like any other.

    *Categories without an order* are refused with an error; convert the column to ordered categories.

    *Empty leaves.* Every leaf must hold a training row of positive weight. A leaf without one could take any class, and
    such leaves would serve no purpose but to satisfy the constraint.

    *Search.* Trees are enumerated best first, and subtrees that are not monotone in their region are left out of the
    lists (`Traits.refuses`).

    Examples
    --------
    >>> older_is_safer = Monotone("age", "increasing")
    """

    column: str | int
    direction: Direction
    classes: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.direction, str) or self.direction not in ("increasing", "decreasing"):
            raise InvalidInputError(
                f"Monotone: direction must be 'increasing' or 'decreasing', got {shown(self.direction)}"
            )

    def bind(self, dataset: BinaryDataset) -> BoundConstraint:
        places = self._features(dataset)
        sets = dataset.value_sets
        if sets is None:
            sets = tuple(map(ValueSet.of_feature, range(dataset.n_features)))
        elif any(sets[place].n_ordered == 0 for place in places):
            raise InvalidInputError(
                f"Monotone: column: {shown(self.column)} holds categories without an order; convert it to ordered "
                "categories (pandas.Categorical with ordered=True) or to numbers"
            )
        shown_column = self.column if isinstance(self.column, str) else dataset.feature_names[places[0]]
        sign = 1 if self.direction == "increasing" else -1
        rank = tuple(sign * place for place in self._order(dataset))
        own = frozenset(sets[place].column for place in places)
        return _BoundMonotone(f"{self.direction} in {shown_column}", own, rank, sets, dataset)

    def _features(self, dataset: BinaryDataset) -> list[int]:
        where = "Monotone: column"
        if not isinstance(self.column, str) and dataset.sources is not None:
            raise InvalidInputError(f"{where} must be the name of a column of the table, got {shown(self.column)}")
        places = feature_places(self.column, dataset, where)
        if dataset.value_sets is None and len(places) > 1:
            raise InvalidInputError(
                f"{where}: the values that the features of {shown(self.column)} stand for are unknown"
            )
        return places

    def _order(self, dataset: BinaryDataset) -> list[int]:
        """Return the position of each class index in the order of the classes."""
        known = dataset.classes.tolist()
        if self.classes is None:
            if len(known) > 2 and any(isinstance(label, str) for label in known):
                raise InvalidInputError(
                    f"Monotone: classes must be given, lowest first: the order of the texts {shown(known)} is unknown"
                )
            return list(range(len(known)))
        order = listed(self.classes, "Monotone: classes")
        if any(label not in order for label in known) or any(order.count(label) > 1 for label in order):
            raise InvalidInputError(
                f"Monotone: classes must hold every class once, which are {shown(known)}, got {shown(order)}"
            )
        return [order.index(label) for label in known]


class _Leaf(NamedTuple):
    """A leaf: the rank of its class, and its values by column, where these are restricted."""

    rank: int
    region: dict[int, int]


@dataclass(frozen=True, eq=False)
class _BoundMonotone(BoundConstraint):
    """Two leaves contradict each other if their regions hold two points that must not be classified so.

    Such leaves are on different sides of a split on the column: at a split on another column, the regions of the sides
    have no common value of that column. So only nodes that split on the column are examined.

    Attributes
    ----------
    own : set of int
        The column; empty if it has no features.
    rank : tuple of int
        Rank of every class; it must not fall with the values of the column.
    """

    name: str
    own: frozenset[int]
    rank: tuple[int, ...]
    sets: Sequence[ValueSet]
    dataset: BinaryDataset
    traits = Traits(superfluous_splits="removable", refuses={"nodes"}, reads={"features", "X", "weight"})
    allowed = (None, 0.0)

    @cached_property
    def _sides(self) -> list[tuple[int, int, int]]:
        """Column of each feature, and the values of its zero side and one side."""
        return [(each.column, each.every & ~each.holds, each.holds) for each in self.sets]

    @cached_property
    def _ordered(self) -> int:
        """Bits of the values of the column that are in its order."""
        return max(((1 << each.n_ordered) - 1 for each in self.sets if each.column in self.own), default=0)

    @cached_property
    def _present(self) -> Any:
        return self.dataset.X[self.dataset.weights > 0]

    def value(self, tree: DecisionTree) -> float:
        """Return the number of pairs of leaves that contradict the order, plus the number of empty leaves."""
        return self.violation(tree)

    def violation(self, tree: DecisionTree) -> float:
        empty = tree.n_leaves - len(np.unique(tree.apply(self._present)))
        return float(self._contradictions(tree.nested(), {}) + empty)

    def _contradictions(self, nested: Any, region: dict[int, int]) -> int:
        """Return the number of pairs of leaves of a subtree that contradict each other in a region."""
        if not isinstance(nested, tuple):
            return 0
        sides = list(self._split(nested, region))
        found = sum(self._contradictions(*side) for side in sides)
        if len(sides) == 2 and self._sides[nested[0]][0] in self.own:
            found += sum(1 for _ in self._pairs(*(self._leaves(*side) for side in sides)))
        return found

    def _split(self, nested: Any, region: dict[int, int]) -> Iterable[tuple[Any, dict[int, int]]]:
        """Yield both sides of a split with their regions, without a side in which no point can be."""
        feature, *below = nested
        column, *halves = self._sides[feature]
        here = region.get(column, -1)
        for part, half in zip(below, halves, strict=True):
            if here & half:
                yield part, {**region, column: here & half}

    def _leaves(self, nested: Any, region: dict[int, int]) -> list[_Leaf]:
        if not isinstance(nested, tuple):
            return [_Leaf(self.rank[nested], region)]
        return [leaf for side in self._split(nested, region) for leaf in self._leaves(*side)]

    def _pairs(self, zero: list[_Leaf], one: list[_Leaf]) -> Iterable[tuple[_Leaf, _Leaf]]:
        """Yield the contradicting pairs of a leaf of each side."""
        for first in zero:
            for second in one:
                if first.rank != second.rank:
                    low, high = (first, second) if first.rank > second.rank else (second, first)
                    if self._may_exceed(low.region, high.region) and self._share_the_rest(low.region, high.region):
                        yield low, high

    def _may_exceed(self, low: dict[int, int], high: dict[int, int]) -> bool:
        """Return whether some value of the column in `high` is larger than one in `low`."""
        for column in self.own:
            least = low[column] & self._ordered
            return bool(least) and high[column] & self._ordered >= 2 * (least & -least)
        return False

    def _share_the_rest(self, one: dict[int, int], other: dict[int, int]) -> bool:
        """Return whether two regions have a common value of every other column."""
        return all(
            values & other[column] for column, values in one.items() if column in other and column not in self.own
        )

    # ---------------------------------------------------------------- subtrees in the lists

    @cached_property
    def _with_path(self) -> set[int]:
        """Columns for which a path matters to a subtree below it.

        A path without empty leaves does not matter for simple columns: the values of two leaves of the subtree, which
        both meet those of the path, have a value in common with the path if they have one at all. Two leaves on
        different sides of a threshold are in order wherever they stand.
        """
        return {each.column for each in self.sets if not each.is_simple}

    def context(self, path: tuple[tuple[int, int], ...]) -> Hashable:
        return tuple(sorted(self._region(path).items())) if self._with_path else ()

    def _region(self, path: Iterable[tuple[int, int | None]]) -> dict[int, int]:
        """Return the values of the columns for which the path matters."""
        region: dict[int, int] = {}
        for feature, side in path:
            column, *halves = self._sides[feature]
            if column in self._with_path:
                region[column] = region.get(column, -1) & halves[bool(side)]
        return region

    def refuses(self, part: TreePart) -> bool:
        """Judge the root of a subtree; its sides were judged before."""
        if self._sides[part.nested[0]][0] not in self.own:
            return False
        region = self._region(part.path or ()) if self._with_path else {}
        sides = [self._leaves(*side) for side in self._split(part.nested, region)]
        return len(sides) == 2 and any(True for _ in self._pairs(*sides))
