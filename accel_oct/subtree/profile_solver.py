"""Profiles of any depth, with the trees behind them.

Up to depth four this is one run of the compiled levels; deeper trees go through the root features one by one, each with
two profiles one level lower, the most promising first (see `root_board`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.deep_levels import DeepLevels
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.profile_roots import ProfileRoots, Report
from accel_oct.subtree.profiles import Profile, Units, better_of, convolve, extended, find_split, with_leaf
from accel_oct.subtree.reduction import Reduced
from accel_oct.subtree.root_board import Start
from accel_oct.subtree.steps import Steps
from accel_oct.subtree.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.subtree.tallied_data import TalliedData, samples_at
from accel_oct.subtree.tallied_roots import TalliedRoots
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Beginning:
    """What is known before root features are opened, and a tree for every number of leaves that reaches it."""

    start: Start
    tree: Callable[[int], DecisionTree]


class ProfileSolver:
    """Profiles of reduced data of any depth.

    Parameters
    ----------
    stopper : Stopper
    threads : int
        Threads of the compiled levels.
    memory_limit : int
        Bytes for the tables of levels three and four; larger problems go root by root.
    """

    def __init__(
        self, stopper: Stopper | None = None, threads: int = 1, memory_limit: int = DEFAULT_MEMORY_LIMIT
    ) -> None:
        self.stopper = stopper or Stopper()
        self.threads = threads
        self.memory_limit = memory_limit

    def solve(self, data: Reduced, depth: int, report: Report | None = None, steps: Steps | None = None) -> Profile:
        """Profile of depth `depth`; exact unless stopped.

        `report` hears of the scores and bounds of these very data, and `steps` of how far their search is: the
        searches below a root have neither.
        """
        known = self.begin(data, depth, steps, report)
        if isinstance(known, Profile):
            return known
        return ProfileRoots(self, data, depth, known.start, known.tree, steps).run(report)

    def begin(
        self, data: Reduced, depth: int, steps: Steps | None = None, report: Report | None = None
    ) -> Profile | Beginning:
        """The profile where tables give it, else what they say before root features are opened one by one.

        A tally has no rows that would say anything of its root features: it is searched to the end, with `report`.
        """
        if depth == 0 or data.n_features == 0:
            return self._leaf(data, depth)
        if depth == 1:
            return self._shallow(PairLevel(data, depth=1), 1)
        table_limit = 0 if depth == 2 else DeepLevels.table_limit(self.memory_limit, self.threads)
        pairs = PairLevel(data, self.stopper, table_limit)
        if depth == 2:
            return self._shallow(pairs, depth)
        if not pairs.exact:
            return self._stopped(pairs, depth, pairs.profile, pairs.upper_profile)
        if pairs.profile[3] == self._ceiling(pairs) or not data.has_room_for(4):
            # Nothing can be better with four leaves or more, and depth two is exact for fewer.
            values = extended(pairs.profile, depth)
            return Profile(values, values, pairs.tree)
        if isinstance(data, TalliedData):
            return self._tallied(pairs, depth, steps, report)
        if not DeepLevels.possible(pairs, self.memory_limit, self.threads):
            return Beginning(Start.of(data, depth, pairs.profile, pairs.side_profiles, 2), pairs.tree)
        if depth >= 4 and DeepLevels.fits(pairs, self.memory_limit):
            return self._deeper(pairs, depth, *self._four(pairs, steps))
        return self._deeper(pairs, depth, *self._three(pairs, steps))

    def _deeper(self, pairs: PairLevel, depth: int, found: Profile, sides: Floats) -> Profile | Beginning:
        """What profiles of some depth, of all samples and of all sides, say about this one."""
        shallower = found.lower.size.bit_length() - 1
        if depth == shallower:
            return found
        ceiling, exact = self._ceiling(pairs), shallower + 1
        lower = extended(found.lower, depth)
        if found.exact and found.lower[exact] < ceiling:
            return Beginning(Start.of(pairs.data, depth, found.lower, sides, shallower), found.tree)
        # Either the time is up, or nothing can be better with more leaves than all trees of this depth have.
        upper = np.full(2**depth, ceiling)
        upper[:exact] = found.upper[:exact]
        return Profile(lower, np.maximum(upper, lower), found.tree)

    def _tallied(self, pairs: PairLevel, depth: int, steps: Steps | None, report: Report | None) -> Profile:
        compiled = DeepLevels.possible(pairs, self.memory_limit, self.threads)
        if depth == 3 and compiled:
            return self._three(pairs, steps)[0]
        if depth == 4 and compiled and DeepLevels.fits(pairs, self.memory_limit):
            return self._four(pairs, steps)[0]
        return TalliedRoots(self, pairs, depth, steps).run(report)

    def _leaf(self, data: Reduced, depth: int) -> Profile:
        counts = data.class_weights
        number = Units(data.signed).from_score(counts.max(), counts.sum()) if data.allows_a_leaf else -np.inf
        values = np.full(2**depth, float(number))
        return Profile(values, values, lambda leaves: DecisionTree.leaf(int(np.argmax(counts))))

    def _shallow(self, pairs: PairLevel, depth: int) -> Profile:
        return Profile(pairs.profile[: 2**depth], pairs.upper_profile[: 2**depth], pairs.tree)

    def _three(self, pairs: PairLevel, steps: Steps | None = None) -> tuple[Profile, Floats]:
        """Profile of depth three, and those of depth two of all sides."""
        deep = DeepLevels(pairs, False, self.threads, steps)
        if not deep.level_three(self.stopper):
            return self._stopped(pairs, 3, pairs.profile, pairs.profile), deep.side_profiles
        sides = deep.side_profiles
        values = with_leaf(convolve(sides[:, 0], sides[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        return Profile(values, values, lambda leaves: self._rebuild(pairs, sides, values, leaves)), sides

    def _four(self, pairs: PairLevel, steps: Steps | None) -> tuple[Profile, Floats]:
        """Profile of depth four, and those of depth three of all sides (not when the former is known without them)."""
        deep = DeepLevels(pairs, True, self.threads, steps)
        if not deep.level_three(self.stopper):
            return self._stopped(pairs, 4, pairs.profile, pairs.profile), deep.side_profiles
        sides = deep.side_profiles
        three = with_leaf(convolve(sides[:, 0], sides[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        if three[4] == self._ceiling(pairs):
            values = extended(three, 4)
            return Profile(values, values, lambda leaves: self._rebuild(pairs, sides, three, min(leaves, 8))), sides
        finished = deep.level_four(self.stopper)
        below = deep.pair_profiles()
        deeper = sides_from_pairs(pairs, below)
        values = with_leaf(convolve(deeper[:, 0], deeper[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        # Callers keep profiles for their trees: the counters' own dtype is a quarter of the size or less. Under rules
        # there may be minus infinity, which integers have not.
        compact = below.astype(deep.dtype) if pairs.data.rules is None else below
        found = Profile(values, values, lambda leaves: self._rebuild(pairs, deeper, values, leaves, compact))
        return found if finished else better_of(found, self._stopped(pairs, 4, three, three)), deeper

    def _rebuild(
        self, pairs: PairLevel, sides: Floats, values: Floats, leaves: int, below: Floats | None = None
    ) -> DecisionTree:
        """Find the split that gives ``values[leaves - 1]`` and rebuild its sides."""
        data = pairs.data
        exactly = ProfileSolver(None, self.threads, self.memory_limit)  # also when this one was stopped meanwhile
        found = find_split(sides[:, 0], sides[:, 1], values, leaves)
        if found is None:
            return pairs.tree(1)
        column, zero, one = found
        children = []
        for side, part in ((0, zero), (1, one)):
            child = samples_at(data, (column, side))
            if below is None or part <= 2:
                children.append(exactly.solve(child, 2).tree(part))
                continue
            second = find_split(below[column, side, :, 0], below[column, side, :, 1], sides[column, side], part)
            if second is None:
                children.append(exactly.solve(child, 0).tree(1))
                continue
            grandchildren = [exactly.solve(samples_at(data, (column, side), (second[0], value)), 2) for value in (0, 1)]
            children.append(data.branch(second[0], grandchildren[0].tree(second[1]), grandchildren[1].tree(second[2])))
        return data.branch(column, children[0], children[1])

    def _stopped(self, pairs: PairLevel, depth: int, known: Floats, proven: Floats) -> Profile:
        """What is certain after an early stop: a profile of lower depth, its bounds, the equivalent-point bound."""
        lower = extended(known, depth)
        upper = np.full(2**depth, self._ceiling(pairs))
        # A tree with at most h leaves has depth below h, so what bounds the shallower profile does so for few leaves.
        certain = known.size.bit_length()
        upper[:certain] = proven[:certain]
        return Profile(lower, np.maximum(upper, lower), pairs.tree if known.size <= 4 else self._tree_three(pairs))

    @staticmethod
    def _ceiling(pairs: PairLevel) -> float:
        """What no tree exceeds, in table units."""
        return float(pairs.units.from_score(pairs.data.row_ceiling.sum(), pairs.data.total_weight))

    def _tree_three(self, pairs: PairLevel) -> Callable[[int], DecisionTree]:
        return lambda leaves: ProfileSolver(None, self.threads, self.memory_limit)._three(pairs)[0].tree(leaves)


def sides_from_pairs(pairs: PairLevel, below: Floats) -> Floats:
    """Depth-three profiles (F, 2, 8) of the sides of every feature from the depth-two profiles of all pairs."""
    result = np.full((pairs.n_features, 2, 8), -np.inf)
    for column in range(pairs.n_features):
        split = convolve(below[column, :, :, 0], below[column, :, :, 1])
        split[:, column] = -np.inf
        result[column] = split.max(axis=1)
    return with_leaf(result, pairs.side_profiles[:, :, 0])
