"""Trees best first, none made before it is asked for.

Every set of samples, with a height, has a list of its trees that grows on demand. A tree that branches is a pair of
places in the lists of both sides; behind the pair (i, j) wait (i, j + 1) and, if j is the first, (i + 1, j). A heap
holds the pairs whose turn may be next, and for a split that was not looked at yet what its sides are worth at best.

Trees are ordered by code (value, then fewer leaves); then a leaf comes before a branch, leaves go by class, branches by
feature, then by the place of the zero side in its own list, then of the one side. So the order depends on nothing but
the samples.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from accel_oct.exact.coded import Coded
from accel_oct.exact.sample_sets import SampleSet
from accel_oct.exact.side_values import SideValues
from accel_oct.support.arrays import BoolArray, IntArray
from accel_oct.support.stopping import OutOfMemory
from accel_oct.tree import DecisionTree
from accel_oct.tree.topology import Topology

Path = tuple[tuple[int, bool], ...]
Nested = Any
"""A tree: a class, or (feature, zero side, one side); sides are shared."""

_ENTRY_BYTES = 400
"""What a tree in a list takes, with what waits behind it."""

#: In the place of a feature: a leaf, with its class; a tree with one split; all splits, before they are looked at.
_LEAF, _STUMP, _ALL_SPLITS = -1, -2, -3


class TreeLister:
    """Lists the trees within the slack, best first.

    Parameters
    ----------
    problem : Coded
    values : SideValues
    memory_limit : int
        Bytes that all lists may take; beyond that `OutOfMemory` is raised.
    """

    def __init__(self, problem: Coded, values: SideValues, memory_limit: int) -> None:
        self.problem, self.values = problem, values
        self._left = memory_limit // _ENTRY_BYTES
        self._lists: dict[tuple[bytes, int], _TreeList] = {}

    def trees(self) -> Iterator[tuple[int, Nested]]:
        """Codes and trees, best first; the first one is the best of all."""
        everyone, depth = self.problem.everyone(), self.problem.max_depth
        trees = self.list_of(everyone, depth, self.values.best(everyone, depth), ())
        place, least = 0, None
        while (found := trees.get(place)) is not None:
            code, tree = found
            if least is None:
                least = self.problem.least_code(self.problem.value(code) - self.problem.slack)
            if code < least:
                return
            yield code, tree
            place += 1

    def list_of(self, samples: SampleSet, height: int, best: int, path: Path) -> _TreeList:
        """Of the trees of some height on a set whose best one has the code `best`."""
        key = (self.problem.key(samples), height)
        found = self._lists.get(key)
        if found is None:
            self.spend(2)
            found = self._lists[key] = _TreeList(self, samples, height, best, path)
        return found

    def spend(self, entries: int) -> None:
        self._left -= entries
        if self._left < 0:
            raise OutOfMemory


class _TreeList:
    """The trees of one set, as far as they were asked for."""

    __slots__ = (
        *("_found", "_height", "_least", "_lister", "_open", "_path", "_samples", "_sides", "_stumps", "_waiting"),
    )

    def __init__(self, lister: TreeLister, samples: SampleSet, height: int, best: int, path: Path) -> None:
        self._lister, self._samples, self._height, self._path = lister, samples, height, path
        self._least = best - lister.problem.code_slack
        self._found: list[tuple[int, Nested]] = []
        self._open: dict[int, tuple[_TreeList, _TreeList]] = {}
        # (-code, feature, place, place): a pair of places in the lists of both sides, -1 before these are there. Leaves
        # and splits differ in the number of leaves, so in their codes, and never meet in the order.
        self._waiting = [(-code, _LEAF, label, 0) for code, label in lister.problem.leaf_codes(samples)]
        if height > 0 and -self._waiting[0][0] < best:
            self._look_at_splits()
        elif height > 0:
            self._waiting.append((1 - best, _ALL_SPLITS, 0, 0))  # splits have more than one leaf
        heapq.heapify(self._waiting)

    def _look_at_splits(self) -> None:
        if self._height == 1:
            self._waiting_stumps()
            return
        columns, zero, one, split = self._lister.values.sides(self._samples, self._height, self._path)
        codes = split[columns.column]
        close = np.flatnonzero(codes >= self._least)
        self._lister.spend(close.size // 4)
        self._sides = dict(
            zip(
                columns.features[close].tolist(),
                _by_feature(zero, one, columns.column[close], columns.flipped[close]),
                strict=True,
            )
        )
        for feature, code in zip(columns.features[close].tolist(), codes[close].tolist(), strict=True):
            heapq.heappush(self._waiting, (-code, feature, -1, -1))

    def _waiting_stumps(self) -> None:
        """All at once: there is nothing below them."""
        found = stumps(self._lister.problem, self._samples, self._least)
        self._lister.spend(len(found) // 2)
        self._stumps = [tree for _, tree in found]
        self._waiting += [(-code, _STUMP, place, 0) for place, (code, _) in enumerate(found)]
        heapq.heapify(self._waiting)

    def get(self, place: int) -> tuple[int, Nested] | None:
        """The tree at a place, counted from 0; None behind the last one within the slack."""
        while len(self._found) <= place:
            if not self._waiting or -self._waiting[0][0] < self._least:
                return None
            self._next()
        return self._found[place]

    def _next(self) -> None:
        """Take what waits first: a tree, or a pair that leads to others."""
        code, feature, i, j = heapq.heappop(self._waiting)
        if feature == _ALL_SPLITS:
            self._look_at_splits()
        elif feature == _LEAF:
            self._keep(-code, i)
        elif feature == _STUMP:
            self._keep(-code, self._stumps[i])
        elif i < 0:
            self._wait(feature, 0, 0)
        else:
            self._pair(code, feature, i, j)

    def _pair(self, code: int, feature: int, i: int, j: int) -> None:
        zero, one = (side.get(place) for side, place in zip(self._sides_of(feature), (i, j), strict=True))
        assert zero is not None and one is not None  # they were there when the pair began to wait
        if isinstance(zero[1], tuple) or zero[1] != one[1]:
            self._keep(-code, (feature, zero[1], one[1]))
        self._wait(feature, i, j + 1)
        if j == 0:
            self._wait(feature, i + 1, 0)

    def _keep(self, code: int, tree: Nested) -> None:
        self._lister.spend(1)
        self._found.append((code, tree))

    def _wait(self, feature: int, i: int, j: int) -> None:
        zero, one = self._sides_of(feature)
        first, second = zero.get(i), one.get(j)
        if first is not None and second is not None:
            heapq.heappush(self._waiting, (-(first[0] + second[0]), feature, i, j))

    def _sides_of(self, feature: int) -> tuple[_TreeList, _TreeList]:
        found = self._open.get(feature)
        if found is None:
            zero, one = self._sides[feature]
            found = self._open[feature] = (self._side(feature, zero, False), self._side(feature, one, True))
        return found

    def _side(self, feature: int, best: int, side: bool) -> _TreeList:
        samples = self._lister.problem.side(self._samples, feature, side)
        return self._lister.list_of(samples, self._height - 1, best, (*self._path, (feature, side)))


def _by_feature(zero: IntArray, one: IntArray, column: IntArray, flipped: BoolArray) -> list[tuple[int, int]]:
    """Best codes of both sides of features that stand for a column, or for its complement."""
    first, second = zero[column], one[column]
    return list(zip(np.where(flipped, second, first).tolist(), np.where(flipped, first, second).tolist(), strict=True))


def stumps(problem: Coded, samples: SampleSet, least: int) -> list[tuple[int, Nested]]:
    """Codes and trees with one split of a set, in order, down to a code."""
    columns = problem.columns(samples)
    ones = problem.ones(samples, columns.feature)
    zeros = problem.totals(samples)[:, None] - ones
    zero = np.where(columns.flipped, ones[:, columns.column], zeros[:, columns.column])  # (K, F)
    one = np.where(columns.flipped, zeros[:, columns.column], ones[:, columns.column])
    codes = zero[:, None] + one[None] - 2 * problem.price
    allowed = codes >= least
    allowed[np.arange(len(zero)), np.arange(len(zero))] = False
    if not problem.any_label:
        best = [np.arange(len(zero))[:, None] == side.argmax(axis=0) for side in (zero, one)]
        allowed &= best[0][:, None] & best[1][None]
    k, m, f = np.nonzero(allowed)
    places = [np.argsort(np.argsort(-side, axis=0, kind="stable"), axis=0) for side in (zero, one)]
    feature, code = columns.features[f], codes[k, m, f]
    order = np.lexsort((places[1][m, f], places[0][k, f], feature, -code))
    trees = zip(feature[order].tolist(), k[order].tolist(), m[order].tolist(), strict=True)
    return list(zip(code[order].tolist(), trees, strict=True))


def as_decision_tree(nested: Nested, max_depth: int) -> DecisionTree:
    """In arrays for a depth."""
    feature, label = np.full((2, Topology(max_depth).n_nodes), -1)
    todo = [(1, nested)]
    while todo:
        node, part = todo.pop()
        if isinstance(part, tuple):
            feature[node - 1] = part[0]
            todo += [(2 * node, part[1]), (2 * node + 1, part[2])]
        else:
            label[node - 1] = part
    return DecisionTree(feature, label)
