"""Plain solves: no handler."""

from __future__ import annotations

import math

import numpy as np

from accel_oct.mip.conformance.suite import (
    KNAPSACK_OPTIMUM,
    BackendFactory,
    check,
    close,
    covering,
    expect_unsupported,
    knapsack,
)
from accel_oct.mip.exchange import SolutionStatus, SolveOptions, Termination
from accel_oct.mip.model import MipModel
from accel_oct.mip.rows import Rows


@check
def lp_optimum(factory: BackendFactory) -> None:
    """A model with no integer column is solved as an LP."""
    model = MipModel(maximise=True)
    x = model.add_block("x", 2, upper=np.inf, objective=[3.0, 2.0])
    model.add_rows(Rows.from_entries([0, 0, 1], x.index[[0, 1, 0]], 1.0, n_rows=2, upper=[4.0, 1.5]))
    backend = factory()
    if not backend.capabilities.continuous_columns:
        expect_unsupported(lambda: backend.load(model))
        return
    backend.load(model)
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL and result.status is SolutionStatus.OPTIMAL
    assert close(result.objective, 9.5) and close(result.bound, 9.5)
    assert result.x is not None and np.allclose(result.x, [1.5, 2.5])


@check
def mip_optimum_when_maximising(factory: BackendFactory) -> None:
    """The optimum of a small knapsack, with a bound that proves it."""
    backend = factory()
    backend.load(knapsack())
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL and result.status is SolutionStatus.OPTIMAL
    assert close(result.objective, KNAPSACK_OPTIMUM) and close(result.bound, KNAPSACK_OPTIMUM)
    assert result.gap <= 1e-9


@check
def mip_optimum_when_minimising(factory: BackendFactory) -> None:
    """The optimum of a small covering problem, with a bound that proves it."""
    backend = factory()
    backend.load(covering())
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL
    assert close(result.objective, 3.0) and close(result.bound, 3.0)


@check
def mixed_integer_optimum(factory: BackendFactory) -> None:
    """Integer and continuous columns together."""
    model = MipModel(maximise=True)
    n = model.add_block("n", 1, integer=True, upper=10.0, objective=5.0)
    y = model.add_block("y", 1, upper=10.0, objective=4.0)
    columns = np.concatenate([n.index, y.index])
    model.add_rows(Rows.from_entries([0, 0, 1, 1], np.tile(columns, 2), [6, 4, 1, 2], n_rows=2, upper=[24.0, 6.0]))
    backend = factory()
    if not backend.capabilities.continuous_columns:
        expect_unsupported(lambda: backend.load(model))
        return
    backend.load(model)
    result = backend.solve()
    assert result.x is not None and close(result.x[0], 3.0) and close(result.objective, 21.0)


@check
def infeasible_model(factory: BackendFactory) -> None:
    """An infeasible model is reported as such, with no point."""
    model = knapsack()
    model.add_rows(Rows.single(np.arange(4), 1.0, lower=4.0))
    backend = factory()
    backend.load(model)
    result = backend.solve()
    assert result.termination is Termination.INFEASIBLE
    assert result.status is SolutionStatus.NONE and result.x is None and result.objective is None
    assert math.isinf(result.gap)


@check
def unbounded_model(factory: BackendFactory) -> None:
    """An unbounded model is told apart from an infeasible one."""
    for integer in (False, True):
        model = MipModel(maximise=True)
        x = model.add_block("x", 2, upper=np.inf, integer=integer, objective=1.0)
        model.add_rows(Rows.single(x.index, [1.0, -1.0], upper=1.0))
        backend = factory()
        if not backend.capabilities.continuous_columns:  # such a backend takes binary models only
            expect_unsupported(lambda backend=backend, model=model: backend.load(model))  # type: ignore[misc]
            continue
        backend.load(model)
        assert backend.solve().termination is Termination.UNBOUNDED


@check
def x_in_original_columns(factory: BackendFactory) -> None:
    """Columns that presolve fixes or removes are in the returned point, in their places."""
    model = MipModel(maximise=True)
    model.add_block("fixed", 2, lower=[1.0, 0.0], upper=[1.0, 0.0], integer=True, objective=2.0)
    take = model.add_block("take", 3, integer=True, objective=[1.0, 5.0, -1.0])
    model.add_block("idle", 1, integer=True)
    model.add_rows(Rows.single(take.index[:2], 1.0, upper=1.0))
    backend = factory()
    backend.load(model)
    result = backend.solve()
    assert result.x is not None and result.x.shape == (6,)
    assert np.allclose(result.x[:5], [1, 0, 0, 1, 0]) and close(result.objective, 7.0)
    assert close(result.objective, float(model.objective @ result.x))


@check
def two_solves_in_one_process(factory: BackendFactory) -> None:
    """Solving again, and loading another model, leaves no trace of what was before."""
    backend = factory()
    backend.load(knapsack())
    first, second = backend.solve(), backend.solve()
    assert close(first.objective, KNAPSACK_OPTIMUM) and close(second.objective, KNAPSACK_OPTIMUM)
    backend.load(covering())
    assert close(backend.solve().objective, 3.0)
    other = factory()
    other.load(knapsack())
    assert close(other.solve().objective, KNAPSACK_OPTIMUM)


@check
def added_rows_stay(factory: BackendFactory) -> None:
    """Rows added after loading hold in every later solve."""
    backend = factory()
    backend.load(knapsack())
    backend.add_rows(Rows.single([0, 1], 1.0, upper=1.0))
    for _ in range(2):
        assert close(backend.solve().objective, 21.0)


@check
def same_seed_same_result(factory: BackendFactory) -> None:
    """Two solves with the same seed return the same point, bound and number of nodes."""
    results = []
    for _ in range(2):
        backend = factory()
        backend.load(knapsack())
        results.append(backend.solve(SolveOptions(seed=5)))
    assert results[0].x is not None and results[1].x is not None
    assert np.array_equal(results[0].x, results[1].x)
    assert results[0].bound == results[1].bound and results[0].nodes == results[1].nodes


@check
def branch_priorities_accepted(factory: BackendFactory) -> None:
    """Branch priorities change the way, not the result; a backend without them says so."""
    backend = factory()
    backend.load(knapsack())
    options = SolveOptions(branch_priorities=np.array([3, 2, 1, 0]))
    if not backend.capabilities.branch_priorities:
        expect_unsupported(lambda: backend.solve(options))
        return
    assert close(backend.solve(options).objective, KNAPSACK_OPTIMUM)
