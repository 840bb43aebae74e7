"""Frontiers and single-price searches against an independent dynamic programme."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from helpers.subtree_support import keep_no_tables
from oracles.dynamic_programme import optimal_score, optimal_scores, optimal_value
from oracles.enumeration import best_score_by_leaves
from oracles.instances import random_instance

from accel_oct.data import BinaryDataset
from accel_oct.exact import SubtreeBounds, best_tree, frontier_table, reduce_data
from accel_oct.tree import DecisionTree


@pytest.fixture(params=["tables", "no tables"])
def way(request, monkeypatch):
    """With tables, and root by root from the top."""
    if request.param == "no tables":
        keep_no_tables(monkeypatch)
    return request.param


def arrays(dataset):
    return dataset.X, dataset.y, dataset.weights, dataset.n_classes


def structured_data(n_samples=400, n_features=40, n_classes=2, seed=0):
    """Data with structure, noise, copied and complementary columns, larger than the oracles can do."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features)) < rng.uniform(0.1, 0.9, n_features)
    X[:, 5], X[:, 6] = X[:, 4], ~X[:, 4]
    y = (X[:, 0] & X[:, 1]) + (n_classes > 2) * (X[:, 2] & ~X[:, 3])
    y = np.where(rng.random(n_samples) < 0.1, rng.integers(0, n_classes, n_samples), y)
    return X, y.astype(np.int64)


@pytest.mark.parametrize("seed", range(12))
def test_every_number_of_leaves_is_optimal(way, seed):
    """Scores for all depths and leaf limits equal the oracle, and the trees have these scores."""
    rng = np.random.default_rng(seed)
    data = random_instance(rng, max_samples=14, max_features=4).dataset
    for depth in range(6 if seed % 6 == 1 else 5):
        table = frontier_table(reduce_data(*arrays(data)), depth)
        assert table.exact
        assert table.scores[1:].tolist() == optimal_scores(data, depth, 2**depth)
        for leaves in range(1, 2**depth + 1):
            tree = table.tree(leaves)
            assert tree.max_depth == depth
            assert tree.n_leaves <= leaves
            assert tree.score(data) == table.scores[leaves]


@pytest.mark.parametrize("seed", range(20))
def test_matches_enumeration(seed):
    """Depth two, all trees one by one."""
    data = random_instance(np.random.default_rng(1000 + seed), max_samples=30, max_features=5).dataset
    exact = best_score_by_leaves(data, 2)
    best = np.maximum.accumulate([exact.get(leaves, 0.0) for leaves in range(1, 5)])
    np.testing.assert_array_equal(frontier_table(reduce_data(*arrays(data)), 2).scores[1:], best)


@pytest.mark.parametrize("seed", range(30))
def test_best_tree_is_optimal(way, seed):
    """One leaf price: value, bound and tree agree with the oracle, also where tables do not fit in memory."""
    instance = random_instance(np.random.default_rng(seed), max_samples=22, max_features=5)
    data, price = instance.dataset, instance.leaf_price
    for depth in range(7 if seed % 5 == 0 else 5):
        optimum = optimal_value(data, depth, price)
        for memory in (2**30, 0):
            history = []
            found = best_tree(
                *arrays(data), depth, price, memory_limit=memory, on_improvement=lambda *row, to=history: to.append(row)
            )
            assert found.exact
            assert found.value == found.bound == optimum
            assert found.tree.value(data, price) == optimum
            assert all(value <= optimum <= bound for _, value, bound in history)
            assert history[-1][1:] == (optimum, optimum)


