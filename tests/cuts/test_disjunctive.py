"""Disjunctive path bounds: valid at every tree, tight at the root, enough for a proof at the relaxation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.random_suite import check, draw
from helpers.selection import daily
from hypothesis import given
from oracles.dynamic_programme import optimal_value
from oracles.enumeration import enumerate_decision_lists, enumerate_trees
from oracles.instances import Instance, chain_instances, instances

import accel_oct
from accel_oct.cuts.disjunctive import DisjunctivePathBounds
from accel_oct.exact import SubtreeBounds
from accel_oct.formulation import Master, TreePath, TreePoint, integral_paths
from accel_oct.mip import Event, Point, Rows
from accel_oct.solving.config import Config, SubtreeBoundConfig

ROWS_ONLY = replace(Config.preset("default"), subtree_bounds=SubtreeBoundConfig(enabled=True, tables=False))


def _component(instance: Instance) -> DisjunctivePathBounds:
    data = instance.dataset
    master = Master(data, instance.max_depth, instance.leaf_price)
    bounds = SubtreeBounds(data.X, data.y, data.weights, data.n_classes, instance.max_depth)
    return DisjunctivePathBounds(master, bounds)


def _every_row(component: DisjunctivePathBounds, trees: list) -> Rows:
    """Rows of all paths that the trees contain: as first made, after some refinement, and fully refined."""
    master = component.master
    batches = []
    for tree in trees:
        x = master.lift(tree)
        point = TreePoint(master, Point(Event.CANDIDATE, x, 0.0, None, np.inf, 0.0))
        for path, _ in integral_paths(point.b, 1):
            row = component._row(path)
            if not row.samples.size:
                continue
            batches.append(component._as_rows(row))
            for feature in range(master.dataset.n_features):
                component._refine(row, feature)
            batches.append(component._as_rows(row))
    return Rows.concatenate(batches)


@given(instances(max_samples=8, max_features=2, max_classes=3, min_depth=1, max_depth=2))
def test_rows_hold_at_every_tree(instance: Instance) -> None:
    """IMPLIED: whatever the labels, no tree violates a row of any path, refined or not."""
    component = _component(instance)
    trees = list(enumerate_trees(instance.dataset, instance.max_depth, labels="all"))
    rows = _every_row(component, trees[:40])
    for tree in trees:
        assert np.all(rows.violation(component.master.lift(tree)) <= 1e-9)


@pytest.mark.parametrize("seed", daily(range(2), 1))
def test_rows_hold_at_depth_three(seed: int) -> None:
    """The same below longer paths, on two features and majority labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (12, 2))
    instance = Instance(X, np.concatenate([[0, 1], rng.integers(0, 2, 10)]), None, float(rng.choice([0, 0.05])), 3)
    component = _component(instance)
    trees = list(enumerate_trees(instance.dataset, 3))
    rows = _every_row(component, trees)
    for tree in trees:
        assert np.all(rows.violation(component.master.lift(tree)) <= 1e-9)


def _chains_of_four() -> list[Instance]:
    """Without columns of noise: two and three classes, all kinds of weights."""
    return [instance for instance in chain_instances((4,), seed=6) if instance.X.shape[1] == 4]


@pytest.mark.parametrize("variant", range(6))
def test_rows_hold_at_depth_four(variant: int) -> None:
    """On chains, where bounds on deep subtrees are tight: no decision list violates a row of any path."""
    instance = _chains_of_four()[variant]
    component = _component(instance)
    trees = list(enumerate_decision_lists(instance.dataset, 4))
    best = max(trees, key=lambda tree: tree.value(instance.dataset, instance.leaf_price))
    rows = _every_row(component, [best, *trees[-384::37]])
    for tree in trees:
        assert np.all(rows.violation(component.master.lift(tree)) <= 1e-9)


def test_rows_alone_prove_chains() -> None:
    """Without the tables, depth four: the decision list is found and proven."""
    for instance in _chains_of_four():
        check(instance, ROWS_ONLY, "highs")


