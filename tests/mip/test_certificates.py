"""What a solver says of an LP is believed with a proof only: multipliers that are checked here."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from accel_oct_backends import highs
from helpers.mip_support import skip_unless_available
from hypothesis import given
from hypothesis import strategies as st

import accel_oct
from accel_oct.constraints import Linear, PositiveBudget
from accel_oct.mip import (
    EngineRun,
    Event,
    FunctionHandler,
    MipModel,
    Needs,
    Rows,
    RunStatus,
    SolverError,
    Termination,
    Validity,
)
from accel_oct.mip.backend import create_backend
from accel_oct.mip.certificates import LinearProgram
from accel_oct.mip.conformance import brute_force, mixed_sizes
from accel_oct.mip.conformance.exact import ExactRow, best_value

sizes = st.sampled_from([1e-7, 1e-3, 0.1, 1.0 / 3.0, 1.0, 7.0, 1e3])
numbers = st.one_of(st.just(0.0), st.builds(lambda size, sign: size * sign, sizes, st.sampled_from([-1.0, 1.0])))


@st.composite
def programs(draw: Any) -> LinearProgram:
    """Small LPs with coefficients of mixed size and finite bounds."""
    n_columns, n_rows = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    matrix = np.array([[draw(numbers) for _ in range(n_columns)] for _ in range(n_rows)])
    lower = np.array([draw(st.integers(-2, 1)) for _ in range(n_columns)], dtype=float)
    upper = lower + [draw(st.integers(0, 3)) for _ in range(n_columns)]
    middle = matrix @ lower + [draw(numbers) for _ in range(n_rows)]
    kinds = [draw(st.sampled_from(["at most", "at least", "equation"])) for _ in range(n_rows)]
    rows = Rows.from_entries(
        np.repeat(np.arange(n_rows), n_columns),
        np.tile(np.arange(n_columns), n_rows),
        matrix.ravel(),
        n_rows=n_rows,
        lower=[-math.inf if kind == "at most" else side for kind, side in zip(kinds, middle, strict=True)],
        upper=[math.inf if kind == "at least" else side for kind, side in zip(kinds, middle, strict=True)],
    )
    objective = np.array([draw(numbers) for _ in range(n_columns)])
    return LinearProgram(objective, draw(st.sampled_from([1.0, -1.0])), rows, lower, upper)


def exact_best(program: LinearProgram) -> Fraction | None:
    """The best of ``sign * objective x``, in rationals."""

    def exact(values: Any) -> list[Fraction]:
        return [Fraction(value) for value in np.asarray(values).tolist()]

    rows = program.rows
    matrix = np.zeros((rows.n_rows, program.objective.size))
    matrix[rows.row_of_entry, rows.columns] = rows.values
    return best_value(
        exact(program.sign * program.objective),
        exact(program.lower),
        exact(program.upper),
        [False] * program.objective.size,
        [
            ExactRow(exact(row), *(None if math.isinf(side) else Fraction(float(side)) for side in sides))
            for row, *sides in zip(matrix, rows.lower, rows.upper, strict=True)
        ],
    )


@given(program=programs(), data=st.data())
def test_no_multipliers_prove_what_is_not_true(program: LinearProgram, data: st.DataObject) -> None:
    """With any multipliers, the bound is not below the exact optimum and no programme with a point is called empty."""
    y = np.array([data.draw(numbers) for _ in range(program.rows.n_rows)])
    best = exact_best(program)
    if best is None:
        return
    assert Fraction(program.sign * program.bound(y)) >= best if math.isfinite(program.bound(y)) else True
    assert not program.is_empty(y)


@given(program=programs())
def test_a_wrong_claim_is_corrected(program: LinearProgram) -> None:
    """An untrue INFEASIBLE, and an OPTIMAL that promises too little, are replaced by what is proven."""
    best = exact_best(program)
    empty = program.checked(EngineRun(RunStatus.INFEASIBLE, None, -program.sign * math.inf), math.inf)
    assert best is None or empty.status is not RunStatus.INFEASIBLE
    if best is not None:
        low = program.sign * (float(best) - 1.0)
        lie = EngineRun(RunStatus.OPTIMAL, program.lower, low, multipliers=np.zeros(program.rows.n_rows))
        run = program.checked(lie, math.inf)
        assert program.sign * run.bound >= float(best) - 1e-6 * max(1.0, abs(float(best)))


def test_a_true_claim_is_proven() -> None:
    """Farkas multipliers and duals are found, checked, and leave the run as it was."""
    rows = Rows.from_entries(
        [0, 0, 1], [0, 1, 0], [1.0, 1.0, 1.0], n_rows=2, upper=[math.inf, 0.5], lower=[1.75, -math.inf]
    )
    program = LinearProgram(np.array([1.0, 1.0]), -1.0, rows, np.zeros(2), np.ones(2))
    claim = EngineRun(RunStatus.INFEASIBLE, None, math.inf)
    proven = program.checked(claim, math.inf)
    assert proven.status is claim.status and proven.bound == claim.bound and proven.multipliers is not None
    assert program.is_empty(np.array([1.0, -1.0])) and program.is_empty(np.array([-1.0, 1.0]))
    assert not program.is_empty(np.array([1.0, 1.0])) and not program.is_empty(None)
    looser = replace(program, upper=np.array([1.0, 2.0]))
    assert looser.checked(claim, math.inf).status is RunStatus.OPTIMAL
    claim = EngineRun(RunStatus.OPTIMAL, np.array([0.5, 1.25]), 1.75, multipliers=np.array([1.0, 0.0]))
    assert looser.checked(claim, math.inf) is claim and looser.bound(claim.multipliers) == pytest.approx(1.75)


def test_columns_without_bounds_are_proven_too() -> None:
    """A slope of zero needs no bound; any other slope on such a column proves nothing."""
    rows = Rows.from_entries([0, 0, 1], [0, 1, 0], 1.0, n_rows=2, upper=[4.0, 1.5])
    program = LinearProgram(np.array([3.0, 2.0]), 1.0, rows, np.zeros(2), np.full(2, np.inf))
    assert program.bound(np.array([2.0, 1.0])) == pytest.approx(9.5)
    assert program.bound(np.array([2.0, 0.5])) == math.inf


# ---------------------------------------------------------------- a solver that is wrong


def model_with_inner_nodes() -> tuple[MipModel, FunctionHandler]:
    """A knapsack whose optimum 23 lies below the root; a handler that never cuts keeps it in branch and cut."""
    model = MipModel(maximise=True)
    take = model.add_block("take", 4, integer=True, objective=[10.0, 13.0, 7.0, 8.0])
    model.add_rows(Rows.single(take.index, [3.0, 4.0, 2.0, 3.0], upper=7.0))
    return model, FunctionHandler(lambda point: None, Needs([Event.CANDIDATE], [Validity.REQUIRED]))


@pytest.mark.parametrize("wrong", [{1}, {2}, {3}, {2, 4}, set(range(1, 100))], ids=str)
def test_an_untrue_infeasible_closes_no_node(wrong: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """At the root, at inner nodes, or everywhere: the optimum is found all the same."""
    model, handler = model_with_inner_nodes()
    true, calls = highs._HighsEngine.solve_relaxation, []

    def untrue(self: Any, seconds: float) -> EngineRun:
        calls.append(seconds)
        run = true(self, seconds)
        return EngineRun(RunStatus.INFEASIBLE, None, -math.inf) if len(calls) in wrong else run

    monkeypatch.setattr(highs._HighsEngine, "solve_relaxation", untrue)
    backend = create_backend("highs")
    backend.load(model)
    result = backend.solve(handler=handler)
    assert (result.termination, result.objective, result.bound) == (Termination.OPTIMAL, 23.0, 23.0)
    assert len(calls) >= min(wrong)


def test_a_bound_that_promises_too_little_closes_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objective of an LP is a bound only where duals prove it."""
    model, handler = model_with_inner_nodes()
    true = highs._HighsEngine.solve_relaxation

    def untrue(self: Any, seconds: float) -> EngineRun:
        run = true(self, seconds)
        return replace(run, bound=run.bound - 5.0) if run.status is RunStatus.OPTIMAL else run

    monkeypatch.setattr(highs._HighsEngine, "solve_relaxation", untrue)
    backend = create_backend("highs")
    backend.load(model)
    result = backend.solve(handler=handler)
    assert (result.termination, result.objective, result.bound) == (Termination.OPTIMAL, 23.0, 23.0)


