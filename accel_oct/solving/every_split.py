"""The optimal tree over every split of ordered columns, as a solve: limits, clock, history, status and proof.

For problems whose subtrees are independent: what a leaf earns is a sum over its rows, and constraints are about single
leaves, single paths and the number of leaves. `accel_oct.exact.ordered` does the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import BoundConstraint, Constraint, LinearLimit, bind_all
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.exact import LocalRules
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.exact.ordered import LeafLimits, OrderedProblem, OrderedTree, ordered_problem, search_ordered
from accel_oct.exact.ties import Exchange, Settled
from accel_oct.mip import SolveOptions, relative_gap
from accel_oct.objectives import LinearScore
from accel_oct.pricing import Dual
from accel_oct.solving.driver import SearchRun, SinglePhase, drive
from accel_oct.solving.result import HistoryRow, RunOutcome, Status
from accel_oct.support.arguments import MAX_SUPPORTED_DEPTH, TieCriterion, checked_depth
from accel_oct.support.progress import Sink
from accel_oct.support.stopping import Clock, Stopper

__all__ = ["EverySplit", "EverySplitOutcome", "bound_over_every_split"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


_ROUNDING = 1e-9
"""Relative tolerance for values that are computed twice, far above the rounding of sums."""

_LARGE, _SAMPLE = 1_000_000, 200_000
"""Cells from which on a search starts from the best tree on a sample of the rows, and cells of this sample."""

_SAMPLE_SECONDS, _SAMPLE_SHARE = 10.0, 0.2
"""Limits on the time for the sample: seconds, and share of the time that is left."""


@dataclass(frozen=True, eq=False)
class EverySplitOutcome(RunOutcome):
    """The outcome of a search, in normalised units; see `Result` for the meaning of most fields.

    Attributes
    ----------
    tree : OrderedTree or None
    searched_depth : int
        Largest depth of the trees that were searched.
    """

    tree: OrderedTree | None
    leaf_penalty: float
    objective: float
    bound: float
    searched_depth: int
    stats: dict[str, Any]


@dataclass(frozen=True, eq=False)
class EverySplit:
    """A problem over orders of rows.

    Parameters
    ----------
    score : LinearScore
        On a data set with one feature per order, whatever its values; constraints are bound to it.
    ranks : int32 array (orders, rows)
    rows : bool array (n_samples,)
        Which samples the ranks are of; no other earns anything.
    constraints : sequence of Constraint
        All of them such that `takes` holds.
    max_depth : int or None
        None: any depth; then the leaf penalty must be above 0, or the number of leaves limited.
    """

    score: LinearScore
    ranks: NDArray[np.int32]
    rows: NDArray[np.bool_]
    constraints: Sequence[Constraint]
    max_depth: int | None
    memory_limit: int = field(default=2**31)

    def __post_init__(self) -> None:
        if self.max_depth is not None:
            checked_depth(self.max_depth)

    @cached_property
    def bound_constraints(self) -> tuple[BoundConstraint, ...]:
        return bind_all(self.constraints, self.score.dataset)

    @property
    def max_leaves(self) -> int | None:
        """The smallest limit on leaves, or None."""
        limits = [each.traits.leaves for each in self.bound_constraints]
        return min((limit for limit in limits if limit is not None), default=None)

    @cached_property
    def rules(self) -> LocalRules | None:
        """The rules of the constraints about leaves and paths."""
        found = [each.traits.on_paths(self.score.dataset.n_samples) for each in self.bound_constraints]
        return LocalRules.joined([rules for rules in found if rules is not None])

    def takes(self, constraint: BoundConstraint) -> bool:
        """Whether a constraint is about leaves, paths or the number of leaves, of the rows that are searched."""
        if constraint.traits.leaves is not None:
            return True
        rules = constraint.traits.on_paths(self.score.dataset.n_samples)
        return rules is not None and not rules.masses[:, ~self.rows].any()

    @cached_property
    def problem(self) -> OrderedProblem:
        """The samples in whole numbers."""
        return ordered_problem(self.ranks, self.gains[self.rows], self.score.rows.grid_bits, self.limits)

    @cached_property
    def gains(self) -> Floats:
        """What each label earns on each sample, (n_samples, n_classes)."""
        return self.score.gains

    @property
    def limits(self) -> LeafLimits | None:
        """The rules about leaves and paths in the form of the search."""
        if self.rules is None:
            return None
        n_orders, apart = len(self.ranks), self.rules.apart
        return LeafLimits(*_whole_masses(self.rules, self.rows), None if apart is None else apart[:n_orders, :n_orders])

    def allows(self, tree: OrderedTree) -> bool:
        """Whether a tree keeps the depth and all constraints."""
        if self.max_depth is not None and tree.depth > self.max_depth:
            return False
        if self.max_leaves is not None and tree.n_leaves > self.max_leaves:
            return False
        limits = self.limits
        if limits is None:
            return True
        place = tree.leaves_of(self.ranks)
        leaves = [node for node, column in enumerate(tree.column) if column < 0]
        sums = [np.bincount(place, mass, len(tree.column))[leaves].min() for mass in limits.masses]
        return bool(np.all(np.array(sums) >= limits.least)) and limits.apart is None

    def check_depth_limit(self, leaf_penalty: float) -> None:
        """Raise where nothing bounds the depth of the best tree.

        Raises
        ------
        InvalidInputError
            Naming max_depth.
        """
        if self.max_depth is None and not leaf_penalty > 0 and self.max_leaves is None:
            raise InvalidInputError(
                "max_depth=None needs a leaf_penalty above 0 or a limit on leaves: without them nothing bounds the "
                f"depth of the best tree; give max_depth a number from 0 to {MAX_SUPPORTED_DEPTH}, or raise "
                "leaf_penalty"
            )

    def solve(
        self,
        leaf_penalty: float,
        options: SolveOptions,
        clock: Clock,
        progress: Sink | None = None,
        *,
        known: Sequence[OrderedTree] = (),
        before: EverySplitOutcome | None = None,
    ) -> EverySplitOutcome:
        """Find the best tree, and prove it.

        Parameters
        ----------
        leaf_penalty : float
        options : SolveOptions
            Gap and threads.
        clock : Clock
            Time limit.
        progress : callable or None
            As in `accel_oct.solve`.
        known : sequence of OrderedTree
            Trees that keep the constraints and the depth; the result is at least as good.
        before : EverySplitOutcome or None
            A search of the same problem that was stopped; its history goes on.
        """
        price = self.score.rows.leaf_price(leaf_penalty, self.score.norm)
        self.check_depth_limit(leaf_penalty)
        run = EverySplitRun(self, float(leaf_penalty), price, options, clock, progress)
        if before is not None:
            run.resume(before.history)
            known = [*known, *([] if before.tree is None else [before.tree])]
        return run.solve(known)

    def improved(self, outcome: EverySplitOutcome, trees: Iterable[OrderedTree], clock: Clock) -> EverySplitOutcome:
        """Return the outcome with the best of some trees that keep the constraints, if one is better."""
        for tree in trees:
            objective = self.objective(tree, outcome.leaf_penalty)
            if objective > outcome.objective:
                row = HistoryRow(clock.seconds, objective, max(outcome.bound, objective))
                history = (*outcome.history, row)
                outcome = replace(outcome, tree=tree, objective=objective, bound=row.bound, history=history)
        return replace(outcome, seconds=clock.seconds)

    def settled(
        self, tree: OrderedTree, criterion: TieCriterion, should_stop: Callable[[], bool] = lambda: False
    ) -> Settled:
        """Return an equally good tree that is better by a criterion; see `accel_oct.exact.ties`."""
        limits = self.limits
        if limits is not None and limits.apart is not None:
            return Settled(tree, 0, False)
        whole = np.ldexp(self.gains[self.rows], self.score.rows.grid_bits).astype(np.int64)
        return Exchange(self.ranks, whole, criterion, limits).settled(tree, should_stop)

    def earned(self, tree: OrderedTree) -> float:
        """Return the score of a tree, in units of weight."""
        gains = self.gains[self.rows]
        return float(gains[np.arange(len(gains)), tree.predict(self.ranks)].sum())

    def objective(self, tree: OrderedTree, leaf_penalty: float) -> float:
        """Return the objective of a tree."""
        return self.score.reported(self.earned(tree)) - leaf_penalty * tree.n_leaves


def _whole_masses(rules: LocalRules, rows: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return masses and least masses in the largest unit in which all masses are integers."""
    masses, least = [], []
    for mass, minimum in zip(rules.masses, rules.least, strict=True):
        if minimum <= 0:
            continue
        total = float(mass.sum())
        bits = 53 - math.frexp(total)[1]  # sums of masses are exact: see `LocalRules.leaves`
        whole = np.ldexp(mass[rows], bits).astype(np.int64)
        unit = int(np.gcd.reduce(whole)) or 1
        masses.append(whole // unit)
        least.append(2**53 if minimum > total else math.ceil(math.ldexp(minimum, bits) / unit))
    return np.array(masses, np.int64).reshape(-1, int(rows.sum())), np.array(least, np.int64)


class EverySplitRun(SearchRun):
    """The run of one search.

    Attributes
    ----------
    tree : OrderedTree or None
    objective : float
        Of the tree.
    """

    def __init__(
        self,
        space: EverySplit,
        penalty: float,
        price: float,
        options: SolveOptions,
        clock: Clock,
        progress: Sink | None,
    ) -> None:
        super().__init__(clock, progress)
        self.space, self.penalty, self.price, self.options = space, penalty, price, options
        self.tree: OrderedTree | None = None
        self.objective = -math.inf
        self._bound = math.inf  # in units of weight
        self._finished = False

    def solve(self, known: Sequence[OrderedTree]) -> EverySplitOutcome:
        """Search, beginning with some trees."""
        outcome = drive(self, [SinglePhase("search over every split", lambda run: run.search(known))])
        space, state = self.space, self._result.state
        stats: dict[str, Any] = {
            "searched_depth": self._result.depth,
            "every_split": {
                "orders": len(space.ranks),
                "splits": int(space.ranks.max(axis=1, initial=0).sum()),
                **({} if state is None else _figures(state)),
            },
        }
        if outcome.status == "infeasible":
            stats["infeasible"] = tuple(each.name for each in space.bound_constraints)
        return EverySplitOutcome(
            **vars(outcome),
            tree=self.tree,
            leaf_penalty=self.penalty,
            objective=self.objective,
            bound=outcome.history[-1].bound,
            searched_depth=self._result.depth,
            stats=stats,
        )

    @property
    def is_proven(self) -> bool:
        return self._finished and self.tree is not None

    @property
    def is_infeasible(self) -> bool:
        return self._finished and self.tree is None

    def search(self, known: Sequence[OrderedTree]) -> Status:
        """Search; returns what ends the run where nothing is proven."""
        start = self._single_leaf()
        for each in [*known, *self._from_sample()]:
            start = max(start, (self.space.earned(each) - self.price * each.n_leaves, each), key=lambda pair: pair[0])
        self._record(start[0], math.inf)
        found: list[Any] = []
        # A tree of a sample does not limit the search: measured, the proof takes longer with a limit.
        lower = start[0] if known else -math.inf
        stopped = self.perform(lambda stopper: found.append(self._search(lower, stopper)))
        self._result = result = found[0]
        tree, value = result.tree, result.value
        if tree is None or value < start[0]:
            value, tree = start
        else:
            self._check(tree, value)
        # Trees that are too deep to be kept are in the bound, where they are allowed.
        self._bound = max(result.bound, self._beyond(result.depth))
        self._finished = bool(result.finished and self._bound <= value)
        self.tree = tree
        self.objective = -math.inf if tree is None else self.space.objective(tree, self.penalty)
        reached = relative_gap(self.objective, max(self.space.score.reported(self._bound), self.objective))
        if stopped != "interrupted" and self.options.gap > 0 and reached <= self.options.gap:
            return "gap_limit"
        return stopped or "stopped"

    def finish(self, status: Status) -> None:
        """Note the last values; rounding may put them on the other side of earlier ones, by far less than 1e-9."""
        objective, limit = self.objective, self.objective
        if not self._finished:
            limit = max(min(self.space.score.reported(self._bound), self.history[-1].bound), objective)
        self.note(objective, limit)

    def _check(self, tree: OrderedTree, value: float) -> None:
        """Check value and limits of the tree that the search returned; a difference is a bug of the library."""
        space, most = self.space, self._most
        difference = abs(space.earned(tree) - min(self.price, most) * tree.n_leaves - value)
        limits = (space.max_depth, tree.depth), (space.max_leaves, tree.n_leaves)
        if difference > _ROUNDING * most or any(limit is not None and limit < number for limit, number in limits):
            raise AccelOctError("the search over every split claims what its tree does not keep: please report this")

    @property
    def _most(self) -> float:
        """The weight of all rows: with leaves that cost as much the best tree is a leaf."""
        return float(self.space.score.rows.total_weight)

    def _from_sample(self) -> list[OrderedTree]:
        """Return the best tree on a sample of the rows of a large table, with the best labels on all rows.

        On all rows the search goes through few nodes in the time in which it finishes on the sample.
        """
        space, left = self.space, self.clock.left
        n_orders, n_rows = space.ranks.shape
        if self.history or n_orders * n_rows < _LARGE or left == 0.0:
            return []
        rows = np.random.default_rng(0).choice(n_rows, min(n_rows, 1 + _SAMPLE // n_orders), replace=False)
        gains = space.gains[space.rows]
        values, ranks = zip(*(np.unique(column[rows], return_inverse=True) for column in space.ranks), strict=True)
        ranks = np.stack(ranks).astype(np.int32).reshape(n_orders, -1)
        problem = ordered_problem(ranks, gains[rows], space.score.rows.grid_bits)
        until = time.monotonic() + min(_SAMPLE_SECONDS, _SAMPLE_SHARE * (math.inf if left is None else left))
        found: list[Any] = []

        def work(stopper: Stopper) -> None:
            price = min(self.price, self._most) * len(rows) / n_rows
            found.append(self._searched(problem, price, should_stop=lambda: stopper() or time.monotonic() > until))

        self.perform(work)
        tree = None if not found else found[0].tree
        if tree is None:
            return []
        rank = tuple(int(values[c][r]) if c >= 0 else -1 for c, r in zip(tree.column, tree.rank, strict=True))
        tree = replace(tree, rank=rank)
        place = tree.leaves_of(space.ranks)
        sums = np.stack([np.bincount(place, gain, len(tree.label)) for gain in gains.T], axis=1)
        tree = replace(tree, label=tuple(sums.argmax(axis=1).tolist()))
        return [tree] if space.allows(tree) else []

    def _search(self, known: float, stopper: Stopper) -> Any:
        return self._searched(
            self.space.problem,
            min(self.price, self._most),
            known_value=known,
            should_stop=lambda: stopper() or self._is_enough(),
            on_change=lambda _, value, bound: self._record(value, bound),
        )

    def _searched(self, problem: OrderedProblem, price: float, **options: Any) -> Any:
        space = self.space
        return search_ordered(
            problem,
            MAX_SUPPORTED_DEPTH if space.max_depth is None else space.max_depth,
            price,
            max_leaves=space.max_leaves,
            threads=self.options.threads,
            memory_limit=space.memory_limit,
            **options,
        )

    def _beyond(self, depth: int) -> float:
        """The most that a tree is worth that is deeper than those which can be kept."""
        space = self.space
        if space.max_depth is not None or depth < MAX_SUPPORTED_DEPTH:
            return -math.inf
        leaves = MAX_SUPPORTED_DEPTH + 2
        if space.max_leaves is not None and leaves > space.max_leaves:
            return -math.inf
        return space.problem.value(0) - leaves * self.price

    def _single_leaf(self) -> tuple[float, OrderedTree | None]:
        """Value of the best leaf and the leaf, where one is allowed."""
        if self.space.rules is not None and not self.space.rules.allow_a_leaf:
            return -math.inf, None
        weights = self.space.score.rows.class_weights()
        label = int(weights.argmax())
        return float(weights[label]) - self.price, OrderedTree((-1,), (-1,), (-1,), (-1,), (label,))

    def _is_enough(self) -> bool:
        """Whether the gap that was asked for is reached."""
        last = self.history[-1]
        return self.options.gap > 0 and relative_gap(last.objective, last.bound) <= self.options.gap

    def _record(self, value: float, bound: float) -> None:
        """Add a row to the history where something changed; value and bound in units of weight."""
        score, before = self.space.score, self.history[-1] if self.history else None
        objective = score.reported(value) if value > -math.inf else -math.inf
        limit = score.reported(min(bound, score.rows.total_weight - self.price))
        if before is not None:
            # Rounding must not lift an objective above a bound that was told before.
            objective, limit = min(max(objective, before.objective), before.bound), min(limit, before.bound)
        self.note(objective, max(limit, objective))


def _figures(state: Any) -> dict[str, int]:
    return {name: int(getattr(state, name)) for name in ("sets", "passes", "evaluations")}


# ---------------------------------------------------------------- a bound under limits that tie subtrees together


def bound_over_every_split(
    space: EverySplit,
    limits: Sequence[LinearLimit],
    leaf_penalty: float,
    should_stop: Callable[[], bool],
    threads: int = 1,
    enough: float = -math.inf,
) -> float:
    """A bound on the objective of every tree that keeps the limits; minus infinity where it proves that there is none.

    Parameters
    ----------
    space : EverySplit
        With the constraints that leave subtrees independent; all others are relaxed, or among the limits.
    limits : sequence of LinearLimit
        On the rows of the data set of `space`.
    should_stop : callable
        When to end; the bound is valid whenever that is.
    threads : int
    enough : float
        An objective; the search ends when the bound is down to it.
    """
    score, dataset = space.score, space.score.dataset
    price = score.rows.leaf_price(leaf_penalty, score.norm)
    assert space.max_depth is not None
    problem = LimitedProblem.of(dataset, limits, price, space.max_depth, scored=score.rows, merge=False)
    dual = _Dual(problem, lambda tree: None, should_stop, threads, space=space)
    wanted = (enough - score.offset) * score.norm
    if limits:
        dual.run(lambda: wanted)
    else:
        dual.evaluate(np.zeros(0))
    return -math.inf if dual.is_infeasible else score.reported(min(dual.bound, score.rows.total_weight - price))


@dataclass
class _Dual(Dual):
    """The dual of limits over orders of rows instead of binary features."""

    space: EverySplit = field(kw_only=True)

    def evaluate(self, prices: Floats) -> float:
        """L(mu), taken as a bound; the best priced tree becomes a plane."""
        space, limited = self.space, self.problem
        assert isinstance(limited, LimitedProblem)
        priced, rows = limited.priced(prices), space.rows
        found = search_ordered(
            ordered_problem(space.ranks, priced.weights[rows], priced.grid_bits, space.limits),
            limited.max_depth,
            priced.leaf_price,
            max_leaves=space.max_leaves,
            should_stop=self.should_stop,
            threads=self.threads,
            memory_limit=space.memory_limit,
        )
        # Rows without a weight have no place in the orders: each may have the label that suits the prices.
        predicted, n_leaves = priced.weights.argmax(axis=1), 1
        if found.tree is not None:
            predicted[rows], n_leaves = found.tree.predict(space.ranks), found.tree.n_leaves
        else:
            predicted[rows] = priced.weights[rows].sum(axis=0).argmax()
        every = np.arange(len(predicted))
        value = float(limited.gains[every, predicted].sum()) - limited.leaf_price * n_leaves
        used = limited.uses[:, every, predicted].sum(axis=1) + limited.leaf_uses * n_leaves
        self._planes.append(np.append(limited.upper - used, value))
        outside = float(priced.weights[~rows].max(axis=1, initial=0.0).sum())
        bound = found.bound + outside + priced.constant + priced.error
        if bound < self.bound:
            self.bound, self.best = bound, priced
        return bound
