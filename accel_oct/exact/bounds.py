"""Upper bounds on subtrees by path, for cuts.

Bounds are kept as upper *profiles* (best score by number of leaves), so one computation serves every leaf price: the
bound for a price is the maximum of the entries minus the price of their leaves. Exact profiles are computed on request;
before that, depth two (exact for at most three leaves) and the equivalent-point bound are used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from accel_oct.exact.counts import column_keys
from accel_oct.exact.frontier import ProfileSolver
from accel_oct.exact.levels import DeepLevels, PairLevel, ceiling_of, side_ceilings
from accel_oct.exact.samples import RowSamples, reduce_data
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper

Literals = frozenset[tuple[int, int]]

_CACHED_PROFILES = 100_000


class SubtreeBounds:
    """Bounds on the value of subtrees: below each root feature, and below any path.

    Parameters
    ----------
    X, y, weights, n_classes
        Binary features (n, F), class indices, weights on a dyadic grid, number of classes.
    max_depth : int
        Depth limit of the whole tree, at least one.
    threads, memory_limit
        As in `frontier_table`.
    deadline, should_stop
        When to stop exact computations; bounds stay valid but are less tight.
    """

    def __init__(
        self,
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
    ) -> None:
        if max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, got {max_depth}")
        self.max_depth = max_depth
        self._solver = ProfileSolver(Stopper(deadline, should_stop), threads, memory_limit)
        self._data = reduce_data(X, y, weights, n_classes)
        self._columns, self._inverted = _column_map(np.asarray(X, dtype=bool)[np.asarray(weights) > 0], self._data)
        self._pairs = PairLevel(self._data, self._solver.stopper, DeepLevels.table_limit(memory_limit, threads))
        self._weight = self._data.total_weight
        self._side_weights = self._data.side_weights
        self._deep_levels = self._pairs.exact and DeepLevels.possible(self._pairs, memory_limit, threads)
        self._upper = self._cheap_sides()
        self._exact = np.full(self._data.n_features, max_depth <= 2 and self._pairs.exact)
        self._paths: OrderedDict[tuple[Literals, int, bool], FloatArray] = OrderedDict()

    @property
    def leaf_score(self) -> float:
        """Score of a single leaf at the root (the paper's CS_1)."""
        return float(self._pairs.units.to_score(self._pairs.leaf, self._weight))

    @property
    def exact(self) -> BoolArray:
        """For every original feature, whether its root bound is the exact value."""
        return np.where(self._columns >= 0, np.append(self._exact, False)[self._columns], False)

    def root_profiles(self) -> FloatArray:
        """Return upper bounds on the scores of both sides of every original feature, (F, 2, 2**(max_depth - 1)).

        Second index: x_f = 0 and x_f = 1. Entry h - 1 of the last: subtrees with at most h leaves.
        """
        scores = self._pairs.units.to_score(self._upper, self._side_weights[:, :, None])
        result = np.empty((self._columns.size, 2, scores.shape[-1]))
        kept = self._columns >= 0
        result[kept] = scores[self._columns[kept]]
        swapped = kept & self._inverted
        result[swapped] = result[swapped][:, ::-1]
        everyone = self.path_profile((), self.max_depth - 1)
        for column in np.flatnonzero(~kept):
            full = int(self._inverted[column])
            result[column, full] = everyone
            result[column, 1 - full] = 0.0
        return result

    def root_bounds(self, leaf_price: float) -> FloatArray:
        """Return U_f >= V(S_f0) + V(S_f1) for every original feature f, with subtrees of depth max_depth - 1 below."""
        profiles = self.root_profiles()
        leaves = np.arange(1, profiles.shape[-1] + 1)
        return np.asarray((profiles - leaf_price * leaves).max(axis=-1).sum(axis=-1))

    def refine(self, feature: int) -> bool:
        """Make the bound of one original feature exact; return False if stopped or if the feature is constant."""
        column = int(self._columns[feature])
        if column < 0:
            return False
        if self._exact[column]:
            return True
        exact = True
        for side in (0, 1):
            child = self._data.restricted(self._data.X[:, column] == side)
            profile = self._solver.solve(child, self.max_depth - 1)
            self._upper[column, side] = np.minimum(self._upper[column, side], profile.upper)
            exact &= profile.exact
        self._exact[column] = exact
        return exact

    def path_profile(self, literals: Iterable[tuple[int, int]], height: int, *, exact: bool = False) -> FloatArray:
        """Return upper bounds on the score below a path for at most 1 .. 2**height leaves within `height` levels.

        Up to height two the bounds are always exact; above, only with `exact`, which takes longer.
        """
        key = (frozenset(literals), height, exact or height <= 2)
        found = self._paths.get(key)
        if found is None:
            found = self._path_profile(*key)
            self._paths[key] = found
            if len(self._paths) > _CACHED_PROFILES:
                self._paths.popitem(last=False)
        return found

    def path_bound(
        self, literals: Iterable[tuple[int, int]], height: int, leaf_price: float, *, exact: bool = False
    ) -> float:
        """Return an upper bound on V_height of the samples that satisfy the literals (original feature, direction)."""
        profile = self.path_profile(literals, height, exact=exact)
        return float((profile - leaf_price * np.arange(1, profile.size + 1)).max())

    def _path_profile(self, literals: Literals, height: int, exact: bool) -> FloatArray:
        data = self._data.restricted(self._rows(literals)) if literals else self._data
        if exact:
            numbers = self._solver.solve(data, height).upper
        else:
            pairs = self._pairs if not literals else PairLevel(data, self._solver.stopper)
            numbers = np.full(2**height, ceiling_of(data))
            numbers[:3] = pairs.upper_profile[:3]
        return np.asarray(self._pairs.units.to_score(numbers, data.total_weight))

    def _rows(self, literals: Literals) -> BoolArray:
        rows = np.ones(self._data.n_samples, dtype=bool)
        for feature, direction in literals:
            column, inverted = self._columns[feature], bool(self._inverted[feature])
            if column < 0:
                rows &= inverted == bool(direction)
            else:
                rows &= self._data.X[:, column] == (bool(direction) ^ inverted)
        return rows

    def _cheap_sides(self) -> FloatArray:
        """Return upper profiles of all sides before any refinement, in table units."""
        size = 2 ** (self.max_depth - 1)
        if size <= 2:
            return self._pairs.side_upper[:, :, :size].copy()
        upper = np.repeat(side_ceilings(self._data)[:, :, None], size, axis=2)
        upper[:, :, :2] = self._pairs.side_upper
        if self._deep_levels:
            deep = DeepLevels(self._pairs, False, self._solver.threads)
            if deep.level_three(self._solver.stopper):
                upper[:, :, :3] = deep.side_profiles[:, :, :3]
        return upper


def _column_map(X: BoolArray, data: RowSamples) -> tuple[IntArray, BoolArray]:
    """Return for every original feature its reduced column (-1: constant), and whether it is the column's complement.

    For a constant feature the second entry is its value.
    """
    keys = column_keys(X)
    home = {keys[feature]: column for column, feature in enumerate(data.feature)}
    columns = np.array([home.get(key, -1) for key in keys], dtype=np.int64)
    inverted: BoolArray = np.asarray(X.any(axis=0))
    kept = columns >= 0
    # Columns of one key are equal or complementary; the first row decides which.
    stands_for = data.feature[columns[kept]]
    inverted[kept] = X[0, kept] ^ X[0, stands_for] ^ data.flipped[columns[kept]]
    return columns, inverted
