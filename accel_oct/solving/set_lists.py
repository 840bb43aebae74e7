"""All sets of groups that the rules allow, looked up in tables of the best split per group."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.exact.group_sets import GroupSets
from accel_oct.exact.stopping import Stopper
from accel_oct.solving.set_rules import SetRules

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_MOST_SETS = 3 * 10**6
_AT_ONCE, _PATIENCE = 0.05, 4.0
"""Seconds that looking at all sets may take before anything else was tried; and how many times what others took."""


class SetLists:
    """The largest sets that the rules allow, for trees of depth three or four of which nothing else is asked.

    Parameters
    ----------
    dataset : BinaryDataset
    rules : SetRules
    """

    def __init__(
        self,
        dataset: BinaryDataset,
        rules: SetRules,
        max_depth: int,
        leaf_price: float,
        stopper: Stopper,
        memory_limit: int,
    ) -> None:
        self._dataset, self._rules = dataset, rules
        self._max_depth, self._leaf_price = max_depth, leaf_price
        self._stopper, self._memory_limit = stopper, memory_limit

    @cached_property
    def _sets(self) -> IntArray | None:
        """None where they are too many, or their tables too large."""
        if self._max_depth not in (3, 4):
            return None
        free = self._rules.paid(frozenset())
        found = self._rules.largest(free, self._rules.affordable(free), _MOST_SETS)
        if found is None or not found.size:
            return None
        return found if self._tables.table_bytes <= self._memory_limit else None

    @cached_property
    def _tables(self) -> GroupSets:
        data, rules = self._dataset, self._rules
        open_ = rules.affordable(rules.paid(frozenset()))
        group = np.where(open_[rules.of_column], rules.of_column, -1)
        return GroupSets(data.X, data.y, data.weights, data.n_classes, group, self._leaf_price, self._max_depth)

    @property
    def size(self) -> int:
        """How many sets there are, as far as they can be listed."""
        return 0 if self._sets is None else len(self._sets)

    @cached_property
    def seconds(self) -> float:
        """How long it would take to look at all of them, roughly."""
        return np.inf if self._sets is None else self._tables.seconds(len(self._sets), self._sets.shape[1])

    def is_quicker(self, spent: float) -> bool:
        """Whether looking at all sets is worth trying after other means have had so many seconds."""
        return self.seconds <= max(_AT_ONCE, _PATIENCE * spent)

    def search(self, known: float, found: Callable[[BoolArray], float]) -> bool:
        """Look at all sets; `found` hears of those that are better and returns what is known then. False if stopped."""
        sets = self._sets
        assert sets is not None

        def told(number: int) -> float:
            groups = np.zeros(self._rules.size, dtype=bool)
            groups[sets[number][sets[number] >= 0]] = True
            return found(groups)

        return self._tables.search(sets, known, self._stopper, told)
