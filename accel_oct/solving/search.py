"""One solve, step by step: warm start, subtree tables, branch and cut, proof."""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import asdict
from typing import Any

from accel_oct.cuts.benders import BendersCuts
from accel_oct.cuts.disjunctive import DisjunctivePathBounds
from accel_oct.cuts.equivalent_points import EquivalentPointInequalities
from accel_oct.cuts.path_bound import PathBoundCuts
from accel_oct.data import BinaryDataset
from accel_oct.formulation import Component, Incumbent, Master, TreeHandler
from accel_oct.heuristics.cart import cart, cart_seconds
from accel_oct.heuristics.polish import polish
from accel_oct.heuristics.polishing import Polishing
from accel_oct.mip import (
    AUTO,
    Backend,
    InvalidCutError,
    LicenceError,
    MipResult,
    SolveOptions,
    Termination,
    candidate_backends,
)
from accel_oct.solving.config import Config
from accel_oct.solving.proof import PROOF_TOLERANCE, BoundRounding
from accel_oct.solving.result import HistoryRow, Progress, Result, Status
from accel_oct.subtree import BestTree, DepthTwoSolver, SubtreeBounds, SubtreeCache, best_tree
from accel_oct.subtree.engine import Engine, numba_available
from accel_oct.subtree.stopping import Stopper
from accel_oct.support.interrupts import run_interruptibly
from accel_oct.tree import DecisionTree

logger = logging.getLogger(__name__)

_NOTHING = "nothing: not proven"

_STOPPED_BY: dict[Termination, Status] = {
    Termination.TIME_LIMIT: "time_limit",
    Termination.NODE_LIMIT: "node_limit",
    Termination.INTERRUPTED: "interrupted",
    Termination.STOPPED: "stopped",
    Termination.SOLVER_FAILED: "solver_failed",
}


_LONGEST_STEP = 2.0
"""Seconds that a step of the warm start may take which cannot be interrupted."""

_SMALL_TABLES, _LARGEST_TABLES = 2**25, 2**27
"""Bytes that the tables of such a step may take whatever the memory limit is, and however large it is."""


