"""Rules about features and leaves that are not linear in the predictions, against all labelled trees."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mip_support import skip_unless_available
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance, random_instance
from test_constraints import check

import accel_oct
from accel_oct.constraints import (
    FeatureCosts,
    ForbiddenFeatures,
    ForbiddenPairs,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    StatisticalParity,
)
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master
from accel_oct.tree import DecisionTree

Make = Callable[[np.random.Generator, Instance], Any]


def _groups(rng: np.random.Generator, instance: Instance) -> Any:
    n_features = instance.X.shape[1]
    return None if rng.random() < 0.5 else rng.choice(["a", "b", "c"], n_features)


def max_features(rng: np.random.Generator, instance: Instance) -> Any:
    return MaxFeatures(int(rng.integers(0, 3)), _groups(rng, instance))


def feature_costs(rng: np.random.Generator, instance: Instance) -> Any:
    groups = _groups(rng, instance)
    n_groups = instance.X.shape[1] if groups is None else len(set(groups.tolist()))
    return FeatureCosts(rng.choice([0.0, 0.1, 0.2, 0.3], n_groups), groups, at_most=float(rng.choice([0.0, 0.3, 0.5])))


def forbidden_features(rng: np.random.Generator, instance: Instance) -> Any:
    n_features = instance.X.shape[1]
    return ForbiddenFeatures(np.flatnonzero(rng.random(n_features) < 0.4))


def _pairs(rng: np.random.Generator, instance: Instance) -> list[tuple[int, int]]:
    n_features = instance.X.shape[1]
    pairs = [(f, g) for f in range(n_features) for g in range(f + 1, n_features)]
    return [pair[:: rng.choice([-1, 1])] for pair in pairs if rng.random() < 0.6]


def pairs_on_path(rng: np.random.Generator, instance: Instance) -> Any:
    return ForbiddenPairs(_pairs(rng, instance))


def pairs_in_tree(rng: np.random.Generator, instance: Instance) -> Any:
    return ForbiddenPairs(_pairs(rng, instance), on="tree")


def min_leaf_weight(rng: np.random.Generator, instance: Instance) -> Any:
    if rng.random() < 0.5:
        return MinLeafWeight(amount=float(rng.choice([0.0, 0.5, 1, 2, 3])))
    return MinLeafWeight(share=float(rng.choice([0.0, 0.1, 0.2, 1 / 3, 1.0])))


def max_leaves(rng: np.random.Generator, instance: Instance) -> Any:
    return MaxLeaves(int(rng.integers(2, 4)))


def parity(rng: np.random.Generator, instance: Instance) -> Any:
    group = rng.integers(0, 2, len(instance.y))
    group[0] = 1 - group[-1]
    return StatisticalParity(group, 0.2, positive=instance.y[0]) if len(group) > 1 else MaxLeaves(2)


OWN: tuple[Make, ...] = (
    max_features,
    feature_costs,
    forbidden_features,
    pairs_on_path,
    pairs_in_tree,
    min_leaf_weight,
)


def _instance(rng: np.random.Generator, max_features: int = 3) -> Instance:
    """Three features with two classes, two with three: all labelled trees can be listed."""
    n_classes = int(rng.integers(2, 4))
    n_features = max_features if n_classes == 2 else min(max_features, 2)
    drawn = random_instance(rng, max_samples=14, max_features=n_features, max_classes=n_classes, max_depth=2)
    return replace(drawn, max_depth=int(rng.choice([1, 2, 2])))


@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("backend", ["highs", "gurobi"])
@pytest.mark.parametrize("make", OWN)
def test_alone(make: Make, backend: str, preset: str) -> None:
    """Equal to enumeration: value, bound, status, and the tree keeps the rule."""
    skip_unless_available(backend)
    rng = np.random.default_rng(sum(map(ord, make.__name__ + backend + preset)))
    for _ in range(8):
        instance = _instance(rng)
        check(instance, [make(rng, instance)], backend=backend, preset=preset)


@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("make", OWN)
def test_together(make: Make, preset: str) -> None:
    """Each with another one at random, twice with itself included, a limit on leaves or parity."""
    rng = np.random.default_rng(sum(map(ord, make.__name__ + preset)))
    others = (*OWN, max_leaves, parity)
    for _ in range(8):
        instance = _instance(rng)
        other = others[int(rng.integers(len(others)))]
        check(instance, [make(rng, instance), other(rng, instance)], preset=preset)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("preset", ["default", "paper", "baseline", "bendoct:all"])
def test_together_at_length(preset: str, seed: int) -> None:
    """One to three of them, on many instances."""
    rng = np.random.default_rng([seed, len(preset)])
    makers = (*OWN, max_leaves, parity)
    for _ in range(30):
        instance = _instance(rng)
        chosen = rng.integers(0, len(makers), int(rng.integers(1, 4)))
        check(instance, [makers[place](rng, instance) for place in chosen], preset=preset)


def _data(seed: int = 0, n_features: int = 9) -> tuple[Any, Any]:
    """A rule on three features, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (150, n_features))
    y = (X[:, 0] & X[:, 3]) ^ X[:, 6] ^ (rng.random(150) < 0.15)
    return X, y


