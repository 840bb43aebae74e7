"""The whole frontier: the best score for every number of leaves, with trees and proofs, in one pass.

Up to depth four this is one run of the compiled levels; deeper trees go through the root features one by one, each with
two frontiers one level lower, in the order of what they may still improve (see `roots`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accel_oct.subtree.deep_levels import DeepLevels
from accel_oct.subtree.prepare import Reduced, reduce_data
from accel_oct.subtree.profiles import PairLevel, Units, convolve, with_leaf
from accel_oct.subtree.stopping import Stopper
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]
Report = Callable[[Floats, Floats], None]
DEFAULT_MEMORY_LIMIT = 4 * 2**30


@dataclass
class Profile:
    """Profile of one set and depth in table units, with what is needed to rebuild its trees.

    `lower` are scores of known trees, `upper` proven bounds; they agree everywhere when `exact`.
    """

    lower: Floats
    upper: Floats
    tree: Callable[[int], DecisionTree]

    @property
    def exact(self) -> bool:
        """Whether every number of leaves is proven."""
        return bool(np.array_equal(self.lower, self.upper))


@dataclass
class FrontierTable:
    """Best scores by number of leaves.

    Attributes
    ----------
    scores : float array of length 2**max_depth + 1
        Entry h: best known score of a tree with at most h leaves (entry 0: minus infinity).
    upper_bounds : float array, same shape
        Proven bounds; equal to `scores` when `exact`.
    max_depth : int
    total_weight : float
    exact : bool
    seconds : float
        Time taken.
    """

    scores: Floats
    upper_bounds: Floats
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
        """
        if not 1 <= max_leaves < self.scores.size:
            raise ValueError(f"max_leaves must be between 1 and {self.scores.size - 1}, got {max_leaves}")
        fewest = int(np.searchsorted(self.scores, self.scores[max_leaves]))
        if fewest not in self._trees:
            self._trees[fewest] = self._tree(fewest).with_max_depth(self.max_depth)
        return self._trees[fewest]

    def best(self, leaf_price: float) -> tuple[float, float, int]:
        """Value, upper bound and number of leaves of the best tree for a leaf price (fewest leaves on ties)."""
        leaves = np.arange(1, self.scores.size)
        values = self.scores[1:] - leaf_price * leaves
        bounds = self.upper_bounds[1:] - leaf_price * leaves
        best = int(np.argmax(values))
        return float(values[best]), float(bounds.max()), best + 1


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

    def solve(self, data: Reduced, depth: int, report: Report | None = None) -> Profile:
        """Profile of depth `depth`; exact unless stopped.

        `report` hears of the scores and bounds of these very data: the searches below a root have none.
        """
        if depth == 0 or data.n_features == 0:
            return self._leaf(data, depth)
        table_limit = 0 if depth <= 2 else DeepLevels.table_limit(self.memory_limit, self.threads)
        pairs = PairLevel(data, self.stopper, table_limit)
        if depth <= 2:
            return self._shallow(pairs, depth)
        if not pairs.exact:
            return self._stopped(pairs, depth, pairs.profile, pairs.upper_profile)
        if pairs.profile[3] == self._ceiling(pairs):
            # Nothing can be better with four leaves or more, and depth two is exact for fewer.
            values = extended(pairs.profile, depth)
            return Profile(values, values, pairs.tree)
        compiled = DeepLevels.possible(pairs, self.memory_limit, self.threads)
        if depth == 3 and compiled:
            return self._three(pairs)
        if depth == 4 and compiled and DeepLevels.fits(pairs, self.memory_limit):
            return self._four(pairs)
        from accel_oct.subtree.roots import RootFrontier

        return RootFrontier(self, pairs, depth).run(report)

    def _leaf(self, data: Reduced, depth: int) -> Profile:
        counts = data.class_weights
        number = Units(data.signed).from_score(counts.max(), counts.sum())
        values = np.full(2**depth, float(number))
        return Profile(values, values, lambda leaves: DecisionTree.leaf(int(np.argmax(counts))))

    def _shallow(self, pairs: PairLevel, depth: int) -> Profile:
        return Profile(pairs.profile[: 2**depth], pairs.upper_profile[: 2**depth], pairs.tree)

    def _three(self, pairs: PairLevel) -> Profile:
        deep = DeepLevels(pairs, False, self.threads)
        if not deep.level_three(self.stopper):
            return self._stopped(pairs, 3, pairs.profile, pairs.profile)
        sides = deep.side_profiles
        values = with_leaf(convolve(sides[:, 0], sides[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        return Profile(values, values, lambda leaves: self._rebuild(pairs, sides, values, leaves))

    def _four(self, pairs: PairLevel) -> Profile:
        deep = DeepLevels(pairs, True, self.threads)
        if not deep.level_three(self.stopper):
            return self._stopped(pairs, 4, pairs.profile, pairs.profile)
        sides = deep.side_profiles
        three = with_leaf(convolve(sides[:, 0], sides[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        if three[4] == self._ceiling(pairs):
            values = extended(three, 4)
            return Profile(values, values, lambda leaves: self._rebuild(pairs, sides, three, min(leaves, 8)))
        finished = deep.level_four(self.stopper)
        below = deep.pair_profiles()
        deeper = sides_from_pairs(pairs, below)
        values = with_leaf(convolve(deeper[:, 0], deeper[:, 1]).max(axis=0), np.asarray(pairs.leaf))
        # Callers keep profiles for their trees: the counters' own dtype is a quarter of the size or less.
        compact = below.astype(pairs.layout.dtype)
        found = Profile(values, values, lambda leaves: self._rebuild(pairs, deeper, values, leaves, compact))
        return found if finished else better_of(found, self._stopped(pairs, 4, three, three))

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
            child = data.restricted(data.X[:, column] == side)
            if below is None or part <= 2:
                children.append(exactly.solve(child, 2).tree(part))
                continue
            second = find_split(below[column, side, :, 0], below[column, side, :, 1], sides[column, side], part)
            if second is None:
                children.append(exactly.solve(child, 0).tree(1))
                continue
            grandchildren = [
                exactly.solve(data.restricted((data.X[:, column] == side) & (data.X[:, second[0]] == value)), 2)
                for value in (0, 1)
            ]
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
        """Equivalent-point bound in table units."""
        return float(pairs.units.from_score(pairs.data.row_ceiling.sum(), pairs.data.total_weight))

    def _tree_three(self, pairs: PairLevel) -> Callable[[int], DecisionTree]:
        return lambda leaves: ProfileSolver(None, self.threads, self.memory_limit)._three(pairs).tree(leaves)


def better_of(found: Profile, fallback: Profile) -> Profile:
    """The better known tree for each number of leaves, with the fallback's bounds."""
    lower = np.maximum(found.lower, fallback.lower)

    def tree(leaves: int) -> DecisionTree:
        source = found if found.lower[leaves - 1] >= fallback.lower[leaves - 1] else fallback
        return source.tree(leaves)

    return Profile(lower, np.maximum(lower, fallback.upper), tree)


def extended(profile: Floats, depth: int) -> Floats:
    """A profile of lower depth as (lower bounds of) one of this depth."""
    return np.concatenate([profile, np.full(2**depth - profile.size, profile[-1])])


def sides_from_pairs(pairs: PairLevel, below: Floats) -> Floats:
    """Depth-three profiles (F, 2, 8) of the sides of every feature from the depth-two profiles of all pairs."""
    result = np.full((pairs.n_features, 2, 8), -np.inf)
    for column in range(pairs.n_features):
        split = convolve(below[column, :, :, 0], below[column, :, :, 1])
        split[:, column] = -np.inf
        result[column] = split.max(axis=1)
    return with_leaf(result, pairs.side_profiles[:, :, 0])


def find_split(zero: Floats, one: Floats, values: Floats, leaves: int) -> tuple[int, int, int] | None:
    """Column and leaf counts of both sides that reach ``values[leaves - 1]``; None when a leaf does."""
    goal = values[leaves - 1]
    if values[0] == goal:
        return None
    size = zero.shape[1]
    for total in range(2, leaves + 1):
        if values[total - 1] != goal:
            continue
        for left in range(max(1, total - size), min(size, total - 1) + 1):
            sums = zero[:, left - 1] + one[:, total - left - 1]
            column = int(np.argmax(sums))
            if sums[column] == goal:
                return column, left, total - left
    raise AssertionError("a profile entry has no split that reaches it")


def frontier(
    X: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike,
    n_classes: int,
    max_depth: int,
    *,
    threads: int = 1,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    deadline: float | None = None,
    should_stop: Callable[[], bool] | None = None,
    progress: Callable[[float, Floats, Floats], None] | None = None,
) -> FrontierTable:
    """Best score for every number of leaves of trees of depth at most `max_depth`.

    Parameters
    ----------
    X, y, weights, n_classes
        Binary features (n, F), class indices, weights on a dyadic grid, number of classes.
    max_depth : int
        Depth limit; the table has 2**max_depth entries.
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
    """
    start = time.monotonic()
    data = reduce_data(
        np.asarray(X, dtype=bool), np.asarray(y, np.int64), np.asarray(weights, np.float64), int(n_classes)
    )
    units, weight = Units(data.signed), data.total_weight

    def public(profile: Floats) -> Floats:
        return np.concatenate([[-np.inf], units.to_score(profile, weight)])

    def report(lower: Floats, upper: Floats) -> None:
        if progress is not None:
            progress(time.monotonic() - start, public(lower), public(upper))

    profile = ProfileSolver(Stopper(deadline, should_stop), threads, memory_limit).solve(data, max_depth, report)
    return FrontierTable(
        scores=public(profile.lower),
        upper_bounds=public(profile.upper),
        max_depth=max_depth,
        total_weight=weight,
        seconds=time.monotonic() - start,
        _tree=profile.tree,
    )
