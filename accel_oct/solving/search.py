"""The search: the state that the phases of a solve share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

from accel_oct.constraints import BoundConstraint
from accel_oct.constraints.base import check_traits
from accel_oct.exact import DepthTwoSolver, LocalRules, SubtreeCache
from accel_oct.formulation.agreement import Agreement
from accel_oct.mip import SolveOptions
from accel_oct.pricing import RootBounds
from accel_oct.solving.config import Config
from accel_oct.solving.driver import Phase, SearchRun, drive
from accel_oct.solving.problem import PROOF_TOLERANCE, Problem
from accel_oct.solving.result import Result, Scope, Status, build_result
from accel_oct.support.progress import Sink
from accel_oct.support.stopping import Clock, Stopper
from accel_oct.tree import DecisionTree


class Search(SearchRun):
    """The shared state: phases improve `incumbent`, tighten the bound, and leave statistics and notes.

    Parameters
    ----------
    clock, progress
        As in `SearchRun`.
    backend_name : str
        For the result.

    Attributes
    ----------
    incumbent : Incumbent
    bound : float
        In units of weight; valid at all times.
    slack : float
        A tree is proven when the bound exceeds its value by no more than this; a solver's noise adds to it.
    nodes : int
        Of branch and bound.
    statistics : dict of dataclasses
        By phase and by component.
    notes : dict of str to str or tuple of str
        Decisions of phases, with their reasons.
    multipliers : tuple of float
        Of the constraints, per unit of their limits and in the normalised objective, where they were priced.
    priced : RootBounds or None
        Bounds by root from prices, where these proved nothing.
    beside : callable (Stopper) -> callable, or None
        Makes the question whether to stop that tables ask, where local search goes on between their steps.
    agreement : Agreement or None
        Compares the master with trees that are known, once there is a master.
    """

    def __init__(
        self,
        problem: Problem,
        config: Config,
        options: SolveOptions,
        clock: Clock,
        progress: Sink | None = None,
        backend_name: str = "none",
    ) -> None:
        super().__init__(clock, progress)
        self.problem = problem
        self.config = config
        self.options = options
        self.backend_name = backend_name
        self.nodes = 0
        self.statistics: dict[str, Any] = {}
        self.notes: dict[str, str | float | tuple[str, ...]] = {}
        self.multipliers: tuple[float | None, ...] = ()
        self.priced: RootBounds | None = None
        self.beside: Callable[[Stopper], Callable[[], bool]] | None = None
        self.agreement: Agreement | None = None
        self.slack = PROOF_TOLERANCE * problem.total_weight
        self.incumbent, self._confirmed = problem.incumbent(), 0
        heaviest = problem.score.rows.class_weights()
        for label in (-heaviest).argsort(kind="stable").tolist():
            taken = self.incumbent.offer(DecisionTree.leaf(label, problem.max_depth))
            if (taken or not problem.constraints) and not problem.is_strict:
                break
        best_leaf = float(heaviest.max()) - problem.leaf_price
        # A single leaf, or at least two of them.
        self.bound = max(best_leaf, problem.total_weight - 2 * problem.leaf_price)
        self.record()

    @cached_property
    def subtrees(self) -> SubtreeCache:
        """Optimal subtrees of depth two, cached by path."""
        data = self.problem.dataset
        solver = DepthTwoSolver(data.X, data.y, data.weights, data.n_classes)
        return SubtreeCache(solver, self.config.cache_memory_limit)

    def offer_starts(self, trees: Sequence[DecisionTree]) -> None:
        """Offer some trees: unchanged, with the best labels, and pruned."""
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
        """Whether it is proven that no tree satisfies every constraint."""
        return self.incumbent.tree is None and self.bound == -math.inf

    @property
    def objective(self) -> float:
        """The objective of the incumbent, with the leaf penalty as given, not rounded."""
        if self.incumbent.tree is None:
            return -math.inf
        paid = self.problem.leaf_penalty * self.incumbent.tree.n_leaves
        return self.problem.reported(self.incumbent.score) - paid

    def tighten(self, bound: float) -> bool:
        """Take a valid bound, in units of weight; returns whether it proves the incumbent."""
        self.bound = min(self.bound, bound)
        self.record()
        return self.is_proven

    def check(self) -> None:
        """Compare traits, and the master if there is one, with the trees that the incumbent took since last time."""
        accepted, self._confirmed = self.incumbent.accepted[self._confirmed :], len(self.incumbent.accepted)
        check_traits(self.problem.constraints, self.problem.original, accepted)
        if self.agreement is not None:
            self.agreement.check_all(self.incumbent.accepted)

    def record_infeasible(self, constraints: Sequence[BoundConstraint]) -> None:
        """Record which constraints no tree satisfies together; the first report wins."""
        self.notes.setdefault("infeasible", tuple(constraint.name for constraint in constraints))

    def no_leaf_is_allowed(self, rules: LocalRules | None) -> bool:
        """Return whether rules forbid a single leaf, and with it every tree; record that there is none."""
        if rules is None or rules.allow_a_leaf:
            return False
        local = [each for each in self.problem.constraints if (each.traits.relaxed or each.traits).local is not None]
        self.record_infeasible(local)
        self.tighten(-math.inf)
        return True

    def offer_and_record(self, tree: DecisionTree) -> bool:
        """Offer a tree and record a better one at once; returns False only where a rule forbids a better tree."""
        with self.recording:
            refused = self.incumbent.refused
            if self.incumbent.offer(tree):  # the tables may have recorded a better tree that is not built yet
                self.record(self.history[-1].objective)
            return self.incumbent.refused == refused

    def record(self, known: float = -math.inf) -> None:
        """Record objective and bound; `known` is the objective of a tree that is not built yet."""
        with self.recording:
            objective = max(self.objective, known)
            bound = max(self.problem.reported(self.bound), objective)
            self.note(objective, bound)

    # ---------------------------------------------------------------- the end

    def solve(self, phases: Iterable[Phase[Search]]) -> Result:
        """Run phases, and return the result."""
        outcome = drive(self, phases)
        problem, tree = self.problem, self.incumbent.tree
        depth = problem.claimed_depth or problem.max_depth
        objective = self.objective
        return build_result(
            outcome,
            problem.original,
            None if tree is None else tree.with_max_depth(depth),
            objective,
            objective if outcome.status == "optimal" else max(problem.reported(self.bound), objective),
            constraints=problem.constraints,
            multipliers=self.multipliers,
            stats={**{name: asdict(value) for name, value in self.statistics.items()}, **self.notes},
            nodes=self.nodes,
            backend=self.backend_name,
            scope=Scope.of_features(depth, len(problem.original.feature_names)),
            problem=problem.certified(depth),
        )

    def finish(self, status: Status) -> None:
        if status == "optimal":
            self.bound = self.incumbent.value
        if status == "infeasible" and self.problem.constraints:
            self.record_infeasible(self.problem.constraints)
        self.record()
