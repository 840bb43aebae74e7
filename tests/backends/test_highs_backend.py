"""What is particular to HiGHS: options, interrupts, invalid cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from accel_oct_backends import highs
from accel_oct_backends.highs import _HighsEngine
from helpers.interrupts_support import interrupted_solve
from helpers.mip_support import skip_unless_available

from accel_oct.mip import (
    Cuts,
    EngineRun,
    Event,
    FunctionHandler,
    IntegerRequest,
    InvalidCutError,
    MipModel,
    ModelArrays,
    Needs,
    Point,
    Reply,
    Rows,
    RunStatus,
    SolveOptions,
    SolverError,
    SolveSession,
    Support,
    Termination,
    Validity,
    create_backend,
)
from accel_oct.mip.conformance.suite import (
    cardinality,
    cardinality_handler,
    cardinality_optimum,
    hard_knapsack,
    knapsack,
)


def test_native_options_reach_the_solver_or_are_refused() -> None:
    """A native limit ends the solve, with a valid bound; an unknown one is an error that names it."""
    backend = create_backend("highs")
    backend.load(hard_knapsack(30, 4))
    result = backend.solve(SolveOptions(native={"mip_max_leaves": 1}))
    assert result.termination is Termination.STOPPED and result.bound >= 1001.0
    with pytest.raises(SolverError, match="no_such_option=1"):
        backend.solve(SolveOptions(native={"no_such_option": 1}))


def test_what_highs_lacks_is_said() -> None:
    """Lazy rows and branch priorities come from the cut loop."""
    able = create_backend("highs").capabilities
    assert able.lazy_rows is able.branch_priorities is Support.EMULATED and able.injection is Support.NATIVE


@pytest.mark.parametrize("native", [{}, {"mip_detect_symmetry": False}])
def test_options_of_the_branch_and_bound_of_highs_bring_it_back(
    native: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lazy rows the loop branches on the LP, unless an option speaks of HiGHS's own branch and bound."""
    runs: list[bool] = []
    engine = highs._HighsEngine
    solve_integer = engine.solve_integer

    def counted(self: highs._HighsEngine, request: IntegerRequest) -> EngineRun:
        runs.append(True)
        return solve_integer(self, request)

    monkeypatch.setattr(engine, "solve_integer", counted)
    model = cardinality()
    backend = create_backend("highs")
    backend.load(model)
    result = backend.solve(SolveOptions(native=native), cardinality_handler(model, 4))
    assert result.objective == pytest.approx(cardinality_optimum(model, 4)) and bool(runs) is bool(native)


def test_ctrl_c_returns_incumbent_and_bound() -> None:
    """SIGINT in the middle of a long solve ends it as INTERRUPTED, with what was found and proven."""
    outcome = interrupted_solve("highs")
    assert outcome["termination"] == "interrupted" and outcome["status"] == "feasible"
    assert 0 <= outcome["objective"] <= outcome["bound"] and outcome["seconds"] < 30


@pytest.mark.slow
def test_the_thread_count_can_change_between_solves() -> None:
    """One process may solve with one thread, with two, and with one again."""
    backend = create_backend("highs")
    backend.load(hard_knapsack(20, 3))
    objectives = {backend.solve(SolveOptions(threads=threads)).objective for threads in (1, 2, 1)}
    assert len(objectives) == 1


def _engine(upper: float, rows: Rows) -> _HighsEngine:
    """One column from 0 to `upper`, to be maximised."""
    model = MipModel(maximise=True)
    model.add_block("x", 1, integer=True, upper=upper, objective=1.0)
    model.add_rows(rows)
    return _HighsEngine(SolveSession(ModelArrays.of(model), SolveOptions(), None))


def test_cut_rows_are_dropped_by_their_position_among_cuts() -> None:
    """The rows of the model come first in the LP and stay; the position counts from the first cut that is there."""
    engine = _engine(10.0, Rows.single([0], 1.0, upper=6.0))
    engine.add_relaxation_rows(Rows.concatenate([Rows.single([0], 1.0, upper=limit) for limit in (3.0, 7.0, 4.0)]))
    optima = []
    for position in (None, 0, 1, 0):
        if position is not None:
            engine.drop_relaxation_rows(np.array([position]))
        optima.append(engine.solve_relaxation(10.0).bound)
    assert optima == [3.0, 4.0, 6.0, 6.0]


@pytest.mark.parametrize(("most", "status"), [(np.inf, RunStatus.UNBOUNDED), (1.0, RunStatus.INFEASIBLE)])
def test_unbounded_and_infeasible_are_told_apart(most: float, status: RunStatus) -> None:
    """Where HiGHS does not say which of the two a model is, the same rows without an objective do."""
    engine = _engine(np.inf, Rows.single([0], 1.0, lower=2.0))
    engine.add_relaxation_rows(Rows.single([0], 1.0, upper=most))
    assert engine._unbounded_or_infeasible(engine._relaxation()) is status  # not run yet: its status says nothing


