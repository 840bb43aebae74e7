"""Rules about the set of features that a tree uses, all of them at once.

What keeps such a rule keeps it with fewer features. Columns that no rule tells apart form a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import BoundConstraint, FeatureRule

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_MOST_ONE_BY_ONE = 4000
"""Sets that are looked at where no formula lists them."""


class SetRules:
    """All rules together, about common groups.

    Parameters
    ----------
    rules : sequence of FeatureRule
        At least one.

    Attributes
    ----------
    of_column : int array (n_features,)
        The common group of every column.
    size : int
        How many there are.
    """

    def __init__(self, rules: Sequence[FeatureRule]) -> None:
        self._rules = list(rules)
        parts, of_column = np.unique([rule.group for rule in self._rules], axis=1, return_inverse=True)
        self.of_column: IntArray = of_column.ravel()
        self.size = int(parts.shape[1])
        self._part_of: IntArray = parts
        self._parts: list[list[int]] = parts.tolist()
        self._affordable: dict[frozenset[int], BoolArray] = {}

    @classmethod
    def of(cls, constraints: Sequence[BoundConstraint]) -> SetRules:
        """The rules about features among bound constraints."""
        declared = [constraint.traits.features for constraint in constraints]
        return cls([rule for rule in declared if rule is not None])

    def keep(self, groups: Iterable[int]) -> bool:
        """Whether a tree that uses these groups keeps every rule."""
        groups = list(groups)
        return all(
            rule.excess({part[g] for g in groups}) <= 0 for rule, part in zip(self._rules, self._parts, strict=True)
        )

    def paid(self, groups: frozenset[int]) -> frozenset[int]:
        """These groups, and all others that take nothing from what may be used besides."""
        free = np.ones(self.size, dtype=bool)
        for rule, part, part_of in zip(self._rules, self._parts, self._part_of, strict=True):
            free &= rule.free({part[g] for g in groups})[part_of]
        return groups | frozenset(np.flatnonzero(free).tolist())

    def affordable(self, chosen: frozenset[int]) -> BoolArray:
        """Which groups can be used together with the chosen ones; those themselves among them."""
        known = self._affordable.get(chosen)
        if known is None:
            known = np.array([self.keep(chosen | {g}) for g in range(self.size)], dtype=bool)
            self._affordable[chosen] = known
        return known

    def columns(self, groups: BoolArray) -> IntArray:
        """The columns of some groups."""
        return np.flatnonzero(groups[self.of_column])

    def largest(self, chosen: frozenset[int], open_: BoolArray, most: int) -> IntArray | None:
        """All sets of open groups, the chosen ones among them, to which none can be added.

        A row each, filled up with -1. None where they are more than `most`.
        """
        first = self.paid(chosen)
        room = self._rules[0].most if len(self._rules) == 1 else None
        if room is not None:
            return self._of_equal_price(first, open_, room, most)
        found: set[frozenset[int]] = set()
        waiting, seen, allowed = [first], {first}, frozenset(np.flatnonzero(open_).tolist())
        while waiting:
            groups = waiting.pop()
            if len(seen) > min(most, _MOST_ONE_BY_ONE):
                return None
            more = [g for g in np.flatnonzero(self.affordable(groups) & open_).tolist() if g not in groups]
            if not more:
                found.add(groups & allowed)  # what was excluded may be free by now
            for group in more:
                larger = self.paid(groups | {group})
                if larger not in seen:
                    seen.add(larger)
                    waiting.append(larger)
        length = max((len(groups) for groups in found), default=0)
        return np.array([[*sorted(groups), *[-1] * (length - len(groups))] for groups in sorted(found, key=sorted)])

    @staticmethod
    def _of_equal_price(first: frozenset[int], open_: BoolArray, room: int, most: int) -> IntArray | None:
        others = [g for g in np.flatnonzero(open_).tolist() if g not in first]
        count = min(room - len(first), len(others))
        n_sets = comb(len(others), count)
        if n_sets > most:
            return None
        chosen = np.fromiter(chain.from_iterable(combinations(others, count)), np.int64).reshape(n_sets, count)
        return np.column_stack([np.tile(sorted(first), (len(chosen), 1)).astype(np.int64), chosen])
