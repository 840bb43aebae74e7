"""The second criterion of a classifier: which of the equally good trees it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.constraints import bind_all
from accel_oct.errors import InvalidInputError, shown
from accel_oct.estimators.training import Solved
from accel_oct.exact.ordered import OrderedTree
from accel_oct.exact.ties import WORK, Settled
from accel_oct.objectives import LinearScore
from accel_oct.solving.every_split import EverySplit
from accel_oct.solving.result import constraint_reports
from accel_oct.support.arguments import TIE_CRITERIA, TieCriterion
from accel_oct.support.stopping import Clock
from accel_oct.tree import DecisionTree


def checked_ties(ties: Any) -> TieCriterion:
    """Return a valid `ties`."""
    for criterion in TIE_CRITERIA:
        if isinstance(ties, str) and ties == criterion:
            return criterion
    raise InvalidInputError(f"ties must be one of {', '.join(map(repr, TIE_CRITERIA))}, got {shown(ties)}")


def note_of(criterion: TieCriterion, settled: Settled) -> dict[str, Any]:
    """Return the entry of the statistics of a result."""
    return {
        "ties": {
            "criterion": criterion if settled.complete else "first",
            "exchanged": settled.exchanged,
            "complete": settled.complete,
        }
    }


def among_equals(model: Any, solved: Solved, clock: Clock) -> Solved:
    """Return a solve over binary features with an equally good tree that is better by the criterion of a classifier.

    Only proven optima of problems whose subtrees are independent are changed.
    """
    criterion, (encoder, data, result) = checked_ties(model.ties), solved
    tree = result.found
    if criterion == "first" or tree is None or result.status != "optimal" or tree.n_leaves == 1:
        return solved
    if data.tally is not None or not isinstance(data.score, LinearScore) or data.dataset.X.size > WORK:
        return solved
    rows = data.dataset.weights > 0
    bound = bind_all(model._all_constraints(data), data.dataset)
    ranks = np.ascontiguousarray(data.dataset.X[rows].T.astype(np.int32))
    space = EverySplit(data.score, ranks, rows, model._all_constraints(data), model.max_depth)
    if not all(map(space.takes, bound)):
        return solved
    settled = space.settled(_ordered(tree), criterion, lambda: clock.left == 0.0)
    found = _as_decision_tree(settled.tree).with_max_depth(tree.max_depth) if settled.exchanged else tree
    reports = constraint_reports(bound, found, [each.multiplier for each in result.constraints])
    stats = {**result.stats, **note_of(criterion, settled)}
    return Solved(encoder, data, replace(result, found=found, constraints=reports, stats=stats))


def _ordered(tree: DecisionTree) -> OrderedTree:
    """Return a tree over binary features as one over orders of two values."""
    rows: list[list[int]] = []

    def add(node: int) -> int:
        place, feature = len(rows), int(tree.feature[node - 1])
        rows.append([feature, 0 if feature >= 0 else -1, -1, -1, int(tree.label[node - 1])])
        if feature >= 0:
            rows[place][2], rows[place][3] = add(2 * node), add(2 * node + 1)
        return place

    add(1)
    return OrderedTree.of_rows(np.array(rows, dtype=np.int32))


def _as_decision_tree(tree: OrderedTree) -> DecisionTree:
    """Return a tree over orders of two values as one over binary features."""
    built: dict[int, DecisionTree] = {}
    for node in reversed(range(len(tree.column))):  # children come after their parents
        if tree.column[node] < 0:
            built[node] = DecisionTree.leaf(tree.label[node])
        else:
            low, high = built.pop(tree.left[node]), built.pop(tree.right[node])
            built[node] = DecisionTree.branch(tree.column[node], low, high)
    return built[0]
