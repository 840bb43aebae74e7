"""Cuts of objectives under which a row may count for nothing although its prediction is right.

`Master.counted` says which rows count for a tree; theta of a row is at most that. An objective brings cuts that define
theta, such as `RobustCuts`. Where it has none, or they do not cut off a candidate, the cut of the whole tree does: with
b[n, f] of the N splits and w[m, k] of the leaves of a tree T for which row i does not count,

    theta_i <= sum over these columns of (1 - column),

whose right side is zero for T, and at least one for every other tree.
"""

from __future__ import annotations

import numpy as np

from accel_oct.cuts.benders import VIOLATION, path_rows, separate_fractional
from accel_oct.formulation import Claims, Component, Master, Response, TreePoint
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.support.arrays import IntArray
from accel_oct.tree import DecisionTree
from accel_oct.tree.reach import Reach

#: Most copies of samples that are separated at relaxations.
_MOST_COPIES = 20_000


class StrictCuts:
    """The cuts of an objective, and those of the whole tree where they leave a candidate that is worth too much.

    Parameters
    ----------
    master : Master
    own : Component or None
        The cuts of the objective.
    """

    def __init__(self, master: Master, own: Component | None) -> None:
        self.master = master
        self._own = own
        self.name = "strict" if own is None else own.name
        self.needs = Needs([Event.CANDIDATE], [Validity.REQUIRED])
        if own is not None:
            self.needs = self.needs | own.needs

    def respond(self, point: TreePoint) -> Response | None:
        response = self._own.respond(point) if self._own is not None and self._is_asked(point) else None
        if not point.is_candidate:
            return response
        tree = point.as_predicted
        excess = point.theta > self.master.counted(tree) + VIOLATION
        if not excess.any():
            return response
        cuts = () if response is None else response.cuts
        if any(batch.rows.n_rows and batch.rows.violation(point.point.x).max() > VIOLATION for batch in cuts):
            return response
        rows = whole_tree_rows(self.master, tree, np.flatnonzero(excess))
        trees = () if response is None else response.trees
        return Response((*cuts, Cuts(rows, Validity.REQUIRED, self.name)), trees)

    def _is_asked(self, point: TreePoint) -> bool:
        return self._own is not None and point.point.event in self._own.needs.events


def whole_tree_rows(master: Master, tree: DecisionTree, rows: IntArray) -> Rows:
    """Return ``theta_i <= number of splits and labels of the tree that another one has not`` for some rows."""
    branches, leaves = tree.branch_nodes - 1, tree.leaves - 1
    columns = np.concatenate(
        [master.b.index[branches, tree.feature[branches]], master.w.index[leaves, tree.label[leaves]]]
    )
    parts = [Rows.single([*columns, master.theta.index[row]], 1.0, upper=float(columns.size)) for row in rows.tolist()]
    return Rows.concatenate(parts)


class RobustCuts:
    """Benders cuts of perturbed samples; every copy of a sample bounds the one theta of the sample.

    A sample counts only if its copies do, so the cut of every copy x' within the budget holds for every tree:

        theta_i <= sum of b[a, f] over the ancestors a of the leaf and the features f that lead x' off the path
                 + sum of w[m, y_i] over the leaf and its ancestors m.

    At a candidate, for every sample that does not count, the copy is the one that reaches a leaf of another class with
    fewest changes, and of these the leaf with the shortest path, whose cut has the fewest terms. At a relaxation the
    minimum cuts of the copies that were used so far are separated; the cheapest copy at a fractional point is not
    sought.

    Parameters
    ----------
    master : Master
        Its rows are the samples of `reach`, in order.
    reach : Reach
    """

    name = "robust"
    needs = Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.REQUIRED, Validity.IMPLIED])

    def __init__(self, master: Master, reach: Reach) -> None:
        self.master, self.reach = master, reach
        self._known: set[tuple[int, bytes]] = set()
        self._copies: Claims | None = None

    def respond(self, point: TreePoint) -> Response | None:
        if not point.is_candidate:
            if self._copies is None:
                return None
            rows = separate_fractional(self.master, self._copies, point.point.x)
            return Response((Cuts(rows, Validity.IMPLIED, self.name),)) if rows.n_rows else None
        y, tree = self.master.dataset.y, point.as_predicted
        changes, leaves = self.reach.changes(tree), tree.leaves
        wrong = (tree.label[leaves - 1][None, :] != y[:, None]) & (changes <= self.reach.budget)
        chosen = np.flatnonzero(wrong.any(axis=1) & (point.theta > VIOLATION))
        if not chosen.size:
            return None
        # Leaves are in the order of their depth, so the first of the cheapest is the shallowest.
        nearest = leaves[np.where(wrong, changes, self.reach.budget + 1)[chosen].argmin(axis=1)]
        copies = self.reach.moved(tree, chosen, nearest)
        claims = Claims(copies, np.arange(chosen.size), y[chosen], self.master.theta.index[chosen])
        self._remember(claims)
        rows = path_rows(self.master, claims, np.arange(chosen.size), nearest)
        return Response((Cuts(rows, Validity.REQUIRED, self.name),))

    def _remember(self, claims: Claims) -> None:
        """Keep the copies that are new, up to a limit."""
        keys = [(int(c), point.tobytes()) for c, point in zip(claims.column, claims.points, strict=True)]
        new = [place for place, key in enumerate(keys) if key not in self._known]
        if not new or len(self._known) >= _MOST_COPIES:
            return
        self._known.update(keys)
        old = self._copies
        points = claims.points[new] if old is None else np.concatenate([old.points, claims.points[new]])
        label = claims.label[new] if old is None else np.concatenate([old.label, claims.label[new]])
        column = claims.column[new] if old is None else np.concatenate([old.column, claims.column[new]])
        self._copies = Claims(points, np.arange(len(points)), label, column)
