"""The tree near the optimum that agrees most with an old model: against a list of all trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracles.closest import closest, most_splits, splits

import accel_oct
from accel_oct import Config, Tally, closest_tree
from accel_oct.constraints import MaxLeaves, PositiveBudget
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.tree import DecisionTree

LIMITS = replace(Config.preset("default"), enumeration=False)
"""Near-optimal trees are not listed."""


def instance(seed: int) -> tuple[Any, ...]:
    """Rows with many ties, the predictions of a model of other rows, depth, penalty and slack."""
    rng = np.random.default_rng(seed)
    depth = 3 if seed % 40 == 39 else int(rng.integers(1, 3))
    n_features, classes = (2, 2) if depth == 3 else (3, int(rng.integers(2, 4)))
    X = rng.integers(0, 2, (int(rng.integers(5, 16)), n_features))
    y = rng.integers(0, classes, len(X))
    y[:classes] = np.arange(classes)
    weight = rng.integers(0, 4, len(X)) if rng.random() < 0.5 else np.ones(len(X))
    weight[:classes] = 1
    old = rng.integers(0, classes, len(X)) if rng.random() < 0.5 else X[:, 0] * (classes - 1)
    old = np.where(rng.random(len(X)) < rng.choice([0.0, 0.5]), 9, old)  # a class that no tree predicts
    old[0] = 0
    penalty = float(rng.choice([0.0, 0.01, 0.05, 1 / 16]))
    within = float(rng.choice([0.0, 0.05, 0.1, 0.3, 1 / len(X), 2 * penalty]))
    return X, y, weight, old, depth, penalty, within


def check(seed: int, **options: Any) -> None:
    X, y, weight, old, depth, penalty, within = instance(seed)
    data = BinaryDataset.from_arrays(X, y, weight)
    expected = closest(data, depth, penalty, within, old.tolist())
    assert expected is not None
    agreement, objective, optimum = expected
    found = closest_tree(
        *(X, y), sample_weight=weight, close_to=old, max_depth=depth, leaf_penalty=penalty, within=within, **options
    )
    assert found.status == "optimal", (seed, found)
    assert found.optimum == pytest.approx(optimum, abs=1e-9), seed
    assert found.agreement == pytest.approx(agreement, abs=1e-9) == found.agreement_bound, seed
    assert found.objective == pytest.approx(objective, abs=1e-9), seed
    tree = found.tree
    value = tree.score(data) / data.total_weight - penalty * tree.n_leaves
    assert value == pytest.approx(found.objective) and value >= optimum - within - 2e-9, seed
    same = data.weights[tree.predictions(data.X) == old].sum() / data.total_weight
    assert same == pytest.approx(found.agreement), seed


@pytest.mark.daily(25, slow=50)
@pytest.mark.parametrize("seed", range(250))
def test_agreement_objective_and_optimum_agree_with_a_list_of_all_trees(seed: int) -> None:
    """Most agreement within the slack, leaf penalties counted, then the largest objective: by lists and by limits."""
    check(seed)
    check(seed, config=LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_branch_and_cut_finds_the_same(seed: int) -> None:
    check(seed, config="baseline")


@pytest.mark.parametrize("seed", range(3))
def test_constraints_hold_and_the_optimum_is_theirs(seed: int) -> None:
    """`within` is measured from the best tree that satisfies the constraints."""
    X, y, weight, old, depth, penalty, within = instance(seed + 500)
    data = BinaryDataset.from_arrays(X, y, weight)

    def allows(predictions: Any, leaves: int) -> bool:
        share = data.weights[np.array(predictions) == 1].sum() / data.total_weight
        return leaves <= 3 and bool(share <= 0.5 + 1e-9)

    expected = closest(data, depth, penalty, within, old.tolist(), allows)
    assert expected is not None
    found = closest_tree(
        *(X, y),
        sample_weight=weight,
        close_to=old,
        max_depth=depth,
        leaf_penalty=penalty,
        within=within,
        constraints=[MaxLeaves(3), PositiveBudget(0.5, 1)],
    )
    assert (found.agreement, found.objective, found.optimum) == pytest.approx(expected, abs=1e-9)
    assert len(found.result.constraints) == 2


def test_a_tree_and_its_predictions_are_the_same_old_model() -> None:
    X, y, _, _, _, _, _ = instance(7)
    old = DecisionTree.branch(0, DecisionTree.leaf(1), DecisionTree.leaf(0))
    arguments: dict[str, Any] = {"max_depth": 2, "leaf_penalty": 0.01, "within": 0.1}
    by_tree = closest_tree(X, y, close_to=old, **arguments)
    by_classes = closest_tree(X, y, close_to=old.predictions(X == 1), **arguments)
    assert by_tree.agreement == by_classes.agreement and by_tree.objective == by_classes.objective


def test_without_slack_the_optimal_tree_that_agrees_most_is_chosen() -> None:
    """Two equal columns of opposite value on rows of weight: both trees are optimal, and the old model decides."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    y = np.array([0, 0, 1, 0])  # one leaf, or a split on either column, classifies three rows correctly
    for column in (0, 1):
        old = X[:, 0] if column == 0 else 1 - X[:, 1]
        found = closest_tree(X, y, close_to=old, max_depth=1, leaf_penalty=0.0, within=0.0)
        assert found.objective == 0.75 == found.optimum and found.agreement == 1.0
        assert found.tree.feature[0] == column


