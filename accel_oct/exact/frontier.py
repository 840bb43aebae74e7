"""The best score for every number of leaves, with trees and proofs, in one pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

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
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.samples import Samples, reduce_data
from accel_oct.support.arrays import BoolArray, FloatArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree

Side = tuple[int, int]
"""A root feature, as a column of the reduced data, and one of its values."""


@dataclass(frozen=True)
class Start:
    """What is known before any root is opened, in table units.

    Attributes
    ----------
    lower : float array (size,)
        Profile of a shallower depth, made long: up to 2**depth leaves, or fewer where more are of no use.
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
        """From profiles of any shallower depth, for as many leaves in all and on a side.

        Those of the sides are exact up to so many leaves: trees of depth d have all shapes up to d + 1 leaves. With
        more leaves a side scores at most its ceiling.
        """
        upper = np.repeat(side_ceilings(data)[:, :, None], half, axis=2)
        upper[:, :, :exact] = sides[:, :, :exact]
        return cls(_lengthened(lower, size), _lengthened(sides, half), upper)


class RootBoard:
    """Lower and upper profiles of both sides of every root feature.

    Upper profiles start exact for few leaves and end at the ceiling; what similar sides that are known
    already allow, V(S) <= V(S') + W(S - S'), tightens them.

    Attributes
    ----------
    lower : float array, as long as that of the start
        The best known score for every number of leaves.
    chosen : int array, same shape
        The place in `order` of the root that reaches it; -1 where a shallower tree does. Means something only where
        one leaf less scores less.
    order : int array (F,)
        Roots by promise: those whose sides are known to have good trees come first.
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
        self._told = self.solved.copy()
        self._found = np.full_like(self._known, -np.inf)
        promise = self._joined(self._known[:, 0], self._known[:, 1])[:, 1:].sum(axis=1)
        self.order = np.argsort(-promise, kind="stable")
        self._rank = np.empty_like(self.order)
        self._rank[self.order] = np.arange(self.order.size)
        self._potential = self._joined(self._upper[:, 0], self._upper[:, 1])

    def _joined(self, zero: FloatArray, one: FloatArray) -> FloatArray:
        return convolve_rising(zero, one, self.lower.size)

    def open_roots(self) -> BoolArray:
        """Roots (F,) that may be better than what is known for some number of leaves, or as good and come first."""
        step = np.diff(self.lower, prepend=-np.inf) > 0
        first = step & (self.chosen > self._rank[:, None])
        better = (self._potential > self.lower) | (first & (self._potential == self.lower))
        return np.asarray(better.any(axis=1) & ~self.solved.all(axis=1))

    def wanted(self, begun: Collection[Side] = (), ahead: bool = False) -> Iterator[Side]:
        """Sides whose profiles may matter, the most promising root first.

        Of a root one side comes first, since it may show that the other one does not matter: the one that is begun
        already, if any. The other one comes only if the first is solved, or with `ahead`, which is for workers that
        have nothing else to do.
        """
        active = self.open_roots()
        for f in map(int, self.order[active[self.order]]):
            open_sides = [(f, side) for side in self._in_turn(f) if not self.solved[f, side]]
            open_sides.sort(key=lambda side: side not in begun)
            yield from open_sides if ahead else open_sides[:1]

    def _in_turn(self, f: int) -> tuple[int, int]:
        """Both sides of a root; first the one that is more likely to close it when it is known."""
        left = [
            np.maximum(self._joined(self._known[f, s], self._upper[f, 1 - s])[1:] - self.lower[1:], 0).sum()
            for s in (0, 1)
        ]
        return (0, 1) if left[0] <= left[1] else (1, 0)

    def absorb(self, f: int, side: int, lower: FloatArray, upper: FloatArray) -> list[int]:
        """Take in a profile of a side, exact or not; places of `lower` that this root has now."""
        self._known[f, side] = np.maximum(self._known[f, side], lower)
        self.limit(f, side, upper)
        self.solved[f, side] |= np.array_equal(lower, upper)
        self._told[f, side] = True
        # What was told, not what is known: a side that was stopped may not reach what is known of shallower trees, and
        # trees are built from what it told.
        self._found[f, side] = lower
        if not self._told[f].all():
            return []
        split = self._joined(self._found[f, 0], self._found[f, 1])
        rank = int(self._rank[f])
        mine = (split > self.lower) | ((split == self.lower) & (rank < self.chosen))
        self.lower = np.maximum.accumulate(np.maximum(self.lower, split))
        self.chosen[mine] = rank
        return [int(h) for h in np.flatnonzero(mine)]

    def agrees(self, f: int, side: int, lower: FloatArray, upper: FloatArray) -> bool:
        """Whether a profile that somebody claims for a side is possible, by what is known of it."""
        return bool(np.all(self._known[f, side] <= upper) and np.all(lower <= self._upper[f, side]))

    def limit(self, f: int, side: int, upper: FloatArray) -> None:
        """Take in a bound on a side that is not solved yet."""
        self._upper[f, side] = np.minimum(self._upper[f, side], upper)
        self._tighten(f, side)
        self._potential = self._joined(self._upper[:, 0], self._upper[:, 1])

    def root_of(self, leaves: int) -> int | None:
        """The root that reaches the score for so many leaves, with no leaf to spare; None: a shallower tree does."""
        rank = int(self.chosen[leaves - 1])
        return None if rank < 0 else int(self.order[rank])

    def _tighten(self, f: int, side: int) -> None:
        """Similar support: carry the profile of a known side over to the sides of all other features."""
        known = self._units.to_score(self._upper[f, side], self._weights[f, side])
        scores = known[None, None, :] + self.data.beyond(f, side)[:, :, None]
        bound = self._units.from_score(scores, self._weights[:, :, None])
        np.minimum(self._upper, bound, out=self._upper)

    def bound(self) -> FloatArray:
        """Upper profile: the best that any root, known or not, may still reach."""
        upper = np.maximum(self.lower, self._potential.max(axis=0))
        upper[0] = self.lower[0]
        return np.asarray(np.maximum.accumulate(upper))


def _lengthened(profile: FloatArray, size: int) -> FloatArray:
    """With the last entry repeated."""
    missing = [(0, 0)] * (profile.ndim - 1) + [(0, size - profile.shape[-1])]
    return np.pad(profile, missing, mode="edge")


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


@dataclass
class FrontierTable:
    """Best scores by number of leaves.

    Attributes
    ----------
    scores : float array of length 2**max_depth + 1
        Entry h: best known score of a tree with at most h leaves (entry 0: minus infinity). Minus infinity everywhere
        where local rules allow no tree.
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

    @property
    def exact(self) -> bool:
        """Whether every entry is proven optimal."""
        return bool(np.array_equal(self.scores, self.upper_bounds))

    def tree(self, max_leaves: int) -> DecisionTree:
        """A tree with ``scores[max_leaves]`` and at most that many leaves, in arrays for `max_depth`.

        Trees are rebuilt on demand, with as few leaves as reach the score, and kept.

        Raises
        ------
        NoTreeError
            Where local rules allow none.
        """
        if not 1 <= max_leaves < self.scores.size:
            raise ValueError(f"max_leaves must be between 1 and {self.scores.size - 1}, got {max_leaves}")
        if self.scores[max_leaves] == -np.inf:
            raise NoTreeError("there is no tree: the rules allow none, not even a single leaf")
        fewest = int(np.searchsorted(self.scores, self.scores[max_leaves]))
        if fewest not in self._trees:
            self._trees[fewest] = self._tree(fewest).with_max_depth(self.max_depth)
        return self._trees[fewest]

    def best(self, leaf_price: float, max_leaves: int | None = None) -> tuple[float, float, int]:
        """Value, upper bound and number of leaves of the best tree for a leaf price (fewest leaves on ties)."""
        stop = self.scores.size if max_leaves is None else min(self.scores.size, max_leaves + 1)
        leaves = np.arange(1, stop)
        values = self.scores[1:stop] - leaf_price * leaves
        bounds = self.upper_bounds[1:stop] - leaf_price * leaves
        best = int(np.argmax(values))
        return float(values[best]), float(bounds.max()), best + 1