@pytest.mark.parametrize("seed", range(15))
def test_stopping_anywhere_leaves_valid_bounds(way, seed):
    """Stopped after any number of steps: a real tree, a value below and a bound above the optimum."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, max_samples=14, max_features=4)
    data, price = instance.dataset, instance.leaf_price
    depth = int(rng.integers(2, 6))
    optimum, scores = optimal_value(data, depth, price), optimal_scores(data, depth, 2**depth)
    for steps in (0, 1, 2, 3, 5, 9, 20):
        calls = iter([False] * steps)
        found = best_tree(*arrays(data), depth, price, should_stop=lambda calls=calls: next(calls, True))
        assert found.value <= optimum <= found.bound
        assert found.tree.value(data, price) == found.value
        calls = iter([False] * steps)
        table = frontier_table(reduce_data(*arrays(data)), depth, should_stop=lambda calls=calls: next(calls, True))
        value, bound, leaves = table.best(price)
        assert value <= optimum <= bound
        assert table.tree(leaves).score(data) >= table.scores[leaves]
        for h in (2, 3, 2**depth):
            assert table.scores[h] <= scores[h - 1] <= table.upper_bounds[h]


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_trees_of_a_search_that_was_stopped(seed):
    """Wherever a search by root features stops, every entry has a tree that reaches it.

    One side of a root may have been stopped below what was known of it before any root was opened.
    """
    rng = np.random.default_rng(seed)
    n, n_features, n_classes = (int(rng.integers(*ends)) for ends in ((20, 60), (3, 7), (2, 4)))
    X = rng.random((n, n_features)) < rng.random(n_features)
    y, weights = rng.integers(0, n_classes, n), rng.integers(1, 4, n).astype(float)
    best = frontier_table(reduce_data(X, y, weights, n_classes), 4, memory_limit=0)
    for steps in range(40):
        calls = iter([False] * steps)
        options = {"memory_limit": 0, "should_stop": lambda calls=calls: next(calls, True)}
        table = frontier_table(reduce_data(X, y, weights, n_classes), 4, **options)
        assert np.all(table.scores <= best.scores) and np.all(best.scores <= table.upper_bounds)
        for h in range(1, 17):
            assert weights[table.tree(h).predict(X) == y].sum() == table.scores[h]


def test_past_deadline_still_answers():
    """A deadline in the past gives a tree and a bound at once."""
    X, y = structured_data(300, 60)
    found = best_tree(X, y, np.ones(300), 2, 5, 1.0, deadline=time.monotonic() - 1)
    assert not found.exact
    assert found.value < found.bound <= 300


@pytest.mark.daily(4)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["unit", "small", "heavy", "real"])
def test_kernels_agree_across_number_types(n_classes, kind):
    """16-bit, 32-bit and floating-point tables, threads and memory limits give the same frontier."""
    X, y = structured_data(n_classes=n_classes)
    rng = np.random.default_rng(1)
    weights = {
        "unit": np.ones(len(y)),
        "small": rng.integers(0, 6, len(y)).astype(float),
        "heavy": 300.0 * rng.integers(1, 30, len(y)),
        "real": rng.integers(1, 2**20, len(y)) / 2.0**18,
    }[kind]
    expected = frontier_table(reduce_data(X, y, weights, n_classes), 4)
    assert expected.exact
    by_roots = frontier_table(reduce_data(X, y, weights, n_classes), 4, memory_limit=0)
    threaded = frontier_table(reduce_data(X, y, weights, n_classes), 4, threads=2)
    shrunk = frontier_table(
        reduce_data(X, y, weights / 2.0**20, n_classes), 4
    )  # off the integers: floating-point tables
    np.testing.assert_array_equal(by_roots.scores, expected.scores)
    np.testing.assert_array_equal(threaded.scores, expected.scores)
    np.testing.assert_array_equal(shrunk.scores[1:] * 2.0**20, expected.scores[1:])
    data = BinaryDataset.from_arrays(X, y, weights)
    for leaves in (1, 2, 5, 11, 16):
        assert expected.tree(leaves).score(data) == expected.scores[leaves]
    for price in (0.0, 0.25, 2.0, 16.0, 64.0):
        price *= weights.mean().round()
        found = best_tree(X, y, weights, n_classes, 4, price)
        assert found.value == found.bound == expected.best(price)[0]


def test_deeper_is_never_worse():
    """Frontiers of depth three, four and five are nested; five agrees with the single-price search."""
    X, y = structured_data(200, 14)
    tables = [frontier_table(reduce_data(X, y, np.ones(200), 2), depth) for depth in (3, 4, 5)]
    assert all(table.exact for table in tables)
    for shallow, deep in pairwise(tables):
        assert np.all(deep.scores[1 : shallow.scores.size] >= shallow.scores[1:])
        few = shallow.max_depth + 1  # a tree with h leaves has depth below h
        np.testing.assert_array_equal(deep.scores[1 : few + 1], shallow.scores[1 : few + 1])
    for price in (0.5, 1.0, 3.0):
        assert best_tree(X, y, np.ones(200), 2, 5, price).value == tables[2].best(price)[0]


def test_incumbent_is_kept_when_it_is_best():
    """A given optimal tree comes back with its proof; a bad one is replaced."""
    X, y = structured_data(200, 14)
    weights = np.ones(200)
    optimum = best_tree(X, y, weights, 2, 4, 2.0)
    again = best_tree(X, y, weights, 2, 4, 2.0, incumbent=optimum.tree)
    assert again.exact
    assert again.value == optimum.value
    poor = DecisionTree.leaf(1)
    assert best_tree(X, y, weights, 2, 4, 2.0, incumbent=poor).value == optimum.value


def test_degenerate_data(way):
    """No samples with weight, no features, constant features, one class."""
    for X, y, weights, n_classes in (
        (np.zeros((3, 2), bool), [0, 1, 1], np.ones(3), 2),
        (np.zeros((3, 0), bool), [0, 1, 1], np.ones(3), 2),
        (np.ones((3, 2), bool), [0, 0, 0], np.ones(3), 1),
        (np.array([[0, 1], [1, 0], [1, 1]], bool), [0, 1, 1], np.array([0.0, 2.0, 1.0]), 2),
    ):
        table = frontier_table(reduce_data(X, y, weights, n_classes), 4)
        found = best_tree(X, y, weights, n_classes, 4, 0.5)
        best = max(np.bincount(y, weights, n_classes))
        assert table.exact
        assert table.scores[16] == best
        assert (found.value, found.bound) == (best - 0.5, best - 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_for_roots_and_paths(way, seed):
    """Root and path bounds are never below the optimum, equal it once refined, and cover removed columns."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, max_samples=20, max_features=5)
    data, price = instance.dataset, instance.leaf_price
    depth = int(rng.integers(1, 5))
    bounds = SubtreeBounds(*arrays(data), depth)
    assert bounds.leaf_score == optimal_score(data, 0, 1)

    def value(rows, height):
        if not rows.any() or not data.weights[rows].any():
            return -price
        part = BinaryDataset.from_arrays(data.X[rows], data.y[rows], data.weights[rows])
        return optimal_value(part, height, price)

    exact = np.array([value(~data.X[:, f], depth - 1) + value(data.X[:, f], depth - 1) for f in range(data.n_features)])
    assert np.all(bounds.root_bounds(price) >= exact)
    bounds.refine(0)
    assert bounds.root_bounds(price)[0] >= exact[0]
    for feature in range(bounds.exact.size):
        bounds.refine(feature)
    np.testing.assert_array_equal(bounds.root_bounds(price)[bounds.exact], exact[bounds.exact])
    assert np.all(bounds.root_bounds(price) >= exact)
    for _ in range(6):
        literals = {(int(rng.integers(data.n_features)), int(rng.integers(2))) for _ in range(2)}
        rows = np.all([data.X[:, f] == direction for f, direction in literals], axis=0)
        for height in (0, 1, 2, 3, 4):
            optimum = value(rows, height)
            assert bounds.path_bound(literals, height, price) >= optimum
            assert bounds.path_bound(literals, height, price, exact=True) == optimum
