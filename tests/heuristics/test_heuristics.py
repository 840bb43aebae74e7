"""The warm start and the polishing heuristic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.dynamic_programme import optimal_value
from oracles.instances import Instance, instances, random_instance

from accel_oct.data import BinaryDataset
from accel_oct.exact import DepthTwoSolver, Subtree, SubtreeCache
from accel_oct.heuristics import cart, polish, polish_roots
from accel_oct.tree import DecisionTree


def lookup_in(cache: SubtreeCache, leaf_price: float) -> Callable[..., Subtree]:
    """The shared cache in the form that polish takes."""

    def subtree_for(literals: frozenset[tuple[int, int]], samples: np.ndarray, *, max_depth: int) -> Subtree:
        return cache.lookup(literals, leaf_price, samples, max_depth=max_depth)

    return subtree_for


def cache_for(dataset: BinaryDataset) -> SubtreeCache:
    """A cache over a plain NumPy solver."""
    return SubtreeCache(DepthTwoSolver(dataset.X, dataset.y, dataset.weights, dataset.n_classes))


def random_tree(rng: np.random.Generator, dataset: BinaryDataset, max_depth: int) -> DecisionTree:
    """A tree with random branches and labels."""
    feature = np.full(2 ** (max_depth + 1) - 1, -1)
    label = feature.copy()
    todo = [1]
    while todo:
        node = todo.pop()
        if 2 * node < len(feature) and rng.random() < 0.75:
            feature[node - 1] = rng.integers(dataset.n_features)
            todo += [2 * node, 2 * node + 1]
        else:
            label[node - 1] = rng.integers(dataset.n_classes)
    return DecisionTree(feature, label)


# --- CART --------------------------------------------------------------------------------------------------


@given(instances(max_samples=16, max_features=4, max_classes=4), st.integers(0, 3))
def test_cart_is_pruned_and_within_its_limits(instance: Instance, seed: int) -> None:
    """The tree fits the depth, beats a single leaf, cannot be pruned further and never beats the optimum."""
    dataset, price, depth = instance.dataset, instance.leaf_price, instance.max_depth
    tree = cart(dataset, depth, price, seed)
    assert tree.max_depth == depth
    value = tree.value(dataset, price)
    assert dataset.class_weights().max() - price <= value <= optimal_value(dataset, depth, price)
    assert tree.pruned(dataset, price) == tree
    assert cart(dataset, depth, price, seed) == tree


def test_cart_finds_a_rule_that_greed_can_find() -> None:
    """A conjunction of two features is learnt exactly, and a price too high leaves one leaf."""
    X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    y = X[:, 0] & X[:, 2]
    dataset = BinaryDataset.from_arrays(X, y)
    tree = cart(dataset, 3, dataset.leaf_price(0.01))
    assert tree.score(dataset) == 8
    assert tree.n_leaves == 3
    assert tree.features_used == (0, 2)
    assert cart(dataset, 3, dataset.leaf_price(0.5)) == DecisionTree.leaf(0, 3)


def test_cart_matches_scikit_learn_without_a_price() -> None:
    """With free leaves, pruning loses no accuracy against scikit-learn's own predictions."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.tree import DecisionTreeClassifier

    raw, y = load_breast_cancer(return_X_y=True)
    X = raw > np.median(raw, axis=0)
    for depth in (1, 2, 4):
        dataset = BinaryDataset.from_arrays(X, y)
        reference = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
        assert cart(dataset, depth, 0.0).score(dataset) == (reference.predict(X) == y).sum()


def test_cart_uses_the_weights() -> None:
    """Weighted data and data with repeated rows lead to trees of the same value."""
    rng = np.random.default_rng(5)
    X, y = rng.random((30, 5)) < 0.5, rng.integers(0, 2, 30)
    counts = rng.integers(1, 4, 30)
    weighted = BinaryDataset.from_arrays(X, y, counts)
    repeated = BinaryDataset.from_arrays(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert cart(weighted, 3, 0.5).value(weighted, 0.5) == cart(repeated, 3, 0.5).value(repeated, 0.5)


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20])
def test_cart_does_not_depend_on_the_scale_of_weights(scale: float) -> None:
    """Scaling all weights by a power of ten changes no split."""
    rng = np.random.default_rng(1)
    X, y = rng.random((40, 4)) < 0.5, rng.integers(0, 2, 40)
    plain = BinaryDataset.from_arrays(X, y)
    scaled = BinaryDataset.from_arrays(X, y, np.full(40, scale))
    assert cart(scaled, 3, scaled.leaf_price(0.02)) == cart(plain, 3, plain.leaf_price(0.02))


