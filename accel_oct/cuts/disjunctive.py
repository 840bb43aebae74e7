"""Disjunctive path bounds: what subtrees can be worth, carried into the master without a big-M.

At the root, with CS_1 the best score of a single leaf and U_f a bound on the value of the two subtrees below a split on
f,

    sum_i w_i theta_i - leaf_price * sum_n p_n  <=  (CS_1 - leaf_price) p_1 + sum_f U_f b[1, f].

Exactly one term on the right is active in a tree, so the row holds for every tree, and it makes the bound of the
relaxation the largest U_f in use. At the end m of a path P, with S the samples that follow it and the sums taken over S
and over m and the nodes below it, the same holds with ``W(S) * relax`` added on the right, relax being the sum of p[n]
and of b[n, f] over the path's nodes n and the features f not taken there:

- where P is taken, relax is 0 and the row is the one above for the subtree at m;
- elsewhere relax is at least 1. The left side is at most W(S) minus one leaf price if m is a leaf, minus two if it
  branches, and the terms of m on the right are at least minus that many leaf prices, since no U_f is below the value
  of two leaves. So the row holds there too.

The rows are IMPLIED: they speak of single subtrees, and stay valid under any further constraint. The U_f are tightened
lazily: at the root best first, until the largest is exact (or no better than the incumbent), elsewhere only where the
relaxation puts weight. A row with smaller U_f replaces the one before. The tree behind the largest exact U_f is
optimal, and is proposed as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accel_oct.formulation import Master, Response, TreePoint
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.mip.rows import FloatArray, IntArray
from accel_oct.subtree import SubtreeBounds, best_tree
from accel_oct.tree import DecisionTree

_USED = 1e-6
_INTEGRAL = 1.0 - 1e-6
#: Violations below this share of the total weight are noise of the solver.
_VIOLATION = 1e-7


@dataclass
class _PathRow:
    """The row of one path: where it ends, who follows it, and the bounds known so far."""

    end: int
    features: tuple[int, ...]
    literals: frozenset[tuple[int, int]]
    samples: IntArray
    leaf_value: float
    bounds: FloatArray
    refined: np.ndarray[tuple[int], np.dtype[np.bool_]]


class DisjunctivePathBounds:
    """Separates the rows above at the root and at the ends of integral paths.

    Parameters
    ----------
    master : Master
    bounds : SubtreeBounds
        Exact values and bounds of subtrees, of the same data.
    """

    name = "disjunctive"

    def __init__(self, master: Master, bounds: SubtreeBounds) -> None:
        self.master = master
        self._bounds = bounds
        self._rows: dict[tuple[int, tuple[int, ...]], _PathRow] = {}
        events = [Event.CANDIDATE, Event.RELAXATION]
        self.needs = Needs(events, [Validity.IMPLIED], injects=True)
        self._proposed = False
        self._tolerance = _VIOLATION * master.dataset.total_weight

    def respond(self, point: TreePoint) -> Response | None:
        trees = self._refine_root(point)
        cuts = []
        for end, features in self._paths(point):
            row = self._row(end, features)
            if row.samples.size and self._tighten(row, point):
                key = f"{self.name} {end} {features}"
                cuts.append(Cuts(self._as_rows(row), Validity.IMPLIED, self.name, key))
        return Response(tuple(cuts), trees) if cuts or trees else None

    def _refine_root(self, point: TreePoint) -> tuple[DecisionTree, ...]:
        """Make the largest root bound exact; returns the tree behind it when that is news."""
        root, price = self._row(1, ()), self.master.leaf_price
        goal = -np.inf if point.point.incumbent is None else point.point.incumbent / self.master.scale
        while True:
            best = int(np.argmax(root.bounds))
            if root.bounds[best] <= max(goal, root.leaf_value) + self._tolerance:
                return ()
            if root.refined[best]:
                break
            self._refine(root, best)
        if self._proposed or not self._bounds.exact[best]:
            return ()
        self._proposed = True
        return (self._tree_below(best, price),)

    def _tree_below(self, feature: int, price: float) -> DecisionTree:
        """The best tree that branches on a feature at the root."""
        data, depth = self.master.dataset, self.master.topology.depth
        zero, one = (
            best_tree(data.X[side], data.y[side], data.weights[side], data.n_classes, depth - 1, price).tree
            for side in (~data.X[:, feature], data.X[:, feature])
        )
        return DecisionTree.branch(feature, zero, one)

    def _paths(self, point: TreePoint) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The empty path, and every path of integral branches that ends at an internal node."""
        waiting: list[tuple[int, tuple[int, ...]]] = [(1, ())]
        while waiting:
            end, features = waiting.pop()
            yield end, features
            if 2 * end > self.master.topology.n_internal:
                continue
            feature = int(np.argmax(point.b[end - 1]))
            if point.b[end - 1, feature] >= _INTEGRAL:
                waiting += [(2 * end, (*features, feature)), (2 * end + 1, (*features, feature))]

    def _row(self, end: int, features: tuple[int, ...]) -> _PathRow:
        key = (end, features)
        if key not in self._rows:
            directions = [int(end >> step & 1) for step in range(len(features) - 1, -1, -1)]
            self._rows[key] = self._new_row(end, features, frozenset(zip(features, directions, strict=True)))
        return self._rows[key]

    def _new_row(self, end: int, features: tuple[int, ...], literals: frozenset[tuple[int, int]]) -> _PathRow:
        master = self.master
        keep = np.ones(master.dataset.n_samples, dtype=bool)
        for feature, direction in literals:
            keep &= master.dataset.X[:, feature] == bool(direction)
        height = master.topology.height(end)
        n_features = master.dataset.n_features
        if literals and keep.any():
            everything = self._bounds.path_bound(literals, height, master.leaf_price)
            bounds = np.full(n_features, everything)
        else:
            bounds = self._bounds.root_bounds(master.leaf_price)
        leaf_score = float(master.dataset.class_weights(np.flatnonzero(keep)).max(initial=0.0))
        # The split into two leaves is always there, and the argument for paths not taken needs it.
        bounds = np.maximum(bounds, -2 * master.leaf_price)
        return _PathRow(
            end,
            features,
            literals,
            np.flatnonzero(keep),
            leaf_score - master.leaf_price,
            bounds,
            np.zeros(n_features, dtype=bool),
        )

    def _tighten(self, row: _PathRow, point: TreePoint) -> bool:
        """Refine the bounds in use until the point violates the row; whether it does."""
        used = np.flatnonzero(point.b[row.end - 1] > _USED)
        waiting = [int(f) for f in used[np.argsort(-point.b[row.end - 1, used], kind="stable")] if not row.refined[f]]
        while True:
            if self._excess(row, point) > self._tolerance:
                return True
            if not waiting:
                return False
            self._refine(row, waiting.pop(0))

    def _refine(self, row: _PathRow, feature: int) -> None:
        """Make U_f exact, or as tight as the time for it allows."""
        master = self.master
        row.refined[feature] = True
        if not row.literals:
            self._bounds.refine(feature)
            exact = float(self._bounds.root_bounds(master.leaf_price)[feature])
        else:
            height = master.topology.height(row.end) - 1
            exact = sum(self._side_bound(row.literals, feature, direction, height) for direction in (0, 1))
        row.bounds[feature] = min(row.bounds[feature], max(exact, -2 * master.leaf_price))

    def _side_bound(self, literals: frozenset[tuple[int, int]], feature: int, direction: int, height: int) -> float:
        if (feature, 1 - direction) in literals:
            return -self.master.leaf_price  # nobody gets there: one empty leaf
        return self._bounds.path_bound(literals | {(feature, direction)}, height, self.master.leaf_price, exact=True)

    def _excess(self, row: _PathRow, point: TreePoint) -> float:
        """Left side minus right side of the row at the point."""
        master = self.master
        weights = master.dataset.weights[row.samples]
        left = weights @ point.theta[row.samples] - master.leaf_price * point.p[self._inside(row.end) - 1].sum()
        right = row.leaf_value * point.p[row.end - 1] + row.bounds @ point.b[row.end - 1]
        return float(left - right - weights.sum() * self._relax(row, point))

    def _relax(self, row: _PathRow, point: TreePoint) -> float:
        total = 0.0
        for node, feature in zip(self.master.topology.ancestors(row.end), row.features, strict=True):
            total += point.p[node - 1] + point.b[node - 1].sum() - point.b[node - 1, feature]
        return float(total)

    def _inside(self, end: int) -> IntArray:
        return np.append(self.master.topology.descendants(end), end)

    def _as_rows(self, row: _PathRow) -> Rows:
        """The row in columns; p of the end appears on both sides."""
        master, price = self.master, self.master.leaf_price
        weights = master.dataset.weights[row.samples]
        inside = self._inside(row.end)
        p_values = np.full(inside.size, -price)
        p_values[-1] -= row.leaf_value
        columns = [master.theta.index[row.samples], master.p.index[inside - 1], master.b.index[row.end - 1]]
        values = [weights, p_values, -row.bounds]
        for node, feature in zip(master.topology.ancestors(row.end), row.features, strict=True):
            others = np.delete(master.b.index[node - 1], feature)
            columns += [master.p.index[[node - 1]], others]
            values += [np.full(1 + others.size, -weights.sum())]
        return Rows.single(np.concatenate(columns), np.concatenate(values) * master.scale, upper=0.0)
