"""Which pieces of work a deep frontier consists of, and what they add up to: the search without its workers.

A region is a set of samples and a depth. Its profile is one job if it is short, else it has a board of root features,
and the sides of roots are regions again. So for depth five jobs are sides of root features, and for depth six, where
there are many features, sides of pairs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from accel_oct.cluster.workers import Job, JobResult, Literal, Path, literal_of, place_of
from accel_oct.exact.profile_search import Beginning, ProfileSolver, joined_tree
from accel_oct.exact.profiles import Profile
from accel_oct.exact.root_board import RootBoard
from accel_oct.exact.samples import RowSamples
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]

SHORT = 10.0
"""Seconds that a job of depth five or more may take by the estimate; longer ones are divided."""

_SECONDS_PER_PASS = 8e-11
"""Of depth four, by the fourth power of the number of features."""


class Region:
    """The samples that satisfy a path.

    Parameters
    ----------
    data : callable () -> RowSamples
        The samples, when they are needed here: few regions ever are.
    depth : int
    n_features : int
        About how many there are, for the estimate.
    path : Path
    short : float
        Seconds, see `SHORT`.
    memory_limit : int
        Bytes that tables may take, when trees are built.

    Attributes
    ----------
    lower, upper : float arrays or None
        What is proven so far; None before anything is known.
    """

    def __init__(
        self,
        data: Callable[[], RowSamples],
        depth: int,
        n_features: int,
        path: Path = (),
        short: float = SHORT,
        memory_limit: int = 0,
    ) -> None:
        self._data = data
        self.depth = depth
        self.path = path
        self._short = short
        self._memory_limit = memory_limit
        self.whole = bool(path) and estimated_seconds(n_features, depth) <= short
        self._found: JobResult | None = None
        self._board: RootBoard | None = None
        self._sides: dict[Literal, Region] = {}

    @cached_property
    def data(self) -> RowSamples:
        """The samples."""
        return self._data()

    @property
    def lower(self) -> Floats | None:
        if self._board is not None:
            return self._board.lower
        return None if self._found is None else self._found.lower

    @property
    def upper(self) -> Floats | None:
        if self._board is not None:
            return self._board.bound()
        return None if self._found is None else self._found.upper

    @property
    def solved(self) -> bool:
        """Whether there is nothing left to do."""
        if self._board is not None:
            return not self._board.open_roots().any()
        return self._found is not None

    @property
    def roots(self) -> tuple[int, int]:
        """Root features that are open, of how many."""
        return (0, 0) if self._board is None else (int(self._board.open_roots().sum()), self.data.n_features)

    # ---------------------------------------------------------------- work

    def jobs(self, busy: Container[Path]) -> Iterator[Job]:
        """What could be done now, the most useful first; not what is `busy`. Ends when anything is taken in."""
        yield from self._jobs(busy, False)
        yield from self._jobs(busy, True)

    def _jobs(self, busy: Container[Path], ahead: bool) -> Iterator[Job]:
        if self._board is None:
            if self._found is None and self.path not in busy:
                yield Job(self.path, self.depth, self.whole)
            return
        begun = {place_of(self.data, literal) for literal, side in self._sides.items() if side.is_begun(busy)}
        for column, value in self._board.wanted(begun, ahead):
            yield from self._side(column, value)._jobs(busy, ahead)

    def is_begun(self, busy: Container[Path]) -> bool:
        """Whether somebody works on it, or did."""
        return self._board is not None or self._found is not None or self.path in busy

    def _side(self, column: int, value: int) -> Region:
        literal = literal_of(self.data, column, value)
        if literal not in self._sides:
            self._sides[literal] = Region(
                lambda: self.data.at((column, value)),
                self.depth - 1,
                self.data.n_features,
                (*self.path, literal),
                self._short,
                self._memory_limit,
            )
        return self._sides[literal]

    def take(self, path: Path, found: JobResult) -> None:
        """Take in what was found for the region below a path from here; twice does no harm."""
        if not path:
            if self._found is None:
                self._found = found
                if found.start is not None:
                    self._board = RootBoard(self.data, self.depth, found.start)
            return
        assert self._board is not None
        column, value = place_of(self.data, path[0])
        side = self._side(column, value)
        side.take(path[1:], found)
        assert side.lower is not None and side.upper is not None
        if side.solved:
            self._board.absorb(column, value, side.lower, side.upper)
        else:
            self._board.limit(column, value, side.upper)

    def agrees(self, path: Path, found: JobResult) -> bool:
        """Whether what somebody claims of the region below a path is possible, by what is known already."""
        if self._board is None or not path:
            return True
        place = place_of(self.data, path[0])
        if len(path) > 1:
            return self._side(*place).agrees(path[1:], found)
        return self._board.agrees(*place, found.lower, found.upper)

    def begin_with(self, known: Beginning) -> None:
        """Take in what was computed here, which can build its own trees."""
        start = known.start
        self._profile = Profile(start.lower, start.lower, known.tree)
        self.take((), JobResult(start.lower, start.lower, start))

    def settle(self) -> None:
        """Take in what sides know that are not solved: for a search that ends before its time.

        Not before: which root is chosen would depend on who was first.
        """
        for literal, side in self._sides.items():
            if self._board is None or side.lower is None or side.upper is None or side.solved:
                continue
            side.settle()
            self._board.absorb(*place_of(self.data, literal), side.lower, side.upper)

    # ---------------------------------------------------------------- trees

    def tree(self, leaves: int) -> DecisionTree:
        """A tree that reaches the score for so many leaves."""
        if self._board is None:
            return self._profile.tree(leaves)
        lower = self._board.lower
        fewest = int(np.searchsorted(lower, lower[leaves - 1])) + 1
        column = self._board.root_of(fewest)
        if column is None:
            return self._profile.tree(fewest)
        zero, one = (self._side(column, value).as_profile() for value in (0, 1))
        return joined_tree(self.data, column, zero, one, lower, fewest)

    def as_profile(self) -> Profile:
        """What is known, with trees."""
        assert self.lower is not None and self.upper is not None
        return Profile(self.lower, self.upper, self.tree)

    @cached_property
    def _profile(self) -> Profile:
        """What a worker computed, once more and with its trees."""
        solver = ProfileSolver(memory_limit=self._memory_limit)
        if self._board is None:
            return solver.solve(self.data, self.depth)
        known = solver.begin(self.data, self.depth)
        assert not isinstance(known, Profile)
        return Profile(known.start.lower, known.start.lower, known.tree)


def estimated_seconds(n_features: int, depth: int) -> float:
    """What a profile takes, roughly; nothing up to depth four, which is not divided."""
    return 0.0 if depth <= 4 else _SECONDS_PER_PASS * float(n_features) ** 4 * (2.0 * n_features) ** (depth - 4)
