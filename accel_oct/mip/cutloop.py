"""Lazy cuts for solvers without a callback for them: solve, separate, add, solve again.

Relaxation phase: the LP is re-solved warm while the handler separates fractional points; rows that stay slack are
dropped from the LP, but kept in the pool. Integer phase: if the engine can branch, and there may be cuts or branch
priorities, `BranchingSearch` continues from there. Otherwise the relaxed master is solved as a MIP; the handler sees
*every* solution that the solver reports, and the run is stopped once a rejected solution shows that continuing would
prove little. A run proves a bound on the relaxed master; only points accepted by the handler become incumbents.

Claims about LPs are checked (`accel_oct.mip.certificates`). If a MIP solver reports "infeasible", or "optimal" with a
bound that does not prove it, branch and cut over checked LPs decides (`decide`). Small models are searched a second
time that way (`decide_again`): all models that this loop gave to a MIP solver, and on every backend those with
coefficients close to the tolerances of solvers.

A backend provides a `LoopEngine`, or better a `BranchingEngine`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from accel_oct.mip.branching import NO_PROGRESS, BranchingSearch
from accel_oct.mip.certificates import ScipyEngine
from accel_oct.mip.engine import BranchingEngine, EngineRun, IntegerRequest, LoopEngine, RunStatus
from accel_oct.mip.errors import SolverError
from accel_oct.mip.exchange import Event, Termination
from accel_oct.mip.model import FEASIBILITY_TOLERANCE
from accel_oct.mip.relaxation import CutPool, CutRelaxation
from accel_oct.mip.session import SolveSession
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray

#: The relaxation phase ends when this many rounds in a row close less than `_STALL_SHARE` of the gap.
_STALL_ROUNDS = 20
_STALL_SHARE = 1e-4
#: A rejected solution ends an integer run once it closes this share of the gap between bound and incumbent.
_RESTART_SHARE = 0.5
#: Node limit for proving or refuting a MIP solver's claim.
_NODES_TO_DECIDE = 10_000
#: Node limit for confirming a claim only because the model is small.
_NODES_TO_CONFIRM = 100


class CutLoop:
    """One solve by repeated runs; see the module docstring."""

    def __init__(self, session: SolveSession, engine: LoopEngine, pool: CutPool | None = None) -> None:
        self.session = session
        self.engine = engine
        self.pool = CutPool(session.model.n_columns, session.options.seed) if pool is None else pool
        self.relaxation = CutRelaxation(session, engine, self.pool)
        self.nodes = 0

    def run(self) -> tuple[Termination, int]:
        """Run both phases; returns the reason of the end and the number of nodes."""
        session = self.session
        session.is_checked = True
        if not session.model.integer.any():
            return self._relaxation_phase(), self.nodes
        active = np.empty(0, dtype=np.int64)
        if session.wants(Event.RELAXATION):
            termination, active = self._strengthen()
            if termination is not None:
                return termination, self.nodes
        needs = session.needs
        wanted = bool(needs.cuts) or needs.duals or needs.node_bounds or session.options.branch_priorities is not None
        if wanted and isinstance(self.engine, BranchingEngine):
            branching = BranchingSearch(session, self.pool, self.relaxation, session.options.node_limit)
            termination = branching.run()
            self.nodes += branching.nodes
            if termination is not Termination.UNBOUNDED:
                return termination, self.nodes
        termination = self._integer_phase(active)
        return decide_again(session, termination, self.pool, self._own_relaxation), self.nodes

    @property
    def _own_relaxation(self) -> CutRelaxation | None:
        """The LP of the engine, if the engine can branch."""
        return self.relaxation if isinstance(self.engine, BranchingEngine) else None

    def _limit(self) -> Termination | None:
        if self.session.stop_requested:
            return Termination.STOPPED  # the session knows the true reason
        return Termination.TIME_LIMIT if self.session.out_of_time else None

    # ---------------------------------------------------------------- relaxation phase

    def _relaxation_phase(self) -> Termination:
        """Solve a model without integer columns: every optimum of the LP is a candidate."""
        while True:
            limit = self._limit()
            if limit is not None:
                return limit
            run = self.relaxation.solve()
            if run.status is RunStatus.INFEASIBLE:
                return self.session.nothing_left()
            if run.status is not RunStatus.OPTIMAL or run.x is None:
                return self._limit() or _ended(run.status)
            verdict = self.session.consult(Event.CANDIDATE, run.x, run.bound)
            if not verdict.rejected:
                return self._limit() or (Termination.OPTIMAL if self._is_optimal(run) else Termination.SOLVER_FAILED)
            new = self.pool.add(verdict.cuts)
            if not new.size:
                raise SolverError(NO_PROGRESS)
            self.relaxation.add(new)

    def _is_optimal(self, run: EngineRun) -> bool:
        """Return whether the proven bound of an LP equals the value of its point."""
        model = self.session.model
        value = math.nan if run.x is None else model.value(run.x)
        return model.sign * (run.bound - value) <= FEASIBILITY_TOLERANCE * max(1.0, abs(value))

    def _strengthen(self) -> tuple[Termination | None, IntArray]:
        """Tighten the LP until no row is violated; returns the rows that are tight at the end."""
        session, relaxation = self.session, self.relaxation
        stalled, last_bound = 0, math.nan
        while True:
            limit = self._limit()
            if limit is not None:
                return limit, relaxation.present
            run = relaxation.solve()
            if run.status is RunStatus.INFEASIBLE:
                return session.nothing_left(), relaxation.present
            if run.status is not RunStatus.OPTIMAL or run.x is None:
                return None, relaxation.present  # unbounded or out of time: left to the integer phase
            session.report(run.bound)
            if session.is_proven:
                return Termination.OPTIMAL, relaxation.present
            if session.stop_requested:
                return Termination.STOPPED, relaxation.present
            candidate = session.model.is_integral(run.x)
            if candidate:
                cut_off = self.pool.rules_out(session.model, run.x)
                verdict = session.consult(Event.CANDIDATE, run.x, cut_off=cut_off)
            else:
                verdict = relaxation.consult(run, run.x)
            if session.is_proven:
                return Termination.OPTIMAL, relaxation.present
            self.pool.add(verdict.cuts)
            # The node is the root, with the bounds of the model: its local cuts hold everywhere.
            self.pool.add(tuple(replace(batch, local=False) for batch in verdict.local))
            stalled = stalled + 1 if self._has_stalled(last_bound) else 0
            last_bound = session.bound
            tight = relaxation.tight(run.x)
            if stalled >= _STALL_ROUNDS or not relaxation.exchange(run.x):
                return None, tight

    def _has_stalled(self, last_bound: float) -> bool:
        session = self.session
        if not math.isfinite(last_bound):
            return False
        reference = session.incumbent if session.incumbent is not None else 0.0
        return abs(last_bound - session.bound) <= _STALL_SHARE * abs(session.bound - reference)

    # ---------------------------------------------------------------- integer phase

    def _integer_phase(self, active: IntArray) -> Termination:
        session = self.session
        session.is_checked, session.is_suspect = False, session.is_small
        present = np.zeros(len(self.pool), dtype=bool)
        present[active] = True
        if active.size:
            self.engine.add_integer_rows(self.pool.rows.take(active))
        while True:
            limit = self._limit()
            if limit is not None:
                return limit
            run, progress = self._integer_run(present)
            session.statistics.rounds += 1
            self.nodes += run.nodes
            if run.status is RunStatus.INFEASIBLE:
                return self._decided_by_ourselves()
            if run.status is RunStatus.UNBOUNDED and not progress.separated:
                return Termination.UNBOUNDED
            session.report(run.bound, self.nodes)
            if session.is_proven:
                return Termination.OPTIMAL
            if run.status is RunStatus.OPTIMAL and run.x is not None and not self._is_cut_off(run.x):
                is_proven = session.incumbent is not None and session.is_bound_close(session.incumbent)
                return Termination.OPTIMAL if is_proven else self._decided_by_ourselves()
            limit = self._limit()
            if limit is not None:
                return limit
            if session.options.node_limit is not None and self.nodes >= session.options.node_limit:
                return Termination.NODE_LIMIT
            known = present
            present = self._add_violated(present, progress.separated)
            if np.count_nonzero(present) == np.count_nonzero(known):
                if run.status is RunStatus.LIMIT:  # one of the solver's own, set by a native option
                    return Termination.STOPPED
                raise SolverError(NO_PROGRESS)

    def _decided_by_ourselves(self) -> Termination:
        """Decide a MIP solver's claim that lacks a proof."""
        termination, nodes = decide(self.session, self.pool, self._own_relaxation)
        self.nodes += nodes
        return termination

    def _integer_run(self, present: BoolArray) -> tuple[EngineRun, _RunProgress]:
        session, progress = self.session, _RunProgress()

        def on_solution(x: FloatArray, bound: float | None) -> None:
            rounded = session.model.rounded(x)
            key = rounded.tobytes()
            if key in progress.reported:  # solvers report the same point repeatedly
                session.report(bound)
                return
            progress.reported.add(key)
            verdict = session.consult(Event.CANDIDATE, x, bound, cut_off=self.pool.rejects(rounded))
            self.pool.add(verdict.cuts)
            if verdict.cuts or verdict.rejected:
                progress.separated.append(rounded)
            if verdict.rejected:
                progress.restart = progress.restart or self._should_restart(session.model.value(rounded), bound)

        left = session.options.node_limit
        request = IntegerRequest(
            start=self._start(present),
            seconds=session.seconds_left,
            nodes=None if left is None else max(left - self.nodes, 0),
            on_solution=on_solution,
            on_bound=lambda bound, nodes: session.report(bound, self.nodes + nodes),
            should_stop=lambda: session.stop_requested or progress.restart or session.is_proven,
            next_injection=lambda: session.pending.popleft() if session.pending else None,
        )
        run = self.engine.solve_integer(request)
        if (
            run.x is not None
            and not (session.stop_requested and session.wants(Event.CANDIDATE))
            and session.model.rounded(run.x).tobytes() not in progress.reported
        ):
            on_solution(run.x, None)  # a solver need not report its start
        return run, progress

    def _start(self, present: BoolArray) -> FloatArray | None:
        """Return the incumbent, unless an OPTIMALITY row in the master cuts it off."""
        self.session.pending.clear()
        x = self.session.incumbent_x
        if x is None or self.pool.violated(x, among=present).size:
            return None
        return x

    def _should_restart(self, value: float, bound: float | None) -> bool:
        """Return whether this run should stop after a rejected solution of that value."""
        session = self.session
        bound = session.bound if bound is None else bound
        if session.incumbent is None or not math.isfinite(bound):
            return True
        return abs(bound - value) <= _RESTART_SHARE * abs(bound - session.incumbent)

    def _is_cut_off(self, x: FloatArray) -> bool:
        """Return whether the optimum of the relaxed master was rejected."""
        session = self.session
        if session.incumbent is None:
            return True
        excess = session.model.sign * (session.model.value(session.model.rounded(x)) - session.incumbent)
        return excess > FEASIBILITY_TOLERANCE * max(1.0, abs(session.incumbent))

    def _add_violated(self, present: BoolArray, points: list[FloatArray]) -> BoolArray:
        """Add every known row that one of the points violates to the master."""
        absent = np.ones(len(self.pool), dtype=bool)
        absent[: present.size] = ~present
        wanted = np.zeros(len(self.pool), dtype=bool)
        for x in points:
            wanted[self.pool.violated(x, among=absent)] = True
        if wanted.any():
            self.engine.add_integer_rows(self.pool.rows.take(wanted))
        return ~absent | wanted


