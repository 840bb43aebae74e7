"""Profiles of any depth, with the trees behind them.

Up to depth four this is one run of the compiled levels; deeper trees go through the root features one by one, each with
two profiles one level lower, the most promising first (see `root_board`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accel_oct.exact.levels import DeepLevels, PairLevel, ceiling_of
from accel_oct.exact.profiles import Profile, Units, better_of, convolve, extended, find_split, with_leaf
from accel_oct.exact.root_board import RootBoard, Start
from accel_oct.exact.samples import Samples
from accel_oct.exact.steps import SearchCounts, Steps
from accel_oct.support.arrays import FloatArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree

Report = Callable[[FloatArray, FloatArray], None]

_PATIENCE = 4.0
"""Level three is not begun when its estimate is so many times the time left: roots one by one find more."""


@dataclass(frozen=True)
class Known:
    """What the tables say of a set of samples, in table units.

    Attributes
    ----------
    depth : int
        Of the trees in `profile`; the depth that was asked for, or less.
    profile : Profile
        Exact unless stopped.
    sides : float array (F, 2, 2**(depth - 1))
        Profiles of both sides of every feature.
    complete : bool
        No deeper tree is better, whatever its number of leaves.
    """

    depth: int
    profile: Profile
    sides: FloatArray
    complete: bool = False

    @property
    def exact_leaves(self) -> int:
        """Up to so many leaves a tree has no more than this depth."""
        return self.depth + 1

    def extended(self, size: int, ceiling: float) -> Profile:
        """As a profile of deeper trees, for as many leaves: beyond `exact_leaves`, no tree exceeds the ceiling."""
        lower = extended(self.profile.lower, size)
        if self.complete:
            return Profile(lower, extended(self.profile.upper, size), self.profile.tree)
        upper = np.full(size, ceiling)
        upper[: self.exact_leaves] = self.profile.upper[: self.exact_leaves]
        return Profile(lower, np.maximum(upper, lower), self.profile.tree)


@dataclass(frozen=True)
class Beginning:
    """What is known before root features are opened, and a tree for every number of leaves that reaches it."""

    start: Start
    tree: Callable[[int], DecisionTree]


class ProfileSolver:
    """Profiles of any depth.

    Parameters
    ----------
    stopper : Stopper
    threads : int
        Threads of the compiled levels.
    memory_limit : int
        Bytes for the tables of levels three and four; larger problems go root by root.
    counts : SearchCounts, optional
        Filled while the search goes on.
    most_leaves : int, optional
        Profiles end there: no tree with more leaves is wanted, or better.
    """

    def __init__(
        self,
        stopper: Stopper | None = None,
        threads: int = 1,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        counts: SearchCounts | None = None,
        most_leaves: int | None = None,
    ) -> None:
        self.stopper = stopper or Stopper()
        self.threads = threads
        self.memory_limit = memory_limit
        self.counts = counts or SearchCounts()
        self.most_leaves = most_leaves

    def size(self, depth: int) -> int:
        """Length of a profile; up to depth four, which is one table, there is an entry for every leaf."""
        every: int = 2**depth
        return every if self.most_leaves is None else min(every, max(self.most_leaves, 16))

    def solve(self, data: Samples, depth: int, report: Report | None = None, steps: Steps | None = None) -> Profile:
        """Profile of depth `depth`; exact unless stopped.

        `report` hears of the scores and bounds of these very data, and `steps` of how far their search is: the
        searches below a root have neither.
        """
        known = self.begin(data, depth, steps)
        if isinstance(known, Profile):
            return known
        return ProfileRoots(self, data, depth, known.start, known.tree, steps).run(report)

    def begin(self, data: Samples, depth: int, steps: Steps | None = None) -> Profile | Beginning:
        """The profile where tables give it, else what they say before root features are opened one by one."""
        ceiling = ceiling_of(data)
        known = self.levels(data, depth, lambda known: bool(known.profile.lower[known.exact_leaves] == ceiling), steps)
        found = known.profile if known.depth == depth else known.extended(self.size(depth), ceiling)
        if known.depth == depth or found.exact or not known.profile.exact or self.stopper():
            return found
        sizes = self.size(depth), self.size(depth - 1)
        return Beginning(Start.of(data, *sizes, known.profile.lower, known.sides, known.depth), known.profile.tree)

    def levels(self, data: Samples, depth: int, enough: Callable[[Known], bool], steps: Steps | None = None) -> Known:
        """What tables say, level by level up to `depth` or four; until they do not fit or `enough` is true."""
        if depth == 0 or data.n_features == 0:
            return Known(depth, self._leaf(data, depth), np.zeros((0, 2, 0)), complete=data.n_features == 0)
        self.counts.pair_levels += 1
        if depth == 1:
            return _known_two(PairLevel(data, depth=1), 1)
        in_time = depth > 2 and DeepLevels.seconds(data) <= _PATIENCE * self.stopper.remaining
        table_limit = DeepLevels.table_limit(self.memory_limit, self.threads) if in_time else 0
        pairs = PairLevel(data, self.stopper, table_limit)
        known = _known_two(pairs, 2, complete=not data.has_room_for(4))
        if depth == 2 or known.complete or not pairs.exact or enough(known) or self.stopper():
            return known
        if not in_time or not DeepLevels.possible(pairs, self.memory_limit, self.threads):
            return known
        fits = depth > 3 and DeepLevels.fits(pairs, self.memory_limit)
        deep = DeepLevels(pairs, fits, self.threads, steps)
        self.counts.level_three += 1
        if not deep.level_three(self.stopper):
            return known
        known = self._three(pairs, deep)
        if not fits or enough(known):
            return known
        self.counts.level_four += 1
        return self._four(pairs, deep, known)

    def _leaf(self, data: Samples, depth: int) -> Profile:
        counts = data.class_weights
        number = Units(data.signed).from_score(counts.max(), counts.sum()) if data.allows_a_leaf else -np.inf
        values = np.full(self.size(depth), float(number))
        return Profile(values, values, lambda leaves: DecisionTree.leaf(int(np.argmax(counts))))

    def _three(self, pairs: PairLevel, deep: DeepLevels) -> Known:
        sides = deep.side_profiles
        values = with_leaf(convolve(sides[:, 0], sides[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        return Known(3, Profile(values, values, lambda leaves: self._rebuild(pairs, sides, values, leaves)), sides)

    def _four(self, pairs: PairLevel, deep: DeepLevels, three: Known) -> Known:
        finished = deep.level_four(self.stopper)
        below = deep.pair_profiles()
        sides = sides_from_pairs(pairs, below)
        values = with_leaf(convolve(sides[:, 0], sides[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        # Callers keep profiles for their trees: the counters' own dtype is a quarter of the size or less. Under rules
        # there may be minus infinity, which integers have not.
        compact = below.astype(deep.dtype) if pairs.data.rules is None else below
        found = Profile(values, values, lambda leaves: self._rebuild(pairs, sides, values, leaves, compact))
        return Known(4, found if finished else better_of(found, three.extended(16, ceiling_of(pairs.data))), sides)

    def _rebuild(
        self, pairs: PairLevel, sides: FloatArray, values: FloatArray, leaves: int, below: FloatArray | None = None
    ) -> DecisionTree:
        """Find the split that gives ``values[leaves - 1]`` and rebuild its sides."""
        data = pairs.data
        leaves = min(leaves, values.size)
        exactly = ProfileSolver(None, self.threads, self.memory_limit)  # also when this one was stopped meanwhile
        found = find_split(sides[:, 0], sides[:, 1], values, leaves)
        if found is None:
            return pairs.tree(1)
        column, zero, one = found
        children = []
        for side, part in ((0, zero), (1, one)):
            child = data.at((column, side))
            if below is None or part <= 2:
                children.append(exactly.solve(child, 2).tree(part))
                continue
            second = find_split(below[column, side, :, 0], below[column, side, :, 1], sides[column, side], part)
            if second is None:
                children.append(exactly.solve(child, 0).tree(1))
                continue
            grandchildren = [exactly.solve(data.at((column, side), (second[0], value)), 2) for value in (0, 1)]
            children.append(data.branch(second[0], grandchildren[0].tree(second[1]), grandchildren[1].tree(second[2])))
        return data.branch(column, children[0], children[1])


class ProfileRoots:
    """Profile of depth d from the profiles of depth d - 1 of sides of root features; `RootBoard` says of which.

    Parameters
    ----------
    solver : ProfileSolver
    data : Samples
    depth : int
    start : Start
    shallow : callable
        A tree that reaches `start.lower` for a number of leaves.
    """

    def __init__(
        self,
        solver: ProfileSolver,
        data: Samples,
        depth: int,
        start: Start,
        shallow: Callable[[int], DecisionTree],
        steps: Steps | None = None,
    ) -> None:
        self._solver = solver
        self._data = data
        self._steps = steps
        self._shallow = shallow
        self._board = RootBoard(data, depth, start)
        self._choice: dict[int, tuple[int, Profile, Profile]] = {}

    def run(self, report: Report | None = None) -> Profile:
        """Open root features, the most promising first, until none can improve anything or time is up."""
        board, pending = self._board, dict[tuple[int, int], Profile]()
        while True:
            wanted = next(board.wanted(), None)
            if self._steps is not None:
                self._steps.roots = (int(board.open_roots().sum()), self._data.n_features)
            if wanted is None or self._solver.stopper():
                break
            f, side = wanted
            found = self._solver.solve(self._data.at((f, side)), board.depth - 1)
            pending = {key: profile for key, profile in pending.items() if key[0] == f}
            pending[f, side] = found
            for h in board.absorb(f, side, found.lower, found.upper):
                self._choice[h] = (f, pending[f, 0], pending[f, 1])
            if report is not None:
                report(board.lower, board.bound())
        return Profile(board.lower, board.bound(), self._tree)

    def _tree(self, leaves: int) -> DecisionTree:
        lower = self._board.lower
        fewest = int(np.searchsorted(lower, lower[leaves - 1]))
        if self._board.root_of(fewest + 1) is None:
            return self._shallow(fewest + 1)
        return joined_tree(self._data, *self._choice[fewest], lower, fewest + 1)


def joined_tree(data: Samples, f: int, zero: Profile, one: Profile, values: FloatArray, leaves: int) -> DecisionTree:
    """The tree that branches on f and reaches ``values[leaves - 1]``, no fewer leaves do."""
    found = find_split(zero.lower[None], one.lower[None], values, leaves)
    assert found is not None
    return data.branch(f, zero.tree(found[1]), one.tree(found[2]))


def _known_two(pairs: PairLevel, depth: int, complete: bool = False) -> Known:
    size = 2**depth
    found = Profile(pairs.profile[:size], pairs.upper_profile[:size], pairs.tree)
    return Known(depth, found, pairs.side_profiles, complete)


def sides_from_pairs(pairs: PairLevel, below: FloatArray) -> FloatArray:
    """Depth-three profiles (F, 2, 8) of the sides of every feature from the depth-two profiles of all pairs."""
    result = np.full((pairs.n_features, 2, 8), -np.inf)
    for column in range(pairs.n_features):
        split = convolve(below[column, :, :, 0], below[column, :, :, 1])
        split[:, column] = -np.inf
        result[column] = split.max(axis=1)
    return with_leaf(result, pairs.side_profiles[:, :, 0])
