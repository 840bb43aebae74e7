"""The warm start: a CART tree, pruned for accuracy at the given leaf price."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree, Topology

__all__ = ["cart", "cart_seconds"]

_MOST_CELLS = 4 * 10**7
"""Rows times columns times levels that scikit-learn is given: about a second, in which it cannot be interrupted."""

_SECONDS_PER_CELL = 5e-8
"""Twice of what was measured, for slower machines."""


def cart(
    dataset: BinaryDataset,
    max_depth: int,
    leaf_price: float,
    seed: int = 0,
    criterion: Literal["gini", "entropy"] = "gini",
) -> DecisionTree:
    """Grow a tree greedily on Gini impurity, or entropy, and prune it to its best value.

    The paper's warm start (section 6.2): splits minimise the weighted Gini impurity, then cost-complexity
    pruning on accuracy keeps the subtree with the largest value. The pruning is exact
    (`DecisionTree.pruned`), so the result is at least as good as a single leaf. On large data the tree is grown on
    some of the rows, drawn at random, and pruned on all of them.

    Parameters
    ----------
    dataset : BinaryDataset
    max_depth : int
        Depth limit; the arrays of the result have room for exactly this depth.
    leaf_price : float
        Price per leaf in units of weight, from ``dataset.leaf_price``.
    seed : int
        Decides between features of equal impurity, and which rows are drawn.
    criterion : {"gini", "entropy"}
        The impurity; scikit-learn's "log_loss" is another name for the latter.

    Returns
    -------
    DecisionTree
    """
    grown = DecisionTree.leaf(0, max_depth)
    if max_depth > 0:
        # Imported here: it takes longer than everything else that `import accel_oct` does.
        from sklearn.tree import DecisionTreeClassifier

        # scikit-learn's impurity thresholds are absolute, so the mean weight is brought to one.
        weights = dataset.weights / dataset.total_weight * dataset.n_samples
        classifier = DecisionTreeClassifier(criterion=criterion, max_depth=max_depth, random_state=seed)
        rows = _drawn_rows(dataset, max_depth, seed)
        classifier.fit(dataset.X[rows].astype(np.float32), dataset.y[rows], sample_weight=weights[rows])
        grown = _converted(classifier.tree_, max_depth)
    return grown.pruned(dataset, leaf_price)


def cart_seconds(dataset: BinaryDataset, max_depth: int) -> float:
    """What `cart` takes, roughly and rather too much; it cannot be interrupted."""
    cells = dataset.n_samples * dataset.n_features * max_depth
    return _SECONDS_PER_CELL * min(cells, max(_MOST_CELLS, dataset.n_features * max_depth))


def _drawn_rows(dataset: BinaryDataset, max_depth: int, seed: int) -> Any:
    """All rows where scikit-learn is fast enough with them, else as many as it is."""
    most = max(1, _MOST_CELLS // (dataset.n_features * max_depth))
    if dataset.n_samples <= most:
        return slice(None)
    usable = np.flatnonzero(dataset.weights)
    return np.sort(np.random.default_rng(seed).choice(usable, min(most, usable.size), replace=False))


def _converted(fitted: Any, max_depth: int) -> DecisionTree:
    """Heap-order arrays of scikit-learn's tree; every leaf gets class 0 until it is relabelled."""
    children: tuple[NDArray[np.int64], NDArray[np.int64]] = (fitted.children_left, fitted.children_right)
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
