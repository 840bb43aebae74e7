"""The warm start: a CART tree, pruned for accuracy at a leaf price."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.support.arrays import IntArray
from accel_oct.tree import DecisionTree, Topology

_MOST_CELLS = 4 * 10**7
"""Limit on rows times columns times levels for scikit-learn: about a second, in which it cannot be interrupted."""

_SECONDS_PER_CELL = 5e-8
"""Twice the measured value, for slower machines."""


def cart(
    dataset: BinaryDataset,
    max_depth: int,
    leaf_price: float,
    seed: int = 0,
    criterion: Literal["gini", "entropy"] = "gini",
) -> DecisionTree:
    """Grow a tree greedily on Gini impurity, or entropy, and prune it to its best value.

    The warm start of the paper (section 6.2): splits minimise the weighted Gini impurity, then cost-complexity pruning
    on accuracy keeps the subtree with the largest value. The pruning is exact (`DecisionTree.pruned`), so the result is
    at least as good as a single leaf. On large data the tree is grown on a random sample of the rows and pruned on all.

    Parameters
    ----------
    max_depth : int
        Depth limit, and depth of the arrays of the result.
    leaf_price : float
        Price per leaf in units of weight, from ``dataset.leaf_price``.
    seed : int
        For the choice between features of equal impurity, and for the sample of rows.
    criterion : {"gini", "entropy"}
        The impurity.
    """
    grown = DecisionTree.leaf(0, max_depth)
    if max_depth > 0:
        # Imported here: it takes longer than all other imports of accel_oct.
        from sklearn.tree import DecisionTreeClassifier

        # scikit-learn's impurity thresholds are absolute, so the mean weight is scaled to one.
        weights = dataset.weights / dataset.total_weight * dataset.n_samples
        classifier = DecisionTreeClassifier(criterion=criterion, max_depth=max_depth, random_state=seed)
        rows = _drawn_rows(dataset, max_depth, seed)
        classifier.fit(dataset.X[rows].astype(np.float32), dataset.y[rows], weights[rows], check_input=False)
        grown = _converted(classifier.tree_, max_depth)
    return grown.pruned(dataset, leaf_price)


def cart_seconds(dataset: BinaryDataset, max_depth: int) -> float:
    """Return a high estimate of the time of `cart`, which cannot be interrupted."""
    cells = dataset.n_samples * dataset.n_features * max_depth
    return _SECONDS_PER_CELL * min(cells, max(_MOST_CELLS, dataset.n_features * max_depth))


def _drawn_rows(dataset: BinaryDataset, max_depth: int, seed: int) -> Any:
    """Return all rows, or a random sample if scikit-learn would be too slow."""
    most = max(1, _MOST_CELLS // (dataset.n_features * max_depth))
    if dataset.n_samples <= most:
        return slice(None)
    usable = np.flatnonzero(dataset.weights)
    return np.sort(np.random.default_rng(seed).choice(usable, min(most, usable.size), replace=False))


def _converted(fitted: Any, max_depth: int) -> DecisionTree:
    """Convert scikit-learn's tree to heap order; every leaf has class 0 until it is relabelled."""
    children: tuple[IntArray, IntArray] = (fitted.children_left, fitted.children_right)
    feature = np.full(Topology(max_depth).n_nodes, -1)
    label = feature.copy()
    todo = [(1, 0)]
    while todo:
        node, source = todo.pop()
        if children[0][source] < 0:
            label[node - 1] = 0
        else:
            feature[node - 1] = fitted.feature[source]
            todo += [(2 * node + side, int(children[side][source])) for side in (0, 1)]
    return DecisionTree(feature, label)
