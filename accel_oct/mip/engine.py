"""What the shared loops ask of a solver: LP and MIP runs, with rows that come and go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from accel_oct.mip.rows import FloatArray, IntArray, Rows


class RunStatus(Enum):
    """How one LP or MIP run ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"
    """A limit or a requested stop; `bound` is valid all the same."""
    UNDECIDED = "undecided"
    """The solver's answer could not be proven (`accel_oct.mip.certificates`); `bound` is."""


@dataclass(frozen=True, slots=True)
class Run:
    """Outcome of one LP or MIP run: `bound` is valid for the rows it was solved with.

    The claim of an LP is checked by `multipliers`, if an engine has them: the dual of every row of an OPTIMAL run, a
    dual ray of an INFEASIBLE one, in the order of the rows (the model's, then the cuts) and with either sign.
    """

    status: RunStatus
    x: FloatArray | None
    bound: float
    nodes: int = 0
    multipliers: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class IntegerRequest:
    """What the loop wants of one MIP run.

    `on_solution(x, bound)` is to be called with every solution found, `on_bound(bound, nodes)` with what the run has
    proven and how many nodes it has taken so far, `should_stop()` often, `next_injection()` whenever the solver can
    take a solution. Bounds may be repeated, and infinite while there is none.
    """

    start: FloatArray | None
    seconds: float
    nodes: int | None
    on_solution: Callable[[FloatArray, float | None], None]
    on_bound: Callable[[float, int], None]
    should_stop: Callable[[], bool]
    next_injection: Callable[[], FloatArray | None]


class LoopEngine(Protocol):
    """The little that the cut loop asks of a solver. Both problems begin with the rows of the model."""

    def solve_relaxation(self, seconds: float) -> Run:
        """Solve the LP with all rows added so far, from where it stood."""
        ...

    def add_relaxation_rows(self, rows: Rows) -> None:
        """Add cuts to the LP."""
        ...

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        """Delete cut rows by position among the rows added so far (and not dropped)."""

    def solve_integer(self, request: IntegerRequest) -> Run:
        """Solve the MIP with all rows added to it so far."""
        ...

    def add_integer_rows(self, rows: Rows) -> None:
        """Add cuts to the MIP; they hold in every later run."""
        ...


@runtime_checkable
class BranchingEngine(LoopEngine, Protocol):
    """An engine whose LP is cheap to solve again with other bounds, so that `BranchAndCut` can branch on it."""

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the bounds of some columns of the LP."""
