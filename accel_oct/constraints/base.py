"""What a constraint is written against.

A `Constraint` is a small value that knows no data: a limit, a name, an array of the user's. When a solve begins it is
bound to the data. A `BoundConstraint` can then

- measure by how much a tree violates it, from the tree alone. This is its definition: no tree becomes the incumbent
  before every constraint was asked (`accel_oct.formulation.Incumbent`);
- declare what it is (`Traits`). Phases, tables, prices, feature sets, tallies and the search over every split ask this
  and nothing else;
- write itself into the master as columns and rows, so that the solver knows of it. What the rows let through is caught
  by the definition (`accel_oct.cuts.no_goods`); what they forbid is lost, so they must hold for every tree that keeps
  the constraint.

A constraint that ties subtrees together switches off whatever chooses them one by one: path-bound cuts, and the proof
by subtree tables (their bound still holds, for the best tree of all is at least as good as the best one allowed). A
*local* constraint, about single leaves or single paths, does not: the tables take its rules in, and `frontier` accepts
it; path-bound cuts stay off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from accel_oct.constraints.traits import LinearLimit, Traits
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.formulation.incumbent import broken_rules
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree
from accel_oct.tree.sample_trees import some_trees

__all__ = ["BoundConstraint", "Constraint", "bind_all", "check_traits", "is_built_in", "limits_of", "local_rules"]


class BoundConstraint(ABC):
    """A constraint that knows the data. Subclasses have a `name` and `violation`; the rest has defaults."""

    if TYPE_CHECKING:  # a field, a property or a class attribute

        @property
        def name(self) -> str:
            """What messages and statistics call it."""

    @abstractmethod
    def violation(self, tree: DecisionTree) -> float:
        """By how much the tree breaks the limit; at most zero where it keeps it. Nothing but the tree is asked."""

    @property
    def traits(self) -> Traits:
        """What the constraint is; by default nothing is known of it."""
        return Traits()

    def add_to(self, master: Master) -> None:
        """Write columns and rows; own columns are filled for a tree by `Master.add_lift`.

        Every tree without violation must satisfy the rows. By default they follow from the traits. Doing nothing is
        allowed: trees are then rejected one by one, or by `forbid`.
        """
        self.traits.add_to(master, self.name)

    def forbid(self, tree: DecisionTree, master: Master) -> Rows | None:
        """Rows that a tree that breaks the constraint violates by at least one, and that all that keep it satisfy.

        For constraints whose rows are too many to be written at once. By default they follow from the traits; None
        cuts off this tree alone.
        """
        return self.traits.forbid(tree, master)

    def value(self, tree: DecisionTree) -> float | None:
        """What is limited, in its own unit, for reports; None where the constraint does not say."""
        return None

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        """Limits of `value`, below and above; None where there is none."""
        return None, None


class Constraint(ABC):
    """What `accel_oct.solve` takes in `constraints`."""

    @abstractmethod
    def bind(self, dataset: BinaryDataset) -> BoundConstraint:
        """The constraint for these data, as the user gave them: rows are not merged. May be the object itself.

        Raises
        ------
        InvalidInputError
            Naming the constraint and the argument that does not fit the data.
        """

    @property
    def named_columns(self) -> tuple[str, ...]:
        """Columns whose values tell groups of samples apart, by name: data in pieces are read with these groups."""
        return ()

    def on_tally(self, counted: bool) -> Constraint:
        """The constraint in terms that a tally knows, to be bound to its cells.

        Parameters
        ----------
        counted : bool
            Whether every sample weighs one, so that weights are numbers of samples.

        Raises
        ------
        InvalidInputError
            Naming the argument that cannot be told from a tally.
        """
        return self


def bind_all(constraints: Sequence[Constraint] | None, dataset: BinaryDataset) -> tuple[BoundConstraint, ...]:
    """Bind what a user gave, with an error that names what is no constraint."""
    return tuple(_bound(value, place, dataset) for place, value in enumerate(as_list(constraints)))


def as_list(constraints: Any) -> list[Any]:
    """What a user gave as `constraints`; its entries are not checked yet."""
    if constraints is None:
        return []
    if isinstance(constraints, Constraint) or not isinstance(constraints, Sequence) or isinstance(constraints, str):
        raise InvalidInputError(f"constraints must be a list of constraints, got {shown(constraints)}")
    return list(constraints)


def _bound(value: Any, place: int, dataset: BinaryDataset) -> BoundConstraint:
    if not isinstance(value, Constraint):
        hint = f"; did you mean {value.__name__}(...)?" if isinstance(value, type) else ""
        raise InvalidInputError(f"constraints[{place}] must be an accel_oct Constraint, got {shown(value)}{hint}")
    bound: Any = value.bind(dataset)
    if not isinstance(bound, BoundConstraint) or not hasattr(bound, "name"):
        what = "has no name" if isinstance(bound, BoundConstraint) else f"is no BoundConstraint, but {shown(bound)}"
        raise InvalidInputError(f"constraints[{place}]: what `bind` returned {what}")
    problem = bound.traits.misfit(dataset)
    if problem is not None:
        raise InvalidInputError(f"constraints[{place}]: {problem}")
    return bound


def named_groups(constraints: Any) -> list[str]:
    """The columns whose values constraints tell apart, each once."""
    listed = constraints if isinstance(constraints, list | tuple) else []
    return list(dict.fromkeys(name for each in listed if isinstance(each, Constraint) for name in each.named_columns))


def limits_of(constraints: Iterable[BoundConstraint]) -> list[LinearLimit]:
    """All linear limits of some constraints."""
    return [limit for constraint in constraints for limit in constraint.traits.limits or ()]


def local_rules(constraints: Iterable[BoundConstraint]) -> LocalRules | None:
    """All rules about leaves and paths of some constraints together; None where nothing is forbidden."""
    found = [constraint.traits.local for constraint in constraints]
    return LocalRules.joined([rules for rules in found if rules is not None])


# ---------------------------------------------------------------- whether what is declared is true


def is_built_in(constraint: BoundConstraint) -> bool:
    """Whether a bound constraint is one of the library, whose traits the tests compare with all trees."""
    return type(constraint).__module__.startswith("accel_oct.")


def check_traits(constraints: Iterable[BoundConstraint], dataset: BinaryDataset, trees: Iterable[DecisionTree]) -> None:
    """Compare the traits of constraints that are not of the library with their `violation` on some trees.

    Raises
    ------
    InvalidInputError
        Naming the constraint.
    """
    foreign = [each for each in constraints if not is_built_in(each) and each.traits.says_something]
    for tree in trees if foreign else ():
        for constraint in foreign:
            kept = not broken_rules([constraint], tree)
            problem = constraint.traits.contradiction(tree, dataset.X, kept)
            if problem is not None:
                raise InvalidInputError(f"constraints: `{constraint.name}`: {problem} (docs/write-a-constraint.md)")


def trees_to_check(dataset: BinaryDataset, max_depth: int) -> Iterable[DecisionTree]:
    """A few trees for `check_traits` before a search."""
    return some_trees(dataset, max_depth)