def test_the_leaf_penalty_counts_in_the_slack() -> None:
    """A further leaf costs 0.1: it is within 0.1 of the optimum and not within 0.09."""
    X = np.repeat([[0], [1]], 5, axis=0)
    y = np.array([0] * 9 + [1])
    old = X[:, 0]
    for within, agreement in ((0.4, 1.0), (0.39, 0.5)):
        found = closest_tree(X, y, close_to=old, max_depth=1, leaf_penalty=0.1, within=within)
        assert found.optimum == pytest.approx(0.8) and found.agreement == agreement


def test_a_loss_within_the_tolerance_of_the_slack_is_allowed() -> None:
    """A loss of 29 of 100 rows is within 0.29 - 5e-10, and not within 0.29 - 5e-9."""
    X = np.repeat([[0], [1]], [71, 29], axis=0)
    for missing, agreement in ((0.0, 1.0), (5e-10, 1.0), (5e-9, 0.71)):
        old = np.zeros(100)
        found = closest_tree(X, X[:, 0], close_to=old, max_depth=1, leaf_penalty=0.0, within=0.29 - missing)
        assert found.agreement == agreement


@pytest.mark.parametrize("seed", [45, 46, 92])
def test_of_trees_that_agree_as_much_the_best_is_taken(seed: int) -> None:
    """Instances in which the second problem alone gives a tree with a smaller objective."""
    check(seed, config=LIMITS)


def test_unknown_classes_agree_with_no_tree() -> None:
    X, y = np.array([[0], [1], [1]]), np.array(["a", "b", "b"])
    found = closest_tree(X, y, close_to=["a", "z", "b"], max_depth=1, leaf_penalty=0.0, within=1.0)
    assert found.agreement == pytest.approx(2 / 3) and found.objective == 1.0


