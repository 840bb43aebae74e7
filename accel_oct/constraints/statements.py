"""Compare what a bound constraint says of trees for the tables and for prices with its `violation`."""

from __future__ import annotations

from accel_oct.constraints.protocol import BoundConstraint, local_rules
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.formulation.agreement import ROUNDING
from accel_oct.formulation.incumbent import broken_rules
from accel_oct.tree import DecisionTree
from accel_oct.tree.sample_trees import some_trees

__all__ = ["check_local_rules", "contradiction", "is_built_in", "survives_pruning"]


def is_built_in(constraint: BoundConstraint) -> bool:
    """Whether a bound constraint is one of the library, whose statements the tests compare with all trees."""
    return type(constraint).__module__.startswith("accel_oct.")


def survives_pruning(constraint: BoundConstraint) -> bool:
    """Whether a tree that keeps the constraint still does when splits that separate no samples are taken out of it.

    True of local rules, and of the library's own constraints, which limit predictions, leaves, paths and features from
    above; not of a `Linear` one that asks for more leaves or branches.
    """
    if local_rules(constraint) is not None:
        return True
    limits = getattr(constraint, "limits", None) or ()
    return is_built_in(constraint) and all(
        limit.leaves >= 0.0 and (limit.branches is None or bool((limit.branches >= 0.0).all())) for limit in limits
    )


def contradiction(constraint: BoundConstraint, dataset: BinaryDataset, tree: DecisionTree, kept: bool) -> str | None:
    """What `local` or `limits` say of a tree that its `violation` does not, as a clause; None where they agree.

    `local` says exactly what `violation` says. `limits` may allow more, but not less.

    Parameters
    ----------
    dataset : BinaryDataset
        The data that the constraint was bound to.
    kept : bool
        Whether `violation` allows the tree.
    """
    rules = local_rules(constraint)
    if rules is not None:
        excess = rules.excess(tree, dataset.X)
        if kept and excess > ROUNDING:
            return "its `local` rules forbid a tree that its `violation` allows"
        if not kept and excess < -ROUNDING:
            return "its `local` rules allow a tree that its `violation` forbids"
    for limit in getattr(constraint, "limits", None) or () if kept else ():
        used, size = limit.used_by(tree, dataset.X)
        if used - limit.upper - limit.tolerance > ROUNDING * max(size, abs(limit.upper)):
            return f"its limit {limit.name!r} forbids a tree that its `violation` allows"
    return None


def check_local_rules(constraints: tuple[BoundConstraint, ...], dataset: BinaryDataset, max_depth: int) -> None:
    """Try the `local` rules of constraints that are not of the library on a few trees.

    Raises
    ------
    InvalidInputError
        Naming the constraint.
    """
    foreign = [constraint for constraint in constraints if not is_built_in(constraint)]
    for tree in some_trees(dataset, max_depth) if foreign else ():
        for constraint in foreign:
            problem = contradiction(constraint, dataset, tree, kept=not broken_rules([constraint], tree))
            if problem is not None:
                raise InvalidInputError(f"constraints: `{constraint.name}`: {problem} (docs/write-a-constraint.md)")
