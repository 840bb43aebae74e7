"""The best score for every number of leaves, with trees and proofs, in one pass.

`frontier_table` is the entry point. Up to depth four `ProfileSolver` runs the compiled levels once. Deeper trees are
searched root feature by root feature, most promising first, each with the profiles of both sides one level lower:
`RootBoard` holds the bounds of all roots and decides which side is needed next. It computes no profiles, so that one
process (`ProfileRoots`) and the workers of a cluster can share it. Its final state does not depend on the order of the
answers: profiles are exact then, and of several roots that reach a value the first in a fixed order is chosen. So a
root that can only tie with another one is dismissed only if the other one precedes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from accel_oct.errors import NoTreeError
from accel_oct.exact.levels import (
    DeepLevels,
    PairLevel,
    Profile,
    SearchCounts,
    Steps,
    Units,
    better_of,
    ceiling_of,
    convolve,
    convolve_rising,
    extended,
    find_split,
    side_ceilings,
    with_leaf,
)
from accel_oct.exact.samples import Samples
from accel_oct.support.arrays import BoolArray, FloatArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree

Side = tuple[int, int]
"""A root feature (a column of the reduced data) and one of its values."""


@dataclass(frozen=True)
class Start:
    """Profiles and bounds before any root is searched, in table units.

    Attributes
    ----------
    lower : float array (size,)
        Profile of a shallower depth, extended to 2**depth leaves, or to the most leaves that are useful.
    sides : float array (F, 2, size of depth - 1)
        Known scores of both sides of every feature.
    upper : float array, same shape
        Bounds on them for trees of depth - 1.
    """

    lower: FloatArray
    sides: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, data: Samples, size: int, half: int, lower: FloatArray, sides: FloatArray, exact: int) -> Start:
        """Extend profiles of a shallower depth to `size` leaves, and those of sides to `half` leaves.

        Profiles of sides are exact up to `exact` leaves: trees of depth d have all shapes up to d + 1 leaves. With
        more leaves a side scores at most its ceiling.
        """
        upper = np.repeat(side_ceilings(data)[:, :, None], half, axis=2)
        upper[:, :, :exact] = sides[:, :, :exact]
        return cls(_lengthened(lower, size), _lengthened(sides, half), upper)


class RootBoard:
    """Lower and upper profiles of both sides of every root feature.

    Upper profiles start exact for few leaves and end at the ceiling; known profiles of similar sides tighten them by
    V(S) <= V(S') + W(S - S').

    Attributes
    ----------
    lower : float array, as long as that of the start
        The best known score for every number of leaves.
    chosen : int array, same shape
        The place in `order` of the root that reaches it; -1 if a shallower tree does. Defined only where one leaf less
        scores less.
    order : int array (F,)
        Roots, best known trees of their sides first.
    """

    def __init__(self, data: Samples, depth: int, start: Start) -> None:
        self.data = data
        self.depth = depth
        self._units = Units(data.signed)
        self._weights = data.side_weights
        self.lower = start.lower.copy()
        self.chosen = np.full(self.lower.size, -1)
        self._known = start.sides.copy()
        self._upper = np.maximum(start.upper, start.sides)
        self.solved: BoolArray = np.zeros((data.n_features, 2), dtype=bool)
        self._reported = self.solved.copy()
        self._found = np.full_like(self._known, -np.inf)
        promise = self._joined(self._known[:, 0], self._known[:, 1])[:, 1:].sum(axis=1)
        self.order = np.argsort(-promise, kind="stable")
        self._rank = np.empty_like(self.order)
        self._rank[self.order] = np.arange(self.order.size)
        self._potential = self._joined(self._upper[:, 0], self._upper[:, 1])

    def _joined(self, zero: FloatArray, one: FloatArray) -> FloatArray:
        return convolve_rising(zero, one, self.lower.size)

    def open_roots(self) -> BoolArray:
        """Return the roots (F,) that may improve the score for some number of leaves, or tie and precede its root."""
        step = np.diff(self.lower, prepend=-np.inf) > 0
        first = step & (self.chosen > self._rank[:, None])
        better = (self._potential > self.lower) | (first & (self._potential == self.lower))
        return np.asarray(better.any(axis=1) & ~self.solved.all(axis=1))

    def wanted(self, begun: Collection[Side] = (), ahead: bool = False) -> Iterator[Side]:
        """Yield sides whose profiles are needed, most promising root first.

        Of each root one side is yielded, because its profile may make the other one unnecessary: a side in `begun`, if
        any. The other one follows once the first is solved, or with `ahead`, for workers that would be idle.
        """
        active = self.open_roots()
        for f in map(int, self.order[active[self.order]]):
            open_sides = [(f, side) for side in self._in_turn(f) if not self.solved[f, side]]
            open_sides.sort(key=lambda side: side not in begun)
            yield from open_sides if ahead else open_sides[:1]

    def _in_turn(self, f: int) -> tuple[int, int]:
        """Return both sides of a root, the one that is more likely to close it first."""
        left = [
            np.maximum(self._joined(self._known[f, s], self._upper[f, 1 - s])[1:] - self.lower[1:], 0).sum()
            for s in (0, 1)
        ]
        return (0, 1) if left[0] <= left[1] else (1, 0)

    def absorb(self, f: int, side: int, lower: FloatArray, upper: FloatArray) -> list[int]:
        """Add a profile of a side, exact or not; return the places of `lower` that this root reaches now."""
        self._known[f, side] = np.maximum(self._known[f, side], lower)
        self.limit(f, side, upper)
        self.solved[f, side] |= np.array_equal(lower, upper)
        self._reported[f, side] = True
        # Use the profile that this side reported, from which trees are built: a stopped side may fall short of a known
        # shallower tree.
        self._found[f, side] = lower
        if not self._reported[f].all():
            return []
        split = self._joined(self._found[f, 0], self._found[f, 1])
        rank = int(self._rank[f])
        mine = (split > self.lower) | ((split == self.lower) & (rank < self.chosen))
        self.lower = np.maximum.accumulate(np.maximum(self.lower, split))
        self.chosen[mine] = rank
        return [int(h) for h in np.flatnonzero(mine)]

    def agrees(self, f: int, side: int, lower: FloatArray, upper: FloatArray) -> bool:
        """Return whether a profile of a side is consistent with the bounds known for it."""
        return bool(np.all(self._known[f, side] <= upper) and np.all(lower <= self._upper[f, side]))

    def limit(self, f: int, side: int, upper: FloatArray) -> None:
        """Add an upper profile of a side that is not solved yet."""
        self._upper[f, side] = np.minimum(self._upper[f, side], upper)
        self._tighten(f, side)
        self._potential = self._joined(self._upper[:, 0], self._upper[:, 1])

    def root_of(self, leaves: int) -> int | None:
        """Return the root that reaches the score for this number of leaves; None if a shallower tree does."""
        rank = int(self.chosen[leaves - 1])
        return None if rank < 0 else int(self.order[rank])

    def _tighten(self, f: int, side: int) -> None:
        """Tighten the sides of all other features by the profile of a known side (similar support)."""
        known = self._units.to_score(self._upper[f, side], self._weights[f, side])
        scores = known[None, None, :] + self.data.beyond(f, side)[:, :, None]
        bound = self._units.from_score(scores, self._weights[:, :, None])
        np.minimum(self._upper, bound, out=self._upper)

    def bound(self) -> FloatArray:
        """Return the upper profile over all roots, solved or not."""
        upper = np.maximum(self.lower, self._potential.max(axis=0))
        upper[0] = self.lower[0]
        return np.asarray(np.maximum.accumulate(upper))


def _lengthened(profile: FloatArray, size: int) -> FloatArray:
    """Extend a profile by repeating its last entry."""
    missing = [(0, 0)] * (profile.ndim - 1) + [(0, size - profile.shape[-1])]
    return np.pad(profile, missing, mode="edge")


Report = Callable[[FloatArray, FloatArray], None]

_PATIENCE = 4.0
"""Level three is skipped if its estimated time exceeds this multiple of the time left: single roots find more."""


@dataclass(frozen=True)
class Known:
    """Profiles of a set of samples from the tables, in table units.

    Attributes
    ----------
    depth : int
        Depth limit of the trees in `profile`: the requested depth, or less.
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
        """The number of leaves up to which every tree has at most this depth."""
        return self.depth + 1

    def extended(self, size: int, ceiling: float) -> Profile:
        """Return the profile for deeper trees, with `size` entries; beyond `exact_leaves` the bound is the ceiling."""
        lower = extended(self.profile.lower, size)
        if self.complete:
            return Profile(lower, extended(self.profile.upper, size), self.profile.tree)
        upper = np.full(size, ceiling)
        upper[: self.exact_leaves] = self.profile.upper[: self.exact_leaves]
        return Profile(lower, np.maximum(upper, lower), self.profile.tree)


