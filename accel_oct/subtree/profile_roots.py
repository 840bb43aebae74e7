"""Profiles of deep trees: root features one by one, with bounds that say which can still matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.deep_levels import DeepLevels
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.profiles import Profile, convolve, find_split
from accel_oct.subtree.reduction import Reduced, as_factor, both_sides, similar_sides
from accel_oct.subtree.steps import Steps
from accel_oct.subtree.stopping import Stopper
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]
Report = Callable[[Floats, Floats], None]


class SideSolver(Protocol):
    """Who computes the profiles of sides, within which limits; `ProfileSolver` in practice."""

    stopper: Stopper
    threads: int
    memory_limit: int

    def solve(self, data: Reduced, depth: int) -> Profile:
        """Profile of depth `depth`; exact unless stopped."""
        ...


class ProfileRoots:
    """Profile of depth d from the profiles of depth d - 1 of both sides of every root feature.

    Every feature has an upper profile for each side: exact for few leaves (the depth-two profiles of level three), the
    equivalent-point bound for many, and what similar sides that are known already allow: V(S) <= V(S') + W(S - S').
    Features that cannot improve any number of leaves are never opened.
    """

    def __init__(self, solver: SideSolver, pairs: PairLevel, depth: int, steps: Steps | None = None) -> None:
        self._solver = solver
        self._steps = steps
        self._pairs = pairs
        self._depth = depth
        data = pairs.data
        self._F = pairs.n_features
        half = 2 ** (depth - 1)
        self._X = as_factor(data.X)
        self._weights = both_sides(data.weights, self._X)
        ceilings = both_sides(data.row_ceiling, self._X)
        self._upper = np.repeat(self._number(ceilings)[:, :, None], half, axis=2)
        if DeepLevels.possible(pairs, solver.memory_limit, solver.threads):
            deep = DeepLevels(pairs, False, solver.threads, steps)
            if deep.level_three(solver.stopper):
                # Depth two is exact up to three leaves: four leaves may form a chain of depth three.
                self._upper[:, :, :3] = deep.side_profiles[:, :, :3]
        self._done = np.zeros(self._F, dtype=bool)
        self.lower = np.concatenate([pairs.profile, np.full(2**depth - 4, pairs.profile[-1])])
        self._choice: dict[int, tuple[int, Profile, Profile]] = {}

    def _number(self, scores: Floats) -> Floats:
        return np.asarray(self._pairs.units.from_score(scores, self._weights), dtype=np.float64)

    def run(self, report: Report | None = None) -> Profile:
        """Open root features, the most promising first, until none can improve anything or time is up."""
        potential = convolve(self._upper[:, 0], self._upper[:, 1])
        while True:
            gain = np.where(self._done, -np.inf, (potential - self.lower).max(axis=1))
            f = int(np.argmax(gain))
            if self._steps is not None:
                self._steps.roots = (int((gain > 0).sum()), self._F)
            if gain[f] <= 0 or self._solver.stopper():
                break
            sides = [self._solve_side(f, side) for side in (0, 1)]
            split = convolve(sides[0].lower, sides[1].lower)
            better = split > self.lower
            self.lower = np.maximum.accumulate(np.maximum(self.lower, split))
            for h in np.flatnonzero(better):
                self._choice[int(h)] = (f, sides[0], sides[1])
            exact = True
            for side in (0, 1):
                self._upper[f, side] = np.minimum(self._upper[f, side], sides[side].upper)
                exact &= sides[side].exact
                self._tighten(f, side)
            potential = convolve(self._upper[:, 0], self._upper[:, 1])
            self._done[f] = exact
            if report is not None:
                report(self.lower, self._bound(potential))
        return Profile(self.lower, self._bound(potential), self._tree)

    def _solve_side(self, f: int, side: int) -> Profile:
        data = self._pairs.data
        return self._solver.solve(data.restricted(data.X[:, f] == side, f), self._depth - 1)

    def _tighten(self, f: int, side: int) -> None:
        """Similar support: carry the profile of a known side over to the sides of all other features."""
        data = self._pairs.data
        extra = both_sides(data.weights * (data.X[:, f] != side), self._X)
        known = self._pairs.units.to_score(self._upper[f, side], self._weights[f, side])
        scores = known[None, None, :] + extra[:, :, None]
        bound = self._pairs.units.from_score(scores, self._weights[:, :, None])
        alike = similar_sides(data, self._X, f, side)
        np.minimum(self._upper, bound, out=self._upper, where=True if alike is None else alike[:, :, None])

    def _bound(self, potential: Floats) -> Floats:
        """Upper profile: the best that any root, known or not, may still reach."""
        upper = np.maximum(self.lower, np.where(self._done[:, None], -np.inf, potential).max(axis=0))
        upper[0] = self.lower[0]
        return np.asarray(np.maximum.accumulate(upper))

    def _tree(self, leaves: int) -> DecisionTree:
        goal = self.lower[leaves - 1]
        if goal == self._pairs.profile[min(leaves, 4) - 1]:
            return self._pairs.tree(leaves)
        fewest = int(np.searchsorted(self.lower, goal))
        f, zero, one = self._choice[fewest]
        found = find_split(zero.lower[None], one.lower[None], self.lower, fewest + 1)
        assert found is not None
        return self._pairs.data.branch(f, zero.tree(found[1]), one.tree(found[2]))
