"""What a stored tree does, from its two lists alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct_bench.verify.limits import Reached

__all__ = ["BadTreeError", "followed"]


class BadTreeError(Exception):
    """The lists do not describe a tree for these data."""


def followed(
    tree: Mapping[str, Any], X: NDArray[np.bool_], y: NDArray[np.int64], classes: list[Any], group: Any = None
) -> Reached:
    """Send all rows down the tree: node n (at position n - 1) has the children 2n where its feature is 0, else 2n + 1.

    Raises
    ------
    BadTreeError
        In a sentence.
    """
    feature, label = (found if isinstance(found := tree.get(key), list) else [] for key in ("feature", "label"))
    if not feature or len(feature) != len(label) or any(type(value) is not int for value in feature + label):
        raise BadTreeError("feature and label are not two lists of whole numbers of one length")
    predicted, leaf = np.full(len(X), -1), np.zeros(len(X), dtype=np.int64)
    leaves: list[int] = []
    paths: list[tuple[int, ...]] = []
    todo: list[tuple[int, NDArray[np.int64], tuple[int, ...]]] = [(1, np.arange(len(X)), ())]
    while todo:
        node, rows, path = todo.pop()
        if node > len(feature):
            raise BadTreeError(f"node {node} is missing")
        here, answer = feature[node - 1], label[node - 1]
        if (here >= 0) == (answer >= 0):
            raise BadTreeError(f"node {node} is not either a branch node or a leaf")
        if answer >= 0:
            if answer >= len(classes):
                raise BadTreeError(f"node {node} predicts class {answer}, there are {len(classes)}")
            predicted[rows], leaf[rows] = answer, node
            leaves.append(node)
            paths.append(path)
            continue
        if here >= X.shape[1]:
            raise BadTreeError(f"node {node} branches on column {here}, there are {X.shape[1]}")
        ones = X[rows, here]
        todo += [(2 * node, rows[~ones], (*path, here)), (2 * node + 1, rows[ones], (*path, here))]
    return Reached(y, predicted, classes, leaf, leaves, paths, group)
