"""What `accel_oct.solve` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from accel_oct.errors import NoTreeError
from accel_oct.mip import relative_gap
from accel_oct.tree import DecisionTree

Status = Literal[
    "optimal", "infeasible", "gap_limit", "time_limit", "node_limit", "interrupted", "stopped", "solver_failed"
]

#: Every status that a result can have, for whoever reads one.
STATUSES: tuple[str, ...] = get_args(Status)


class HistoryRow(NamedTuple):
    """What was known at a moment of the solve, in normalised units; minus infinity before there is a tree."""

    seconds: float
    objective: float
    bound: float


#: Called with every row of the history as it is made.
Progress = Callable[[HistoryRow], None]


@dataclass(frozen=True)
class Scope:
    """The trees that a bound, an optimum or a proof that there is no tree speaks of.

    Attributes
    ----------
    max_depth : int or None
        None: any depth.
    splits : str
        What the trees may split on, in words.
    complete : bool
        Whether no other splits exist; if not, trees over other splits may keep constraints that these break.
    """

    max_depth: int | None
    splits: str
    complete: bool = True

    @classmethod
    def of_features(cls, max_depth: int, n_features: int) -> Scope:
        """Trees over all features of a binary data set."""
        return cls(max_depth, f"{n_features} binary feature{'' if n_features == 1 else 's'}")

    @property
    def depth(self) -> str:
        """How deep the trees may be, in words."""
        return "any depth" if self.max_depth is None else f"depth at most {self.max_depth}"

    def __str__(self) -> str:
        return f"of {self.depth} over {self.splits}"


@dataclass(frozen=True)
class ConstraintReport:
    """How a tree stands to a constraint.

    Attributes
    ----------
    name : str
    value : float or None
        What the constraint limits, of this tree; None where it does not say.
    lower, upper : float or None
        Between which limits the value must be; None where there is none.
    slack : float
        How far the tree is from breaking it.
    multiplier : float or None
        What the objective would gain, to first order, from one unit more of the limit; None where it was not priced.
    """

    name: str
    value: float | None
    slack: float
    multiplier: float | None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Result:
    """A tree, what it is worth, and what is proven about it.

    Attributes
    ----------
    found : DecisionTree or None
        The best tree found. None only under constraints that no tree keeps, or none that was met in time.
    objective : float
        Share of the weight classified correctly, minus the leaf penalty per leaf; minus infinity without a tree.
    bound : float
        No tree of that depth (that keeps every constraint) has a larger objective.
    status : str
        "optimal" only with a proof: ``bound == objective``. "infeasible" only with a proof too: no tree of that depth
        over these features keeps the constraints.
    seconds, nodes, backend
        Time, branch-and-bound nodes, and the backend that was chosen; ``stats["decided_by"]`` tells whether it had to
        run. "none" where no solver takes part.
    stats : mapping
        Per component: calls, cuts, trees, seconds; and what decided the solve. ``stats["infeasible"]`` names the
        constraints that no tree keeps together.
    history : tuple of HistoryRow
        (seconds, objective, bound) whenever one of them changed; every bound in it is valid.
    feature_names, class_names : tuple of str
        For `show`.
    constraints : tuple of ConstraintReport
        One per constraint, in the order given; empty without a tree.
    scope : Scope or None
        The trees that `bound` and `status` speak of.
    """

    found: DecisionTree | None
    objective: float
    bound: float
    status: Status
    seconds: float
    nodes: int
    backend: str
    stats: Mapping[str, Any]
    history: tuple[HistoryRow, ...]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    constraints: tuple[ConstraintReport, ...] = ()
    scope: Scope | None = None

    @property
    def tree(self) -> DecisionTree:
        """The best tree found.

        Raises
        ------
        NoTreeError
            Where there is none, see `found`.
        """
        if self.found is None:
            raise NoTreeError(self._missing(), self.status)
        return self.found

    def _missing(self) -> str:
        """Why there is no tree, and among which trees that is proven."""
        if self.status != "infeasible":
            return (
                f"no tree was found: the search ended with status {self.status!r} before it met a tree that keeps the "
                "constraints; this is no proof that there is none"
            )
        blamed = self.stats.get("infeasible", ())
        kept = " and ".join(f"`{name}`" for name in blamed) or "the constraints"
        kept += " together" if len(blamed) > 1 else ""
        if self.scope is None:
            return f"no tree keeps {kept}"
        rest = "" if self.scope.complete else "; a tree over other splits may"
        return f"no tree {self.scope} keeps {kept}{rest}"

    @property
    def gap(self) -> float:
        """``(bound - objective) / |objective|``; 0 means proven."""
        return relative_gap(self.objective, self.bound)

    def show(self) -> str:
        """The tree as text, in the names of the data."""
        return self.tree.to_text(self.feature_names, self.class_names)
