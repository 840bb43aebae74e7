"""A backend without a solver, for unit tests of handlers.

It either passes a script of points and bounds to the handler and records the replies, or solves a tiny pure-binary
model by enumeration. Its capabilities are switches, so that a handler can be tested without any of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_oct.mip import (
    FEASIBILITY_TOLERANCE,
    Backend,
    BoolArray,
    BoundReport,
    Capabilities,
    CutLoop,
    Duals,
    EngineRun,
    Event,
    FloatArray,
    FunctionHandler,
    Handler,
    IntArray,
    IntegerRequest,
    MipResult,
    ModelArrays,
    Point,
    Reply,
    Rows,
    RunStatus,
    SearchNode,
    SolveOptions,
    SolveSession,
    Support,
    Termination,
    UnsupportedError,
)

logger = logging.getLogger(__name__)

MAX_COLUMNS = 20

_NATIVE = Capabilities(
    lazy_rows=Support.NATIVE,
    injection=Support.NATIVE,
    start=Support.NATIVE,
    branch_priorities=Support.NATIVE,
    log=Support.NATIVE,
    continuous_columns=Support.NO,
)
_SCRIPTED = replace(
    _NATIVE,
    user_cuts=Support.NATIVE,
    relaxation_points=Support.NATIVE,
    duals=Support.NATIVE,
    node_bounds=Support.NATIVE,
    local_cuts=Support.NATIVE,
    continuous_columns=Support.NATIVE,
)


@dataclass(frozen=True)
class ScriptedPoint:
    """A point to pass to the handler; node and duals are passed on if its needs declare them."""

    event: Event
    x: FloatArray
    node: SearchNode | None = None
    duals: Duals | None = None


@dataclass(frozen=True)
class ScriptedBound:
    """A bound to report to the handler."""

    bound: float


#: A step of a script: a point, its two fields, or a bound.
Step = ScriptedPoint | tuple[Event, FloatArray] | float


def _step(item: Step) -> ScriptedPoint | ScriptedBound:
    if isinstance(item, ScriptedPoint):
        return item
    return ScriptedPoint(*item) if isinstance(item, tuple) else ScriptedBound(float(item))


class MockBackend(Backend):
    """A backend that plays a script or enumerates points; see the module docstring.

    Parameters
    ----------
    script : iterable of (Event, x), ScriptedPoint or float, optional
        Points and bounds, in order. Without a script the model is solved by enumeration.
    **switches : Support
        Capabilities to change, such as ``injection=Support.NO``. With ``lazy_rows=Support.EMULATED`` the enumeration
        runs inside the shared cut loop.

    Attributes
    ----------
    points : list of Point
        The points of the last solve, in order.
    replies : list of Reply or None
        The replies to them.
    reports : list of BoundReport
        The reports between points.
    """

    name = "mock"
    capabilities = _NATIVE

    def __init__(self, script: Iterable[Step] | None = None, **switches: Any) -> None:
        super().__init__()
        self.script = None if script is None else [_step(item) for item in script]
        self.capabilities = replace(_NATIVE if script is None else _SCRIPTED, **switches)
        self.points: list[Point] = []
        self.replies: list[Reply | None] = []
        self.reports: list[BoundReport] = []

    def _accept(self, arrays: ModelArrays) -> None:
        if self.script is None:
            _check_enumerable(arrays)
        super()._accept(arrays)

    def solve(self, options: SolveOptions | None = None, handler: Handler | None = None) -> MipResult:
        self.points, self.replies, self.reports = [], [], []
        return super().solve(options, None if handler is None else self._recorded(handler))

    def _recorded(self, handler: Handler) -> Handler:
        def record(point: Point) -> Reply | None:
            self.points.append(point)
            reply = handler(point)
            self.replies.append(reply)
            return reply

        on_bound: Callable[[BoundReport], Reply | None] | None = getattr(handler, "on_bound", None)
        if on_bound is None:
            return FunctionHandler(record, handler.needs)

        def record_bound(report: BoundReport) -> Reply | None:
            self.reports.append(report)
            return on_bound(report)

        return FunctionHandler(record, handler.needs, record_bound)

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        if self.script is not None:
            return self._play(session, self.script)
        engine = _BinaryEnumeration(session)
        if self.capabilities.lazy_rows is Support.EMULATED:
            return CutLoop(session, engine).run()
        return engine.branch_and_cut()

    def _play(self, session: SolveSession, script: list[ScriptedPoint | ScriptedBound]) -> tuple[Termination, int]:
        for step in script:
            if session.stop_requested:
                return Termination.STOPPED, 0
            if isinstance(step, ScriptedBound):
                session.report(step.bound)
            else:
                node = step.node if session.needs.node_bounds else None
                duals = step.duals if session.needs.duals else None
                session.consult(step.event, np.asarray(step.x, dtype=np.float64), node=node, duals=duals)
        return Termination.NODE_LIMIT, 0  # a script proves nothing


def _check_enumerable(model: ModelArrays) -> None:
    if model.n_columns > MAX_COLUMNS:
        raise UnsupportedError(
            f"backend 'mock' enumerates at most {MAX_COLUMNS} columns, the model has {model.n_columns}"
        )
    if np.any(model.lower < 0) or np.any(model.upper > 1):
        raise UnsupportedError("backend 'mock' enumerates pure-binary models only: bounds must lie within 0 and 1")


class _BinaryEnumeration:
    """All points of a tiny binary model, best first."""

    def __init__(self, session: SolveSession) -> None:
        model = session.model
        self._session = session
        count = model.n_columns
        bits = (np.arange(2**count)[:, None] >> np.arange(count)[None, :]) & 1
        points = bits.astype(np.float64)
        inside = np.all((points >= model.lower) & (points <= model.upper), axis=1)
        points = points[inside & _satisfied(model.rows, points)]
        log = session.log_stream(logger)
        if log is not None:
            log.write(f"{len(points)} of {len(inside)} points satisfy bounds and rows\n")
        self._points = points[np.argsort(-model.sign * (points @ model.objective), kind="stable")]
        self._alive = np.ones(len(self._points), dtype=bool)

    def branch_and_cut(self) -> tuple[Termination, int]:
        """Visit the points best first; the first that is not rejected is optimal."""
        session, nodes = self._session, 0
        for position, x in enumerate(self._points):
            if not self._alive[position]:
                continue
            if session.stop_requested or session.out_of_time:
                return Termination.TIME_LIMIT, nodes
            if session.options.node_limit is not None and nodes >= session.options.node_limit:
                return Termination.NODE_LIMIT, nodes
            nodes += 1
            session.report(session.model.value(x), nodes)
            if session.is_proven:
                return Termination.OPTIMAL, nodes
            if session.stop_requested:
                return Termination.STOPPED, nodes
            verdict = session.consult(Event.CANDIDATE, x)
            for cuts in verdict.cuts:
                self.add_integer_rows(cuts.rows)
            if session.stop_requested:
                return Termination.STOPPED, nodes
            if not verdict.rejected:
                return Termination.OPTIMAL, nodes
        return session.nothing_left(), nodes

    # The same enumeration as an engine of the cut loop.

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
        sign = self._session.model.sign
        alive = np.flatnonzero(self._alive)
        if not alive.size:
            return EngineRun(RunStatus.INFEASIBLE, None, -sign * np.inf)
        best = self._points[alive[0]]
        bound = self._session.model.value(best)
        if request.nodes == 0 or request.seconds <= 0 or request.should_stop():
            return EngineRun(RunStatus.LIMIT, None, bound)
        request.on_bound(bound, 0)
        if request.should_stop():
            return EngineRun(RunStatus.LIMIT, None, bound)
        request.on_solution(np.array(best), bound)
        return EngineRun(RunStatus.OPTIMAL, np.array(best), bound, 1)

    def add_integer_rows(self, rows: Rows) -> None:
        self._alive &= _satisfied(rows, self._points)

    def solve_relaxation(self, seconds: float) -> EngineRun:
        raise UnsupportedError("backend 'mock' has no relaxation to solve")

    def add_relaxation_rows(self, rows: Rows) -> None:
        raise UnsupportedError("backend 'mock' has no relaxation to solve")

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        raise UnsupportedError("backend 'mock' has no relaxation to solve")


def _satisfied(rows: Rows, points: FloatArray) -> BoolArray:
    dense = np.zeros((rows.n_rows, points.shape[1]))
    dense[rows.row_of_entry, rows.columns] = rows.values
    activity = points @ dense.T
    above = activity >= rows.lower - FEASIBILITY_TOLERANCE
    below = activity <= rows.upper + FEASIBILITY_TOLERANCE
    satisfied: BoolArray = np.all(above & below, axis=1)
    return satisfied
