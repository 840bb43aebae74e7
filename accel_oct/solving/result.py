"""Results: how a computation ended, its history, and the `Result` that `accel_oct.solve` and others return."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from accel_oct.certificates import Certificate, FeatureProblem, write_certificate
from accel_oct.constraints import BoundConstraint
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.mip import relative_gap
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

#: How a computation ended. "finished": everything that was asked for was computed, where that is no optimum.
Status = Literal[
    "optimal",
    "infeasible",
    "finished",
    "gap_limit",
    "time_limit",
    "node_limit",
    "memory_limit",
    "interrupted",
    "stopped",
    "solver_failed",
]

#: Every status, for readers of stored results.
STATUSES: tuple[str, ...] = get_args(Status)


class HistoryRow(NamedTuple):
    """Objective and bound at a time of the solve, in normalised units; minus infinity before there is a tree."""

    seconds: float
    objective: float
    bound: float


@dataclass(frozen=True, eq=False)
class RunOutcome:
    """How a computation ended.

    Attributes
    ----------
    decided_by : str
        The phase that found the proof.
    """

    status: Status
    decided_by: str
    seconds: float
    history: tuple[HistoryRow, ...]


@dataclass(frozen=True)
class Scope:
    """The set of trees to which a bound, an optimum or a proof of infeasibility refers.

    Attributes
    ----------
    max_depth : int or None
        None: any depth.
    splits : str
        Description of the splits of the trees.
    complete : bool
        Whether no other splits exist; if not, trees over other splits may be feasible.
    """

    max_depth: int | None
    splits: str
    complete: bool = True

    @classmethod
    def of_features(cls, max_depth: int, n_features: int) -> Scope:
        """Return the scope of trees over all features of a binary data set."""
        return cls(max_depth, f"{n_features} binary feature{'' if n_features == 1 else 's'}")

    @property
    def depth(self) -> str:
        """Description of the depth limit."""
        return "any depth" if self.max_depth is None else f"depth at most {self.max_depth}"

    def __str__(self) -> str:
        return f"of {self.depth} over {self.splits}"


@dataclass(frozen=True)
class ConstraintReport:
    """Value, limits and slack of a constraint for a tree.

    Attributes
    ----------
    name : str
    value : float or None
        The limited quantity; None if the constraint does not report it.
    lower, upper : float or None
        Limits of the value; None for no limit.
    slack : float
        Distance of the tree from a violation.
    multiplier : float or None
        Gain of the objective, to first order, per unit of the limit; None if it was not priced.
    """

    name: str
    value: float | None
    slack: float
    multiplier: float | None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Result:
    """The result of a solve: a tree, its objective, and a proven bound.

    Attributes
    ----------
    found : DecisionTree or None
        The best tree found. None only under constraints, if no tree is feasible or none was found in time.
    objective : float
        Share of the weight classified correctly, minus the leaf penalty per leaf; minus infinity without a tree.
    bound : float
        Upper bound on the objective of all feasible trees of the given depth.
    status : str
        "optimal" only with a proof: ``bound == objective``. "infeasible" only with a proof too: no tree of that depth
        over these features satisfies the constraints.
    seconds, nodes, backend
        Time, branch-and-bound nodes, and the backend that was chosen; ``stats["decided_by"]`` tells whether it had to
        run. "none" where no solver takes part.
    stats : mapping
        Per component: calls, cuts, trees, seconds; and what decided the solve. ``stats["infeasible"]`` names the
        constraints that no tree satisfies together.
    history : tuple of HistoryRow
        (seconds, objective, bound) whenever one of them changed; every bound in it is valid.
    feature_names, class_names : tuple of str
        For `show`.
    constraints : tuple of ConstraintReport
        One per constraint, in the order given; empty without a tree.
    scope : Scope or None
        The trees that `bound` and `status` speak of.
    problem : FeatureProblem or None
        What was solved, for `certificate`.
    """

    found: DecisionTree | None
    objective: float
    bound: float
    status: Status
    seconds: float
    nodes: int
    backend: str
    stats: Mapping[str, Any] = field(repr=False)
    history: tuple[HistoryRow, ...] = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    class_names: tuple[str, ...] = field(repr=False)
    constraints: tuple[ConstraintReport, ...] = ()
    scope: Scope | None = None
    problem: FeatureProblem | None = field(default=None, repr=False, compare=False)

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
                f"no tree was found: the search ended with status {self.status!r} before it met a tree that "
                "satisfies the constraints; this is no proof that there is none"
            )
        names = self.stats.get("infeasible", ())
        listed = " and ".join(f"`{name}`" for name in names) or "the constraints"
        listed += " together" if len(names) > 1 else ""
        if self.scope is None:
            return f"no tree satisfies {listed}"
        rest = "" if self.scope.complete else "; a tree over other splits may"
        return f"no tree {self.scope} satisfies {listed}{rest}"

    @property
    def gap(self) -> float:
        """``(bound - objective) / |objective|``; 0 means proven."""
        return relative_gap(self.objective, self.bound)

    def certificate(
        self,
        path: str | Path,
        *,
        table: str | Path | None = None,
        target: str | None = None,
        weight: str | None = None,
        time_limit: float | None = None,
    ) -> Certificate:
        """Prove the optimum again, and write a certificate that ``accel_oct_checker.py`` checks.

        Parameters
        ----------
        path : str or Path
            The certificate; packed if it ends in ``.gz``.
        table : str or Path, optional
            Where to write the data as the CSV file that the checker reads.
        target, weight : str, optional
            Names of the columns of classes and weights in that file; "target" and "weight" by default.
        time_limit : float, optional
            Seconds.

        Raises
        ------
        InvalidInputError
            If the result is not optimal, or a problem of this kind cannot be certified yet: docs/certificates.md.
        StoppedError
            If the proof was not finished in time.
        """
        if self.status != "optimal" or self.found is None:
            raise InvalidInputError(f"only an optimal result has a certificate, and this one is {self.status!r}")
        if self.problem is None:
            raise InvalidInputError(
                "a certificate cannot yet be written for this kind of result: see docs/certificates.md"
            )
        stopper = Stopper(None if time_limit is None else time.monotonic() + time_limit)
        return write_certificate(
            self.problem.claim(self.found).named(target, weight), path, table=table, stopper=stopper
        )

    def show(self) -> str:
        """The tree as text, in the names of the data."""
        return self.tree.to_text(self.feature_names, self.class_names)


def build_result(
    outcome: RunOutcome,
    dataset: BinaryDataset,
    tree: DecisionTree | None,
    objective: float,
    bound: float,
    *,
    constraints: Sequence[BoundConstraint] = (),
    multipliers: Sequence[float | None] = (),
    stats: Mapping[str, Any] | None = None,
    nodes: int = 0,
    backend: str = "none",
    scope: Scope | None = None,
    problem: FeatureProblem | None = None,
) -> Result:
    """Build the result of a computation.

    Parameters
    ----------
    dataset : BinaryDataset
        Its names are those of the result.
    constraints : sequence of BoundConstraint
        Reported on for the tree.
    multipliers : sequence of float or None
        One per constraint, where they were priced.
    stats : mapping, optional
        Without the phase that decided.
    nodes, backend, scope, problem
        As in `Result`.
    """
    return Result(
        found=tree,
        objective=objective,
        bound=bound,
        status=outcome.status,
        seconds=outcome.seconds,
        nodes=nodes,
        backend=backend,
        stats={**(stats or {}), "decided_by": outcome.decided_by},
        history=outcome.history,
        feature_names=dataset.feature_names,
        class_names=dataset.class_names,
        constraints=constraint_reports(constraints, tree, multipliers),
        scope=scope,
        problem=problem,
    )


def chosen_result(
    dataset: BinaryDataset,
    tree: DecisionTree,
    objective: float,
    optimum: float,
    constraints: Sequence[BoundConstraint] = (),
) -> Result:
    """Build the result of a tree that was chosen among those close to a proven optimum."""
    bound = max(optimum, objective)
    status: Status = "optimal" if objective >= optimum else "gap_limit"
    outcome = RunOutcome(status, "chosen among near-optimal trees", 0.0, (HistoryRow(0.0, objective, bound),))
    return build_result(outcome, dataset, tree, objective, bound, constraints=constraints)


def constraint_reports(
    constraints: Sequence[BoundConstraint], tree: DecisionTree | None, multipliers: Sequence[float | None] = ()
) -> tuple[ConstraintReport, ...]:
    """How a tree stands to every constraint; nothing without a tree."""
    if tree is None:
        return ()
    found = []
    for constraint, multiplier in zip(constraints, multipliers or (None,) * len(constraints), strict=True):
        value = constraint.value(tree) if hasattr(constraint, "value") else None
        lower, upper = getattr(constraint, "allowed", (None, None))
        slack = -constraint.violation(tree)
        if value is not None and not math.isnan(value) and (lower is not None or upper is not None) and slack >= 0:
            # Without the tolerance that `violation` grants.
            room = (math.inf if upper is None else upper - value, math.inf if lower is None else value - lower)
            slack = max(0.0, min(room))
        found.append(ConstraintReport(constraint.name, value, slack, multiplier, lower, upper))
    return tuple(found)