def decide(
    session: SolveSession, pool: CutPool, relaxation: CutRelaxation | None = None, most_nodes: int = _NODES_TO_DECIDE
) -> tuple[Termination, int]:
    """Solve by branch and cut over checked LPs (of scipy by default); returns the reason of the end and the nodes.

    The solver's claims are not used; its incumbent is, if no decision is reached.
    """
    found = session.incumbent_x
    session.distrust()
    if session.model.integer.any():
        relaxation = relaxation or CutRelaxation(session, ScipyEngine(session.model), pool)
        branching = BranchingSearch(session, pool, relaxation, most_nodes)
        termination, nodes = branching.run(), branching.nodes
    else:
        loop = CutLoop(session, ScipyEngine(session.model), pool)
        loop.relaxation.add(np.flatnonzero(~pool.closed))
        termination, nodes = loop._relaxation_phase(), 0
    session.is_checking = False
    if found is not None and termination is not Termination.OPTIMAL and session.model.is_feasible(found):
        session.accept(found)
        termination = session.nothing_left() if termination is Termination.INFEASIBLE else termination
    return Termination.SOLVER_FAILED if termination is Termination.NODE_LIMIT else termination, nodes


def decide_again(
    session: SolveSession,
    termination: Termination,
    pool: CutPool | None = None,
    relaxation: CutRelaxation | None = None,
) -> Termination:
    """Decide a doubtful claim by branch and cut over checked LPs; returns the reason of the end.

    If that takes too many nodes, nothing is claimed about an uneven model; for others the solver's claim is kept.
    """
    if session.incumbent_x is not None and not session.is_checked and not session.model.keeps_rows(session.incumbent_x):
        # SCIP reports points of LPs as optimal that violate a row.
        if not session.is_small:
            session.incumbent = session.incumbent_x = None
            return Termination.SOLVER_FAILED
        session.is_suspect = session.is_uneven = True
    claims = termination in (Termination.OPTIMAL, Termination.INFEASIBLE) or session.is_proven
    if not claims or not session.is_doubtful or session.stop_requested:
        return termination
    if pool is None:
        pool = CutPool(session.model.n_columns, session.options.seed)
        pool.add(tuple(session.cuts))
    bound, claimed, x, solutions = session.bound, session.incumbent, session.incumbent_x, session.found
    decided = decide(session, pool, relaxation, _NODES_TO_DECIDE if session.is_uneven else _NODES_TO_CONFIRM)[0]
    if session.is_uneven or session.failed:
        return decided
    if decided in (Termination.OPTIMAL, Termination.INFEASIBLE) and not _are_close(session.incumbent, claimed):
        return decided
    session.bound, session.incumbent, session.incumbent_x, session.found = bound, claimed, x, solutions
    return termination


def _are_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= FEASIBILITY_TOLERANCE * max(1.0, abs(one))


@dataclass
class _RunProgress:
    """Progress of one integer run."""

    restart: bool = False
    reported: set[bytes] = field(default_factory=set)
    separated: list[FloatArray] = field(default_factory=list)
    """Points that new or known cuts violate."""


def _ended(status: RunStatus) -> Termination:
    return {
        RunStatus.INFEASIBLE: Termination.INFEASIBLE,
        RunStatus.UNBOUNDED: Termination.UNBOUNDED,
        RunStatus.LIMIT: Termination.TIME_LIMIT,
        RunStatus.UNDECIDED: Termination.SOLVER_FAILED,
        RunStatus.OPTIMAL: Termination.OPTIMAL,
    }[status]
