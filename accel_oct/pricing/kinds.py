"""What duals, enumerations and repairs need, for either kind of problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.pricing.cell_values import CellOutcomes, CellRootValues, best_cell_tree
from accel_oct.pricing.cells import CellProblem
from accel_oct.pricing.limited import Limited, PricedProblem
from accel_oct.pricing.problem import LimitedProblem, priced_rows
from accel_oct.pricing.sets import SetOutcomes, rewards_of
from accel_oct.pricing.values import RootValues, distinct_columns
from accel_oct.subtree import best_tree
from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class SideTables(Protocol):
    """Best priced values of the sides of columns; see `RootValues`."""

    known: bool
    value: float
    spread: float
    columns: IntArray

    def sides(self) -> tuple[IntArray, FloatArray, FloatArray]: ...

    def sides_below(self, feature: int, side: bool) -> tuple[IntArray, FloatArray, FloatArray]: ...


def root_values(
    problem: Limited,
    priced: PricedProblem,
    root: int | None,
    should_stop: Callable[[], bool],
    threads: int,
    memory_limit: int,
) -> SideTables:
    """Best values of the sides of all columns, or at least of one of them."""
    if isinstance(problem, CellProblem):
        return CellRootValues(problem, priced, root, should_stop)
    assert isinstance(problem, LimitedProblem)
    return RootValues(problem, priced, should_stop, threads, memory_limit)


def set_outcomes(
    problem: Limited, priced: PricedProblem, should_stop: Callable[[], bool], **limits: int
) -> SetOutcomes:
    """Outcomes of sets; limits are those of `SetOutcomes`."""
    if isinstance(problem, CellProblem):
        return CellOutcomes(problem, priced, should_stop, **limits)
    assert isinstance(problem, LimitedProblem)
    return SetOutcomes(rewards_of(problem, priced), should_stop, **limits)


def columns_of(problem: Limited) -> IntArray:
    """Columns that split the samples, one of each set of equal or complementary ones with the same rules."""
    if isinstance(problem, CellProblem):
        return problem.columns
    assert isinstance(problem, LimitedProblem)
    return distinct_columns(problem)


def best_priced(
    problem: Limited,
    priced: PricedProblem,
    root: int | None,
    *,
    should_stop: Callable[[], bool] | None,
    threads: int,
    memory_limit: int,
) -> tuple[DecisionTree, float]:
    """A best priced tree, with some feature at the root if one is given, and what bounds all of them."""
    if isinstance(problem, CellProblem):
        return best_cell_tree(problem, priced, root, should_stop or (lambda: False))
    assert isinstance(problem, LimitedProblem)
    limited, rows = problem, priced_rows(priced, problem.rules)

    def best(points: NDArray[np.bool_], depth: int, path: tuple[int, ...]) -> tuple[DecisionTree, float]:
        own = points[rows.point]
        if not own.any():
            return DecisionTree.leaf(0, depth), -priced.leaf_price
        found = best_tree(
            limited.X[rows.point[own]],
            rows.label[own],
            rows.weights[own],
            limited.n_classes,
            depth,
            priced.leaf_price,
            rules=None if rows.rules is None else rows.rules.of_rows(own).below(path),
            should_stop=should_stop,
            threads=threads,
            memory_limit=memory_limit,
        )
        return found.tree, found.bound

    if root is None:
        return best(np.ones(len(limited.X), dtype=bool), limited.max_depth, ())
    split = limited.X[:, root]
    zero, one = (best(side, limited.max_depth - 1, (root,)) for side in (~split, split))
    return DecisionTree.branch(root, zero[0], one[0]), zero[1] + one[1]
