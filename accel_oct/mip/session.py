"""The state of one solve, and the only place where a handler is called.

Backends and the cut loop report what the solver does; the session consults the handler, checks the reply against what
was declared, vets injected solutions, and keeps incumbent, bound, history and statistics. An exception in the handler
is kept, the solver is asked to stop, and the exception comes out of `Backend.solve` unchanged: raising it inside a
solver's callback is unsafe on every solver.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from dataclasses import dataclass

import numpy as np

from accel_oct.mip.errors import HandlerError, InvalidCutError
from accel_oct.mip.exchange import Cuts, Event, Handler, Needs, Point, Reply, Validity
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, REJECTION_TOLERANCE, ModelArrays
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.result import HandlerStatistics, HistoryRow, MipResult, SolutionStatus, Termination
from accel_oct.mip.rows import FloatArray, Rows

logger = logging.getLogger(__name__)

#: Bound and objective closer than this, relative to max(1, |objective|), are equal: solvers compute in floating point.
CONVERGENCE_TOLERANCE = 1e-9

#: A cut that an accepted solution violates by more than this contradicts the acceptance: far beyond any rounding.
CONTRADICTION_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Verdict:
    """What a consultation came to: the cuts to add, and whether the point must be rejected."""

    cuts: tuple[Cuts, ...] = ()
    rejected: bool = False


class SolveSession:
    """One solve: its clock, its incumbent, its bound, its handler."""

    def __init__(self, model: ModelArrays, options: SolveOptions, handler: Handler | None) -> None:
        self.model = model
        self.options = options
        self.handler = handler
        self.needs = handler.needs if handler is not None else Needs()
        self.statistics = HandlerStatistics()
        self.incumbent_x: FloatArray | None = None
        self.incumbent: float | None = None
        self.bound = model.sign * math.inf
        self.pending: deque[FloatArray] = deque()
        """Vetted injections that the solver has not been given yet."""
        self._early: list[Cuts] = []
        """Cuts that came while the start was vetted."""
        self._optimality_rows: list[Rows] = []
        self._history: list[HistoryRow] = []
        self._stop = threading.Event()
        self._stop_reason: Termination | None = None
        self._error: BaseException | None = None
        self._began = time.perf_counter()

    # ---------------------------------------------------------------- clock and stop

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

    def request_stop(self, reason: Termination) -> None:
        """Ask the solver to stop at its next opportunity; the first reason given counts."""
        if self._stop_reason is None:
            self._stop_reason = reason
        self._stop.set()

    def fail(self, error: BaseException) -> None:
        """Keep an exception for after the solve, and stop."""
        self._error = self._error or error
        self.request_stop(Termination.STOPPED)

    @property
    def failed(self) -> bool:
        """Whether an exception is being kept."""
        return self._error is not None

    # ---------------------------------------------------------------- what is known

    def better(self, value: float, than: float | None) -> bool:
        return than is None or self.model.sign * (value - than) > 0

    def accept(self, x: FloatArray) -> bool:
        """Take x as incumbent if it is the best so far; the caller vouches that it is feasible."""
        value = self.model.value(x)
        if not self.better(value, self.incumbent):
            return False
        self.incumbent, self.incumbent_x = value, np.array(x)
        self._record()
        return True

    def tighten(self, bound: float) -> None:
        """Take a bound on the optimum if it is tighter than the one known."""
        if math.isfinite(bound) and self.model.sign * (self.bound - bound) > 0:
            self.bound = bound
            self._record()

    @property
    def is_proven(self) -> bool:
        """Whether incumbent and bound are as close as was asked for."""
        if self.incumbent is None:
            return False
        allowed = max(self.options.gap * abs(self.incumbent), CONVERGENCE_TOLERANCE * max(1.0, abs(self.incumbent)))
        return self.model.sign * (self.bound - self.incumbent) <= allowed

    def _record(self) -> None:
        self._history.append(HistoryRow(self.seconds, self.incumbent, self.bound))

    # ---------------------------------------------------------------- the handler

    def wants(self, event: Event) -> bool:
        return event in self.needs.events

    def consult(self, event: Event, x: FloatArray, bound: float | None = None, cut_off: bool = False) -> Verdict:
        """Show a point to the handler and come to a verdict on it.

        `cut_off` tells that a cut of an earlier reply rejects the point, whatever the handler says now.
        A candidate that is not rejected becomes the incumbent if it is the best; solutions in the reply are vetted
        (model first, then the handler's own REQUIRED cuts) and, if they improve, become the incumbent and are queued
        for the solver.
        """
        if bound is not None:
            self.tighten(bound)
        point = self.model.rounded(x) if event is Event.CANDIDATE else np.array(x, dtype=np.float64)
        cuts, self._early = self._early, []
        cut_off = cut_off or (event is Event.CANDIDATE and any(_rejects(batch, point) for batch in cuts))
        if not self.wants(event):
            if event is Event.CANDIDATE and not cut_off:
                self.accept(point)
            return Verdict(tuple(cuts), rejected=cut_off)
        offers: deque[FloatArray] = deque()
        rejected = self._ask(event, point, cuts, offers, cut_off)
        self._vet_all(offers, cuts)
        return Verdict(tuple(cuts), rejected)

    def offer_start(self, x: FloatArray) -> None:
        """Vet a start, and what the handler proposes when it sees it; the best that is feasible is the first incumbent.

        The cuts of these replies come out with the first verdict.
        """
        offers: deque[FloatArray] = deque()
        accepted = self._vet(np.array(x), self._early, offers)
        if not accepted and self._error is None:
            logger.warning("the start is not feasible and is ignored")
        self._vet_all(offers, self._early)

    def _vet_all(self, offers: deque[FloatArray], cuts: list[Cuts]) -> None:
        """Vet proposals, and those that come while vetting them; each that improves becomes the incumbent."""
        while offers and not self.stop_requested:
            self.statistics.injections_offered += 1
            if self._vet(offers.popleft(), cuts, offers):
                self.statistics.injections_accepted += 1

    def _ask(
        self, event: Event, x: FloatArray, cuts: list[Cuts], offers: deque[FloatArray], cut_off: bool = False
    ) -> bool:
        """Call the handler once; returns whether a candidate must be rejected."""
        assert self.handler is not None
        x.flags.writeable = False
        point = Point(event, x, self.model.value(x), self.incumbent, self.bound, self.seconds)
        began = time.perf_counter()
        try:
            reply = self.handler(point)
            self._check(reply)
        except BaseException as error:  # kept, and raised again once the solver has returned
            self.fail(error)
            return True
        finally:
            statistics = self.statistics
            statistics.seconds += time.perf_counter() - began
            statistics.calls[event.value] = statistics.calls.get(event.value, 0) + 1
        if reply is None:
            if event is Event.CANDIDATE and not cut_off:
                self.accept(x)
            self.statistics.rejected_candidates += cut_off
            return cut_off
        if reply.stop:
            self.request_stop(Termination.STOPPED)
        for batch in reply.cuts:
            if batch.rows.n_rows:
                cuts.append(batch)
                if batch.validity is Validity.OPTIMALITY:
                    self._optimality_rows.append(batch.rows)
                statistics.cuts[batch.source] = statistics.cuts.get(batch.source, 0) + batch.rows.n_rows
        offers.extend(np.array(solution, dtype=np.float64) for solution in reply.solutions)
        if event is not Event.CANDIDATE:
            return False
        if cut_off or any(_rejects(batch, x) for batch in reply.cuts):
            statistics.rejected_candidates += 1
            return True
        self.accept(x)
        return False

    def _vet(self, x: FloatArray, cuts: list[Cuts], offers: deque[FloatArray]) -> bool:
        """Whether x is feasible, by the model and by the handler, and better than the incumbent."""
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
            known = any(_rejects(batch, x) for batch in cuts)  # also what the same reply has just said
            if self._ask(Event.CANDIDATE, np.array(x), cuts, further, cut_off=known):
                self.statistics.injections_rejected += 1
                return False
            offers.extend(further)  # only after an improvement: a handler that repeats itself must not loop for ever
        self.pending.append(x)
        return True

    def _check(self, reply: Reply | None) -> None:
        if reply is None:
            return
        if not isinstance(reply, Reply):
            raise HandlerError(f"a handler must return a Reply or None, got {type(reply).__name__}")
        for batch in reply.cuts:
            if batch.validity not in self.needs.cuts:
                raise HandlerError(
                    f"the handler returned {batch.validity.name} cuts ({batch.source!r}), "
                    "which its needs do not declare"
                )
            if batch.keeps is not None and batch.keeps not in self.needs.keeps:
                raise HandlerError(
                    f"the OPTIMALITY cuts {batch.source!r} keep an optimum by the rule {batch.keeps!r}, "
                    f"which the handler's needs do not declare"
                )
            batch.rows.check(self.model.n_columns, f"cuts {batch.source!r}")
            self._check_against_incumbent(batch)
        if reply.solutions and not self.needs.injects:
            raise HandlerError("the handler returned solutions, but its needs do not declare `injects`")
        for solution in reply.solutions:
            if np.shape(solution) != (self.model.n_columns,):
                raise HandlerError(
                    f"the handler returned a solution of shape {np.shape(solution)}; "
                    f"the model has {self.model.n_columns} columns"
                )

    def _check_against_incumbent(self, batch: Cuts) -> None:
        if self.incumbent_x is None or batch.validity is Validity.OPTIMALITY:
            return
        violation = batch.rows.violation(self.incumbent_x)
        allowed = REJECTION_TOLERANCE if self.options.check_cuts else CONTRADICTION_TOLERANCE
        if violation.max(initial=0.0) > allowed:
            row = int(np.argmax(violation))
            raise InvalidCutError(
                f"row {row} of the {batch.validity.name} cuts {batch.source!r} cuts off a solution that was accepted "
                f"as feasible (objective {self.incumbent})"
            )

    # ---------------------------------------------------------------- the end

    def nothing_left(self) -> Termination:
        """The solver has shown that no point satisfies the model and the cuts; what that means.

        Neither cuts that hold for every feasible point nor cuts that keep an optimum can do that once a feasible
        point is known.
        """
        if self.incumbent is None or self.failed:
            return Termination.INFEASIBLE
        raise InvalidCutError(
            f"no point satisfies all cuts, although one with objective {self.incumbent} was accepted as feasible: "
            "some cut is invalid, or OPTIMALITY cuts keep different optima"
        )

    def rows_to_reconcile(self) -> Rows | None:
        """OPTIMALITY rows that the incumbent is outside of although it is called optimal; None: nothing to reconcile.

        They are right if they keep *another* optimum. Together with the rows of the model and a row that asks for the
        incumbent's value, they must leave something.
        """
        if self.incumbent_x is None or not self._optimality_rows or not self.is_proven or self.failed:
            return None
        rows = Rows.concatenate(self._optimality_rows)
        if not np.any(rows.violation(self.incumbent_x) > FEASIBILITY_TOLERANCE):
            return None
        assert self.incumbent is not None
        used = np.flatnonzero(self.model.objective)
        limit = self.incumbent - self.model.sign * REJECTION_TOLERANCE * max(1.0, abs(self.incumbent))
        side = {"lower": limit} if self.model.sign > 0 else {"upper": limit}
        as_good = Rows.single(used, self.model.objective[used], **side)
        return Rows.concatenate([self.model.rows, rows, as_good])

    def result(self, termination: Termination, nodes: int) -> MipResult:
        """Close the session; raises what the handler raised."""
        if self._error is not None:
            raise self._error
        if self.is_proven and self.options.gap == 0.0:
            termination = Termination.OPTIMAL
        elif self._stop_reason is not None and termination is not Termination.OPTIMAL:
            termination = self._stop_reason
        if termination is Termination.OPTIMAL and self.incumbent is not None:
            self._check_bound(self.incumbent)
        if termination is Termination.INFEASIBLE and self.incumbent is None:
            self.bound = -self.model.sign * math.inf
        if self.incumbent is None:
            status = SolutionStatus.NONE
        elif termination is Termination.OPTIMAL:
            status = SolutionStatus.OPTIMAL
        else:
            status = SolutionStatus.FEASIBLE
        self._record()
        return MipResult(
            termination=termination,
            status=status,
            x=self.incumbent_x,
            objective=self.incumbent,
            bound=self.bound,
            nodes=nodes,
            seconds=self.seconds,
            history=tuple(self._history),
            statistics=self.statistics,
        )

    def _check_bound(self, incumbent: float) -> None:
        excess = self.model.sign * (incumbent - self.bound)
        if excess <= 0:
            return
        if excess > FEASIBILITY_TOLERANCE * max(1.0, abs(incumbent)):
            raise InvalidCutError(
                f"the solver proved the bound {self.bound}, but a feasible solution has objective {incumbent}: "
                "some cut removed it. Solve again with check_cuts=True to find out which."
            )
        self.bound = incumbent


def _rejects(batch: Cuts, x: FloatArray) -> bool:
    """OPTIMALITY cuts do not make a point infeasible; the others do."""
    return batch.validity is not Validity.OPTIMALITY and bool(np.any(batch.rows.violation(x) > REJECTION_TOLERANCE))
