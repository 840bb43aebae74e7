"""Every constraint beside every other: by whatever decides them, and by each solver alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.constrained_solves import solved
from helpers.constraint_support import KINDS, random_constraint, small_instance
from helpers.feature_rules import (
    OWN,
    best_value_by_columns,
    min_leaf_weight,
    pairs_on_path,
    some_constraints,
)
from helpers.mip_support import skip_unless_available
from oracles.instances import Instance

from accel_oct import Solver
from accel_oct.solving.config import Config

MASTER_ONLY = replace(Config.preset("default"), prices=False)


def check(instance: Instance, constraints: list[Any], **options: Any) -> None:
    """Status, objective, tree and every row of the history, against going through everything."""
    best = best_value_by_columns(instance, constraints)
    result = solved(instance, constraints, **options)
    about = (result, best, instance, constraints)
    for row in result.history:
        assert row.objective <= best + 1e-8 and row.bound >= best - 1e-8, (row, *about)
    if best == -np.inf:
        assert result.status == "infeasible" and result.found is None, about
        return
    assert result.status == "optimal" and abs(result.objective - best) <= 1e-8, about
    bound = [constraint.bind(instance.dataset) for constraint in constraints]
    assert all(constraint.violation(result.tree) <= 0 for constraint in bound), about


@pytest.mark.parametrize("seed", range(6))
def test_all_kinds(seed: int) -> None:
    rng = np.random.default_rng([900, seed])
    for _ in range(15):
        instance = small_instance(rng)
        check(instance, some_constraints(rng, instance))


@pytest.mark.parametrize("seed", range(4))
def test_rules_of_three_kinds(seed: int) -> None:
    """About leaves and paths, beside rules about features, limits on predictions, or both: without any solver."""
    rng = np.random.default_rng([904, seed])
    local = (min_leaf_weight, pairs_on_path)
    for _ in range(15):
        instance = small_instance(rng)
        constraints = [local[int(place)](rng, instance) for place in rng.integers(0, 2, int(rng.integers(1, 3)))]
        which = int(rng.integers(3))
        if which != 0:
            constraints.append(random_constraint(rng, KINDS[int(rng.integers(len(KINDS)))], instance))
        if which != 1:
            constraints.append(OWN[int(rng.integers(5)) % 3](rng, instance))
        check(instance, constraints, solver=Solver(node_limit=0))


@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_all_kinds_by_the_solver(backend: str) -> None:
    skip_unless_available(backend)
    rng = np.random.default_rng([901, sum(map(ord, backend))])
    for _ in range(10):
        instance = small_instance(rng, max_depth=2)
        check(instance, some_constraints(rng, instance), config=MASTER_ONLY, solver=backend)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(50))
def test_all_kinds_at_length(seed: int) -> None:
    rng = np.random.default_rng([902, seed])
    for _ in range(100):
        instance = small_instance(rng)
        check(instance, some_constraints(rng, instance))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_all_kinds_by_the_solver_at_length(backend: str, seed: int) -> None:
    skip_unless_available(backend)
    rng = np.random.default_rng([903, seed, sum(map(ord, backend))])
    for _ in range(30):
        instance = small_instance(rng, max_depth=2)
        check(instance, some_constraints(rng, instance), config=MASTER_ONLY, solver=backend)
