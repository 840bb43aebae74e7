"""Pyomo: the exported model, solvers that are missing, unfit or die, and the cut loop over Pyomo models."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from accel_oct.mip import (
    BackendUnavailableError,
    MipModel,
    Rows,
    SolutionStatus,
    SolveOptions,
    Termination,
    UnsupportedError,
    create_backend,
)
from accel_oct.mip.conformance.suite import KNAPSACK_OPTIMUM, cardinality, cardinality_handler, knapsack

pyo = pytest.importorskip("pyomo.environ")

from accel_oct_backends import pyomo as pyomo_backend  # noqa: E402
from accel_oct_backends import pyomo_solvers  # noqa: E402
from accel_oct_backends.pyomo import PyomoBackend, to_pyomo  # noqa: E402


def solved(model: object) -> float:
    results = pyo.SolverFactory("highs").solve(model)
    assert results.solver.termination_condition == pyo.TerminationCondition.optimal
    return float(pyo.value(model.objective))  # type: ignore[attr-defined]


def assignment() -> MipModel:
    """Two workers, three jobs, with rows of every kind."""
    model = MipModel(maximise=True)
    pick = model.add_block("pick", (2, 3), integer=True, objective=[[5.0, 4.0, 3.0], [4.0, 1.0, 2.0]])
    slack = model.add_block("slack", (), lower=-np.inf, upper=np.inf, objective=-1.0)
    jobs = Rows.from_entries(np.tile(np.arange(3), 2), pick.index.ravel(), 1.0, n_rows=3, upper=1.0)
    model.add_rows(jobs, "one worker per job")
    model.add_rows(Rows.single(pick.index[0], 1.0, lower=1.0, upper=2.0), "first worker")
    model.add_rows(Rows.single(slack.index, 1.0, lower=1.0, upper=1.0), "first worker")
    return model


def test_export_has_named_components() -> None:
    """Blocks, batches and the objective are components with names, shapes and domains."""
    exported = to_pyomo(assignment())
    assert exported.pick[1, 2].is_binary() and exported.slack.is_continuous() and exported.slack.lb is None
    assert len(exported.one_worker_per_job) == 3 and len(exported.first_worker) == len(exported.first_worker_2) == 1
    assert exported.first_worker[0].lower == 1.0 and exported.first_worker[0].upper == 2.0
    assert exported.first_worker_2[0].equality
    assert exported.objective.sense == pyo.maximize


def test_export_has_the_same_optimum() -> None:
    """The exported model, solved with Pyomo, agrees with the model solved here."""
    backend = create_backend("highs")
    for model in (assignment(), knapsack(), cardinality()):
        backend.load(model)
        assert solved(to_pyomo(model)) == pytest.approx(backend.solve().objective)


def test_a_users_constraint_is_respected() -> None:
    """A constraint added to the exported model holds in its solution."""
    exported = to_pyomo(assignment())
    assert solved(exported) == pytest.approx(10.0)
    exported.one_job = pyo.Constraint(expr=sum(exported.pick[0, job] for job in range(3)) <= 1)
    assert solved(exported) == pytest.approx(9.0)
    assert sum(pyo.value(exported.pick[0, job]) for job in range(3)) <= 1 + 1e-6


@pytest.mark.parametrize("ending", ["lp", "mps"])
def test_export_is_written_with_names(tmp_path: Path, ending: str) -> None:
    """The exported model can be written as LP and MPS, with readable names."""
    path = tmp_path / f"model.{ending}"
    to_pyomo(assignment()).write(str(path), io_options={"symbolic_solver_labels": True})
    assert "pick(1_2)" in path.read_text() and "one_worker_per_job(0)" in path.read_text()


def test_export_of_an_impossible_empty_row() -> None:
    """A row without columns is left out when it holds, and makes the exported model infeasible when it cannot."""
    model = knapsack()
    model.add_rows(Rows.single([], 1.0, upper=1.0), "void")
    assert len(to_pyomo(model).void) == 0
    model.add_rows(Rows.single([], 1.0, lower=1.0), "impossible")
    results = pyo.SolverFactory("highs").solve(
        to_pyomo(model), load_solutions=False, raise_exception_on_nonoptimal_result=False
    )
    assert results.solver.termination_condition == pyo.TerminationCondition.infeasible


def test_bare_name_means_highs() -> None:
    """``pyomo`` is ``pyomo:highs``."""
    backend = create_backend("pyomo")
    assert isinstance(backend, PyomoBackend) and backend.solver == "highs"


@pytest.mark.parametrize("name", ["nonsense", "cplex"])
def test_missing_solver_is_named(name: str) -> None:
    """A solver that is not installed: the error names it and says how to get it."""
    if name == "cplex" and pyo.SolverFactory("cplex").available(exception_flag=False):
        pytest.skip("cplex is installed here")
    with pytest.raises(BackendUnavailableError, match=f"(?s){name}.*to get it, .*install"):
        create_backend(f"pyomo:{name}")


def test_known_missing_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the solvers that we know, the very package is named."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(pyomo_solvers, "_available", lambda *_: False)
    for name, package in (("glpk", "glpk-utils"), ("cbc", "coinor-cbc"), ("scip", "pyscipopt")):
        with pytest.raises(BackendUnavailableError, match=package):
            create_backend(f"pyomo:{name}")


def test_solver_without_integers_is_refused() -> None:
    """A continuous solver is refused at once, not after a wrong answer."""
    with pytest.raises(UnsupportedError, match="'ipopt' cannot solve models with integer columns"):
        create_backend("pyomo:ipopt")


@pytest.fixture
def broken_cbc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `cbc` that answers questions about its version, and then does what its second part says."""
    script = tmp_path / "cbc"

    class Scripted:
        @staticmethod
        def create(known: pyomo_solvers.Profile) -> object:
            return pyo.SolverFactory("cbc", executable=str(script), validate=False)

    monkeypatch.setattr(pyomo_solvers, "_create", Scripted.create)
    monkeypatch.setattr(pyomo_solvers, "_available", lambda *_: True)
    return script


