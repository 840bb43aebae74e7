"""The state of one solve, and the only place where a handler is called.

Backends and the cut loop report the progress of the solver; the session calls the handler, checks injected solutions,
and keeps incumbent, bound and statistics. If the handler raises an exception, the solver is asked to stop and
`Backend.solve` raises the exception afterwards: raising it inside a solver's callback is unsafe on every solver.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from accel_oct.mip.errors import InvalidCutError
from accel_oct.mip.exchange import (
    BoundListener,
    BoundReport,
    Cuts,
    Duals,
    Event,
    Handler,
    HandlerStatistics,
    MipResult,
    Needs,
    Point,
    Reply,
    SearchNode,
    SolutionPool,
    SolutionStatus,
    Termination,
    Validity,
    check_against_solution,
    check_reply,
    rejects,
)
from accel_oct.mip.logs import LogLines, line_writer
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, ModelArrays
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray

logger = logging.getLogger(__name__)

#: Bound and objective closer than this, relative to max(1, |objective|), are equal in floating point.
CONVERGENCE_TOLERANCE = 1e-9

#: Models with more columns are not searched a second time: it would take longer than the solver did.
_MOST_COLUMNS_CHECKED = 200

#: Seconds between two checks for a requested stop.
_WATCH_INTERVAL = 0.05

#: Reports may take this share of the time since the start of the solve, and this many seconds in addition.
_SHARE = 0.05
_GRACE = 0.25
#: Changes are reported after at most this many seconds, whatever reports have taken: a proof may depend on them.
_LONGEST_PAUSE = 1.0
#: Seconds after which a report is sent without a change.
_PULSE = 0.5


class ReportGate:
    """Decides whether a report is due.

    A fast handler receives every change, even thousands per second; a slow one as many as fit into its share of the
    time. Changes that are held back are reported later.
    """

    def __init__(self, bound: float) -> None:
        self._reported: tuple[float, float | None] = (bound, None)
        self._spent = 0.0
        self._last = 0.0

    def has_news(self, bound: float, incumbent: float | None, seconds: float | None = None) -> bool:
        """Return whether this differs from the last report, or, given `seconds`, whether that was long ago."""
        if (bound, incumbent) != self._reported:
            return True
        return seconds is not None and self._last > 0.0 and seconds - self._last >= _PULSE

    def is_open(self, seconds: float) -> bool:
        """Return whether a report may be sent now."""
        return self._spent <= _GRACE + _SHARE * seconds or seconds - self._last >= _LONGEST_PAUSE

    def passed(self, report: BoundReport, seconds: float) -> None:
        """Record a report and the time when its handler returned."""
        self._reported = (report.bound, report.incumbent)
        self._spent += seconds - report.seconds
        self._last = seconds


@dataclass(frozen=True)
class Verdict:
    """Result of a consultation: the cuts to add, whether the point must be rejected, and cuts for this node alone."""

    cuts: tuple[Cuts, ...] = ()
    rejected: bool = False
    local: tuple[Cuts, ...] = ()

    def violated_local(self, x: FloatArray) -> Rows:
        """Return the rows for this node that x violates: a solver that is given others shows the same point again."""
        rows = Rows.concatenate([batch.rows for batch in self.local])
        return rows.take(rows.violation(x) > FEASIBILITY_TOLERANCE)


class SolveSession:
    """One solve: clock, incumbent, bound and handler."""

    def __init__(self, model: ModelArrays, options: SolveOptions, handler: Handler | None) -> None:
        self._began = time.perf_counter()
        self._stop = threading.Event()
        self._stop_reason: Termination | None = None
        self._error: BaseException | None = None
        self.model = model
        self.options = options
        self.handler = handler
        self.needs = handler.needs if handler is not None else Needs()
        self.statistics = HandlerStatistics()
        self.incumbent_x: FloatArray | None = None
        self.incumbent: float | None = None
        self.found = SolutionPool(options.solutions, model.sign)
        self.bound = model.sign * math.inf
        self.pending: deque[FloatArray] = deque()
        """Checked injections that the solver has not received yet."""
        self._early: list[Cuts] = []
        """Cuts that came while the start was checked."""
        self.optimality_rows: list[Rows] = []
        """Rows of all OPTIMALITY cuts so far."""
        self.is_checked = False
        """Whether claims rest on checked LPs and not on a MIP solver."""
        self.is_small = model.n_columns <= _MOST_COLUMNS_CHECKED
        """Whether a MIP solver's claim about this model can be checked."""
        self.is_uneven = self.is_small and model.rows.is_uneven
        """Whether tolerances may decide the result, so that no claim of a MIP solver is used unchecked."""
        self.is_suspect = self.is_uneven
        """Whether a MIP solver's claim is checked: for uneven models, and for solvers of the cut loop."""
        self.is_checking = False
        """Whether this is the second search of the model: bounds start anew and are not reported."""
        self.cuts: list[Cuts] = []
        """All cuts so far, if the model is small."""
        self.nodes = 0  # reported by the solver
        self._gate = ReportGate(self.bound)

    # ---------------------------------------------------------------- time and stops

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def seconds_left(self) -> float:
        limit = self.options.time_limit
        return math.inf if limit is None else max(limit - self.seconds, 0.0)

    @property
    def out_of_time(self) -> bool:
        return self.seconds_left <= 0.0

    @property
    def stop_requested(self) -> bool:
        return self._stop.is_set()

    @property
    def stop_reason(self) -> Termination | None:
        return self._stop_reason

    def request_stop(self, reason: Termination) -> None:
        """Ask the solver to stop at its next opportunity; the first reason is kept."""
        if self._stop_reason is None:
            self._stop_reason = reason
        self._stop.set()

    @contextmanager
    def forwarding_stops(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Inside the block, a second thread calls `interrupt` repeatedly once a stop is requested."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(_WATCH_INTERVAL):
                if self.stop_requested:
                    interrupt()

        watcher = threading.Thread(target=watch, name="accel_oct-watch", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def fail(self, error: BaseException) -> None:
        """Store an exception until the solver has returned, and stop."""
        self._error = self._error or error
        self.request_stop(Termination.STOPPED)

    @property
    def failed(self) -> bool:
        """Whether an exception is stored."""
        return self._error is not None

    def raise_stored(self) -> None:
        """Raise the stored exception, if any."""
        if self._error is not None:
            raise self._error

    # ---------------------------------------------------------------- the solver's log

    def log_stream(self, logger: logging.Logger) -> LogLines | None:
        """Return a stream for the solver's log: that of the options, or `logger` if it records DEBUG; else None."""
        log = self.options.log
        if log is None:
            enabled = logger.isEnabledFor(logging.DEBUG)
            return LogLines(lambda line: logger.debug("%s", line)) if enabled else None
        write = line_writer(log)

        def guarded(line: str) -> None:
            try:
                if not self.failed:
                    write(line)
            except BaseException as error:  # solvers call this from their own code
                self.fail(error)

        return LogLines(guarded)

    # ---------------------------------------------------------------- what is known

    def better(self, value: float, than: float | None) -> bool:
        return than is None or self.model.sign * (value - than) > 0

    def accept(self, x: FloatArray) -> bool:
        """Make x the incumbent if it is the best so far; it must be feasible."""
        value = self.model.value(x)
        self.found.add(value, x)
        if not self.better(value, self.incumbent):
            return False
        self.incumbent, self.incumbent_x = value, np.array(x)
        return True

    def tighten(self, bound: float) -> None:
        """Use a bound on the optimum if it is tighter than the known one."""
        if math.isfinite(bound) and self.model.sign * (self.bound - bound) > 0:
            self.bound = bound

    @property
    def is_proven(self) -> bool:
        """Whether incumbent and bound are within the requested gap."""
        if self.incumbent is None:
            return False
        allowed = max(self.options.gap * abs(self.incumbent), CONVERGENCE_TOLERANCE * max(1.0, abs(self.incumbent)))
        return self.model.sign * (self.bound - self.incumbent) <= allowed

    def is_bound_close(self, value: float) -> bool:
        """Return whether the bound proves a value, up to the requested gap and the tolerance of solvers."""
        allowed = self.options.gap * abs(value) + FEASIBILITY_TOLERANCE * max(1.0, abs(value))
        return self.model.sign * (self.bound - value) <= allowed

    @property
    def is_doubtful(self) -> bool:
        """Whether the solver's claim remains to be checked."""
        return self.is_suspect and not self.is_checked

    @property
    def _hides_bounds(self) -> bool:
        return self.is_checking or (self.is_uneven and not self.is_checked)

    def distrust(self) -> None:
        """Discard bound and incumbent: from now on checked LPs decide.

        A point accepted by a solver may violate rows by its tolerance, and be better than any feasible point.
        """
        self.is_checked, self.is_checking, self.bound = True, True, self.model.sign * math.inf
        self.incumbent = self.incumbent_x = None
        self.found = SolutionPool(self.options.solutions, self.model.sign)

    # ---------------------------------------------------------------- the handler

    def wants(self, event: Event) -> bool:
        return event in self.needs.events

    def consult(
        self,
        event: Event,
        x: FloatArray,
        bound: float | None = None,
        cut_off: bool = False,
        node: SearchNode | None = None,
        duals: Duals | None = None,
    ) -> Verdict:
        """Call the handler with a point and return the verdict.

        With `cut_off`, a cut of an earlier reply rejects the point, whatever the handler replies now. `node` and
        `duals` are those of a relaxation, given if the needs declare them.
        A candidate that is not rejected becomes the incumbent if it is the best. Solutions in the reply are checked
        (by the model, then by the handler's own REQUIRED cuts); those that improve become the incumbent and are queued
        for the solver. Changes are reported.
        """
        if bound is not None:
            self.tighten(bound)
        verdict = self._judge(event, x, cut_off, node, duals)
        self.report()
        return verdict

    def _judge(
        self, event: Event, x: FloatArray, cut_off: bool, node: SearchNode | None, duals: Duals | None
    ) -> Verdict:
        point = self.model.rounded(x) if event is Event.CANDIDATE else np.array(x, dtype=np.float64)
        cuts, self._early = self._early, []
        cut_off = cut_off or (event is Event.CANDIDATE and any(rejects(batch, point) for batch in cuts))
        if not self.wants(event):
            if event is Event.CANDIDATE and not cut_off:
                self.accept(point)
            return Verdict(tuple(cuts), rejected=cut_off)
        offers: deque[FloatArray] = deque()
        rejected = self._call_handler(event, point, cuts, offers, cut_off, node, duals)
        self._vet_all(offers, cuts)
        everywhere = tuple(batch for batch in cuts if not batch.local)
        return Verdict(everywhere, rejected, tuple(batch for batch in cuts if batch.local))

    def offer_start(self, x: FloatArray, *, is_found: bool = False) -> None:
        """Check a start and the solutions that the handler proposes for it; the best becomes the first incumbent.

        The cuts of these replies are part of the first verdict. A solution of the last solve (`is_found`) may have
        become infeasible.
        """
        offers: deque[FloatArray] = deque()
        accepted = self._vet(np.array(x), self._early, offers)
        if not (accepted or self.failed or is_found):
            logger.warning("the start is infeasible and is ignored")
        self.report()
        self._vet_all(offers, self._early)
        self.report()

    def _vet_all(self, offers: deque[FloatArray], cuts: list[Cuts]) -> None:
        """Check proposals, and those of the replies to them; each that improves becomes the incumbent."""
        while offers and not self.stop_requested:
            self.statistics.injections_offered += 1
            if self._vet(offers.popleft(), cuts, offers):
                self.statistics.injections_accepted += 1

    def _call_handler(
        self,
        event: Event,
        x: FloatArray,
        cuts: list[Cuts],
        offers: deque[FloatArray],
        cut_off: bool = False,
        node: SearchNode | None = None,
        duals: Duals | None = None,
    ) -> bool:
        """Call the handler once; return whether a candidate must be rejected."""
        assert self.handler is not None
        x.flags.writeable = False
        bound = self.model.sign * math.inf if self._hides_bounds else self.bound
        point = Point(event, x, self.model.value(x), self.incumbent, bound, self.seconds, node, duals)
        began = time.perf_counter()
        try:
            reply = self.handler(point)
            self._check(reply, event, node)
        except BaseException as error:  # raised again after the solver has returned
            self.fail(error)
            return True
        finally:
            self._count(event.value, began)
        statistics = self.statistics
        if reply is None:
            if event is Event.CANDIDATE and not cut_off:
                self.accept(x)
            statistics.rejected_candidates += cut_off
            return cut_off
        if reply.stop:
            self.request_stop(Termination.STOPPED)
        received = [replace(batch, rows=batch.rows.scaled_up()) for batch in reply.cuts]
        for batch in received:
            if batch.rows.n_rows:
                cuts.append(batch)
                self._remember(batch)
                if batch.validity is Validity.OPTIMALITY:
                    self.optimality_rows.append(batch.rows)
                statistics.cuts[batch.source] = statistics.cuts.get(batch.source, 0) + batch.rows.n_rows
        offers.extend(np.array(solution, dtype=np.float64) for solution in reply.solutions)
        if event is not Event.CANDIDATE:
            return False
        if cut_off or any(rejects(batch, x) for batch in received):
            statistics.rejected_candidates += 1
            return True
        self.accept(x)
        return False

    def _remember(self, batch: Cuts) -> None:
        if self.is_small:
            if not batch.local:
                self.cuts.append(batch)
            self.is_uneven = self.is_uneven or batch.rows.is_uneven
            self.is_suspect = self.is_suspect or self.is_uneven

    def _vet(self, x: FloatArray, cuts: list[Cuts], offers: deque[FloatArray]) -> bool:
        """Return whether x is feasible for the model and the handler, and better than the incumbent."""
        if not self.model.is_feasible(x):
            self.statistics.injections_rejected += 1
            return False
        x = self.model.rounded(x)
        if not self.better(self.model.value(x), self.incumbent):
            return False
        if not self.wants(Event.CANDIDATE):
            self.accept(x)
        else:
            further: deque[FloatArray] = deque()
            known = any(rejects(batch, x) for batch in cuts)  # includes the cuts of the same reply
            if self._call_handler(Event.CANDIDATE, np.array(x), cuts, further, cut_off=known):
                self.statistics.injections_rejected += 1
                return False
            offers.extend(further)  # only after an improvement, so that a repetitive handler does not loop for ever
        self.pending.append(x)
        return True

    def _check(self, reply: Reply | None, event: Event, node: SearchNode | None) -> None:
        check_reply(reply, self.needs, self.model.n_columns, event)
        if reply is not None and self.incumbent_x is not None:
            for batch in reply.cuts:
                if batch.local and not (node is not None and node.contains(self.incumbent_x)):
                    continue
                check_against_solution(batch, self.incumbent_x, self.incumbent, strict=self.options.check_cuts)

    def _count(self, what: str, began: float) -> None:
        self.statistics.seconds += time.perf_counter() - began
        self.statistics.calls[what] = self.statistics.calls.get(what, 0) + 1

    # ---------------------------------------------------------------- bounds between points

    def report(self, bound: float | None = None, nodes: int = 0) -> None:
        """Use a bound on the optimum, and report changes to a handler that wants bounds.

        Call often, and only where the solver can be asked to stop afterwards.
        """
        if bound is not None:
            self.tighten(bound)
        self.nodes = self.nodes if self.is_checking else max(self.nodes, nodes)
        if (
            self.needs.bounds
            and not self._hides_bounds
            and not self.stop_requested
            and self._gate.is_open(self.seconds)
        ):
            self._send_report()

    def _send_report(self, *, last: bool = False) -> None:
        # Rounding may put the bound on the wrong side of the incumbent.
        bound = self.bound if self.better(self.bound, self.incumbent) else cast(float, self.incumbent)
        if not self._gate.has_news(bound, self.incumbent, None if last else self.seconds):
            return
        report = BoundReport(bound, self.incumbent, self.nodes, self.seconds)
        began = time.perf_counter()
        try:
            reply = cast(BoundListener, self.handler).on_bound(report)
            check_reply(reply, self.needs, self.model.n_columns, None)
        except BaseException as error:  # as in `_call_handler`
            self.fail(error)
            return
        finally:
            self._count("bound", began)
            self._gate.passed(report, self.seconds)
        if reply is not None and reply.stop:
            self.request_stop(Termination.STOPPED)

    # ---------------------------------------------------------------- the end

    def nothing_left(self) -> Termination:
        """Return INFEASIBLE when no point satisfies the model and the cuts; raise if a feasible point is known.

        Neither cuts that hold for every feasible point nor cuts that keep an optimum can exclude all points then.
        """
        if self.incumbent is None or self.failed or self.is_doubtful:
            return Termination.INFEASIBLE
        raise InvalidCutError(
            f"no point satisfies all cuts, although one with objective {self.incumbent} was accepted as feasible: "
            "some cut is invalid, or OPTIMALITY cuts keep different optima"
        )

    def result(self, termination: Termination, nodes: int) -> MipResult:
        """Close the session with a last report, if anything changed; raises the stored exception, if any."""
        self.raise_stored()
        if self.is_proven and self.options.gap == 0.0:
            termination = Termination.OPTIMAL
        elif self.stop_reason is not None and termination is not Termination.OPTIMAL:
            termination = self.stop_reason
        if termination is Termination.OPTIMAL and self.incumbent is not None:
            self._check_bound(self.incumbent)
            if not self.is_bound_close(self.incumbent):
                logger.warning(
                    "the solver reports an optimum, but its bound %s does not prove %s", self.bound, self.incumbent
                )
                termination = Termination.SOLVER_FAILED
        if self.needs.bounds:
            self.nodes = max(self.nodes, nodes)
            self._send_report(last=True)
            self.raise_stored()
        if termination is Termination.INFEASIBLE and self.incumbent is None:
            self.bound = -self.model.sign * math.inf
        if self.incumbent is None:
            status = SolutionStatus.NONE
        elif termination is Termination.OPTIMAL:
            status = SolutionStatus.OPTIMAL
        else:
            status = SolutionStatus.FEASIBLE
        return MipResult(
            termination=termination,
            status=status,
            x=self.incumbent_x,
            objective=self.incumbent,
            bound=self.bound,
            nodes=nodes,
            seconds=self.seconds,
            statistics=self.statistics,
            solutions=self.found.best(self.incumbent),
        )

    def _check_bound(self, incumbent: float) -> None:
        excess = self.model.sign * (incumbent - self.bound)
        if excess <= 0:
            return
        # Rounding the integer columns of a point accepted by a solver may gain this much.
        rounding = float(np.abs(self.model.objective[self.model.integer]).sum())
        if excess > FEASIBILITY_TOLERANCE * max(1.0, abs(incumbent), rounding):
            raise InvalidCutError(
                f"the solver proved the bound {self.bound}, but a feasible solution has objective {incumbent}: "
                "some cut removed it. Solve again with check_cuts=True to find out which."
            )
        self.bound = incumbent
