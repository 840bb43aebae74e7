"""The solver interface of the cut loop: LP and MIP runs with rows that are added and dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray, IntArray


class RunStatus(Enum):
    """How one LP or MIP run ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"
    """A limit or a requested stop; `bound` is valid all the same."""
    UNDECIDED = "undecided"
    """The solver's result could not be proven (`accel_oct.mip.certificates`); `bound` is valid."""


@dataclass(frozen=True, slots=True)
class EngineRun:
    """Result of one LP or MIP run; `bound` is valid for the rows it was solved with.

    The claim of an LP is checked by `multipliers`, if the engine has them: the duals of an OPTIMAL run or a dual ray
    of an INFEASIBLE one, in the order of the rows (of the model, then the cuts) and with either sign.
    """

    status: RunStatus
    x: FloatArray | None
    bound: float
    nodes: int = 0
    multipliers: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class IntegerRequest:
    """A request of the loop for one MIP run.

    The engine calls `on_solution(x, bound)` with every solution found, `on_bound(bound, nodes)` with the proven bound
    and the number of nodes so far, `should_stop()` often, and `next_injection()` whenever the solver can take a
    solution. Bounds may be repeated, and infinite while there is none.
    """

    start: FloatArray | None
    seconds: float
    nodes: int | None
    on_solution: Callable[[FloatArray, float | None], None]
    on_bound: Callable[[float, int], None]
    should_stop: Callable[[], bool]
    next_injection: Callable[[], FloatArray | None]


class LoopEngine(Protocol):
    """The interface of the cut loop to a solver. LP and MIP start with the rows of the model."""

    def solve_relaxation(self, seconds: float) -> EngineRun:
        """Solve the LP with all rows added so far, starting from its last basis."""
        ...

    def add_relaxation_rows(self, rows: Rows) -> None:
        """Add cuts to the LP."""
        ...

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        """Delete cut rows by position among the rows added so far (and not dropped)."""

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
        """Solve the MIP with all rows added to it so far."""
        ...

    def add_integer_rows(self, rows: Rows) -> None:
        """Add cuts to the MIP; they hold in every later run."""
        ...


@runtime_checkable
class BranchingEngine(LoopEngine, Protocol):
    """An engine whose LP can be re-solved cheaply with other bounds, for `BranchingSearch`."""

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the bounds of some columns of the LP."""
