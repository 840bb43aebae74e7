"""The values that callers, backends and handlers exchange.

A handler has no access to the solver. It receives a `Point`, or between points a `BoundReport`, and returns a `Reply`.
It declares beforehand, in its `Needs`, what it may request, so that the backend can set up the solver or raise an
error. The caller of a solve receives a `MipResult`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np

from accel_oct.mip.errors import HandlerError, InvalidCutError
from accel_oct.mip.model import REJECTION_TOLERANCE
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray


class Event(Enum):
    """Why a handler is called with a point."""

    CANDIDATE = "candidate"
    """An integral point that will become the incumbent unless a cut rejects it."""
    RELAXATION = "relaxation"
    """A point of a relaxation, usually fractional."""


class Validity(Enum):
    """The sense in which a cut is valid."""

    REQUIRED = "required"
    """Defines feasibility: a candidate that violates it must be rejected."""
    IMPLIED = "implied"
    """Holds for every feasible point, also under further constraints."""
    OPTIMALITY = "optimality"
    """May cut off feasible points, but all such cuts together keep one optimum."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """A batch of rows with the validity that its author guarantees, and a name for statistics.

    A batch with a `key` replaces an earlier one of the same key: the author guarantees that it is at least as tight.
    The cut loop drops the earlier rows; solvers that cannot remove rows keep them.

    OPTIMALITY cuts name the rule by which they choose the optimum that they keep (`keeps`): cuts of one rule keep the
    same optimum, while two families of cuts, each valid, may together remove every optimum.

    IMPLIED cuts that are `local` hold for every feasible point within the bounds of the `SearchNode` of the relaxation
    at which they are returned, and are used there and in the nodes below.
    """

    rows: Rows
    validity: Validity
    source: str = "cuts"
    key: str | None = None
    keeps: str | None = None
    local: bool = False

    def __post_init__(self) -> None:
        if self.local and (self.validity is not Validity.IMPLIED or self.key is not None):
            raise HandlerError(f"the cuts {self.source!r}: local cuts must be IMPLIED, and have no key")
        if (self.validity is Validity.OPTIMALITY) != bool(self.keeps):
            raise HandlerError(
                f"the cuts {self.source!r}: OPTIMALITY cuts, and only those, must name the rule by which they choose "
                f'the optimum that they keep (keeps="..."), got validity {self.validity.name} and keeps={self.keeps!r}'
            )


@dataclass(frozen=True, slots=True)
class SearchNode:
    """The node of the search tree to which a relaxation point belongs.

    Attributes
    ----------
    depth : int
        Number of branchings between the root, which has depth 0, and this node.
    lower, upper : float arrays, read-only
        Bounds of the columns of the loaded model in this node and all nodes below it. They may leave out points that
        are no better than the incumbent.
    """

    depth: int
    lower: FloatArray
    upper: FloatArray

    def contains(self, x: FloatArray) -> bool:
        """Return whether x is within the bounds."""
        return bool(np.all((x >= self.lower) & (x <= self.upper)))

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bounds = np.array(getattr(self, name), dtype=np.float64)
            bounds.flags.writeable = False
            object.__setattr__(self, name, bounds)


@dataclass(frozen=True, slots=True)
class Duals:
    """An optimal dual solution of the LP whose optimum is a relaxation point.

    Every dual is the derivative of the LP's objective by the side of its row at which the row is tight, in the units of
    the model. When maximising, a row that is tight at its upper side has a dual >= 0, and at its lower side <= 0; when
    minimising it is the other way round. So for the objective c of the model, whose direction does not change c,

        c  =  rows A  +  of_cuts C  +  columns,

    where A are the rows of the model and C those of `cuts`. A row with a dual other than 0 is tight, a column with a
    reduced cost other than 0 is at a bound of the node, and the objective is the sum of all duals times their sides
    and of all reduced costs times those bounds.

    Attributes
    ----------
    rows : float array
        One per row of the model, and of those that were added to the backend, in that order.
    columns : float array
        Reduced cost of every column of the model.
    cuts : Rows
        The other rows of the LP: cuts of the handler, rows with small coefficients multiplied by a power of two, and on
        some backends those of the solver.
    of_cuts : float array
        One per row of `cuts`.
    """

    rows: FloatArray
    columns: FloatArray
    cuts: Rows
    of_cuts: FloatArray


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the solver, with the state of the solve.

    Attributes
    ----------
    event : Event
    x : float array, read-only
        In the columns of the loaded model; integer columns of a candidate are rounded.
    objective : float
        Objective of x.
    incumbent : float or None
        Objective of the best accepted point so far.
    bound : float
        A valid bound on the optimum (``inf`` or ``-inf`` before there is one).
    seconds : float
        Time since the start of the solve.
    node : SearchNode, optional
        At relaxation points, if the needs declare `node_bounds`.
    duals : Duals, optional
        At relaxation points, if the needs declare `duals`. None where the solver has no dual solution that proves its
        optimum, which is rare.
    """

    event: Event
    x: FloatArray
    objective: float
    incumbent: float | None
    bound: float
    seconds: float
    node: SearchNode | None = None
    duals: Duals | None = None


