"""Whether two arrays describe a tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError


def check_arrays(feature: NDArray[np.int64], label: NDArray[np.int64]) -> None:
    """Raise an InvalidInputError unless these are the features and labels of a tree in heap order."""
    if feature.ndim != 1 or feature.shape != label.shape:
        raise InvalidInputError("feature and label must be one-dimensional and of the same length")
    if len(feature) == 0 or len(feature) & (len(feature) + 1):
        raise InvalidInputError(f"feature must have 2**(D+1) - 1 entries, got {len(feature)}")
    if min(feature.min(), label.min()) < -1:
        raise InvalidInputError("feature and label must not be below -1")
    branches, leaves = feature >= 0, label >= 0
    if (branches & leaves).any():
        raise InvalidInputError(f"node {np.argmax(branches & leaves) + 1} is a branch node and a leaf")
    if branches[len(feature) // 2 :].any():
        raise InvalidInputError("a terminal node has a branching feature")
    # Only nodes with a branching parent, and all of those, carry a feature or a label.
    expected = np.concatenate(([True], np.repeat(branches[: len(feature) // 2], 2)))
    wrong = (branches | leaves) != expected
    if wrong.any():
        node = int(np.argmax(wrong)) + 1
        problem = "needs a feature or a label" if expected[node - 1] else "is below a leaf, so must be cut"
        raise InvalidInputError(f"node {node} {problem}")