def _best_of_sets(X: Any, y: Any, depth: int, penalty: float, sets: Any) -> float:
    """The best objective of the tables on each of some sets of columns."""
    return max(
        accel_oct.solve(X[:, list(columns)], y, max_depth=depth, leaf_penalty=penalty).objective for columns in sets
    )


@pytest.mark.parametrize(("depth", "penalty"), [(3, 0.0), (3, 0.01), (4, 0.0)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_feature_sets_try_all(n: int, depth: int, penalty: float) -> None:
    """As good as the best of all sets of n features, and of n groups of three; no solver runs."""
    X, y = _data(n)
    columns, groups = range(X.shape[1]), np.arange(X.shape[1]) // 3
    grouped = [[f for f in columns if groups[f] in chosen] for chosen in itertools.combinations(range(3), n)]
    for rule, sets in ((MaxFeatures(n), itertools.combinations(columns, n)), (MaxFeatures(n, groups), grouped)):
        result = accel_oct.solve(X, y, max_depth=depth, leaf_penalty=penalty, constraints=[rule])
        assert result.status == "optimal" and result.stats["decided_by"] == "feature sets"
        assert result.objective == pytest.approx(_best_of_sets(X, y, depth, penalty, sets), abs=1e-12)
        assert result.stats["feature_sets"]["nodes"] >= 1


def test_several_budgets_with_groups_of_their_own() -> None:
    """Prices by one grouping, a number by another, and a forbidden column: all sets of columns that keep all three."""
    X, y = _data(5, n_features=7)
    rows, prices, halves = np.arange(7) // 2, [0.1, 0.2, 0.0, 0.3], ["a", "a", "a", "b", "b", "b", "c"]
    rules = [FeatureCosts(prices, rows, at_most=0.3), MaxFeatures(2, halves), ForbiddenFeatures([1])]
    sets = [
        chosen
        for size in range(1, 8)
        for chosen in itertools.combinations(range(7), size)
        if sum(prices[g] for g in {rows[f] for f in chosen}) <= 0.3 + 1e-9
        and len({halves[f] for f in chosen}) <= 2
        and 1 not in chosen
    ]
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=rules)
    assert result.status == "optimal" and result.stats["decided_by"] == "feature sets"
    assert result.stats["feature_sets"]["groups"] == 6
    assert result.objective == pytest.approx(_best_of_sets(X, y, 3, 0.0, sets), abs=1e-12)


def test_forbidden_features_are_decided_by_one_table() -> None:
    """There is nothing to choose; with all of them forbidden a leaf is left."""
    X, y = _data()
    names = [f"c{f}" for f in range(X.shape[1])]
    dataset = BinaryDataset.from_arrays(X, y, feature_names=names)
    result = accel_oct.solve(dataset, max_depth=3, leaf_penalty=0.0, constraints=[ForbiddenFeatures(["c6", 0])])
    assert result.status == "optimal" and result.stats["feature_sets"]["nodes"] == 1
    assert result.objective == _best_of_sets(X, y, 3, 0.0, [[1, 2, 3, 4, 5, 7, 8]])
    result = accel_oct.solve(dataset, max_depth=3, leaf_penalty=0.0, constraints=[ForbiddenFeatures(names)])
    assert result.status == "optimal" and result.tree.n_leaves == 1


def test_a_stopped_search_has_a_valid_bound() -> None:
    """With a time limit that strikes at once or somewhere: bounds hold, and trees keep the rule."""
    X, y = _data(1, n_features=40)
    best = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=[MaxFeatures(2)]).objective
    for limit in (1e-6, 0.02, 0.1):
        result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=[MaxFeatures(2)], time_limit=limit)
        assert result.status in ("optimal", "time_limit")
        assert result.objective <= best <= result.bound and len(result.tree.features_used) <= 2