def test_a_stopped_search_says_what_it_proved() -> None:
    """Without time: a tree, no optimum, and a bound on the agreement that holds."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (300, 30)), rng.integers(0, 2, 300)
    found = closest_tree(X, y, close_to=y, max_depth=4, leaf_penalty=0.0, within=0.01, time_limit=0.0)
    assert found.status == "time_limit" and found.optimum is None and found.agreement_bound == 1.0
    assert found.tree.n_leaves >= 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"close_to": [0, 1]}, "close_to must be a DecisionTree or one class for each of the 4 rows"),
        ({"close_to": None}, "close_to must be"),
        ({"close_to": DecisionTree.branch(5, DecisionTree.leaf(0), DecisionTree.leaf(1))}, "close_to names a feature"),
        ({"within": -1}, "within must be"),
        ({"objective": "f1"}, "objective: a tree close to an old model"),
    ],
)
def test_errors_name_the_argument(changed: dict[str, Any], message: str) -> None:
    X, y = np.array([[0], [1], [1], [0]]), np.array([0, 1, 1, 0])
    arguments: dict[str, Any] = {"close_to": y, "max_depth": 1, "leaf_penalty": 0.0, "within": 0.1, **changed}
    with pytest.raises(InvalidInputError, match=message):
        accel_oct.closest_tree(X, y, **arguments)


def test_a_tally_is_refused() -> None:
    X, y = np.array([[0], [1], [1], [0]]), np.array([0, 1, 1, 0])
    with pytest.raises(InvalidInputError, match="close_to needs rows"):
        closest_tree(Tally.of(X, y, depth=1), close_to=y, max_depth=1, leaf_penalty=0.0, within=0.0)


# ---------------------------------------------------------------- splits


def old_tree(seed: int, n_features: int, classes: int) -> DecisionTree:
    """A tree that may use a feature twice, or a leaf."""
    rng = np.random.default_rng([29, seed])

    def nested(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.2:
            return int(rng.integers(classes))
        return int(rng.integers(n_features)), nested(depth - 1), nested(depth - 1)

    return DecisionTree.from_nested(nested(3), max_depth=3)


@pytest.mark.daily(25, slow=50)
@pytest.mark.parametrize("seed", range(400))
def test_shared_splits_agree_with_a_list_of_all_trees(seed: int) -> None:
    """The share of the old splits, then the objective, are the largest of all trees within the slack."""
    X, y, weight, _, depth, penalty, within = instance(seed)
    data = BinaryDataset.from_arrays(X, y, weight)
    old = old_tree(seed, X.shape[1], data.n_classes)
    agreement, objective, optimum = most_splits(data, depth, penalty, within, old.nested())
    found = closest_tree(
        *(X, y), sample_weight=weight, close_to=old, max_depth=depth, leaf_penalty=penalty, within=within,
        agreement="splits",
    )  # fmt: skip
    assert found.status == "optimal" and found.optimum == pytest.approx(optimum, abs=1e-9)
    assert found.agreement == pytest.approx(agreement) == found.agreement_bound
    assert found.objective == pytest.approx(objective, abs=1e-9)
    tree = found.tree
    assert tree.score(data) / data.total_weight - penalty * tree.n_leaves == pytest.approx(found.objective)
    wanted = splits(old.nested())
    assert (splits(tree.nested()) & wanted).total() == pytest.approx(found.agreement * wanted.total()) or not wanted


def test_splits_are_counted_as_often_as_the_old_tree_has_them() -> None:
    """A split that the old tree has twice counts twice, at any place; equal columns are different features."""
    leaf = DecisionTree.leaf
    twice = DecisionTree.branch(0, DecisionTree.branch(1, leaf(0), leaf(1)), DecisionTree.branch(1, leaf(1), leaf(0)))
    X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]] * 3)
    y = X[:, 0] ^ X[:, 1]
    arguments: dict[str, Any] = {"leaf_penalty": 0.01, "agreement": "splits", "max_depth": 2}
    found = closest_tree(X, y, close_to=twice, within=0.0, **arguments)
    assert found.agreement == 1.0 and splits(found.tree.nested()) == {0: 1, 1: 2}
    other = DecisionTree.branch(2, twice.subtree(2), twice.subtree(3))
    found = closest_tree(X, y, close_to=other, within=0.0, **arguments)
    assert found.agreement == pytest.approx(2 / 3)
    once = DecisionTree.branch(1, leaf(0), leaf(1))
    assert closest_tree(X, y, close_to=once, within=0.0, **arguments).agreement == 1.0
    assert closest_tree(X, y, close_to=leaf(0), within=0.0, **arguments).agreement == 1.0


def test_of_trees_that_share_as_many_splits_the_best_is_taken() -> None:
    """A larger tree within the slack that shares no more splits is not taken: the last column never splits."""
    X = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0]])
    y = np.array([0, 0, 1, 1, 0, 0, 1])
    old = DecisionTree.branch(
        0, DecisionTree.leaf(0), DecisionTree.branch(2, DecisionTree.leaf(0), DecisionTree.leaf(1))
    )
    found = closest_tree(X, y, close_to=old, max_depth=2, leaf_penalty=0.2, within=0.5, agreement="splits")
    assert found.agreement == 0.5 and found.tree.n_leaves == 2
    assert found.objective == pytest.approx(5 / 7 - 0.4)


def test_a_list_that_is_cut_short_proves_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit on the list the status says so and the bound holds, unless all old splits are shared."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (60, 8)), rng.integers(0, 2, 60)
    leaf = DecisionTree.leaf
    old = DecisionTree.branch(7, DecisionTree.branch(7, leaf(0), leaf(1)), leaf(0))  # no tree asks twice
    arguments: dict[str, Any] = {"leaf_penalty": 0.0, "agreement": "splits", "max_depth": 3, "within": 0.05}
    monkeypatch.setattr("accel_oct.solving.closest._MOST_LISTED", 3)
    found = closest_tree(X, y, close_to=old, **arguments)
    assert found.status == "stopped" and found.agreement_bound == 1.0 > found.agreement
    same = closest_tree(X, y, close_to=found.tree, **arguments)
    assert same.status == "optimal" and same.agreement == 1.0
    late = closest_tree(X, y, close_to=old, time_limit=0.0, **arguments)
    assert late.status == "time_limit" and late.optimum is None and late.agreement_bound == 1.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"agreement": "leaves"}, "agreement must be"),
        ({"agreement": ["splits"]}, "agreement must be"),
        ({"close_to": [0, 1, 1, 0]}, "needs a DecisionTree as close_to"),
        ({"close_to": DecisionTree.branch(5, DecisionTree.leaf(0), DecisionTree.leaf(1))}, "close_to names a feature"),
        ({"constraints": [MaxLeaves(2)]}, "cannot be combined with constraints"),
    ],
)
def test_errors_about_splits(changed: dict[str, Any], message: str) -> None:
    X, y = np.array([[0], [1], [1], [0]]), np.array([0, 1, 1, 0])
    old = DecisionTree.branch(0, DecisionTree.leaf(0), DecisionTree.leaf(1))
    arguments = {"close_to": old, "max_depth": 1, "leaf_penalty": 0.0, "within": 0.1, "agreement": "splits", **changed}
    with pytest.raises(InvalidInputError, match=message):
        closest_tree(X, y, **arguments)
