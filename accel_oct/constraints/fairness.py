"""Fairness constraints: limits on the difference between groups in a rate of predictions.

Rates are weighted shares, and their differences are linear in the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, permutations
from typing import Any

import numpy as np

from accel_oct.constraints.arguments import NamesAClass, distinct_values, row_values, share
from accel_oct.constraints.base import BoundConstraint, Constraint
from accel_oct.constraints.statements import RowSet, Share, Statement, tolerated
from accel_oct.constraints.traits import FORGIVEN, LinearLimit, Traits, excess
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import BoolArray, IntArray
from accel_oct.tree import DecisionTree

#: The name under which groups come with the data; no column of a table has it.
SENSITIVE = "\0sensitive features"

#: A label, the rows, and what they have in common.
Population = tuple[str, BoolArray, tuple[RowSet, ...]]

#: Most groups: the number of limits is quadratic in them.
_MOST_GROUPS = 50


@dataclass(frozen=True, eq=False)
class _BetweenGroups(NamesAClass, Constraint):
    """At most a difference of `at_most` between any two groups, in the share predicted `positive`."""

    group: Any = None
    at_most: float | None = None
    positive: Any = None

    def __post_init__(self) -> None:
        if self.at_most is None:
            raise InvalidInputError(f"{type(self).__name__}: at_most must be given")
        share(self.at_most, f"{type(self).__name__}: at_most")

    def bind(self, dataset: BinaryDataset) -> BoundParity:
        assert self.at_most is not None
        positive = self.class_index(dataset)
        group = dataset.row_values.get(SENSITIVE) if self.group is None else self.group
        if group is None:
            raise InvalidInputError(
                f"{type(self).__name__}: group must be given, here or in fit(..., sensitive_features=)"
            )
        names, place = _groups(group, dataset, f"{type(self).__name__}: group")
        column = (
            self.group if isinstance(self.group, str) else "group" if self.group is not None else "sensitive_features"
        )
        groups = _members(column, names, place)
        families = [
            [(f"{names[g]}{label}", rows & (place == g), (groups[g], *conditions)) for g in range(len(names))]
            for label, rows, conditions in self._populations(dataset, positive)
        ]
        arrays = tuple(
            name for name, values in self._group_arguments if values is not None and not isinstance(values, str)
        )
        return BoundParity(self._name(dataset), dataset, positive, float(self.at_most), families, arrays)

    @property
    def _group_arguments(self) -> list[tuple[str, Any]]:
        """Arguments that hold a value per row or name a column."""
        return [("group", self.group)]

    @property
    def named_columns(self) -> tuple[str, ...]:
        return tuple(values for _, values in self._group_arguments if isinstance(values, str))

    def on_tally(self, counted: bool) -> _BetweenGroups:
        for argument, values in self._group_arguments:
            if values is not None and not isinstance(values, str):
                raise InvalidInputError(
                    f"{type(self).__name__}: an array as {argument} needs rows; on a tally made with "
                    "`sensitive_features`, use None or the name of its groups"
                )
        return self

    def _name(self, dataset: BinaryDataset) -> str:
        between = f" ({self.group})" if isinstance(self.group, str) else ""
        return f"{self.title(dataset)}{between} at most {self.at_most:g}"

    def _populations(self, dataset: BinaryDataset, positive: int) -> list[Population]:
        """Return the populations in which groups are compared."""
        raise NotImplementedError


def _of_class(dataset: BinaryDataset, positive: int) -> Population:
    return " (positive)", dataset.y == positive, (RowSet.of_classes(positive),)


def _not_of_class(dataset: BinaryDataset, positive: int) -> Population:
    others = [label for label in range(dataset.n_classes) if label != positive]
    return " (not positive)", dataset.y != positive, (RowSet.of_classes(*others),)


class StatisticalParity(_BetweenGroups):
    """``|P(positive | g) - P(positive | h)| <= at_most`` for all groups g, h, over the predictions.

    Parameters
    ----------
    group : array (n_samples,) or str, optional
        Numbers, strings or booleans with at least two distinct values. A string names a column of the data. None uses
        the groups passed with the data: ``OptimalTreeClassifier.fit(..., sensitive_features=)``.
    at_most : float
        Required.
    positive : label, optional
        The class whose predictions are compared; by default the second of two classes in sorted order.
    """

    def _populations(self, dataset: BinaryDataset, positive: int) -> list[Population]:
        return [("", np.ones(dataset.n_samples, dtype=bool), ())]


class EqualOpportunity(_BetweenGroups):
    """As `StatisticalParity`, among the samples whose class is positive: equal true-positive rates."""

    def _populations(self, dataset: BinaryDataset, positive: int) -> list[Population]:
        return [_of_class(dataset, positive)]


class PredictiveEquality(_BetweenGroups):
    """As `StatisticalParity`, among the samples whose class is not positive: equal false-positive rates."""

    def _populations(self, dataset: BinaryDataset, positive: int) -> list[Population]:
        return [_not_of_class(dataset, positive)]


class EqualisedOdds(_BetweenGroups):
    """`EqualOpportunity` and `PredictiveEquality` together."""

    def _populations(self, dataset: BinaryDataset, positive: int) -> list[Population]:
        return [_of_class(dataset, positive), _not_of_class(dataset, positive)]


@dataclass(frozen=True, eq=False)
class ConditionalParity(_BetweenGroups):
    """As `StatisticalParity`, among the samples of each value of `given`.

    Parameters
    ----------
    given : array (n_samples,) or str
        Values that may explain a difference: groups are compared among samples with equal values.
    """

    given: Any = None

    @property
    def _group_arguments(self) -> list[tuple[str, Any]]:
        return [("group", self.group), ("given", self.given)]

    def _populations(self, dataset: BinaryDataset, positive: int) -> list[Population]:
        names, place = _groups(self.given, dataset, "ConditionalParity: given")
        members = _members(self.given if isinstance(self.given, str) else "given", names, place)
        return [(f" (given {name})", place == position, (members[position],)) for position, name in enumerate(names)]


@dataclass(frozen=True, eq=False)
class BoundParity(BoundConstraint):
    """A fairness constraint bound to data: within each family of groups, rates may differ by at most a limit.

    Groups without weight have no rate and are ignored.
    """

    name: str
    dataset: BinaryDataset
    positive: int
    at_most: float
    families: list[list[Population]]
    arrays: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        exact = self.dataset.exact
        kept = [[population for population in family if exact.total(population[1])] for family in self.families]
        object.__setattr__(self, "families", kept)
        for _, rows, _ in chain.from_iterable(kept):
            self.dataset.check_rates(rows, self.name)

    @cached_property
    def traits(self) -> Traits:
        exact, limits = self.dataset.exact, []
        for family in self.families:
            shares = [exact.shares(rows) for _, rows, _ in family]
            for (g, (name, *_)), (h, (other, *_)) in permutations(enumerate(family), 2):
                difference = np.zeros((self.dataset.n_samples, self.dataset.n_classes))
                difference[:, self.positive] = shares[g] - shares[h]
                named = f"{self.name}: {name} above {other}"
                limits.append(LinearLimit(named, difference, self.at_most, tolerance=FORGIVEN))
        return Traits(limits=tuple(limits), reads={"class", "weight", "group"}, arrays=self.arrays)

    def statements(self) -> tuple[Statement, ...]:
        exact, predicted = self.dataset.exact, (self.positive,)
        most = tolerated(self.at_most, 1, exact.total() * exact.unit)
        return tuple(
            Statement((Share(Fraction(1), predicted, g, g), Share(Fraction(-1), predicted, h, h)), most)
            for family in self.families
            for (*_, g), (*_, h) in permutations(family, 2)
        )

    @property
    def allowed(self) -> tuple[None, float]:
        return None, self.at_most

    def _difference(self, tree: DecisionTree) -> Fraction:
        """Return the largest difference between two groups, in exact arithmetic."""
        predicted = tree.predictions(self.dataset.X) == self.positive
        largest = Fraction(0)
        for family in self.families:
            cells = predicted.astype(np.int64)
            for place, (_, rows, _) in enumerate(family, 1):
                cells[rows] += 2 * place
            sums = self.dataset.exact.sums(cells, 2 * len(family) + 2)
            rates = [Fraction(one, zero + one) for zero, one in zip(sums[2::2], sums[3::2], strict=True)]
            if rates:
                largest = max(largest, max(rates) - min(rates))
        return largest

    def value(self, tree: DecisionTree) -> float:
        """Return the largest difference between two groups."""
        return float(self._difference(tree))

    def violation(self, tree: DecisionTree) -> float:
        return excess(self._difference(tree), None, self.at_most)


def _members(column: str, names: list[Any], place: IntArray) -> list[RowSet]:
    """Return the rows of every distinct value, by the texts of the values."""
    texts = [str(name).strip() for name in names]
    if len(set(texts)) < len(names):
        texts = [str(position) for position in range(len(names))]
    cells = [texts[position] for position in place.tolist()]
    return [RowSet(column, cells, (text,)) for text in texts]


def _groups(values: Any, dataset: BinaryDataset, where: str) -> tuple[list[Any], IntArray]:
    """Return the distinct values in sorted order, and the place of each row's value among them."""
    distinct, place = distinct_values(row_values(values, dataset, where), dataset.n_samples, where, "row")
    if len(distinct) > _MOST_GROUPS:
        raise InvalidInputError(f"{where} has {len(distinct)} distinct values; at most {_MOST_GROUPS} are supported")
    if len(distinct) < 2:
        raise InvalidInputError(f"{where} must have at least two distinct values, got {shown(distinct)}")
    return distinct, place