class TreeSearch:
    """One call of `solve`, step by step: warm start, bounds, master problem, proof."""

    def __init__(
        self,
        dataset: BinaryDataset,
        *,
        max_depth: int,
        leaf_penalty: float,
        config: Config,
        backend: str,
        options: SolveOptions,
        progress: Progress | None,
        began: float,
    ) -> None:
        self.original = dataset
        self.dataset = dataset.merged() if config.merge_duplicates else dataset
        self.max_depth = max_depth
        self.leaf_price = dataset.leaf_price(leaf_penalty)
        self.leaf_penalty = float(leaf_penalty)
        self.config = config
        self.backend_name = backend
        self.options = options
        self.slack = PROOF_TOLERANCE * dataset.total_weight  # until a solver's noise adds to it
        self._progress = progress
        self._began = began
        self._history: list[HistoryRow] = []
        self.stats: dict[str, Any] = {}
        # Path-bound cuts solve many subtrees, so the compiled engine is loaded now and not in the middle of the solve.
        engine: Engine = "numba" if config.path_bound.enabled and numba_available() else "auto"
        data = self.dataset
        solver = DepthTwoSolver(data.X, data.y, data.weights, data.n_classes, engine)
        self.cache = SubtreeCache(solver, config.cache_memory_limit)
        root = DecisionTree.leaf(int(dataset.class_weights().argmax()), max_depth)
        self.incumbent = Incumbent(self.dataset, self.leaf_price, root)
        # A single leaf, or at least two of them.
        self.bound = max(self.incumbent.value, dataset.total_weight - 2 * self.leaf_price)

    def run(self) -> Result:
        backends = candidate_backends(self.backend_name)  # fails before any work is done
        self._record()
        if self.max_depth == 0 or self.dataset.n_classes == 1:
            self.bound = self.incumbent.value
            return self._result("optimal", nodes=0, decided_by="a single leaf")
        stopped = self._warm_start()
        if self._is_proven:
            return self._result("optimal", nodes=0, decided_by="warm start")
        if stopped is not None:
            return self._result(stopped, nodes=0, decided_by=_NOTHING)
        if self.config.subtree_bounds.enabled and self.config.subtree_bounds.tables:
            stopped = self._search_subtrees()
            if self._is_proven:
                self.stats["integer_phase"] = "skipped: the subtree bounds meet the incumbent"
                return self._result("optimal", nodes=0, decided_by="subtree bounds")
            if stopped is not None:
                return self._result(stopped, nodes=0, decided_by=_NOTHING)
        return self._branch_and_cut_on_first(backends)

    def _warm_start(self) -> Status | None:
        """A first tree as good as can be had quickly; returns what stops the solve, if anything does."""
        began = time.perf_counter()
        interrupted = threading.Event()
        left = self._seconds_left
        stopper = Stopper(None if left is None else time.monotonic() + left, interrupted.is_set)
        run_interruptibly(lambda: self._improve_start(stopper), interrupted.set)
        self.stats["warm_start"] = {
            "seconds": time.perf_counter() - began,
            "objective": self._objective,
        }
        self._record()
        if interrupted.is_set():
            return "interrupted"
        return "time_limit" if stopper() else None

    def _improve_start(self, stopper: Stopper) -> None:
        """CART, then optimal tails; steps that cannot be interrupted are left out where they would take too long."""
        config, solver = self.config, self.cache.solver

        def worthwhile(n_samples: int) -> bool:
            if solver.table_bytes > max(_SMALL_TABLES, min(config.subtree_bounds.memory_limit, _LARGEST_TABLES)):
                return False
            return not stopper() and solver.seconds(n_samples) <= min(_LONGEST_STEP, stopper.remaining)

        if config.warm_start == "cart" and cart_seconds(self.dataset, self.max_depth) < stopper.remaining:
            self.incumbent.offer(cart(self.dataset, self.max_depth, self.leaf_price, self.options.seed))
        if config.polish_warm_start and not stopper():
            tree = self.incumbent.tree
            self.incumbent.offer(polish(tree, self.dataset, self.leaf_price, self._best_subtree, worthwhile))

    def _best_subtree(self, literals: Any, samples: Any, *, max_depth: int) -> Any:
        return self.cache.lookup(literals, self.leaf_price, samples, max_depth=max_depth)

    def _search_subtrees(self) -> Status | None:
        """Exact subtree tables and bounds; returns what stopped them early, if anything did."""
        interrupted = threading.Event()
        found: list[BestTree] = []
        left = self._seconds_left
        deadline = None if left is None else time.monotonic() + left

        def on_improvement(seconds: float, value: float, bound: float) -> None:
            self.bound = min(self.bound, bound)
            self._record(value / self.original.total_weight)

        def work() -> None:
            data = self.dataset
            found.append(
                best_tree(
                    data.X,
                    data.y,
                    data.weights,
                    data.n_classes,
                    self.max_depth,
                    self.leaf_price,
                    incumbent=self.incumbent.tree,
                    deadline=deadline,
                    should_stop=interrupted.is_set,
                    threads=self.options.threads,
                    memory_limit=self.config.subtree_bounds.memory_limit,
                    on_improvement=on_improvement,
                )
            )

        run_interruptibly(work, interrupted.set)
        outcome = found[0]
        self.incumbent.offer(outcome.tree)
        self.bound = min(self.bound, outcome.bound)
        self._record()
        self.stats["subtree_bounds"] = {"seconds": outcome.seconds, **outcome.stats}
        if interrupted.is_set():
            return "interrupted"
        return "time_limit" if deadline is not None and time.monotonic() >= deadline else None

    # ---------------------------------------------------------------- the master problem

    def _branch_and_cut_on_first(self, backends: list[Backend]) -> Result:
        """On the first backend whose licence suffices; only `backend="auto"` gives more than one."""
        for backend in backends[:-1]:
            try:
                return self._branch_and_cut(backend)
            except LicenceError as error:
                logger.info("backend %r is passed over: %s", backend.name, error)
        return self._branch_and_cut(backends[-1])

    def _branch_and_cut(self, backend: Backend) -> Result:
        config = self.config
        master = Master(self.dataset, self.max_depth, self.leaf_price, integral_predictions=config.benders.strengthened)
        self.rounding = self._rounding(master.scale)
        self.slack = self.rounding.slack
        handler = TreeHandler(master, self._components(master, backend), self.incumbent, self._tighten)
        backend.load(master.model)
        if backend.capabilities.start:
            backend.set_start(master.lift(self.incumbent.tree))
        solved = backend.solve(self._solver_options(backend, master), handler)
        if self.backend_name == AUTO:
            self.backend_name = backend.name
        self._take(solved, master, handler)
        return self._conclude(solved)

    def _components(self, master: Master, backend: Backend) -> list[Component]:
        """Cuts first, heuristics last; what asks for relaxation points does without where there are none."""
        config, shows_relaxations = self.config, bool(backend.capabilities.relaxation_points)
        components: list[Component] = [
            BendersCuts(
                master,
                strengthened=config.benders.strengthened,
                fractional=config.benders.fractional and shows_relaxations,
            )
        ]
        if config.subtree_bounds.enabled and shows_relaxations:
            components.append(DisjunctivePathBounds(master, self._subtree_bounds()))
        if config.equivalent_points.enabled:
            components.append(EquivalentPointInequalities(master, **_switches(config.equivalent_points)))
        if config.path_bound.enabled and not master.subtrees_are_independent:
            logger.warning("path-bound cuts are switched off: %s", "; ".join(master.couplings))
        elif config.path_bound.enabled:
            switches = _switches(config.path_bound)
            switches["fractional"] = config.path_bound.fractional and shows_relaxations
            components.append(PathBoundCuts(master, self.cache, **switches))
        if config.polishing:
            components.append(Polishing(master, self._best_subtree))
        return components

    def _subtree_bounds(self) -> SubtreeBounds:
        data, left = self.dataset, self._seconds_left
        return SubtreeBounds(
            data.X,
            data.y,
            data.weights,
            data.n_classes,
            self.max_depth,
            threads=self.options.threads,
            memory_limit=self.config.subtree_bounds.memory_limit,
            deadline=None if left is None else time.monotonic() + left,
        )

    def _solver_options(self, backend: Backend, master: Master) -> SolveOptions:
        use_priorities = self.config.branch_priorities and backend.capabilities.branch_priorities
        return SolveOptions(
            time_limit=self._seconds_left,
            gap=self.options.gap,
            threads=self.options.threads,
            seed=self.options.seed,
            node_limit=self.options.node_limit,
            branch_priorities=master.branch_priorities if use_priorities else None,
            native=self.options.native,
        )

    def _take(self, solved: MipResult, master: Master, handler: TreeHandler) -> None:
        """Bring home what the solver found, exact and in our own terms."""
        if solved.termination is Termination.INFEASIBLE:
            raise InvalidCutError("the solver found no tree at all, but a single leaf is one: some cut is invalid")
        if solved.x is not None:
            self.incumbent.offer(master.decode(solved.x))
        self._tighten(solved.bound)
        for name, statistics in handler.statistics.items():
            self.stats[name] = asdict(statistics)
        self.stats["solver"] = {
            "columns": master.model.n_columns,
            "rows": master.model.rows.n_rows,
            "rounds": solved.statistics.rounds,
            "handler_seconds": solved.statistics.seconds,
            "lift_seconds": handler.lift_seconds,
            "seconds": solved.seconds,
            "injections_accepted": solved.statistics.injections_accepted,
            "rejected_candidates": solved.statistics.rejected_candidates,
        }
        self.stats["subtree_cache"] = self.cache.statistics()

    def _conclude(self, solved: MipResult) -> Result:
        if self._is_proven:
            return self._result("optimal", solved.nodes, decided_by="branch and cut")
        stopped = _STOPPED_BY.get(solved.termination)
        if stopped is None and self.options.gap > 0.0:
            stopped = "gap_limit"
        if stopped is None:
            # The solver is done, but trees lie closer together than it can tell: the tables can.
            stopped = self._search_subtrees()
            if self._is_proven:
                return self._result("optimal", solved.nodes, decided_by="branch and cut, then subtree bounds")
        return self._result(stopped or "gap_limit", solved.nodes, decided_by=_NOTHING)

    # ---------------------------------------------------------------- what is known

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def _seconds_left(self) -> float | None:
        limit = self.options.time_limit
        return None if limit is None else max(limit - self._seconds, 0.0)

    @property
    def _objective(self) -> float:
        """Of the incumbent, from the leaf penalty as it was given rather than as it was rounded."""
        return self.incumbent.score / self.original.total_weight - self.leaf_penalty * self.incumbent.tree.n_leaves

    def _rounding(self, scale: float) -> BoundRounding:
        dataset = self.original
        max_leaves = min(2**self.max_depth, dataset.n_samples)  # some optimum has no empty leaf
        return BoundRounding(dataset.total_weight, self.leaf_price, max_leaves, dataset.integral, scale)

    @property
    def _is_proven(self) -> bool:
        return self.bound <= self.incumbent.value + self.slack

    def _tighten(self, solver_bound: float) -> bool:
        """Take what the solver proved; whether that proves the incumbent."""
        self.bound = min(self.bound, self.rounding.valid(solver_bound))
        self._record()
        return self._is_proven

    def _record(self, known: float = -math.inf) -> None:
        """Add a row to the history if something changed; `known` is the objective of a tree not yet built."""
        objective = max(self._objective, known)
        bound = max(self.bound / self.original.total_weight, objective)
        if self._history and self._history[-1][1:] == (objective, bound):
            return
        row = HistoryRow(self._seconds, objective, bound)
        self._history.append(row)
        if self._progress is not None:
            self._progress(row)

    def _result(self, status: Status, nodes: int, decided_by: str) -> Result:
        if status == "optimal":
            self.bound = self.incumbent.value
        self._record()
        self.stats["decided_by"] = decided_by
        objective = self._objective
        return Result(
            tree=self.incumbent.tree,
            objective=objective,
            bound=objective if status == "optimal" else max(self.bound / self.original.total_weight, objective),
            status=status,
            seconds=self._seconds,
            nodes=nodes,
            backend=self.backend_name,
            stats=self.stats,
            history=tuple(self._history),
            feature_names=self.original.feature_names,
            class_names=self.original.class_names,
        )


def _switches(group: Any) -> dict[str, Any]:
    """A group of the configuration as keyword arguments of its component."""
    return {name: value for name, value in asdict(group).items() if name != "enabled"}
