"""Ratios such as F1, by a sequence of linear problems (Dinkelbach's method).

Let N(T) / D(T) be the ratio of a tree, D positive, and F_h(t) the largest N(T) - t D(T) over the trees with at most h
leaves. If F_h(t) <= 0, no such tree has a ratio above t; else the tree behind F_h(t) has one. And whatever its sign,

    N(T) / D(T)  <=  t + F_h(t) / D_min    (D_max in its place where F_h(t) < 0).

So every linear problem gives a tree and a bound for each h, and max over h of (bound_h - leaf_penalty * h) bounds the
penalised ratio. The next t is the best ratio known for the h that decides that maximum, or the ratio that trees with h
leaves would need to beat the best tree, whichever is larger: at the end F_h(t) is zero, which is the proof.

Only the sign of F_h(t) decides, so rewards that no tree with N(T) > t D(T) can afford to lose are cut down
(`_affordable`): heavy samples would otherwise hide what light ones are worth.

With whole numbers above and below the line, or multiples of a power of two, t = p / q is taken exactly, as
q N(T) - p D(T): no rounding is involved in the proof then. Else the linear problems may be off by their rounding;
divided by D_min it is added to every bound, and to the tolerance of the proof while it is at most `MOST_NOISE`. Beyond
that nothing is claimed: the status is "solver_failed".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_oct.constraints import Constraint, MaxLeaves
from accel_oct.formulation import ComponentFactory
from accel_oct.mip import Solver, relative_gap
from accel_oct.objectives import Accuracy, Fixed, LinearScore, RatioScore
from accel_oct.solving.config import Config
from accel_oct.solving.driver import SearchRun, SinglePhase, drive
from accel_oct.solving.frontier import Frontier, frontier
from accel_oct.solving.problem import PROOF_TOLERANCE, SOLVER_NOISE, Problem
from accel_oct.solving.result import Result, Scope, Status, build_result
from accel_oct.support.arrays import FloatArray
from accel_oct.support.progress import Sink
from accel_oct.support.stopping import Clock
from accel_oct.tree import DecisionTree

_EXACT = 2.0**51

#: Error of a difference of two products, relative to the products.
_ROUNDED = 2.0**-50

#: Largest rounding error of linear problems that is added to the tolerance of a proof; beyond it nothing is claimed.
MOST_NOISE = 1e-6


@dataclass(frozen=True)
class Level:
    """Result of a linear problem for trees with at most some number of leaves.

    Attributes
    ----------
    bound : float
        Upper bound on the linear objective of all such trees; minus infinity if there are none.
    """

    leaves: int
    found: DecisionTree | None
    bound: float


Levels = tuple[Sequence[Level], Status]

#: Solves one linear problem: from the objective, the leaves that matter and the seconds left to levels and a status.
LinearStep = Callable[[Fixed, int, float | None], Levels]


class RatioSearch(SearchRun):
    """The tree with the best penalised ratio, and a bound on all of them at any time.

    Parameters
    ----------
    most_leaves : int
        A number of leaves that some tree with the best ratio does not exceed.
    linear : callable
        See `LinearStep`.
    clock, progress
        As in `SearchRun`.
    rounding : float
        Error of the linear problems, relative to their largest sums.
    exact : bool
        Whether the linear problems are exact for all integers; else only for integers whose unit exceeds the error.
    gap : float
        Relative gap at which to stop.
    """

    def __init__(
        self,
        score: RatioScore,
        leaf_penalty: float,
        most_leaves: int,
        linear: LinearStep,
        clock: Clock,
        rounding: float,
        exact: bool,
        gap: float = 0.0,
        progress: Sink | None = None,
    ) -> None:
        super().__init__(clock, progress)
        self.score, self.leaf_penalty, self.most_leaves = score, leaf_penalty, most_leaves
        self.linear, self.rounding, self.exact, self.gap = linear, rounding, exact, gap
        self.tree: DecisionTree | None = None
        self.objective = -math.inf
        self.steps = 0
        over, under = score.numerator, score.denominator
        self._least, self._most = float(under.min(axis=1).sum()), float(under.max(axis=1).sum())
        highest = float(over.max(axis=1).sum())
        # By number of leaves: upper bound on the ratio, and the best known ratio as (numerator, denominator).
        self.upper = np.full(most_leaves, highest / (self._least if highest > 0 else self._most))
        self.known = np.full((most_leaves, 2), [-math.inf, 1.0])
        self._noise = 0.0
        self._paid = leaf_penalty * np.arange(1, most_leaves + 1)
        self._power = _whole_power(over, under)

    @property
    def bound(self) -> float:
        return max(self.objective, float((self.upper - self._paid).max()))

    @property
    def is_proven(self) -> bool:
        tolerance = PROOF_TOLERANCE + min(2 * self._noise, MOST_NOISE)
        return self.tree is not None and self.bound <= self.objective + tolerance

    @property
    def is_infeasible(self) -> bool:
        return bool((self.upper == -math.inf).all())

    def solve_steps(self) -> Status | None:
        """Solve linear problems until the best tree is proven; returns what ends the run before that."""
        self.note(self.objective, self.bound)
        while not self.is_proven and not self.is_infeasible:
            h = int((self.upper - self._paid).argmax())
            if self.stopper():
                return self.stopper.reason
            if self.tree is not None and relative_gap(self.objective, self.bound) <= self.gap:
                return "gap_limit"
            before = (self.objective, self.bound, self.upper.copy())
            status = self._step(h, self.clock.left)
            self.steps += 1
            self.note(self.objective, self.bound)
            if self.is_proven:  # perhaps with nothing new but the noise of this step
                break
            if status not in ("optimal", "infeasible"):
                return status
            if before[:2] == (self.objective, self.bound) and np.array_equal(before[2], self.upper):
                return "solver_failed"  # the linear problems cannot tell these trees apart
        return None

    def _step(self, h: int, left: float | None) -> Status:
        p, q, whole = self._ratio(h)
        parts = q * self.score.numerator, p * self.score.denominator
        full = parts[0] - parts[1]
        if whole:
            full = np.ldexp(full, self._power or 0)  # whole, and exact: all products are below 2**51
        rewards = _affordable(full)
        linear = LinearScore.of("a step towards the ratio", self.score.dataset, rewards, 1.0)
        levels, status = self.linear(Fixed(linear), h + 1, left)
        t, unit = p / q, q * 2.0 ** (self._power or 0) if whole else q
        earned = rewards - rewards.min(axis=1, keepdims=True)
        size = max(float(np.abs(rewards).max(axis=1).sum()), float(earned.sum()))
        sure = whole and (self.exact or PROOF_TOLERANCE * size < 0.25)
        # Differences are rounded relative to their parts, which are larger than they are where t is nearly reached.
        terms = np.where(rewards == full, np.abs(parts[0]) + np.abs(parts[1]), 0.0).max(axis=1).sum()
        noise = 0.0 if sure else self.rounding * size / unit + _ROUNDED * float(terms) / q
        self._noise = noise / self._least
        for level in levels:
            place = level.leaves - 1
            if level.found is not None:
                self._take(level.found)
            most = level.bound / unit + noise
            limit = t + most / (self._least if most > 0 else self._most)
            self.upper[place] = min(self.upper[place], limit if level.bound > -math.inf else -math.inf)
        # What bounds trees with at most h leaves bounds those with fewer.
        self.upper = np.minimum.accumulate(self.upper[::-1])[::-1]
        return status

    def _ratio(self, h: int) -> tuple[float, float, bool]:
        """The t of the next problem as a fraction p / q, and whether q N - p D is a sum of whole units."""
        wanted = self.objective + self._paid[h]
        best: list[float] = self.known[h].tolist()
        if best[0] == -math.inf:
            return (wanted if math.isfinite(wanted) else 0.0), 1.0, False
        if wanted > best[0] / best[1]:
            return wanted, 1.0, False
        if self._power is not None:
            p, q = (int(math.ldexp(part, self._power)) for part in best)
            common = math.gcd(p, q)
            p, q = p // common, q // common
            size = q * float(np.abs(self.score.numerator).sum()) + abs(p) * float(np.abs(self.score.denominator).sum())
            if math.ldexp(size, self._power) < _EXACT:
                return float(p), float(q), True
        return best[0] / best[1], 1.0, False

    def _take(self, tree: DecisionTree) -> None:
        over, under = self.score.parts(tree)
        known = self.known[tree.n_leaves - 1 :]
        known[over / under > known[:, 0] / known[:, 1]] = over, under
        objective = over / under - self.leaf_penalty * tree.n_leaves
        if objective > self.objective:
            self.tree, self.objective = tree, objective

    def may_win(self, leaves: int) -> bool:
        """Return whether a tree with this number of leaves may be better than the best known one."""
        return bool(self.upper[leaves - 1] - self._paid[leaves - 1] > self.objective)


def _affordable(rewards: FloatArray) -> FloatArray:
    """Return rewards (samples, classes) with losses clipped where the sum of a tree is clearly negative anyway.

    With S the sum of the best rewards, a tree that loses at least 2 S at one sample has a sum of at most -S. This stays
    true if the loss is clipped to 2 S, and trees with a larger sum keep their sums. No sum decreases.
    """
    best = rewards.max(axis=1, keepdims=True)
    losses = best - rewards
    total = math.fsum(best.ravel())
    if not total > 0.0:  # no sum is positive: any clipping is valid
        total = float(losses[losses > 0].min(initial=math.inf))
    return np.where(losses > 2 * total, best - 2 * total, rewards)


def _whole_power(over: FloatArray, under: FloatArray) -> int | None:
    """Return the smallest power of two, up to 8, that makes all numbers integers; None if there is none."""
    for power in range(9):
        if all(np.array_equal(part, np.floor(part)) for part in (np.ldexp(over, power), np.ldexp(under, power))):
            return power
    return None


def levels_of(table: Frontier, size: int, worthwhile: Callable[[int], bool]) -> list[Level]:
    """Return the levels of a frontier up to `size` leaves, with trees where one more leaf improves the score.

    Trees are built only if `worthwhile`. Beyond a limit on leaves the last bound is repeated.
    """
    last = min(len(table), size)
    better = np.diff(table.scores[:last], prepend=-math.inf) > 0
    points = [
        Level(h, table.tree(h) if better[h - 1] and worthwhile(h) else None, float(table.bounds[h - 1]))
        for h in range(1, last + 1)
    ]
    return [*points, *(Level(h, None, points[-1].bound) for h in range(last + 1, size + 1))]


# ---------------------------------------------------------------- the linear problems


@dataclass(frozen=True)
class RatioSteps:
    """Solves the linear problems: by the frontier if config and constraints allow it, else by `accel_oct.solve`."""

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
        progress: Sink,
    ) -> Levels:
        table = frontier(
            fixed.score.dataset,
            max_depth=self.max_depth,
            constraints=self.constraints,
            objective=fixed,
            solver=self.solver,
            time_limit=seconds,
            memory_limit=self.config.subtree_bounds.memory_limit,
            progress=progress,
        )
        return levels_of(table, most_leaves, worthwhile), table.status

    def by_solve(self, fixed: Fixed, leaves: int, seconds: float | None, progress: Sink) -> Levels:
        limit = [MaxLeaves(leaves)] if leaves < 2**self.max_depth else []
        result = self.solve(
            fixed.score.dataset,
            max_depth=self.max_depth,
            leaf_penalty=0.0,
            constraints=[*(self.constraints or []), *limit],
            objective=fixed,
            solver=replace(self.solver, gap=0.0),
            config=self.config,
            components=self.components,
            time_limit=seconds,
            progress=progress,
        )
        return [Level(leaves, result.found, result.bound)], result.status


def best_ratio(
    score: RatioScore, leaf_penalty: float, steps: RatioSteps, clock: Clock, progress: Sink | None
) -> Result:
    """Find the tree with the best penalised ratio by a sequence of linear problems."""
    data = score.dataset
    problem = Problem.of(Accuracy().bind(data), steps.max_depth, leaf_penalty, steps.constraints)
    tables = steps.by_frontier(problem)
    # Tables round rewards to their grid; a proof by anything else has its tolerance.
    noise = 1e-12 + data.n_samples * 2.0**-46 if tables else PROOF_TOLERANCE
    if not tables and steps.config != Config.preset("default"):
        noise += 2 * SOLVER_NOISE

    def step(fixed: Fixed, leaves: int, seconds: float | None) -> Levels:
        part = search.reporter.part(f"step {search.steps + 1} of a ratio")
        if tables:
            return steps.on_frontier(fixed, search.most_leaves, seconds, lambda h: search.may_win(h), part)
        return steps.by_solve(fixed, leaves, seconds, part)

    search = RatioSearch(
        score,
        problem.leaf_penalty,
        problem.most_leaves,
        step,
        clock,
        noise,
        tables,
        steps.solver.gap,
        progress,
    )
    outcome = drive(search, [SinglePhase("a sequence of linear problems", RatioSearch.solve_steps)])
    stats: dict[str, Any] = {"ratio": {"steps": search.steps}}
    if outcome.status == "infeasible":
        stats["infeasible"] = tuple(constraint.name for constraint in problem.constraints)
    return build_result(
        outcome,
        data,
        None if search.tree is None else search.tree.with_max_depth(problem.max_depth),
        search.objective,
        search.objective if outcome.status == "optimal" else search.bound,
        constraints=problem.constraints,
        stats=stats,
        backend="none" if tables else steps.solver.backend,
        scope=Scope.of_features(problem.max_depth, data.n_features),
    )
