"""Robust accuracy: against every tree and every perturbed sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.mip_support import skip_unless_available
from helpers.robust_support import RobustInstance, robust_instance
from helpers.selection import daily
from oracles.enumeration import enumerate_trees
from oracles.robust import robust_value

import accel_oct
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import Constraint, MaxFeatures, MaxLeaves, MinLeafWeight, PredictionRule, Recall
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.objectives import Fixed, LinearScore, Robust, StrictScore
from accel_oct.solving.config import Config
from accel_oct.tree import DecisionTree

BY_LIST = Config.preset("default")
BY_TABLES = replace(BY_LIST, enumeration=False)
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
        check(robust_instance(rng), solver=solver, config=(BY_SOLVER, "baseline", BY_TABLES)[place % 3])


@pytest.mark.parametrize("config", [BY_LIST, BY_TABLES, "baseline"], ids=["list", "tables", "baseline"])
def test_splits_that_separate_no_sample_matter(config: Config | str) -> None:
    """Two samples that are three flips apart: the majority of the bits is robust, with more leaves than samples."""
    X, y = np.array([[0, 0, 0], [1, 1, 1]]), np.array([0, 1])
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.01, objective=Robust(flips=1), config=config)
    assert result.status == "optimal" and result.tree.n_leaves == 6 and result.objective == pytest.approx(0.94)


@pytest.mark.parametrize("config", [BY_LIST, BY_SOLVER, BY_TABLES], ids=["list", "solver", "tables"])
def test_under_constraints(config: Config) -> None:
    """The best robust value among the trees that satisfy limits, masses, numbers of leaves and rules as functions."""
    rng = np.random.default_rng(6)
    for place in range(10):
        instance = robust_instance(rng)
        label = instance.data.classes[0]
        rules = [
            [Recall(label, at_least=0.7)],
            [MinLeafWeight(2)],
            [MaxLeaves(2)],
            [MaxFeatures(1), MaxLeaves(3)],
            [PredictionRule(lambda predicted, data: (predicted == 0).sum() % 2 == 0)],
        ][place % 5]
        bound = [rule.bind(instance.data) for rule in rules]
        best = instance.best(lambda tree: all(rule.violation(tree) <= 0 for rule in bound))  # noqa: B023
        result = accel_oct.solve(
            instance.data,
            max_depth=instance.max_depth,
            leaf_penalty=instance.leaf_penalty,
            objective=instance.objective,
            constraints=rules,
            config=config,
        )
        assert result.status == ("optimal" if best > -np.inf else "infeasible")
        assert best == -np.inf or abs(result.objective - best) < 1e-9, (place, result.objective, best)
        assert all(row.bound >= best - 1e-9 for row in result.history)


def _even(predicted: np.ndarray, data: BinaryDataset) -> bool:
    """The first class is predicted an even number of times."""
    return (predicted == 0).sum() % 2 == 0


@pytest.mark.parametrize(
    ("seed", "config", "rules"),
    [
        (9, BY_TABLES, []),  # the tables find a tree whose accuracy is no robust one
        (40, BY_TABLES, []),
        (210, BY_LIST, [PredictionRule(_even)]),  # equal predictions at moved samples, others at the samples
        (248, BY_LIST, [MinLeafWeight(2), PredictionRule(_even)]),  # leaves that are light for moved samples only
    ],
)
def test_where_moved_samples_differ(seed: int, config: Config, rules: list[Constraint]) -> None:
    """Instances on which the samples of the bound must not be taken for those of the user."""
    instance = robust_instance(np.random.default_rng(seed), "flips")
    bound = [rule.bind(instance.data) for rule in rules]
    best = instance.best(lambda tree: all(rule.violation(tree) <= 0 for rule in bound))
    result = accel_oct.solve(
        instance.data,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        objective=instance.objective,
        constraints=rules,
        config=config,
    )
    assert result.status == "optimal" and abs(result.objective - best) < 1e-9
    assert all(row.bound >= best - 1e-9 and row.objective <= best + 1e-9 for row in result.history)


def test_no_perturbation_is_accuracy() -> None:
    """Without flips the optimum is that of accuracy."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 2, (80, 6))
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(80) < 0.2)
    plain = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.01)
    robust = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.01, objective=Robust(flips=0))
    assert robust.status == "optimal" and robust.objective == plain.objective


# ---------------------------------------------------------------- the estimator


