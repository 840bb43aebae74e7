"""From a table to a proven tree."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from accel_oct.constraints import Constraint
from accel_oct.data import BinaryDataset, Tally
from accel_oct.formulation import ComponentFactory
from accel_oct.mip import Solver, as_solver, candidate_backends
from accel_oct.objectives import Objective, RatioScore, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.components import component_factories
from accel_oct.solving.config import Config, as_config
from accel_oct.solving.phases import (
    BranchAndCut,
    FeatureSets,
    LastStep,
    Phase,
    PriceAndClose,
    SingleLeaf,
    SubtreeTables,
    WarmStart,
    run_phases,
)
from accel_oct.solving.problem import Problem, checked_trees
from accel_oct.solving.ratio_steps import RatioSteps, best_ratio
from accel_oct.solving.result import Progress, Result
from accel_oct.solving.search import Clock, Search
from accel_oct.solving.solve_tallied import solve_tallied
from accel_oct.solving.tallied import TallyProblem, refuse_beside_tally
from accel_oct.tree import DecisionTree


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
    progress: Progress | None = None,
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
    constraints : sequence of Constraint, optional
        What the tree must satisfy, from `accel_oct.constraints` or of your own.
    objective : Objective or str, optional
        From `accel_oct.objectives` or of your own, or "accuracy", "balanced_accuracy" or "f1"; accuracy by default.
    solver : Solver or str
        The backend with its threads, seed, gap and options, or the name of a backend.
    config : Config or str
        Which techniques are used: a value, or a name of `accel_oct.solving.config.PRESETS`: "default", "paper",
        "baseline" or a row of the paper's tables.
    components : sequence of factories, optional
        Cuts and heuristics of your own: each a callable (Master) -> Component, usually the component's class, or the
        name of one that an installed package registered (entry-point group ``accel_oct.components``). They take part in
        branch and cut, which the config "default" seldom needs: choose another one to see them at work.
    time_limit : float, optional
        Seconds; the best tree so far and a valid bound are returned when it is reached.
    progress : callable (HistoryRow), optional
        Called when the objective or the bound changes, from the thread that solves.
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
    switches, solver = as_config(config), as_solver(solver)
    options = solver.solve_options(time_limit)
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth, constraints=constraints)
    clock = Clock(began, options.time_limit)
    if isinstance(X, Tally):
        refuse_beside_tally(y=y, sample_weight=sample_weight, components=components)
        tallied = TallyProblem.of_tally(X, max_depth, leaf_penalty, constraints, objective)
        return solve_tallied(tallied, options, switches, clock, progress, checked_trees(start, tallied))
    score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
    if isinstance(score, RatioScore):
        steps = RatioSteps(
            solve, max_depth, constraints, replace(solver, threads=options.threads), switches, components
        )
        return best_ratio(score, leaf_penalty, steps, clock, progress)
    problem = Problem.of(score, max_depth, leaf_penalty, constraints, switches.merge_duplicates)
    trees, factories = checked_trees(start, problem), component_factories(components)
    if not factories and not trees:
        problem = problem.within_data()
    branch_and_cut = BranchAndCut(candidate_backends(solver.backend), factories)
    search = Search(problem, switches, options, clock, progress, solver.backend)
    branch_and_cut.prepare(search)
    search.begin_with(trees)
    before: list[Phase] = [SingleLeaf(), FeatureSets(), PriceAndClose(), WarmStart(), SubtreeTables()]
    return run_phases(search, [*before, branch_and_cut, LastStep()])
