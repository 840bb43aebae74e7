"""Repair: from the best tree at some prices to a good tree that satisfies the limits.

The top of the tree is kept. The parts below, of depth two, are replaced: each has the outcomes that are close to the
best at the prices, and for two parts at a time the best pair is taken that satisfies the limits with the other parts
fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, islice

import numpy as np

from accel_oct.exact.enumeration import SampleSet
from accel_oct.exact.limited import Limited, Outcomes, PricedProblem, TooMany
from accel_oct.tree import DecisionTree

_ENOUGH = 1000
"""Most outcomes of a part, those with the least loss."""

_MOST_PAIRS = 200_000
"""Most pairs of outcomes for a part; they take some milliseconds."""

_ROUNDS = 10


@dataclass
class Repair:
    """Improves trees of depth three or more at some prices.

    Parameters
    ----------
    offer : callable (DecisionTree) -> float
        Takes trees that satisfy the limits; returns the value of the best tree known.
    """

    problem: Limited
    priced: PricedProblem
    offer: Callable[[DecisionTree], float]
    should_stop: Callable[[], bool]
    memory_limit: int = 1 << 30
    _tried: set[DecisionTree] = field(default_factory=set)
    _known: dict[bytes, Outcomes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.possible = self.problem.max_depth > 2
        if self.possible:
            self._columns = self.problem.columns
            self._sets = self.problem.outcomes(
                self.priced, self.should_stop, memory_limit=self.memory_limit, most_pairs=_MOST_PAIRS
            )

    def run(self, trees: Iterable[DecisionTree]) -> None:
        """Repair some trees, each top once, and offer the results."""
        for tree in trees if self.possible else ():
            if not self.should_stop():
                self._improve(tree.with_max_depth(self.problem.max_depth))

    def _improve(self, tree: DecisionTree) -> None:
        last = tree.max_depth - 2
        nodes = [n for n in range(1, 2 ** (last + 1)) if n.bit_length() > last or tree.feature[n - 1] < 0]
        nodes = [n for n in nodes if not tree.is_cut(n)]
        top = tree
        for node in nodes:
            top = top.with_subtree(node, DecisionTree.leaf(0))
        if top in self._tried:
            return
        self._tried.add(top)
        try:
            parts = [
                self._part(self.problem.reached(tree.path(node)), [feature for feature, _ in tree.path(node)])
                for node in nodes
            ]
            choice = self._choice(parts)
        except TooMany:
            return
        if choice is not None:
            for node, part, place in zip(nodes, parts, choice, strict=True):
                top = top.with_subtree(node, part.tree(place))
            self.offer(top)

    def _part(self, samples: SampleSet, path: list[int]) -> Outcomes:
        """Return outcomes of the samples at the end of a path, with increasing slack until there are enough."""
        columns = self.problem.columns_below(self._columns, path)
        key = self.problem.key(samples) + columns.tobytes()
        if key not in self._known:
            total = self.problem.total_weight
            slack = total / max(1, self.problem.size)
            found = self._sets.two(samples, columns, 2, 0.0)
            while found.loss.size < _ENOUGH and slack < total:
                try:
                    found = self._sets.two(samples, columns, 2, slack)
                except TooMany:
                    break
                slack *= 4
            self._known[key] = Outcomes(found.loss[:_ENOUGH], found.results[:_ENOUGH], found.choice[:_ENOUGH])
        return self._known[key]

    def _choice(self, parts: list[Outcomes]) -> list[int] | None:
        """Return outcomes, one per part, that satisfy the limits, locally optimal for pairs of parts; None if none."""
        choice, value = [0] * len(parts), -np.inf
        for _ in range(_ROUNDS):
            before = value
            for a, b in combinations(range(len(parts)), 2):
                others = [parts[c].results[choice[c]] for c in range(len(parts)) if c not in (a, b)]
                rest = np.sum([np.zeros(1 + self.problem.n_limits), *others], axis=0)
                above = value - float(rest[0])
                pairs = self._sets.pairs_by_value(
                    parts[a], parts[b], np.inf, self.problem.upper - rest[1:], partial(float, above)
                )
                for pair, i, j in islice(pairs, 1):
                    value, choice[a], choice[b] = pair + float(rest[0]), i, j
            if value == before:
                break
        return choice if np.isfinite(value) else None
