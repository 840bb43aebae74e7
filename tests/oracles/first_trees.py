"""First trees: of the best trees of depth at most two on a set of samples, the first in the order of `d2s`.

Both engines count pairs with the core that all tables use (`pair_counts`, `kernels.counts`) and differ from them in the
reader only. The reader stands here for matrix products and in `kernels.first_tree` for compiled counts: a solve on a
few samples takes some microseconds there, less than a handful of calls to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree import engine
from accel_oct.subtree.kernels.arguments import DepthTwo
from accel_oct.subtree.layout import layout
from accel_oct.subtree.pair_counts import LeafRule, NumpyCounts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Choice(NamedTuple):
    """What was found: heap-order arrays of depth two and the scores for one to four leaves."""

    value: float
    score: float
    scores: tuple[float, float, float, float]
    feature: Ints
    label: Ints


class FirstTrees(Protocol):
    """Finds first trees on subsets of one data set."""

    def solve(self, samples: Ints, leaf_price: float, max_depth: int) -> Choice:
        """Best tree of depth at most `max_depth` on `samples`, first in the tree order among the best."""
        ...


class NumpyFirstTrees:
    """First trees by matrix products, with every generalisation the interface knows."""

    def __init__(
        self,
        X: NDArray[np.bool_],
        rewards: Floats,
        weights: Floats,
        feature_prices: Floats | None,
        min_leaf_weight: float,
    ) -> None:
        self._X = X.astype(np.float64)
        self._rule = LeafRule(False, (min_leaf_weight,) if min_leaf_weight > 0 else ())
        channels = [rewards.T, weights[None]] if self._rule.least else [rewards.T]
        self._amounts = np.concatenate(channels)
        self._prices = feature_prices

    def solve(self, samples: Ints, leaf_price: float, max_depth: int) -> Choice:
        amounts = self._amounts[:, samples]
        if max_depth == 0 or self._X.shape[1] == 0:
            return self._leaf(amounts.sum(axis=1), leaf_price, ())
        counts = NumpyCounts(self._X[samples], amounts, self._rule, prices=self._prices, pairs=max_depth == 2)
        return self._read(counts, leaf_price)

    def _read(self, counts: NumpyCounts, leaf_price: float) -> Choice:
        """Root and children in this order, a leaf where that is as good, each with the smallest index."""
        one, two = counts.one_leaf, counts.two_leaves
        prices = 0.0 if self._prices is None else self._prices
        best = [one.sum(axis=0), np.maximum(one[0] + two[1], two[0] + one[1]), two.sum(axis=0)]
        splits = [float(np.max(scores - prices)) for scores in best]
        values = np.maximum(one - leaf_price, two - 2 * leaf_price).sum(axis=0) - prices
        root = int(np.argmax(values))
        leaf = self._leaf(counts.totals, leaf_price, splits)
        if leaf.value >= values[root]:
            return leaf
        feature = np.full(7, -1, dtype=np.int64)
        label = np.full(7, -1, dtype=np.int64)
        feature[0] = root
        for side in (0, 1):
            node = 1 + side
            if one[side, root] - leaf_price >= two[side, root] - 2 * leaf_price:
                label[node] = self._rule.label(counts.side(root, side))
                continue
            feature[node], zeros, ones = counts.best_split(root, side)
            label[2 * node + 1], label[2 * node + 2] = self._rule.label(zeros), self._rule.label(ones)
        value = float(values[root])
        paid = leaf_price * int(np.sum(label >= 0))
        if self._prices is not None:
            paid += float(self._prices[feature[feature >= 0]].sum())
        return Choice(value, value + paid, leaf.scores, feature, label)

    def _leaf(self, totals: Floats, leaf_price: float, splits: list[float] | tuple[()]) -> Choice:
        """A single leaf; `splits` are the scores with two to four leaves, if there are any."""
        score = float(self._rule.score(totals))
        feature = np.full(7, -1, dtype=np.int64)
        label = np.full(7, -1, dtype=np.int64)
        label[0] = self._rule.label(totals)
        cs = np.maximum.accumulate([score, *splits]).tolist() if splits else [score] * 4
        return Choice(score - leaf_price, score, (cs[0], cs[1], cs[2], cs[3]), feature, label)


class CompiledFirstTrees:
    """The same for plain accuracy, from compiled kernels and arrays that are made once."""

    def __init__(self, X: NDArray[np.bool_], y: Ints, weights: Floats, n_classes: int) -> None:
        spread = layout(X, y, weights, n_classes)
        self._counters = spread.dtype.name
        self._setup = DepthTwo.of(spread, n_classes == 2)
        self._no_nodes = np.full((2, 7), -1, dtype=np.int64)
        self._code: Callable[..., tuple[float, ...]] | None = None

    def solve(self, samples: Ints, leaf_price: float, max_depth: int) -> Choice:
        if not samples.flags.carray:
            samples = samples.copy()  # the code is made for arrays like those that this gives
        nodes = self._no_nodes.copy()
        feature, label = nodes[0], nodes[1]
        arguments = (samples, self._setup, leaf_price, max_depth, feature, label)
        if self._code is None:
            self._code = engine.kernels().first_tree.ready(*arguments)
            engine.was_used(f"d2s-{self._counters}")
        value, score, cs1, cs2, cs3, cs4 = self._code(*arguments)
        return Choice(value, score, (cs1, cs2, cs3, cs4), feature, label)
