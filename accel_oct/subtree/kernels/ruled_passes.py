# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""The passes of `passes` under local rules: leaves of a least mass, features that must stay apart.

The last channel of a table holds masses. Split b of a side is allowed where both its parts are heavy enough, which
`Limits` says lane by lane. One that is not allowed counts as no split, which is worth a leaf: with one signed table
that is a difference of zero on one side, with several tables nothing at all. So what is written for a side is its best
score with at most two leaves where it may be a leaf itself, and else `lowest` for both: it may not be reached at all.
"""

from __future__ import annotations

from accel_oct.compiled.jit import kernel
from accel_oct.compiled.lanes import fill, least, load, most, spread, store, where_enough


@kernel
def ruled_set(counts, scores, first_lane, base, row, signed, limits, below, usable):
    """One set, see `pass_set`. `below` (P,): least masses below the path and c; `usable` (F,): what may follow it."""
    if signed:
        _ruled_signed(counts, scores, first_lane, base, row, limits, below, usable)
    else:
        _ruled_classes(counts, scores, first_lane, base, row, limits, below, usable)


@kernel
def path_limits(limits, f, g, below, usable):
    """Fill `below` and `usable` for a path over the features f and g, which may be the same."""
    rows, lanes = limits.rows, limits.lanes
    for c in range(below.size):
        below[c] = max(lanes[c], rows[f, c], rows[g, c])
    for b in range(usable.size):
        usable[b] = below[b] == limits.least[0]


@kernel
def _can_split(masses, total, below, place, lanes, least):
    """Whether some lane that may follow the path has a side that is heavy enough for two leaves."""
    for c in range(place, place + lanes):
        if below[c] == least and max(masses[c], total - masses[c]) - least >= least:
            return True
    return False


@kernel
def _ruled_signed(counts, scores, first_lane, base, row, limits, below, usable):
    table, single, totals = counts.table, counts.single, counts.totals
    one_leaf, n_features = scores.one_leaf, table.shape[2]
    width = one_leaf.shape[1]
    lanes = 64 // one_leaf.itemsize
    height = table.shape[1] * lanes
    zero, lowest = fill(one_leaf, 0), spread(limits.lowest, 0)
    for c in range(first_lane, base + height, lanes):
        mass1 = load(single, width + c)
        mass0 = spread(totals, 1) - mass1
        most1 = least1 = most0 = least0 = zero
        if _can_split(single[1], totals[1], below, c, lanes, limits.least[0]):
            for b in range(n_features):
                if not usable[b]:
                    continue
                need = load(limits.blocked, c * n_features + b * lanes)
                x = load(table, (c - base) * n_features + b * lanes)
                z = spread(single, b) - x
                m1 = load(table, (height + c - base) * n_features + b * lanes)
                m0 = spread(single, width + b) - m1
                most1, least1 = _wider(most1, least1, x, m1, mass1, need, zero)
                most0, least0 = _wider(most0, least0, z, m0, mass0, need, zero)
        need = load(below, c)
        d1 = load(single, c)
        d0 = spread(totals, 0) - d1
        _finish(d0, most0, least0, mass0, need, scores, row * width + c, zero, lowest)
        _finish(d1, most1, least1, mass1, need, scores, (row + 1) * width + c, zero, lowest)


@kernel
def ruled_signed_pair(all_, with_f, with_g, both, singles, totals, scores, first_lane, limits, below, usable):
    """The four sets of a pair of features, see `pass_signed_pair`; sides of f that are too light to split are cheap."""
    width = scores.one_leaf.shape[1]
    lanes = 64 // scores.one_leaf.itemsize
    zero, lowest = fill(scores.one_leaf, 0), spread(limits.lowest, 0)
    enough = limits.least[0]
    for c in range(first_lane, width, lanes):
        for f in range(1, -1, -1):
            low, high = 2 * f, 2 * f + 1  # g = 0 and g = 1
            mass1, mass3 = load(singles, (2 * low + 1) * width + c), load(singles, (2 * high + 1) * width + c)
            mass0, mass2 = spread(totals, 2 * low + 1) - mass1, spread(totals, 2 * high + 1) - mass3
            m0 = l0 = m1 = l1 = m2 = l2 = m3 = l3 = zero
            if _can_split(singles[low, 1], totals[low, 1], below, c, lanes, enough) or _can_split(
                singles[high, 1], totals[high, 1], below, c, lanes, enough
            ):
                for b in range(usable.size):
                    if not usable[b]:
                        continue
                    need = load(limits.blocked, c * usable.size + b * lanes)
                    x3, x1 = _sides_of_g(all_, with_f, with_g, both, f, c * usable.size + b * lanes)
                    n3, n1 = _sides_of_g(all_, with_f, with_g, both, f, (width + c) * usable.size + b * lanes)
                    m1, l1 = _wider(m1, l1, x1, n1, mass1, need, zero)
                    m3, l3 = _wider(m3, l3, x3, n3, mass3, need, zero)
                    x1 = spread(singles, 2 * low * width + b) - x1
                    x3 = spread(singles, 2 * high * width + b) - x3
                    n1 = spread(singles, (2 * low + 1) * width + b) - n1
                    n3 = spread(singles, (2 * high + 1) * width + b) - n3
                    m0, l0 = _wider(m0, l0, x1, n1, mass0, need, zero)
                    m2, l2 = _wider(m2, l2, x3, n3, mass2, need, zero)
            need = load(below, c)
            d1, d3 = load(singles, 2 * low * width + c), load(singles, 2 * high * width + c)
            d0, d2 = spread(totals, 2 * low) - d1, spread(totals, 2 * high) - d3
            _finish(d0, m0, l0, mass0, need, scores, 4 * f * width + c, zero, lowest)
            _finish(d1, m1, l1, mass1, need, scores, (4 * f + 1) * width + c, zero, lowest)
            _finish(d2, m2, l2, mass2, need, scores, (4 * f + 2) * width + c, zero, lowest)
            _finish(d3, m3, l3, mass3, need, scores, (4 * f + 3) * width + c, zero, lowest)


@kernel
def _sides_of_g(all_, with_f, with_g, both, f, place):
    """Counts at one place of the tables of g = 1 and of g = 0, on one side of f."""
    if f:
        x = load(both, place)
        return x, load(with_f, place) - x
    x = load(with_g, place) - load(both, place)
    return x, load(all_, place) - load(with_f, place) - x


@kernel
def _wider(largest, smallest, x, mass, whole, need, zero):
    """The extreme splits with one more: where both its parts are heavy enough."""
    x = where_enough(least(mass, whole - mass), need, x, zero)
    return most(largest, x), least(smallest, x)


@kernel
def _finish(difference, largest, smallest, mass, need, scores, place, zero, lowest):
    """Leaf and two-leaf scores of one vector of sets, or `lowest` where they may not be a leaf."""
    leaf = most(difference, zero - difference)
    high = (largest + largest) - difference
    low = (smallest + smallest) - difference
    two = most(leaf, most(most(high, zero - high), most(low, zero - low)))
    store(scores.one_leaf, place, where_enough(mass, need, leaf, lowest))
    store(scores.two_leaves, place, where_enough(mass, need, two, lowest))


@kernel
def _ruled_classes(counts, scores, first_lane, base, row, limits, below, usable):
    table, single, totals = counts.table, counts.single, counts.totals
    one_leaf, two_leaves = scores.one_leaf, scores.two_leaves
    last, n_features = table.shape[0] - 1, table.shape[2]
    width = one_leaf.shape[1]
    lanes = 64 // one_leaf.itemsize
    height = table.shape[1] * lanes
    zero, lowest = fill(one_leaf, 0), spread(limits.lowest, 0)
    for c in range(first_lane, base + height, lanes):
        leaf1 = leaf0 = zero
        for k in range(last):
            at_c = load(single, k * width + c)
            leaf1, leaf0 = most(leaf1, at_c), most(leaf0, spread(totals, k) - at_c)
        mass1 = load(single, last * width + c)
        mass0 = spread(totals, last) - mass1
        best1, best0 = leaf1, leaf0
        if _can_split(single[last], totals[last], below, c, lanes, limits.least[0]):
            for b in range(n_features):
                if not usable[b]:
                    continue
                need = load(limits.blocked, c * n_features + b * lanes)
                m1 = load(table, (last * height + c - base) * n_features + b * lanes)
                m0 = spread(single, last * width + b) - m1
                c11 = c10 = c01 = c00 = zero
                for k in range(last):
                    x = load(table, (k * height + c - base) * n_features + b * lanes)
                    at_c, at_b = load(single, k * width + c), spread(single, k * width + b)
                    x10, x01 = at_c - x, at_b - x
                    c11, c10, c01 = most(c11, x), most(c10, x10), most(c01, x01)
                    c00 = most(c00, spread(totals, k) - at_c - x01)
                best1 = most(best1, where_enough(least(m1, mass1 - m1), need, c11 + c10, zero))
                best0 = most(best0, where_enough(least(m0, mass0 - m0), need, c01 + c00, zero))
        need = load(below, c)
        store(one_leaf, row * width + c, where_enough(mass0, need, leaf0, lowest))
        store(two_leaves, row * width + c, where_enough(mass0, need, best0, lowest))
        store(one_leaf, (row + 1) * width + c, where_enough(mass1, need, leaf1, lowest))
        store(two_leaves, (row + 1) * width + c, where_enough(mass1, need, best1, lowest))
