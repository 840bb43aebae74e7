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
from numpy.typing import NDArray

from accel_oct.near_optimal.problem import CountingProblem
from accel_oct.near_optimal.stopping import OutOfMemory
from accel_oct.near_optimal.values import SideValues
from accel_oct.tree import DecisionTree
from accel_oct.tree.topology import Topology

IntArray = NDArray[np.int64]
Path = tuple[tuple[int, bool], ...]
Nested = Any
"""A tree: a class, or (feature, zero side, one side); sides are shared."""

_ENTRY_BYTES = 400
"""What a tree in a list takes, with what waits behind it."""


class TreeLister:
    """Lists the trees within the slack, best first.

    Parameters
    ----------
    problem : CountingProblem
    values : SideValues
    memory_limit : int
        Bytes that all lists may take; beyond that `OutOfMemory` is raised.
    """

    def __init__(self, problem: CountingProblem, values: SideValues, memory_limit: int) -> None:
        self.problem, self.values = problem, values
        self._left = memory_limit // _ENTRY_BYTES
        self._lists: dict[tuple[bytes, int], _TreeList] = {}

    def trees(self) -> Iterator[tuple[int, Nested]]:
        """Codes and trees, best first; the first one is the best of all."""
        trees = self.list_of(np.arange(len(self.problem.X)), self.problem.max_depth, ())
        place, least = 0, None
        while (found := trees.get(place)) is not None:
            code, tree = found
            if least is None:
                least = self.problem.least_code(self.problem.value(code) - self.problem.slack)
            if code < least:
                return
            yield code, tree
            place += 1

    def list_of(self, points: IntArray, height: int, path: Path) -> _TreeList:
        key = (self.values.key(points), height)
        found = self._lists.get(key)
        if found is None:
            self.spend(2)
            found = self._lists[key] = _TreeList(self, points, height, path)
        return found

    def spend(self, entries: int) -> None:
        self._left -= entries
        if self._left < 0:
            raise OutOfMemory


class _TreeList:
    """The trees of one set, as far as they were asked for."""

    __slots__ = ("_found", "_height", "_least", "_lister", "_path", "_points", "_sides", "_waiting")

    def __init__(self, lister: TreeLister, points: IntArray, height: int, path: Path) -> None:
        self._lister, self._points, self._height, self._path = lister, points, height, path
        self._found: list[tuple[int, Nested]] = []
        self._sides: dict[int, tuple[_TreeList, _TreeList]] = {}
        problem = lister.problem
        # (-code, feature, place, place); a leaf has feature -1 and its class, a split not looked at places -1.
        self._waiting = [(-code, -1, label, 0) for code, label in problem.leaf_codes(points)]
        best = -self._waiting[0][0]
        splits: list[tuple[int, int, int, int]] = []
        if height > 0:
            columns, zero, one = lister.values.sides(points, height, path)
            codes = (zero + one)[columns.column]
            best = max(best, int(codes.max(initial=best)))
            close = codes >= best - problem.code_slack
            pairs = zip(columns.features[close].tolist(), codes[close].tolist(), strict=True)
            splits = [(-code, feature, -1, -1) for feature, code in pairs]
        self._least = best - problem.code_slack
        lister.spend(len(splits) // 4)
        self._waiting += splits
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
        if feature < 0:
            self._keep(-code, i)
            return
        if i < 0:
            self._wait(feature, 0, 0)
            return
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
        found = self._sides.get(feature)
        if found is None:
            lister, points = self._lister, self._points
            split = lister.problem.X[points, feature]
            found = self._sides[feature] = (
                lister.list_of(points[~split], self._height - 1, (*self._path, (feature, False))),
                lister.list_of(points[split], self._height - 1, (*self._path, (feature, True))),
            )
        return found


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
