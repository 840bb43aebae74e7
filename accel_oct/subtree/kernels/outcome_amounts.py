# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""What sets earn and use: of points by going through them, of a tally from its counts."""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import kernel
from accel_oct.subtree.kernels.arguments import CellTable


@kernel
def set_amounts(points, columns, rewards):
    """Amounts of a whole set of points, and which columns split it."""
    whole, ones = np.zeros(rewards.amounts.shape[1]), np.zeros(columns.size, dtype=np.int64)
    for p in points:
        for r in range(whole.size):
            whole[r] += rewards.amounts[p, r]
        for c in range(columns.size):
            ones[c] += rewards.X[p, columns[c]]
    splits = np.empty(columns.size, dtype=np.bool_)
    for c in range(columns.size):
        splits[c] = ones[c] != 0 and ones[c] != points.size
    return whole, splits


@kernel
def cell_set_amounts(table, columns, rewards):
    """The same of a set of a tally."""
    whole, splits = np.zeros(rewards.amounts.shape[1]), np.empty(columns.size, dtype=np.bool_)
    size = 0.0
    for n in range(table.totals.size):
        size += table.totals[n]
        for r in range(whole.size):
            whole[r] += table.totals[n] * rewards.amounts[n, r]
    for c in range(columns.size):
        ones = 0.0
        for n in range(table.totals.size):
            ones += table.single[c, n]
        splits[c] = ones != 0.0 and ones != size
    return whole, splits


@kernel
def _point_amounts(points, columns, c, side, close, rewards):
    """Amounts of one side of the column at place c, of those of it that have each of some columns, and which split it.

    There is one more row behind the columns, with nobody.
    """
    n_close = close.size - 1
    at_one = np.zeros((n_close + 1, rewards.amounts.shape[1]))
    ones = np.zeros(n_close + 1, dtype=np.int64)
    whole = np.zeros(rewards.amounts.shape[1])
    size = 0
    for p in points:
        if rewards.X[p, columns[c]] != side:
            continue
        size += 1
        for r in range(whole.size):
            whole[r] += rewards.amounts[p, r]
        for i in range(n_close):
            x = rewards.X[p, columns[close[i]]]
            ones[i] += x
            if x:
                for r in range(whole.size):
                    at_one[i, r] += rewards.amounts[p, r]
    splits = np.empty(n_close + 1, dtype=np.bool_)
    for i in range(n_close + 1):
        splits[i] = ones[i] != 0 and ones[i] != size
    return whole, at_one, splits


@kernel
def _cell_amounts(table, columns, c, side, close, rewards):
    """The same of a set of a tally."""
    n_close = close.size - 1
    at_one = np.zeros((n_close + 1, rewards.amounts.shape[1]))
    splits = np.zeros(n_close + 1, dtype=np.bool_)
    whole = np.zeros(rewards.amounts.shape[1])
    size = 0.0
    for n in range(table.totals.size):
        count = table.single[c, n] if side else table.totals[n] - table.single[c, n]
        size += count
        for r in range(whole.size):
            whole[r] += count * rewards.amounts[n, r]
    for i in range(n_close):
        d, ones = close[i], 0.0
        for n in range(table.totals.size):
            count = table.both[c, d, n] if side else table.single[d, n] - table.both[c, d, n]
            ones += count
            for r in range(whole.size):
                at_one[i, r] += count * rewards.amounts[n, r]
        splits[i] = ones != 0.0 and ones != size
    return whole, at_one, splits


@kernel
def no_table():
    return CellTable(np.empty((0, 0, 0)), np.empty((0, 0)), np.empty(0))


@kernel
def amounts(samples, columns, c, side, close, rewards):
    # Not by two kinds of arguments, or by a function among them: code that is given functions cannot be kept on disk.
    if samples.table.totals.size:
        return _cell_amounts(samples.table, columns, c, side, close, rewards)
    return _point_amounts(samples.points, columns, c, side, close, rewards)
