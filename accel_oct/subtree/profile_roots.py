"""Profiles of deep trees: root features one by one, in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.profiles import Profile, find_split
from accel_oct.subtree.reduction import Reduced
from accel_oct.subtree.root_board import RootBoard, Start
from accel_oct.subtree.steps import Steps
from accel_oct.subtree.stopping import Stopper
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]
Report = Callable[[Floats, Floats], None]


class SideSolver(Protocol):
    """Who computes the profiles of sides, within which limits; `ProfileSolver` in practice."""

    stopper: Stopper

    def solve(self, data: Reduced, depth: int) -> Profile:
        """Profile of depth `depth`; exact unless stopped."""
        ...


class ProfileRoots:
    """Profile of depth d from the profiles of depth d - 1 of sides of root features; `RootBoard` says of which.

    Parameters
    ----------
    solver : SideSolver
    data : Reduced
    depth : int
    start : Start
    shallow : callable
        A tree that reaches `start.lower` for a number of leaves.
    """

    def __init__(
        self,
        solver: SideSolver,
        data: Reduced,
        depth: int,
        start: Start,
        shallow: Callable[[int], DecisionTree],
        steps: Steps | None = None,
    ) -> None:
        self._solver = solver
        self._data = data
        self._steps = steps
        self._shallow = shallow
        self._board = RootBoard(data, depth, start)
        self._choice: dict[int, tuple[int, Profile, Profile]] = {}

    def run(self, report: Report | None = None) -> Profile:
        """Open root features, the most promising first, until none can improve anything or time is up."""
        board, pending = self._board, dict[tuple[int, int], Profile]()
        while True:
            wanted = next(board.wanted(), None)
            if self._steps is not None:
                self._steps.roots = (int(board.open_roots().sum()), self._data.n_features)
            if wanted is None or self._solver.stopper():
                break
            f, side = wanted
            found = self._solver.solve(side_of(self._data, f, side), board.depth - 1)
            pending = {key: profile for key, profile in pending.items() if key[0] == f}
            pending[f, side] = found
            for h in board.absorb(f, side, found.lower, found.upper):
                self._choice[h] = (f, pending[f, 0], pending[f, 1])
            if report is not None:
                report(board.lower, board.bound())
        return Profile(board.lower, board.bound(), self._tree)

    def _tree(self, leaves: int) -> DecisionTree:
        lower = self._board.lower
        fewest = int(np.searchsorted(lower, lower[leaves - 1]))
        if self._board.root_of(fewest + 1) is None:
            return self._shallow(fewest + 1)
        return joined_tree(self._data, *self._choice[fewest], lower, fewest + 1)


def side_of(data: Reduced, f: int, side: int) -> Reduced:
    """The samples on one side of a root feature."""
    return data.restricted(data.X[:, f] == side, f)


def joined_tree(data: Reduced, f: int, zero: Profile, one: Profile, values: Floats, leaves: int) -> DecisionTree:
    """The tree that branches on f and reaches ``values[leaves - 1]``, no fewer leaves do."""
    found = find_split(zero.lower[None], one.lower[None], values, leaves)
    assert found is not None
    return data.branch(f, zero.tree(found[1]), one.tree(found[2]))