def frontier_table(
    X: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike,
    n_classes: int,
    max_depth: int,
    *,
    rules: LocalRules | None = None,
    threads: int = 1,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    deadline: float | None = None,
    should_stop: Callable[[], bool] | None = None,
    progress: Callable[[float, FloatArray, FloatArray], None] | None = None,
    steps: Steps | None = None,
) -> FrontierTable:
    """Best score for every number of leaves of trees of depth at most `max_depth`.

    Parameters
    ----------
    X, y, weights, n_classes
        Binary features (n, F), class indices, weights on a dyadic grid, number of classes.
    max_depth : int
        Depth limit; the table has 2**max_depth entries.
    rules : LocalRules, optional
        What leaves and paths must satisfy.
    threads : int
        Threads of the compiled kernels.
    memory_limit : int
        Bytes the tables may take.
    deadline : float, optional
        Reading of `time.monotonic` at which to stop with what is proven by then.
    should_stop : callable, optional
        Asked now and then; true stops like the deadline.
    progress : callable, optional
        Called with (seconds, scores, upper bounds), arrays as in the result, after every root feature that is searched
        on its own (from depth five, or where the tables do not fit).
    steps : Steps, optional
        Filled while the search goes on, for whoever watches.
    """
    data = reduce_data(
        np.asarray(X, dtype=bool), np.asarray(y, np.int64), np.asarray(weights, np.float64), int(n_classes), rules
    )
    return table_of(
        data,
        max_depth,
        threads=threads,
        memory_limit=memory_limit,
        deadline=deadline,
        should_stop=should_stop,
        progress=progress,
        steps=steps,
    )


def table_of(
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
    """The same for data that are reduced already, or come from a tally."""
    start = time.monotonic()
    units, weight = Units(data.signed), data.total_weight

    def public(profile: FloatArray) -> FloatArray:
        return np.concatenate([[-np.inf], units.to_score(extended(profile, 2**max_depth), weight)])

    def report(lower: FloatArray, upper: FloatArray) -> None:
        if progress is not None:
            progress(time.monotonic() - start, public(lower), public(upper))

    # A tree with more leaves than there are different rows has one that none reaches, which can be taken out.
    solver = ProfileSolver(Stopper(deadline, should_stop), threads, memory_limit, most_leaves=data.n_distinct)
    profile = solver.solve(data, max_depth, report, steps)
    return FrontierTable(
        scores=public(profile.lower),
        upper_bounds=public(profile.upper),
        max_depth=max_depth,
        total_weight=weight,
        seconds=time.monotonic() - start,
        _tree=lambda leaves: profile.tree(min(leaves, profile.lower.size)),
    )
