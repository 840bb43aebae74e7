"""What is known during a solve: the state that the phases share."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Protocol

from accel_oct.constraints import BoundConstraint
from accel_oct.constraints.base import check_traits
from accel_oct.data import BinaryDataset
from accel_oct.exact import DepthTwoSolver, SubtreeCache
from accel_oct.exact.stopping import Stopper
from accel_oct.formulation.agreement import Agreement
from accel_oct.mip import SolveOptions
from accel_oct.pricing import PricedKnowledge
from accel_oct.solving.activity import Teller
from accel_oct.solving.config import Config
from accel_oct.solving.problem import Problem
from accel_oct.solving.proof import PROOF_TOLERANCE
from accel_oct.solving.result import ConstraintReport, HistoryRow, Progress, Result, Scope, Status
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class Clock:
    """The time of a solve, and the time that it may take."""

    began: float
    limit: float | None

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        return None if self.limit is None else max(self.limit - self.seconds, 0.0)

    def limited_to(self, seconds: float) -> Clock:
        """A clock that began with this one and ends after so many seconds, or with this one."""
        return Clock(self.began, seconds if self.limit is None else min(seconds, self.limit))

    @property
    def deadline(self) -> float | None:
        """The end as a reading of `time.monotonic`."""
        left = self.left
        return None if left is None else time.monotonic() + left


class Improving(Protocol):
    """A search for better trees that works while others ask whether they should stop."""

    def beside(self, stopper: Stopper) -> Callable[[], bool]:
        """What to ask in the place of the stopper."""


@dataclass
class Search:
    """The shared state: phases improve `incumbent`, tighten the bound, and leave statistics and notes.

    Attributes
    ----------
    problem : Problem
    config : Config
    options : SolveOptions
    clock : Clock
    progress : callable or None
        Told every row of the history; a `Watcher` also what is being done.
    teller : Teller
        Who tells it.
    incumbent : Incumbent
    bound : float
        In units of weight; valid at all times.
    slack : float
        A tree is proven when the bound exceeds its value by no more than this; a solver's noise adds to it.
    statistics : dict of dataclasses
        By phase and by component.
    notes : dict of str to str or tuple of str
        What was decided on the way and why.
    multipliers : tuple of float
        Of the constraints, per unit of their limits and in the normalised objective, where they were priced.
    priced : PricedKnowledge or None
        What prices say of trees by their root, where they proved nothing.
    improving : Improving or None
        The local search that goes on beside the tables.
    agreement : Agreement or None
        Compares the master with trees that are known, once there is a master.
    """

    problem: Problem
    config: Config
    options: SolveOptions
    clock: Clock
    progress: Progress | None = None
    backend_name: str = "none"
    nodes: int = 0
    statistics: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    history: list[HistoryRow] = field(default_factory=list)
    multipliers: tuple[float | None, ...] = ()
    priced: PricedKnowledge | None = None
    improving: Improving | None = None
    agreement: Agreement | None = None

    def __post_init__(self) -> None:
        self.teller = Teller(self.progress, lambda: self.clock.seconds)
        self._recording = threading.RLock()  # tables on several threads ask for better trees on any of them
        problem = self.problem
        self.slack = PROOF_TOLERANCE * problem.total_weight
        self.incumbent, self._confirmed = problem.incumbent(), 0
        heaviest = problem.score.rows.class_weights()
        for label in (-heaviest).argsort(kind="stable").tolist():
            if self.incumbent.offer(DecisionTree.leaf(label, problem.max_depth)) or not problem.constraints:
                break
        best_leaf = float(heaviest.max()) - problem.leaf_price
        # A single leaf, or at least two of them.
        self.bound = max(best_leaf, problem.total_weight - 2 * problem.leaf_price)
        self.record()

    @cached_property
    def subtrees(self) -> SubtreeCache:
        """Optimal subtrees of depth two by path, for whoever needs them."""
        data = self.problem.dataset
        solver = DepthTwoSolver(data.X, data.y, data.weights, data.n_classes)
        return SubtreeCache(solver, self.config.cache_memory_limit)

    def begin_with(self, trees: Sequence[DecisionTree]) -> None:
        """Offer trees as they are, with the best labels, and pruned."""
        data, price = self.problem.dataset, self.problem.leaf_price
        for tree in trees:
            for variant in (tree, tree.relabelled(data), tree.pruned(data, price)):
                self.incumbent.offer(variant.with_max_depth(self.problem.max_depth))
        self.record()

    # ---------------------------------------------------------------- what is known

    @property
    def is_proven(self) -> bool:
        return self.incumbent.tree is not None and self.bound <= self.incumbent.value + self.slack

    @property
    def is_infeasible(self) -> bool:
        """Proven that no tree keeps every constraint."""
        return self.incumbent.tree is None and self.bound == -math.inf

    @property
    def objective(self) -> float:
        """Of the incumbent, from the leaf penalty as it was given rather than as it was rounded."""
        if self.incumbent.tree is None:
            return -math.inf
        paid = self.problem.leaf_penalty * self.incumbent.tree.n_leaves
        return self.problem.reported(self.incumbent.score) - paid

    def tighten(self, bound: float) -> bool:
        """Take a valid bound, in units of weight; whether it proves the incumbent."""
        self.bound = min(self.bound, bound)
        self.record()
        return self.is_proven

    def confirm(self) -> None:
        """Compare traits, and the master if there is one, with the trees that the incumbent took since last time."""
        accepted, self._confirmed = self.incumbent.accepted[self._confirmed :], len(self.incumbent.accepted)
        check_traits(self.problem.constraints, self.problem.original, accepted)
        if self.agreement is not None:
            self.agreement.check_all(self.incumbent.accepted)

    def blame(self, constraints: Sequence[BoundConstraint]) -> None:
        """Record which constraints no tree keeps together; the first report wins."""
        self.notes.setdefault("infeasible", tuple(constraint.name for constraint in constraints))

    def offer_and_record(self, tree: DecisionTree) -> bool:
        """Offer a tree; a better one shows in the history at once. False only where a rule forbids a better one."""
        with self._recording:
            refused = self.incumbent.refused
            if self.incumbent.offer(tree):  # the tables may have told of a better tree that they have not built yet
                self.record(self.history[-1].objective)
            return self.incumbent.refused == refused

    def record(self, known: float = -math.inf) -> None:
        """Add a row to the history if something changed; `known` is the objective of a tree not yet built."""
        with self._recording:
            objective = max(self.objective, known)
            bound = max(self.problem.reported(self.bound), objective)
            if self.history and self.history[-1][1:] == (objective, bound):
                return
            row = HistoryRow(self.clock.seconds, objective, bound)
            self.history.append(row)
            self.teller.row(row)

    # ---------------------------------------------------------------- the end

    def result(self, status: Status, decided_by: str) -> Result:
        """What is returned to the user."""
        if status == "optimal":
            self.bound = self.incumbent.value
        if status == "infeasible" and self.problem.constraints:
            self.blame(self.problem.constraints)
        self.record()
        original, objective, tree = self.problem.original, self.objective, self.incumbent.tree
        depth = self.problem.claimed_depth or self.problem.max_depth
        bound = objective if status == "optimal" else max(self.problem.reported(self.bound), objective)
        return Result(
            found=None if tree is None else tree.with_max_depth(depth),
            objective=objective,
            bound=bound,
            status=status,
            seconds=self.clock.seconds,
            nodes=self.nodes,
            backend=self.backend_name,
            stats={**{name: asdict(value) for name, value in self.statistics.items()}, **self.notes}
            | {"decided_by": decided_by},
            history=tuple(self.history),
            feature_names=original.feature_names,
            class_names=original.class_names,
            constraints=constraint_reports(self.problem.constraints, tree, self.multipliers),
            scope=Scope.of_features(depth, len(original.feature_names)),
        )


def constraint_reports(
    constraints: Sequence[BoundConstraint], tree: DecisionTree | None, multipliers: Sequence[float | None] = ()
) -> tuple[ConstraintReport, ...]:
    """How a tree stands to every constraint; nothing without a tree."""
    if tree is None:
        return ()
    found = []
    for constraint, multiplier in zip(constraints, multipliers or (None,) * len(constraints), strict=True):
        value, (lower, upper) = constraint.value(tree), constraint.allowed
        slack = -constraint.violation(tree)
        if value is not None and not math.isnan(value) and (lower is not None or upper is not None) and slack >= 0:
            # Without the tolerance that `violation` grants.
            room = (math.inf if upper is None else upper - value, math.inf if lower is None else value - lower)
            slack = max(0.0, min(room))
        found.append(ConstraintReport(constraint.name, value, slack, multiplier, lower, upper))
    return tuple(found)


def chosen_result(
    dataset: BinaryDataset,
    tree: DecisionTree,
    objective: float,
    optimum: float,
    constraints: Sequence[BoundConstraint] = (),
) -> Result:
    """What is known of a tree that was chosen among those close to a proven optimum."""
    return Result(
        found=tree,
        objective=objective,
        bound=max(optimum, objective),
        status="optimal" if objective >= optimum else "gap_limit",
        seconds=0.0,
        nodes=0,
        backend="none",
        stats={"decided_by": "chosen among near-optimal trees"},
        history=(HistoryRow(0.0, objective, max(optimum, objective)),),
        feature_names=dataset.feature_names,
        class_names=dataset.class_names,
        constraints=constraint_reports(constraints, tree),
    )
