"""Solves under constraints, checked against exhaustive search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance

import accel_oct
from accel_oct.constraints import BoundConstraint, Constraint
from accel_oct.data import BinaryDataset
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree
from helpers.constraint_support import best_value, keeps


@dataclass(frozen=True)
class FewFeatures(Constraint, BoundConstraint):
    """At most `n` distinct features in the whole tree: a column u_f per feature, b[., f] <= u_f, sum of u <= n."""

    n: int
    name = "few features"

    def bind(self, dataset: BinaryDataset) -> FewFeatures:
        return self

    def violation(self, tree: DecisionTree) -> float:
        return float(len(tree.features_used) - self.n)

    def add_to(self, master: Master) -> None:
        used = master.model.add_block("used", master.dataset.n_features, integer=True)
        b = master.b.index
        rows = np.arange(b.size)
        columns = np.concatenate([b.ravel(), np.tile(used.index, len(b))])
        values = np.repeat([1.0, -1.0], b.size)
        master.model.add_rows(Rows.from_entries(np.tile(rows, 2), columns, values, n_rows=b.size, upper=0.0), "used")
        master.model.add_rows(Rows.single(used.index, 1.0, upper=float(self.n)), "few features")

        def fill(tree: DecisionTree, x: Any) -> None:
            used.view(x)[list(tree.features_used)] = 1.0

        master.add_lift(fill)


def solved(instance: Instance, constraints: list[Any], **options: Any) -> accel_oct.Result:
    return accel_oct.solve(
        instance.X,
        instance.y,
        sample_weight=instance.sample_weight,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        constraints=constraints,
        **options,
    )


def optimum(instance: Instance, constraints: list[Any]) -> float:
    """The best value of all trees, every labelling included, that satisfy the constraints; normalised."""
    dataset = instance.dataset
    bound = [constraint.bind(dataset) for constraint in constraints]
    best = -np.inf
    for tree in enumerate_trees(dataset, instance.max_depth, labels="all"):
        value = tree.value(dataset, instance.leaf_price)
        if value > best and all(constraint.violation(tree) <= 0 for constraint in bound):
            best = value
    return best / dataset.total_weight


def check_trees(instance: Instance, constraints: list[Any], **options: Any) -> None:
    """Status, objective, bound, tree and every row of the history agree with the enumeration."""
    best = optimum(instance, constraints)
    result = solved(instance, constraints, **options)
    for row in result.history:
        assert row.objective <= best + 1e-8 and row.bound >= best - 1e-8, (row, instance)
    if best == -np.inf:
        assert result.status == "infeasible" and result.found is None, instance
        return
    assert result.status == "optimal" and abs(result.objective - best) <= 1e-8, (result, best, instance)
    assert result.bound == result.objective
    dataset = instance.dataset
    assert all(constraint.bind(dataset).violation(result.tree) <= 0 for constraint in constraints), instance
    assert abs(result.tree.value(dataset, instance.leaf_price) / dataset.total_weight - best) <= 1e-8


def tree_of(result: accel_oct.Result, instance: Instance) -> tuple[tuple[int, ...], int]:
    return tuple(result.tree.predict(instance.X).tolist()), result.tree.n_leaves


def check_predictions(instance: Instance, constraints: list[Any], **options: Any) -> accel_oct.Result:
    """Status, objective, every row of the history and the tree agree with going through everything."""
    best = best_value(instance, constraints)
    result = solved(instance, constraints, **options)
    for row in result.history:
        assert row.objective <= best + 1e-8 and row.bound >= best - 1e-8, (row, best, instance, constraints)
    if best == -np.inf:
        assert result.status == "infeasible" and result.found is None, (instance, constraints)
        return result
    assert result.status == "optimal", (result, best, instance, constraints)
    assert abs(result.objective - best) <= 1e-8, (result, best, instance, constraints)
    assert all(keeps(constraint, instance, tree_of(result, instance)) for constraint in constraints)
    return result
