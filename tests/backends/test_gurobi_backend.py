"""What is particular to Gurobi: its licence, its callbacks, interrupts."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.interrupts_support import interrupted_solve
from helpers.mip_support import requires

from accel_oct.mip import (
    BackendUnavailableError,
    Cuts,
    Event,
    FunctionHandler,
    LicenceError,
    MipModel,
    Needs,
    Point,
    Reply,
    Rows,
    SolveOptions,
    SolverError,
    Termination,
    Validity,
    backend_availability,
    backend_class,
    create_backend,
)
from accel_oct.mip.conformance.suite import cardinality, hard_knapsack, knapsack

pytestmark = requires("gurobi")


def wide_model(n_columns: int) -> MipModel:
    model = MipModel(maximise=True)
    model.add_block("x", n_columns, integer=True, objective=1.0)
    model.add_rows(Rows.single(np.arange(n_columns), 1.0, upper=10.0))
    return model


def _licence_is_limited() -> bool:
    backend = create_backend("gurobi")
    backend.load(wide_model(2001))
    try:
        backend.solve()
    except LicenceError:
        return True
    return False


def test_a_licence_too_small_names_the_limit_and_a_way_out() -> None:
    """2000 columns are solved; one more gives the size, the limit and solver="highs", and nothing stays behind."""
    if not _licence_is_limited():
        pytest.skip("the licence found here has no size limit")
    backend = create_backend("gurobi")
    backend.load(wide_model(2001))
    with pytest.raises(LicenceError, match=r'2001 columns, 1 rows.*limited to 2000.*solver="highs"'):
        backend.solve()
    backend.load(wide_model(2000))
    assert backend.solve().objective == 10.0


def test_cuts_do_not_count_against_the_licence() -> None:
    """A model within the limit stays solvable however many lazy rows come in."""
    n_columns = 60
    rows = Rows.from_entries(
        np.repeat(np.arange(2100), 2),
        np.array([(i % n_columns, (i + 1 + i // n_columns) % n_columns) for i in range(2100)]).ravel(),
        1.0,
        n_rows=2100,
        upper=1.0 + np.arange(2100) / 4200,
    )
    model = MipModel(maximise=True)
    model.add_block("x", n_columns, integer=True, objective=1.0)
    backend = create_backend("gurobi")
    backend.load(model)
    reply = Reply(cuts=(Cuts(rows, Validity.REQUIRED),))
    handler = FunctionHandler(
        lambda point: reply if rows.violation(point.x).any() else None, Needs([Event.CANDIDATE], [Validity.REQUIRED])
    )
    result = backend.solve(handler=handler)
    assert result.x is not None and not rows.violation(result.x).any()


def test_no_licence_is_said_with_a_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Creating the backend takes no licence; solving without one says so; it is known as unlicensed."""
    monkeypatch.setenv("GRB_LICENSE_FILE", f"{tmp_path}/none.lic")
    backend = create_backend("gurobi")
    backend.load(knapsack())
    with pytest.raises(LicenceError, match=r'no Gurobi licence found.*solver="highs"') as caught:
        backend.solve()
    assert isinstance(caught.value, BackendUnavailableError)
    assert backend_class("gurobi").is_available() and not backend_class("gurobi").availability()
    # Not by the list of all backends: Pyomo would remember for this whole process that there is no licence.
    found = backend_availability("gurobi")
    assert found.installed and not found.licensed and "licence" in found.reason
    monkeypatch.undo()
    assert backend.solve().objective == 23.0


def test_native_options_reach_the_solver_or_are_refused() -> None:
    """An unknown parameter is an error that names it."""
    backend = create_backend("gurobi")
    backend.load(knapsack())
    with pytest.raises(SolverError, match="NoSuchParameter=1"):
        backend.solve(SolveOptions(native={"NoSuchParameter": 1}))
    assert backend.solve(SolveOptions(native={"Heuristics": 0.0})).objective == 23.0


def test_ctrl_c_returns_incumbent_and_bound() -> None:
    """SIGINT in the middle of a long solve ends it as INTERRUPTED, with what was found and proven."""
    outcome = interrupted_solve("gurobi")
    assert outcome["termination"] == "interrupted" and outcome["status"] == "feasible"
    assert 0 <= outcome["objective"] <= outcome["bound"] and outcome["seconds"] < 30


def test_no_unchecked_candidate_is_taken_after_a_stop() -> None:
    """Solutions that Gurobi finds between the request to stop and its end have not passed the handler."""
    model = cardinality()
    cut = Cuts(Rows.single(np.arange(model.n_columns), 1.0, upper=3.0), Validity.REQUIRED)

    def stop(point: Point) -> Reply:
        return Reply(cuts=(cut,) if point.x.sum() > 3 else (), stop=True)

    backend = create_backend("gurobi")
    backend.load(model)
    for seed in range(5):
        handler = FunctionHandler(stop, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
        result = backend.solve(SolveOptions(seed=seed, native={"Presolve": 0}), handler)
        assert result.termination is Termination.STOPPED
        assert result.x is None or result.x.sum() <= 3


@pytest.mark.parametrize("validity", list(Validity))
def test_only_implied_cuts_are_user_cuts(monkeypatch: pytest.MonkeyPatch, validity: Validity) -> None:
    """Gurobi may assume that a user cut removes no integral point; every other cut goes in as a lazy row."""
    from accel_oct_backends.gurobi import _GurobiModel

    rows = Rows.single([0], 1.0, upper=1.0)  # holds everywhere: only the way it takes is of interest
    lazy: list[Rows] = []
    add_lazy = _GurobiModel._add_lazy

    def record(native: _GurobiModel, model: object, given: Rows) -> None:
        lazy.append(given)
        add_lazy(native, model, given)

    monkeypatch.setattr(_GurobiModel, "_add_lazy", record)
    keeps = "any" if validity is Validity.OPTIMALITY else None
    seen: list[Point] = []

    def reply(point: Point) -> Reply:
        seen.append(point)
        return Reply(cuts=(Cuts(rows, validity, keeps=keeps),))

    backend = create_backend("gurobi")
    backend.load(hard_knapsack())
    needs = Needs([Event.RELAXATION], [validity], keeps=[keeps] if keeps else ())
    backend.solve(SolveOptions(node_limit=5, native={"Presolve": 0}), FunctionHandler(reply, needs))
    assert seen, "no relaxation was shown"
    assert len(lazy) == (0 if validity is Validity.IMPLIED else len(seen))
