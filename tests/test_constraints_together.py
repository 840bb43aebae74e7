"""Every constraint beside every other: by whatever decides them, and by each solver alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from constraint_support import KINDS, keeps, random_constraint, small_instance
from mip_support import skip_unless_available
from oracles.instances import Instance
from oracles.outcomes import reachable
from test_constraints import solved
from test_feature_constraints import OWN, min_leaf_weight, pairs_on_path

from accel_oct import Solver
from accel_oct.constraints import FeatureCosts, ForbiddenFeatures, ForbiddenPairs, MaxFeatures, MinLeafWeight
from accel_oct.solving.config import Config

Score = Callable[[tuple[int, ...]], float]

MASTER_ONLY = replace(Config.preset("default"), prices=False)


def some_constraints(rng: np.random.Generator, instance: Instance) -> list[Any]:
    """One, two or three, of any kind."""
    found = []
    for choice in rng.integers(0, len(KINDS) + 2 * len(OWN), int(rng.integers(1, 4))).tolist():
        if choice < len(KINDS):
            found.append(random_constraint(rng, KINDS[choice], instance))
        else:
            found.append(OWN[(choice - len(KINDS)) % len(OWN)](rng, instance))
    return found


def best_value(instance: Instance, constraints: list[Any], score: Score | None = None) -> float:
    """The largest normalised value, by going through all sets of columns and all that trees on them can predict.

    `score` is what predictions are worth: accuracy by default.
    """
    dataset, n_features = instance.dataset, instance.X.shape[1]
    y, w = dataset.y.tolist(), dataset.weights.tolist()
    penalty = instance.leaf_price / sum(w) if score is None else instance.leaf_penalty
    if score is None:
        score = lambda predicted: sum(w[i] for i in range(len(y)) if predicted[i] == y[i]) / sum(w)  # noqa: E731
    minima = [
        rule.amount if rule.amount is not None else rule.share * sum(w)
        for rule in constraints
        if isinstance(rule, MinLeafWeight)
    ]
    pairs = [pair for rule in constraints if is_on_paths(rule) for pair in rule.pairs]
    others = [rule for rule in constraints if type(rule) in KINDS]

    def is_leaf(rows: tuple[int, ...]) -> bool:
        return all(sum(w[i] for i in rows) >= least - 1e-9 * sum(w) for least in minima)

    best = -np.inf
    for columns in (c for size in range(n_features + 1) for c in combinations(range(n_features), size)):
        if not all(may_use(rule, columns, n_features) for rule in constraints):
            continue
        apart = [(columns.index(f), columns.index(g)) for f, g in pairs if f in columns and g in columns]
        part = instance.X[:, list(columns)]
        for predicted, leaves, _ in reachable(part, dataset.n_classes, instance.max_depth, is_leaf, apart):
            value = score(predicted) - penalty * leaves
            if value > best and all(keeps(rule, instance, (predicted, leaves)) for rule in others):
                best = value
    return best


def is_on_paths(rule: Any) -> bool:
    return isinstance(rule, ForbiddenPairs) and rule.on == "path"


def may_use(rule: Any, columns: tuple[int, ...], n_features: int) -> bool:
    """What rules about the set of columns say."""
    if isinstance(rule, ForbiddenFeatures):
        return not set(columns) & set(rule.features)
    if isinstance(rule, ForbiddenPairs):
        return rule.on == "path" or not any(set(pair) <= set(columns) for pair in rule.pairs)
    if not isinstance(rule, (MaxFeatures, FeatureCosts)):
        return True
    names = list(range(n_features)) if rule.sources is None else list(rule.sources)
    used = {names[column] for column in columns}
    if isinstance(rule, MaxFeatures):
        return len(used) <= rule.n
    prices = dict(zip(sorted(set(names)), rule.prices, strict=True))
    return sum(prices[name] for name in used) <= rule.at_most + 1e-9


def check(instance: Instance, constraints: list[Any], **options: Any) -> None:
    """Status, objective, tree and every row of the history, against going through everything."""
    best = best_value(instance, constraints)
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
