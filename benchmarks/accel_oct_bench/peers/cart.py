"""scikit-learn's CART, pruned on our objective: what a greedy tree reaches."""

from __future__ import annotations

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree
from accel_oct_bench.peers.base import Answer, Look, Peer, Problem, nested_of_arrays, tree_of

__all__ = ["CART", "best_cart"]

CRITERIA = ("gini", "entropy", "log_loss")


def best_cart(dataset: BinaryDataset, max_depth: int, leaf_price: float, seed: int = 0) -> DecisionTree:
    """Return the best tree of three criteria, each pruned to the largest value of score minus `leaf_price` per leaf.

    Pruning is exact: of all trees that result from turning branch nodes into leaves, the most valuable one.
    """
    from sklearn.tree import DecisionTreeClassifier

    table = dataset.X.astype(np.float32)
    found = []
    for criterion in CRITERIA:
        model = DecisionTreeClassifier(criterion=criterion, max_depth=max_depth, random_state=seed)
        model.fit(table, dataset.y, sample_weight=dataset.weights)
        found.append(tree_of(nested_of_arrays(model.tree_, lambda leaf: 0)).pruned(dataset, leaf_price))
    return max(found, key=lambda tree: tree.value(dataset, leaf_price))


def _fit(problem: Problem) -> Look:
    dataset = BinaryDataset.from_arrays(problem.X, problem.y)
    tree = best_cart(dataset, problem.depth_limit, dataset.leaf_price(problem.leaf_penalty), problem.seed)
    return lambda: Answer(tree, note=f"the best of {', '.join(CRITERIA)}")


CART = Peer(
    "cart",
    "scikit-learn",
    ("sklearn.tree",),
    _fit,
    "Greedy: it claims nothing. gini, entropy and log_loss are all tried and pruned to the best value of our "
    "objective; the best counts, and the time of the three together.",
    proves=False,
)
