"""What CPLEX, COPT and Xpress have in common: small licences, callbacks, logs; and the faults of each."""

from __future__ import annotations

import logging
from unittest.mock import Mock

import numpy as np
import pytest
from helpers.interrupts_support import interrupted_solve
from helpers.mip_support import skip_unless_available

from accel_oct.mip import (
    BackendUnavailableError,
    Cuts,
    Event,
    FunctionHandler,
    LicenceError,
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
from accel_oct.mip.conformance import brute_force, mixed_sizes
from accel_oct.mip.conformance.suite import cardinality, cardinality_optimum, hard_knapsack, knapsack

#: Columns that the licence of the wheel takes, the text that names the limit, and an option without effect.
LIMITS = {
    "copt": (2000, "limited to 2000 of each"),
    "cplex": (1000, "limited to 1000 of each"),
    "xpress": (4999, "limited to 5000 rows and columns together"),
}
OPTIONS = {"copt": {"HeurLevel": 0}, "cplex": {"mip.strategy.probe": -1}, "xpress": {"heuremphasis": 0}}
BACKENDS = sorted(LIMITS)
NATIVE = ("cplex", "xpress")


@pytest.fixture(params=BACKENDS)
def name(request: pytest.FixtureRequest) -> str:
    skip_unless_available(request.param)
    return str(request.param)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of solvers about small models are not checked by a second search."""
    monkeypatch.setattr("accel_oct.mip.session._MOST_COLUMNS_CHECKED", 0)


def wide_model(n_columns: int) -> MipModel:
    model = MipModel(maximise=True)
    model.add_block("x", n_columns, integer=True, objective=1.0)
    model.add_rows(Rows.single(np.arange(n_columns), 1.0, upper=10.0))
    return model


def test_a_licence_too_small_names_the_limit_and_a_way_out(name: str) -> None:
    """A model of the largest size is solved; one more column is an error with sizes, limit and solver="highs"."""
    largest, limit = LIMITS[name]
    backend = create_backend(name)
    backend.load(wide_model(largest + 1))
    try:
        result = backend.solve()
    except LicenceError as error:
        assert f"({largest + 1} columns, 1 rows" in str(error) and limit in str(error)
        assert 'solver="highs"' in str(error) and isinstance(error, BackendUnavailableError)
    else:
        assert result.objective == 10.0
        pytest.skip("the licence found here has no size limit")
    backend.load(wide_model(largest))
    assert backend.solve().objective == 10.0


def test_native_options_reach_the_solver_or_are_refused(name: str) -> None:
    """An unknown option, or a value of the wrong type, is an error that names it."""
    backend = create_backend(name)
    backend.load(knapsack())
    for option in ({"no.such.option": 1}, {next(iter(OPTIONS[name])): "many"}):
        with pytest.raises(SolverError, match=f"rejects the native option {next(iter(option))}="):
            backend.solve(SolveOptions(native=option))
    assert backend.solve(SolveOptions(native=OPTIONS[name])).objective == 23.0


@pytest.mark.parametrize("loud", [False, True])
def test_the_log_goes_to_logging(
    name: str, loud: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed; at the level DEBUG the lines of the solver's log are records of the backend's logger."""
    logger = f"accel_oct_backends.{name}"
    with caplog.at_level(logging.DEBUG if loud else logging.INFO, logger):
        backend = create_backend(name)
        backend.load(hard_knapsack(12, 4))
        backend.solve()
    assert any(record.name == logger for record in caplog.records) == loud
    assert capfd.readouterr().out == ""


def test_ctrl_c_returns_incumbent_and_bound(name: str) -> None:
    """SIGINT in the middle of a long solve ends it as INTERRUPTED, with what was found and proven."""
    outcome = interrupted_solve(name)
    assert outcome["termination"] == "interrupted" and outcome["status"] == "feasible"
    assert 0 <= outcome["objective"] <= outcome["bound"] and outcome["seconds"] < 30


def test_no_unchecked_candidate_is_taken_after_a_stop(name: str) -> None:
    """Solutions that a solver finds between the request to stop and its end have not passed the handler."""
    model = cardinality()
    cut = Cuts(Rows.single(np.arange(model.n_columns), 1.0, upper=3.0), Validity.REQUIRED)

    def stop(point: Point) -> Reply:
        return Reply(cuts=(cut,) if point.x.sum() > 3 else (), stop=True)

    backend = create_backend(name)
    backend.load(model)
    for seed in range(3):
        handler = FunctionHandler(stop, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
        result = backend.solve(SolveOptions(seed=seed), handler)
        assert result.termination is Termination.STOPPED and result.bound >= cardinality_optimum(model, 3)
        assert result.x is None or result.x.sum() <= 3


def test_many_cuts_of_two_threads_hold(name: str) -> None:
    """Rows that come only at candidates and relaxations hold, also with several threads."""
    model = hard_knapsack(18, 3)
    hidden = model.rows
    relaxed = MipModel(maximise=True)
    relaxed.add_block("take", 18, integer=True, objective=model.objective)
    reference = create_backend("highs")
    reference.load(model)
    optimum = reference.solve().objective

    def separate(point: Point) -> Reply | None:
        violated = hidden.violation(point.x) > 1e-6
        return Reply(cuts=(Cuts(hidden.take(violated), Validity.REQUIRED),)) if violated.any() else None

    for threads in (1, 2):
        backend = create_backend(name)
        backend.load(relaxed)
        handler = FunctionHandler(separate, Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.REQUIRED]))
        result = backend.solve(SolveOptions(threads=threads), handler)
        assert result.termination is Termination.OPTIMAL and result.objective == optimum
        assert result.bound == pytest.approx(optimum)


