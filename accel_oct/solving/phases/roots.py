"""The phase for rules about paths that are rules about pairs of columns once the first split is known.

With a given feature at the root, no path below it uses both columns of some pairs, so both sides are independent and
the subtree tables find the best tree of each. The best of all roots is the optimum; a root that was searched has a
bound, also if its tables were stopped.
"""

from __future__ import annotations

import math

import numpy as np

from accel_oct.exact import LocalRules, best_tree
from accel_oct.solving.problem import TallyProblem
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree


class RootByRoot:
    """Applies where every constraint is local, or local below each root (`Traits.apart_below`)."""

    name = "root by root"

    def applies(self, search: Search) -> bool:
        switches, problem = search.config.subtree_bounds, search.problem
        if not (switches.enabled and switches.tables) or isinstance(problem, TallyProblem) or problem.is_strict:
            return False
        coupling = problem.coupling
        return bool(coupling) and all(constraint.traits.apart_below is not None for constraint in coupling)

    def run(self, search: Search) -> Status | None:
        return search.perform(lambda stopper: _search_roots(search, stopper))


def _search_roots(search: Search, stopper: Stopper) -> None:
    problem, data, rules = search.problem, search.problem.table_data, search.problem.table_rules
    below = [each.traits.apart_below for each in problem.coupling if each.traits.apart_below is not None]
    bound = -math.inf
    for feature in range(data.n_features):
        apart = np.any([function(feature) for function in below], axis=0)
        here = LocalRules(np.zeros((1, data.n_samples)), (0.0,), apart)
        joined = LocalRules.joined([here, *([] if rules is None else [rules])])
        column = data.X[:, feature]
        if column.all() or not column.any() or (joined is not None and _is_barred(joined, feature)):
            continue
        sides = []
        for rows in (np.flatnonzero(~column), np.flatnonzero(column)):
            if stopper():
                return
            sides.append(
                best_tree(
                    *(data.X[rows], data.y[rows], data.weights[rows], data.n_classes),
                    problem.max_depth - 1,
                    problem.leaf_price,
                    rules=None if joined is None else joined.of_rows(rows).below([feature]),
                    should_stop=stopper,
                    threads=search.options.threads,
                    memory_limit=search.config.subtree_bounds.memory_limit,
                )
            )
        zero, one = sides
        if zero.found is not None and one.found is not None:
            search.offer_and_record(DecisionTree.branch(feature, zero.found, one.found))
        bound = max(bound, zero.bound + one.bound)
    search.tighten(max(bound, search.incumbent.value))


def _is_barred(rules: LocalRules, feature: int) -> bool:
    return rules.apart is not None and bool(rules.apart[feature, feature])
