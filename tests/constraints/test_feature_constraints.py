"""Rules about features and leaves that are not linear in the predictions, against all labelled trees."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.constrained_solves import check_trees
from helpers.feature_rules import (
    OWN,
    Make,
)
from helpers.mip_support import skip_unless_available
from helpers.selection import daily
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance, random_instance

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
from accel_oct.formulation import Incumbent, Master
from accel_oct.solving.phases.feature_sets import FeatureSetSearch, SetRules, TableNodes
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree


def max_leaves(rng: np.random.Generator, instance: Instance) -> Any:
    return MaxLeaves(int(rng.integers(2, 4)))


def parity(rng: np.random.Generator, instance: Instance) -> Any:
    group = rng.integers(0, 2, len(instance.y))
    group[0] = 1 - group[-1]
    return StatisticalParity(group, 0.2, positive=instance.y[0]) if len(group) > 1 else MaxLeaves(2)


def _instance(rng: np.random.Generator, max_depth: int = 2, n_features: int = 3) -> Instance:
    """So few features that all trees can be listed, and leaves so cheap that most of them are worth something."""
    n_classes = int(rng.integers(2, 4))
    while True:
        drawn = random_instance(rng, max_samples=16, max_features=n_features, max_classes=n_classes)
        if drawn.X.shape[1] == n_features and len(drawn.y) >= 8 and len(set(drawn.y.tolist())) > 1:
            penalty = float(rng.choice([0.0, 0.01, 0.5 / len(drawn.y)]))
            return replace(drawn, max_depth=max_depth, leaf_penalty=penalty)


def _paths(tree: DecisionTree, node: int = 1, above: tuple[tuple[int, int], ...] = ()) -> list[tuple[Any, ...]]:
    """The literals that lead to each leaf, by walking down."""
    feature = int(tree.feature[node - 1])
    if feature < 0:
        return [above]
    return [path for side in (0, 1) for path in _paths(tree, 2 * node + side, (*above, (feature, side)))]


def _keeps(rule: Any, instance: Instance, tree: DecisionTree) -> bool:
    """What each constraint says, said once more."""
    paths, X = _paths(tree), instance.X.astype(int)
    used = {feature for path in paths for feature, _ in path}
    if isinstance(rule, MinLeafWeight):
        weights = np.ones(len(X)) if instance.sample_weight is None else instance.sample_weight
        minimum = rule.amount if rule.amount is not None else rule.share * weights.sum()
        return all(weights[[all(x[f] == v for f, v in path) for x in X]].sum() >= minimum - 1e-7 for path in paths)
    if isinstance(rule, ForbiddenFeatures):
        return not used & set(rule.features)
    if isinstance(rule, ForbiddenPairs):
        places = [{feature for feature, _ in path} for path in paths] if rule.on == "path" else [used]
        return not any(set(pair) <= place for place in places for pair in rule.pairs)
    names = range(X.shape[1]) if rule.sources is None else rule.sources
    groups = {names[feature] for feature in used}
    if isinstance(rule, MaxFeatures):
        return len(groups) <= rule.n
    price = dict(zip(sorted(set(names)), rule.prices, strict=True))
    return sum(price[group] for group in groups) <= rule.at_most + 1e-7


@pytest.mark.daily(2)
@pytest.mark.parametrize("make", OWN)
def test_rows_and_definition(make: Make) -> None:
    """For all trees of depth three: the definition, and rows that a tree satisfies if, or exactly if, it keeps it."""
    rng = np.random.default_rng(len(make.__name__))
    broken = 0
    for _ in range(6):
        instance = _instance(rng, 3, 2)
        rule = make(rng, instance)
        bound = rule.bind(instance.dataset)
        master = Master(instance.dataset, 3, instance.leaf_price, integral_predictions=True)
        bound.add_to(master)
        rows, trees = master.model.rows, list(enumerate_trees(instance.dataset, 3))
        kept = [tree for tree in trees if _keeps(rule, instance, tree)]
        lifted = [master.lift(tree) for tree in kept]
        assert all(rows.violation(x).max() <= 1e-7 for x in lifted)
        broken += len(trees) - len(kept)
        for place, tree in enumerate(trees):
            keeps = _keeps(rule, instance, tree)
            assert (bound.violation(tree) <= 0) == keeps, (rule, instance)
            if keeps or (isinstance(rule, MinLeafWeight) and place % 20):
                continue
            if isinstance(rule, MinLeafWeight) and instance.dataset.total_weight >= float(bound.minimum):
                rows = bound.forbid(tree, master)
                assert all(rows.violation(x).max() == 0 for x in lifted)
            assert rows.violation(master.lift(tree)).max() > 1e-3
    assert broken


@pytest.mark.daily(8)
@pytest.mark.parametrize("seed", daily(range(2), 1))
@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("backend", ["highs", "gurobi"])
@pytest.mark.parametrize("make", OWN)
def test_alone(make: Make, backend: str, preset: str, seed: int) -> None:
    """Equal to enumeration: value, bound, status, and the tree satisfies the rule."""
    skip_unless_available(backend)
    rng = np.random.default_rng([seed, *map(ord, make.__name__ + backend + preset)])
    for _ in range(5):
        instance = _instance(rng)
        check_trees(instance, [make(rng, instance)], solver=backend, config=preset)


@pytest.mark.daily(4)
@pytest.mark.parametrize("seed", daily(range(2), 1))
@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("make", OWN)
def test_together(make: Make, preset: str, seed: int) -> None:
    """Each with another one at random, twice with itself included, a limit on leaves or parity."""
    rng = np.random.default_rng([seed, *map(ord, make.__name__ + preset)])
    others = (*OWN, max_leaves, parity)
    for _ in range(5):
        instance = _instance(rng)
        other = others[int(rng.integers(len(others)))]
        check_trees(instance, [make(rng, instance), other(rng, instance)], config=preset)


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
        check_trees(instance, [makers[place](rng, instance) for place in chosen], config=preset)


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


@pytest.mark.daily(3)
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
        assert result.stats["feature_sets"]["nodes"] + result.stats["feature_sets"]["sets"] >= 1


def _all_sets(n_features: int, rules: list[Any], dataset: BinaryDataset) -> list[tuple[int, ...]]:
    """Every set of columns that a tree may use."""
    bound = [rule.bind(dataset).rule for rule in rules]
    return [
        chosen
        for size in range(1, n_features + 1)
        for chosen in itertools.combinations(range(n_features), size)
        if all(rule.cost(set(rule.group[list(chosen)].tolist())) <= rule.at_most + 1e-7 for rule in bound)
    ]


@pytest.mark.parametrize("seed", daily(range(6), 3))
def test_several_budgets_with_groups_of_their_own(seed: int) -> None:
    """Prices by one grouping, a number by another, and a forbidden column: all sets of columns that keep all three."""
    rng = np.random.default_rng(seed)
    X, y = _data(seed)
    pairs, halves = np.arange(9) // 2, ["a", "a", "a", "b", "b", "b", "c", "c", "c"]
    prices = FeatureCosts(rng.choice([0.0, 0.1, 0.2, 0.3], 5), pairs, at_most=0.4)
    needed = FeatureCosts([0.1, 0.2, 0.1, 0.1, 0.0], pairs, at_most=0.4)
    for rules in ([prices], [needed], [prices, MaxFeatures(2, halves), ForbiddenFeatures([1])]):
        dataset = BinaryDataset.from_arrays(X, y)
        sets = _all_sets(9, rules, dataset)
        result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=rules)
        assert result.status == "optimal" and result.stats["decided_by"] == "feature sets"
        largest = [chosen for chosen in sets if not any(set(chosen) < set(other) for other in sets)]
        assert result.objective == pytest.approx(_best_of_sets(X, y, 3, 0.0, largest), abs=1e-12)
        incumbent, bounds = _from_a_leaf(dataset, rules, Stopper())
        assert incumbent.value == bounds[-1] == pytest.approx(result.objective * dataset.total_weight, abs=1e-9)
        assert result.stats["feature_sets"]["groups"] == (5 if len(rules) == 1 else 7)


def test_another_rule_next_to_a_budget() -> None:
    """A budget and a number of leaves together."""
    X, y = _data(2, n_features=7)
    limits = {"max_depth": 2, "leaf_penalty": 0.0}
    pairs = itertools.combinations(range(7), 2)
    best = max(accel_oct.solve(X[:, pair], y, constraints=[MaxLeaves(3)], **limits).objective for pair in pairs)
    result = accel_oct.solve(X, y, constraints=[MaxFeatures(2), MaxLeaves(3)], **limits)
    assert result.status == "optimal" and result.stats["decided_by"] == "feature sets"
    assert result.objective == pytest.approx(best, abs=1e-12)


def test_forbidden_features_are_decided_by_one_table() -> None:
    """There is nothing to choose; with all of them forbidden a leaf is left."""
    X, y = _data()
    names = [f"c{f}" for f in range(X.shape[1])]
    dataset = BinaryDataset.from_arrays(X, y, feature_names=names)
    result = accel_oct.solve(dataset, max_depth=3, leaf_penalty=0.0, constraints=[ForbiddenFeatures(["c6", 0])])
    assert result.status == "optimal" and sum(result.stats["feature_sets"][what] for what in ("nodes", "sets")) == 1
    assert result.objective == _best_of_sets(X, y, 3, 0.0, [[1, 2, 3, 4, 5, 7, 8]])
    result = accel_oct.solve(dataset, max_depth=3, leaf_penalty=0.0, constraints=[ForbiddenFeatures(names)])
    assert result.status == "optimal" and result.tree.n_leaves == 1


def _from_a_leaf(data: BinaryDataset, rules: list[Any], stopper: Stopper) -> tuple[Incumbent, list[float]]:
    """The search alone, without the trees of a warm start; returns what it found, and every bound that it told."""
    bound = [rule.bind(data) for rule in rules]
    incumbent, bounds = Incumbent(data, 0.0, bound), [data.total_weight]
    incumbent.offer(DecisionTree.leaf(0, 3))

    def offer(tree: DecisionTree) -> float:
        incumbent.offer(tree)
        return incumbent.value

    def tighten(value: float) -> bool:
        bounds.append(value)
        return False

    solver = TableNodes(data, 3, 0.0, stopper)
    search = FeatureSetSearch(data, SetRules.of(bound), solver, offer, tighten, stopper)
    search.run(incumbent.value, bounds[0])
    return incumbent, bounds


def test_a_stopped_search_has_a_valid_bound() -> None:
    """Wherever it is stopped: every bound that it tells holds, and they fall to the optimum when it is not."""
    X, y = _data(1)
    data, rule = BinaryDataset.from_arrays(X, y), MaxFeatures(2)
    best = accel_oct.solve(data, max_depth=3, leaf_penalty=0.0, constraints=[rule]).objective * data.total_weight
    ends = []
    for steps in range(0, 400, 7):
        left = itertools.count(-steps)
        incumbent, bounds = _from_a_leaf(data, [rule], Stopper(should_stop=lambda left=left: next(left) >= 0))
        assert incumbent.value <= best <= min(bounds) and len(incumbent.tree.features_used) <= 2
        ends.append(min(bounds))
    assert ends[0] == data.total_weight and ends[-1] == best and len(set(ends)) > 3


def test_pairs_on_a_path_and_in_the_tree() -> None:
    """A feature between the two does not part them on a path; sides of a branch do, and the tree counts both."""
    leaf, dataset = DecisionTree.leaf(0), BinaryDataset.from_arrays(np.eye(3, dtype=int), [0, 1, 0])

    def split(feature: int, zero: DecisionTree = leaf, one: DecisionTree = leaf) -> DecisionTree:
        return DecisionTree.branch(feature, zero, one)

    apart, on_path = split(2, split(0), split(1)), split(1, leaf, split(2, split(0)))
    for on, tree, broken in (("path", apart, False), ("path", on_path, True), ("tree", apart, True)):
        rule, master = ForbiddenPairs([(0, 1)], on).bind(dataset), Master(dataset, 3, 0.0, integral_predictions=True)
        rule.add_to(master)
        assert (rule.violation(tree) > 0) == broken
        assert (master.model.rows.violation(master.lift(tree)).max() > 0.5) == broken


def test_too_light_paths_are_forbidden_at_once() -> None:
    """The rows of one light tree reject all trees that share its light path, and no tree that satisfies the rule."""
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
        (lambda: MinLeafWeight(), "MinLeafWeight: exactly one of amount, share and samples"),
        (lambda: MinLeafWeight(1, 0.5), "MinLeafWeight: exactly one of amount, share and samples"),
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
        (lambda: MaxFeatures(1, sources=[0, 1]), "MaxFeatures: sources must have one value per column, 3 in all"),
        (lambda: MaxFeatures(1, sources=[0, 1, None]), "MaxFeatures: sources has missing values"),
        (lambda: FeatureCosts([1, 1, 1]), "FeatureCosts: at_most must be given"),
        (lambda: FeatureCosts([1, 1, 1], at_most=-1), "FeatureCosts: at_most"),
        (
            lambda: FeatureCosts([1, 1], at_most=1),
            r"FeatureCosts: prices must have the shape \(3,\), one price per source",
        ),
        (
            lambda: FeatureCosts([1, 1, 1], ["g", "g", "h"], at_most=1),
            r"FeatureCosts: prices must have the shape \(2,\)",
        ),
        (lambda: FeatureCosts([1, -1, 1], at_most=1), "FeatureCosts: prices must be finite and not negative"),
        (lambda: FeatureCosts("abc", at_most=1), "FeatureCosts: prices must hold numbers"),
        (lambda: FeatureCosts({"d": 1}, at_most=1), "FeatureCosts: prices: there is no column 'd'"),
        (lambda: FeatureCosts({0: 1}, ["g", "g", "h"], at_most=1), "FeatureCosts: prices: there is no source 0"),
        (lambda: FeatureCosts({"a": "x"}, at_most=1), "FeatureCosts: prices"),
    ],
)
def test_bad_input_is_named(make: Callable[[], Any], message: str) -> None:
    """The constraint, the argument, and what is wrong with it; when it is made, or when it meets the data."""
    with pytest.raises(InvalidInputError, match=message):
        make().bind(NAMED)


def test_prices_by_name() -> None:
    """Of columns or of groups; what is not named is free."""
    assert FeatureCosts({"a": 2}, at_most=1).bind(NAMED).rule.price.tolist() == [2.0, 0.0, 0.0]
    bound = FeatureCosts({"h": 2}, ["h", "g", "h"], at_most=1).bind(NAMED)
    assert bound.rule.price.tolist() == [0.0, 2.0] and bound.rule.group.tolist() == [1, 0, 1]
