"""The best tree for one leaf penalty on a tally: read off the frontier, which the tables always close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from accel_oct.constraints import MaxLeaves
from accel_oct.errors import InvalidInputError
from accel_oct.mip import SolveOptions
from accel_oct.solving.config import Config
from accel_oct.solving.frontier import computed_frontier
from accel_oct.solving.result import Progress, Result
from accel_oct.solving.search import constraint_reports
from accel_oct.solving.tallied import TallyProblem
from accel_oct.tree import DecisionTree

__all__ = ["solve_tallied"]


def solve_tallied(
    problem: TallyProblem,
    options: SolveOptions,
    config: Config,
    start: Sequence[DecisionTree],
    progress: Progress | None,
    began: float,
) -> Result:
    """What `accel_oct.solve` does with a tally; `began` by `time.perf_counter`."""
    for constraint in problem.coupling:
        if not isinstance(constraint, MaxLeaves):
            raise InvalidInputError(f"constraints: `{constraint.name}` cannot be kept on a tally, only on rows")
    memory_limit = config.subtree_bounds.memory_limit
    found = computed_frontier(problem, options.time_limit, options.threads, memory_limit, progress, began)
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
