"""The phase that lists trees best first and evaluates constraints without a form."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest
from helpers.tree_rules import (
    Refusing,
    Undeclared,
    features_increase_downwards,
    few_ones_per_half,
    no_feature_twice,
    same_feature,
)
from oracles.instances import random_instance
from oracles.ruled_trees import all_trees, is_proper, present
from programs.fuzz_rules import check_case

import accel_oct
from accel_oct.constraints import MaxFeatures, MaxLeaves, MinLeafWeight, PredictionRule, StatisticalParity, TreeRule
from accel_oct.errors import InvalidInputError
from accel_oct.exact.coded import CodedPoints
from accel_oct.exact.near_optimal import SideValues, TreeLister


@pytest.mark.daily(40, slow=100)
@pytest.mark.parametrize("number", range(300))
def test_rules_agree_with_a_list_of_all_trees(number: int) -> None:
    """Ten rules, alone and with other constraints: status, objective, tree and every row of the history."""
    check_case(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, 60, 3))
def test_branch_and_cut_gives_the_same(number: int) -> None:
    """The definition: candidates that violate a rule are cut off one by one."""
    check_case(number, config="baseline")


class _OnPaths:
    """A filter that keeps paths on which features increase."""

    by_path = True

    def allows_set(self, samples: Any) -> bool:
        return True

    def context(self, path: Any) -> Any:
        return path

    def allows_subtree(self, tree: Any, path: Any) -> bool:
        return True

    def allows_split(self, path: Any, feature: int) -> bool:
        return all(above < feature for above, _ in path)


def _paths(nested: Any, above: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    if not isinstance(nested, tuple):
        return [above]
    return [path for side in nested[1:] for path in _paths(side, (*above, nested[0]))]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("superfluous", [False, True])
def test_lists_are_complete_and_in_order(seed: int, filtered: bool, superfluous: bool) -> None:
    """All trees, or all proper ones, or those on whose paths features increase, with their values, best first."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, max_samples=8, max_features=3, max_depth=2)
    data, depth = instance.dataset, 2
    rows = present(data)
    problem = CodedPoints.of(
        *(data.X[rows], np.eye(data.n_classes)[data.y[rows]] * data.weights[rows, None]),
        *(instance.leaf_price, depth, np.inf),
        superfluous=superfluous,
    )
    values = SideValues(problem, lambda: False, 1, 1 << 30)
    listed = list(TreeLister(problem, values, 1 << 30, _OnPaths() if filtered else None, superfluous).trees())
    codes = [code for code, _ in listed]
    assert codes == sorted(codes, reverse=True)
    wanted = {}
    for score, leaves, nested in all_trees(data, rows, depth):
        increasing = all(list(path) == sorted(set(path)) for path in _paths(nested))
        if (superfluous or is_proper(nested, data, rows)) and (increasing or not filtered):
            wanted[nested] = score - instance.leaf_price * leaves
    found = {nested: problem.earned(problem.value(code)) for code, nested in listed}
    assert len(found) == len(listed) and found.keys() == wanted.keys()
    for nested, value in found.items():
        assert value == pytest.approx(wanted[nested], abs=1e-9)


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (300, 8))
    return X, (X[:, 0] ^ (X[:, 1] & X[:, 2]) ^ (rng.random(300) < 0.15)).astype(int)


def test_refused_subtrees_and_paths_change_nothing_but_the_number_of_trees(table: Any) -> None:
    X, y = table
    for rule in (no_feature_twice, features_increase_downwards):
        plain = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002, constraints=[TreeRule(rule)])
        refusing = TreeRule(rule, refuses=lambda tree, data, rule=rule: not rule(tree, data))
        for constraint in (refusing, Refusing(rule)):
            fast = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002, constraints=[constraint])
            assert fast.status == plain.status == "optimal" and fast.objective == plain.objective
            assert fast.stats["enumeration"]["trees"] <= plain.stats["enumeration"]["trees"]


def test_trees_with_equal_predictions_are_evaluated_once(table: Any) -> None:
    X, y = table
    seen = []

    def rare(predicted: Any, data: Any) -> bool:
        seen.append(predicted.tobytes())
        return bool(predicted.mean() <= 0.2)

    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002, constraints=[PredictionRule(rare)])
    assert result.status == "optimal" and result.stats["decided_by"] == "enumeration"
    trees = result.stats["enumeration"]["trees"]
    assert trees > 200 and len(seen) < trees / 2