@dataclass(frozen=True, slots=True)
class BoundReport:
    """The state of the solve, sent when bound or incumbent has changed, or after a long silence.

    Attributes
    ----------
    bound : float
        A valid bound on the optimum, in the direction of the model (``inf`` or ``-inf`` before there is one). Bounds of
        one solve only tighten, up to rounding.
    incumbent : float or None
        Objective of the best accepted point so far.
    nodes : int
        Nodes explored so far, if the solver reports them.
    seconds : float
        Time since the start of the solve.
    """

    bound: float
    incumbent: float | None
    nodes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """A handler's reply: cuts to add, full solutions to try, or a stop.

    The reply to a `BoundReport` can only request a stop.
    """

    cuts: tuple[Cuts, ...] = ()
    solutions: tuple[FloatArray, ...] = ()
    stop: bool = False


@dataclass(frozen=True)
class Needs:
    """What a handler may request, declared before the solve.

    Parameters
    ----------
    events : iterable of Event
        The events for which it is called.
    cuts : iterable of Validity
        The kinds of cuts it may return.
    injects : bool
        Whether it may return solutions.
    keeps : str or iterable of str
        The rules by which its OPTIMALITY cuts choose the optimum that they keep. More than one is an error: they may
        choose different optima.
    bounds : bool
        Whether it receives `BoundReport`s; it must be a `BoundListener`.
    duals : bool
        Whether relaxation points come with `Duals`.
    node_bounds : bool
        Whether relaxation points come with the depth and the column bounds of their `SearchNode`.
    local_cuts : bool
        Whether it may return local cuts; implies `node_bounds`.
    """

    events: frozenset[Event] = field(default_factory=frozenset)
    cuts: frozenset[Validity] = field(default_factory=frozenset)
    injects: bool = False
    keeps: frozenset[str] = field(default_factory=frozenset)
    bounds: bool = False
    duals: bool = False
    node_bounds: bool = False
    local_cuts: bool = False

    def __init__(
        self,
        events: Iterable[Event] = (),
        cuts: Iterable[Validity] = (),
        injects: bool = False,
        keeps: str | Iterable[str] = (),
        bounds: bool = False,
        duals: bool = False,
        node_bounds: bool = False,
        local_cuts: bool = False,
    ) -> None:
        object.__setattr__(self, "events", frozenset(events))
        object.__setattr__(self, "cuts", frozenset(cuts))
        object.__setattr__(self, "injects", injects)
        object.__setattr__(self, "keeps", frozenset([keeps] if isinstance(keeps, str) else keeps))
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "duals", duals)
        object.__setattr__(self, "node_bounds", node_bounds or local_cuts)
        object.__setattr__(self, "local_cuts", local_cuts)

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.events | other.events,
            self.cuts | other.cuts,
            self.injects or other.injects,
            self.keeps | other.keeps,
            self.bounds or other.bounds,
            self.duals or other.duals,
            self.node_bounds or other.node_bounds,
            self.local_cuts or other.local_cuts,
        )


class Handler(Protocol):
    """Separates cuts and proposes solutions; called by a backend during a solve."""

    @property
    def needs(self) -> Needs:
        """The declared needs, read once before the solve."""
        ...

    def __call__(self, point: Point) -> Reply | None: ...


class BoundListener(Handler, Protocol):
    """A handler that declares ``Needs(bounds=True)``.

    `on_bound` is called with the first bound or incumbent, with every later change (with fewer if it is slow, see
    `ReportGate`), always with the last, and occasionally without a change.
    """

    def on_bound(self, report: BoundReport) -> Reply | None:
        """Receive a report; return None, or a reply that stops the solve."""
        ...


@dataclass(frozen=True)
class FunctionHandler:
    """A handler made of functions: one for points, and one for bounds if the needs declare them."""

    function: Callable[[Point], Reply | None]
    needs: Needs
    on_bound: Callable[[BoundReport], Reply | None] | None = None

    def __call__(self, point: Point) -> Reply | None:
        return self.function(point)


#: A cut that an accepted solution violates by more than this, far beyond rounding errors, is invalid.
CONTRADICTION_TOLERANCE = 1e-3


def check_reply(reply: Reply | None, needs: Needs, n_columns: int, event: Event | None) -> None:
    """Raise `HandlerError` or `ModelError` unless the needs allow the reply to an event; None is a bound."""
    if reply is None:
        return
    if not isinstance(reply, Reply):
        raise HandlerError(f"a handler must return a Reply or None, got {type(reply).__name__}")
    if event is None and (reply.cuts or reply.solutions):
        raise HandlerError("the handler replied to a bound with cuts or solutions; only a stop is allowed there")
    for batch in reply.cuts:
        if batch.validity not in needs.cuts:
            raise HandlerError(
                f"the handler returned {batch.validity.name} cuts ({batch.source!r}), which its needs do not declare"
            )
        if batch.keeps is not None and batch.keeps not in needs.keeps:
            raise HandlerError(
                f"the OPTIMALITY cuts {batch.source!r} keep an optimum by the rule {batch.keeps!r}, "
                f"which the handler's needs do not declare"
            )
        if batch.local and not needs.local_cuts:
            raise HandlerError(f"the cuts {batch.source!r} are local, which the handler's needs do not declare")
        if batch.local and event is not Event.RELAXATION:
            raise HandlerError(f"the cuts {batch.source!r} are local, but a candidate belongs to no node")
        batch.rows.check(n_columns, f"cuts {batch.source!r}")
    if reply.solutions and not needs.injects:
        raise HandlerError("the handler returned solutions, but its needs do not declare `injects`")
    for solution in reply.solutions:
        if np.shape(solution) != (n_columns,):
            raise HandlerError(
                f"the handler returned a solution of shape {np.shape(solution)}; the model has {n_columns} columns"
            )


