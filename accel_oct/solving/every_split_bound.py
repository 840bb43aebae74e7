"""What no tree over any split of a table exceeds, under limits that tie subtrees together.

Limits are priced (`accel_oct.pricing`), and the priced problem is one of independent subtrees: the search over every
split solves it. So where the tree itself is sought among chosen splits, the bound still holds for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import LinearLimit
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.exact.ordered import ordered_problem, search_ordered
from accel_oct.pricing import Dual
from accel_oct.solving.every_split import EverySplit

__all__ = ["bound_over_every_split"]

Floats = NDArray[np.float64]


def bound_over_every_split(
    space: EverySplit,
    limits: Sequence[LinearLimit],
    leaf_penalty: float,
    should_stop: Callable[[], bool],
    threads: int = 1,
    enough: float = -math.inf,
) -> float:
    """A bound on the objective of every tree that keeps the limits; minus infinity where it proves that there is none.

    Parameters
    ----------
    space : EverySplit
        With the constraints that leave subtrees independent; all others are relaxed, or among the limits.
    limits : sequence of LinearLimit
        On the rows of the data set of `space`.
    should_stop : callable
        When to end; the bound is valid whenever that is.
    threads : int
    enough : float
        An objective; the search ends when the bound is down to it.
    """
    score, dataset = space.score, space.score.dataset
    price = score.rows.leaf_price(leaf_penalty, score.norm)
    assert space.max_depth is not None
    problem = LimitedProblem.of(dataset, limits, price, space.max_depth, scored=score.rows, merge=False)
    dual = _Dual(problem, lambda tree: None, should_stop, threads, space=space)
    wanted = (enough - score.offset) * score.norm
    if limits:
        dual.run(lambda: wanted)
    else:
        dual.evaluate(np.zeros(0))
    return -math.inf if dual.is_infeasible else score.reported(min(dual.bound, score.rows.total_weight - price))


@dataclass
class _Dual(Dual):
    """The dual of limits over orders of rows instead of binary features."""

    space: EverySplit = field(kw_only=True)

    def evaluate(self, prices: Floats) -> float:
        """L(mu), taken as a bound; the best priced tree becomes a plane."""
        space, limited = self.space, self.problem
        assert isinstance(limited, LimitedProblem)
        priced, rows = limited.priced(prices), space.rows
        found = search_ordered(
            ordered_problem(space.ranks, priced.weights[rows], priced.grid_bits, space.limits),
            limited.max_depth,
            priced.leaf_price,
            max_leaves=space.max_leaves,
            should_stop=self.should_stop,
            threads=self.threads,
            memory_limit=space.memory_limit,
        )
        # Rows without a weight have no place in the orders: each may have the label that suits the prices.
        predicted, n_leaves = priced.weights.argmax(axis=1), 1
        if found.tree is not None:
            predicted[rows], n_leaves = found.tree.predict(space.ranks), found.tree.n_leaves
        else:
            predicted[rows] = priced.weights[rows].sum(axis=0).argmax()
        every = np.arange(len(predicted))
        value = float(limited.gains[every, predicted].sum()) - limited.leaf_price * n_leaves
        used = limited.uses[:, every, predicted].sum(axis=1) + limited.leaf_uses * n_leaves
        self._planes.append(np.append(limited.upper - used, value))
        outside = float(priced.weights[~rows].max(axis=1, initial=0.0).sum())
        bound = found.bound + outside + priced.constant + priced.error
        if bound < self.bound:
            self.bound, self.best = bound, priced
        return bound
