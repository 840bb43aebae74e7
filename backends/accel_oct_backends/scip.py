"""SCIP (Apache 2.0), through PySCIPOpt: every capability is native.

Native objects are built per solve: a cut of one solve must not stay for the next. The plugins that SCIP calls are in
`scip_plugins`, which is imported together with the solver package.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from accel_oct.mip import (
    Backend,
    Capabilities,
    Event,
    ModelArrays,
    SolveOptions,
    SolverError,
    SolveSession,
    Support,
    Termination,
)

#: Without these SCIP may throw away every solution that the handler's cuts would have kept: it fixes and permutes
#: columns by arguments that hold for the rows it knows, and it does not know the cuts yet.
LAZY_SETTINGS: dict[str, Any] = {
    "misc/usesymmetry": 0,
    "misc/allowstrongdualreds": False,
    "misc/allowweakdualreds": False,
}

#: A column that presolve replaces by a sum of others cannot be given a value any more, so nothing could be injected.
INJECTION_SETTINGS: dict[str, Any] = {"presolving/donotmultaggr": True}

#: Measured on tree masters: this separator costs about half of the solve, and found no cut where that was looked at.
FAST_SETTINGS: dict[str, Any] = {"separating/aggregation/freq": -1}

#: Seconds between two looks at whether the solve was asked to stop.
_WATCH_INTERVAL = 0.05

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

    A solve takes one thread whatever `SolveOptions.threads` says: SCIP's concurrent mode does not copy the handler.
    """

    name = "scip"
    package = "pyscipopt"
    extra = "scip"
    auto_rank = 20
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
    )

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        if session.out_of_time:
            return Termination.TIME_LIMIT, 0
        return _NativeModel(session).optimise()


class _NativeModel:
    """One SCIP model, from building to the end of the solve."""

    def __init__(self, session: SolveSession) -> None:
        import pyscipopt

        from accel_oct_backends import scip_columns, scip_plugins

        self._session = session
        self._model: Any = pyscipopt.Model()
        self._model.hideOutput()
        self._columns = scip_columns.Columns(self._model, session.model)
        self._configure(session.options)
        scip_plugins.include(self._model, self._columns, session)
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
        if self._session.needs.cuts:
            settings |= LAZY_SETTINGS | FAST_SETTINGS
        if self._session.needs.injects:
            settings |= INJECTION_SETTINGS
        for name, value in settings.items():
            self._model.setParam(name, value)
        for name, value in options.native.items():
            try:
                self._model.setParam(name, value)
            except Exception as error:  # PySCIPOpt raises KeyError, ValueError or a bare Exception
                raise SolverError(f"SCIP refuses the native option {name}={value!r}: {error}") from error
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
        self._run(self._model)
        status = self._model.getStatus()
        if status == "inforunbd":  # presolve did not tell which
            status = "unbounded" if self._has_feasible_point() else "infeasible"
        self._report_end(status)
        return self._termination(status), int(self._model.getNTotalNodes())

    def _run(self, model: Any) -> None:
        """Solve without the GIL, while a second thread passes on a request to stop."""
        from accel_oct_backends import scip_plugins

        done = threading.Event()

        def watch() -> None:
            while not done.wait(_WATCH_INTERVAL):
                if self._session.stop_requested:
                    scip_plugins.interrupt(model)

        watcher = threading.Thread(target=watch, name="accel_oct-watch", daemon=True)
        watcher.start()
        try:
            model.optimizeNogil()
        except Exception as error:  # PySCIPOpt turns return codes into bare exceptions
            if not self._session.failed:
                raise SolverError(f"SCIP failed: {error}") from error
        finally:
            done.set()
            watcher.join()

    def _has_feasible_point(self) -> bool:
        import pyscipopt

        from accel_oct_backends import scip_columns

        arrays = self._session.model
        probe = pyscipopt.Model()
        probe.hideOutput()
        probe.setParam("misc/catchctrlc", False)
        scip_columns.Columns(
            probe,
            ModelArrays(
                arrays.maximise,
                np.zeros(arrays.n_columns),
                arrays.lower,
                arrays.upper,
                arrays.integer,
                arrays.rows,
            ),
        )
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
                session.accept(session.model.rounded(x))  # passed the constraint handler already
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
