"""The best tree for one leaf penalty on a tally: off the frontier, or by prices where subtrees depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from accel_oct.errors import InvalidInputError
from accel_oct.exact.limited_cells import MOST_DEPTH
from accel_oct.mip import SolveOptions
from accel_oct.solving.config import Config
from accel_oct.solving.frontier import computed_frontier
from accel_oct.solving.phases import PriceAndClose, SingleLeaf, run_phases
from accel_oct.solving.result import Progress, Result, Status
from accel_oct.solving.search import Clock, Search, constraint_reports
from accel_oct.solving.tallied import TallyProblem
from accel_oct.tree import DecisionTree

__all__ = ["solve_tallied"]


def solve_tallied(
    problem: TallyProblem,
    options: SolveOptions,
    config: Config,
    clock: Clock,
    progress: Progress | None = None,
    start: Sequence[DecisionTree] = (),
) -> Result:
    """What `accel_oct.solve` does with a tally."""
    if not all(constraint.traits.by_tables for constraint in problem.coupling):
        return _by_prices(problem, options, config, clock, progress, start)
    memory_limit = config.subtree_bounds.memory_limit
    found = computed_frontier(problem, options.time_limit, options.threads, memory_limit, progress, clock.began)
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
    progress: Progress | None,
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
    return run_phases(search, [SingleLeaf(), CellPrices(), NothingMore()])