def write_script(path: Path, body: str) -> None:
    path.write_text(f'#!/bin/sh\ncase "$*" in *-stop*|"") echo "Version: 2.10.0"; exit 0;; esac\n{body}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_dying_solver_gives_status_and_start(broken_cbc: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A solver that dies: the status says so, the incumbent stays, the log has the reason."""
    write_script(broken_cbc, "echo Segmentation fault >&2; kill -SEGV $$")
    backend = PyomoBackend("cbc")
    backend.load(knapsack())
    backend.set_start(np.array([0.0, 1.0, 1.0, 0.0]))
    result = backend.solve()
    assert result.termination is Termination.SOLVER_FAILED
    assert result.status is SolutionStatus.FEASIBLE and result.objective == 20.0
    assert result.bound >= KNAPSACK_OPTIMUM
    assert "pyomo:cbc" in caplog.text


def test_hanging_solver_is_stopped_by_the_time_limit(broken_cbc: Path) -> None:
    """A solver that never comes back is ended by the time limit, with a valid bound and no traceback."""
    write_script(broken_cbc, "exec sleep 60")
    backend = PyomoBackend("cbc")
    backend.load(knapsack())
    result = backend.solve(SolveOptions(time_limit=1.0))
    assert result.termination is Termination.TIME_LIMIT
    assert result.status is SolutionStatus.NONE and result.bound >= KNAPSACK_OPTIMUM
    assert result.seconds < 20.0


def test_node_limit_that_the_solver_lacks() -> None:
    """GLPK has no node limit, and says so."""
    try:
        backend = create_backend("pyomo:glpk")
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    backend.load(knapsack())
    with pytest.raises(UnsupportedError, match="node limit"):
        backend.solve(SolveOptions(node_limit=5))


def test_long_runs_are_sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solutions of a long run are looked at on the way: the loop restarts with cuts before the run would have ended."""
    monkeypatch.setattr(pyomo_backend, "_FIRST_SLICE", 1e-4)
    backend = create_backend("pyomo:highs")
    backend.load(cardinality())
    result = backend.solve(handler=cardinality_handler(cardinality(), 4))
    assert result.termination is Termination.OPTIMAL and result.objective == 42.0


def test_impossible_empty_cut_is_infeasible() -> None:
    """A row without columns that cannot hold makes the model infeasible, though Pyomo knows no such rows."""
    backend = create_backend("pyomo:highs")
    backend.load(knapsack())
    backend.add_rows(Rows.single([], 1.0, lower=1.0))
    assert backend.solve().termination is Termination.INFEASIBLE
