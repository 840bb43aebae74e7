"""From a table to a proven tree."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from accel_oct.constraints import Constraint
from accel_oct.constraints.base import check_traits, named_groups, trees_to_check
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError
from accel_oct.exact.limited_cells import MOST_DEPTH
from accel_oct.formulation import ComponentFactory
from accel_oct.mip import SolveOptions, candidate_backends
from accel_oct.objectives import Objective, RatioScore, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.config import Config, checked_config
from accel_oct.solving.driver import Phase
from accel_oct.solving.frontier import computed_frontier
from accel_oct.solving.phases import (
    FeatureSets,
    IntegerProgram,
    LastStep,
    PriceAndClose,
    SingleLeaf,
    SubtreeTables,
    WarmStart,
)
from accel_oct.solving.phases.branch_and_cut import component_factories
from accel_oct.solving.problem import Problem, TallyProblem, checked_trees, refuse_beside_tally
from accel_oct.solving.ratios import RatioSteps, best_ratio
from accel_oct.solving.result import Result, Status, constraint_reports
from accel_oct.solving.search import Search
from accel_oct.support.arguments import checked_solver_options
from accel_oct.support.progress import Sink
from accel_oct.support.stopping import Clock
from accel_oct.tree import DecisionTree


def solve(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    leaf_penalty: float,
    sample_weight: Any = None,
    backend: str = "highs",
    preset: str = "default",
    time_limit: float | None = None,
    threads: int = 1,
    seed: int = 0,
    gap: float = 0.0,
    node_limit: int | None = None,
    solver_options: Mapping[str, Any] | None = None,
    progress: Sink | None = None,
    config: Config | None = None,
    components: Sequence[ComponentFactory | str] | None = None,
    constraints: Sequence[Constraint] | None = None,
    objective: Objective | str | None = None,
    start: Sequence[DecisionTree] | None = None,
) -> Result:
    """Find the classification tree with the best penalised accuracy, and prove it.

    Maximises ``(weight classified correctly) / (total weight) - leaf_penalty * (number of leaves)`` over all trees of
    depth at most `max_depth` that branch on the columns of X. With another `objective`, its score takes the place of
    the share.

    Parameters
    ----------
    X : array-like or data frame, shape (n_samples, n_features)
        Binary. `OptimalTreeClassifier` takes raw columns. Or a `BinaryDataset` or a `Tally`, with nothing in y and
        sample_weight. On a tally no solver takes part, and what is said of solvers below does not count. Or data in
        pieces with binary columns (see `accel_oct.gather`), with names of columns in y and sample_weight.
    y : array-like, shape (n_samples,)
        Class labels of any sortable type.
    max_depth : int
        0 gives a single leaf.
    leaf_penalty : float
        Accuracy that a further leaf must bring.
    sample_weight : array-like, shape (n_samples,), optional
    backend : str
        "highs", "gurobi", "scip", "pyomo:NAME" or any other registered backend; "auto" takes gurobi where its licence
        suffices, else scip where it is installed, else highs.
    preset : str
        Which techniques are used: "default", "paper", "baseline" or a row of the paper's tables, see
        `accel_oct.solving.config.PRESETS`. Ignored when `config` is given.
    time_limit : float, optional
        Seconds; the best tree so far and a valid bound are returned when it is reached.
    threads : int
        At most as many as there are cores: more are cut down to that, with a line in the log.
    seed : int
    gap : float
        Relative gap at which to stop; 0 asks for a proof.
    node_limit : int, optional
        Branch-and-bound nodes of the solver, where it has to run.
    solver_options : mapping, optional
        Handed to the solver under its own names, such as ``{"mip_heuristic_effort": 0.2}`` for HiGHS, where it has to
        run. A limit among them ends the solve with status "stopped".
    progress : callable (ProgressEvent), optional
        Called when the objective or the bound changes, at the beginning of every phase and several times per second,
        from the thread that solves. Returns True to end the solve, with status "stopped".
    config : Config, optional
        All switches.
    components : sequence of factories, optional
        Cuts and heuristics of your own: each a callable (Master) -> Component, usually the component's class, or the
        name of one that an installed package registered (entry-point group ``accel_oct.components``). They take part in
        branch and cut, which the preset "default" seldom needs: choose another one to see them at work.
    constraints : sequence of Constraint, optional
        What the tree must satisfy, from `accel_oct.constraints` or of your own.
    objective : Objective or str, optional
        From `accel_oct.objectives` or of your own, or "accuracy", "balanced_accuracy" or "f1"; accuracy by default.
    start : sequence of DecisionTree, optional
        Trees to begin with; the result is at least as good as those that keep the constraints, pruned or not.

    Returns
    -------
    Result

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used.
    BackendUnavailableError
        When the backend's solver is not installed or not licensed.
    """
    began = time.perf_counter()
    switches = checked_config(config, preset)
    options = SolveOptions(
        time_limit=time_limit,
        gap=gap,
        threads=threads,
        seed=seed,
        node_limit=node_limit,
        native=checked_solver_options(solver_options),
    )
    groups = named_groups(constraints)
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth, groups=groups)
    clock = Clock(began, options.time_limit)
    if isinstance(X, Tally):
        refuse_beside_tally(y=y, sample_weight=sample_weight, components=components)
        tallied = TallyProblem.of_tally(X, max_depth, leaf_penalty, constraints, objective)
        return solve_tallied(tallied, options, switches, clock, progress, checked_trees(start, tallied))
    score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
    if isinstance(score, RatioScore):
        steps = RatioSteps(solve, max_depth, constraints, backend, switches, options, components)
        return best_ratio(score, leaf_penalty, steps, clock, progress)
    problem = Problem.of(score, max_depth, leaf_penalty, constraints, switches.merge_duplicates)
    trees, factories = checked_trees(start, problem), component_factories(components)
    if not factories and not trees:
        problem = problem.within_data()
    branch_and_cut = IntegerProgram(candidate_backends(backend), factories)
    search = Search(problem, switches, options, clock, progress, backend)
    check_traits(problem.constraints, problem.original, trees_to_check(problem.original, problem.max_depth))
    branch_and_cut.prepare(search)
    search.begin_with(trees)
    before: list[Phase[Search]] = [SingleLeaf(), FeatureSets(), PriceAndClose(), WarmStart(), SubtreeTables()]
    return search.solve([*before, branch_and_cut, LastStep()])


# ---------------------------------------------------------------- tallies


def solve_tallied(
    problem: TallyProblem,
    options: SolveOptions,
    config: Config,
    clock: Clock,
    progress: Sink | None = None,
    start: Sequence[DecisionTree] = (),
) -> Result:
    """What `accel_oct.solve` does with a tally."""
    if not all(constraint.traits.by_tables for constraint in problem.coupling):
        return _by_prices(problem, options, config, clock, progress, start)
    memory_limit = config.subtree_bounds.memory_limit
    found = computed_frontier(problem, clock, options.threads, memory_limit, progress)
    return _with_start(found.best(problem.leaf_penalty), problem, start)


def _with_start(result: Result, problem: TallyProblem, start: Sequence[DecisionTree]) -> Result:
    """A tree to begin with that is better; there can be one where time was short."""
    for tree in start if result.status != "optimal" else ():
        value = problem.value(tree) - problem.leaf_penalty * tree.n_leaves
        if value > result.objective and all(constraint.violation(tree) <= 0 for constraint in problem.constraints):
            bound = max(result.bound, value)
            reports = constraint_reports(problem.constraints, tree)
            result = replace(result, found=tree, objective=value, bound=bound, constraints=reports)
    return result


# ---------------------------------------------------------------- prices


class CellPrices(PriceAndClose):
    """Prices on the cells of a tally, whatever the constraints: they were checked when they were bound."""

    def applies(self, search: Search) -> bool:
        return True


class NothingMore:
    """On rows a solver would go on; a tally has nothing to give to it."""

    name = "nothing more"

    def applies(self, search: Search) -> bool:
        return True

    def run(self, search: Search) -> Status | None:
        return "stopped"


def _by_prices(
    problem: TallyProblem,
    options: SolveOptions,
    config: Config,
    clock: Clock,
    progress: Sink | None,
    start: Sequence[DecisionTree],
) -> Result:
    """The best tree that keeps constraints on classes, groups, weights, leaves and paths, with its proof.

    The status is "stopped" where memory does not suffice to go through the trees that prices leave open; the bound is
    valid then.
    """
    if problem.max_depth > MOST_DEPTH:
        raise InvalidInputError(
            f"max_depth must be at most {MOST_DEPTH} under constraints on a tally, got {problem.max_depth}"
        )
    search = Search(problem, config, options, clock, progress)
    for tree in start:
        search.incumbent.offer(tree.with_max_depth(problem.max_depth))
    search.record()
    return search.solve([SingleLeaf(), CellPrices(), NothingMore()])
