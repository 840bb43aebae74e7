"""Rows of the master from prices that could not close the gap: the relaxation is as tight as their bound.

With rewards r, a leaf price c and bounds U_f from `accel_oct.pricing.PriceBound`, at every mu that was kept

    sum of r[x, k] z[x, k] - c * sum_n p[n]  <=  (best leaf) p[1] + sum_f U_f b[1, f],

which holds for every tree that satisfies local rules, limits or not. With B_f the smallest bound of all prices on trees
that satisfy the limits and branch on f at the root, those of single roots among them,

    sum_i w_i theta_i - leaf_price * sum_n p[n]  <=  (best leaf) p[1] + sum_f B_f b[1, f].

Both are IMPLIED. The second alone makes the bound of the relaxation at most that of the best common multipliers, and
branching on the root gives every root its own; the first say more where predictions are branched on.

Roots with B_f no better than the best tree known are *closed*: b[1, f] = 0. That cuts off no better tree, and the root
of the best tree known stays open. So the master still contains it and all that beat it, and its bound is valid as it
is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accel_oct.formulation import Incumbent, Master
from accel_oct.mip import Rows
from accel_oct.pricing import PriceBound, RootBounds
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray

#: Added on the right, relative to the size of a row: bounds and sums are floating-point numbers.
_SLACK = 1e-9
#: Solvers drop coefficients below this.
_NOTHING = 1e-9
#: Largest ratio of rewards to total weight: beyond it the score would vanish beside the prices.
_DEAREST = 1e4


@dataclass(frozen=True)
class HandOverStatistics:
    """What was added to the master.

    Attributes
    ----------
    rows : int
        Added from prices.
    closed_roots : int
        Features that are excluded from the root.
    bound : float
        The largest bound of the remaining roots.
    """

    rows: int
    closed_roots: int
    bound: float


def add_priced_rows(
    master: Master, known: RootBounds, incumbent: Incumbent, goal: Callable[[float], float]
) -> HandOverStatistics:
    """Add the rows and close roots in a master that is not loaded yet; `goal` as in `Closing`."""
    rows = [_value_row(master, known)]
    if master.has_predictions:
        assert np.array_equal(master.predictions.points, known.problem.X)
        rows += [row for row in (price_row(master, bound) for bound in known.prices) if row is not None]
    master.model.add_rows(Rows.concatenate(rows), "bounds by prices")
    closed = closed_roots(known, incumbent, goal)
    if closed.any():
        columns = master.b.index[0, closed]
        master.model.add_rows(Rows.single(columns, np.ones(columns.size), upper=0.0), "closed roots")
    best = max(known.leaf, float(known.bounds[~closed].max(initial=-np.inf)))
    return HandOverStatistics(len(rows), int(closed.sum()), best)


def closed_roots(known: RootBounds, incumbent: Incumbent, goal: Callable[[float], float]) -> BoolArray:
    """Return which features no better tree has at its root; the root of the best tree known stays open."""
    if incumbent.tree is None:
        return np.asarray(known.bounds == -np.inf)
    closed: BoolArray = (known.bounds < goal(incumbent.value)) | (known.bounds <= incumbent.value)
    root = int(incumbent.tree.feature[0])
    if root >= 0:
        closed[root] = False
    return closed


def price_row(master: Master, bound: PriceBound) -> Rows | None:
    """Return the row of some prices in columns z, p and b; None where they are too large for a solver."""
    total, weights = master.dataset.total_weight, bound.priced.weights
    size = max(total, float(np.abs(bound.roots).max(initial=0.0)), abs(bound.leaf), float(weights.max(axis=1).sum()))
    if size > _DEAREST * total:
        return None
    scale = master.scale * total / size
    rewards = weights.ravel() * scale
    used = np.flatnonzero(rewards > _NOTHING)  # the others only help the left side
    left = master.predictions.z.index.ravel()[used], rewards[used]
    return _row(master, left, bound.priced.leaf_price * scale, bound.leaf * scale, bound.roots * scale)


def _value_row(master: Master, known: RootBounds) -> Rows:
    data, price, scale = master.dataset, master.leaf_price, master.scale
    worst = -price * 2**master.topology.depth
    bounds = np.clip(known.bounds, worst, max(worst, data.total_weight - 2 * price))
    left = master.theta.index, data.weights * scale
    return _row(master, left, price * scale, max(known.leaf, worst) * scale, bounds * scale)


def _row(master: Master, left: tuple[IntArray, FloatArray], leaf_price: float, leaf: float, roots: FloatArray) -> Rows:
    """Return ``left - leaf_price * (leaves) <= leaf * p[1] + roots @ b[1]``, with a small slack."""
    p_values = np.full(master.p.size, -leaf_price)
    p_values[0] -= leaf
    columns = np.concatenate([left[0], master.p.index, master.b.index[0]])
    values = np.concatenate([left[1], p_values, -roots])
    slack = _SLACK * max(1.0, master.scale * master.dataset.total_weight)
    kept = np.flatnonzero(np.abs(values) > _NOTHING)
    return Rows.single(columns[kept], values[kept], upper=slack + _NOTHING * (columns.size - kept.size))