@given(instances(max_samples=12, max_features=4, min_depth=1, max_depth=3))
def test_refined_root_is_the_optimum(instance: Instance) -> None:
    """After best-first refinement the largest root term is the optimal value."""
    component = _component(instance)
    master = component.master
    x = np.zeros(master.model.n_columns)
    component._refine_root(TreePoint(master, Point(Event.RELAXATION, x, 0.0, None, np.inf, 0.0)))
    root = component._row(TreePath(1, ()))
    best = max(root.leaf_value, float(root.bounds.max()))
    assert best == pytest.approx(optimal_value(instance.dataset, instance.max_depth, instance.leaf_price), abs=1e-9)


@pytest.mark.parametrize("length", [4, 5])
def test_refined_root_is_the_optimum_on_chains(length: int) -> None:
    """The same at depths four and five, where the bounds before refinement count leaves of deeper trees."""
    for instance in chain_instances((length,), seed=7):
        component = _component(instance)
        root = component._row(TreePath(1, ()))
        optimum = optimal_value(instance.dataset, length, instance.leaf_price)
        assert max(root.leaf_value, float(root.bounds.max())) >= optimum, instance
        x = np.zeros(component.master.model.n_columns)
        component._refine_root(TreePoint(component.master, Point(Event.RELAXATION, x, 0.0, None, np.inf, 0.0)))
        assert max(root.leaf_value, float(root.bounds.max())) == pytest.approx(optimum, abs=1e-9), instance


@given(instances(max_samples=12, max_features=4, min_depth=2, max_depth=3))
def test_bounds_of_a_path_count_its_samples_only(instance: Instance) -> None:
    """Before any refinement, a row below a branch claims no more than the samples of its path weigh."""
    component = _component(instance)
    for feature in range(component.master.dataset.n_features):
        for direction in (0, 1):
            row = component._row(TreePath(1, ()).child(feature, direction))
            weight = component.master.dataset.weights[row.samples].sum()
            assert row.bounds.max() <= weight - instance.leaf_price + 1e-9 or not row.samples.size


@given(instances(max_samples=12, max_features=4, min_depth=1, max_depth=3))
def test_a_tree_is_proposed_while_it_is_better_than_the_incumbent(instance: Instance) -> None:
    """Once at most, and not where the incumbent is optimal already."""
    master = _component(instance).master
    optimum = optimal_value(instance.dataset, instance.max_depth, instance.leaf_price)
    for incumbent in (None, optimum * master.scale):
        component = _component(instance)
        point = Point(Event.RELAXATION, np.zeros(master.model.n_columns), 0.0, incumbent, np.inf, 0.0)
        proposed = component._refine_root(TreePoint(component.master, point))
        assert incumbent is None or proposed == ()
        assert all(
            tree.value(instance.dataset, instance.leaf_price) == pytest.approx(optimum, abs=1e-9) for tree in proposed
        )
        assert component._refine_root(TreePoint(component.master, point)) == ()


@pytest.mark.parametrize("backend", ["highs", "gurobi"])
def test_rows_alone_prove_random_instances(backend: str) -> None:
    """Without the tables, through the solver: the oracle's optimum, on sizes that plain cuts would not finish."""
    skip_unless_available(backend)
    rng = np.random.default_rng(17)
    for _ in range(25):
        check(draw(rng, {2: (40, 6), 3: (40, 6)}), ROWS_ONLY, backend)


def test_proof_needs_no_integer_phase() -> None:
    """On HiGHS the relaxation with refined rows meets the incumbent: no node is ever opened."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (80, 8)), rng.integers(0, 2, 80)
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.01, config=ROWS_ONLY)
    assert result.status == "optimal" and result.nodes == 0
    assert result.objective == accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.01).objective


def test_weaker_rows_are_replaced() -> None:
    """Batches of one path carry one key, so that a tighter row takes the place of the one before."""
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, (30, 5)), rng.integers(0, 2, 30)
    instance = Instance(X, y, None, 0.0, 3)
    component = _component(instance)
    x = component.master.lift(next(iter(enumerate_trees(instance.dataset, 1))).with_max_depth(3))
    component.master.theta.view(x)[:] = 1.0
    point = TreePoint(component.master, Point(Event.CANDIDATE, x, 0.0, None, np.inf, 0.0))
    response = component.respond(point)
    assert response is not None and response.cuts
    keys = [batch.key for batch in response.cuts]
    assert len(set(keys)) == len(keys) and all(keys)
