"""NumPy reference of the depth-two subroutine, with every generalisation the interface knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """What an engine found: heap-order arrays of depth two and the scores for one to four leaves."""

    value: float
    score: float
    scores: tuple[float, float, float, float]
    feature: Ints
    label: Ints


@dataclass(frozen=True)
class _Side:
    """One child of the root, for every root feature at once."""

    leaf: Floats  # (F,) score as a leaf
    split: Floats  # (F, F) score net of the feature price when split on the second index
    best_split: Floats  # (F,) maximum of `split` over the second index
    leaf_label: Ints  # (F,)
    labels: tuple[Ints, Ints]  # (F, F) each: majority classes left and right of the second split


class ReferenceEngine:
    """Depth-two trees by matrix products: one product per class, then maxima over whole matrices."""

    def __init__(
        self,
        X: NDArray[np.bool_],
        rewards: Floats,
        weights: Floats,
        feature_prices: Floats,
        min_leaf_weight: float,
    ) -> None:
        self._X = X.astype(np.float64)
        self._rewards = rewards
        self._weights = weights
        self._prices = feature_prices
        self._min_leaf_weight = min_leaf_weight

    def solve(self, samples: Ints, leaf_price: float, max_depth: int) -> Choice:
        """Best tree of depth at most `max_depth` on `samples`, first in the tree order among the best."""
        rewards = self._rewards[samples]
        weights = self._weights[samples]
        totals = rewards.sum(axis=0)
        stump = self._leaf_score(totals[:, None], np.asarray([weights.sum()]))[0]
        label = int(np.argmax(totals))
        n_features = self._X.shape[1]
        if max_depth == 0 or n_features == 0:
            return _leaf_choice(float(stump), label, leaf_price)
        X = self._X[samples]
        left, right = self._sides(X, rewards, weights, max_depth)

        scores = [
            float(stump),
            float(np.max(left.leaf + right.leaf - self._prices)),
            float(np.max(np.maximum(left.leaf + right.best_split, left.best_split + right.leaf) - self._prices)),
            float(np.max(left.best_split + right.best_split - self._prices)),
        ]
        monotone = np.maximum.accumulate(scores)
        cs = (float(monotone[0]), float(monotone[1]), float(monotone[2]), float(monotone[3]))

        left_value = np.maximum(left.leaf - leaf_price, left.best_split - 2 * leaf_price)
        right_value = np.maximum(right.leaf - leaf_price, right.best_split - 2 * leaf_price)
        values = left_value + right_value - self._prices
        root = int(np.argmax(values))
        if stump - leaf_price >= values[root]:
            return _leaf_choice(float(stump), label, leaf_price, cs)
        feature = np.full(7, -1, dtype=np.int64)
        labels = np.full(7, -1, dtype=np.int64)
        feature[0] = root
        self._grow(left, root, 1, leaf_price, feature, labels)
        self._grow(right, root, 2, leaf_price, feature, labels)
        value = float(values[root])
        paid = leaf_price * int(np.sum(labels >= 0)) + float(self._prices[feature[feature >= 0]].sum())
        return Choice(value, value + paid, cs, feature, labels)

    def _sides(self, X: Floats, rewards: Floats, weights: Floats, max_depth: int) -> tuple[_Side, _Side]:
        """Scores of both children of every root feature, with every split below them."""
        n_features = X.shape[1]
        n_classes = rewards.shape[1]
        ones = X.T @ rewards  # (F, K)
        totals = rewards.sum(axis=0)
        weight_ones = X.T @ weights
        both = np.empty((n_classes, n_features, n_features))
        for k in range(n_classes):
            both[k] = X.T @ (X * rewards[:, k : k + 1])
        weight_both = X.T @ (X * weights[:, None])
        right = self._side(ones.T, weight_ones, both, weight_both, max_depth)
        left = self._side(
            totals[:, None] - ones.T,
            weights.sum() - weight_ones,
            ones.T[:, None, :] - both,
            weight_ones[None, :] - weight_both,
            max_depth,
        )
        return left, right

    def _side(self, counts: Floats, weight: Floats, inner: Floats, inner_weight: Floats, depth: int) -> _Side:
        """One side: `counts` (K, F) at the child, `inner` (K, F, F) to its right under the second feature."""
        outer = counts[:, :, None] - inner
        lower_left = self._leaf_score(outer, weight[:, None] - inner_weight)
        lower_right = self._leaf_score(inner, inner_weight)
        split = lower_left + lower_right - self._prices[None, :]
        if depth < 2:
            split = np.full_like(split, -np.inf)
        return _Side(
            leaf=self._leaf_score(counts, weight),
            split=split,
            best_split=split.max(axis=1),
            leaf_label=np.argmax(counts, axis=0),
            labels=(np.argmax(outer, axis=0), np.argmax(inner, axis=0)),
        )

    def _leaf_score(self, counts: Floats, weight: Floats) -> Floats:
        """Best class reward along the first axis, minus infinity where the leaf would be too light."""
        best: Floats = counts.max(axis=0)
        if self._min_leaf_weight > 0:
            best = np.where(weight >= self._min_leaf_weight, best, -np.inf)
        return best

    @staticmethod
    def _grow(side: _Side, root: int, node: int, leaf_price: float, feature: NDArray[Any], label: NDArray[Any]) -> None:
        """Write one child (array position `node`) of the chosen root: a leaf where that is as good."""
        if side.leaf[root] - leaf_price >= side.best_split[root] - 2 * leaf_price:
            label[node] = side.leaf_label[root]
            return
        split = int(np.argmax(side.split[root]))
        feature[node] = split
        label[2 * node + 1] = side.labels[0][root, split]
        label[2 * node + 2] = side.labels[1][root, split]


def _leaf_choice(
    score: float, label: int, leaf_price: float, scores: tuple[float, float, float, float] | None = None
) -> Choice:
    feature = np.full(7, -1, dtype=np.int64)
    labels = np.full(7, -1, dtype=np.int64)
    labels[0] = label
    return Choice(score - leaf_price, score, scores or (score, score, score, score), feature, labels)