@dataclass(frozen=True)
class Beginning:
    """The start of a search over root features, and the trees that reach its lower profile."""

    start: Start
    tree: Callable[[int], DecisionTree]


class ProfileSolver:
    """Profiles of any depth.

    Parameters
    ----------
    threads : int
        Threads of the compiled levels.
    memory_limit : int
        Bytes for the tables of levels three and four; larger problems go root by root.
    counts : SearchCounts, optional
        Filled while the search goes on.
    most_leaves : int, optional
        Length of profiles beyond depth four: trees with more leaves are not better.
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
        """Return the length of a profile; tables up to depth four have an entry for every number of leaves."""
        every: int = 2**depth
        return every if self.most_leaves is None else min(every, max(self.most_leaves, 16))

    def solve(self, data: Samples, depth: int, report: Report | None = None, steps: Steps | None = None) -> Profile:
        """Return the profile of depth `depth`; exact unless stopped.

        `report` takes scores and bounds of the whole data, and `steps` shows the progress of this search; searches of
        sides use neither.
        """
        known = self.begin(data, depth, steps)
        if isinstance(known, Profile):
            return known
        return ProfileRoots(self, data, depth, known.start, known.tree, steps).run(report)

    def begin(self, data: Samples, depth: int, steps: Steps | None = None) -> Profile | Beginning:
        """Return the profile if tables give it, else the start of a search over root features."""
        ceiling = ceiling_of(data)
        known = self.levels(data, depth, lambda known: bool(known.profile.lower[known.exact_leaves] == ceiling), steps)
        found = known.profile if known.depth == depth else known.extended(self.size(depth), ceiling)
        if known.depth == depth or found.exact or not known.profile.exact or self.stopper():
            return found
        sizes = self.size(depth), self.size(depth - 1)
        return Beginning(Start.of(data, *sizes, known.profile.lower, known.sides, known.depth), known.profile.tree)

    def levels(self, data: Samples, depth: int, enough: Callable[[Known], bool], steps: Steps | None = None) -> Known:
        """Compute levels up to `depth` or four, until one does not fit into memory or `enough` returns true."""
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
        # Callers keep profiles to build trees: the dtype of the counters takes a quarter of the memory or less. Under
        # rules there may be minus infinity, which integers cannot represent.
        compact = below.astype(deep.dtype) if pairs.data.rules is None else below
        found = Profile(values, values, lambda leaves: self._rebuild(pairs, sides, values, leaves, compact))
        return Known(4, found if finished else better_of(found, three.extended(16, ceiling_of(pairs.data))), sides)

    def _rebuild(
        self, pairs: PairLevel, sides: FloatArray, values: FloatArray, leaves: int, below: FloatArray | None = None
    ) -> DecisionTree:
        """Return the tree that reaches ``values[leaves - 1]``: find its split and rebuild both sides."""
        data = pairs.data
        leaves = min(leaves, values.size)
        exactly = ProfileSolver(None, self.threads, self.memory_limit)  # has no stopper
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
    """Profile of depth d from profiles of depth d - 1 of the sides of root features that `RootBoard` selects.

    Parameters
    ----------
    shallow : callable
        Returns a tree that reaches `start.lower` for a number of leaves.
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
        """Search root features, most promising first, until none can improve the profile or the search is stopped."""
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
    """Return the tree that branches on f and reaches ``values[leaves - 1]``, which no fewer leaves reach."""
    found = find_split(zero.lower[None], one.lower[None], values, leaves)
    assert found is not None
    return data.branch(f, zero.tree(found[1]), one.tree(found[2]))


