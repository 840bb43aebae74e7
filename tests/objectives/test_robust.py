"""Robust accuracy: against every tree and every perturbed sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.robust_support import RobustInstance, robust_instance
from helpers.selection import daily
from oracles.enumeration import enumerate_trees
from oracles.robust import robust_value

import accel_oct
from accel_oct.solving.config import Config

BY_LIST = Config.preset("default")
BY_SOLVER = replace(BY_LIST, enumeration=False, subtree_bounds=replace(BY_LIST.subtree_bounds, tables=False))


def check(instance: RobustInstance, **options) -> accel_oct.Result:
    """Solve; the result is the optimum by its definition, and every bound on the way is valid."""
    best = instance.best()
    result = accel_oct.solve(
        instance.data,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        objective=instance.objective,
        **options,
    )
    assert result.status == "optimal" and abs(result.objective - best) < 1e-9, (result.objective, best)
    value = robust_value(result.tree, instance.data.y, instance.data.weights, instance.points)
    assert abs(value - instance.leaf_penalty * result.tree.n_leaves - best) < 1e-9
    assert all(row.bound >= best - 1e-9 and row.objective <= best + 1e-9 for row in result.history)
    return result


@pytest.mark.parametrize("kind", ["flips", "radius"])
def test_the_score_is_its_definition(kind: str) -> None:
    """A tree counts the samples of which every perturbed point is predicted right."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        instance = robust_instance(rng, kind)
        score = instance.objective.bind(instance.data)
        trees = list(enumerate_trees(instance.data, instance.max_depth, labels="all"))
        for place in rng.choice(len(trees), 15):
            expected = robust_value(trees[place], instance.data.y, instance.data.weights, instance.points)
            assert score.value(trees[place]) == pytest.approx(expected, abs=1e-12)
            assert score.relaxed.value(trees[place]) >= expected - 1e-12


@pytest.mark.parametrize("kind", ["flips", "radius"])
def test_by_enumeration(kind: str) -> None:
    """Without a solver: the optimum over all trees."""
    rng = np.random.default_rng(4)
    for _ in range(15):
        result = check(robust_instance(rng, kind), config=BY_LIST)
        assert result.stats["decided_by"] != "branch and cut"


@pytest.mark.parametrize("solver", daily(["highs", "gurobi", "scip"], 1))
def test_by_branch_and_cut(solver: str) -> None:
    """By Benders cuts of perturbed samples alone, with and without cuts at fractional points."""
    skip_unless_available(solver)
    rng = np.random.default_rng(5)
    for place in range(6):
        check(robust_instance(rng), solver=solver, config=BY_SOLVER if place % 2 else "baseline")


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_random_instances(first: int) -> None:
    """A thousand instances, half of them with flips, by enumeration and on three solvers."""
    for seed in range(first, first + 50):
        instance = robust_instance(np.random.default_rng(seed))
        check(instance, config=BY_LIST)
        for solver in ("highs", "gurobi", "scip"):
            check(instance, solver=solver, config="baseline" if seed % 3 == 0 else BY_SOLVER)
