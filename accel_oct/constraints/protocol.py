"""What a constraint is written against.

A `Constraint` is a small value that knows no data: a limit, a name, an array of the user's. When a solve begins it is
bound to the data, and from then on it can do two things, independently of each other:

- measure by how much a tree violates it, from the tree alone. This is its definition: no tree becomes the incumbent
  before every constraint was asked (`accel_oct.formulation.Incumbent`);
- write itself into the master as columns and rows, so that the solver knows of it. What the rows let through is
  caught by the definition (`accel_oct.cuts.no_goods`); what they forbid is lost, so they must hold for every tree that
  satisfies the constraint.

A constraint that ties subtrees together switches off whatever chooses them one by one: path-bound cuts, and the proof
by subtree tables (their bound still holds, for the best tree of all is at least as good as the best one allowed). A
*local* constraint, about single leaves or single paths, does not, if it says so: a bound constraint may have an
attribute `local` with `accel_oct.exact.LocalRules` (or None) that say exactly what its `violation` says, in rows and
columns of the data that it was bound to. The tables take these rules in and prove with them, and `accel_oct.frontier`
accepts the constraint; path-bound cuts stay off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.tree import DecisionTree


class BoundConstraint(Protocol):
    """A constraint that knows the data."""

    @property
    def name(self) -> str:
        """What messages and statistics call it."""

    def violation(self, tree: DecisionTree) -> float:
        """By how much the tree breaks the limit; at most zero where it keeps it. Nothing but the tree is asked."""

    def add_to(self, master: Master) -> None:
        """Write columns and rows; own columns are filled for a tree by `Master.add_lift`.

        Every tree without violation must satisfy the rows. Doing nothing is allowed: trees are then rejected one by
        one; or by what a further method ``forbid(tree, master) -> Rows | None`` says of a tree that breaks the rule,
        see `accel_oct.cuts.no_goods.Forbids`.
        """


@runtime_checkable
class Constraint(Protocol):
    """What `accel_oct.solve` takes in `constraints`."""

    def bind(self, dataset: BinaryDataset) -> BoundConstraint:
        """The constraint for these data, as the user gave them: rows are not merged. May be the object itself.

        Raises
        ------
        InvalidInputError
            Naming the constraint and the argument that does not fit the data.
        """


def local_rules(constraint: BoundConstraint) -> LocalRules | None:
    """What a bound constraint says of leaves and paths, if that is all that it says."""
    rules: LocalRules | None = getattr(constraint, "local", None)
    return rules


def bind_all(constraints: Sequence[Constraint] | None, dataset: BinaryDataset) -> tuple[BoundConstraint, ...]:
    """Bind what a user gave, with an error that names what is no constraint."""
    return tuple(_bound(value, place, dataset) for place, value in enumerate(_as_list(constraints)))


def _as_list(constraints: Any) -> list[Any]:
    if constraints is None:
        return []
    if isinstance(constraints, Constraint) or not isinstance(constraints, Sequence) or isinstance(constraints, str):
        raise InvalidInputError(f"constraints must be a list of constraints, got {shown(constraints)}")
    return list(constraints)


def _bound(value: Any, place: int, dataset: BinaryDataset) -> BoundConstraint:
    if isinstance(value, type) or not isinstance(value, Constraint):
        hint = f"; did you mean {value.__name__}(...)?" if isinstance(value, type) else ""
        raise InvalidInputError(f"constraints[{place}] has no method `bind`, got {shown(value)}{hint}")
    bound = value.bind(dataset)
    missing = [method for method in ("violation", "add_to", "name") if not hasattr(bound, method)]
    if missing:
        raise InvalidInputError(f"constraints[{place}]: what `bind` returned has no {', '.join(missing)}")
    rules: Any = local_rules(bound)
    if rules is not None and not isinstance(rules, LocalRules):
        raise InvalidInputError(f"constraints[{place}]: local must be LocalRules or None, got {shown(rules)}")
    if rules is not None and not rules.fit(*dataset.X.shape):
        raise InvalidInputError(f"constraints[{place}]: local does not have the rows or columns of the data")
    return bound
