"""`accel_oct.solve`: which run with which phases solves a problem."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from accel_oct.constraints import Constraint
from accel_oct.constraints.base import check_traits, named_groups
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError
from accel_oct.exact.limited_cells import MOST_DEPTH
from accel_oct.formulation import ComponentFactory
from accel_oct.mip import SolveOptions, Solver, as_solver, candidate_backends
from accel_oct.objectives import Objective, RatioScore, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.config import Config, as_config
from accel_oct.solving.driver import Phase, SinglePhase
from accel_oct.solving.frontier import computed_frontier
from accel_oct.solving.phases import (
    EnumerateAndEvaluate,
    FeatureSets,
    IntegerProgram,
    LastStep,
    PriceAndClose,
    RootByRoot,
    SingleLeaf,
    SubtreeTables,
    WarmStart,
)
from accel_oct.solving.phases.branch_and_cut import component_factories
from accel_oct.solving.phases.enumeration import without_form
from accel_oct.solving.problem import Problem, TallyProblem, check_not_with_tally, checked_trees
from accel_oct.solving.ratios import RatioSteps, best_ratio
from accel_oct.solving.result import Result, constraint_reports
from accel_oct.solving.search import Search
from accel_oct.support.progress import Sink
from accel_oct.support.stopping import Clock
from accel_oct.tree import DecisionTree
from accel_oct.tree.sample_trees import some_trees


def solve(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    leaf_penalty: float,
    sample_weight: Any = None,
    constraints: Sequence[Constraint] | None = None,
    objective: Objective | str | None = None,
    solver: Solver | str = "highs",
    config: Config | str = "default",
    components: Sequence[ComponentFactory | str] | None = None,
    time_limit: float | None = None,
    progress: Sink | None = None,
    start: Sequence[DecisionTree] | None = None,
) -> Result:
    """Find the classification tree with the best penalised accuracy, and prove it.

    Maximises ``(weight classified correctly) / (total weight) - leaf_penalty * (number of leaves)`` over all trees of
    depth at most `max_depth` that branch on the columns of X. With another `objective`, its score takes the place of
    the share.

    Parameters
    ----------
    X : array-like or data frame, shape (n_samples, n_features)
        Binary features; or an `EncodedTable` (`OptimalTreeClassifier.encode` makes one of raw columns), a
        `BinaryDataset` or a `Tally`, without y and sample_weight; or data in pieces with binary columns (see
        `accel_oct.gather`), with names of columns as y and sample_weight. No solver runs on a tally.
    y : array-like, shape (n_samples,)
        Class labels of any sortable type.
    max_depth : int
        0 gives a single leaf.
    leaf_penalty : float
        Least gain of accuracy per leaf.
    sample_weight : array-like, shape (n_samples,), optional
    constraints : sequence of Constraint, optional
        Constraints on the tree, from `accel_oct.constraints` or third-party.
    objective : Objective or str, optional
        From `accel_oct.objectives` or third-party, or "accuracy", "balanced_accuracy" or "f1"; accuracy by default.
    solver : Solver or str
        The backend with its threads, seed, gap and options, or the name of a backend.
    config : Config or str
        The techniques: a value, or a name of `accel_oct.solving.config.PRESETS`: "default", "paper", "baseline" or a
        row of the paper's tables.
    components : sequence of factories, optional
        Third-party cuts and heuristics: each a callable (Master) -> Component, usually the component's class, or the
        name of one that an installed package registered (entry-point group ``accel_oct.components``). They are used in
        branch and cut, which the config "default" seldom needs.
    time_limit : float, optional
        Seconds; the best tree so far and a valid bound are returned when it is reached.
    progress : callable (ProgressEvent), optional
        Called when the objective or the bound changes, at the beginning of every phase and several times per second,
        from the thread that solves. Returns True to end the solve, with status "stopped".
    start : sequence of DecisionTree, optional
        Initial trees; the result is at least as good as the feasible ones among them, pruned or not.

    Raises
    ------
    InvalidInputError
        Naming the invalid argument.
    BackendUnavailableError
        If the backend's solver is not installed or not licensed.
    """
    began = time.perf_counter()
    switches, solver = as_config(config), as_solver(solver)
    options = solver.solve_options(time_limit)
    groups = named_groups(constraints)
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth, groups=groups)
    clock = Clock(began, options.time_limit)
    if isinstance(X, Tally):
        check_not_with_tally(y=y, sample_weight=sample_weight, components=components)
        tallied = TallyProblem.of_tally(X, max_depth, leaf_penalty, constraints, objective)
        return solve_tallied(tallied, options, switches, clock, progress, checked_trees(start, tallied))
    score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
    if isinstance(score, RatioScore):
        usable = replace(solver, threads=options.threads)
        steps = RatioSteps(solve, max_depth, constraints, usable, switches, components)
        return best_ratio(score, leaf_penalty, steps, clock, progress)
    problem = Problem.of(score, max_depth, leaf_penalty, constraints, switches.merge_duplicates)
    trees, factories = checked_trees(start, problem), component_factories(components)
    if not factories and not trees:
        problem = problem.within_data()
    branch_and_cut = IntegerProgram(candidate_backends(solver.backend), factories)
    search = Search(problem, switches, options, clock, progress, solver.backend)
    check_traits(problem.constraints, problem.original, some_trees(problem.original, problem.max_depth))
    branch_and_cut.prepare(search)
    search.offer_starts(trees)
    before: list[Phase[Search]] = [SingleLeaf(), FeatureSets(), PriceAndClose(), WarmStart(), RootByRoot()]
    return search.solve([*before, EnumerateAndEvaluate(), SubtreeTables(), branch_and_cut, LastStep()])


# ---------------------------------------------------------------- tallies


def solve_tallied(
    problem: TallyProblem,
    options: SolveOptions,
    config: Config,
    clock: Clock,
    progress: Sink | None = None,
    start: Sequence[DecisionTree] = (),
) -> Result:
    """Solve a problem on a tally: by its frontier, or by prices where subtrees depend on each other."""
    if not all(constraint.traits.by_tables for constraint in problem.coupling):
        return _by_prices(problem, options, config, clock, progress, start)
    memory_limit = config.subtree_bounds.memory_limit
    found = computed_frontier(problem, clock, options.threads, memory_limit, progress)
    return _with_start(found.best(problem.leaf_penalty), problem, start)


def _with_start(result: Result, problem: TallyProblem, start: Sequence[DecisionTree]) -> Result:
    """Return the result with a better tree to begin with, if there is one; a stopped search may miss it."""
    for tree in start if result.status != "optimal" else ():
        value = problem.value(tree) - problem.leaf_penalty * tree.n_leaves
        if value > result.objective and all(constraint.violation(tree) <= 0 for constraint in problem.constraints):
            bound = max(result.bound, value)
            reports = constraint_reports(problem.constraints, tree)
            result = replace(result, found=tree, objective=value, bound=bound, constraints=reports)
    return result


# ---------------------------------------------------------------- prices


class CellPrices(PriceAndClose):
    """Prices on the cells of a tally. The constraints were checked when they were bound."""

    def applies(self, search: Search) -> bool:
        return not without_form(search.problem.constraints)


def _by_prices(
    problem: TallyProblem,
    options: SolveOptions,
    config: Config,
    clock: Clock,
    progress: Sink | None,
    start: Sequence[DecisionTree],
) -> Result:
    """Find the best tree under constraints that couple subtrees: by prices, or by a list of trees, best first.

    The status is "stopped" where memory does not suffice to enumerate the trees that remain; the bound is valid.
    """
    if problem.max_depth > MOST_DEPTH:
        raise InvalidInputError(
            f"max_depth must be at most {MOST_DEPTH} under constraints on a tally, got {problem.max_depth}"
        )
    search = Search(problem, config, options, clock, progress)
    for tree in start:
        search.incumbent.offer(tree.with_max_depth(problem.max_depth))
    search.record()
    # On rows a solver would follow; it cannot work on a tally.
    last: Phase[Search] = SinglePhase("no solver", lambda search: "stopped")
    return search.solve([SingleLeaf(), CellPrices(), EnumerateAndEvaluate(), last])
