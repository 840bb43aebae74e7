"""Trees with room for a million leaves: work and memory follow the nodes that are there, and time limits are kept."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier
from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree
from accel_oct.tree.fitted_tree import FittedTree


def random_data(n_samples: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (n_samples, n_features)), rng.integers(0, 2, n_samples)


def small_tree(rng: np.random.Generator, n_features: int, depth: int) -> DecisionTree:
    if depth == 0 or rng.random() < 0.2:
        return DecisionTree.leaf(int(rng.integers(0, 3)))
    sides = (small_tree(rng, n_features, depth - 1) for _ in range(2))
    return DecisionTree.branch(int(rng.integers(0, n_features)), *sides)


@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(0, 3))
@settings(deadline=None, max_examples=60)
def test_sums_over_nodes_are_those_of_the_rows_that_visit_them(seed: int, depth: int, room: int) -> None:
    """Class weights and counts at every node, pruning and new labels, against the rows that `route` sends there."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (30, 4)), rng.integers(0, 3, 30)
    y[:3] = [0, 1, 2]
    dataset = BinaryDataset.from_arrays(X, y, rng.integers(1, 5, 30))
    tree = small_tree(rng, 4, depth)
    tree = tree.with_max_depth(tree.max_depth + room)
    visits = tree.route(X).astype(float)
    totals = np.array([[visits[y == k, n - 1] @ dataset.weights[y == k] for k in range(3)] for n in tree.nodes])
    np.testing.assert_array_equal(tree.class_weights(dataset), totals)
    np.testing.assert_array_equal(tree.sample_counts(dataset), visits.sum(axis=0)[tree.nodes - 1])
    np.testing.assert_array_equal(tree.visits(dataset.X, tree.nodes), visits[:, tree.nodes - 1])

    heaviest = dict(zip(tree.nodes.tolist(), totals, strict=True))

    def best(node: int, price: float) -> float:
        leaf = heaviest[node].max() - price
        return leaf if tree.feature[node - 1] < 0 else max(leaf, best(2 * node, price) + best(2 * node + 1, price))

    labels = tree.relabelled(dataset)
    for copy in (DecisionTree(labels.feature, labels.label), labels):  # the arrays describe a tree
        assert [copy.label[n - 1] for n in tree.leaves] == [heaviest[n].argmax() for n in tree.leaves.tolist()]
    pruned = tree.pruned(dataset, 2.0)
    assert DecisionTree(pruned.feature, pruned.label).value(dataset, 2.0) == best(1, 2.0)


def test_memory_follows_the_nodes_that_are_there() -> None:
    """Three leaves in arrays for depth 18 and 500 rows: no matrix of rows and available nodes (262 MB)."""
    X, y = random_data(500, 3)
    dataset = BinaryDataset.from_arrays(X, y)
    tree = DecisionTree.branch(
        0, DecisionTree.leaf(0), DecisionTree.branch(1, DecisionTree.leaf(0), DecisionTree.leaf(1))
    )
    tree = tree.with_max_depth(18)
    tracemalloc.start()
    fitted = FittedTree.from_training(tree, dataset)
    fitted.decision_path(X)
    tree.relabelled(dataset).pruned(dataset, 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fitted.n_node_samples[0] == 500 and peak < 64 * 2**20


@pytest.mark.parametrize("depth", [18, 20])
def test_a_deep_classifier_keeps_its_time_limit(depth: int) -> None:
    """In processor time, with room for the arrays of two million nodes; it took more than ten times the limit."""
    X, y = random_data(1500, 12)
    OptimalTreeClassifier(4, 0.001, encoder=None, time_limit=60).fit(X[:60], y[:60])  # compiles
    began = time.process_time()
    with pytest.warns(UserWarning, match="time_limit"):
        model = OptimalTreeClassifier(depth, 0.0005, encoder=None, time_limit=0.5).fit(X, y)
    assert time.process_time() - began < 2.5
    assert model.bound_ >= model.objective_ and model.max_depth == depth
