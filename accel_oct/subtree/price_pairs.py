"""Depth four for one leaf price: which pairs of features need their depth-two subtrees, and in which order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.deep_levels import DeepLevels
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.stopping import Stopper

Floats = NDArray[np.float64]

_FIRST_ROOTS = 3
"""Roots opened first, alone, to get a good incumbent before the rest is pruned against it."""


class PricePairs:
    """Bounds on and values of all pairs of features, refined in steps.

    For a root f, a side and a second feature g the value below is V_2 of both sides of g. Before a pair is computed,
    V_2 <= max(V_1, E - 3 * price): V_1 is known from level three. In table units throughout. Under local rules, pairs
    that are not allowed have minus infinity, and those too light for three leaves V_1.
    """

    def __init__(self, deep: DeepLevels, price: float, stopper: Stopper) -> None:
        self._deep = deep
        self._price = price
        self._stopper = stopper
        pairs = deep.pairs
        F = pairs.n_features
        self._off_diagonal = ~np.eye(F, dtype=bool)
        self._leaf = pairs.side_profiles[:, :, 0] - price  # (F, 2)
        leaves = np.arange(1, 5)
        self._two = (deep.side_profiles - price * leaves).max(axis=-1)  # V_2 of every side, (F, 2)
        self._lower2 = np.maximum(deep.pair_leaves() - price, deep.pair_splits() - 2 * price)  # (F, 2, F, 2)
        side_ceiling, pair_ceiling = _ceilings(pairs)
        self._upper2 = np.maximum(self._lower2, pair_ceiling - 3 * price)
        too_light = deep.without_room(3)
        if too_light is not None:  # for more than two leaves, or for any
            self._upper2 = np.where(too_light | (self._lower2 == -np.inf), self._lower2, self._upper2)
        self._known = np.zeros((F, F), dtype=bool)
        self._side_cap = np.maximum(self._two, side_ceiling - 4 * price)
        self._rounds = 0
        self.n_pairs = 0
        self.value = -np.inf
        self.choice = (0, -1, -1)
        self._bound()
        self._evaluate()

    def _bound(self) -> None:
        """Upper bounds of sides, roots and of everything from those of the pairs."""
        self._through = self._upper2.sum(axis=-1).transpose(0, 2, 1)  # (f, g, side of f)
        self._through[~self._off_diagonal] = -np.inf
        best = np.maximum(self._leaf, self._through.max(axis=1))
        self._side_upper = np.minimum(best, self._side_cap)
        self._root_upper = self._side_upper.sum(axis=1)
        self.upper = float(self._root_upper.max())

    def _evaluate(self) -> None:
        """Best tree among what is computed."""
        through = self._lower2.sum(axis=-1).transpose(0, 2, 1)
        through[~self._off_diagonal] = -np.inf
        second = through.argmax(axis=1)  # (f, side)
        best = np.take_along_axis(through, second[:, None, :], axis=1)[:, 0]
        values = np.maximum(best, self._two)
        sums = values.sum(axis=1)
        f = int(np.argmax(sums))
        if sums[f] > self.value:
            self.value = float(sums[f])
            chosen = [int(second[f, side]) if best[f, side] > self._two[f, side] else -1 for side in (0, 1)]
            self.choice = (f, chosen[0], chosen[1])

    def step(self, threshold: float) -> bool:
        """Compute the pairs that may lead above `threshold`: some first, then all. False when none is left."""
        wanted = np.minimum(self._through, self._side_cap[:, None, :]) + self._side_upper[:, None, ::-1] > threshold
        wanted_pairs = wanted.any(axis=-1)
        roots = np.flatnonzero(self._root_upper > threshold)
        if self._rounds == 0 and roots.size > 2 * _FIRST_ROOTS:
            first = roots[np.argsort(-self._root_upper[roots], kind="stable")[:_FIRST_ROOTS]]
            chosen = np.zeros_like(wanted_pairs)
            chosen[first] = wanted_pairs[first]
            wanted_pairs = chosen
        self._rounds += 1
        todo = np.triu((wanted_pairs | wanted_pairs.T) & ~self._known, 1)
        count = int(todo.sum())
        if count == 0:
            return False
        # A pair on its own visits all third features; all pairs together visit each triple only once.
        everything = 3 * count > todo.size / 2
        finished = self._deep.level_four(self._stopper, None if everything else todo)
        self.n_pairs += todo.size // 2 if everything else count
        profiles = self._deep.pair_profiles()
        values = (profiles - self._price * np.arange(1, 5)).max(axis=-1)
        np.maximum(self._lower2, values, out=self._lower2)
        if finished:
            done = np.ones_like(todo) if everything else todo | todo.T
            self._known |= done
            self._upper2 = np.where(done[:, None, :, None], self._lower2, self._upper2)
        self._bound()
        self._evaluate()
        return finished


def _ceilings(pairs: PairLevel) -> tuple[Floats, Floats]:
    """Equivalent-point bounds of the sides of every feature (F, 2) and of every pair (F, 2, F, 2)."""
    data = pairs.data
    weights = _all_sides(pairs.weight_table(), data.total_weight)
    # A point with several classes loses the weight of its minorities in every tree; other rows lose nothing.
    loss = data.weights - data.row_ceiling
    rows = np.flatnonzero(loss)
    X = data.X[rows].astype(np.float64)
    losses = _all_sides(X.T @ (X * loss[rows, None]), float(loss.sum()))
    single, double = (
        pairs.units.from_score(weight - lost, weight) for weight, lost in zip(weights, losses, strict=True)
    )
    return np.asarray(single), np.asarray(double)


def _all_sides(both: Floats, total: float) -> tuple[Floats, Floats]:
    """Sums over the sides of every feature and of every pair, from the sums over one-sides of pairs."""
    one = np.diagonal(both)
    table = np.empty((one.size, 2, one.size, 2))
    table[:, 1, :, 1] = both
    table[:, 1, :, 0] = one[:, None] - both
    table[:, 0, :, 1] = one[None, :] - both
    table[:, 0, :, 0] = total - one[:, None] - one[None, :] + both
    return np.stack([total - one, one], axis=1), table
