"""What a solve returns: why it ended, what it found, what it proved."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from accel_oct.mip.rows import FloatArray


class Termination(Enum):
    """Why the solve ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    """The handler asked for it."""
    SOLVER_FAILED = "solver_failed"
    """The solver died on the way; what was found and proven before stands, and the log says more."""


class SolutionStatus(Enum):
    """What is known about the returned point, whatever ended the solve."""

    NONE = "none"
    FEASIBLE = "feasible"
    OPTIMAL = "optimal"


@dataclass
class HandlerStatistics:
    """What the handler did during a solve."""

    calls: dict[str, int] = field(default_factory=dict)
    """By event; those with a bound only are counted as ``"bound"``."""
    cuts: dict[str, int] = field(default_factory=dict)
    """Rows by source."""
    seconds: float = 0.0
    rejected_candidates: int = 0
    injections_offered: int = 0
    injections_accepted: int = 0
    injections_rejected: int = 0
    """Injected points that broke a bound, a row, integrality or a REQUIRED cut."""
    rounds: int = 0
    """Solves of the relaxed master by the cut loop; 0 on backends with native callbacks."""


@dataclass(frozen=True)
class MipResult:
    """Outcome of `Backend.solve`, in the model's own direction and units."""

    termination: Termination
    status: SolutionStatus
    x: FloatArray | None
    objective: float | None
    bound: float
    nodes: int
    seconds: float
    statistics: HandlerStatistics

    @property
    def gap(self) -> float:
        """``|bound - objective| / |objective|``; inf without a solution."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: float | None, bound: float) -> float:
    """Distance of bound and objective, relative to the objective; 0 means proven."""
    if objective is None or not math.isfinite(bound):
        return math.inf
    if bound == objective:
        return 0.0
    return abs(bound - objective) / abs(objective) if objective else math.inf