def _table(rng: np.random.Generator, n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.DataFrame({"a": rng.integers(0, 6, n) / 2, "b": rng.integers(0, 4, n), "c": rng.choice(list("xyz"), n)})
    table.loc[rng.random(n) < 0.1, "b"] = np.nan
    return table, ((table["a"] >= 1.5) ^ (rng.random(n) < 0.1)).to_numpy().astype(int)


@pytest.mark.parametrize("radius", [0.3, {"a": 0.7}])
def test_radius_on_a_table(radius: float | dict[str, float]) -> None:
    """The objective of the estimator is the share of rows that stay right when their numbers move; proof of splits."""
    table, y = _table(np.random.default_rng(8))
    model = OptimalTreeClassifier(2, 0.02, objective=Robust(radius=radius), missing="category").fit(table, y)
    assert model.status_ == "optimal" and "chosen splits" in model.proof_ and not model.exact_
    right = model.predict(table) == y
    shifts = {name: radius if isinstance(radius, float) else radius.get(name, 0.0) for name in "ab"}
    for a in (-1, -0.5, 0, 0.5, 1):
        for b in (-1, -0.5, 0, 0.5, 1):
            right &= model.predict(table.assign(a=table["a"] + a * shifts["a"], b=table["b"] + b * shifts["b"])) == y
    assert model.objective_ <= right.mean() - 0.02 * model.get_n_leaves() + 1e-9
    encoded = OptimalTreeClassifier(2, missing="category", encoder="auto").encode(table, y)
    again = accel_oct.solve(encoded, max_depth=2, leaf_penalty=0.02, objective=Robust(radius=radius))
    assert again.objective == pytest.approx(model.objective_)
    assert not OptimalTreeClassifier(2, 0.02, objective=Robust(radius=radius)).fit(encoded).exact_


def test_flips_on_a_table() -> None:
    """A column changes to any of its values: all features that were made from it change together."""
    table, y = _table(np.random.default_rng(9), 40)
    model = OptimalTreeClassifier(2, 0.0, objective=Robust(flips=1), missing="category").fit(table, y)
    assert model.status_ == "optimal"
    right = model.predict(table) == y
    for name in table.columns:
        for value in table[name].unique():
            right &= model.predict(table.assign(**{name: value})) == y
    assert model.objective_ == pytest.approx(right.mean())


# ---------------------------------------------------------------- what is not supported


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "flips or radius"),
        ({"flips": 1, "radius": 1.0}, "flips or radius"),
        ({"flips": -1}, "flips"),
        ({"radius": -0.5}, "radius"),
        ({"radius": {"a": np.inf}}, "radius of column 'a'"),
    ],
)
def test_invalid_arguments(arguments: dict[str, object], words: str) -> None:
    """The error names the argument."""
    with pytest.raises(InvalidInputError, match=words):
        Robust(**arguments)


def test_unsupported_uses_are_refused() -> None:
    """Tables, lists, tallies, binary columns without numbers and folds: a sentence names the argument."""
    X, y = np.eye(6, 3, dtype=int), np.array([0, 1] * 3)
    robust = Robust(flips=1)
    table, labels = _table(np.random.default_rng(1))
    with pytest.raises(InvalidInputError, match="objective: frontier"):
        accel_oct.frontier(X, y, max_depth=2, objective=robust)
    with pytest.raises(InvalidInputError, match="objective: near_optimal"):
        accel_oct.near_optimal(X, y, max_depth=2, leaf_penalty=0.1, within=0.1, objective=robust)
    with pytest.raises(InvalidInputError, match="Robust: robust accuracy needs rows"):
        accel_oct.solve(accel_oct.Tally.of(X, y, depth=2), max_depth=2, leaf_penalty=0.1, objective=robust)
    with pytest.raises(InvalidInputError, match="Robust: radius"):
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.1, objective=Robust(radius=1.0))
    with pytest.raises(InvalidInputError, match="Robust: radius names 'c'"):
        OptimalTreeClassifier(2, objective=Robust(radius={"c": 1.0}), missing="category").fit(table, labels)
    with pytest.raises(InvalidInputError, match="max_depth"):
        OptimalTreeClassifier(None, 0.01, objective=robust).fit(X, y)
    with pytest.raises(InvalidInputError, match="objective: cross-validation"):
        OptimalTreeClassifierCV(2, cv=2, objective=robust).fit(X, y)


class _TooGenerous(StrictScore):
    """Counts rows that are predicted wrong."""

    def counted(self, tree: DecisionTree) -> np.ndarray:
        return np.ones(self.dataset.n_samples, dtype=bool)


def test_a_score_above_its_relaxation_is_an_error() -> None:
    """Bounds would be wrong: the objective is named."""
    data = BinaryDataset.from_arrays(np.eye(4, 2, dtype=int), [0, 1, 0, 1])
    score = _TooGenerous("generous", data, LinearScore("accuracy", data, None, 4.0))
    with pytest.raises(InvalidInputError, match="objective: generous: `counted` counts a row"):
        accel_oct.solve(data, max_depth=1, leaf_penalty=0.0, objective=Fixed(score))


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_random_instances(first: int) -> None:
    """A thousand instances, half of them with flips, by enumeration and on three solvers."""
    for seed in range(first, first + 50):
        instance = robust_instance(np.random.default_rng(seed))
        check(instance, config=BY_LIST)
        for solver in ("highs", "gurobi", "scip"):
            check(instance, solver=solver, config="baseline" if seed % 3 == 0 else BY_SOLVER)