# --- polishing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_polish_improves_every_tail_to_its_optimum(seed: int) -> None:
    """Never worse; each polished tail is worth what the oracle says its samples can be worth."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        instance = random_instance(rng, max_features=4, max_samples=30)
        dataset, price = instance.dataset, instance.leaf_price
        tree = random_tree(rng, dataset, int(rng.integers(0, 5)))
        polished = polish(tree, dataset, price, lookup_in(cache_for(dataset), price))
        assert polished.max_depth == tree.max_depth
        expected = 0.0
        visits = tree.route(dataset.X)
        for root in polish_roots(tree):
            inside = visits[:, root - 1]
            expected += value_of_rows(dataset, inside, min(2, tree.topology.height(root)), price)
        assert polished.value(dataset, price) == expected
        assert expected >= tree.value(dataset, price)


def value_of_rows(dataset: BinaryDataset, rows: np.ndarray, depth: int, price: float) -> float:
    """Best value of a subtree on some of the rows; without rows one leaf that scores nothing."""
    if not rows.any():
        return -price
    part = BinaryDataset(
        X=dataset.X[rows],
        y=dataset.y[rows],
        weights=dataset.weights[rows],
        classes=dataset.classes,
        feature_names=dataset.feature_names,
        class_names=dataset.class_names,
        grid_bits=dataset.grid_bits,
    )
    return optimal_value(part, depth, price)


@given(instances(max_samples=14, max_features=3, max_depth=2))
def test_polish_solves_shallow_problems(instance: Instance) -> None:
    """Up to depth two the whole tree is one tail, so polishing any tree gives the optimum."""
    dataset, price = instance.dataset, instance.leaf_price
    start = DecisionTree.leaf(0, instance.max_depth)
    polished = polish(start, dataset, price, lookup_in(cache_for(dataset), price))
    assert polished.value(dataset, price) == optimal_value(dataset, instance.max_depth, price)


def test_polish_roots_split_the_leaves() -> None:
    """Every leaf lies below exactly one root, and every root has the room that the docstring promises."""
    rng = np.random.default_rng(11)
    dataset = BinaryDataset.from_arrays(np.eye(4), [0, 1, 0, 1])
    for _ in range(300):
        tree = random_tree(rng, dataset, int(rng.integers(0, 6)))
        roots, heights = polish_roots(tree), tree.heights()
        for leaf in tree.leaves.tolist():
            above = [leaf, *tree.topology.ancestors(leaf).tolist()]
            assert sum(root in above for root in roots) == 1
        for root in roots:
            assert heights[root - 1] <= 2
            assert root == 1 or tree.topology.height(root) >= 2


def test_polish_keeps_a_tree_that_cannot_be_improved() -> None:
    """While the tails stay where they are, polishing again changes nothing and comes from the cache."""
    rng = np.random.default_rng(2)
    unchanged = 0
    for _ in range(60):
        instance = random_instance(rng)
        dataset, price = instance.dataset, instance.leaf_price
        cache = cache_for(dataset)
        start = random_tree(rng, dataset, 4)
        once = polish(start, dataset, price, lookup_in(cache, price))
        misses = cache.misses
        again = polish(once, dataset, price, lookup_in(cache, price))
        if polish_roots(once) == polish_roots(start):
            unchanged += 1
            assert again is once
            assert cache.misses == misses
        else:
            assert again.value(dataset, price) >= once.value(dataset, price)
    assert unchanged > 5


def test_polish_repairs_labels() -> None:
    """A tree with the right branches and wrong labels is repaired without touching its branches."""
    X = np.array([[0], [0], [1], [1]])
    dataset = BinaryDataset.from_arrays(X, [0, 0, 1, 1])
    wrong = DecisionTree(np.array([0, -1, -1]), np.array([-1, 1, 0]))
    polished = polish(wrong, dataset, 0.5, lookup_in(cache_for(dataset), 0.5))
    assert polished == DecisionTree(np.array([0, -1, -1]), np.array([-1, 0, 1]))
