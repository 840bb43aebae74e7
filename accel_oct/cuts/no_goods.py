"""The last word on constraints: a tree that breaks one is cut off, whatever the master's rows say of it.

A constraint writes itself into the master as rows, and measures the violation of a tree on its own. Where the two
disagree by a solver's tolerance, or where a rule has no rows at all, a candidate may still be a tree that breaks it.
With B its branches (n, f) and L its leaves (n, k), every other tree satisfies

    sum of b[n, f] over B + sum of w[n, k] over L  <=  |B| + |L| - 1,

for a tree that has all of them is this one. The row is REQUIRED. It removes a single tree, so a rule that lives on
these rows alone is exact and slow.
"""

from __future__ import annotations

import numpy as np

from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master, Response, Rule, TreePoint, broken_rules
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.tree import DecisionTree


class NoGoods:
    """Rejects candidates whose trees break a rule.

    Parameters
    ----------
    master : Master
        With integral predictions: labels are part of what a rule may look at.
    rules : tuple of Rule
    """

    name = "no_goods"
    needs = Needs([Event.CANDIDATE], [Validity.REQUIRED])

    def __init__(self, master: Master, rules: tuple[Rule, ...]) -> None:
        if not master.integral_predictions:
            raise InvalidInputError("constraints need a master with integral predictions")
        self.master = master
        self.rules = rules

    def respond(self, point: TreePoint) -> Response | None:
        if not broken_rules(self.rules, point.as_predicted):
            return None
        return Response((Cuts(no_good(self.master, point.as_predicted), Validity.REQUIRED, self.name),))


def no_good(master: Master, tree: DecisionTree) -> Rows:
    """The row that every tree but this one satisfies."""
    tree = tree.with_max_depth(master.topology.depth)
    branches, leaves = tree.branch_nodes - 1, tree.leaves - 1
    columns = np.concatenate(
        [master.b.index[branches, tree.feature[branches]], master.w.index[leaves, tree.label[leaves]]]
    )
    return Rows.single(columns, 1.0, upper=columns.size - 1.0)
