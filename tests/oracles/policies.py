"""The best policy tree by listing every tree, on tiny data.

Shares no code with the library: a tree is the tuple of the treatments that it assigns to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Assigned = tuple[int, ...]


def thresholds(X: np.ndarray) -> list[np.ndarray]:
    """Every split of numeric columns: whether the value is at least one of the column, except the smallest."""
    return [column >= value for column in X.T for value in np.unique(column)[1:]]


def all_policies(splits: Sequence[np.ndarray], n_rows: int, n_treatments: int, depth: int) -> dict[Assigned, int]:
    """What each tree up to a depth assigns, with the fewest leaves that a tree needs for it."""
    found = {(label,) * n_rows: 1 for label in range(n_treatments)}
    if depth == 0:
        return found
    below = all_policies(splits, n_rows, n_treatments, depth - 1)
    arrays = [(np.array(assigned), leaves) for assigned, leaves in below.items()]
    for split in splits:
        for low, low_leaves in arrays:
            for high, high_leaves in arrays:
                assigned = tuple(np.where(split, high, low).tolist())
                leaves = low_leaves + high_leaves
                if leaves < found.get(assigned, leaves + 1):
                    found[assigned] = leaves
    return found


def mean_reward(rewards: np.ndarray, assigned: Sequence[int], weights: np.ndarray | None = None) -> float:
    """Weighted mean of the rewards of the assigned treatments."""
    own = np.array([row[label] for row, label in zip(rewards, assigned, strict=True)])
    return float(np.average(own, weights=weights))


def best_policy(
    policies: dict[Assigned, int],
    rewards: np.ndarray,
    leaf_penalty: float = 0.0,
    weights: np.ndarray | None = None,
    allows: Callable[[np.ndarray], bool] = lambda assigned: True,
) -> float:
    """Largest mean reward minus leaf penalties over the policies that are allowed; minus infinity if none is."""
    return max(
        (
            mean_reward(rewards, assigned, weights) - leaf_penalty * leaves
            for assigned, leaves in policies.items()
            if allows(np.array(assigned))
        ),
        default=-np.inf,
    )
