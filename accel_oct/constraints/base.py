"""The interface of constraints.

A `Constraint` is a small value that holds no data set: a limit, a name, an array of the user's. At the start of a solve
it is bound to the data. A `BoundConstraint`

- measures the violation of a tree, from the tree alone. This is its definition: every tree is checked before it becomes
  the incumbent (`accel_oct.formulation.Incumbent`);
- declares its properties (`Traits`). Phases, tables, prices, feature sets, tallies and the search over every split use
  these only;
- adds columns and rows to the master for the solver. Infeasible trees that satisfy the rows are cut off later
  (`accel_oct.cuts.no_goods`); the rows must hold for every tree that satisfies the constraint.

A constraint that couples subtrees disables the parts that choose subtrees independently: path-bound cuts, and the proof
by subtree tables (their bound stays valid, because it ignores the constraint). A *local* constraint, about single
leaves or single paths, does not couple subtrees: the tables apply its rules, and `frontier` supports it; path-bound
cuts are disabled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from accel_oct.constraints.statements import Statement
from accel_oct.constraints.traits import LinearLimit, Traits
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree

__all__ = [
    "BoundConstraint",
    "Constraint",
    "TreePart",
    "bind_all",
    "check_traits",
    "is_built_in",
    "limits_of",
    "local_rules",
]


@dataclass(frozen=True)
class TreePart:
    """A part of a tree, to be judged by `BoundConstraint.refuses`.

    A subtree that may stand at any node: `path` is None. Or a path from the root: `nested` is None, and the node at the
    end of the path branches on the last feature. Or a subtree at the end of a path.

    Attributes
    ----------
    nested : tuple or None
        A subtree with at least one split: (feature, zero side, one side), where a side is such a tuple or a class.
    path : tuple of (feature, side), or None
        Features from the root on with the side of the next node. Without a subtree the side of the last one is None.
    """

    nested: Any = None
    path: tuple[tuple[int, int | None], ...] | None = None

    @cached_property
    def tree(self) -> DecisionTree | None:
        """The subtree as a tree of its own."""
        return None if self.nested is None else DecisionTree.from_nested(self.nested, nested_depth(self.nested))


def nested_depth(nested: Any) -> int:
    """Return the depth of a tree that is a class or a tuple (feature, zero side, one side)."""
    return 1 + max(nested_depth(nested[1]), nested_depth(nested[2])) if isinstance(nested, tuple) else 0


class BoundConstraint(ABC):
    """A constraint bound to data. Subclasses define `name` and `violation`; everything else has a default."""

    if TYPE_CHECKING:  # a field, a property or a class attribute

        @property
        def name(self) -> str:
            """Name in messages and statistics."""

    @abstractmethod
    def violation(self, tree: DecisionTree) -> float:
        """Return the violation of a tree, at most zero if it satisfies the constraint; depends on the tree alone."""

    @property
    def traits(self) -> Traits:
        """Declared properties; none by default."""
        return Traits()

    def add_to(self, master: Master) -> None:
        """Add columns and rows to the master; `Master.add_lift` fills own columns for a tree.

        Every tree without violation must satisfy the rows. By default they follow from the traits. The method may do
        nothing: trees are then rejected one by one, or by `forbid`.
        """
        self.traits.add_to(master, self.name)

    def forbid(self, tree: DecisionTree, master: Master) -> Rows | None:
        """Return rows that an infeasible tree violates by at least one and that every feasible tree satisfies.

        For constraints with too many rows to add them all at once. By default they follow from the traits; None cuts
        off this tree alone.
        """
        return self.traits.forbid(tree, master)

    def refuses(self, part: TreePart) -> bool:
        """Return whether no feasible tree contains a part; called for the parts that `Traits.refuses` names.

        True means that every tree with this part violates the constraint: a wrong True loses feasible trees, and with
        them the optimum. False is always allowed.
        """
        return False

    def context(self, path: tuple[tuple[int, int], ...]) -> Hashable:
        """Return what `refuses` uses of the path of a subtree; called if `Traits.refuses` has "nodes".

        Subtrees of equal sets of samples are listed once for all paths with an equal context.
        """
        return path

    def statements(self) -> tuple[Statement, ...] | None:
        """Return the whole constraint as exact limits by their meaning, for certificates; None if it has no such form.

        A tree satisfies all of them if and only if it satisfies the constraint by its `violation`.
        """
        return None

    def value(self, tree: DecisionTree) -> float | None:
        """Return the limited quantity in its own unit, for reports; None if not available."""
        return None

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        """Lower and upper limit of `value`; None for no limit."""
        return None, None


class Constraint(ABC):
    """A constraint of `accel_oct.solve`."""

    @abstractmethod
    def bind(self, dataset: BinaryDataset) -> BoundConstraint:
        """Return the constraint for these data, in which equal rows are not merged. May return `self`.

        Raises
        ------
        InvalidInputError
            Naming the constraint and the argument that does not fit the data.
        """

    @property
    def named_columns(self) -> tuple[str, ...]:
        """Names of columns whose values define groups of samples; data in pieces are read with these groups."""
        return ()

    def on_tally(self, counted: bool) -> Constraint:
        """Return the constraint for a tally, to be bound to its cells.

        Parameters
        ----------
        counted : bool
            Whether every sample has weight one, so that weights are numbers of samples.

        Raises
        ------
        InvalidInputError
            Naming the argument that needs rows.
        """
        return self


def bind_all(constraints: Sequence[Constraint] | None, dataset: BinaryDataset) -> tuple[BoundConstraint, ...]:
    """Bind the argument `constraints`, or raise InvalidInputError that names the invalid entry."""
    return tuple(_bound(value, place, dataset) for place, value in enumerate(as_list(constraints)))


def as_list(constraints: Any) -> list[Any]:
    """Return the argument `constraints` as a list; its entries are not checked."""
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
        got = "an object without a name" if isinstance(bound, BoundConstraint) else shown(bound)
        raise InvalidInputError(f"constraints[{place}]: `bind` must return a BoundConstraint with a name, got {got}")
    problem = bound.traits.shape_problem(dataset)
    if problem is not None:
        raise InvalidInputError(f"constraints[{place}]: {problem}")
    return bound


def named_groups(constraints: Any) -> list[str]:
    """Return the columns that define groups for constraints, without duplicates."""
    listed = constraints if isinstance(constraints, list | tuple) else []
    return list(dict.fromkeys(name for each in listed if isinstance(each, Constraint) for name in each.named_columns))


def limits_of(constraints: Iterable[BoundConstraint]) -> list[LinearLimit]:
    """Return all linear limits of some constraints."""
    return [limit for constraint in constraints for limit in constraint.traits.limits or ()]


def local_rules(constraints: Iterable[BoundConstraint]) -> LocalRules | None:
    """Return the conjunction of the local rules of some constraints; None if nothing is forbidden."""
    found = [constraint.traits.local for constraint in constraints]
    return LocalRules.joined([rules for rules in found if rules is not None])


# ---------------------------------------------------------------- checks of declared traits


def is_built_in(constraint: BoundConstraint) -> bool:
    """Return whether a bound constraint belongs to the library, whose traits are tested on all trees."""
    return type(constraint).__module__.startswith("accel_oct.")


def check_traits(constraints: Iterable[BoundConstraint], dataset: BinaryDataset, trees: Iterable[DecisionTree]) -> None:
    """Compare the traits of third-party constraints with their `violation` on some trees.

    Raises
    ------
    InvalidInputError
        Naming the constraint.
    """
    foreign = [(each, each.traits) for each in constraints if not is_built_in(each)]
    foreign = [(each, traits) for each, traits in foreign if traits.has_form]
    for tree in trees if foreign else ():
        for constraint, traits in foreign:
            problem = traits.contradiction(tree, dataset.X, satisfied=constraint.violation(tree) <= 0.0)
            if problem is not None:
                raise InvalidInputError(f"constraints: `{constraint.name}`: {problem} (docs/write-a-constraint.md)")