def _known_two(pairs: PairLevel, depth: int, complete: bool = False) -> Known:
    size = 2**depth
    found = Profile(pairs.profile[:size], pairs.upper_profile[:size], pairs.tree)
    return Known(depth, found, pairs.side_profiles, complete)


def sides_from_pairs(pairs: PairLevel, below: FloatArray) -> FloatArray:
    """Return depth-three profiles (F, 2, 8) of the sides of every feature from depth-two profiles of all pairs."""
    result = np.full((pairs.n_features, 2, 8), -np.inf)
    for column in range(pairs.n_features):
        split = convolve(below[column, :, :, 0], below[column, :, :, 1])
        split[:, column] = -np.inf
        result[column] = split.max(axis=1)
    return with_leaf(result, pairs.side_profiles[:, :, 0])


@dataclass
class FrontierTable:
    """Best scores by number of leaves.

    Attributes
    ----------
    scores : float array of length 2**max_depth + 1
        Entry h: best known score of a tree with at most h leaves (entry 0: minus infinity). All minus infinity if local
        rules allow no tree.
    upper_bounds : float array, same shape
        Proven bounds; equal to `scores` when `exact`.
    max_depth : int
    total_weight : float
    exact : bool
    seconds : float
        Time taken.
    """

    scores: FloatArray
    upper_bounds: FloatArray
    max_depth: int
    total_weight: float
    seconds: float
    _tree: Callable[[int], DecisionTree]
    _trees: dict[int, DecisionTree] = field(default_factory=dict)

    @classmethod
    def of(cls, profile: Profile, data: Samples, max_depth: int, began: float) -> FrontierTable:
        """Return the table of a profile of `data`, computed since `began`, a reading of `time.monotonic`."""
        return cls(
            scores=cls.scores_of(profile.lower, data, max_depth),
            upper_bounds=cls.scores_of(profile.upper, data, max_depth),
            max_depth=max_depth,
            total_weight=data.total_weight,
            seconds=time.monotonic() - began,
            _tree=lambda leaves: profile.tree(min(leaves, profile.lower.size)),
        )

    @staticmethod
    def scores_of(profile: FloatArray, data: Samples, max_depth: int) -> FloatArray:
        """Return the scores of a profile in table units, by number of leaves from zero on."""
        numbers = extended(profile, 2**max_depth)
        return np.concatenate([[-np.inf], Units(data.signed).to_score(numbers, data.total_weight)])

    @property
    def exact(self) -> bool:
        """Whether every entry is proven optimal."""
        return bool(np.array_equal(self.scores, self.upper_bounds))

    def tree(self, max_leaves: int) -> DecisionTree:
        """Return a tree with ``scores[max_leaves]`` and at most that many leaves, in arrays for `max_depth`.

        Trees are built on demand, with the fewest leaves that reach the score, and cached.

        Raises
        ------
        NoTreeError
            If local rules allow no tree.
        """
        if not 1 <= max_leaves < self.scores.size:
            raise ValueError(f"max_leaves must be between 1 and {self.scores.size - 1}, got {max_leaves}")
        if self.scores[max_leaves] == -np.inf:
            raise NoTreeError("no tree is allowed: a single leaf breaks the rules, and so does every larger tree")
        fewest = int(np.searchsorted(self.scores, self.scores[max_leaves]))
        if fewest not in self._trees:
            self._trees[fewest] = self._tree(fewest).with_max_depth(self.max_depth)
        return self._trees[fewest]

    def best(self, leaf_price: float, max_leaves: int | None = None) -> tuple[float, float, int]:
        """Return value, upper bound and number of leaves of the best tree for a leaf price (fewest leaves on ties)."""
        stop = self.scores.size if max_leaves is None else min(self.scores.size, max_leaves + 1)
        leaves = np.arange(1, stop)
        values = self.scores[1:stop] - leaf_price * leaves
        bounds = self.upper_bounds[1:stop] - leaf_price * leaves
        best = int(np.argmax(values))
        return float(values[best]), float(bounds.max()), best + 1


