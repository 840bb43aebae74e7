# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Best priced values of sets of a tally: trees of depth at most two below every pair of columns, or below every column.

Sums come by sets of columns, in the order of `accel_oct.data.column_sets`. Their channels are what every class but the
first earns more than the first, and, last, a mass where leaves must have one. So a leaf is worth the largest channel,
or nothing, and values are those above what the first class would earn everywhere.
"""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import entry_point, kernel


@kernel
def _leaf(sums, n_rewards, has_mass, least, price):
    if has_mass and sums[n_rewards] < least:
        return -np.inf
    best = 0.0
    for m in range(n_rewards):
        best = max(best, sums[m])
    return best - price


@kernel
def _best_two(both, single, totals, n_columns, columns, height, sums, sides):
    """The best value of a set with a tree of depth at most `height`, one or two; that of both sides of columns."""
    M, K, price, least = totals.size, sums.n_rewards, sums.leaf_price, sums.least
    has_mass = M > K
    quarter = np.empty((4, M))
    for c in range(n_columns):
        for m in range(M):
            quarter[0, m] = totals[m] - single[c, m]
        sides[c, 0] = _leaf(quarter[0], K, has_mass, least, price)
        sides[c, 1] = _leaf(single[c], K, has_mass, least, price)
    for c in range(n_columns if height > 1 else 0):
        for d in range(c + 1, n_columns):
            if sums.apart[columns[c], columns[d]]:
                continue
            for m in range(M):
                x, at_c, at_d = both[c, d, m], single[c, m], single[d, m]
                quarter[3, m] = x
                quarter[2, m] = at_c - x
                quarter[1, m] = at_d - x
                quarter[0, m] = totals[m] - at_c - at_d + x
            zero_zero = _leaf(quarter[0], K, has_mass, least, price)
            zero_one = _leaf(quarter[1], K, has_mass, least, price)
            one_zero = _leaf(quarter[2], K, has_mass, least, price)
            one_one = _leaf(quarter[3], K, has_mass, least, price)
            sides[c, 0] = max(sides[c, 0], zero_zero + zero_one)
            sides[c, 1] = max(sides[c, 1], one_zero + one_one)
            sides[d, 0] = max(sides[d, 0], zero_zero + one_zero)
            sides[d, 1] = max(sides[d, 1], zero_one + one_one)
    best = _leaf(totals, K, has_mass, least, price)
    for c in range(n_columns):
        best = max(best, sides[c, 0] + sides[c, 1])
    return best


@kernel
def _place2(choose, c, d):
    return choose[c, 1] + choose[d, 2] if c < d else choose[d, 1] + choose[c, 2]


@kernel
def _place3(choose, a, c, d):
    """Of columns c < d and another one."""
    if a < c:
        return choose[a, 1] + choose[c, 2] + choose[d, 3]
    if a < d:
        return choose[c, 1] + choose[a, 2] + choose[d, 3]
    return choose[c, 1] + choose[d, 2] + choose[a, 3]


@kernel
def _place4(choose, a, b, c, d):
    """Of columns a < b and c < d."""
    first = 1 + (a < c) + (b < c)
    second = 2 + (a < d) + (b < d)
    third = 1 + (c < a) + (d < a)
    fourth = 2 + (c < b) + (d < b)
    return choose[c, first] + choose[d, second] + choose[a, third] + choose[b, fourth]


@kernel
def _fill_one(a, columns, n_columns, sums, both, single, totals):
    """Tables of the sets without and with column a."""
    for m in range(totals.shape[1]):
        totals[1, m] = sums.one[a, m]
        totals[0, m] = sums.none[0, m] - totals[1, m]
    for i in range(n_columns):
        c = columns[i]
        place = _place2(sums.choose, a, c)
        for m in range(totals.shape[1]):
            single[1, i, m] = sums.two[place, m]
            single[0, i, m] = sums.one[c, m] - single[1, i, m]
        for j in range(i + 1, n_columns):
            d = columns[j]
            place, outer = _place3(sums.choose, a, c, d), _place2(sums.choose, c, d)
            for m in range(totals.shape[1]):
                both[1, i, j, m] = sums.three[place, m]
                both[0, i, j, m] = sums.two[outer, m] - both[1, i, j, m]


@kernel
def _fill_two(a, b, columns, n_columns, sums, both, single, totals):
    """Tables of the four sets of columns a < b: neither, b, a, both."""
    M, choose = totals.shape[1], sums.choose
    place = _place2(choose, a, b)
    for m in range(M):
        x = sums.two[place, m]
        totals[3, m], totals[2, m], totals[1, m] = x, sums.one[a, m] - x, sums.one[b, m] - x
        totals[0, m] = sums.none[0, m] - sums.one[a, m] - sums.one[b, m] + x
    for i in range(n_columns):
        c = columns[i]
        low, high = _place2(choose, a, c), _place2(choose, b, c)
        place = _place3(choose, c, a, b)
        for m in range(M):
            x, at_a, at_b = sums.three[place, m], sums.two[low, m], sums.two[high, m]
            single[3, i, m], single[2, i, m], single[1, i, m] = x, at_a - x, at_b - x
            single[0, i, m] = sums.one[c, m] - at_a - at_b + x
        for j in range(i + 1, n_columns):
            d = columns[j]
            place, outer = _place4(choose, a, b, c, d), _place2(choose, c, d)
            low, high = _place3(choose, a, c, d), _place3(choose, b, c, d)
            for m in range(M):
                x, at_a, at_b = sums.four[place, m], sums.three[low, m], sums.three[high, m]
                both[3, i, j, m], both[2, i, j, m], both[1, i, j, m] = x, at_a - x, at_b - x
                both[0, i, j, m] = sums.two[outer, m] - at_a - at_b + x


@entry_point
def cell_values(a, columns, height, begin, sums):
    """Best values below column a, or of all samples where it is negative.

    `height` is that of trees on all samples. Returns (C, 2, 2): with a height of four, by another column from the one
    at place `begin` on, trees of depth two on the set with a side of a and a side of the other; with a height of three,
    in [0, side, 0], those of a side of a; with less, in [c, 0, side], both sides of every column. Minus infinity where
    there is nothing.
    """
    C, M = columns.size, sums.none.shape[1]
    result = np.full((C, 2, 2), -np.inf)
    n_sets = 4 if height == 4 else (2 if height == 3 else 1)
    both, single, totals = np.empty((n_sets, C, C, M)), np.empty((n_sets, C, M)), np.empty((n_sets, M))
    others, sides = np.empty(C, dtype=np.int64), np.empty((C, 2))
    if a < 0:
        for m in range(M):
            totals[0, m] = sums.none[0, m]
        for i in range(C):
            for m in range(M):
                single[0, i, m] = sums.one[columns[i], m]
            for j in range(i + 1, C if height > 1 else 0):
                place = _place2(sums.choose, columns[i], columns[j])
                for m in range(M):
                    both[0, i, j, m] = sums.two[place, m]
        _best_two(both[0], single[0], totals[0], C, columns, height, sums, sides)
        for c in range(C):
            result[c, 0, 0], result[c, 0, 1] = sides[c, 0], sides[c, 1]
        return result
    if height == 3:
        n_others = _others(a, a, columns, sums.apart, others)
        _fill_one(a, others, n_others, sums, both, single, totals)
        for side in range(2):
            result[0, side, 0] = _best_two(both[side], single[side], totals[side], n_others, others, 2, sums, sides)
        return result
    for p in range(begin, C):
        b = columns[p]
        if b == a or sums.apart[a, b]:
            continue
        n_others = _others(a, b, columns, sums.apart, others)
        low, high = min(a, b), max(a, b)
        _fill_two(low, high, others, n_others, sums, both, single, totals)
        for t in range(4):
            best = _best_two(both[t], single[t], totals[t], n_others, others, 2, sums, sides)
            if a < b:
                result[p, t >> 1, t & 1] = best
            else:
                result[p, t & 1, t >> 1] = best
    return result


@kernel
def _others(a, b, columns, apart, others):
    """Columns that may stand below two."""
    found = 0
    for c in columns:
        if c != a and c != b and not apart[a, c] and not apart[b, c]:
            others[found] = c
            found += 1
    return found
