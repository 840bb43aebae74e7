"""Counting without compiled code, in Python's whole numbers, which have no largest: slow, and certain.

What `accel_oct.native.TreeCounts` computes must equal this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accel_oct.exact.coded import CodedProblem
from accel_oct.exact.enumeration import SampleSet

IntArray = NDArray[np.int64]
Table = dict[int, int]
"""From codes to numbers of trees."""


def leaves(totals: IntArray, price: int, any_label: bool) -> dict[int, int]:
    """From the classes of the leaves that count to their codes."""
    labels = range(totals.size) if any_label else [int(totals.argmax())]
    return {label: int(totals[label]) - price for label in labels}


def add_pairs(table: Table, zero: Table, one: Table, threshold: int, factor: int) -> None:
    """Add all pairs of two sides that are worth at least the threshold."""
    ordered = sorted(one.items(), reverse=True)
    for code, count in zero.items():
        for other, times in ordered:
            if code + other < threshold:
                break
            table[code + other] = table.get(code + other, 0) + factor * count * times


def drop_leaf_pairs(table: Table, zero: dict[int, int], one: dict[int, int], threshold: int, factor: int) -> None:
    """Take away the pairs of leaves of the same class."""
    for label in zero.keys() & one.keys():
        code = zero[label] + one[label]
        if code >= threshold:
            table[code] = table.get(code, 0) - factor


def count_one(problem: CodedProblem, samples: SampleSet, threshold: int) -> Table:
    """Trees of depth at most one on a set that are worth at least the threshold."""
    totals, price = problem.totals(samples), problem.price
    table: Table = Counter(code for code in leaves(totals, price, problem.any_label).values() if code >= threshold)
    columns = problem.columns(samples)
    ones = problem.ones(samples, columns.feature)
    zeros = totals[:, None] - ones
    close = zeros.max(axis=0) + ones.max(axis=0) - 2 * price >= threshold
    for place in np.flatnonzero(close).tolist():
        sides = [leaves(sums[:, place], price, problem.any_label) for sums in (zeros, ones)]
        for label, code in sides[0].items():
            for other, more in sides[1].items():
                if label != other and code + more >= threshold:
                    table[code + more] = table.get(code + more, 0) + int(columns.multiplicity[place])
    return table


def count_two(
    problem: CodedProblem, samples: SampleSet, threshold: int, should_stop: Callable[[], None] = lambda: None
) -> Table:
    """Trees of depth at most two."""
    table: Table = Counter(
        code for code in leaves(problem.totals(samples), problem.price, problem.any_label).values() if code >= threshold
    )
    columns = problem.columns(samples)
    for feature, factor in zip(columns.feature.tolist(), columns.multiplicity.tolist(), strict=True):
        should_stop()
        zero, one = problem.sides(samples, feature)
        # No best values are used here: the other side earns at most the gains of all its samples and classes.
        room = [int(problem.totals(side).sum()) - problem.price for side in (zero, one)]
        tables = [count_one(problem, zero, threshold - room[1]), count_one(problem, one, threshold - room[0])]
        add_pairs(table, tables[0], tables[1], threshold, factor)
        alone = [leaves(problem.totals(side), problem.price, problem.any_label) for side in (zero, one)]
        drop_leaf_pairs(table, alone[0], alone[1], threshold, factor)
    return {code: count for code, count in table.items() if count}
