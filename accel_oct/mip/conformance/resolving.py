"""Changes of a loaded model between solves, and what a solve takes over from the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.conformance.suite import (
    KNAPSACK_OPTIMUM,
    TOLERANCE,
    BackendFactory,
    cardinality,
    cardinality_handler,
    cardinality_optimum,
    check,
    check_with,
    close,
    expect_unsupported,
    hard_knapsack,
    knapsack,
    listening,
    loaded,
)
from accel_oct.mip.errors import ModelError
from accel_oct.mip.exchange import BoundReport, Termination
from accel_oct.mip.model import MipModel
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray


@check
def a_warm_solve_begins_with_the_last_solutions(factory: BackendFactory) -> None:
    """The best solution of the last solve that is still feasible is the first incumbent."""
    backend = loaded(factory, knapsack())
    if not backend.capabilities.start:
        expect_unsupported(lambda: backend.solve(SolveOptions(warm=True)))
        return
    assert close(backend.solve(SolveOptions(warm=True)).objective, KNAPSACK_OPTIMUM)  # with nothing to begin with
    backend.set_objective([10.0, 13.0, 7.0, 30.0])  # the old optimum is now worth less than {b, d}
    reports: list[BoundReport] = []
    result = backend.solve(SolveOptions(warm=True), listening(reports.append))
    assert close(reports[0].incumbent, 23.0) and close(result.objective, 43.0) and close(result.bound, 43.0)
    backend.add_rows(Rows.single([3], 1.0, upper=0.0))  # it is infeasible now
    result = backend.solve(SolveOptions(warm=True))
    assert result.termination is Termination.OPTIMAL and close(result.objective, KNAPSACK_OPTIMUM)


class _Pair:
    """A backend whose model changes, and the same model as dense arrays, for a new backend to solve."""

    def __init__(self, factory: BackendFactory, model: MipModel, options: SolveOptions) -> None:
        self.backend = loaded(factory, model)
        self._factory = factory
        self._options = options
        self._model = (model.objective, model.lower, model.upper, model.integer)
        rows = model.rows
        self._matrix = np.zeros((rows.n_rows, model.n_columns))
        self._matrix[rows.row_of_entry, rows.columns] = rows.values
        self._upper = rows.upper

    def add_row(self, coefficients: FloatArray, upper: float) -> None:
        self.backend.add_rows(Rows.single(np.arange(coefficients.size), coefficients, upper=upper))
        self._matrix = np.vstack([self._matrix, coefficients])
        self._upper = np.append(self._upper, upper)

    def add_column(self, coefficients: FloatArray, upper: float, objective: float, *, integer: bool) -> None:
        rows = np.flatnonzero(coefficients)
        index = self.backend.add_columns(
            1, upper=upper, integer=integer, objective=objective, row=rows, column=0, value=coefficients[rows]
        )
        assert index.tolist() == [self._matrix.shape[1]]
        new = (objective, 0.0, upper, integer)
        self._model = tuple(np.append(old, value) for old, value in zip(self._model, new, strict=True))  # type: ignore[assignment]
        self._matrix = np.column_stack([self._matrix, coefficients])

    def set_objective(self, objective: FloatArray) -> None:
        self.backend.set_objective(objective)
        self._model = (objective, *self._model[1:])

    def compare(self) -> None:
        """Solve the changed model, and the same on a new backend."""
        objective, lower, upper, integer = self._model
        model = MipModel(maximise=True)
        model.add_block("x", objective.size, lower=lower, upper=upper, integer=integer, objective=objective)
        row, column = np.nonzero(self._matrix)
        values = self._matrix[row, column]
        model.add_rows(Rows.from_entries(row, column, values, n_rows=self._upper.size, upper=self._upper))
        expected = loaded(self._factory, model).solve().objective
        result = self.backend.solve(self._options)
        assert result.termination is Termination.OPTIMAL and expected is not None
        assert close(result.objective, expected) and close(result.bound, expected)
        assert result.x is not None and np.all(model.rows.violation(result.x) <= TOLERANCE)


def _warm(backend: Backend, **options: Any) -> SolveOptions:
    return SolveOptions(warm=bool(backend.capabilities.start), **options)


@check
def changed_models_have_their_own_optimum(factory: BackendFactory) -> None:
    """After rows and columns were added and the objective replaced, the optimum is that of a new model."""
    pair = _Pair(factory, hard_knapsack(8, 3), _warm(factory(), solutions=5))
    generator = np.random.default_rng(5)
    pair.compare()
    pair.add_row(generator.integers(1, 9, 8) / 16.0, 1.5)
    pair.compare()
    pair.add_column(np.array([60.0, 0.0, 30.0, 0.25]), 1.0, 55.0, integer=True)
    pair.compare()
    pair.add_column(np.array([0.0, 70.0, 0.0, 3.0]), 1.0, 40.0, integer=True)  # its row is not small any more
    pair.compare()
    pair.set_objective(generator.integers(20, 90, 10).astype(float))
    pair.compare()
    pair.add_row(np.ones(10), 3.0)
    pair.compare()


@check
def changed_linear_models_have_their_own_optimum(factory: BackendFactory) -> None:
    """The same without integer columns, where a basis is kept."""
    if not factory().capabilities.continuous_columns:
        return
    generator = np.random.default_rng(6)
    model = MipModel(maximise=True)
    x = model.add_block("x", 9, upper=4.0, objective=generator.integers(1, 9, 9).astype(float))
    weights = generator.integers(1, 9, (5, 9)).astype(float)
    model.add_rows(
        Rows.from_entries(np.repeat(np.arange(5), 9), np.tile(x.index, 5), weights.ravel(), n_rows=5, upper=40.0)
    )
    pair = _Pair(factory, model, _warm(factory()))
    pair.compare()
    pair.add_row(generator.integers(1, 9, 9).astype(float), 30.0)
    pair.compare()
    pair.add_column(np.array([3.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.inf, 5.0, integer=False)
    pair.compare()
    pair.set_objective(generator.integers(1, 9, 10).astype(float))
    pair.compare()


@check_with("lazy_rows", "start")
def old_solutions_are_shown_to_the_handler(factory: BackendFactory) -> None:
    """A solution of the last solve that a new handler rejects is not the incumbent of a warm solve."""
    model = cardinality()
    backend = loaded(factory, model)
    for limit in (5, 3, 4):
        result = backend.solve(SolveOptions(warm=True), cardinality_handler(model, limit))
        assert close(result.objective, cardinality_optimum(model, limit))


@check
def malformed_changes_raise(factory: BackendFactory) -> None:
    """A wrong change of the model is an error and changes nothing."""
    backend = loaded(factory, knapsack())
    for objective in (np.ones(3), np.full(4, np.nan)):
        _expect_model_error(lambda objective=objective: backend.set_objective(objective))  # type: ignore[misc]
    for where in ({"row": [1], "column": [0]}, {"row": [0], "column": [1]}, {"row": [0, 0], "column": [0, 0]}):
        _expect_model_error(lambda where=where: backend.add_columns(1, integer=True, value=1.0, **where))  # type: ignore[misc]
    _expect_model_error(lambda: backend.add_columns(2, integer=True, objective=[1.0, np.nan]))
    assert close(backend.solve().objective, KNAPSACK_OPTIMUM)


def _expect_model_error(action: Callable[[], object]) -> None:
    try:
        action()
    except ModelError:
        return
    raise AssertionError("a ModelError was expected")