@pytest.mark.parametrize("lazy", [False, True], ids=["rows", "lazy rows"])
def test_unchecked_claims_match_brute_force(name: str, lazy: bool, unchecked: None) -> None:
    """Without the second search of small models, which would hide faults of the backend."""
    brute_force.compare(lambda: create_backend(name), 120, 11, lazy=lazy)
    mixed_sizes.compare(lambda: create_backend(name), 40, 11, lazy=lazy)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_solution_that_is_better_by_little_is_taken(name: str, scale: float, unchecked: None) -> None:
    """From a start that is worse by 1e-6 than the optimum, with and without lazy rows."""
    value = scale + np.arange(8) * 1e-6
    row = Rows.single(np.arange(8), 1.0, upper=3.0)
    best, start = value[-3:].sum(), np.array([0, 0, 0, 0, 1, 0, 1, 1.0])

    def separate(point: Point) -> Reply | None:
        return Reply(cuts=(Cuts(row, Validity.REQUIRED),)) if row.violation(point.x).any() else None

    for lazy in (True, False):
        model = MipModel(maximise=True)
        model.add_block("x", 8, integer=True, objective=value)
        if not lazy:
            model.add_rows(row)
        backend = create_backend(name)
        backend.load(model)
        backend.set_start(start)
        handler = FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED])) if lazy else None
        result = backend.solve(handler=handler)
        assert result.objective == pytest.approx(best, abs=1e-8, rel=0.0)
        assert result.bound == pytest.approx(best, abs=1e-8, rel=0.0)


@pytest.mark.parametrize("name", NATIVE)
def test_a_heuristic_that_repeats_a_forbidden_point_is_rejected(name: str) -> None:
    """A handler that returns each row once: the pool of the backend rejects later points that violate it."""
    skip_unless_available(name)
    model = cardinality(20)
    for seed in range(4):
        said: set[float] = set()

        def separate(point: Point, said: set[float] = said) -> Reply | None:
            for limit in (12.0, 8.0, 5.0):
                if point.x.sum() > limit and limit not in said:
                    said.add(limit)
                    row = Rows.single(np.arange(model.n_columns), 1.0, upper=limit)
                    return Reply(cuts=(Cuts(row, Validity.REQUIRED),))
            return None

        backend = create_backend(name)
        backend.load(model)
        handler = FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
        result = backend.solve(SolveOptions(seed=seed), handler)
        assert result.objective == cardinality_optimum(model, 5)


