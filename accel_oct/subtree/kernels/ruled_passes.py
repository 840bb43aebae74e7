# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""The passes of `passes` under local rules: leaves of a least mass, features that must stay apart.

The last channel of a table holds masses. Split b of a side is allowed where both its parts are heavy enough, which
`Limits` says lane by lane. One that is not allowed counts as no split, which is worth a leaf: with one signed table
that is a difference of zero on one side, with several tables nothing at all. So what is written for a side is its best
score with at most two leaves where it may be a leaf itself, and else `lowest` for both: it may not be reached at all.
"""

from __future__ import annotations

from accel_oct.subtree.kernels.jit import kernel
from accel_oct.subtree.kernels.lanes import fill, least, load, most, spread, store, where_enough


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
    one_leaf, two_leaves, n_features = scores.one_leaf, scores.two_leaves, table.shape[2]
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
                x = where_enough(least(m1, mass1 - m1), need, x, zero)
                z = where_enough(least(m0, mass0 - m0), need, z, zero)
                most1, least1 = most(most1, x), least(least1, x)
                most0, least0 = most(most0, z), least(least0, z)
        need = load(below, c)
        d1 = load(single, c)
        d0 = spread(totals, 0) - d1
        leaf0, leaf1 = most(d0, zero - d0), most(d1, zero - d1)
        store(one_leaf, row * width + c, where_enough(mass0, need, leaf0, lowest))
        store(two_leaves, row * width + c, where_enough(mass0, need, _two(leaf0, d0, most0, least0, zero), lowest))
        place = (row + 1) * width + c
        store(one_leaf, place, where_enough(mass1, need, leaf1, lowest))
        store(two_leaves, place, where_enough(mass1, need, _two(leaf1, d1, most1, least1, zero), lowest))


@kernel
def _two(leaf, difference, largest, smallest, zero):
    """Best of two leaves and of one, from the extreme splits."""
    high = (largest + largest) - difference
    low = (smallest + smallest) - difference
    return most(leaf, most(most(high, zero - high), most(low, zero - low)))


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
