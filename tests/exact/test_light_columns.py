"""Columns that are too light for the leaf price are dropped before the tables, and nothing is lost by it."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.dynamic_programme import optimal_value

from accel_oct.data import BinaryDataset
from accel_oct.exact import LocalRules, best_tree
from accel_oct.exact.samples import RowSamples, reduce_data


def _data(seed: int) -> BinaryDataset:
    """Sparse columns, equal rows of several classes, small whole weights: ties with whole and half prices."""
    rng = np.random.default_rng(seed)
    n_samples, n_features = int(rng.integers(6, 22)), int(rng.integers(2, 6))
    X = rng.random((n_samples, n_features)) < rng.choice([0.1, 0.2, 0.5], n_features)
    n_classes = int(rng.choice([2, 3]))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes)])
    return BinaryDataset.from_arrays(X, y, rng.integers(1, 4, n_samples) if seed % 2 else None)


def _reduced(dataset: BinaryDataset, rules: LocalRules | None = None) -> RowSamples:
    return reduce_data(dataset.X, dataset.y, dataset.weights, dataset.n_classes, rules)


def _kept(dataset: BinaryDataset, columns: np.ndarray) -> BinaryDataset:
    X = dataset.X[:, columns] if columns.size else np.zeros((dataset.n_samples, 1), dtype=bool)
    return BinaryDataset.from_arrays(X, dataset.y, dataset.weights)


def test_the_optimum_needs_no_light_column() -> None:
    """Of every depth, by exhaustive search, with prices that just meet the weight of a side among them."""
    dropped = met = 0
    for seed in range(100):
        dataset = _data(seed)
        whole = _reduced(dataset)
        for price in (0.5, 1.0, 2.0, 3.0):
            left = whole.without_light_columns(price)
            dropped += whole.n_features - left.n_features
            sides = np.minimum(whole.row_ceiling @ whole.X, whole.row_ceiling @ (1 - whole.X.astype(float)))
            met += int(np.sum(sides == price))
            assert sorted(left.feature) == sorted(whole.feature[sides > price])
            for depth in (1, 2, 3):
                assert optimal_value(_kept(dataset, left.feature), depth, price) == optimal_value(dataset, depth, price)
    assert dropped > 60 and met > 20


def test_a_column_just_heavy_enough_stays() -> None:
    """One sample above the price may pay, and is not lost."""
    X = np.zeros((20, 2), dtype=bool)
    X[:3, 0] = True
    X[3:5, 1] = True
    y = np.arange(20) < 5
    dataset = BinaryDataset.from_arrays(X, y.astype(int))
    left = _reduced(dataset).without_light_columns(2.0)
    assert left.feature.tolist() == [0]
    found = best_tree(dataset.X, dataset.y, dataset.weights, 2, 3, 2.0)
    assert found.exact and found.value == optimal_value(dataset, 3, 2.0) == 18 - 4.0


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_best_trees_under_rules_are_as_good(depth: int) -> None:
    """Leaves with a least mass and columns that stay apart: the search with dropped columns gives the value without.

    The reference is the same search at the same price on data whose columns were not dropped.
    """
    compared = 0
    for seed in range(40):
        dataset = _data(seed)
        rng = np.random.default_rng(seed)
        rules = LocalRules.leaves(dataset.weights, float(rng.integers(1, 5)))
        if seed % 2 and dataset.n_features > 1:
            pairs = LocalRules.pairs(dataset.n_samples, dataset.n_features, [(0, 1)])
            rules = LocalRules.joined([rules, pairs]) or rules
        arrays = dataset.X, dataset.y, dataset.weights, dataset.n_classes
        for price in (1.0, 2.0):
            found = best_tree(*arrays, depth, price, rules=rules)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(RowSamples, "without_light_columns", lambda self, price: self)
                reference = best_tree(*arrays, depth, price, rules=rules)
            assert found.exact and reference.exact and found.value == reference.value
            compared += 1
    assert compared == 80


def test_nothing_is_dropped_without_a_price() -> None:
    """Splits are free then."""
    whole = _reduced(_data(4))
    assert whole.without_light_columns(0.0) is whole
    assert whole.without_light_columns(1e-9) is whole


def test_better_trees_that_others_know_only_lower_the_bound() -> None:
    """Whatever is known by the caller, and whenever it comes to know it, bounds hold and no better tree is missed."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        dataset = BinaryDataset.from_arrays(rng.integers(0, 2, (30, 6)), rng.integers(0, 2, 30))
        for depth in (3, 4, 5):
            optimum = optimal_value(dataset, depth, 0.25)
            for start, late in ((optimum - 3, optimum - 1), (optimum - 1, optimum), (optimum, optimum)):
                asked = [0]

                def known(asked: list[int] = asked, start: float = start, late: float = late) -> float:
                    asked[0] += 1
                    return start if asked[0] < 3 else late

                found = best_tree(
                    dataset.X,
                    dataset.y,
                    dataset.weights,
                    2,
                    depth,
                    0.25,
                    memory_limit=0 if seed % 2 else 2**30,
                    known_value=known,
                )
                assert found.value <= optimum <= found.bound
                assert max(found.value, known()) == optimum or late < optimum
                if late < optimum:
                    assert found.exact and found.value == optimum
                else:
                    assert found.bound == optimum


@pytest.mark.parametrize("depth", [4, 5, 6, 7])
def test_all_columns_may_be_light(depth: int) -> None:
    """Every column tells one point from the others, which does not pay for a leaf: a leaf is the best tree."""
    n_points = 24
    X, y = np.eye(n_points, dtype=bool), np.arange(n_points) % 2
    data = reduce_data(X, y, np.ones(n_points), 2).without_light_columns(1.0)
    assert data.n_features == 0 and data.ceiling == n_points
    found = best_tree(X, y, np.ones(n_points), 2, depth, 1.0)
    assert found.exact and found.value == n_points / 2 - 1.0 and found.tree.n_leaves == 1
