"""Constraints: every tree that is returned keeps them, and it is the best that does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from helpers.constrained_solves import FewFeatures, check_trees, solved
from helpers.mip_support import skip_unless_available
from helpers.selection import daily
from oracles.enumeration import best_score_by_leaves
from oracles.instances import Instance, random_instance

import accel_oct
from accel_oct.constraints import BoundConstraint, Constraint, MaxLeaves
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.formulation import Incumbent, Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree

PRESETS = ("default", "paper", "baseline", "bendoct:all", "bendoct:pbcp")


@dataclass(frozen=True)
class Share(Constraint, BoundConstraint):
    """At least a share of the samples is predicted to be of class 0. Has no rows: trees are rejected one by one."""

    least: float
    dataset: BinaryDataset | None = None
    name = "share of class 0"

    def bind(self, dataset: BinaryDataset) -> Share:
        return replace(self, dataset=dataset)

    def violation(self, tree: DecisionTree) -> float:
        assert self.dataset is not None
        return self.least - float(np.mean(tree.predictions(self.dataset.X) == 0))

    def add_to(self, master: Master) -> None:
        pass


@pytest.mark.daily(5)
@pytest.mark.parametrize("seed", daily(range(3), 1))
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip"])
def test_equal_to_enumeration(backend: str, preset: str, seed: int) -> None:
    """Limits on leaves, a budget of features and a rule that can only be checked, alone and together."""
    skip_unless_available(backend)
    rng = np.random.default_rng([seed, *map(ord, backend + preset)])
    for _ in range(3):
        instance = random_instance(rng, max_samples=12, max_features=2, max_classes=2, max_depth=2)
        instance = replace(instance, max_depth=int(rng.integers(1, 3)))
        few, leaves, share = FewFeatures(1), MaxLeaves(int(rng.integers(1, 4))), Share(float(rng.choice([0.3, 0.7])))
        for constraints in ([leaves], [few], [share], [few, leaves], [share, leaves]):
            check_trees(instance, constraints, solver=backend, config=preset)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("preset", PRESETS)
def test_equal_to_enumeration_at_length(preset: str, seed: int) -> None:
    """The same on thousands of instances, three classes included."""
    rng = np.random.default_rng([seed, len(preset)])
    for _ in range(20):
        instance = random_instance(rng, max_samples=14, max_features=3, max_classes=3, max_depth=2)
        instance = replace(instance, max_depth=int(rng.integers(1, 3)))
        few, leaves, share = FewFeatures(1), MaxLeaves(int(rng.integers(1, 4))), Share(float(rng.random()))
        for constraints in ([leaves], [few], [few, leaves], [few, share]):
            check_trees(instance, constraints, config=preset)


@pytest.mark.parametrize("preset", ["default", "baseline"])
def test_the_frontier_confirms_a_limit_on_leaves(preset: str) -> None:
    """For every number of leaves: the best value of at most so many is that of the frontier, and of enumeration."""
    rng = np.random.default_rng(7)
    for _ in range(3 if preset == "baseline" else 20):
        instance = random_instance(rng, max_samples=12, max_features=2, max_depth=2)
        instance = replace(instance, max_depth=2)
        dataset, price = instance.dataset, instance.leaf_price
        by_leaves = best_score_by_leaves(dataset, 2)
        frontier = accel_oct.frontier(instance.X, instance.y, max_depth=2, sample_weight=instance.sample_weight)
        for limit in range(1, 5):
            best = max(score - price * leaves for leaves, score in by_leaves.items() if leaves <= limit)
            read_off = max(
                frontier.scores[leaves - 1] * dataset.total_weight - price * leaves for leaves in range(1, limit + 1)
            )
            result = solved(instance, [MaxLeaves(limit)], config=preset)
            assert result.status == "optimal" and result.tree.n_leaves <= limit
            assert result.objective * dataset.total_weight == pytest.approx(best, abs=1e-6)
            assert result.objective * dataset.total_weight == pytest.approx(read_off, abs=1e-6)


def test_tables_decide_limits_on_leaves() -> None:
    """No solver has to run, whatever the depth; two limits mean the smaller one."""
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 2, (200, 10)), rng.integers(0, 2, 200)
    frontier = accel_oct.frontier(X, y, max_depth=4)
    for limit in (1, 3, 6, 100):
        constraints = [MaxLeaves(limit), MaxLeaves(limit + 1)]
        result = accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.0, constraints=constraints)
        assert result.status == "optimal" and result.stats["decided_by"] == "subtree bounds"
        assert result.objective == frontier.scores[min(limit, 16) - 1]


def test_path_bound_cuts_are_off_and_it_is_said() -> None:
    """They choose subtrees one by one, and a limit on leaves ties subtrees together."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (30, 4)), rng.integers(0, 2, 30)
    result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, config="paper", constraints=[MaxLeaves(3)])
    assert result.stats["path_bound"] == "switched off: at most 3 leaves"
    assert result.status == "optimal" and result.tree.n_leaves <= 3


XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


@pytest.mark.daily(2)
@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize(("y", "depth"), [([0, 1, 1, 0], 2), ([0, 1, 1, 0], 0), ([0, 0, 0, 0], 1)])
def test_no_tree_keeps_it(preset: str, y: list[int], depth: int) -> None:
    """Status, bound and an error for whoever asks for the tree; also without branches, and with one class only."""
    result = accel_oct.solve(XOR, y, max_depth=depth, leaf_penalty=0.1, config=preset, constraints=[Share(2.0)])
    assert result.status == "infeasible" and result.found is None
    assert result.objective == result.bound == -np.inf
    with pytest.raises(NoTreeError, match=f"no tree of depth at most {depth} over .* satisfies `share"):
        _ = result.tree
    with pytest.raises(NoTreeError, match=f"no tree of depth at most {depth} over .* satisfies `share"):
        accel_oct.OptimalTreeClassifier(depth, constraints=[Share(2.0)], config=preset).fit(XOR, y)


def test_a_rule_that_only_a_minority_label_keeps() -> None:
    """The best leaf breaks the rule, another one keeps it: labels are part of the tree."""
    y = [1, 1, 1, 0]
    result = accel_oct.solve(XOR, y, max_depth=0, leaf_penalty=0.0, constraints=[Share(1.0)])
    assert result.status == "optimal" and result.objective == 0.25 and result.tree.label[0] == 0
    fitted = accel_oct.OptimalTreeClassifier(2, 0.0, encoder=None, constraints=[Share(1.0)]).fit(XOR, y)
    assert set(fitted.predict(XOR)) == {0}


def test_only_trees_with_empty_leaves_keep_it() -> None:
    """A rule may ask for more leaves than there are samples; the lattice of values must not exclude them."""

    @dataclass(frozen=True)
    class Many(Constraint, BoundConstraint):
        name = "many leaves"

        def bind(self, dataset: BinaryDataset) -> Many:
            return self

        def violation(self, tree: DecisionTree) -> float:
            return 4.0 - tree.n_leaves

        def add_to(self, master: Master) -> None:
            master.model.add_rows(Rows.single(master.p.index, 1.0, lower=4.0), "many leaves")

    check_trees(Instance(np.array([[0], [1]]), np.array([0, 1]), None, 0.1, 2), [Many()], config="baseline")
    check_trees(Instance(np.array([[0], [1]]), np.array([0, 1]), None, 0.1, 2), [Many()], config="default")


def test_rows_that_forbid_what_is_allowed_are_noticed() -> None:
    """A constraint whose rows contradict its definition is an error, never a wrong answer."""

    @dataclass(frozen=True)
    class Contradiction(FewFeatures):
        def add_to(self, master: Master) -> None:
            master.model.add_rows(Rows.single(master.p.index, 1.0, lower=100.0), "nothing")

    with pytest.raises(InvalidInputError, match="few features"):
        accel_oct.solve(XOR, [0, 1, 1, 0], max_depth=2, leaf_penalty=0.01, constraints=[Contradiction(1)])


def test_the_incumbent_asks() -> None:
    """A better tree that breaks a rule is refused and counted; what is not a number breaks it too."""
    dataset = BinaryDataset.from_arrays(XOR, [0, 0, 1, 1])
    incumbent = Incumbent(dataset, 0.0, [MaxLeaves(1)])
    assert incumbent.tree is None and incumbent.value == -np.inf
    split = DecisionTree(np.array([0, -1, -1]), np.array([-1, 0, 1]))
    assert not incumbent.offer(split) and incumbent.refused == 1 and incumbent.tree is None
    assert incumbent.offer(DecisionTree.leaf(0, 1)) and not incumbent.offer(DecisionTree.leaf(1, 1))

    class Unclear(MaxLeaves):
        def violation(self, tree: DecisionTree) -> float:
            return np.nan

    assert not Incumbent(dataset, 0.0, [Unclear(1)]).offer(split)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([MaxLeaves], r"constraints\[0\].*did you mean MaxLeaves\(\.\.\.\)"),
        ([MaxLeaves(2), 3], r"constraints\[1\] must be an accel_oct Constraint, got 3"),
        (MaxLeaves(2), "constraints must be a list"),
        ("leaves", "constraints must be a list"),
        ([type("Half", (), {"bind": lambda self, dataset: object()})()], r"constraints\[0\] must be"),
    ],
)
def test_what_is_no_constraint_is_named(constraints: Any, message: str) -> None:
    """The place in the list, and what is wrong there."""
    with pytest.raises(InvalidInputError, match=message):
        accel_oct.solve(XOR, [0, 1, 1, 0], max_depth=2, leaf_penalty=0.01, constraints=constraints)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "three"])
def test_a_limit_on_leaves_is_a_number(n: Any) -> None:
    """At least one, and whole."""
    with pytest.raises(InvalidInputError, match="MaxLeaves: n"):
        MaxLeaves(n)
