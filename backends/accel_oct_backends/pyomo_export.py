"""A model as an ordinary Pyomo `ConcreteModel`. Pyomo is imported when it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from accel_oct.mip import FloatArray, MipModel, ModelArrays, Rows


def to_pyomo(model: MipModel) -> Any:
    """The model as a `pyomo.environ.ConcreteModel`, to extend, solve and write as you like.

    Each column block is an indexed `Var` of its name and shape, each batch of rows an indexed `Constraint` named after
    what was said when it was added, and the objective is ``objective``. Nothing links the result to the original.

    Parameters
    ----------
    model : MipModel

    Returns
    -------
    pyomo.environ.ConcreteModel

    Examples
    --------
    >>> exported = to_pyomo(model)  # doctest: +SKIP
    >>> exported.at_most_two = pyomo.environ.Constraint(expr=sum(exported.take.values()) <= 2)  # doctest: +SKIP
    >>> pyomo.environ.SolverFactory("highs").solve(exported)  # doctest: +SKIP
    >>> exported.write("model.lp", io_options={"symbolic_solver_labels": True})  # doctest: +SKIP
    """
    import pyomo.environ as pyo

    result, arrays = pyo.ConcreteModel(), ModelArrays.of(model)
    columns: list[Any] = []
    for block in model.blocks.values():
        names = [position[0] if len(position) == 1 else position for position in np.ndindex(*block.shape)]
        variable = pyo.Var(names) if block.shape else pyo.Var()
        result.add_component(_component_name(result, block.name), variable)
        columns += [variable[name] for name in names] if block.shape else [variable]
    set_domains(columns, arrays, integer=True)
    for what, rows in model.row_batches:
        constraint = pyo.Constraint(range(rows.n_rows), rule=_rule(columns, rows))
        result.add_component(_component_name(result, what), constraint)
    result.add_component(_component_name(result, "objective"), objective(columns, arrays))
    return result


def set_domains(columns: list[Any], arrays: ModelArrays, *, integer: bool) -> None:
    """Give Pyomo variables the bounds of the model and, if wanted, its integrality."""
    import pyomo.environ as pyo

    bounds = zip(columns, finite(arrays.lower), finite(arrays.upper), arrays.integer.tolist(), strict=True)
    for variable, lower, upper, integral in bounds:
        whole = integral and integer
        variable.domain = (pyo.Binary if (lower, upper) == (0.0, 1.0) else pyo.Integers) if whole else pyo.Reals
        variable.setlb(lower)
        variable.setub(upper)


def objective(columns: list[Any], arrays: ModelArrays) -> Any:
    import pyomo.environ as pyo
    from pyomo.core.expr import LinearExpression

    used = np.flatnonzero(arrays.objective)
    expression = LinearExpression(
        constant=0.0,
        linear_coefs=arrays.objective[used].tolist(),
        linear_vars=[columns[column] for column in used],
    )
    return pyo.Objective(expr=expression, sense=pyo.maximize if arrays.maximise else pyo.minimize)


def row_expressions(columns: list[Any], rows: Rows) -> Iterator[Any]:
    """Each row as Pyomo takes it: an equation, or (lower, linear expression, upper)."""
    from pyomo.core.expr import LinearExpression

    starts, entries, values = rows.starts.tolist(), rows.columns.tolist(), rows.values.tolist()
    for row, (lower, upper) in enumerate(zip(finite(rows.lower), finite(rows.upper), strict=True)):
        part = slice(starts[row], starts[row + 1])
        body = LinearExpression(
            constant=0.0, linear_coefs=values[part], linear_vars=[columns[column] for column in entries[part]]
        )
        yield body == lower if lower is not None and lower == upper else (lower, body, upper)


def finite(bounds: FloatArray) -> list[float | None]:
    """Bounds as Pyomo takes them: None for none."""
    return [bound if known else None for bound, known in zip(bounds.tolist(), np.isfinite(bounds), strict=True)]


def _rule(columns: list[Any], rows: Rows) -> Any:
    import pyomo.environ as pyo

    expressions = list(row_expressions(columns, rows))
    lengths = np.diff(rows.starts)

    def rule(_: Any, row: int) -> Any:
        if lengths[row]:
            return expressions[row]
        return pyo.Constraint.Skip if rows.lower[row] <= 0.0 <= rows.upper[row] else pyo.Constraint.Infeasible

    return rule


def _component_name(model: Any, name: str) -> str:
    """The name as an identifier that the model does not have yet."""
    base = re.sub(r"\W+", "_", name).strip("_") or "component"
    candidate, number = base, 1
    while hasattr(model, candidate):
        number += 1
        candidate = f"{base}_{number}"
    return candidate