def test_too_light_paths_are_forbidden_at_once() -> None:
    """The rows of one light tree reject all trees that share its light path, and no tree that keeps the rule."""
    X = np.array([[0, 0], [0, 1], [0, 1], [1, 0], [1, 1], [1, 1], [1, 1]])
    dataset = BinaryDataset.from_arrays(X, [0, 1, 0, 1, 0, 1, 1])
    rule, master = MinLeafWeight(amount=2).bind(dataset), Master(dataset, 2, 0.0, integral_predictions=True)
    split = DecisionTree.branch(
        0, DecisionTree.branch(1, DecisionTree.leaf(0), DecisionTree.leaf(1)), DecisionTree.leaf(1)
    )
    rows = rule.forbid(split, master)
    assert rule.violation(split) > 0 and rows is not None and rows.n_rows == 1
    for tree in enumerate_trees(dataset, 2, labels="all"):
        shares = tree.feature[0] == 0 and tree.feature[1] >= 0
        broken = rows.violation(master.lift(tree)).max() > 0.5
        assert broken == shares and (not broken or rule.violation(tree) > 0)


NAMED = BinaryDataset.from_arrays(np.eye(3, dtype=int), [0, 1, 0], feature_names=["a", "b", "c"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MinLeafWeight(), "MinLeafWeight: exactly one of amount and share"),
        (lambda: MinLeafWeight(1, 0.5), "MinLeafWeight: exactly one of amount and share"),
        (lambda: MinLeafWeight(amount=-1), "MinLeafWeight: amount"),
        (lambda: MinLeafWeight(amount="two"), "MinLeafWeight: amount"),
        (lambda: MinLeafWeight(share=1.5), "MinLeafWeight: share"),
        (lambda: ForbiddenFeatures([3]), "ForbiddenFeatures: features: there is no column 3"),
        (lambda: ForbiddenFeatures([-1]), "ForbiddenFeatures: features: there is no column -1"),
        (lambda: ForbiddenFeatures(["d"]), "ForbiddenFeatures: features: no column has the name 'd'"),
        (lambda: ForbiddenFeatures([True]), "ForbiddenFeatures: features must hold indices or names"),
        (lambda: ForbiddenFeatures("a"), "ForbiddenFeatures: features must be a list"),
        (lambda: ForbiddenPairs([(0, 1)], on="leaf"), "ForbiddenPairs: on must be"),
        (lambda: ForbiddenPairs([(0, 0)]), "ForbiddenPairs: pairs must hold two different columns"),
        (lambda: ForbiddenPairs([(0, 1, 2)]), "ForbiddenPairs: pairs must hold two different columns"),
        (lambda: ForbiddenPairs([(0, 7)]), "ForbiddenPairs: pairs: there is no column 7"),
        (lambda: ForbiddenPairs([0, 1]), "ForbiddenPairs: pairs must be a list"),
        (lambda: MaxFeatures(-1), "MaxFeatures: n"),
        (lambda: MaxFeatures(2.0), "MaxFeatures: n"),
        (lambda: MaxFeatures(True), "MaxFeatures: n"),
        (lambda: MaxFeatures(1, groups=[0, 1]), "MaxFeatures: groups must have one value per column, 3 in all"),
        (lambda: MaxFeatures(1, groups=[0, 1, None]), "MaxFeatures: groups has missing values"),
        (lambda: FeatureCosts([1, 1, 1]), "FeatureCosts: at_most must be given"),
        (lambda: FeatureCosts([1, 1, 1], at_most=-1), "FeatureCosts: at_most"),
        (lambda: FeatureCosts([1, 1], at_most=1), "FeatureCosts: prices must have one price per group, 3 in all"),
        (lambda: FeatureCosts([1, 1, 1], ["g", "g", "h"], at_most=1), "FeatureCosts: prices.*2 in all"),
        (lambda: FeatureCosts([1, -1, 1], at_most=1), "FeatureCosts: prices must be finite and not negative"),
        (lambda: FeatureCosts("abc", at_most=1), "FeatureCosts: prices must be numbers"),
        (lambda: FeatureCosts({"d": 1}, at_most=1), "FeatureCosts: prices: there is no column 'd'"),
        (lambda: FeatureCosts({0: 1}, ["g", "g", "h"], at_most=1), "FeatureCosts: prices: there is no group 0"),
        (lambda: FeatureCosts({"a": "x"}, at_most=1), "FeatureCosts: prices"),
    ],
)
def test_bad_input_is_named(make: Callable[[], Any], message: str) -> None:
    """The constraint, the argument, and what is wrong with it; when it is made, or when it meets the data."""
    with pytest.raises(InvalidInputError, match=message):
        make().bind(NAMED)


def test_prices_by_name() -> None:
    """Of columns or of groups; what is not named is free."""
    assert FeatureCosts({"a": 2}, at_most=1).bind(NAMED).price.tolist() == [2.0, 0.0, 0.0]
    bound = FeatureCosts({"h": 2}, ["h", "g", "h"], at_most=1).bind(NAMED)
    assert bound.price.tolist() == [0.0, 2.0] and bound.group.tolist() == [1, 0, 1]
