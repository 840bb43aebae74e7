"""The state of one solve, and the only place where a handler is called.

Backends and the cut loop report what the solver does; the session consults the handler, vets injected solutions, and
keeps incumbent, bound and statistics. An exception in the handler is kept, the solver is asked to stop, and the
exception comes out of `Backend.solve` unchanged: raising it inside a solver's callback is unsafe on every solver.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from accel_oct.mip.control import SolveControl
from accel_oct.mip.errors import InvalidCutError
from accel_oct.mip.exchange import BoundListener, BoundReport, Cuts, Event, Handler, Needs, Point, Reply, Validity
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, ModelArrays
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.replies import check_against_solution, check_reply, check_reply_to_report, rejects
from accel_oct.mip.reporting import ReportGate
from accel_oct.mip.result import HandlerStatistics, MipResult, SolutionStatus, Termination
from accel_oct.mip.rows import FloatArray, Rows

logger = logging.getLogger(__name__)

#: Bound and objective closer than this, relative to max(1, |objective|), are equal: solvers compute in floating point.
CONVERGENCE_TOLERANCE = 1e-9

#: Models with more columns are not searched a second time: it would take longer than the solver did.
_MOST_COLUMNS_CHECKED = 200


@dataclass(frozen=True)
class Verdict:
    """What a consultation came to: the cuts to add, and whether the point must be rejected."""

    cuts: tuple[Cuts, ...] = ()
    rejected: bool = False


class SolveSession(SolveControl):
    """One solve: its clock, its incumbent, its bound, its handler."""

    def __init__(self, model: ModelArrays, options: SolveOptions, handler: Handler | None) -> None:
        super().__init__(options.time_limit)
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
        self.optimality_rows: list[Rows] = []
        """Of every OPTIMALITY cut so far."""
        self.is_checked = False
        """Whether what is claimed rests on LPs whose claims were checked, not on a MIP solver's word."""
        self.is_small = model.n_columns <= _MOST_COLUMNS_CHECKED
        """Whether a MIP solver's claim about this model can be checked."""
        self.is_uneven = self.is_small and model.rows.is_uneven
        """Whether tolerances may decide about it, so that no MIP solver is believed."""
        self.is_suspect = self.is_uneven
        """Whether a MIP solver's claim is checked: also where it comes from one that was wrong on even models."""
        self.is_checking = False
        """Whether the model is searched a second time: bounds begin anew, and nobody is told."""
        self.cuts: list[Cuts] = []
        """Every cut so far, of a small model."""
        self.nodes = 0  # as far as the solver has told
        self._gate = ReportGate(self.bound)

    # ---------------------------------------------------------------- what is known

    def better(self, value: float, than: float | None) -> bool:
        return than is None or self.model.sign * (value - than) > 0

    def accept(self, x: FloatArray) -> bool:
        """Take x as incumbent if it is the best so far; the caller vouches that it is feasible."""
        value = self.model.value(x)
        if not self.better(value, self.incumbent):
            return False
        self.incumbent, self.incumbent_x = value, np.array(x)
        return True

    def tighten(self, bound: float) -> None:
        """Take a bound on the optimum if it is tighter than the one known."""
        if math.isfinite(bound) and self.model.sign * (self.bound - bound) > 0:
            self.bound = bound

    @property
    def is_proven(self) -> bool:
        """Whether incumbent and bound are as close as was asked for."""
        if self.incumbent is None:
            return False
        allowed = max(self.options.gap * abs(self.incumbent), CONVERGENCE_TOLERANCE * max(1.0, abs(self.incumbent)))
        return self.model.sign * (self.bound - self.incumbent) <= allowed

    def is_bound_close(self, value: float) -> bool:
        """Whether the bound proves a value up to the gap that was asked for and the tolerance of a solver's bound."""
        allowed = self.options.gap * abs(value) + FEASIBILITY_TOLERANCE * max(1.0, abs(value))
        return self.model.sign * (self.bound - value) <= allowed

    @property
    def is_doubtful(self) -> bool:
        """Whether what the solver claims is still to be checked."""
        return self.is_suspect and not self.is_checked

    @property
    def _hides_bounds(self) -> bool:
        return self.is_checking or (self.is_uneven and not self.is_checked)

    def distrust(self) -> None:
        """Forget bound and incumbent: from now on LPs that are checked decide.

        A point that a solver takes may miss rows by its tolerance, and be better for it than any that misses none.
        """
        self.is_checked, self.is_checking, self.bound = True, True, self.model.sign * math.inf
        self.incumbent = self.incumbent_x = None

    # ---------------------------------------------------------------- the handler

    def wants(self, event: Event) -> bool:
        return event in self.needs.events

    def consult(self, event: Event, x: FloatArray, bound: float | None = None, cut_off: bool = False) -> Verdict:
        """Show a point to the handler and come to a verdict on it.

        `cut_off` tells that a cut of an earlier reply rejects the point, whatever the handler says now.
        A candidate that is not rejected becomes the incumbent if it is the best; solutions in the reply are vetted
        (model first, then the handler's own REQUIRED cuts) and, if they improve, become the incumbent and are queued
        for the solver. What has changed is reported.
        """
        if bound is not None:
            self.tighten(bound)
        verdict = self._judge(event, x, cut_off)
        self.report()
        return verdict

    def _judge(self, event: Event, x: FloatArray, cut_off: bool) -> Verdict:
        point = self.model.rounded(x) if event is Event.CANDIDATE else np.array(x, dtype=np.float64)
        cuts, self._early = self._early, []
        cut_off = cut_off or (event is Event.CANDIDATE and any(rejects(batch, point) for batch in cuts))
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
        if not accepted and not self.failed:
            logger.warning("the start is not feasible and is ignored")
        self.report()
        self._vet_all(offers, self._early)
        self.report()

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
        bound = self.model.sign * math.inf if self._hides_bounds else self.bound
        point = Point(event, x, self.model.value(x), self.incumbent, bound, self.seconds)
        began = time.perf_counter()
        try:
            reply = self.handler(point)
            self._check(reply)
        except BaseException as error:  # kept, and raised again once the solver has returned
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
            self.cuts.append(batch)
            self.is_uneven = self.is_uneven or batch.rows.is_uneven
            self.is_suspect = self.is_suspect or self.is_uneven

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
            known = any(rejects(batch, x) for batch in cuts)  # also what the same reply has just said
            if self._ask(Event.CANDIDATE, np.array(x), cuts, further, cut_off=known):
                self.statistics.injections_rejected += 1
                return False
            offers.extend(further)  # only after an improvement: a handler that repeats itself must not loop for ever
        self.pending.append(x)
        return True

    def _check(self, reply: Reply | None) -> None:
        check_reply(reply, self.needs, self.model.n_columns)
        if reply is not None and self.incumbent_x is not None:
            for batch in reply.cuts:
                check_against_solution(batch, self.incumbent_x, self.incumbent, strict=self.options.check_cuts)

    def _count(self, what: str, began: float) -> None:
        self.statistics.seconds += time.perf_counter() - began
        self.statistics.calls[what] = self.statistics.calls.get(what, 0) + 1

    # ---------------------------------------------------------------- bounds between points

    def report(self, bound: float | None = None, nodes: int = 0) -> None:
        """Take a bound on the optimum; tell the handler, if it wants bounds, what is new since it last heard.

        To be called often, and only where the solver can be asked to stop afterwards.
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
            self._tell_news()

    def _tell_news(self, *, last: bool = False) -> None:
        # A bound that rounding has put on the wrong side of the incumbent is not passed on.
        bound = self.bound if self.better(self.bound, self.incumbent) else cast(float, self.incumbent)
        if not self._gate.has_news(bound, self.incumbent, None if last else self.seconds):
            return
        report = BoundReport(bound, self.incumbent, self.nodes, self.seconds)
        began = time.perf_counter()
        try:
            reply = cast(BoundListener, self.handler).on_bound(report)
            check_reply_to_report(reply)
        except BaseException as error:  # as in `_ask`
            self.fail(error)
            return
        finally:
            self._count("bound", began)
            self._gate.passed(report, self.seconds)
        if reply is not None and reply.stop:
            self.request_stop(Termination.STOPPED)

    # ---------------------------------------------------------------- the end

    def nothing_left(self) -> Termination:
        """The solver has shown that no point satisfies the model and the cuts; what that means.

        Neither cuts that hold for every feasible point nor cuts that keep an optimum can do that once a feasible
        point is known.
        """
        if self.incumbent is None or self.failed or self.is_doubtful:
            return Termination.INFEASIBLE
        raise InvalidCutError(
            f"no point satisfies all cuts, although one with objective {self.incumbent} was accepted as feasible: "
            "some cut is invalid, or OPTIMALITY cuts keep different optima"
        )

    def result(self, termination: Termination, nodes: int) -> MipResult:
        """Close the session with a last report, if there is news; raises what the handler raised."""
        self.raise_kept()
        if self.is_proven and self.options.gap == 0.0:
            termination = Termination.OPTIMAL
        elif self.stop_reason is not None and termination is not Termination.OPTIMAL:
            termination = self.stop_reason
        if termination is Termination.OPTIMAL and self.incumbent is not None:
            self._check_bound(self.incumbent)
            if not self.is_bound_close(self.incumbent):
                logger.warning(
                    "the solver says optimal, and its bound %s does not prove %s", self.bound, self.incumbent
                )
                termination = Termination.SOLVER_FAILED
        if self.needs.bounds:
            self.nodes = max(self.nodes, nodes)
            self._tell_news(last=True)
            self.raise_kept()
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
        )

    def _check_bound(self, incumbent: float) -> None:
        excess = self.model.sign * (incumbent - self.bound)
        if excess <= 0:
            return
        # Rounding the integer columns of a point that a solver takes may gain this much.
        rounding = float(np.abs(self.model.objective[self.model.integer]).sum())
        if excess > FEASIBILITY_TOLERANCE * max(1.0, abs(incumbent), rounding):
            raise InvalidCutError(
                f"the solver proved the bound {self.bound}, but a feasible solution has objective {incumbent}: "
                "some cut removed it. Solve again with check_cuts=True to find out which."
            )
        self.bound = incumbent
