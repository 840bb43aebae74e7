"""An engine for `BranchAndCut` that needs no backend: LPs by scipy, to check what a MIP solver claims."""

from __future__ import annotations

import numpy as np

from accel_oct.mip.certificates import LinearProgram
from accel_oct.mip.engine import IntegerRequest, Run
from accel_oct.mip.errors import UnsupportedError
from accel_oct.mip.model import ModelArrays
from accel_oct.mip.rows import FloatArray, IntArray, Rows


class ScipyEngine:
    """A `BranchingEngine` for LPs only."""

    def __init__(self, model: ModelArrays) -> None:
        self._model = model
        self._cuts = Rows.empty()
        self._lower, self._upper = model.lower.copy(), model.upper.copy()

    def solve_relaxation(self, seconds: float) -> Run:
        model = self._model
        rows = Rows.concatenate([model.rows, self._cuts])
        return LinearProgram(model.objective, model.sign, rows, self._lower, self._upper).solve(seconds)

    def add_relaxation_rows(self, rows: Rows) -> None:
        self._cuts = Rows.concatenate([self._cuts, rows])

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        stay = np.ones(self._cuts.n_rows, dtype=bool)
        stay[positions] = False
        self._cuts = self._cuts.take(stay)

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self._lower[columns], self._upper[columns] = lower, upper

    def solve_integer(self, request: IntegerRequest) -> Run:
        raise UnsupportedError("the engine of the checks solves LPs only")

    def add_integer_rows(self, rows: Rows) -> None:
        raise UnsupportedError("the engine of the checks solves LPs only")
