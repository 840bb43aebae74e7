"""The last word on constraints: a tree that breaks one is cut off, whatever the master's rows say of it.

A constraint writes itself into the master as rows, and measures the violation of a tree on its own. Where the two
disagree by a solver's tolerance, or where a rule has no rows at all, a candidate may still be a tree that breaks it.
With B its branches (n, f) and L its leaves (n, k), every other tree satisfies

    sum of b[n, f] over B + sum of w[n, k] over L  <=  |B| + |L| - 1,

for a tree that has all of them is this one. The row is REQUIRED. It removes a single tree, so a rule that lives on
these rows alone is exact and slow. A rule that knows why the tree breaks it may say more, by `forbid`.
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
        """Rows that every tree that keeps the rule satisfies, and one of which this tree violates by at least one."""


class NoGoods:
    """Rejects candidates whose trees break a rule.

    Parameters
    ----------
    master : Master
        With integral predictions: labels are part of what a rule may look at.
    rules : sequence of ForbiddingRule
    agreement : Agreement, optional
        Checks every candidate that keeps the rules, and what they forbid.
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
        """What the broken rules say themselves, if it cuts the tree off."""
        said = []
        for rule in self.rules:
            reasons = rule.forbid(tree, self.master) if broken_rules([rule], tree) else None
            if reasons is not None:
                said.append(reasons)
                if self._agreement is not None:
                    self._agreement.check_cuts(f"constraints: `{rule.name}`: the rows of its `forbid`", reasons)
        rows = Rows.concatenate(said)
        cuts_off = rows.n_rows and rows.violation(self.master.lift(tree)).max() > 0.5
        return rows if cuts_off else None


def no_good(master: Master, tree: DecisionTree) -> Rows:
    """The row that every tree but this one satisfies."""
    tree = tree.with_max_depth(master.topology.depth)
    branches, leaves = tree.branch_nodes - 1, tree.leaves - 1
    columns = np.concatenate(
        [master.b.index[branches, tree.feature[branches]], master.w.index[leaves, tree.label[leaves]]]
    )
    return Rows.single(columns, 1.0, upper=columns.size - 1.0)
