"""The linear problems behind a ratio, with whatever the user asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from accel_oct.constraints import Constraint, MaxLeaves
from accel_oct.formulation import ComponentFactory
from accel_oct.mip import Solver
from accel_oct.objectives import Accuracy, Fixed, RatioScore
from accel_oct.solving.activity import Relay
from accel_oct.solving.config import Config
from accel_oct.solving.frontier import frontier
from accel_oct.solving.problem import Problem
from accel_oct.solving.proof import PROOF_TOLERANCE, SOLVER_NOISE
from accel_oct.solving.ratios import Level, Levels, RatioSearch, levels_of
from accel_oct.solving.result import Progress, Result
from accel_oct.solving.search import Clock


@dataclass(frozen=True)
class RatioSteps:
    """Solves the linear problems: by the frontier where nothing else was asked for, or by `accel_oct.solve`."""

    solve: Callable[..., Result]
    max_depth: int
    constraints: Sequence[Constraint] | None
    solver: Solver
    config: Config
    components: Sequence[ComponentFactory | str] | None

    def by_frontier(self, problem: Problem) -> bool:
        plain = self.config == Config.preset("default") and not self.components
        return plain and (not problem.coupling or problem.max_leaves is not None)

    def on_frontier(
        self,
        fixed: Fixed,
        most_leaves: int,
        seconds: float | None,
        worthwhile: Callable[[int], bool],
        progress: Progress,
    ) -> Levels:
        table = frontier(
            fixed.score.dataset,
            max_depth=self.max_depth,
            time_limit=seconds,
            solver=self.solver,
            memory_limit=self.config.subtree_bounds.memory_limit,
            progress=progress,
            constraints=self.constraints,
            objective=fixed,
        )
        return levels_of(table, most_leaves, worthwhile), table.status

    def by_solve(self, fixed: Fixed, leaves: int, seconds: float | None, progress: Progress) -> Levels:
        limit = [MaxLeaves(leaves)] if leaves < 2**self.max_depth else []
        result = self.solve(
            fixed.score.dataset,
            max_depth=self.max_depth,
            leaf_penalty=0.0,
            solver=replace(self.solver, gap=0.0),
            config=self.config,
            time_limit=seconds,
            progress=progress,
            components=self.components,
            constraints=[*(self.constraints or []), *limit],
            objective=fixed,
        )
        return [Level(leaves, result.found, result.bound)], result.status


def best_ratio(
    score: RatioScore, leaf_penalty: float, steps: RatioSteps, clock: Clock, progress: Progress | None
) -> Result:
    """By a sequence of linear problems."""
    data = score.dataset
    problem = Problem.of(Accuracy().bind(data), steps.max_depth, leaf_penalty, steps.constraints)
    tables = steps.by_frontier(problem)
    # Tables round rewards to their grid; a proof by anything else has its tolerance.
    noise = 1e-12 + data.n_samples * 2.0**-46 if tables else PROOF_TOLERANCE
    if not tables and steps.config != Config.preset("default"):
        noise += 2 * SOLVER_NOISE

    def step(fixed: Fixed, leaves: int, seconds: float | None) -> Levels:
        relay = Relay(search.teller, f"step {search.steps + 1} of a ratio")
        if tables:
            return steps.on_frontier(fixed, search.most_leaves, seconds, lambda h: search.may_win(h), relay)
        return steps.by_solve(fixed, leaves, seconds, relay)

    search = RatioSearch(
        score,
        problem.leaf_penalty,
        problem.max_depth,
        problem.most_leaves,
        step,
        clock,
        noise,
        tables,
        steps.solver.gap,
        progress,
    )
    return search.result(search.run(), problem.constraints, "none" if tables else steps.solver.backend)
