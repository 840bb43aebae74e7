"""Regions: the jobs of a deep frontier, and what their results add up to.

A region is a set of samples and a depth. Its profile is one job if that is short; else it has a board of root features,
and the sides of roots are regions again. So for depth five jobs are sides of root features, and for depth six, where
there are many features, sides of pairs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import cached_property

import numpy as np

from accel_oct.cluster.workers import Job, JobResult, Literal, Path, literal_of, place_of
from accel_oct.exact.frontier import Beginning, ProfileSolver, RootBoard, joined_tree
from accel_oct.exact.levels import Profile
from accel_oct.exact.samples import RowSamples
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree

SHORT = 10.0
"""Most estimated seconds of a job of depth five or more; longer ones are divided."""

_SECONDS_PER_PASS = 8e-11
"""Estimate for depth four, times the fourth power of the number of features."""


class Region:
    """The samples that satisfy a path.

    Parameters
    ----------
    data : callable () -> RowSamples
        Returns the samples; called only when they are needed.
    n_features : int
        Approximate number, for the estimate.
    short : float
        Seconds, see `SHORT`.
    memory_limit : int
        Bytes for tables when trees are built.

    Attributes
    ----------
    lower, upper : float arrays or None
        Proven bounds so far; None before anything is known.
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
    def lower(self) -> FloatArray | None:
        if self._board is not None:
            return self._board.lower
        return None if self._found is None else self._found.lower

    @property
    def upper(self) -> FloatArray | None:
        if self._board is not None:
            return self._board.bound()
        return None if self._found is None else self._found.upper

    @property
    def solved(self) -> bool:
        """Whether nothing is left to do."""
        if self._board is not None:
            return not self._board.open_roots().any()
        return self._found is not None

    @property
    def roots(self) -> tuple[int, int]:
        """Number of open root features, and number of root features."""
        return (0, 0) if self._board is None else (int(self._board.open_roots().sum()), self.data.n_features)

    # ---------------------------------------------------------------- work

    def jobs(self, busy: Container[Path]) -> Iterator[Job]:
        """Yield the jobs that could be done now, the most useful first, without `busy` ones."""
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
        """Whether a job of it was submitted or is done."""
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
        """Take the result for the region below a path from here; a repeated result is ignored."""
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
        """Whether a stored result for the region below a path is consistent with the known bounds."""
        if self._board is None or not path:
            return True
        place = place_of(self.data, path[0])
        if len(path) > 1:
            return self._side(*place).agrees(path[1:], found)
        return self._board.agrees(*place, found.lower, found.upper)

    def set_known(self, known: Beginning) -> None:
        """Take what was computed in this process, which can build its own trees."""
        start = known.start
        self._profile = Profile(start.lower, start.lower, known.tree)
        self.take((), JobResult(start.lower, start.lower, start))

    def settle(self) -> None:
        """Take the bounds of sides that are not solved, when a search is stopped.

        Not before that: the root that is chosen would depend on the order of answers.
        """
        for literal, side in self._sides.items():
            if self._board is None or side.lower is None or side.upper is None or side.solved:
                continue
            side.settle()
            self._board.absorb(*place_of(self.data, literal), side.lower, side.upper)

    # ---------------------------------------------------------------- trees

    def tree(self, leaves: int) -> DecisionTree:
        """Return a tree with the best score for a number of leaves."""
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
        """Return the bounds as a profile that can build trees."""
        assert self.lower is not None and self.upper is not None
        return Profile(self.lower, self.upper, self.tree)

    @cached_property
    def _profile(self) -> Profile:
        """The profile of a worker, computed again with its trees."""
        solver = ProfileSolver(memory_limit=self._memory_limit)
        if self._board is None:
            return solver.solve(self.data, self.depth)
        known = solver.begin(self.data, self.depth)
        assert not isinstance(known, Profile)
        return Profile(known.start.lower, known.start.lower, known.tree)


def estimated_seconds(n_features: int, depth: int) -> float:
    """Estimate the seconds of a profile; zero up to depth four, which is not divided."""
    return 0.0 if depth <= 4 else _SECONDS_PER_PASS * float(n_features) ** 4 * (2.0 * n_features) ** (depth - 4)