def test_a_candidate_after_a_stop_is_not_counted_as_seen() -> None:
    """CPLEX ends at once in most solves; a candidate that comes all the same must not be taken at the end."""
    skip_unless_available("cplex")
    from accel_oct_backends.cplex import _CplexSearch

    arrays = ModelArrays.of(knapsack())
    handler = FunctionHandler(lambda point: None, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    session = SolveSession(arrays, SolveOptions(), handler)
    search = _CplexSearch(session, arrays)
    context = Mock()
    context.in_candidate.return_value = True
    session.request_stop(Termination.STOPPED)
    search.invoke(context)
    search.close()
    context.abort.assert_called_once()
    assert search._took_unchecked and not context.get_candidate_point.called


# -------------------------------------------------------------------- faults of single solvers


def test_cplex_repeats_no_presolve(unchecked: None) -> None:
    """When repeated presolve decides a model, CPLEX reports "optimal" with the bound from before."""
    skip_unless_available("cplex")
    drawn = brute_force.random_model(np.random.default_rng([1, 907]))
    assert brute_force.find_fault(create_backend("cplex"), drawn) is None


def test_copt_does_not_presolve() -> None:
    """Its heuristics find points within a few nodes; with presolve none was found in a thousand."""
    skip_unless_available("copt")
    backend = create_backend("copt")
    backend.load(hard_knapsack())
    assert backend.solve(SolveOptions(node_limit=50)).objective is not None


def test_copt_drops_the_rows_that_it_is_told_to() -> None:
    """The LP of the cut loop after rows were added and dropped; a wrong one would only cost time, or the proof."""
    skip_unless_available("copt")
    from accel_oct_backends.copt import _CoptBranchingEngine

    model = MipModel(maximise=True)
    model.add_block("x", 3, upper=10.0, objective=1.0)
    engine = _CoptBranchingEngine(SolveSession(ModelArrays.of(model), SolveOptions(), None))
    engine.add_relaxation_rows(Rows.from_entries([0, 1, 2], [0, 1, 2], 1.0, n_rows=3, upper=[1.0, 2.0, 3.0]))
    engine.drop_relaxation_rows(np.array([1]))
    run = engine.solve_relaxation(10.0)
    assert run.x is not None and run.x.tolist() == [1.0, 10.0, 3.0] and run.bound == 14.0
    engine.drop_relaxation_rows(np.array([1]))
    engine.set_relaxation_bounds(np.array([1]), np.array([4.0]), np.array([5.0]))
    run = engine.solve_relaxation(10.0)
    assert run.x is not None and run.x.tolist() == [1.0, 5.0, 10.0] and run.multipliers is not None
    engine.add_relaxation_rows(Rows.single([1], 1.0, upper=3.0))
    run = engine.solve_relaxation(10.0)
    assert run.status is RunStatus.INFEASIBLE
    engine.close()


def test_copt_takes_no_lazy_rows() -> None:
    """Lazy rows are emulated: COPT's own answer to this model is "infeasible", or -0.029."""
    skip_unless_available("copt")
    model = MipModel()
    x = model.add_block(
        "x", 6, lower=[3, 2, -3, -2, 1, -2], upper=[3, 3, 0, 1, 2, -1], integer=True,
        objective=[-0.005, -0.005, 0.003, 0.001, -0.002, -0.004],
    )  # fmt: skip
    row = Rows.single(x.index, [-4.0, 0.0, 3.0, 1.0, 4.0, 1.0], lower=-8.0)
    backend = create_backend("copt")
    assert backend.capabilities.lazy_rows is Support.EMULATED
    backend.load(model)
    handler = FunctionHandler(
        lambda point: Reply(cuts=(Cuts(row, Validity.REQUIRED),)) if row.violation(point.x).any() else None,
        Needs([Event.CANDIDATE], [Validity.REQUIRED]),
    )
    assert backend.solve(handler=handler).objective == pytest.approx(-0.033)


@pytest.mark.parametrize("presolve", [0, 1])
def test_xpress_adds_rows_with_and_without_presolve(presolve: int, unchecked: None) -> None:
    """Without presolve, `presolveRow` would crash the process; a node with a rejected point is not dropped."""
    skip_unless_available("xpress")
    model = cardinality()
    row = Rows.single(np.arange(model.n_columns), 1.0, lower=4.0, upper=4.0)  # an equation
    handler = FunctionHandler(
        lambda point: Reply(cuts=(Cuts(row, Validity.REQUIRED),)) if row.violation(point.x).max() > 1e-6 else None,
        Needs([Event.CANDIDATE], [Validity.REQUIRED]),
    )
    backend = create_backend("xpress")
    backend.load(model)
    for heuristics in (0, 1):
        options = SolveOptions(native={"presolve": presolve, "heuremphasis": heuristics})
        assert backend.solve(options, handler).objective == cardinality_optimum(model, 4)
