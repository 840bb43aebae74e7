"""Rules without a form, alone and with other constraints, on random instances against a list of all trees.

    python -m programs.fuzz_rules --count 3000 [--monotone]

Case number i is the same in every run. It stops at the first wrong status, objective, bound or tree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from helpers.constraint_support import KINDS, random_constraint
from helpers.monotone_support import MonotoneCase, random_case
from helpers.tree_rules import TREE_RULES, as_constraint, few_ones_per_half, path_rule, prediction_rule
from oracles.instances import Instance, random_instance
from oracles.ruled_trees import best_allowed, is_proper, present

import accel_oct
from accel_oct.constraints import Constraint, ForbiddenPairs, MaxFeatures, MinLeafWeight, Monotone, TreeRule, bind_all
from accel_oct.errors import InvalidInputError

MORE = (*KINDS, MinLeafWeight, MaxFeatures, ForbiddenPairs)
"""Constraints of the library that a rule is combined with."""


def draw(number: int) -> tuple[Instance, list[Constraint], str]:
    """Instance, constraints and name of the rule of a case: each rule alone, then with one or two others."""
    rng = np.random.default_rng(number)
    rules: list[Any] = [*TREE_RULES, None, path_rule]
    rule = rules[number % len(rules)]
    while True:
        depth = int(rng.choice([1, 2, 2, 2, 3]))
        instance = random_instance(rng, max_samples=10, max_features=2 if depth == 3 else 3, max_depth=depth)
        varied = len(np.unique(instance.X, axis=0)) > 2 and instance.leaf_penalty < 0.2
        if varied and 2 <= instance.dataset.n_classes <= (2 if depth == 3 else 3):
            break
    if rule is path_rule:
        constraint = path_rule(rng, instance.X.shape[1])
    else:
        constraint = prediction_rule() if rule is None else as_constraint(rng, rule)
    more = [_another(rng, instance) for _ in range(number // len(rules) % 3)]
    return instance, [constraint, *more], few_ones_per_half.__name__ if rule is None else rule.__name__


def _another(rng: np.random.Generator, instance: Instance) -> Any:
    kind: Any = MORE[int(rng.integers(len(MORE)))]
    if kind is MinLeafWeight:
        return MinLeafWeight(samples=int(rng.integers(1, 4)))
    if kind is MaxFeatures:
        return MaxFeatures(int(rng.integers(1, 3)))
    if kind is ForbiddenPairs:
        return ForbiddenPairs([tuple(rng.choice(instance.X.shape[1], 2, replace=instance.X.shape[1] < 2).tolist())])
    return random_constraint(rng, kind, instance)


def draw_monotone(number: int) -> tuple[MonotoneCase, list[Constraint]]:
    """A case with monotone constraints, on binary data or on an encoded table, and none, one or two others."""
    rng = np.random.default_rng([number, 1])
    case = random_case(rng)
    return case, [*case.constraints, *(_another(rng, case.instance) for _ in range(number % 3))]


def check_case(number: int, solver: str = "highs", config: str = "default") -> str:
    """Solve a case and compare with the list of all trees; returns what decided it."""
    instance, constraints, name = draw(number)
    data = instance.dataset
    rows = present(data)
    proper_only = isinstance(constraints[0], TreeRule)

    def allows(nested: Any) -> bool:
        return not proper_only or is_proper(nested, data, rows)

    where = f"case {number}: {name}, {constraints[1:]}, {instance}"
    arguments = (instance.X, instance.y, instance.sample_weight)
    return _check(arguments, instance, constraints, allows, where, solver, config)


def check_monotone(number: int, solver: str = "highs", config: str = "default") -> str:
    """The same for `draw_monotone`: all points of the space decide which trees are monotone."""
    case, constraints = draw_monotone(number)
    where = f"monotone case {number}: {case.constraints}, {constraints}, {case.columns}, {case.instance}"
    return _check((case.dataset,), case.instance, constraints, case.allows, where, solver, config)


def _check(
    arguments: Sequence[Any],
    instance: Instance,
    constraints: list[Constraint],
    allows: Callable[[Any], bool],
    where: str,
    solver: str,
    config: str,
) -> str:
    data = arguments[0] if len(arguments) == 1 else instance.dataset
    try:
        bound = bind_all(constraints, data)
    except InvalidInputError:
        return "not a case"  # the random constraint does not fit the random data
    measured = [each for each, stated in zip(bound, constraints, strict=True) if not isinstance(stated, Monotone)]

    def feasible(tree: Any, nested: Any) -> bool:
        return all(each.violation(tree) <= 0 for each in measured) and allows(nested)

    empty = len(measured) == len(bound)
    best = best_allowed(data, instance.max_depth, instance.leaf_penalty, feasible, empty)
    result = accel_oct.solve(
        *arguments[:2],
        sample_weight=arguments[2] if len(arguments) > 2 else None,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        constraints=constraints,
        solver=solver,
        config=config,
    )
    if best == -np.inf:
        assert result.status == "infeasible", (where, result)
        return str(result.stats["decided_by"])
    tolerance = 1e-9 if result.stats["decided_by"] == "enumeration" else 1e-5
    assert result.status == "optimal" and result.tree is not None, (where, result)
    assert result.objective == pytest.approx(best, abs=tolerance), where
    assert feasible(result.tree, result.tree.nested()), where
    for row in result.history:
        assert row.objective <= best + tolerance and best <= row.bound + tolerance, (where, row)
    return str(result.stats["decided_by"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--monotone", action="store_true", help="monotone constraints instead of rules")
    parser.add_argument("--solver", default="highs")
    parser.add_argument("--config", default="default")
    arguments = parser.parse_args()
    began, decided = time.perf_counter(), {}
    for done in range(1, arguments.count + 1):
        check = check_monotone if arguments.monotone else check_case
        by = check(arguments.first + done - 1, arguments.solver, arguments.config)
        decided[by] = decided.get(by, 0) + 1
        if done % 500 == 0 or done == arguments.count:
            print(f"{done} instances, 0 wrong, {time.perf_counter() - began:.0f} s, decided by {decided}", flush=True)


if __name__ == "__main__":
    main()