@pytest.mark.parametrize("events", [(Event.CANDIDATE,), (Event.CANDIDATE, Event.RELAXATION)])
def test_an_invalid_cut_is_found(events: tuple[Event, ...]) -> None:
    """A cut that removes the start is noticed and named, whether or not every small violation is looked for."""
    cut = Cuts(Rows.single([0, 1, 2, 3], 1.0, upper=1.0), Validity.REQUIRED, "wrong")
    start = [0.0, 1.0, 1.0, 0.0]

    def separate(point: Point) -> Reply | None:
        return None if np.array_equal(point.x, start) or point.x.sum() <= 1 + 1e-6 else Reply(cuts=(cut,))

    backend = create_backend("highs")
    backend.load(knapsack())
    backend.set_start(start)
    for check_cuts in (True, False):
        with pytest.raises(InvalidCutError, match="row 0 of the REQUIRED cuts 'wrong'"):
            backend.solve(
                SolveOptions(check_cuts=check_cuts),
                FunctionHandler(separate, Needs(events, [Validity.REQUIRED])),
            )


@pytest.mark.parametrize("backend_name", ["highs", "pyomo:highs"])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_bound_that_binds_nothing_does_not_change_the_optimum(backend_name: str, lazy: bool) -> None:
    """With a tight feasibility tolerance and a row side of -1e9, HiGHS called -14 the maximum where -12 is feasible."""
    skip_unless_available(backend_name)
    model = MipModel(maximise=True)
    lower, upper = [1.0, 1.0, -2.0, -3.0, 1.0, -3.0], [4.0, 3.0, 2.0, 0.0, 4.0, -1.0]
    model.add_block("x", 6, integer=True, lower=lower, upper=upper, objective=[2.0, -4.0, 3.0, 3.0, 0.0, 2.0])
    rows = Rows.concatenate(
        [
            Rows.single([0, 1, 3], [2.0, -1.0, 4.0], lower=-1e9, upper=-6.0),
            Rows.single([1, 2], [4.0, -4.0], upper=16.0),
            Rows.single([2, 4, 5], [4.0, 1.0, -2.0], upper=3.0),
            Rows.single([0, 2, 3, 4, 5], [3.0, -4.0, 3.0, 3.0, -4.0], lower=15.0, upper=18.0),
        ]
    )
    handler = None
    if lazy:
        cut = Cuts(rows, Validity.REQUIRED)
        handler = FunctionHandler(
            lambda point: Reply(cuts=(cut,)) if rows.violation(point.x).any() else None,
            Needs([Event.CANDIDATE], [Validity.REQUIRED]),
        )
    else:
        model.add_rows(rows)
    backend = create_backend(backend_name)
    backend.load(model)
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL and result.objective == -12.0
    assert result.bound == pytest.approx(-12.0, abs=1e-9)


def test_a_warm_solve_keeps_the_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a row was added, the LP is solved from its last basis in fewer iterations than anew."""
    iterations: list[int] = []
    run = highs.run

    def counted(native: Any) -> None:
        run(native)
        iterations.append(int(native.getInfo().simplex_iteration_count))

    monkeypatch.setattr(highs, "run", counted)
    generator = np.random.default_rng(0)
    model = MipModel(maximise=True)
    x = model.add_block("x", 60, upper=5.0, objective=generator.integers(1, 50, 60).astype(float))
    weights = generator.integers(1, 50, (40, 60)).astype(float)
    model.add_rows(
        Rows.from_entries(np.repeat(np.arange(40), 60), np.tile(x.index, 40), weights.ravel(), n_rows=40, upper=900.0)
    )
    found = {}
    for warm in (False, True):
        backend = create_backend("highs")
        backend.load(model)
        options = SolveOptions(native={"presolve": "off"}, warm=warm)
        first = backend.solve(options)
        assert first.x is not None
        backend.add_rows(Rows.single(x.index, 1.0, upper=0.99 * float(first.x.sum())))
        iterations.clear()
        found[warm] = (backend.solve(options).objective, sum(iterations))
    assert found[True][0] == pytest.approx(found[False][0]) and 3 * found[True][1] < found[False][1]


def test_a_kept_basis_has_no_rows_of_cuts() -> None:
    """It is one of the model's rows, to which later rows are added."""
    model = cardinality(6)
    backend = create_backend("highs")
    backend.load(model)
    backend.add_rows(Rows.single([0, 1], 1.0, upper=1.0))
    backend.solve(handler=cardinality_handler(model, 2))
    assert len(backend._basis.row_status) == 1 and len(backend._basis.col_status) == 6  # type: ignore[attr-defined]
