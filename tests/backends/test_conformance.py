"""Every registered backend, in every variant, passes the conformance suite that ships in the package."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.selection import slow

from accel_oct.mip import BoundReport, Reply, SolveOptions, Termination, backend_names, create_backend
from accel_oct.mip.conformance import BackendCheck, brute_force, checks, mixed_sizes
from accel_oct.mip.conformance.suite import hard_knapsack, listening

#: Solvers behind Pyomo take several times as long, and are checked with the slow tests.
DAILY = [name for name in backend_names() if not name.startswith("pyomo:")]


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
@pytest.mark.parametrize("name", [*DAILY, *slow(name for name in backend_names() if name not in DAILY)])
def test_conformance(name: str, check: BackendCheck) -> None:
    """The backend has the property, or its solver cannot be used here; a new backend cannot be left out."""
    skip_unless_available(name)
    check.run(lambda: create_backend(name))


@pytest.mark.parametrize("fails", [False, True], ids=["stop", "exception"])
@pytest.mark.parametrize("name", ["copt", "cplex", "gurobi", "highs", "scip", "xpress"])
def test_a_bound_ends_the_search_of_a_solver_that_shows_no_point(name: str, fails: bool) -> None:
    """From within the solver's own callbacks, in the middle of its tree; an exception there comes out unchanged."""
    skip_unless_available(name)
    backend, error = create_backend(name), KeyError("kept")
    backend.load(hard_knapsack())
    heard: list[BoundReport] = []

    def on_bound(report: BoundReport) -> Reply | None:
        heard.append(report)
        if report.nodes < 2 or report.incumbent is None:
            return None
        if fails:
            raise error
        return Reply(stop=True)

    try:
        result = backend.solve(SolveOptions(time_limit=60.0), listening(on_bound))
    except KeyError as caught:
        assert fails and caught is error and heard[-1].nodes >= 2
        return
    assert not fails and result.termination is Termination.STOPPED and result.seconds < 30.0
    assert result.objective is not None and 0.0 < result.objective < result.bound
    assert set(result.statistics.calls) == {"bound"} and (heard[-1].bound, heard[-1].incumbent) == (
        result.bound,
        result.objective,
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("lazy", [False, True], ids=["rows", "lazy rows"])
@pytest.mark.parametrize("name", backend_names())
def test_brute_force_at_length(name: str, lazy: bool, seed: int) -> None:
    """Thousands of random small integer models per backend, as a whole and with rows that come as cuts."""
    skip_unless_available(name)
    brute_force.compare(lambda: create_backend(name), 1000, seed, lazy=lazy)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("lazy", [False, True], ids=["rows", "lazy rows"])
@pytest.mark.parametrize("name", backend_names())
def test_mixed_sizes_at_length(name: str, lazy: bool, seed: int) -> None:
    """Thousands of random LPs and MIPs with coefficients from 1e-7 to 1e3 per backend; nearly all are proven."""
    skip_unless_available(name)
    tally = mixed_sizes.compare(lambda: create_backend(name), 1000, seed, lazy=lazy)
    assert tally.unproven <= 20


def test_mixed_sizes_draws_every_kind_of_model() -> None:
    """Among the cases: LPs, MIPs, integer models, small and large coefficients, both answers, few ambiguous ones."""
    drawn = [mixed_sizes.random_model(np.random.default_rng([0, case]), lazy=True) for case in range(200)]
    kinds = {(bool(each.integer.any()), bool(each.integer.all())) for each in drawn}
    assert kinds == {(False, False), (True, False), (True, True)}
    values = np.abs(np.concatenate([each.shown.values for each in drawn]))
    assert values.min() < 1e-6 and values.max() > 5e2
    optima = [mixed_sizes.extremes(each) for each in drawn]
    assert sum(wide is None for _, wide in optima) > 40 and sum(narrow is not None for narrow, _ in optima) > 80
    assert sum(mixed_sizes.is_ambiguous(each) for each in drawn) < 60


def test_brute_force_draws_every_kind_of_model() -> None:
    """Among the cases: infeasible, no objective, empty rows, equations, wide and negative bounds, hidden rows."""
    drawn = [brute_force.random_model(np.random.default_rng([0, case]), lazy=True) for case in range(brute_force.CASES)]
    optima = [each.optimum() for each in drawn]
    rows = [each.shown for each in drawn] + [each.hidden for each in drawn]
    assert 5 <= optima.count(None) <= 20
    assert any(not each.objective.any() for each in drawn) and {each.maximise for each in drawn} == {True, False}
    assert any(np.any(np.diff(batch.starts) == 0) for batch in rows)
    assert any(np.any(batch.lower == batch.upper) for batch in rows)
    assert any(np.any(np.abs(batch.lower) == brute_force.WIDE) for batch in rows)
    assert any(np.any(each.upper == brute_force.WIDE) for each in drawn)
    assert any(np.any(each.lower < 0) for each in drawn) and any(each.hidden.n_rows for each in drawn)


def test_brute_force_finds_a_wrong_answer() -> None:
    """A backend that forgets a row, or the direction, does not pass."""
    from accel_oct_backends.mock import MockBackend

    class Forgetful(MockBackend):
        def _solve(self, session):  # type: ignore[no-untyped-def]
            session.model.objective[:] *= -1
            return super()._solve(session)

    with pytest.raises(AssertionError, match=r"case \d+ of seed 0: the optimum is"):
        brute_force.compare(Forgetful, brute_force.CASES)
