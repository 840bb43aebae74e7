"""Search over every split of a classifier's table.

If subtrees are independent, the search needs no chosen thresholds. The resulting encoder has the conditions of the
tree, and its `exact_` is True: every other split was searched too.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints import MaxLeaves, Monotone, bind_all
from accel_oct.constraints.base import as_list, limits_of
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.reads import fits_every_encoding
from accel_oct.encoding.auto import AutoEncoder, estimated_seconds
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.orders import TableOrders
from accel_oct.encoding.table_encoder import DEFAULT_CATEGORIES
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.estimators.greedy import GreedyTrees
from accel_oct.estimators.rules import column_constraints, least_samples
from accel_oct.estimators.ties import among_equals, checked_ties, note_of
from accel_oct.estimators.training import CheckedRows, Solved, TrainingData
from accel_oct.exact.ordered import OrderedTree
from accel_oct.exact.ties import Settled
from accel_oct.mip import SolveOptions, as_solver, candidate_backends
from accel_oct.mip.options import usable_threads
from accel_oct.objectives import LinearScore, as_objective
from accel_oct.solving.config import is_default_config
from accel_oct.solving.every_split import EverySplit, EverySplitOutcome, bound_over_every_split
from accel_oct.solving.result import Result, build_result
from accel_oct.support.arguments import checked_depth
from accel_oct.support.progress import Reporter, Sink
from accel_oct.support.stopping import Clock, Stopper
from accel_oct.tree import DecisionTree


def _can_search(model: Any) -> bool:
    """Return whether the parameters of a classifier allow this search."""
    if as_objective(model.objective).needs_chosen_splits:
        return False
    monotone = any(isinstance(each, Monotone) for each in column_constraints(model))
    coupled = model.max_features_used is not None or monotone
    return is_default_config(model.config) and not model.components and not coupled


def allows_any_depth(model: Any, data: TrainingData) -> bool:
    """Return whether a search for a classifier needs no depth limit, whatever the leaf penalty."""
    if not _can_search(model) or not isinstance(data.score, LinearScore) or data.tally is not None:
        return False
    bound = bind_all(model._all_constraints(data), data.dataset)
    n_samples = data.dataset.n_samples
    return all(each.traits.leaves is not None or each.traits.on_paths(n_samples) is not None for each in bound)


def unlimited_depth_error() -> InvalidInputError:
    """Return the error for a search that needs a depth limit."""
    return InvalidInputError(
        "max_depth=None needs rows in memory, an objective that is a sum over them, the config 'default', and "
        "constraints about single leaves, single paths or the number of leaves; give max_depth a number"
    )


def _options(model: Any, time_limit: float | None) -> SolveOptions:
    """Validate the solver options of a classifier."""
    solver = as_solver(model.solver)
    candidate_backends(solver.backend)
    return solver.solve_options(time_limit)


@dataclass(frozen=True, eq=False)
class TableSearch:
    """Search over all splits of a raw table; created by `of`.

    Attributes
    ----------
    model : OptimalTreeClassifier
        With `classes_`.
    checked : CheckedRows
    orders : TableOrders
    data : TrainingData
        Data without binary features of the encoder.
    space : EverySplit
    """

    model: Any
    checked: CheckedRows
    orders: TableOrders
    data: TrainingData
    space: EverySplit

    @classmethod
    def of(cls, model: Any, checked: CheckedRows | EncodedTable) -> TableSearch | None:
        """Return the search for a classifier; None if it needs chosen splits."""
        if isinstance(checked, EncodedTable) or not (
            isinstance(model.encoder, str) and model.encoder == "auto" and _can_search(model)
        ):
            return None
        if not _leaves_subtrees_independent(model, checked):
            return None
        orders = TableOrders.of(checked.table, checked.weights, missing=model.missing, ignored=checked.ignored)
        if orders is None or _suits_tables(model, orders):
            return None
        data = _with_orders(model, checked, orders)
        if not isinstance(data.score, LinearScore) or not fits_every_encoding(data.score.reads):
            return None
        space = EverySplit(data.score, orders.ranks, orders.rows, model._all_constraints(data), model.max_depth)
        return cls(model, checked, orders, data, space) if all(map(space.takes, space.bound_constraints)) else None

    def solve(self, leaf_penalty: float, clock: Clock, progress: Sink | None = None) -> Solved:
        """Search, and encode the rows with the conditions of the tree; the classifier stores the encoder."""
        return self.encoded(self.searched(leaf_penalty, clock, progress), clock)

    def path(self, penalties: Sequence[float], clock: Clock, progress: Sink | None = None) -> Iterator[Solved]:
        """Yield the optimum of each penalty in the given order; each search starts from the previous trees.

        Each penalty may take an equal part of the time that is left.
        """
        known: list[OrderedTree] = []
        greedy = self._greedy(clock)
        for place, penalty in enumerate(penalties):
            outcome = self.searched(penalty, clock.share(len(penalties) - place), progress, known, greedy)
            known += [] if outcome.tree is None else [outcome.tree]
            yield self.encoded(outcome, clock)

    def frontier(self, clock: Clock, progress: Sink | None = None) -> Iterator[Solved]:
        """Yield the best tree for each number of leaves."""
        for space, outcome in _by_leaves(self.space, _options(self.model, clock.limit), clock, progress):
            yield replace(self, space=space).encoded(outcome, clock)

    def searched(
        self,
        leaf_penalty: float,
        clock: Clock,
        progress: Sink | None = None,
        known: Sequence[OrderedTree] = (),
        greedy: GreedyTrees | None = None,
    ) -> EverySplitOutcome:
        """Search; a long search for deep trees is restarted from good trees over chosen splits.

        The result is proven, or at least as good as CART trees. On tables that are large for the time limit, where a
        search may not get far, it starts from the CART trees.
        """
        greedy = greedy or self._greedy(clock)
        if greedy.is_sampled:
            known = [*known, *greedy.pruned(leaf_penalty)]
        outcome = self._searched(leaf_penalty, clock, progress, known)
        if greedy.is_sampled or outcome.status in ("optimal", "infeasible"):
            return outcome
        return self.space.improved(outcome, greedy.pruned(leaf_penalty), clock)

    def _greedy(self, clock: Clock) -> GreedyTrees:
        """Return CART trees of the table, of as many rows per leaf as the classifier requires."""
        least = least_samples(self.model.min_samples_leaf, len(self.checked.codes))
        return GreedyTrees(self.space, least, clock.left)

    def _searched(
        self, leaf_penalty: float, clock: Clock, progress: Sink | None, known: Sequence[OrderedTree]
    ) -> EverySplitOutcome:
        space, options = self.space, _options(self.model, clock.limit)
        if space.max_depth is not None and space.max_depth < _DEEP:
            return space.solve(leaf_penalty, options, clock, progress, known=known)
        seconds = min(_FIRST_SECONDS, math.inf if clock.left is None else clock.left * _FIRST_SHARE)
        first = clock.limited_to(clock.seconds + seconds)
        outcome = space.solve(leaf_penalty, options, first, progress, known=known)
        if outcome.status != "time_limit" or clock.left == 0.0:
            return outcome
        if clock.left is not None and clock.left < _LEAST_FOR_RESTART:
            return space.solve(leaf_penalty, options, clock, progress, known=known, before=outcome)
        started = self._over_chosen_splits(leaf_penalty, clock, progress)
        return space.solve(leaf_penalty, options, clock, progress, known=[*known, *started], before=outcome)

    def _centred(self, tree: OrderedTree) -> OrderedTree:
        """Return an equivalent tree whose splits lie in the middle between the training rows of their node."""
        ranks, place, rank = self.space.ranks, np.zeros(self.space.ranks.shape[1], dtype=np.int64), list(tree.rank)
        for node, column in enumerate(tree.column):
            if column < 0:
                continue
            here = np.flatnonzero(place == node)
            own = ranks[column, here]
            low = own <= tree.rank[node]
            place[here] = np.where(low, tree.left[node], tree.right[node])
            if low.any() and not low.all():
                rank[node] = self.orders.orders[column].middle(int(own[low].max()), int(own[~low].min()))
        return replace(tree, rank=tuple(rank))

    def _over_chosen_splits(self, leaf_penalty: float, clock: Clock, progress: Sink | None) -> list[OrderedTree]:
        """Return a good tree over chosen splits, if there is one."""
        checked, depth = self.checked, self.space.max_depth
        finer = copy.copy(self.model)
        finer.max_depth = min(_DEEPEST_START, _UNLIMITED_START if depth is None else depth)
        finer.leaf_penalty = leaf_penalty
        finer.encoder = AutoEncoder(finer.max_depth, budget=_START_BUDGET, missing=self.model.missing)
        seconds = min(_START_SECONDS, math.inf if clock.left is None else clock.left * _START_SHARE)
        with warnings.catch_warnings():  # the fit on the whole table emits the warnings
            warnings.simplefilter("ignore")
            cells = int(min(_START_CELLS, max(seconds * _START_CELLS_PER_SECOND, _LEAST_START_CELLS)))
            n_rows, large = cells // max(1, len(checked.table.columns)), self.space.ranks.size > cells
            encoder = finer._fitted_encoder(checked.sampled(n_rows) if large else checked)
            data = finer._encoded_data(checked, encoder)
            part = Reporter(progress, lambda: clock.seconds).part("first trees")
            found = finer._solve(data, seconds, part).found
        tree = None if found is None else self._ordered(found, encoder.conditions_)
        return [] if tree is None else [tree]

    def _ordered(self, tree: DecisionTree, conditions: Sequence[Condition]) -> OrderedTree | None:
        """Convert a tree over conditions to one over orders; None if a condition is no cut of an order."""
        cuts = {feature: self.orders.cut(conditions[feature]) for feature in tree.features_used}
        rows: list[list[int]] = []

        def add(node: int) -> int:
            place, feature = len(rows), int(tree.feature[node - 1])
            rows.append([-1, -1, -1, -1, int(tree.label[node - 1])])
            if feature >= 0:
                order, rank, right = cuts[feature] or (-1, -1, True)
                low, high = (2 * node, 2 * node + 1) if right else (2 * node + 1, 2 * node)
                rows[place][:2] = [order, rank]
                rows[place][2], rows[place][3] = add(low), add(high)
            return place

        add(1)
        return None if None in cuts.values() else OrderedTree.of_rows(np.array(rows, dtype=np.int32))

    def _settled(self, outcome: EverySplitOutcome, clock: Clock) -> EverySplitOutcome:
        """Return the outcome with the tree that the classifier takes among equally good ones, if it is optimal."""
        criterion, tree = checked_ties(self.model.ties), outcome.tree
        if criterion == "first" or tree is None or tree.n_leaves == 1 or outcome.status != "optimal":
            return outcome
        if tree not in self._known_ties:
            self._known_ties[tree] = self.space.settled(tree, criterion, lambda: clock.left == 0.0)
        settled = self._known_ties[tree]
        return replace(outcome, tree=settled.tree, stats={**outcome.stats, **note_of(criterion, settled)})

    @cached_property
    def _known_ties(self) -> dict[OrderedTree, Settled]:
        """Results of `_settled`: neighbouring penalties often have the same tree."""
        return {}

    def encoded(self, outcome: EverySplitOutcome, clock: Clock) -> Solved:
        """Return an outcome with rows encoded by the conditions of its tree; the classifier stores the encoder."""
        splits: dict[tuple[int, int], tuple[Condition, bool]] = {}
        outcome = self._settled(outcome, clock)
        if outcome.tree is not None:
            tree = self._centred(outcome.tree)
            outcome = replace(outcome, tree=tree)
            for column, rank in zip(tree.column, tree.rank, strict=True):
                if column >= 0:
                    splits[column, rank] = self.orders.orders[column].condition_of(rank)
        conditions = [condition for condition, _ in splits.values()]
        used = {condition.column for condition in conditions}
        # For the texts: on which side of a split the rows without a value are.
        conditions += [
            Condition(column.index, "is_missing", scale=column.scale)
            for column in self.orders.columns
            if column.index in used and column.has_missing
        ]
        encoder = self.orders.encoder_for(list(dict.fromkeys(conditions)))
        data = self.model._encoded_data(self.checked, encoder)
        place = {condition: number for number, condition in enumerate(encoder.conditions_)}
        cuts = {cut: (place[condition], right) for cut, (condition, right) in splits.items()}
        return Solved(encoder, data, _result(outcome, cuts, data, self.space))


def _leaves_subtrees_independent(model: Any, checked: CheckedRows) -> bool:
    """Return whether all constraints are local to leaves or paths in every encoding; tested on raw columns."""
    if not _names_columns(model):
        return True
    data = _with_columns(model, checked, range(len(checked.table.columns)))
    stated = [*as_list(model.constraints), *column_constraints(model)]
    try:
        bound = bind_all(stated, data.dataset)
    except InvalidInputError:
        return False  # a constraint names a feature, not a column: search chosen splits
    local = [each.traits.leaves is not None or each.traits.on_paths(data.n_samples) is not None for each in bound]
    return all(local) and all(fits_every_encoding(each.traits.reads) for each in bound)


def _names_columns(model: Any) -> bool:
    """Return whether some constraint of a classifier may name columns."""
    return bool(model.constraints) or model.interaction_cst is not None


def _with_orders(model: Any, checked: CheckedRows, orders: TableOrders) -> TrainingData:
    """Return the rows with one feature per order, if there are constraints that may name columns."""
    return _with_columns(model, checked, [order.column for order in orders.orders] if _names_columns(model) else ())


def _with_columns(model: Any, checked: CheckedRows, columns: Iterable[int]) -> TrainingData:
    """Return the rows with one feature for each of some columns; the values are not used."""
    sources = tuple(map(checked.table.name, columns))
    binary = np.zeros((len(checked.codes), len(sources)), dtype=bool)
    dataset, factors = checked.dataset(binary, sources, sources), model._class_factors(checked.codes, checked.weights)
    return TrainingData(dataset, model._objective(factors).bind(dataset), sources, factors)


def table_bound(
    model: Any, checked: CheckedRows, objective: float, limit: float, is_stopped: Callable[[], bool]
) -> float | None:
    """Return an upper bound on trees over every split of the table that satisfy the constraints; None if unknown.

    Minus infinity means that there is no such tree.

    Parameters
    ----------
    model : OptimalTreeClassifier
        With an encoder of chosen splits.
    objective : float
        Objective of the tree that was found.
    limit : float
        Seconds.
    is_stopped : callable
        Returns whether the user has asked to stop.
    """
    if as_objective(model.objective).needs_chosen_splits:
        return None
    orders = TableOrders.of(checked.table, checked.weights, missing="category", ignored=checked.ignored)
    if orders is None or is_stopped():
        return None
    data = _with_orders(model, checked, orders)
    if not isinstance(data.score, LinearScore) or not fits_every_encoding(data.score.reads):
        return None
    space = EverySplit(data.score, orders.ranks, orders.rows, (), checked_depth(model.max_depth))
    independent, limits = [], []
    for constraint in model._all_constraints(data):
        try:
            (bound,) = bind_all([constraint], data.dataset)
        except InvalidInputError:
            continue  # names features of the encoder: relaxed
        if not fits_every_encoding(bound.traits.reads):
            continue
        if space.takes(bound):
            independent.append(constraint)
        else:
            limits += [limit for limit in limits_of([bound]) if limit.is_priced]
    space = replace(space, constraints=independent)
    threads, found = usable_threads(as_solver(model.solver).n_threads), []
    Stopper(time.monotonic() + limit).run(
        lambda stopper: found.append(
            bound_over_every_split(space, limits, model.leaf_penalty, stopper, threads, objective)
        )
    )
    return found[0]


@dataclass(frozen=True, eq=False)
class FeatureSearch:
    """Search over binary features as orders of two values, for trees of any depth; created by `of`."""

    model: Any
    data: TrainingData
    space: EverySplit

    @classmethod
    def of(cls, model: Any, data: TrainingData) -> FeatureSearch:
        """Return the search for a classifier without a depth limit.

        Raises
        ------
        InvalidInputError
            If the search needs a depth limit; the message names max_depth.
        """
        if not _can_search(model) or not isinstance(data.score, LinearScore):
            raise unlimited_depth_error()
        rows = data.dataset.weights > 0
        ranks = np.ascontiguousarray(data.dataset.X[rows].T.astype(np.int32))
        space = EverySplit(data.score, ranks, rows, model._all_constraints(data), None)
        if not all(map(space.takes, space.bound_constraints)):
            raise unlimited_depth_error()
        return cls(model, data, space)

    def path(self, penalties: Sequence[float], clock: Clock, progress: Sink | None = None) -> Iterator[Solved]:
        """Yield the optimum of each penalty; each may take an equal part of the time that is left."""
        greedy = self._greedy(clock)
        for place, penalty in enumerate(penalties):
            yield self.solve(penalty, clock.share(len(penalties) - place), progress, greedy)

    def frontier(self, clock: Clock, progress: Sink | None = None) -> Iterator[Solved]:
        """Yield the best tree for each number of leaves."""
        for space, outcome in _by_leaves(self.space, _options(self.model, clock.limit), clock, progress):
            yield among_equals(self.model, replace(self, space=space).encoded(outcome), clock)

    def solve(
        self, leaf_penalty: float, clock: Clock, progress: Sink | None = None, greedy: GreedyTrees | None = None
    ) -> Solved:
        """Return the optimum of one penalty; without a proof, at least as good as CART trees."""
        greedy = greedy or self._greedy(clock)
        outcome = self.space.solve(leaf_penalty, _options(self.model, clock.limit), clock, progress)
        if outcome.status not in ("optimal", "infeasible"):
            outcome = self.space.improved(outcome, greedy.pruned(leaf_penalty), clock)
        return among_equals(self.model, self.encoded(outcome), clock)

    def _greedy(self, clock: Clock) -> GreedyTrees:
        """Return CART trees of the features, of as many rows per leaf as the classifier requires."""
        return GreedyTrees(self.space, least_samples(self.model.min_samples_leaf, self.data.n_samples), clock.left)

    def encoded(self, outcome: EverySplitOutcome) -> Solved:
        """Return an outcome over the features."""
        tree = outcome.tree
        columns = () if tree is None else tuple(column for column in tree.column if column >= 0)
        cuts = {(column, 0): (column, True) for column in columns}
        result = _result(outcome, cuts, self.data, self.space)
        return Solved(self.model.encoder_, self.data, result)


def _by_leaves(
    space: EverySplit, options: SolveOptions, clock: Clock, progress: Sink | None
) -> Iterator[tuple[EverySplit, EverySplitOutcome]]:
    """Yield the best tree for each number of leaves, each with its problem."""
    most = space.max_leaves
    if space.max_depth is not None:
        most = min(2**space.max_depth, 2**space.max_depth if most is None else most)
    assert most is not None
    known: list[OrderedTree] = []
    for leaves in range(1, most + 1):
        limited = replace(space, constraints=[*space.constraints, MaxLeaves(leaves)])
        vars(limited)["problem"] = space.problem  # it does not depend on the leaf limit
        outcome = limited.solve(0.0, options, clock, progress, known=known[-1:])
        known += [] if outcome.tree is None else [outcome.tree]
        yield space, outcome


def _suits_tables(model: Any, orders: TableOrders) -> bool:
    """Return whether the tables of binary features are faster: few splits per column."""
    if model.max_depth is None or any(len(known) > DEFAULT_CATEGORIES for known in orders.encoder.categories_.values()):
        return False
    n_rows, n_classes, depth = int(orders.rows.sum()), len(model.classes_), checked_depth(model.max_depth)
    cuts = orders.n_cuts
    if cuts > len(orders.orders) * _FEW_CUTS.get(depth, _FEW_CUTS[_DEEP]) or cuts * n_rows > _TABLE_CELLS:
        return False
    most: float = min(_TABLE_SECONDS, model._effort()[0])
    return estimated_seconds(cuts, n_rows, n_classes, depth) <= most


def _result(
    outcome: EverySplitOutcome,
    cuts: dict[tuple[int, int], tuple[int, bool]],
    data: TrainingData,
    space: EverySplit,
) -> Result:
    """Return the result over binary features; `cuts` maps (order, rank) to (feature, whether higher ranks are yes).

    Raises
    ------
    AccelOctError
        If the tree has another value on the encoded rows: a bug of the library.
    """
    found = None
    if outcome.tree is not None:
        found = _decision_tree(outcome, cuts)
        objective = data.score.value(found) - float(outcome.leaf_penalty) * found.n_leaves
        if abs(objective - outcome.objective) > _ROUNDING * max(1.0, abs(objective)):
            raise AccelOctError(
                f"the tree is worth {objective} on the encoded table and {outcome.objective} on the orders of its "
                "columns: please report this"
            )
        found = found if space.max_depth is None else found.with_max_depth(space.max_depth)
    constraints = bind_all(space.constraints, data.dataset)
    return build_result(
        outcome, data.dataset, found, outcome.objective, outcome.bound, constraints=constraints, stats=outcome.stats
    )


_DEEP = 4
"""Depth from which on a search may be long and is restarted from trees over chosen splits."""

_FIRST_SECONDS, _FIRST_SHARE = 10.0, 0.4
"""Time of a deep search before the restart: seconds, and share of the remaining time."""

_START_SECONDS, _START_SHARE, _START_BUDGET, _DEEPEST_START, _UNLIMITED_START = 10.0, 0.4, 1.0, 6, 5
"""Trees over chosen splits: seconds, share of the remaining time, budget of the encoder, largest depth, and the depth
for a search without a depth limit."""

_LEAST_FOR_RESTART = 1.0
"""Remaining seconds below which a deep search goes on without trees over chosen splits, which take about as long."""

_START_CELLS, _START_CELLS_PER_SECOND, _LEAST_START_CELLS = 500_000, 250_000, 20_000
"""Cells of the sample of a large table on which these splits are chosen: at most, per second for these trees, and at
least. Choosing splits is not interrupted."""

_FEW_CUTS = {0: 0, 1: 0, 2: 0, 3: 2, _DEEP: 10}
"""By depth, splits per order up to which the tables are faster than the search over orders, measured on binary data
sets and on random tables of 3 to 20 values per column."""

_TABLE_SECONDS, _TABLE_CELLS = 2.0, 20_000_000
"""Limits for the tables if there are few splits per order: seconds by `estimated_seconds`, and splits times rows."""

_ROUNDING = 1e-9
"""Tolerance between two computations of an objective; far above the rounding error of floats."""


def _decision_tree(outcome: EverySplitOutcome, cuts: dict[tuple[int, int], tuple[int, bool]]) -> DecisionTree:
    tree = outcome.tree
    assert tree is not None
    built: dict[int, DecisionTree] = {}
    for node in reversed(range(len(tree.column))):  # children come after their parents
        if tree.column[node] < 0:
            built[node] = DecisionTree.leaf(tree.label[node])
            continue
        feature, right = cuts[tree.column[node], tree.rank[node]]
        low, high = built.pop(tree.left[node]), built.pop(tree.right[node])
        built[node] = DecisionTree.branch(feature, *((low, high) if right else (high, low)))
    return built[0]
