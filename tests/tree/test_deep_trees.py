"""Trees with room for a million leaves: work and memory follow the nodes that are there, and time limits are kept."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier, frontier, solve
from accel_oct.constraints import Linear, MaxLeaves, PositiveBudget, Recall
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


#: What `solve` and `frontier` can be asked for at any depth.
DEEP_CALLS = {
    "plain": {},
    "leaves": {"constraints": [MaxLeaves(10)]},
    "f1": {"objective": "f1"},
    "f1 and leaves": {"objective": "f1", "constraints": [MaxLeaves(10)]},
    "recall": {"constraints": [Recall(1, 0.6)]},
    "paper": {"config": "paper"},
    "baseline": {"config": "baseline"},
}


@pytest.mark.daily(4)
@pytest.mark.parametrize("n_features", [12, 30])
@pytest.mark.parametrize("call", [*DEEP_CALLS, "frontier"])
def test_deep_solves_keep_their_time_limit(call: str, n_features: int) -> None:
    """In processor time at depth 18: leaves, F1 and the frontier took more than 100 times the limit, paper 15 times."""
    X, y = random_data(400, n_features)
    solve(X[:50], y[:50], max_depth=2, leaf_penalty=0.01, config="paper", time_limit=60)  # imports what is needed
    began = time.process_time()
    if call == "frontier":
        found = frontier(X, y, max_depth=18, time_limit=0.5)
        assert len(found) == 2**18 and (found.bounds >= found.scores).all()
        assert (np.diff(found.scores) >= 0).all() and found.scores[0] == pytest.approx(max(y.mean(), 1 - y.mean()))
        leaves = int(np.searchsorted(found.scores, found.scores[-1])) + 1
        tree = found.tree(2**18)
        assert tree.n_leaves == leaves and (tree.predictions(X) == y).mean() == pytest.approx(found.scores[-1])
    else:
        result = solve(X, y, max_depth=18, leaf_penalty=0.0005, time_limit=0.5, **DEEP_CALLS[call])
        assert result.status == "time_limit" and result.bound >= result.objective
        assert result.tree.max_depth == 18 and "depth at most 18" in str(result.scope)
    assert time.process_time() - began < 3.0


@pytest.mark.parametrize("n_points", [2, 3, 5])
def test_no_more_depth_is_searched_than_the_rows_can_use(n_points: int) -> None:
    """Few distinct rows or features: the optimum of a depth that suffices, claimed for the depth that was asked for."""
    rng = np.random.default_rng(n_points)
    X = np.unique(rng.integers(0, 2, (50, 4)), axis=0)[:n_points].repeat(4, axis=0)
    y = np.r_[0, 1, rng.integers(0, 2, len(X) - 2)]
    limit = [Recall(1, 0.5, 0.8)]
    for constraints in ([], limit):
        deep = solve(X, y, max_depth=9, leaf_penalty=0.01, constraints=constraints, time_limit=60)
        enough = solve(X, y, max_depth=min(4, n_points - 1), leaf_penalty=0.01, constraints=constraints)
        assert deep.status == enough.status and deep.scope.max_depth == 9
        assert deep.objective == pytest.approx(enough.objective) and (deep.found is None or deep.tree.max_depth == 9)


def test_one_feature_under_a_budget_close_to_a_count() -> None:
    """Five rows, depth 5: it was an InvalidCutError, then an hour of nodes; one split is all that there is."""
    budget = PositiveBudget(3.9999996, -3, count=True)
    for backend in ("highs", "scip"):
        result = solve(
            [[0], [0], [0], [0], [1]],
            [-3, -3, 5, -3, 5],
            max_depth=5,
            leaf_penalty=0.0,
            solver=backend,
            constraints=[budget],
            time_limit=60,
        )
        assert result.status == "optimal" and result.objective == pytest.approx(0.4)


def test_splits_that_separate_nothing_are_kept_where_a_constraint_asks_for_them() -> None:
    """`Linear` with a lower limit on leaves: four of them on one feature, two of which no sample reaches."""
    X, y = [[0], [0], [1], [1]], [0, 0, 1, 1]
    wanted = Linear(np.zeros((4, 2)), leaves=1.0, lower=4.0)
    result = solve(X, y, max_depth=2, leaf_penalty=0.01, constraints=[wanted], time_limit=60)
    assert result.status == "optimal" and result.tree.n_leaves == 4 and result.objective == pytest.approx(0.96)
    result = solve(X, y, max_depth=2, leaf_penalty=0.01, time_limit=60)
    assert result.tree.n_leaves == 2 and result.objective == pytest.approx(0.98)
