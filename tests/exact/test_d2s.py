"""The depth-two subroutine against every tree of depth at most two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracles.first_trees import first_tree
from oracles.instances import random_instance

from accel_oct.exact import DepthTwoSolver


def nested(subtree, node=0):
    """The heap arrays as nested tuples."""
    if subtree.feature[node] < 0:
        return int(subtree.label[node])
    return (int(subtree.feature[node]), nested(subtree, 2 * node + 1), nested(subtree, 2 * node + 2))


def order_key(tree):
    """Pre-order word: a leaf before a branch, then by class or feature."""
    if isinstance(tree, tuple):
        return [(1, tree[0]), *order_key(tree[1]), *order_key(tree[2])]
    return [(0, tree)]


def all_trees(n_features, n_classes, depth):
    yield from range(n_classes)
    if depth:
        below = list(all_trees(n_features, n_classes, depth - 1))
        for feature in range(n_features):
            for zero, one in itertools.product(below, below):
                yield (feature, zero, one)


def evaluate(tree, X, rewards):
    """Score and number of leaves."""
    if not isinstance(tree, tuple):
        return rewards[:, tree].sum(), 1
    right = X[:, tree[0]]
    a, m = evaluate(tree[1], X[~right], rewards[~right])
    b, n = evaluate(tree[2], X[right], rewards[right])
    return a + b, m + n


def brute_force(X, rewards, leaf_price, depth):
    """Best value, the first best tree in the tree order, and the best score by number of leaves."""
    scores = np.full(4, -np.inf)
    best, first = -np.inf, None
    for tree in all_trees(X.shape[1], rewards.shape[1], depth):
        score, n_leaves = evaluate(tree, X, rewards)
        scores[n_leaves - 1] = max(scores[n_leaves - 1], score)
        value = score - n_leaves * leaf_price
        if value > best or (value == best and first is not None and order_key(tree) < order_key(first)):
            best, first = value, tree
    return best, first, np.maximum.accumulate(scores)


@pytest.mark.daily(20)
@pytest.mark.parametrize("seed", range(60))
def test_equals_the_first_best_of_all_trees(seed):
    """Value, all four scores and the tree itself agree with enumeration in the tree order."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, max_samples=24, max_features=3, max_classes=3)
    data = instance.dataset
    solver = DepthTwoSolver(data.X, data.y, data.weights, data.n_classes)
    rewards = data.weights[:, None] * (data.y[:, None] == np.arange(data.n_classes))
    mask = rng.random(data.n_samples) < rng.choice([0.3, 0.7, 1.0])
    for depth in (0, 1, 2):
        found = solver.solve(mask, instance.leaf_price, max_depth=depth)
        value, tree, scores = brute_force(data.X[mask], rewards[mask], instance.leaf_price, depth)
        assert found.value == value
        assert nested(found) == tree
        assert found.scores == tuple(scores)
        assert found.score == data.weights[found.correct].sum()
        assert found.value == found.score - found.n_leaves * instance.leaf_price
        assert set(found.correct) | set(found.wrong) == set(np.flatnonzero(mask))
        oracle = first_tree(data.X[mask], data.y[mask], data.weights[mask], data.n_classes, instance.leaf_price, depth)
        assert (oracle.value, oracle.tree) == (value, tree)
        assert oracle.scores == scores[: 2**depth].tolist()


@pytest.mark.parametrize("n_classes", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["unit", "small", "large", "real"])
def test_equals_matrix_products(n_classes, kind):
    """The same subtree and the same numbers on larger data with copied columns, for every kind of counter."""
    rng = np.random.default_rng(n_classes)
    n, n_features = 700, 45
    X = rng.random((n, n_features)) < rng.random(n_features)
    X[:, 7], X[:, 20], X[:, 30] = X[:, 3], ~X[:, 3], True
    y = rng.integers(0, n_classes, n)
    y[X[:, 5] & X[:, 9]] = 0
    weights = {
        "unit": np.ones(n),
        "small": rng.integers(0, 9, n).astype(float),
        "large": rng.integers(0, 2**19, n).astype(float),
        "real": rng.integers(0, 2**20, n) / 2.0**18,
    }[kind]
    solver = DepthTwoSolver(X, y, weights, n_classes)
    for share in (0.0, 0.02, 0.3, 1.0):
        samples = np.flatnonzero(rng.random(n) < share)
        for price in (0.0, 1.0, round(0.01 * weights.sum())):
            for depth in (1, 2):
                found = solver.solve(samples, price, max_depth=depth)
                expected = first_tree(X[samples], y[samples], weights[samples], n_classes, price, depth)
                assert (found.value, list(found.scores[: 2**depth])) == (expected.value, expected.scores)
                assert nested(found) == expected.tree
                assert found.score == weights[found.correct].sum() == found.value + found.n_leaves * price


def test_empty_set_is_a_leaf_of_class_zero():
    """No samples: the cheapest tree, the first label."""
    solver = DepthTwoSolver(np.ones((3, 2), bool), [0, 1, 1], np.ones(3), 2)
    found = solver.solve(np.zeros(0, int), 0.5)
    assert nested(found) == 0
    assert (found.value, found.score, found.scores) == (-0.5, 0.0, (0.0, 0.0, 0.0, 0.0))
    assert found.correct.size == 0


def test_bad_arguments_name_themselves():
    """A wrong depth is reported with the name of the argument."""
    with pytest.raises(ValueError, match="max_depth"):
        DepthTwoSolver(np.ones((3, 2), bool), [0, 1, 1], np.ones(3), 2).solve([0], 0.0, max_depth=3)
