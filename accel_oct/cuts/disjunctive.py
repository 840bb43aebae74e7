"""Disjunctive path bounds: bounds on the value of subtrees as rows of the master, without a big-M.

At the root, with CS_1 the best score of a single leaf and U_f a bound on the value of the two subtrees below a split on
f,

    sum_i w_i theta_i - leaf_price * sum_n p_n  <=  (CS_1 - leaf_price) p_1 + sum_f U_f b[1, f].

Exactly one term on the right is active in a tree, so the row holds for every tree, and the bound of the relaxation is
the largest U_f in use. At the end m of a path P, with S the samples that follow it and the sums over S and over m and
the nodes below it, the same holds with ``W(S) * relax`` added on the right, where relax is the sum of p[n] and of
b[n, f] over the path's nodes n and the features f not taken there:

- if the tree takes P, relax is 0 and the row is the one above for the subtree at m;
- otherwise relax is at least 1. The left side is at most W(S) minus one leaf price if m is a leaf, minus two if it
  branches, and the terms of m on the right are at least minus that many leaf prices, because no U_f is below the value
  of two leaves. So the row holds too.

The rows are IMPLIED: each concerns a single subtree, and stays valid under further constraints. The U_f are tightened
lazily: at the root best first, until the largest is exact (or no better than the incumbent), elsewhere only if the
relaxation uses them. A row with smaller U_f replaces the previous one. The tree of the largest exact U_f is optimal,
and is proposed as soon as it is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accel_oct.exact import SubtreeBounds, best_tree
from accel_oct.formulation import Master, Response, Site, TreePath, TreePoint, integral_paths
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree import DecisionTree

_USED = 1e-6
#: Violations below this share of the total weight are numerical noise of the solver.
_VIOLATION = 1e-7


@dataclass(frozen=True)
class SubtreeBoundConfig:
    """Exact subtree profiles and disjunctive path bounds, beyond the paper.

    Parameters
    ----------
    enabled : bool
    tables : bool
        Search the tables of exact profiles before the master is built, which usually solves the problem. Otherwise
        the bounds reach the solver only as disjunctive rows, refined where the relaxation uses them.
    memory_limit : int
        Limit on the bytes of the tables; beyond it a slower exact method is used.
    """

    enabled: bool = False
    tables: bool = True
    memory_limit: int = 4 << 30


@dataclass
class _PathRow:
    """The row of one path: the samples that follow it, and the current bounds."""

    path: TreePath
    literals: frozenset[tuple[int, int]]
    samples: IntArray
    leaf_value: float
    bounds: FloatArray
    refined: np.ndarray[tuple[int], np.dtype[np.bool_]]


class DisjunctivePathBounds:
    """Separates the rows above at the root and at the ends of integral paths.

    Parameters
    ----------
    bounds : SubtreeBounds
        Exact values and bounds of subtrees, of the same data.
    """

    name = "disjunctive"

    def __init__(self, master: Master, bounds: SubtreeBounds) -> None:
        self.master = master
        self._bounds = bounds
        self._rows: dict[TreePath, _PathRow] = {}
        events = [Event.CANDIDATE, Event.RELAXATION]
        self.needs = Needs(events, [Validity.IMPLIED], injects=True)
        self._proposed = False
        self._tolerance = _VIOLATION * master.dataset.total_weight

    @classmethod
    def build(cls, site: Site, switches: SubtreeBoundConfig) -> DisjunctivePathBounds | None:
        """Build the component if it is enabled and the backend shows relaxations."""
        if not (switches.enabled and site.shows_relaxations):
            return None
        data = site.master.dataset
        bounds = SubtreeBounds(
            data.X,
            data.y,
            data.weights,
            data.n_classes,
            site.master.topology.depth,
            threads=site.threads,
            memory_limit=switches.memory_limit,
            deadline=site.deadline,
        )
        return cls(site.master, bounds)

    def respond(self, point: TreePoint) -> Response | None:
        trees = self._refine_root(point)
        cuts = []
        for path, _ in integral_paths(point.b, 1):
            row = self._row(path)
            if row.samples.size and self._tighten(row, point):
                key = f"{self.name} {path.end} {path.features}"
                cuts.append(Cuts(self._as_rows(row), Validity.IMPLIED, self.name, key))
        return Response(tuple(cuts), trees) if cuts or trees else None

    def _refine_root(self, point: TreePoint) -> tuple[DecisionTree, ...]:
        """Make the largest root bound exact; return its tree once."""
        root, price = self._row(TreePath(1, ())), self.master.leaf_price
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
        """Return the best tree that branches on a feature at the root."""
        data, depth = self.master.dataset, self.master.topology.depth
        zero, one = (
            best_tree(data.X[side], data.y[side], data.weights[side], data.n_classes, depth - 1, price).tree
            for side in (~data.X[:, feature], data.X[:, feature])
        )
        return DecisionTree.branch(feature, zero, one)

    def _row(self, path: TreePath) -> _PathRow:
        if path not in self._rows:
            self._rows[path] = self._new_row(path, path.literals)
        return self._rows[path]

    def _new_row(self, path: TreePath, literals: frozenset[tuple[int, int]]) -> _PathRow:
        master = self.master
        keep = np.ones(master.dataset.n_samples, dtype=bool)
        for feature, direction in literals:
            keep &= master.dataset.X[:, feature] == bool(direction)
        height = master.topology.height(path.end)
        n_features = master.dataset.n_features
        if literals and keep.any():
            everything = self._bounds.path_bound(literals, height, master.leaf_price)
            bounds = np.full(n_features, everything)
        else:
            bounds = self._bounds.root_bounds(master.leaf_price)
        leaf_score = float(master.dataset.class_weights(np.flatnonzero(keep)).max(initial=0.0))
        # A split into two leaves always exists; the argument for paths not taken needs it.
        bounds = np.maximum(bounds, -2 * master.leaf_price)
        return _PathRow(
            path,
            literals,
            np.flatnonzero(keep),
            leaf_score - master.leaf_price,
            bounds,
            np.zeros(n_features, dtype=bool),
        )

    def _tighten(self, row: _PathRow, point: TreePoint) -> bool:
        """Refine the bounds in use until the point violates the row; return whether it does."""
        branching = point.b[row.path.end - 1]
        used = np.flatnonzero(branching > _USED)
        waiting = [int(f) for f in used[np.argsort(-branching[used], kind="stable")] if not row.refined[f]]
        while True:
            if self._excess(row, point) > self._tolerance:
                return True
            if not waiting:
                return False
            self._refine(row, waiting.pop(0))

    def _refine(self, row: _PathRow, feature: int) -> None:
        """Make U_f exact, or as tight as time allows."""
        master = self.master
        row.refined[feature] = True
        if not row.literals:
            self._bounds.refine(feature)
            exact = float(self._bounds.root_bounds(master.leaf_price)[feature])
        else:
            height = master.topology.height(row.path.end) - 1
            exact = sum(self._side_bound(row.literals, feature, direction, height) for direction in (0, 1))
        row.bounds[feature] = min(row.bounds[feature], max(exact, -2 * master.leaf_price))

    def _side_bound(self, literals: frozenset[tuple[int, int]], feature: int, direction: int, height: int) -> float:
        if (feature, 1 - direction) in literals:
            return -self.master.leaf_price  # no sample gets there: one empty leaf
        return self._bounds.path_bound(literals | {(feature, direction)}, height, self.master.leaf_price, exact=True)

    def _excess(self, row: _PathRow, point: TreePoint) -> float:
        """Return the left side minus the right side of the row at the point."""
        master, end = self.master, row.path.end
        weights = master.dataset.weights[row.samples]
        leaves = point.p[master.topology.subtree(end) - 1].sum()
        left = weights @ point.theta[row.samples] - master.leaf_price * leaves
        right = row.leaf_value * point.p[end - 1] + row.bounds @ point.b[end - 1]
        relax = sum(point.point.x[part].sum() for part in row.path.relax(master))
        return float(left - right - weights.sum() * relax)

    def _as_rows(self, row: _PathRow) -> Rows:
        """Return the row; p of the end appears on both sides."""
        master, price = self.master, self.master.leaf_price
        weights = master.dataset.weights[row.samples]
        inside = master.topology.subtree(row.path.end)
        p_values = np.full(inside.size, -price)
        p_values[0] -= row.leaf_value  # the first node of the subtree is its root
        columns = [master.theta.index[row.samples], master.p.index[inside - 1], master.b.index[row.path.end - 1]]
        values = [weights, p_values, -row.bounds]
        for part in row.path.relax(master):
            columns.append(part)
            values.append(np.full(part.size, -weights.sum()))
        return Rows.single(np.concatenate(columns), np.concatenate(values) * master.scale, upper=0.0)
