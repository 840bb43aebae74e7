"""The best score for every number of leaves, with trees and proofs, in one pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from accel_oct.errors import NoTreeError
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.profile_search import ProfileSolver
from accel_oct.exact.profiles import Units, extended
from accel_oct.exact.samples import Samples, reduce_data
from accel_oct.exact.steps import Steps
from accel_oct.support.arrays import FloatArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree


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
