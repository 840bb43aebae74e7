"""Several trees of one table: the best for each leaf penalty or number of leaves, and near-optimal ones."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from accel_oct.constraints import Constraint, bind_all
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.encoding.base import BinaryEncoder
from accel_oct.errors import InvalidInputError, shown
from accel_oct.estimators.every_split import FeatureSearch, TableSearch
from accel_oct.estimators.fitted import FittedClassifier
from accel_oct.estimators.in_pieces import check_rows
from accel_oct.estimators.ties import among_equals
from accel_oct.estimators.training import CheckedRows, Solved, TrainingData
from accel_oct.export.view import view
from accel_oct.live import watched
from accel_oct.mip import Solver, as_solver
from accel_oct.objectives import Fixed, LinearScore, Objective
from accel_oct.solving.closest import (
    ClosestTree,
    Listing,
    OldSplits,
    agreement_score,
    checked_agreement,
    closest_to,
    linear_score,
    sharing_most,
    without_constraints,
)
from accel_oct.solving.config import as_config, is_default_config
from accel_oct.solving.frontier import frontier, solve_path
from accel_oct.solving.near_optimal import NearOptimalTrees, near_optimal
from accel_oct.solving.result import Result, Status, chosen_result
from accel_oct.solving.solve import solve
from accel_oct.support.arguments import checked_depth, number_not_negative, time_left
from accel_oct.support.progress import Sink, announce
from accel_oct.support.stopping import Clock
from accel_oct.tree import DecisionTree


def along_penalties(
    model: Any,
    source: CheckedRows | EncodedTable,
    penalties: Sequence[float],
    clock: Clock,
    progress: Sink | None,
) -> Iterator[Solved]:
    """Yield the optimum of each penalty in the given order; the model stores the last encoder.

    Each search may take an equal part of the time that is left.

    Parameters
    ----------
    model : OptimalTreeClassifier
    source : CheckedRows or EncodedTable
        Training data.
    """
    search: TableSearch | FeatureSearch | None = TableSearch.of(model, source)
    if search is None:
        data = model._prepare(source)
        if model.max_depth is not None:
            for result in _results(model, data, penalties, clock, progress):
                yield among_equals(model, Solved(model.encoder_, data, result), clock)
            return
        search = FeatureSearch.of(model, data)
    yield from search.path(penalties, clock, progress)


def _results(
    model: Any,
    data: TrainingData,
    penalties: Sequence[float],
    clock: Clock,
    progress: Sink | None,
) -> Iterator[Result]:
    """Yield the results by one frontier of binary features, or one `solve` per penalty if the options need it."""
    constraints = model._all_constraints(data)
    asked = replace(as_solver(model.solver), threads=1, seed=0) != Solver() or not is_default_config(model.config)
    bound = bind_all(constraints, data.dataset)
    independent = all(each.traits.by_tables for each in bound)
    if asked or model.components or not independent or not isinstance(data.score, LinearScore):
        for place, penalty in enumerate(penalties):
            limit = clock.share(len(penalties) - place).left
            yield model.set_params(leaf_penalty=penalty)._solve(data, limit, progress)
        return
    yield from solve_path(
        data.dataset,
        max_depth=model.max_depth,
        leaf_penalties=penalties,
        constraints=constraints,
        objective=Fixed(data.score),
        solver=model.solver,
        time_limit=clock.left,
        progress=progress,
    )


def by_leaves(model: Any, source: CheckedRows | EncodedTable, clock: Clock, progress: Sink | None) -> Iterator[Solved]:
    """Yield the best tree with at most 1, 2, 3, ... leaves, without leaf penalties.

    Raises
    ------
    InvalidInputError
        If neither depth nor leaves are limited, or if a constraint or the objective couples subtrees.
    """
    if model.max_depth is None and model.max_leaf_nodes is None:
        raise InvalidInputError("max_depth=None needs max_leaf_nodes here: a frontier ends at some number of leaves")
    search = TableSearch.of(model, source)
    if search is not None:
        yield from search.frontier(clock, progress)
        return
    data = model._prepare(source)
    if model.max_depth is None:
        yield from FeatureSearch.of(model, data).frontier(clock, progress)
        return
    found = frontier(
        data.dataset,
        max_depth=checked_depth(model.max_depth),
        constraints=model._all_constraints(data),
        objective=Fixed(data.score),
        solver=model.solver,
        time_limit=clock.left,
        progress=progress,
    )
    for leaves in range(1, found.max_leaves + 1):
        yield among_equals(model, Solved(model.encoder_, data, found.result(leaves)), clock)


EXAMINED = 50_000
"""Number of trees that are listed, unless `limit` is larger, to find those that satisfy the constraints."""


def listed_trees(
    model: Any,
    X: Any,
    y: Any,
    given: tuple[Any, Any, Any],
    within: float,
    limit: int | None,
    labels: str,
) -> NearOptimalTrees:
    """Implement `OptimalTreeClassifier.near_optimal`; `given` is (sample_weight, sensitive_features, costs)."""
    with watched(None, verbose=model.verbose, time_limit=model.time_limit) as progress:
        began = time.perf_counter()
        base = clone(model).set_params(solver=replace(as_solver(model.solver), gap=0.0))
        announce(progress, "encoding")
        source = base._source(X, y, given)
        check_rows(source, "a list of near-optimal trees")
        data = base._prepare(source)
        best: Result | None = None
        if base._all_constraints(data):
            _, data, best = base._solve_refining(source, data, began, lambda: False, progress)
            if best.status == "infeasible":
                _ = replace(best, scope=base._scope()).tree  # raises
        constraints, scope = base._all_constraints(data), base._scope()

        def as_model(tree: DecisionTree, objective: float, optimum: float) -> Any:
            chosen = base._like()
            bound = bind_all(constraints, data.dataset)
            chosen._adopt(chosen_result(data.dataset, tree, objective, optimum, bound), data, relabel=False)
            chosen._note_columns(source)
            return chosen

        def near(distance: float, most: int | None) -> NearOptimalTrees:
            return near_optimal(
                data.dataset,
                max_depth=model.max_depth,
                leaf_penalty=model.leaf_penalty,
                within=distance,
                limit=most,
                labels=labels,
                objective=Fixed(data.score),
                solver=model.solver,
                time_limit=time_left(model.time_limit, began),
                progress=progress,
                as_model=as_model,
                splits="" if scope.complete else scope.splits,
            )

        if best is None:
            return near(within, limit)
        # Trees that violate the constraints may be better than the best feasible one: list them, then filter.
        trees = near(0.0, 1)
        if best.status != "optimal":
            ended: Status = "time_limit" if best.status == "time_limit" else "interrupted"
            return trees.among_feasible(None, within, limit, ended)
        if trees.optimum is None:
            return trees.among_feasible(None, within, limit, trees.status)
        trees = near(trees.optimum - best.objective + within, EXAMINED if limit is None else max(limit, EXAMINED))
        for constraint in constraints:
            trees = trees.filter(constraint)
        return trees.among_feasible(best.objective, within, limit, trees.status)


# ---------------------------------------------------------------- close to an old model


def near_old_model(
    model: Any,
    source: CheckedRows | EncodedTable,
    data: TrainingData,
    began: float,
    is_stopped: Callable[[], bool],
    progress: Sink | None,
) -> tuple[Solved, ClosestTree]:
    """Return the tree within `model.within` of the optimum that agrees most with `model.close_to`.

    The model stores the encoder.
    """
    number_not_negative(model.within, "within")
    check_rows(source, "close_to")
    linear_score(data.score)
    checked_agreement(model.agreement)
    exact, by_splits = copy.copy(model), model.agreement == "splits"
    if by_splits:
        without_constraints(model._all_constraints(data))
        _old_splits(model.close_to, source, data)  # rejects an unsuitable model before the search
    else:
        old = model.close_to if isinstance(model.close_to, DecisionTree) else _old_classes(model.close_to, source)
        agreement_score(data.dataset, old)  # rejects invalid predictions before the search
    exact.solver = replace(as_solver(model.solver), gap=0.0)
    _, data, first = exact._solve_refining(source, data, began, is_stopped, progress)
    model.encoder_ = exact.encoder_
    first, score = replace(first, scope=model._scope()), linear_score(data.score)
    listing = Listing(model.max_depth, exact.solver, as_config(model.config), time_left(model.time_limit, began))
    if by_splits:
        splits = _old_splits(model.close_to, source, data)
        found = sharing_most(first, score, splits, model.leaf_penalty, model.within, began, listing)
        return Solved(model.encoder_, data, found.result), found
    constraints = model._all_constraints(data)

    def solved(goal: Objective, penalty: float, more: Sequence[Constraint], start: Sequence[DecisionTree]) -> Result:
        return solve(
            data.dataset,
            max_depth=model.max_depth,
            leaf_penalty=penalty,
            constraints=[*constraints, *more],
            objective=goal,
            solver=exact.solver,
            config=model.config,
            components=model.components,
            time_limit=time_left(model.time_limit, began),
            progress=progress,
            start=start,
        )

    found = closest_to(
        solved,
        first,
        score,
        agreement_score(data.dataset, old),
        model.leaf_penalty,
        model.within,
        bind_all(constraints, data.dataset),
        began,
        listing,
    )
    return Solved(model.encoder_, data, found.result), found


def _old_splits(close_to: Any, source: CheckedRows | EncodedTable, data: TrainingData) -> OldSplits:
    """Return the splits of the old model, and which new features divide the rows of positive weight in the same way.

    Features and splits on different columns are different.
    """
    dataset = data.dataset
    if isinstance(close_to, DecisionTree):
        return OldSplits.of_tree(dataset, close_to)
    if not isinstance(close_to, FittedClassifier) or isinstance(source, EncodedTable):
        raise InvalidInputError(
            "agreement='splits' needs a fitted classifier of accel_oct and a table as X, or a DecisionTree as close_to"
        )
    check_is_fitted(close_to, "tree_")
    rows = np.flatnonzero(dataset.weights > 0)
    old, new = close_to._encoded(source.X)[rows], dataset.X[rows]
    old, new = old ^ old[:1], new ^ new[:1]  # a feature and its complement divide the rows in the same way
    columns, own = dataset.sources, isinstance(close_to.encoder_, BinaryEncoder)
    names = view(close_to).column_names
    same, numbers, counts = np.full(dataset.n_features, -1), dict[tuple[str, bytes], int](), list[int]()
    tree = close_to.tree_.tree
    for feature in tree.feature[tree.branch_nodes - 1].tolist():
        name = names[close_to.encoder_.conditions_[feature].column] if own and columns is not None else ""
        number = numbers.setdefault((name, old[:, feature].tobytes()), len(numbers))
        if number == len(counts):
            counts.append(0)
            alike = (new == old[:, feature : feature + 1]).all(axis=0)
            same[alike & (np.array(columns) == name if name else True)] = number
        counts[number] += 1
    return OldSplits(same, np.array(counts, dtype=np.int64))


def _old_classes(close_to: Any, source: CheckedRows | EncodedTable) -> Any:
    """Return the classes that an old model predicts for the rows."""
    if not callable(getattr(close_to, "predict", None)) or isinstance(close_to, type):
        raise InvalidInputError(f"close_to must be a fitted classifier or a DecisionTree, got {shown(close_to)}")
    if isinstance(source, EncodedTable):
        raise InvalidInputError("close_to must be a DecisionTree where X is an EncodedTable or data in pieces")
    return close_to.predict(source.X)
