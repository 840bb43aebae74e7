"""SCIP (Apache 2.0), through PySCIPOpt: every capability is native.

Native objects are built per solve, so that the cuts of one solve do not affect the next. `scip_native` has the plugins
that SCIP calls; it is imported together with the solver package.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from accel_oct.mip import (
    Backend,
    Capabilities,
    Event,
    LogFile,
    SolveOptions,
    SolverError,
    SolveSession,
    Support,
    Termination,
)

logger = logging.getLogger(__name__)

#: Without these, SCIP may discard every solution that satisfies the handler's cuts: it fixes and permutes columns by
#: arguments about the rows it knows, without the later cuts.
LAZY_SETTINGS: dict[str, Any] = {
    "misc/usesymmetry": 0,
    "misc/allowstrongdualreds": False,
    "misc/allowweakdualreds": False,
}

#: Solutions cannot be injected into columns that presolve replaces by a sum of others.
INJECTION_SETTINGS: dict[str, Any] = {"presolving/donotmultaggr": True}

#: Presolve replaces rows and columns, so that duals of its LP are none of the model. Nodes need the columns only.
DUAL_SETTINGS: dict[str, Any] = {"presolving/maxrounds": 0, "presolving/maxrestarts": 0, "misc/scaleobj": False}
NODE_SETTINGS: dict[str, Any] = {"presolving/donotaggr": True, "presolving/donotmultaggr": True}

#: Measured on tree masters: this separator takes about half of the solve, and found no cut.
FAST_SETTINGS: dict[str, Any] = {"separating/aggregation/freq": -1}

_TERMINATION = {
    "optimal": Termination.OPTIMAL,
    "gaplimit": Termination.OPTIMAL,
    "infeasible": Termination.INFEASIBLE,
    "unbounded": Termination.UNBOUNDED,
    "timelimit": Termination.TIME_LIMIT,
    "nodelimit": Termination.NODE_LIMIT,
    "totalnodelimit": Termination.NODE_LIMIT,
    "stallnodelimit": Termination.NODE_LIMIT,
    "userinterrupt": Termination.INTERRUPTED,
}


class ScipBackend(Backend):
    """SCIP with a constraint handler for cuts and a heuristic for injections.

    A solve uses one thread whatever `SolveOptions.threads` is: SCIP's concurrent mode does not copy the handler.
    """

    name = "scip"
    package = "pyscipopt"
    extra = "scip"
    auto_rank = 40
    plain_options: ClassVar[Mapping[str, Any]] = {
        "presolving/maxrounds": 0,
        "heuristics/locks/freq": -1,
        "heuristics/oneopt/freq": -1,
        "heuristics/randrounding/freq": -1,
    }
    capabilities = Capabilities(
        lazy_rows=Support.NATIVE,
        user_cuts=Support.NATIVE,
        relaxation_points=Support.NATIVE,
        injection=Support.NATIVE,
        start=Support.NATIVE,
        branch_priorities=Support.NATIVE,
        duals=Support.NATIVE,
        node_bounds=Support.NATIVE,
        local_cuts=Support.NATIVE,
        log=Support.NATIVE,
    )

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        if session.out_of_time:
            return Termination.TIME_LIMIT, 0
        return _ScipModel(session).optimise()


class _ScipModel:
    """One SCIP model, from its construction to the end of the solve."""

    def __init__(self, session: SolveSession) -> None:
        import pyscipopt

        from accel_oct_backends import scip_native

        self._session = session
        self._model: Any = pyscipopt.Model()
        self._model.hideOutput()
        self._columns = scip_native.ScipColumns(self._model, session.model)
        self._configure(session.options)
        scip_native.include(self._model, self._columns, session)
        self._set_start()

    def _configure(self, options: SolveOptions) -> None:
        settings: dict[str, Any] = {
            "misc/catchctrlc": False,
            "randomization/randomseedshift": options.seed,
            "lp/threads": min(options.threads, 64),
            "limits/gap": options.gap,
        }
        if options.time_limit is not None:
            settings["limits/time"] = self._session.seconds_left
        if options.node_limit is not None:
            settings["limits/totalnodes"] = options.node_limit
        if self._session.needs.cuts or self._session.needs.node_bounds:
            settings |= LAZY_SETTINGS | FAST_SETTINGS
        if self._session.needs.injects:
            settings |= INJECTION_SETTINGS
        if self._session.needs.node_bounds:
            settings |= NODE_SETTINGS
        for name, value in settings.items():
            self._model.setParam(name, value)
        for name, value in options.native.items():
            try:
                self._model.setParam(name, value)
            except Exception as error:  # PySCIPOpt raises KeyError, ValueError or a bare Exception
                raise SolverError(f"SCIP rejects the native option {name}={value!r}: {error}") from error
        for name, value in (DUAL_SETTINGS if self._session.needs.duals else {}).items():
            self._model.setParam(name, value)
        if options.branch_priorities is not None:
            self._columns.set_branch_priorities(options.branch_priorities)

    def _set_start(self) -> None:
        session = self._session
        session.pending.clear()
        if session.incumbent_x is not None:
            solution = self._model.createOrigSol()
            self._columns.write(solution, session.incumbent_x)
            self._model.addSol(solution, free=True)

    def optimise(self) -> tuple[Termination, int]:
        stream = self._session.log_stream(logger)
        log = None if stream is None else LogFile(stream)
        if log is not None:
            self._model.setLogfile(log.path)
        try:
            self._run(self._model)
        finally:
            if log is not None:
                self._model.setLogfile(None)
                log.close()
        status = self._model.getStatus()
        if status == "inforunbd":  # presolve did not decide which
            status = "unbounded" if self._has_feasible_point() else "infeasible"
        self._report_end(status)
        return self._termination(status), int(self._model.getNTotalNodes())

    def _run(self, model: Any) -> None:
        """Solve without the GIL."""
        from accel_oct_backends import scip_native

        try:
            with self._session.forwarding_stops(lambda: scip_native.interrupt(model)):
                model.optimizeNogil()
        except Exception as error:  # PySCIPOpt turns return codes into bare exceptions
            if not self._session.failed:
                raise SolverError(f"SCIP failed: {error}") from error

    def _has_feasible_point(self) -> bool:
        import pyscipopt

        from accel_oct_backends import scip_native

        arrays = self._session.model
        probe = pyscipopt.Model()
        probe.hideOutput()
        probe.setParam("misc/catchctrlc", False)
        scip_native.ScipColumns(probe, replace(arrays, objective=np.zeros(arrays.n_columns)))
        self._run(probe)
        return bool(probe.getNSols())

    def _report_end(self, status: str) -> None:
        model, session = self._model, self._session
        if session.failed:
            return
        if status not in ("infeasible", "unbounded"):
            bound = model.getDualbound()
            if abs(bound) < model.infinity():
                session.tighten(bound)
        if model.getNSols() and status != "unbounded":
            x = self._columns.read(model.getBestSol())
            if session.wants(Event.CANDIDATE):
                session.accept(session.model.rounded(x))  # the constraint handler has accepted it
            else:
                session.consult(Event.CANDIDATE, x)

    def _termination(self, status: str) -> Termination:
        session = self._session
        termination = _TERMINATION.get(status)
        if termination is None:
            if not status.endswith("limit") and status != "terminate":
                raise SolverError(f"SCIP ended with status {status!r}")
            return Termination.STOPPED
        return session.nothing_left() if termination is Termination.INFEASIBLE else termination
