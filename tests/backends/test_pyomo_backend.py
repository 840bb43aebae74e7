"""Pyomo: the exported model, solvers that are missing, unfit or die, and the cut loop over Pyomo models."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available

import accel_oct
from accel_oct.mip import (
    BackendUnavailableError,
    Cuts,
    Event,
    FunctionHandler,
    LicenceError,
    MipModel,
    Needs,
    Reply,
    Rows,
    RunStatus,
    SolutionStatus,
    SolveOptions,
    Termination,
    UnsupportedError,
    Validity,
    backend_availability,
    create_backend,
)
from accel_oct.mip.conformance.suite import KNAPSACK_OPTIMUM, cardinality, cardinality_handler, knapsack
from accel_oct.solving.config import Config

pyo = pytest.importorskip("pyomo.environ", reason="the extra accel-oct[pyomo] is not installed")

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
    if name == "cplex" and backend_availability("pyomo:cplex"):
        pytest.skip("cplex is installed here")
    with pytest.raises(BackendUnavailableError, match=f"(?s){name}.*to get it, .*install"):
        create_backend(f"pyomo:{name}")


def test_known_missing_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the solvers that we know, the very package is named."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(pyomo_solvers, "_availability", lambda *_: False)
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
        def create(known: pyomo_solvers.SolverProfile) -> object:
            return pyo.SolverFactory("cbc", executable=str(script), validate=False)

    monkeypatch.setattr(pyomo_solvers, "_create", Scripted.create)
    monkeypatch.setattr(pyomo_solvers, "_availability", lambda *_: True)
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
    skip_unless_available("pyomo:glpk")
    backend = create_backend("pyomo:glpk")
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


VARIANTS = [f"pyomo:{variant}" for variant in PyomoBackend.variants()]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_model_that_says_nothing_is_solved(name: str) -> None:
    """With no objective and no rows every point is optimal, also where solvers call such a model empty."""
    skip_unless_available(name)
    backend = create_backend(name)
    model = MipModel()
    model.add_block("x", 2, lower=[-3.0, 0.5], upper=[-1.0, 4.0], integer=True)
    backend.load(model)
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL and result.objective == result.bound == 0.0
    assert result.x is not None and -3.0 <= result.x[0] <= -1.0 and result.x[1] in (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize("name", VARIANTS)
def test_an_unbounded_model_without_rows(name: str) -> None:
    """Columns that no row holds back are reported as unbounded, not as the solver's failure."""
    skip_unless_available(name)
    backend = create_backend(name)
    model = MipModel(maximise=True)
    model.add_block("x", 2, upper=np.inf, integer=True, objective=1.0)
    backend.load(model)
    assert backend.solve().termination is Termination.UNBOUNDED


