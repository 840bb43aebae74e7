"""The oracles are worth something only while two independent ones agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from accel_oct.data import BinaryDataset
from oracles import dynamic_programme, enumeration
from oracles.instances import Instance, chain_instances, instances, random_instance


@given(instances(max_samples=10, max_features=3, max_depth=2))
def test_best_value_agrees(instance: Instance) -> None:
    """Enumeration and dynamic programme find the same optimal value."""
    dataset, price = instance.dataset, instance.leaf_price
    expected = enumeration.best_value(dataset, instance.max_depth, price)
    assert dynamic_programme.optimal_value(dataset, instance.max_depth, price) == expected


@given(instances(max_samples=10, max_features=3, max_depth=2))
def test_best_score_by_leaves_agrees(instance: Instance) -> None:
    """Both oracles give the same frontier, and it has an entry for every number of leaves."""
    dataset, depth = instance.dataset, instance.max_depth
    by_leaves = enumeration.best_score_by_leaves(dataset, depth)
    assert sorted(by_leaves) == list(range(1, 2**depth + 1))
    for n_leaves in by_leaves:
        expected = max(score for count, score in by_leaves.items() if count <= n_leaves)
        assert dynamic_programme.optimal_score(dataset, depth, n_leaves) == expected


def test_oracles_agree_at_depth_three() -> None:
    """The agreement also holds one level deeper, on seeded instances with up to two features."""
    rng = np.random.default_rng(3)
    for _ in range(15):
        instance = random_instance(rng, max_samples=12, max_features=2)
        dataset, price = instance.dataset, instance.leaf_price
        assert dynamic_programme.optimal_value(dataset, 3, price) == enumeration.best_value(dataset, 3, price)


@given(instances(max_samples=8, max_features=2, max_classes=3, max_depth=2))
def test_trees_come_with_the_values_they_claim(instance: Instance) -> None:
    """The best enumerated tree has the best value, whether leaves take majorities or any label."""
    dataset, depth, price = instance.dataset, min(instance.max_depth, 2), instance.leaf_price
    best = enumeration.best_value(dataset, depth, price)
    trees = list(enumeration.enumerate_trees(dataset, depth))
    assert max(tree.value(dataset, price) for tree in trees) == best
    if depth < 2:
        labelled = set(enumeration.enumerate_trees(dataset, depth, labels="all"))
        assert labelled >= set(trees)
        assert max(tree.value(dataset, price) for tree in labelled) == best


def test_number_of_trees() -> None:
    """The enumeration has the size that the recurrence says, without repeats."""
    dataset = BinaryDataset.from_arrays([[0, 1, 0], [1, 0, 0]], [0, 1])
    for depth, shapes in ((0, 1), (1, 4), (2, 49)):
        trees = list(enumeration.enumerate_trees(dataset, depth))
        assert len(trees) == len(set(trees)) == shapes
    labelled = list(enumeration.enumerate_trees(dataset, 1, labels="all"))
    assert len(labelled) == len(set(labelled)) == 2 + 3 * 4


def test_xor_needs_depth_two() -> None:
    """A case computed by hand: exclusive or scores 2 of 4 at depth one, and 4 of 4 at depth two."""
    dataset = BinaryDataset.from_arrays([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    assert [dynamic_programme.optimal_value(dataset, depth, 0.0) for depth in (0, 1, 2)] == [2, 2, 4]
    assert enumeration.best_score_by_leaves(dataset, 2) == {1: 2, 2: 2, 3: 3, 4: 4}
    assert dynamic_programme.optimal_value(dataset, 2, 0.5) == 2.0


def test_random_instances_cover_the_nasty_cases() -> None:
    """The seeded generator is reproducible; it meets duplicates, constants, zero weights, big penalties."""
    first = [random_instance(np.random.default_rng(seed)) for seed in range(300)]
    second = [random_instance(np.random.default_rng(seed)) for seed in range(300)]
    assert all(repr(a) == repr(b) for a, b in zip(first, second, strict=True))
    assert any(len(np.unique(a.X, axis=1).T) < a.X.shape[1] for a in first)
    assert any((a.X.all(axis=0) | ~a.X.any(axis=0)).any() for a in first)
    assert any(a.sample_weight is not None and (a.sample_weight == 0).any() for a in first)
    assert {0.0, 3.0} <= {a.leaf_penalty for a in first}
    assert {len(np.unique(a.y)) for a in first} >= {1, 2, 3, 4}
    assert max(len(a.y) for a in first) <= 40
    assert max(a.X.shape[1] for a in first) == 6


@pytest.mark.parametrize("seed", range(3))
def test_merging_changes_no_optimum(seed: int) -> None:
    """Merging identical rows leaves the optimal value as it is."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        instance = random_instance(rng, max_features=3)
        dataset, price = instance.dataset, instance.leaf_price
        merged = dataset.merged()
        assert merged.leaf_price(instance.leaf_penalty) == price
        for depth in range(3):
            assert dynamic_programme.optimal_value(merged, depth, price) == dynamic_programme.optimal_value(
                dataset, depth, price
            )


@pytest.mark.parametrize("length", [3, 4, 5, 6])
def test_chains_are_tight(length: int) -> None:
    """The optimum pays for ``length + 1`` leaves and nothing else; a level less costs at most one leaf price more."""
    for instance in chain_instances((length,)):
        dataset, price = instance.dataset, instance.leaf_price
        paid = dataset.total_weight - dynamic_programme.optimal_value(dataset, length, price)
        paid_below = dataset.total_weight - dynamic_programme.optimal_value(dataset, length - 1, price)
        assert paid == pytest.approx((length + 1) * price), instance
        assert paid < paid_below <= (length + 2) * price * (1 + 1e-9), instance
        if length <= 4 and dataset.n_features == length:
            lists = enumeration.enumerate_decision_lists(dataset, length)
            assert max(tree.value(dataset, price) for tree in lists) == pytest.approx(dataset.total_weight - paid)