def frontier_table(
    data: Samples,
    max_depth: int,
    *,
    threads: int = 1,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    deadline: float | None = None,
    should_stop: Callable[[], bool] | None = None,
    progress: Callable[[float, FloatArray, FloatArray], None] | None = None,
    steps: Steps | None = None,
) -> FrontierTable:
    """Compute the best score for every number of leaves of trees of depth at most `max_depth`.

    Parameters
    ----------
    data : Samples
        From `reduce_data` or `tallied_data`.
    max_depth : int
        Depth limit; the table has 2**max_depth entries.
    threads : int
        Threads of the compiled kernels.
    memory_limit : int
        Bytes that the tables may take.
    deadline : float, optional
        Reading of `time.monotonic` at which to stop; scores and bounds are valid then too.
    should_stop : callable, optional
        Called from time to time; true stops like the deadline.
    progress : callable, optional
        Called with (seconds, scores, upper bounds), arrays as in the result, after every root feature that is searched
        on its own (from depth five, or if the tables do not fit into memory).
    steps : Steps, optional
        Updated during the search, to show its progress.
    """
    began = time.monotonic()

    def report(lower: FloatArray, upper: FloatArray) -> None:
        if progress is not None:
            scores = (FrontierTable.scores_of(part, data, max_depth) for part in (lower, upper))
            progress(time.monotonic() - began, *scores)

    # A tree with more leaves than distinct rows has an empty leaf, which can be removed.
    solver = ProfileSolver(Stopper(deadline, should_stop), threads, memory_limit, most_leaves=data.n_distinct)
    return FrontierTable.of(solver.solve(data, max_depth, report, steps), data, max_depth, began)