def test_cuts_that_leave_nothing_of_an_open_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that does not tell infeasible from unbounded is asked again with the cuts, not with the model alone."""
    run = pyomo_solvers._Persistent.solve

    def vague(self: pyomo_solvers._Persistent, limits: pyomo_solvers.RunLimits) -> pyomo_solvers.SolverAnswer:
        answer = run(self, limits)
        has_objective = bool(self._model.objective.expr.linear_coefs)
        if answer.status is RunStatus.INFEASIBLE and has_objective:
            return replace(answer, status=RunStatus.UNBOUNDED)
        return answer

    monkeypatch.setattr(pyomo_solvers._Persistent, "solve", vague)
    rows = Rows.concatenate([Rows.single([0, 1], 1.0, lower=2.0), Rows.single([0, 1], 1.0, upper=1.0)])
    cut = Cuts(rows, Validity.REQUIRED)
    handler = FunctionHandler(lambda point: Reply(cuts=(cut,)), Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    backend = create_backend("pyomo:highs")
    model = MipModel()
    model.add_block("x", 2, upper=np.inf, integer=True, objective=1.0)
    backend.load(model)
    assert backend.solve(handler=handler).termination is Termination.INFEASIBLE


def test_cbc_does_not_preprocess() -> None:
    """With its preprocessing CBC calls -0.011 the maximum of this model, in which (2, 0) is worth -0.01."""
    skip_unless_available("pyomo:cbc")
    model = MipModel(maximise=True)
    model.add_block("x", 2, upper=[6.0, 4.0], integer=True, objective=[-0.005, 0.002])
    model.add_rows(Rows.single([0, 1], [4.0, -2.0], lower=7.0, upper=9.0))
    backend = create_backend("pyomo:cbc")
    backend.load(model)
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL
    assert result.objective == result.bound == pytest.approx(-0.01, abs=1e-12)


def test_cbc_says_infeasible_where_it_crashes() -> None:
    """Without preprocessing CBC dies while writing that ``2 x = 1`` has no solution; it is asked again."""
    skip_unless_available("pyomo:cbc")
    model = MipModel(maximise=True)
    model.add_block("x", 1, integer=True, objective=0.1)
    model.add_rows(Rows.single([0], 2.0, lower=1.0, upper=1.0))
    backend = create_backend("pyomo:cbc")
    backend.load(model)
    result = backend.solve()
    assert result.termination is Termination.INFEASIBLE and result.x is None


def test_cbc_solutions_keep_their_digits() -> None:
    """CBC writes eight digits of a value; an optimum of 999999998 would come back as 1e9."""
    skip_unless_available("pyomo:cbc")
    model = MipModel(maximise=True)
    model.add_block("x", 2, lower=-1e9, upper=[1e9, 1e9], integer=[True, False], objective=[1.0, 0.5])
    model.add_rows(Rows.from_entries([0, 1], [0, 1], [2.0, 3.0], n_rows=2, upper=[1999999997.0, 1000.0]))
    backend = create_backend("pyomo:cbc")
    backend.load(model)
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL and result.x is not None
    assert result.x[0] == 999999998.0 and result.x[1] == pytest.approx(1000 / 3, abs=1e-10)


def test_cbc_takes_small_improvements() -> None:
    """By default CBC wants 1e-5 more of each solution than of the last; a leaf may be worth less."""
    skip_unless_available("pyomo:cbc")
    X, y = np.array([[0, 1], [0, 0], [0, 1]]), np.array([1, 1, 2])
    result = accel_oct.solve(X, y, max_depth=1, leaf_penalty=1e-6, solver="pyomo:cbc", config="baseline")
    assert result.status == "optimal" and result.objective == pytest.approx(2 / 3 - 1e-6, abs=1e-9)


#: Finds the name of the solution file among its arguments and writes a point of `knapsack` there.
STOPPED_CBC = """
while [ $# -gt 0 ]; do
  if [ "$1" = "-solu" ]; then file="$2"; fi
  shift
done
cat > "$file" <<END
{header}
      0 c_u_x6_              7   0
      0 x2              {value}  0
      1 x3                   1   0
      2 x4                 0.5   0
      3 x5                   0   0
END
"""


def test_a_point_of_the_relaxation_is_no_solution(broken_cbc: Path) -> None:
    """Stopped before it has a solution, CBC writes the relaxation's point: no incumbent comes of it."""
    header = "Stopped on time (no integer solution - continuous used) - objective value 23.5"
    write_script(broken_cbc, "sleep 1\n" + STOPPED_CBC.format(header=header, value="0.6666667"))
    backend = PyomoBackend("cbc")
    backend.load(knapsack())
    result = backend.solve(SolveOptions(time_limit=1.0))
    assert result.termination is Termination.TIME_LIMIT
    assert result.status is SolutionStatus.NONE and result.x is None and result.bound >= KNAPSACK_OPTIMUM


def test_an_optimum_that_is_none_is_the_solvers_failure(broken_cbc: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A point that a solver calls optimal is looked at before it is believed."""
    write_script(broken_cbc, STOPPED_CBC.format(header="Optimal - objective value 23.5", value="0.6666667"))
    backend = PyomoBackend("cbc")
    backend.load(knapsack())
    result = backend.solve()
    assert result.termination is Termination.SOLVER_FAILED and result.x is None
    assert "not integral or violates a row" in caplog.text


@pytest.mark.parametrize("subject", ["PROBLEM", "LP"])
def test_glpk_infeasible_relaxations_are_understood(tmp_path: Path, subject: str) -> None:
    """GLPK's simplex says it in other words than its presolver; Pyomo knows only the latter."""
    from accel_oct_backends.pyomo_programs import GlpkProgram

    log = tmp_path / "glpk.log"
    log.write_text(f"GLPK Simplex Optimizer\n{subject} HAS NO PRIMAL FEASIBLE SOLUTION\n")
    program = GlpkProgram()
    program._log_file = str(log)
    assert program.process_logfile().solver.termination_condition == pyo.TerminationCondition.infeasible


def test_a_missing_licence_is_not_a_missing_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed without a licence: the error and the availability say which of the two it is."""
    from pyomo.contrib.solver.common.base import Availability

    monkeypatch.setattr(pyomo_solvers, "_availability", lambda *_: Availability.BadLicense)
    with pytest.raises(LicenceError, match="'gurobi' is installed, but Pyomo finds no licence"):
        create_backend("pyomo:gurobi")
    found = backend_availability("pyomo:gurobi")
    assert found.installed and not found.licensed and "licence" in found.reason


def test_cbc_keeps_optima_that_are_better_by_little() -> None:
    """At its default tolerance its presolve lost the optimum, which came out as an InvalidCutError."""
    skip_unless_available("pyomo:cbc")
    X = [[1, 0], [0, 1], [1, 0], [1, 1], [0, 1], [0, 0]]
    y, weights = [2, 1, 3, 2, 0, 3], [2.0, 6.0, 1.0, 4.0, 4.0, 4.0]
    config = Config.from_mapping({"preset": "default", "subtree_bounds": {"tables": False}})
    arguments: dict[str, Any] = dict(max_depth=3, leaf_penalty=0.2857145714285714, sample_weight=weights)
    result = accel_oct.solve(X, y, solver="pyomo:cbc", config=config, **arguments)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(accel_oct.solve(X, y, **arguments).objective, abs=1e-9)
