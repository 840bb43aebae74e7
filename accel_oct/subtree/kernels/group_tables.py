# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled tables of the best split per group of columns.

Columns lie in layers: layer j holds the column number j of every group that has one, group a in lane a. So the best
split of every group at once is a maximum over layers, lane by lane, and the columns of a group are found by stepping
from layer to layer. Numbers are in table units, see `passes`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from accel_oct.compiled.jit import entry_point, kernel
from accel_oct.compiled.lanes import fill, least, load, most, spread, store


def _zipped(first):
    """Lane by lane from one vector and the other, from lane `first` of both on."""

    def typed(typingctx, left, right):
        def generate(context, builder, signature, arguments):
            lanes = range(first * left.count // 2, (first + 1) * left.count // 2)
            mask = [place for lane in lanes for place in (lane, lane + left.count)]
            constant = ir.Constant(ir.VectorType(ir.IntType(32), left.count), mask)
            return builder.shuffle_vector(arguments[0], arguments[1], constant)

        return left(left, right), generate

    return typed


_low, _high = intrinsic(_zipped(0)), intrinsic(_zipped(1))


@entry_point
def count_triples(samples, counts, work):
    """Counts of all columns together with nothing else, with one other column, and with two."""
    ones, everyone = samples.ones, np.arange(samples.amounts.size)
    n_columns, size = ones.shape[0], samples.n_channels * samples.numbers.shape[1]
    _count(everyone, everyone.size, samples, counts.once, np.int64(0))
    pair = 0
    for g in range(n_columns):
        found = _with(everyone, everyone.size, ones, g, work.chosen)
        _count(work.chosen, found, samples, counts.twice, g * size)
        for c in range(g + 1, n_columns):
            found2 = _with(work.chosen, found, ones, c, work.chosen2)
            _count(work.chosen2, found2, samples, counts.triples, pair * size)
            pair += 1


@entry_point
def tables_of_all(samples, counts, work, signed, tables):
    """Tables of all samples: see `tables_of_root`."""
    size = samples.n_channels * samples.numbers.shape[1]
    half = np.int64(0)
    for k in range(samples.n_channels):
        work.sums[4 * samples.n_channels + k] = counts.totals[k]
    _copy(counts.once, half, work.once, half, size)
    _leaf_scores(samples, work, half, signed, tables)
    pair = 0
    for g in range(samples.place.size):
        for c in range(g + 1, samples.place.size):
            _pair(samples, work, half, counts.triples, pair * size, counts.twice, g, c, signed, tables, np.int64(pair))
            pair += 1


@entry_point
def tables_of_root(root, samples, counts, work, signed, tables):
    """Depth one on the four sides of every pair of columns, on both sides of a root, for every group.

    Writes, by side of the root, `leaves` (pairs, 4) and flat `stumps` (pairs, lanes of groups, 4): scores of one leaf,
    and of the best two leaves by group; sides of a pair are numbered 2 * (side of the first column) + (side of the
    second). `singles` (columns, 2) and `whole` (1,): scores of the sides of every column, and of all, as one leaf.
    Pairs with the root itself are left out.
    """
    ones, everyone = samples.ones, np.arange(samples.amounts.size)
    n_columns, channels, width = ones.shape[0], samples.n_channels, samples.numbers.shape[1]
    size = channels * width
    for k in range(channels):
        work.sums[9 * channels + k] = counts.once[k * width + samples.place[root]]
        work.sums[4 * channels + k] = counts.totals[k] - work.sums[9 * channels + k]
    _copy(counts.twice, root * size, work.once, size, size)
    _subtract(counts.once, np.int64(0), counts.twice, root * size, work.once, np.int64(0), size)
    for side in range(2):
        _leaf_scores(samples, work, side, signed, tables)
    # With the root and one more column: side 1 is a triple that was counted, side 0 what is left of a pair.
    for g in range(n_columns):
        if g != root:
            start = pair_number(min(g, root), max(g, root), n_columns) * size
            _copy(counts.triples, start, work.with_root, g * size, size)
            _subtract(counts.twice, g * size, counts.triples, start, work.without_root, g * size, size)
    own = _with(everyone, everyone.size, ones, root, work.chosen)
    pair = -1
    for g in range(n_columns):
        found = 0 if g == root else _with(work.chosen, own, ones, g, work.chosen2)
        for c in range(g + 1, n_columns):
            pair += 1
            if g == root or c == root:
                continue
            found3 = _with(work.chosen2, found, ones, c, work.chosen3)
            _count(work.chosen3, found3, samples, work.both, np.int64(0))
            _subtract(counts.triples, pair * size, work.both, np.int64(0), work.rest, np.int64(0), size)
            at = np.int64(0)
            _pair(samples, work, at, work.rest, at, work.without_root, g, c, signed, tables, pair)
            _pair(samples, work, at + 1, work.both, at, work.with_root, g, c, signed, tables, pair)


@kernel
def pair_number(g, c, n_columns):
    """Of a pair of columns, the smaller one first."""
    return g * (2 * n_columns - g - 1) // 2 + c - g - 1


@kernel
def _copy(source, start, target, at, size):
    for place in range(0, size, 64 // target.itemsize):
        store(target, at + place, load(source, start + place))


@kernel
def _subtract(whole, start, part, begin, target, at, size):
    for place in range(0, size, 64 // target.itemsize):
        store(target, at + place, load(whole, start + place) - load(part, begin + place))


@kernel
def _with(rows, size, ones, column, chosen):
    """Those of some rows that have a column."""
    found = np.int64(0)
    for position in range(size):
        chosen[found] = rows[position]
        found += np.int64(ones[column, rows[position]])
    return found


@kernel
def _count(rows, size, samples, counts, start):
    """Add up the columns of some rows, by channel: flat ``counts[start:]``, (channels, width)."""
    numbers, channel = samples.numbers, samples.channel
    width = numbers.shape[1]
    lanes = 64 // numbers.itemsize
    channels = samples.n_channels
    if channels == 1:
        for lane in range(0, width, lanes):
            total = fill(numbers, 0)
            for position in range(size):
                total = total + load(numbers, rows[position] * width + lane)
            store(counts, start + lane, total)
        return
    zero = fill(numbers, 0)
    for lane in range(0, channels * width, lanes):
        store(counts, start + lane, zero)
    for position in range(size):
        row = rows[position]
        base = start + np.int64(channel[row]) * width
        for lane in range(0, width, lanes):
            store(counts, base + lane, load(counts, base + lane) + load(numbers, row * width + lane))


@kernel
def _score(sums, start, channels):
    """Of a leaf; a single channel is a difference of two classes."""
    if channels == 1:
        return abs(np.float64(sums[start]))
    best = 0.0
    for k in range(start, start + channels):
        best = max(best, np.float64(sums[k]))
    return best


@kernel
def _leaf_scores(samples, work, half, signed, tables):
    once, sums, place = work.once, work.sums, samples.place
    channels, width = samples.n_channels, samples.numbers.shape[1]
    base = half * 5 * channels
    tables.whole[half, 0] = _score(sums, base + 4 * channels, channels)
    for g in range(place.size):
        for k in range(channels):
            sums[base + channels + k] = once[(half * channels + k) * width + place[g]]
            sums[base + k] = sums[base + 4 * channels + k] - sums[base + channels + k]
        for side in range(2):
            tables.singles[half, g, side] = _score(sums, base + side * channels, channels)


@kernel
def _pair(samples, work, half, both, at_both, with_one, g, c, signed, tables, pair):
    """The four sides of a pair of columns, on one side of the root."""
    once, sums, place = work.once, work.sums, samples.place
    channels, width = samples.n_channels, samples.numbers.shape[1]
    size = channels * width
    base = half * 5 * channels
    for k in range(channels):
        with_g, with_c = once[half * size + k * width + place[g]], once[half * size + k * width + place[c]]
        together = with_one[g * size + k * width + place[c]]
        sums[base + 3 * channels + k] = together
        sums[base + 2 * channels + k] = with_g - together
        sums[base + channels + k] = with_c - together
        sums[base + k] = sums[base + 4 * channels + k] - with_g - (with_c - together)
    for side in range(4):
        tables.leaves[half, pair, side] = _score(sums, base + side * channels, channels)
    at = (half * tables.leaves.shape[1] + pair) * 4 * samples.lanes
    if signed:
        _signed_stumps(samples, work, half, both, at_both, with_one, g * size, c * size, tables.stumps, at)
    else:
        _class_stumps(samples, work, half, both, at_both, with_one, g * size, c * size, tables.stumps, at)


@kernel
def _signed_stumps(samples, work, half, both, at_both, with_one, at_g, at_c, stumps, target):
    """Of all splits of a set with difference d into x and d - x, the largest and the smallest x decide."""
    once, sums, broad, lanes = work.once, work.sums, samples.lanes, 64 // stumps.itemsize
    at_once, base = half * samples.numbers.shape[1], half * 5
    zero = fill(stumps, 0)
    for lane in range(0, broad, lanes):
        m0 = m1 = m2 = m3 = l0 = l1 = l2 = l3 = zero
        for layer in range(samples.layers.size):
            if lane >= samples.layers[layer]:
                break
            place = layer * broad + lane
            x3, in_c = load(both, at_both + place), load(with_one, at_c + place)
            x2, x1 = load(with_one, at_g + place) - x3, in_c - x3
            x0 = load(once, at_once + place) - in_c - x2
            m0, l0, m1, l1 = most(m0, x0), least(l0, x0), most(m1, x1), least(l1, x1)
            m2, l2, m3, l3 = most(m2, x2), least(l2, x2), most(m3, x3), least(l3, x3)
        _store(
            stumps,
            target + 4 * lane,
            lanes,
            _best(spread(sums, base), m0, l0, zero),
            _best(spread(sums, base + 1), m1, l1, zero),
            _best(spread(sums, base + 2), m2, l2, zero),
            _best(spread(sums, base + 3), m3, l3, zero),
        )


@kernel
def _store(stumps, place, lanes, s0, s1, s2, s3):
    """Four vectors of groups, so that the four numbers of a group lie together."""
    even, odd = _low(s0, s2), _low(s1, s3)
    store(stumps, place, _low(even, odd))
    store(stumps, place + lanes, _high(even, odd))
    even, odd = _high(s0, s2), _high(s1, s3)
    store(stumps, place + 2 * lanes, _low(even, odd))
    store(stumps, place + 3 * lanes, _high(even, odd))


@kernel
def _best(difference, largest, smallest, zero):
    high = (largest + largest) - difference
    low = (smallest + smallest) - difference
    leaf = most(difference, zero - difference)
    return most(leaf, most(most(high, zero - high), most(low, zero - low)))


@kernel
def _class_stumps(samples, work, half, both, at_both, with_one, at_g, at_c, stumps, target):
    once, sums, broad, lanes = work.once, work.sums, samples.lanes, 64 // stumps.itemsize
    channels, width = samples.n_channels, samples.numbers.shape[1]
    at_once, base = half * channels * width, half * 5 * channels
    zero = fill(stumps, 0)
    for lane in range(0, broad, lanes):
        b0 = b1 = b2 = b3 = zero
        for layer in range(samples.layers.size):
            if lane >= samples.layers[layer]:
                break
            i0 = i1 = i2 = i3 = o0 = o1 = o2 = o3 = zero
            for k in range(channels):
                place = k * width + layer * broad + lane
                x3, in_c = load(both, at_both + place), load(with_one, at_c + place)
                x2, x1 = load(with_one, at_g + place) - x3, in_c - x3
                x0 = load(once, at_once + place) - in_c - x2
                i0, o0 = most(i0, x0), most(o0, spread(sums, base + k) - x0)
                i1, o1 = most(i1, x1), most(o1, spread(sums, base + channels + k) - x1)
                i2, o2 = most(i2, x2), most(o2, spread(sums, base + 2 * channels + k) - x2)
                i3, o3 = most(i3, x3), most(o3, spread(sums, base + 3 * channels + k) - x3)
            b0, b1, b2, b3 = most(b0, i0 + o0), most(b1, i1 + o1), most(b2, i2 + o2), most(b3, i3 + o3)
        _store(stumps, target + 4 * lane, lanes, b0, b1, b2, b3)
