"""Parameters of an estimator that become constraints, and nested parameters of constraints."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from accel_oct.constraints import (
    BoundConstraint,
    Constraint,
    InteractionGroups,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    Monotone,
)
from accel_oct.constraints.monotone import Direction
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.mip import as_solver
from accel_oct.objectives import Score, StrictScore
from accel_oct.support.arguments import as_whole, whole_number


def all_constraints(
    constraints: Sequence[Constraint] | None,
    min_samples_leaf: Any,
    max_leaf_nodes: Any,
    max_features_used: Any,
    n_samples: int,
    n_present: int,
) -> list[Constraint]:
    """Return the constraints, including those of other parameters; `n_present` samples have positive weight."""
    if constraints is not None and not isinstance(constraints, list | tuple):
        raise InvalidInputError(f"constraints must be a list of constraints, got {shown(constraints)}")
    found = list(constraints or [])
    # A single leaf is always allowed, as in scikit-learn.
    least = min(least_samples(min_samples_leaf, n_samples), n_present)
    if least > 1:
        found.append(MinLeafWeight(samples=least))
    for name, value, kind, fewest in (
        ("max_leaf_nodes", max_leaf_nodes, MaxLeaves, 1),
        ("max_features_used", max_features_used, MaxFeatures, 0),
    ):
        if value is not None:
            found.append(kind(whole_number(value, name, fewest)))
    return found


def column_constraints(model: Any) -> list[Constraint]:
    """Return the constraints of `monotonic_cst` and `interaction_cst`, after the columns of X are known."""
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{place}" for place in range(model.n_features_in_)] if names is None else list(map(str, names))
    return [*_monotone_constraints(model.monotonic_cst, names), *_interactions(model.interaction_cst, names)]


def n_by_parameter(model: Any) -> int:
    """Return the number of constraints that come from other parameters than `constraints`."""
    limits = model.max_leaf_nodes, model.max_features_used
    return int(model.min_samples_leaf != 1) + sum(each is not None for each in limits) + len(column_constraints(model))


def _interactions(interaction_cst: Any, names: Sequence[str]) -> list[Constraint]:
    if interaction_cst is None:
        return []
    if isinstance(interaction_cst, str):
        if interaction_cst not in ("pairwise", "no_interactions"):
            raise InvalidInputError(
                f"interaction_cst must be 'pairwise', 'no_interactions' or lists of columns, got {interaction_cst!r}"
            )
        return [InteractionGroups(interaction_cst)]
    groups = _entries(interaction_cst)
    return [InteractionGroups([[_column(column, names) for column in _entries(group)] for group in groups])]


def _entries(values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Collection | np.ndarray):
        raise InvalidInputError(f"interaction_cst must hold lists of columns, got {shown(values)}")
    return list(values)


def _column(column: Any, names: Sequence[str]) -> str:
    if isinstance(column, str) and column in names:
        return column
    place = as_whole(column)
    if place is None or not 0 <= place < len(names):
        raise InvalidInputError(f"interaction_cst: X has no column {shown(column)}; it has {shown(list(names))}")
    return names[place]


def checked_leaf(value: Any) -> Any:
    """Return a valid `min_samples_leaf`."""
    least_samples(value, 1)
    return value


def least_samples(value: Any, n_samples: int) -> int:
    """Return `min_samples_leaf` as a count; a share is rounded up, as in scikit-learn."""
    if (whole := as_whole(value)) is not None and whole >= 1:
        return whole
    if isinstance(value, float | np.floating) and 0 < value < 1:
        return math.ceil(float(value) * n_samples)
    raise InvalidInputError(
        f"min_samples_leaf must be a whole number of at least 1, or a share between 0 and 1, got {shown(value)}"
    )


def _monotone_constraints(monotonic_cst: Any, names: Sequence[str]) -> list[Monotone]:
    """Return the constraints that `monotonic_cst` stands for, in the order of the columns.

    Parameters
    ----------
    monotonic_cst : mapping from names to 1, 0 or -1, array-like of these with one entry per column, or None
    names : sequence of str
        Names of the columns of X.
    """
    if monotonic_cst is None:
        return []
    if isinstance(monotonic_cst, Mapping):
        for name in monotonic_cst:
            if name not in names:
                raise InvalidInputError(f"monotonic_cst: X has no column {shown(name)}{did_you_mean(name, names)}")
        signs = [monotonic_cst.get(name, 0) for name in names]
    else:
        if isinstance(monotonic_cst, str) or not isinstance(monotonic_cst, Sequence | np.ndarray):
            raise InvalidInputError(
                f"monotonic_cst must map names of columns to 1, 0 or -1, or list these, got {shown(monotonic_cst)}"
            )
        signs = list(monotonic_cst)
        if len(signs) != len(names):
            raise InvalidInputError(f"monotonic_cst has {len(signs)} entries, but X has {len(names)} columns")
    for name, sign in zip(names, signs, strict=True):
        if as_whole(sign) not in (-1, 0, 1):
            raise InvalidInputError(f"monotonic_cst must be 1, 0 or -1 for each column, got {shown(sign)} for {name!r}")
    directions: Mapping[int, Direction] = {1: "increasing", -1: "decreasing"}
    return [Monotone(name, directions[int(sign)]) for name, sign in zip(names, signs, strict=True) if sign]


def checked_penalties(leaf_penalties: Any) -> list[float]:
    """Return leaf penalties as floats in the given order, or raise InvalidInputError."""
    try:
        penalties = [float(penalty) for penalty in leaf_penalties]
    except (TypeError, ValueError):
        raise InvalidInputError(f"leaf_penalties must be numbers, got {shown(leaf_penalties)}") from None
    if not penalties or not all(np.isfinite(p) and p >= 0 for p in penalties):
        raise InvalidInputError(f"leaf_penalties must be finite and not negative, got {leaf_penalties!r}")
    return penalties


def excluded_columns(exclude: Any, table: Table) -> frozenset[int]:
    """Return the positions of columns that are given by name or position."""
    if exclude is None:
        return frozenset()
    if isinstance(exclude, str) or not isinstance(exclude, Collection | np.ndarray):
        raise InvalidInputError(f"exclude must be a list of columns, got {shown(exclude)}")
    n_columns = len(table.columns)
    place = {table.name(position): position for position in range(n_columns)}
    found = set()
    for column in exclude:
        if isinstance(column, str):
            if column not in place:
                raise InvalidInputError(f"exclude: X has no column {shown(column)}; it has {shown(list(place))}")
            found.add(place[column])
        elif as_whole(column) not in range(n_columns):
            raise InvalidInputError(f"exclude must hold names or positions of columns, got {shown(column)}")
        else:
            found.add(int(column))
    if len(found) == n_columns:
        raise InvalidInputError("exclude leaves no column to split on")
    return frozenset(found)


def check_splittable(constraints: Sequence[BoundConstraint], score: Score) -> None:
    """Raise if a constraint or the objective cannot be used on the rows of a fold.

    An array over the rows cannot be split. A `StrictScore` is defined by its own rows, and held-out rows are others.
    """
    if isinstance(score, StrictScore):
        raise InvalidInputError(
            f"objective: cross-validation does not support {score.name}, {score.kind}; use OptimalTreeClassifier"
        )
    held = [(f"constraints[{place}]", each.traits.arrays) for place, each in enumerate(constraints)]
    for where, arrays in [*held, ("objective", score.arrays)]:
        if arrays:
            hint = "costs" if where == "objective" else "sensitive_features"
            raise InvalidInputError(
                f"{where}: {arrays[0]} is an array over the rows, which does not follow the folds; "
                f"name a column, or pass {hint} to fit"
            )


# ---------------------------------------------------------------- limits as parameters of the estimator


def nested_parameters(constraints: Any, objective: Any, solver: Any) -> dict[str, Any]:
    """Return nested parameters such as ``constraints__0__at_most``, one per field of each dataclass."""
    found: dict[str, Any] = {}
    listed = list(enumerate(constraints)) if isinstance(constraints, list | tuple) else []
    single = [("objective", objective), ("solver", solver)]
    for prefix, value in [*((f"constraints__{place}", each) for place, each in listed), *single]:
        if is_dataclass(value) and not isinstance(value, type):
            found |= {f"{prefix}__{field.name}": getattr(value, field.name) for field in fields(value) if field.init}
    return found


def with_nested(constraints: Any, objective: Any, solver: Any, changes: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return constraints, objective and solver with nested parameters changed; unknown names raise."""
    solver = as_solver(solver) if any(name.startswith("solver__") for name in changes) else solver
    known = nested_parameters(constraints, objective, solver)
    changed = list(constraints) if isinstance(constraints, list | tuple) else constraints
    for name, value in changes.items():
        if name not in known:
            raise InvalidInputError(f"Invalid parameter {name!r}; known are {', '.join(known) or 'none'}")
        first, *middle, field = name.split("__")
        if first == "objective":
            objective = replace(objective, **{field: value})
        elif first == "solver":
            solver = replace(solver, **{field: value})
        else:
            place = int(middle[0])
            changed[place] = replace(changed[place], **{field: value})
    return changed, objective, solver