def test_without_a_proof_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no proof can be had the nodes are branched on to the end, and the status says that the solver failed."""
    model, handler = model_with_inner_nodes()
    undecided = EngineRun(RunStatus.UNDECIDED, None, math.inf)
    monkeypatch.setattr(LinearProgram, "solve", lambda self, seconds: undecided)
    monkeypatch.setattr(
        highs._HighsEngine, "solve_relaxation", lambda self, seconds: EngineRun(RunStatus.INFEASIBLE, None, -math.inf)
    )
    backend = create_backend("highs")
    backend.load(model)
    result = backend.solve(handler=handler)
    assert result.termination is Termination.SOLVER_FAILED and result.bound == math.inf and result.nodes == 31
    linear = MipModel()
    linear.add_block("x", 1)
    backend.load(linear)
    assert backend.solve().termination is Termination.SOLVER_FAILED


@pytest.mark.parametrize("claim", ["infeasible", "optimal"])
def test_an_untrue_claim_of_a_mip_solver_is_not_believed(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """INFEASIBLE, or OPTIMAL with a bound that does not prove it: branch and cut over checked LPs decides."""
    model, _ = model_with_inner_nodes()
    point = np.array([1.0, 0.0, 1.0, 0.0])

    def untrue(self: Any, request: Any) -> EngineRun:
        if claim == "infeasible":
            return EngineRun(RunStatus.INFEASIBLE, None, -math.inf)
        return EngineRun(RunStatus.OPTIMAL, point, 24.0)

    monkeypatch.setattr(highs._HighsEngine, "solve_integer", untrue)
    backend = create_backend("highs")
    backend.load(model)
    result = backend.solve()
    assert (result.termination, result.objective, result.bound) == (Termination.OPTIMAL, 23.0, 23.0)
    model.add_rows(Rows.single(np.arange(4), 2.0, lower=3.0, upper=3.0))
    if claim == "infeasible":
        backend.load(model)
        assert backend.solve().termination is Termination.INFEASIBLE


# ---------------------------------------------------------------- met in the field


def solved(X: Any, y: Any, constraints: list[Any], **options: Any) -> accel_oct.Result:
    return accel_oct.solve(np.array(X), y, leaf_penalty=0.0, constraints=constraints, **options)


@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("backend", ["highs", "pyomo:highs", "scip", "gurobi", "copt", "cplex", "xpress"])
def test_presolve_does_not_lose_every_tree(backend: str, preset: str) -> None:
    """Two limits that trees keep with 1.0 and 0.87 to spare, whose LP presolve of HiGHS calls infeasible."""
    skip_unless_available(backend)
    first = [[2, 1 / 3], [0.1, -1], [2, 0], [0.1, 0], [0.3, 1]]
    second = [[2, 2], [1 / 3, 0.2], [0.3, 2], [1, 0.1], [0.3, 1 / 3]]
    limits = [
        Linear(first, branches=[0.5, 0, -1], upper=5.100000050999999),
        Linear(second, leaves=-1, upper=1.93333314),
    ]
    X = [[0, 0, 1]] * 3 + [[0, 0, 0]] * 2
    result = solved(X, [0, 1, 1, 0, 0], limits, max_depth=1, solver=backend, config=preset)
    assert result.status == "optimal" and result.objective == pytest.approx(0.2)


def test_presolve_does_not_accuse_a_cut() -> None:
    """A limit just below what a tree uses: no `InvalidCutError`, and a bound that holds."""
    limit = PositiveBudget(3.9999996, -3, count=True)
    result = solved([[0], [0], [0], [0], [1]], [-3, -3, 5, -3, 5], [limit], max_depth=5, solver="highs", time_limit=3.0)
    assert result.status in ("optimal", "time_limit")
    assert result.objective == pytest.approx(0.4) and result.bound >= 0.4


def model_of(
    maximise: bool, objective: list[float], integer: list[bool], lower: list[float], upper: list[float], *rows: Rows
) -> brute_force.RandomModel:
    """A model whose first batch of rows is shown and whose others are hidden."""
    box = np.array(lower), np.array(upper)
    return brute_force.RandomModel(
        maximise, np.array(objective), np.array(integer), *box, box, rows[0], Rows.concatenate(rows[1:])
    )


FAULTS = {
    "highs: a wrong infeasible at an inner node": model_of(
        True,
        [1.0, -3.0, -2.0],
        [True] * 3,
        [0.0, -1.0, 0.0],
        [3.0, 2.0, 1.0],
        Rows.single([0, 1, 2], [0.0003, 0.0005, -0.002], upper=0.00039999919999999996),
    ),
    "highs: values beyond a node's bounds were branched on for ever": model_of(
        True,
        [-1.0, -4.0, -5.0, -3.0, -5.0],
        [True] * 5,
        [0.0, -2.0, 0.0, -1.0, -1.0],
        [3.0, 1.0, 1.0, 0.0, 2.0],
        Rows.concatenate(
            [
                Rows.single([0, 1, 2, 3], [333.3333333333333, -2e-06, -3e-06, 0.0001], upper=666.6665706666668),
                Rows.single([2, 3], [1.0, -1.0], lower=0.99999999),
            ]
        ),
        Rows.single(range(5), [-3.333333333333333e-07, 300.0, -1.0 / 3.0, 10.0, 0.002], upper=-610.3353343333333),
    ),
    "highs: HiGHS says optimal with a bound that proves less": model_of(
        True,
        [-1.0, -4.0, -1.0, 4.0],
        [True, False, False, False],
        [-1.0, -1.0, 1.0, 0.0],
        [0.0, 0.0, 2.0, 1.0],
        Rows.concatenate(
            [
                Rows.single([0, 1, 3], [1e-07, -3.333333333333333e-07, -1e-07], upper=1.1928418819829443e-07),
                Rows.single(
                    range(4),
                    [-1e-05, 0.0001, -3.3333333333333335e-05, -3e-05],
                    lower=-0.0001666666666666667,
                    upper=-0.0001666666666666667,
                ),
                Rows.single(
                    [0, 1, 2],
                    [0.010000000000000002, -0.020000000000000004, 0.010000000000000002],
                    lower=0.014277192494613851,
                    upper=0.034277192494613855,
                ),
            ]
        ),
    ),
    "gurobi: Gurobi takes a point that a lazy row forbids": model_of(
        False,
        [-0.30000000000000004, -0.4],
        [True, False],
        [0.0, 0.0],
        [1.0, 1.0],
        Rows.single([0, 1], [0.2, -1.0 / 3.0], lower=-0.16666666666666663, upper=0.8333333333333334),
        Rows.single([1], 1.0, lower=1.0),
        Rows.single([0], -1.0, lower=-0.9999996),
        Rows.single([1], -1e-08, upper=-1.0000000036509082),
    ),
    "gurobi: the same with one small coefficient of three": model_of(
        False,
        [-3.0, -1.0, 3.0],
        [True] * 3,
        [-1.0, -2.0, 1.0],
        [0.0, 0.0, 4.0],
        Rows.single([0, 2], [1.0 / 300.0, 0.0005], lower=0.0020000000333333335, upper=0.0020000000333333335),
        Rows.single([0, 1, 2], [1.0 / 3000.0, 1e-08, -1.0], lower=-1.0003333533333334),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["highs", "scip", "gurobi", "pyomo:highs", "copt", "cplex", "xpress"])
def test_models_that_solvers_were_wrong_on(name: str, fault: str) -> None:
    """Each model of mixed sizes that has shown a fault, on every backend."""
    skip_unless_available(name)
    drawn = FAULTS[fault]
    for lazy in {bool(drawn.hidden.n_rows), True}:
        assert mixed_sizes.attempt(create_backend(name), drawn, lazy=lazy)[1] is None


#: Cases of `mixed_sizes` (seed 0) that showed a fault, each with the backend and the fault that it had there.
FAULTY_CASES = [
    ("highs", 1989, False, "optimal below the optimum: an equation with coefficients of 1e-5"),
    ("highs", 5464, False, "optimal below the optimum: rows with coefficients from 5e-7 to 1e3"),
    ("highs", 5870, False, "optimal below the optimum: an equation with the side 1.9999999"),
    ("highs", 14746, False, "optimal below the optimum: a row with the side 0.9999999"),
    ("highs", 27599, False, "InvalidCutError without cuts: rounding a point gains more than the tolerance"),
    ("highs", 27599, True, "the same"),
    ("scip", 1815, False, "optimal below the optimum of an LP: an equation with coefficients of 1e-7"),
    ("scip", 1989, False, "infeasible"),
    ("scip", 209443, False, "optimal, with a point that breaks a row"),
    ("scip", 2331, False, "optimal below the optimum: an equation with coefficients of 1e-8"),
    ("scip", 2761, False, "optimal below the optimum: an equation with coefficients of 3e-8 and 200"),
    ("scip", 3131, True, "InvalidCutError: a point with no room in an equation with coefficients of 1e-7"),
    ("scip", 3882, False, "optimal below the optimum of an LP"),
    ("gurobi", 3626, False, "a point outside of its box"),
    ("gurobi", 3825, True, "InvalidCutError: the bound that comes with a candidate excludes it"),
    ("gurobi", 4787, True, "InvalidCutError: a point that misses an equation by a tolerance"),
    ("gurobi", 14958, True, "optimal below the optimum: lazy rows make a column fractional that seemed integral"),
    ("gurobi", 5462, True, "InvalidCutError: the final point is not the one that was accepted"),
]


@pytest.mark.parametrize(("name", "case", "lazy", "fault"), FAULTY_CASES)
def test_cases_of_mixed_sizes_that_solvers_were_wrong_on(name: str, case: int, lazy: bool, fault: str) -> None:
    """Small rows are scaled up, and claims about uneven ones are decided by checked LPs: nothing is wrong any more."""
    skip_unless_available(name)
    assert mixed_sizes.compare(lambda: create_backend(name), [case], lazy=lazy).unproven == 0, fault


@pytest.mark.parametrize("failure", ["run", "status"])
def test_an_lp_that_highs_fails_on_is_solved_by_other_means(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    """An error or an unknown status of one LP ends no solve: it was a SolverError."""
    failed: list[str] = []

    def fail(*_: object) -> Any:
        failed.append(failure)
        raise SolverError("HiGHS failed in run")

    monkeypatch.setattr(highs, "run" if failure == "run" else "read_status", fail)
    drawn = mixed_sizes.random_model(np.random.default_rng([0, 4]), lazy=True)
    termination, fault = mixed_sizes.attempt(create_backend("highs"), drawn, lazy=True)
    assert failed and fault is None and termination in (Termination.OPTIMAL, Termination.INFEASIBLE)


@pytest.mark.parametrize("name", ["highs", "scip"])
def test_small_rows_of_large_models(name: str) -> None:
    """Case 1989 beside columns of no use, too many for a second decision: it is right because the rows are scaled."""
    skip_unless_available(name)
    drawn = mixed_sizes.random_model(np.random.default_rng([0, 1989]))
    model = drawn.model()
    model.add_block("idle", 300, upper=1.0)
    backend = create_backend(name)
    backend.load(model)
    result = backend.solve()
    narrow, wide = mixed_sizes.extremes(drawn)
    assert result.termination is Termination.OPTIMAL and narrow is not None and wide is not None
    assert narrow - 1e-6 <= result.bound and result.objective <= wide + 1e-6


def test_a_point_of_a_large_model_that_breaks_a_row_is_not_kept() -> None:
    """Case 209443 beside columns of no use: nothing is claimed where there are too many for a second decision."""
    skip_unless_available("scip")
    model = mixed_sizes.random_model(np.random.default_rng([0, 209443])).model()
    model.add_block("idle", 300, upper=1.0)
    backend = create_backend("scip")
    backend.load(model)
    result = backend.solve()
    assert result.termination in (Termination.SOLVER_FAILED, Termination.INFEASIBLE)
    assert result.x is None


def test_rows_are_scaled_up_exactly() -> None:
    """Small rows reach one by a power of two; others, empty ones and what is infinite stay."""
    rows = Rows.concatenate(
        [
            Rows.single([0, 1], [3e-7, -1e-9], lower=-1e-7),
            Rows.single([0, 1], [0.999, 1e-3], upper=2.0),
            Rows.single([1], [5e3], lower=1.0, upper=1.0),
            Rows.single([], [], upper=-1.0),
            Rows.single([2], [1e-300], lower=-np.inf, upper=1e-300),
        ]
    )
    scaled = rows.scaled_up()
    largest = [np.abs(scaled.take([row]).values).max(initial=0.0) for row in range(rows.n_rows)]
    assert (
        all(1.0 <= size < 2.0 for size in largest[:2]) and largest[2:4] == [5e3, 0.0] and largest[4] == 1e-300 * 2**40
    )
    factors = scaled.values / rows.values
    assert np.array_equal(np.log2(factors), np.round(np.log2(factors))) and (factors >= 1.0).all()
    for x in np.random.default_rng(0).normal(size=(20, 3)):
        assert np.array_equal(scaled.violation(x) > 0.0, rows.violation(x) > 0.0)
    assert np.array_equal(np.isinf(scaled.lower), np.isinf(rows.lower))
    assert rows.take([2, 3]).scaled_up().values.tolist() == [5e3]


def test_the_judge_of_mixed_sizes_notices() -> None:
    """A wrong termination, value, point or bound of a model with one clear optimum is a fault."""
    drawn = brute_force.RandomModel(
        True, np.array([1.0, 1e-3]), np.array([True, False]), np.zeros(2), np.ones(2), (np.zeros(2), np.ones(2)),
        Rows.single([0, 1], [1e3, 1e-7], upper=500.0), Rows.empty(),
    )  # fmt: skip
    backend = create_backend("highs")
    backend.load(drawn.model())
    right = backend.solve()
    assert mixed_sizes.find_fault(drawn, right) is None and right.objective == pytest.approx(1e-3)
    wrong = [
        replace(right, termination=Termination.INFEASIBLE, x=None, objective=None),
        replace(right, termination=Termination.UNBOUNDED),
        replace(right, objective=0.0, bound=0.0, x=np.zeros(2)),
        replace(right, objective=1.001, bound=1.001, x=np.ones(2)),
        replace(right, bound=1.0),
        replace(right, x=np.array([0.0, 1.1])),
        replace(right, x=np.array([0.5, 1.0])),
    ]
    assert all(mixed_sizes.find_fault(drawn, result) is not None for result in wrong)
    weaker = replace(right, termination=Termination.TIME_LIMIT, bound=2.0)
    assert mixed_sizes.find_fault(drawn, weaker) is None
