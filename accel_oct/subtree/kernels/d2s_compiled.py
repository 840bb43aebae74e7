# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled engine of the depth-two subroutine for plain (weighted) accuracy.

Two classes need one number per set of samples only: the signed weight d (class 1 minus class 0). A leaf scores
(N + |d|) / 2, leaves partition the samples, so maximising the score is maximising the sum of |d|; and over all
splits of a set with difference d into x and d - x the best |x| + |d - x| = max(|d|, |2x - d|) follows from the
largest and the smallest x alone. More classes need one table of counts per class.

Integer weights are counted with bit operations, sixteen samples to a word and one lane per feature; weights with
several bits are counted plane by plane. Real weights take one matrix product per table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.d2s_reference import Choice
from accel_oct.subtree.kernels.jit import entry_point, kernel, popcount16

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LANES = 32
"""Feature axes are padded to this many entries so that the vector loops have no remainder."""

_BLOCK_WORDS = 256
_BLOCK_ROWS = 512
_MAX_PLANES = 14


class CompiledEngine:
    """Same answers as `ReferenceEngine` for plain rewards, from compiled kernels and preallocated tables."""

    def __init__(self, X: NDArray[np.bool_], y: Ints, weights: Floats, n_classes: int) -> None:
        n_samples, self._n_features = X.shape
        self._signed = n_classes == 2
        channels = 1 if self._signed else n_classes
        self._width = -(-self._n_features // LANES) * LANES
        rows = np.zeros((n_samples, self._width), dtype=np.uint8)
        rows[:, : self._n_features] = X
        self._y = y
        self._weights = weights
        integral = bool(np.all(weights == np.floor(weights))) and float(weights.sum()) < 2**30
        heaviest = int(weights.max()) if integral and n_samples else 0
        self._bits = integral and heaviest < 2**_MAX_PLANES
        self._planes = max(1, heaviest.bit_length())
        self._rows = rows
        self._dense = rows.astype(np.float64) if not self._bits else np.zeros((0, 0))
        self._gathered = np.empty((_BLOCK_ROWS, self._width))
        self._weighted = np.empty((_BLOCK_ROWS, self._width))
        if self._signed:
            self._amounts = np.where(y == 1, weights, -weights)[None]
        else:
            self._amounts = np.where(y == np.arange(n_classes)[:, None], weights, 0.0)
        dtype = np.int32 if self._bits else np.float64
        self._int_weights = weights.astype(np.int64) if self._bits else np.zeros(0, dtype=np.int64)
        self._table: NDArray[Any] = np.zeros((channels, self._n_features, self._width), dtype=dtype)
        self._single: NDArray[Any] = np.zeros((channels, self._width), dtype=dtype)
        self._accumulators: NDArray[Any] = np.zeros((4, self._width), dtype=dtype)
        self._bits_block = np.zeros((_BLOCK_WORDS, self._width), dtype=np.uint16)
        self._mask_block = np.zeros(_BLOCK_WORDS, dtype=np.uint16)
        self._counts_row = np.zeros(self._width, dtype=np.int16)
        self._order = np.zeros(n_samples, dtype=np.int64)

    def solve(self, samples: Ints, leaf_price: float, max_depth: int) -> Choice:
        """Best tree of depth at most `max_depth` on `samples`, first in the tree order among the best."""
        totals = np.zeros(self._table.shape[0], dtype=np.float64)
        feature = np.full(7, -1, dtype=np.int64)
        label = np.full(7, -1, dtype=np.int64)
        scores = np.zeros(6, dtype=np.float64)
        if self._bits:
            weight = float(
                _count(
                    samples, self._rows, self._y, self._int_weights, self._planes, self._signed, self._order,
                    self._bits_block, self._mask_block, self._counts_row, self._table, self._single, totals,
                )
            )  # fmt: skip
        else:
            weight = self._multiply(samples, totals)
        chooser = _choose_signed if self._signed else _choose
        chooser(
            self._table, self._single, totals, weight, leaf_price, max_depth, self._accumulators,
            feature, label, scores,
        )  # fmt: skip
        value, score, *cs = scores.tolist()
        return Choice(value, score, (cs[0], cs[1], cs[2], cs[3]), feature, label)

    def _multiply(self, samples: Ints, totals: Floats) -> float:
        """Fill the tables by matrix products, for weights that bit planes cannot hold."""
        self._table[:] = 0
        # A few hundred rows at a time stay in the cache from gathering to multiplying.
        for start in range(0, samples.size, _BLOCK_ROWS):
            part = samples[start : start + _BLOCK_ROWS]
            X, weighted = self._gathered[: part.size], self._weighted[: part.size]
            np.take(self._dense, part, axis=0, out=X, mode="clip")
            for channel in range(self._table.shape[0]):
                amounts = self._amounts[channel].take(part)
                totals[channel] += amounts.sum()
                np.multiply(X, amounts[:, None], out=weighted)
                self._table[channel] += X[:, : self._n_features].T @ weighted
        for channel in range(self._table.shape[0]):
            self._single[channel, : self._n_features] = self._table[channel].diagonal()
        return float(self._weights.take(samples).sum())


@entry_point
def _count(samples, rows, y, weights, planes, signed, order, bits, mask, counts, table, single, totals):
    """Fill the tables by bit counts; returns the total weight.

    In a signed table a word x of samples contributes popcount(x ^ m) - popcount(m) where m marks the samples of
    class 0: that is class 1 minus class 0 with a single bit count.
    """
    channels, n_features, _ = table.shape
    table[:] = 0
    total_weight = 0
    for channel in range(channels):
        total = 0
        for plane in range(planes):
            size = 0
            for position in range(samples.size):
                i = samples[position]
                if (weights[i] >> plane) & 1 and (signed or y[i] == channel):
                    order[size] = i
                    size += 1
                    total_weight += 1 << plane
                    total += -(1 << plane) if signed and y[i] == 0 else (1 << plane)
            start = 0
            while start < size:
                stop = min(size, start + 16 * bits.shape[0])
                words = _pack(order, start, stop, rows, y, signed, bits, mask)
                _add_counts(bits, mask, words, plane, counts, table[channel])
                start = stop
        totals[channel] = total
        for b in range(n_features):
            single[channel, b] = table[channel, b, b]
    return total_weight


@kernel
def _pack(order, start, stop, rows, y, signed, bits, mask):
    """Pack samples order[start:stop] into words of sixteen, laid out [word][feature]."""
    words = (stop - start + 15) // 16
    width = bits.shape[1]
    for word in range(words):
        target = bits[word]
        target[:] = 0
        marked = 0
        first = start + 16 * word
        for shift in range(min(16, stop - first)):
            i = order[first + shift]
            if signed and y[i] == 0:
                marked |= 1 << shift
            row = rows[i]
            for b in range(width):
                target[b] |= np.uint16(row[b]) << shift
        mask[word] = marked
    return words


@kernel
def _add_counts(bits, mask, words, plane, counts, table):
    """Add the pairwise counts of packed samples, each of weight 2**plane, to one table."""
    n_features, width = table.shape
    offset = 0
    for word in range(words):
        offset += popcount16(mask[word])
    for b in range(n_features):
        for c in range(width):
            counts[c] = -offset
        word = 0
        while word + 4 <= words:
            b0, b1, b2, b3 = bits[word, b], bits[word + 1, b], bits[word + 2, b], bits[word + 3, b]
            m0, m1, m2, m3 = mask[word], mask[word + 1], mask[word + 2], mask[word + 3]
            r0, r1, r2, r3 = bits[word], bits[word + 1], bits[word + 2], bits[word + 3]
            for c in range(width):
                counts[c] += (
                    popcount16((r0[c] & b0) ^ m0)
                    + popcount16((r1[c] & b1) ^ m1)
                    + popcount16((r2[c] & b2) ^ m2)
                    + popcount16((r3[c] & b3) ^ m3)
                )
            word += 4
        while word < words:
            bw, mw, row = bits[word, b], mask[word], bits[word]
            for c in range(width):
                counts[c] += popcount16((row[c] & bw) ^ mw)
            word += 1
        target = table[b]
        for c in range(width):
            target[c] += np.int32(counts[c]) << plane


@entry_point
def _choose_signed(tables, singles, totals, weight, leaf_price, max_depth, acc, feature, label, scores):
    """Pick the tree from one signed table; all sums of |d| stand for twice the score minus the weight."""
    table, single, total = tables[0], singles[0], totals[0]
    n_features, width = table.shape
    price = 2.0 * leaf_price
    most_one, least_one, most_zero, least_zero = acc[0], acc[1], acc[2], acc[3]
    most_one[:] = 0
    least_one[:] = 0
    most_zero[:] = 0
    least_zero[:] = 0
    if max_depth == 2:
        for b in range(n_features):
            d, row = single[b], table[b]
            for c in range(width):
                x = row[c]
                z = acc.dtype.type(d - x)
                most_one[c] = max(most_one[c], x)
                least_one[c] = min(least_one[c], x)
                most_zero[c] = max(most_zero[c], z)
                least_zero[c] = min(least_zero[c], z)
    cs1 = abs(total)
    cs2 = cs3 = cs4 = cs1
    best, root = -np.inf, -1
    best_one = best_zero = 0.0
    for a in range(n_features if max_depth > 0 else 0):
        one = np.float64(single[a])
        zero = total - one
        one2 = max(abs(one), abs(2 * most_one[a] - one), abs(2 * least_one[a] - one))
        zero2 = max(abs(zero), abs(2 * most_zero[a] - zero), abs(2 * least_zero[a] - zero))
        one1, zero1 = abs(one), abs(zero)
        cs2 = max(cs2, one1 + zero1)
        cs3 = max(cs3, one2 + zero1, one1 + zero2)
        cs4 = max(cs4, one2 + zero2)
        value = max(one1 - price, one2 - 2 * price) + max(zero1 - price, zero2 - 2 * price)
        if value > best:
            best, root, best_one, best_zero = value, a, one2, zero2
    scores[2] = (weight + cs1) / 2
    scores[3] = (weight + cs2) / 2
    scores[4] = (weight + max(cs2, cs3)) / 2
    scores[5] = (weight + max(cs2, cs3, cs4)) / 2
    if cs1 - price >= best:
        label[0] = 1 if total > 0 else 0
        scores[0], scores[1] = scores[2] - leaf_price, scores[2]
        return
    feature[0] = root
    one = np.float64(single[root])
    leaves = _place_signed(table, single, root, 1, one, best_one, price, feature, label, 2)
    leaves += _place_signed(table, single, root, 0, total - one, best_zero, price, feature, label, 1)
    scores[0] = (weight + best) / 2
    scores[1] = scores[0] + leaves * leaf_price


@kernel
def _place_signed(table, single, root, side, d, best, price, feature, label, node):
    """Write one child of the root: a leaf where that is as good, else its first best split."""
    if abs(d) - price >= best - 2 * price:
        label[node] = 1 if d > 0 else 0
        return 1
    for b in range(table.shape[0]):
        x = np.float64(table[root, b])
        if side == 0:
            x = single[b] - x
        if abs(x) + abs(d - x) == best:
            feature[node] = b
            label[2 * node + 1] = 1 if d - x > 0 else 0
            label[2 * node + 2] = 1 if x > 0 else 0
            break
    return 2


@entry_point
def _choose(tables, singles, totals, weight, leaf_price, max_depth, acc, feature, label, scores):
    """Pick the tree from one table per class."""
    channels, n_features, _ = tables.shape
    one2s, zero2s = acc[0], acc[1]
    one2s[:] = 0
    zero2s[:] = 0
    if max_depth == 2:
        _best_splits(tables, singles, totals, one2s, zero2s)
    cs1, root_label = totals[0], 0
    for k in range(1, channels):
        if totals[k] > cs1:
            cs1, root_label = totals[k], k
    cs2 = cs3 = cs4 = cs1
    best, root = -np.inf, -1
    for a in range(n_features if max_depth > 0 else 0):
        one1 = zero1 = 0.0
        for k in range(channels):
            one1 = max(one1, np.float64(singles[k, a]))
            zero1 = max(zero1, totals[k] - singles[k, a])
        one2, zero2 = max(one1, np.float64(one2s[a])), max(zero1, np.float64(zero2s[a]))
        cs2 = max(cs2, one1 + zero1)
        cs3 = max(cs3, one2 + zero1, one1 + zero2)
        cs4 = max(cs4, one2 + zero2)
        value = max(one1 - leaf_price, one2 - 2 * leaf_price) + max(zero1 - leaf_price, zero2 - 2 * leaf_price)
        if value > best:
            best, root = value, a
    scores[2], scores[3] = cs1, cs2
    scores[4] = max(cs2, cs3)
    scores[5] = max(cs2, cs3, cs4)
    if cs1 - leaf_price >= best:
        label[0] = root_label
        scores[0], scores[1] = cs1 - leaf_price, cs1
        return
    feature[0] = root
    leaves = _place(tables, singles, totals, root, 1, one2s, leaf_price, feature, label, 2)
    leaves += _place(tables, singles, totals, root, 0, zero2s, leaf_price, feature, label, 1)
    scores[0] = best
    scores[1] = best + leaves * leaf_price


@kernel
def _best_splits(tables, singles, totals, one2s, zero2s):
    """For both values of every root feature (lanes) the best two-leaf score over the second feature."""
    channels, n_features, width = tables.shape
    cells = np.zeros((4, width), dtype=tables.dtype)
    c11, c10, c01, c00 = cells[0], cells[1], cells[2], cells[3]
    for b in range(n_features):
        cells[:] = 0
        for k in range(channels):
            row, at_root, at_b = tables[k, b], singles[k], singles[k, b]
            rest = tables.dtype.type(totals[k]) - at_b
            for c in range(width):
                x = row[c]
                c11[c] = max(c11[c], x)
                c10[c] = max(c10[c], at_root[c] - x)
                c01[c] = max(c01[c], at_b - x)
                c00[c] = max(c00[c], rest - at_root[c] + x)
        for c in range(width):
            one2s[c] = max(one2s[c], c11[c] + c10[c])
            zero2s[c] = max(zero2s[c], c01[c] + c00[c])


@kernel
def _place(tables, singles, totals, root, side, best, leaf_price, feature, label, node):
    """Write one child of the root: a leaf where that is as good, else its first best split."""
    channels, n_features, _ = tables.shape
    here = np.zeros(channels)
    for k in range(channels):
        here[k] = singles[k, root] if side == 1 else totals[k] - singles[k, root]
    top = np.argmax(here)
    if here[top] - leaf_price >= best[root] - 2 * leaf_price:
        label[node] = top
        return 1
    ones = np.zeros(channels)
    for b in range(n_features):
        for k in range(channels):
            ones[k] = tables[k, root, b] if side == 1 else singles[k, b] - tables[k, root, b]
        rest = here - ones
        if ones.max() + rest.max() == best[root]:
            feature[node] = b
            label[2 * node + 1] = np.argmax(rest)
            label[2 * node + 2] = np.argmax(ones)
            break
    return 2
