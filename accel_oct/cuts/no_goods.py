"""No-good cuts: a tree that violates a constraint is cut off, whatever the rows of the master allow.

A constraint adds rows to the master, and measures the violation of a tree separately. If the two disagree by the
tolerance of a solver, or if a constraint has no rows, a candidate may be a tree that violates it. With B its branches
(n, f) and L its leaves (n, k), every other tree satisfies

    sum of b[n, f] over B + sum of w[n, k] over L  <=  |B| + |L| - 1,

because a tree with all of them is this one. The row is REQUIRED. It removes a single tree, so a constraint with no
other rows is exact, but slow. A constraint may provide stronger rows, see `Forbids`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master, Response, Rule, TreePoint, broken_rules
from accel_oct.formulation.agreement import Agreement
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.tree import DecisionTree


class ForbiddingRule(Rule, Protocol):
    """A rule that may know why a tree breaks it."""

    def forbid(self, tree: DecisionTree, master: Master) -> Rows | None:
        """Return rows that every feasible tree satisfies, and one of which this tree violates by at least 1."""


class NoGoods:
    """Rejects candidates whose trees violate a constraint.

    Parameters
    ----------
    master : Master
        With integral predictions: labels are part of what a rule may look at.
    agreement : Agreement, optional
        Checks every candidate that satisfies the constraints, and the rows of `forbid`.
    """

    name = "no_goods"
    needs = Needs([Event.CANDIDATE], [Validity.REQUIRED])

    def __init__(self, master: Master, rules: Sequence[ForbiddingRule], agreement: Agreement | None = None) -> None:
        if not master.integral_predictions:
            raise InvalidInputError("constraints need a master with integral predictions")
        self.master = master
        self.rules = rules
        self._agreement = agreement

    def respond(self, point: TreePoint) -> Response | None:
        tree = point.as_predicted
        if not broken_rules(self.rules, tree):
            if self._agreement is not None:
                self._agreement.check(tree)
            return None
        rows = self._reasons(tree) or no_good(self.master, tree)
        return Response((Cuts(rows, Validity.REQUIRED, self.name),))

    def _reasons(self, tree: DecisionTree) -> Rows | None:
        """Return the rows of `forbid` of the violated constraints, if they cut the tree off."""
        found = []
        for rule in self.rules:
            reasons = rule.forbid(tree, self.master) if broken_rules([rule], tree) else None
            if reasons is not None:
                found.append(reasons)
                if self._agreement is not None:
                    self._agreement.check_cuts(f"constraints: `{rule.name}`: the rows of its `forbid`", reasons)
        rows = Rows.concatenate(found)
        cuts_off = rows.n_rows and rows.violation(self.master.lift(tree)).max() > 0.5
        return rows if cuts_off else None


def no_good(master: Master, tree: DecisionTree) -> Rows:
    """Return the row that every tree but this one satisfies."""
    tree = tree.with_max_depth(master.topology.depth)
    branches, leaves = tree.branch_nodes - 1, tree.leaves - 1
    columns = np.concatenate(
        [master.b.index[branches, tree.feature[branches]], master.w.index[leaves, tree.label[leaves]]]
    )
    return Rows.single(columns, 1.0, upper=columns.size - 1.0)