def test_a_mixture_with_limits(table: Any) -> None:
    """A rule with parity and a limit on leaves: enumerated in the order of priced values."""
    X, y = table
    group = np.where(X[:, 7] == 1, "a", "b")
    constraints = [TreeRule(same_feature), StatisticalParity(group, 0.02, 1), MaxLeaves(6)]
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002, constraints=constraints)
    assert result.status == "optimal" and result.stats["decided_by"] == "enumeration"
    assert same_feature(result.tree, None) and result.tree.n_leaves <= 6  # type: ignore[arg-type]
    without = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002, constraints=constraints[1:])
    assert result.objective <= without.objective + 1e-12


def test_a_tally_gives_the_same(table: Any) -> None:
    X, y = table
    tally = accel_oct.Tally.of(X, y, depth=3)
    rule = TreeRule(same_feature, reads=set())
    on_rows, on_tally = (
        accel_oct.solve(*data, max_depth=3, leaf_penalty=0.004, constraints=[rule, MaxLeaves(5)])
        for data in ((X, y), (tally,))
    )
    assert on_tally.status == on_rows.status == "optimal"
    assert on_tally.objective == pytest.approx(on_rows.objective, abs=1e-12)
    with pytest.raises(InvalidInputError, match="same_feature"):
        accel_oct.solve(tally, max_depth=2, leaf_penalty=0.01, constraints=[TreeRule(same_feature)])
    with pytest.raises(InvalidInputError, match="same_feature"):
        accel_oct.solve(tally, max_depth=2, leaf_penalty=0.01, constraints=[Undeclared(same_feature)])


def test_relaxed_objective_is_that_without_the_rule(table: Any) -> None:
    X, y = table
    ruled = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002, constraints=[TreeRule(same_feature)])
    free = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002)
    assert ruled.stats["relaxed_objective"] == pytest.approx(free.objective, abs=1e-12)


def test_no_tree_is_allowed(table: Any) -> None:
    X, y = table
    never = TreeRule(lambda tree, data: False, "never", refuses=lambda tree, data: True)
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.002, constraints=[never])
    assert result.status == "infeasible" and result.stats["decided_by"] == "enumeration"
    assert "never" in result.stats["infeasible"]


@pytest.mark.parametrize("more", ["nothing", "a limit", "a rule about features"])
def test_leaves_that_are_heavier_than_all_samples(table: Any, more: str) -> None:
    """No tree satisfies the rule about leaves, not even a single leaf, whatever else is asked."""
    X, y = table
    others = {"a limit": [StatisticalParity(X[:, 0], 0.1)], "a rule about features": [MaxFeatures(1)]}.get(more, [])
    rules = [TreeRule(same_feature), MinLeafWeight(samples=len(y) + 1), *others]
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.01, constraints=rules)
    assert result.status == "infeasible" and len(result.stats["infeasible"]) == 1


def test_a_stopped_enumeration_has_a_valid_bound(table: Any) -> None:
    X, y = table
    rule = TreeRule(lambda tree, data: tree.n_leaves == 1, "a leaf", refuses=lambda tree, data: False)
    best = accel_oct.solve(X, y, max_depth=0, leaf_penalty=0.0001).objective
    began = time.perf_counter()
    result = accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.0001, constraints=[rule], time_limit=1.0)
    assert time.perf_counter() - began < 20
    assert result.status == "time_limit" and result.objective == pytest.approx(best)
    free = accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.0001)
    assert best <= result.bound <= free.bound + 1e-12
    assert all(row.bound >= best for row in result.history)
    bounds = [row.bound for row in result.history]
    assert all(later <= earlier for earlier, later in itertools.pairwise(bounds))


class _UserError(Exception):
    pass


def test_errors_of_rules(table: Any) -> None:
    X, y = table

    def fails(tree: Any, data: Any) -> bool:
        raise _UserError("mine")

    arguments = {"max_depth": 2, "leaf_penalty": 0.01}
    with pytest.raises(_UserError, match="mine"):
        accel_oct.solve(X, y, **arguments, constraints=[TreeRule(fails)])
    with pytest.raises(InvalidInputError, match="`odd` must return True or False, got 1"):
        accel_oct.solve(X, y, **arguments, constraints=[TreeRule(lambda tree, data: 1, "odd")])
    for bad in (TreeRule(3), TreeRule(same_feature, refuses="x"), PredictionRule(None)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match=r"Rule: (allows|refuses) must be a function"):
            accel_oct.solve(X, y, **arguments, constraints=[bad])
    with pytest.raises(InvalidInputError, match="PredictionRule: name must be a text"):
        accel_oct.solve(X, y, **arguments, constraints=[PredictionRule(few_ones_per_half, 4)])  # type: ignore[arg-type]
