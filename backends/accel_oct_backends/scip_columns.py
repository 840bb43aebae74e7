"""The columns and rows of a model in SCIP's terms. Importing this module imports PySCIPOpt."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pyscipopt.scip import Expr, ExprCons, Term

from accel_oct.mip import FloatArray, ModelArrays, Rows

#: What SCIP takes for infinite.
INFINITY = 1e20


class Columns:
    """The columns of the model as SCIP variables: building, reading and writing points, rows."""

    def __init__(self, model: Any, arrays: ModelArrays) -> None:
        self.model = model
        kinds = np.where(arrays.integer, "I", "C").tolist()
        lower, upper = _clipped(arrays.lower).tolist(), _clipped(arrays.upper).tolist()
        self.variables = [
            model.addVar(name=f"x{column}", vtype=kind, lb=low, ub=high, obj=value)
            for column, (kind, low, high, value) in enumerate(
                zip(kinds, lower, upper, arrays.objective.tolist(), strict=True)
            )
        ]
        if arrays.maximise:
            model.setMaximize()
        else:
            model.setMinimize()
        self._add_constraints(arrays.rows)

    def _add_constraints(self, rows: Rows) -> None:
        terms = [Term(variable) for variable in self.variables]
        for columns, values, lower, upper in _by_row(rows):
            expression = Expr({terms[column]: value for column, value in zip(columns, values, strict=True)})
            if not columns:  # PySCIPOpt has no constraint without variables
                expression = Expr({terms[0]: 0.0})
            self.model.addCons(ExprCons(expression, lower, upper))

    def set_branch_priorities(self, priorities: npt.NDArray[Any]) -> None:
        for variable, priority in zip(self.variables, np.asarray(priorities).tolist(), strict=True):
            self.model.chgVarBranchPriority(variable, int(priority))

    def read(self, solution: Any) -> FloatArray:
        """A solution of SCIP's as a full vector."""
        return np.fromiter(map(solution.__getitem__, self.variables), np.float64, len(self.variables))

    def read_relaxation(self) -> FloatArray:
        """The current LP solution: three times faster than reading it as a solution."""
        return np.fromiter((variable.getLPSol() for variable in self.variables), np.float64, len(self.variables))

    def write(self, solution: Any, x: FloatArray) -> None:
        put = self.model.setSolVal
        for variable, value in zip(self.variables, x.tolist(), strict=True):
            put(solution, variable, value)

    def add_cuts(self, rows: Rows) -> bool:
        """Hand globally valid rows to the LP; returns whether they show the current node to be infeasible.

        All of them: left to select, SCIP kept about one a round, and needed twice the LPs and nodes.
        """
        model, variables = self.model, self.variables
        put = model.addVarToRow
        for columns, values, lower, upper in _by_row(rows):
            row = model.createEmptyRowUnspec("cut", lower, upper, local=False, removable=False)
            model.cacheRowExtensions(row)
            for column, value in zip(columns, values, strict=True):
                put(row, variables[column], value)
            model.flushRowExtensions(row)
            infeasible = model.addCut(row, forcecut=True)
            model.releaseRow(row)
            if infeasible:
                return True
        return False


def _clipped(bounds: FloatArray) -> FloatArray:
    return np.clip(bounds, -INFINITY, INFINITY)


def _by_row(rows: Rows) -> Any:
    """Each row as plain Python lists and its two sides: what PySCIPOpt reads fastest."""
    columns, values, starts = rows.columns.tolist(), rows.values.tolist(), rows.starts.tolist()
    lower, upper = _clipped(rows.lower).tolist(), _clipped(rows.upper).tolist()
    for row in range(rows.n_rows):
        part = slice(starts[row], starts[row + 1])
        yield columns[part], values[part], lower[row], upper[row]