def check_against_solution(batch: Cuts, x: FloatArray, objective: float | None, *, strict: bool) -> None:
    """Raise `InvalidCutError` if the accepted solution x clearly violates a REQUIRED or IMPLIED row.

    With `strict`, the tolerance is that for candidates.
    """
    if batch.validity is Validity.OPTIMALITY:
        return
    violation = batch.rows.violation(x)
    if violation.max(initial=0.0) > (REJECTION_TOLERANCE if strict else CONTRADICTION_TOLERANCE):
        row = int(np.argmax(violation))
        raise InvalidCutError(
            f"row {row} of the {batch.validity.name} cuts {batch.source!r} cuts off a solution that was accepted "
            f"as feasible (objective {objective})"
        )


def rejects(batch: Cuts, x: FloatArray) -> bool:
    """Return whether a REQUIRED or IMPLIED batch makes a point infeasible; OPTIMALITY and local cuts never do."""
    if batch.validity is Validity.OPTIMALITY or batch.local:
        return False
    return bool(np.any(batch.rows.violation(x) > REJECTION_TOLERANCE))


class Termination(Enum):
    """Why the solve ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    """Requested by the handler."""
    SOLVER_FAILED = "solver_failed"
    """The solver failed, as the log explains; incumbent and bound from before are valid."""


class SolutionStatus(Enum):
    """Status of the returned point, whatever ended the solve."""

    NONE = "none"
    FEASIBLE = "feasible"
    OPTIMAL = "optimal"


@dataclass
class HandlerStatistics:
    """Statistics of the handler during a solve."""

    calls: dict[str, int] = field(default_factory=dict)
    """Calls by event; calls of `on_bound` are counted as ``"bound"``."""
    cuts: dict[str, int] = field(default_factory=dict)
    """Rows by source."""
    seconds: float = 0.0
    rejected_candidates: int = 0
    injections_offered: int = 0
    injections_accepted: int = 0
    injections_rejected: int = 0
    """Injected points that violated a bound, a row, integrality or a REQUIRED cut."""
    rounds: int = 0
    """Solves of the relaxed master by the cut loop; 0 on backends with native callbacks."""


class FoundSolution(NamedTuple):
    """A solution that a solve found, with its objective."""

    objective: float
    x: FloatArray


class SolutionPool:
    """The best distinct solutions that a solve accepted.

    Parameters
    ----------
    size : int
        Number of solutions to keep.
    sign : float
        1 if larger objectives are better, else -1.
    """

    def __init__(self, size: int, sign: float) -> None:
        self._size = size
        self._sign = sign
        self._kept: dict[bytes, FoundSolution] = {}

    def add(self, objective: float, x: FloatArray) -> None:
        """Keep a solution if it is among the best; of equal ones, the first are kept."""
        key = (x + 0.0).tobytes()  # + 0.0 makes -0.0 and 0.0 the same
        if key in self._kept:
            return
        self._kept[key] = FoundSolution(objective, np.array(x))
        if len(self._kept) > self._size:
            del self._kept[min(reversed(self._kept), key=lambda key: self._sign * self._kept[key].objective)]

    def best(self, incumbent: float | None) -> tuple[FoundSolution, ...]:
        """Return the solutions, best first, without those that are better than the incumbent."""
        if incumbent is None:
            return ()
        kept = [each for each in self._kept.values() if self._sign * (each.objective - incumbent) <= 0.0]
        return tuple(sorted(kept, key=lambda each: -self._sign * each.objective))


@dataclass(frozen=True)
class MipResult:
    """Result of `Backend.solve`, in the direction and units of the model.

    `solutions` are the best solutions that were found, as many as `SolveOptions.solutions` asks for, best first. They
    satisfy the model and the cuts, but there may be better ones than the second: no search for them is made.
    """

    termination: Termination
    status: SolutionStatus
    x: FloatArray | None
    objective: float | None
    bound: float
    nodes: int
    seconds: float
    statistics: HandlerStatistics
    solutions: tuple[FoundSolution, ...] = ()

    @property
    def gap(self) -> float:
        """``|bound - objective| / |objective|``; inf without a solution."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: float | None, bound: float) -> float:
    """Return the distance of bound and objective relative to the objective; 0 means proven."""
    if objective is None or not math.isfinite(bound):
        return math.inf
    if bound == objective:
        return 0.0
    return abs(bound - objective) / abs(objective) if objective else math.inf
