"""Sets of samples: rows and tallies answer the same questions alike; statistics other than accuracy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from accel_oct.data import BinaryDataset, Tally
from accel_oct.exact import LocalRules
from accel_oct.exact.counts import LeafStatistic, ProductCounts
from accel_oct.exact.frontier import ProfileSolver
from accel_oct.exact.levels import PairLevel, Units, convolve, with_leaf
from accel_oct.exact.samples import RowSamples, Samples, TallySamples, reduce_data, tallied_data
from accel_oct.support.stopping import Stopper


def _both_kinds(seed: int, least: float = 0.0) -> tuple[RowSamples, TallySamples]:
    """The same samples as rows and as a tally; a least mass where one is given, of masses that are no weights."""
    rng = np.random.default_rng(seed)
    n_rows, n_features, n_classes = int(rng.integers(6, 40)), int(rng.integers(3, 7)), int(rng.integers(2, 4))
    X = rng.random((n_rows, n_features)) < rng.choice([0.3, 0.5, 0.7])
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    data = BinaryDataset.from_arrays(X, y)
    tally = Tally.of(X, y, depth=4)
    earned = np.eye(n_classes)
    by_row = by_cell = None
    if least:
        mass = np.array([0.0, 2.0, 1.0])[:n_classes]  # the first class has none
        by_row = LocalRules.leaves(mass[data.y], least)
        by_cell = LocalRules.leaves(mass * tally.counts[0][:, 0], least)
    rows = reduce_data(data.X, data.y, data.weights, n_classes, by_row)
    return rows, tallied_data(tally, earned, n_classes, by_cell)


def _in_common(rows: RowSamples, cells: TallySamples) -> list[tuple[int, int]]:
    """Columns of both; rows have dropped those that are equal or complementary to others."""
    place = {int(feature): column for column, feature in enumerate(cells.feature)}
    return [(column, place[int(feature)]) for column, feature in enumerate(rows.feature)]


@pytest.mark.daily(20)
@pytest.mark.parametrize("least", [0.0, 3.0])
@pytest.mark.parametrize("seed", range(30))
def test_rows_and_tallies_answer_alike(seed: int, least: float) -> None:
    """Weights, similar support and profiles, here and on all sides; a tally's ceiling is never below that of rows."""

    def compare(rows: RowSamples, cells: TallySamples, depth: int) -> None:
        np.testing.assert_array_equal(rows.class_weights, cells.class_weights)
        assert rows.allows_a_leaf == cells.allows_a_leaf and rows.ceiling <= cells.ceiling == rows.total_weight
        both = _in_common(rows, cells)
        for (f, f_cell), side in product(both, (0, 1)):
            own = side ^ int(rows.flipped[f])
            assert rows.side_weights[f, side] == cells.side_weights[f_cell, own]
            assert rows.side_ceilings[f, side] <= cells.side_ceilings[f_cell, own]
            beyond, other = rows.beyond(f, side), cells.beyond(f_cell, own)
            for (g, g_cell), there in product(both, (0, 1)):
                assert beyond[g, there] == other[g_cell, there ^ int(rows.flipped[g])], (f, side, g, there)
        if depth:
            for (f, f_cell), side in product(both, (0, 1)):
                compare(rows.at((f, side)), cells.at((f_cell, side ^ int(rows.flipped[f]))), depth - 1)
        else:
            return
        profiles = [ProfileSolver().solve(data, depth + 1).lower for data in (rows, cells)]
        np.testing.assert_array_equal(*profiles)

    rows, cells = _both_kinds(seed, least)
    compare(rows, cells, 2)


def _best_tally_roots(data: Samples, depth: int) -> Any:
    """Deeper than the tables allow: root by root, with bounds of similar sides."""
    return ProfileSolver(memory_limit=0).solve(data, depth)


@pytest.mark.parametrize("seed", range(20))
def test_deep_profiles_of_a_tally_root_by_root(seed: int) -> None:
    """Similar support prunes roots of a tally, and never the best ones."""
    rows, cells = _both_kinds(seed)
    found = _best_tally_roots(cells, 4)
    assert found.exact
    np.testing.assert_array_equal(found.lower, ProfileSolver().solve(rows, 4).lower)


# ---------------------------------------------------------------- another statistic


class SquaredError(LeafStatistic):
    """Least squares: weight, weighted target and its square; a leaf predicts the mean."""

    @staticmethod
    def amounts(target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.array([weights, weights * target, weights * target**2])

    def score(self, sums: np.ndarray) -> np.ndarray:
        weight, first, second = sums
        mean = np.divide(first, weight, out=np.zeros_like(first), where=weight > 0)
        return np.where(weight > 0, first * mean - second, -np.inf)

    def label(self, sums: np.ndarray) -> float:
        return float(sums[1] / sums[0])


def _squared_errors(target: np.ndarray) -> float:
    return float(((target - target.mean()) ** 2).sum()) if target.size else np.inf


def _best_regression(X: np.ndarray, target: np.ndarray, depth: int) -> float:
    """Least squared error of all trees of a depth, one by one."""
    best = _squared_errors(target)
    for column in X.T if depth else ():
        sides = [column == 0, column == 1]
        if all(side.any() for side in sides):
            best = min(best, sum(_best_regression(X[side], target[side], depth - 1) for side in sides))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_squared_error_is_a_statistic(seed: int) -> None:
    """The counting core gives the best regression tree of depth two, with its leaves, for numbers as targets."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (30, 5)).astype(np.uint8)
    target = rng.integers(-4, 5, 30).astype(float)
    statistic = SquaredError()
    counts = ProductCounts(X, statistic.amounts(target, np.ones(30)), statistic, Stopper())
    sides = np.stack([counts.one_leaf, np.maximum(counts.one_leaf, counts.two_leaves)], axis=-1).transpose(1, 0, 2)
    leaf = np.asarray(statistic.score(counts.totals))
    profile = with_leaf(convolve(sides[:, 0], sides[:, 1]).max(axis=0), leaf)
    assert -profile[0] == pytest.approx(_best_regression(X, target, 0))
    assert -profile[1] == pytest.approx(_best_regression(X, target, 1))
    assert -profile[3] == pytest.approx(_best_regression(X, target, 2))
    root = int(np.argmax(sides[:, 0, 1] + sides[:, 1, 1]))
    feature, zero, one = counts.best_split(root, 1)
    here = X[:, root] == 1
    for value, sums in ((0, zero), (1, one)):
        assert statistic.label(sums) == pytest.approx(target[here & (X[:, feature] == value)].mean())


def test_a_level_says_whether_its_table_was_kept() -> None:
    """What the deeper levels need is declared; asking for it where it is not there is an error with a sentence."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (20, 4)), rng.integers(0, 2, 20)
    data = BinaryDataset.from_arrays(X, y)
    rules = LocalRules.joined([LocalRules.leaves(np.ones(20), 2.0), LocalRules.leaves(np.arange(20.0), 3.0)])
    level = PairLevel(reduce_data(data.X, data.y, data.weights, 2, rules))
    assert not level.kept and level.table_bytes == 0
    with pytest.raises(ValueError, match="no table"):
        level.counts.source  # noqa: B018
    assert Units(True).to_score(level.leaf, 20.0) == max(np.bincount(y))
