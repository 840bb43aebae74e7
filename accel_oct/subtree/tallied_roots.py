"""Profiles of deep trees on a tally: root features one by one, where the compiled levels do not reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.profile_roots import Report, SideSolver
from accel_oct.subtree.profiles import Profile, convolve, extended, find_split
from accel_oct.subtree.steps import Steps
from accel_oct.subtree.tallied_data import samples_at
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]


class TalliedRoots:
    """Profile of depth d from the profiles of depth d - 1 of both sides of every root feature.

    Points are not known, so nothing is known of a root before it is searched but that no tree earns more than all.
    """

    def __init__(self, solver: SideSolver, pairs: PairLevel, depth: int, steps: Steps | None = None) -> None:
        self._solver, self._pairs, self._depth, self._steps = solver, pairs, depth, steps
        self.lower = extended(pairs.profile, depth)
        self._choice: dict[int, tuple[int, Profile, Profile]] = {}

    def run(self, report: Report | None = None) -> Profile:
        """Search all roots, or as many as there is time for."""
        data, n_features = self._pairs.data, self._pairs.n_features
        exact = True
        for f in range(n_features):
            if self._steps is not None:
                self._steps.roots = (n_features - f, n_features)
            if self._solver.stopper():
                exact = False
                break
            zero, one = (self._solver.solve(samples_at(data, (f, side)), self._depth - 1) for side in (0, 1))
            exact &= zero.exact and one.exact
            split = convolve(zero.lower, one.lower)
            for h in np.flatnonzero(split > self.lower):
                self._choice[int(h)] = (f, zero, one)
            self.lower = np.maximum.accumulate(np.maximum(self.lower, split))
            if report is not None:
                report(self.lower, self._upper(False))
        return Profile(self.lower, self._upper(exact), self._tree)

    def _upper(self, exact: bool) -> Floats:
        if exact:
            return self.lower
        data = self._pairs.data
        upper = np.maximum(self.lower, float(self._pairs.units.from_score(data.row_ceiling.sum(), data.total_weight)))
        upper[:3] = self.lower[:3]  # with three leaves a tree has depth two at most
        return upper

    def _tree(self, leaves: int) -> DecisionTree:
        goal = self.lower[leaves - 1]
        if goal == self._pairs.profile[min(leaves, 4) - 1]:
            return self._pairs.tree(leaves)
        fewest = int(np.searchsorted(self.lower, goal))
        f, zero, one = self._choice[fewest]
        found = find_split(zero.lower[None], one.lower[None], self.lower, fewest + 1)
        assert found is not None
        return self._pairs.data.branch(f, zero.tree(found[1]), one.tree(found[2]))
