"""The depth-two subroutine against every tree of depth at most two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracles.instances import random_instance

from accel_oct.subtree import DepthTwoSolver
from accel_oct.subtree.engine import numba_available, resolve_engine

ENGINES = ["numpy", pytest.param("numba", marks=pytest.mark.skipif(not numba_available(), reason="no numba"))]


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


def evaluate(tree, X, rewards, weights, prices, min_leaf_weight):
    """Net score and number of leaves; minus infinity when a leaf is too light."""
    if not isinstance(tree, tuple):
        light = weights.sum() < min_leaf_weight
        return (-np.inf if light else rewards[:, tree].sum()), 1
    right = X[:, tree[0]]
    a, m = evaluate(tree[1], X[~right], rewards[~right], weights[~right], prices, min_leaf_weight)
    b, n = evaluate(tree[2], X[right], rewards[right], weights[right], prices, min_leaf_weight)
    return a + b - prices[tree[0]], m + n


def brute_force(X, rewards, weights, prices, min_leaf_weight, leaf_price, depth):
    """Best value, the first best tree in the tree order, and the best score by number of leaves."""
    scores = np.full(4, -np.inf)
    best, first = -np.inf, None
    for tree in all_trees(X.shape[1], rewards.shape[1], depth):
        score, n_leaves = evaluate(tree, X, rewards, weights, prices, min_leaf_weight)
        scores[n_leaves - 1] = max(scores[n_leaves - 1], score)
        value = score - n_leaves * leaf_price
        if value > best or (value == best and first is not None and order_key(tree) < order_key(first)):
            best, first = value, tree
    return best, first, np.maximum.accumulate(scores)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(60))
def test_equals_the_first_best_of_all_trees(engine, seed):
    """Value, all four scores and the tree itself agree with enumeration in the tree order."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, max_samples=24, max_features=3, max_classes=3)
    data = instance.dataset
    solver = DepthTwoSolver(data.X, data.y, data.weights, data.n_classes, engine)
    rewards = data.weights[:, None] * (data.y[:, None] == np.arange(data.n_classes))
    mask = rng.random(data.n_samples) < rng.choice([0.3, 0.7, 1.0])
    for depth in (0, 1, 2):
        found = solver.solve(mask, instance.leaf_price, max_depth=depth)
        value, tree, scores = brute_force(
            data.X[mask], rewards[mask], data.weights[mask], np.zeros(data.n_features), 0.0, instance.leaf_price, depth
        )
        assert found.value == value
        assert nested(found) == tree
        assert found.scores == tuple(scores)
        assert found.score == data.weights[found.correct].sum()
        assert found.value == found.score - found.n_leaves * instance.leaf_price
        assert set(found.correct) | set(found.wrong) == set(np.flatnonzero(mask))


@pytest.mark.parametrize("seed", range(60))
def test_prices_rewards_and_minimum_weight(seed):
    """General rewards, feature prices and a minimum leaf weight are honoured together."""
    rng = np.random.default_rng(seed)
    n, n_features, n_classes = int(rng.integers(1, 12)), int(rng.integers(1, 4)), 2
    X = rng.random((n, n_features)) < 0.5
    rewards = rng.integers(-4, 5, (n, n_classes)).astype(float)
    weights = rng.integers(1, 3, n).astype(float)
    prices = rng.choice([0.0, 0.5, 1.0], n_features)
    minimum = float(rng.choice([0.0, 2.0, 4.0, 100.0]))
    price = float(rng.choice([0.0, 0.5, 1.0]))
    solver = DepthTwoSolver(
        X, np.zeros(n, int), weights, n_classes, rewards=rewards, feature_prices=prices, min_leaf_weight=minimum
    )
    found = solver.solve(np.arange(n), price)
    value, tree, scores = brute_force(X, rewards, weights, prices, minimum, price, 2)
    assert found.value == value
    assert found.scores == tuple(scores)
    if tree is not None:
        assert nested(found) == tree


@pytest.mark.skipif(not numba_available(), reason="no numba")
@pytest.mark.parametrize("n_classes", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["unit", "small", "large", "real"])
def test_engines_agree(n_classes, kind):
    """Both engines return the same subtree and the same numbers on larger data with copied columns."""
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
    one = DepthTwoSolver(X, y, weights, n_classes, "numpy")
    two = DepthTwoSolver(X, y, weights, n_classes, "numba")
    for share in (0.0, 0.02, 0.3, 1.0):
        samples = np.flatnonzero(rng.random(n) < share)
        for price in (0.0, 1.0, round(0.01 * weights.sum())):
            a, b = one.solve(samples, price), two.solve(samples, price)
            assert (a.value, a.score, a.scores) == (b.value, b.score, b.scores)
            np.testing.assert_array_equal(a.feature, b.feature)
            np.testing.assert_array_equal(a.label, b.label)
            np.testing.assert_array_equal(a.correct, b.correct)


@pytest.mark.parametrize("engine", ENGINES)
def test_empty_set_is_a_leaf_of_class_zero(engine):
    """No samples: the cheapest tree, the first label."""
    solver = DepthTwoSolver(np.ones((3, 2), bool), [0, 1, 1], np.ones(3), 2, engine)
    found = solver.solve(np.zeros(0, int), 0.5)
    assert nested(found) == 0
    assert (found.value, found.score, found.scores) == (-0.5, 0.0, (0.0, 0.0, 0.0, 0.0))
    assert found.correct.size == 0


def test_bad_arguments_name_themselves():
    """A wrong depth, engine or shape is reported with the name of the argument."""
    X, y, w = np.ones((3, 2), bool), [0, 1, 1], np.ones(3)
    with pytest.raises(ValueError, match="max_depth"):
        DepthTwoSolver(X, y, w, 2).solve([0], 0.0, max_depth=3)
    with pytest.raises(ValueError, match="engine"):
        DepthTwoSolver(X, y, w, 2, "cuda")
    with pytest.raises(ValueError, match="rewards"):
        DepthTwoSolver(X, y, w, 2, rewards=np.ones((3, 3)))
    with pytest.raises(ValueError, match="feature_prices"):
        DepthTwoSolver(X, y, w, 2, feature_prices=[1.0])


def test_without_numba_the_reference_is_used(monkeypatch):
    """Auto falls back; asking for numba by name says what to install."""
    monkeypatch.setattr("accel_oct.subtree.engine.numba_available", lambda: False)
    assert resolve_engine("auto", 10**6, 100) == "numpy"
    with pytest.raises(ImportError, match="numba"):
        resolve_engine("numba", 10, 10)
