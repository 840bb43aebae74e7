"""The best-tree search: whatever it is asked for and whenever it is stopped, every bound that leaves it is valid."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.subtree_support import keep_no_tables
from oracles.dynamic_programme import optimal_value

from accel_oct.data import BinaryDataset
from accel_oct.exact import best_tree
from accel_oct.exact.price_search import PriceSearch
from accel_oct.exact.samples import reduce_data


def _near_duplicates(seed: int) -> BinaryDataset:
    """Columns that differ from one another in a few rows only: where similar-support bounds do most of the work."""
    rng = np.random.default_rng(seed)
    n_samples, n_classes = int(rng.integers(8, 36)), int(rng.choice([2, 2, 3]))
    columns = list(rng.random((int(rng.integers(2, 4)), n_samples)) < rng.choice([0.3, 0.5]))
    for _ in range(int(rng.integers(2, 4))):
        column = columns[int(rng.integers(len(columns)))].copy()
        flipped = rng.integers(0, n_samples, int(rng.integers(1, 4)))
        column[flipped] = ~column[flipped]
        columns.append(column)
    weights = rng.integers(1, 4, n_samples) if rng.random() < 0.5 else None
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes)])
    return BinaryDataset.from_arrays(np.column_stack(columns), y, weights)


@pytest.mark.parametrize(("tables", "depth"), [(False, 3), (False, 4), (True, 4)])
def test_bounds_hold_whatever_the_target(monkeypatch: pytest.MonkeyPatch, tables: bool, depth: int) -> None:
    """A search that gives up because a target is out of reach returns a bound that holds without that target."""
    if not tables:
        keep_no_tables(monkeypatch)
    for seed in range(40):
        dataset = _near_duplicates(seed)
        data = reduce_data(dataset.X, dataset.y, dataset.weights, dataset.n_classes)
        for price in (0.25, 1.0):
            optimum = optimal_value(dataset, depth, price)
            for distance in (-1.0, 0.0, 0.5, 1.5, 3.0):
                search = PriceSearch(price, data.signed, memory_limit=0)
                goal = float(search.units.from_score(optimum + distance, dataset.total_weight))
                found = search.search(data, depth, goal)
                assert search.units.to_score(found.upper, dataset.total_weight) >= optimum - 1e-9, seed
                assert search.units.to_score(found.value, dataset.total_weight) <= optimum + 1e-9, seed


@pytest.mark.parametrize("tables", [True, False])
def test_results_are_optimal_with_near_duplicate_columns(monkeypatch: pytest.MonkeyPatch, tables: bool) -> None:
    """Bounds carried from one side to a similar one never prune the optimum, with and without tables."""
    if not tables:
        keep_no_tables(monkeypatch)
    for seed in range(100, 140):
        dataset = _near_duplicates(seed)
        for depth in (3, 4, 5) if tables else (3, 4):
            optimum = optimal_value(dataset, depth, 0.25)
            found = best_tree(
                dataset.X,
                dataset.y,
                dataset.weights,
                dataset.n_classes,
                depth,
                0.25,
                memory_limit=0 if seed % 2 else 2**30,
            )
            assert found.exact and found.value == optimum, (seed, depth)


@pytest.mark.parametrize("depth", [3, 4, 5, 6])
def test_published_bounds_hold_when_stopped_anywhere(depth: int) -> None:
    """Every (value, bound) that is reported on the way encloses the optimum of this depth, not of a shallower one."""
    for seed in range(4):
        rng = np.random.default_rng(500 + seed)  # noise that every further level fits better
        dataset = BinaryDataset.from_arrays(rng.integers(0, 2, (60, 7)), rng.integers(0, 2, 60))
        optimum = optimal_value(dataset, depth, 0.25)
        assert depth > 5 or optimum > optimal_value(dataset, depth - 1, 0.25)
        for allowed in (0, 1, 2, 3, 5, 9, 20, 10**6):
            asked = [0]

            def should_stop(asked: list[int] = asked, allowed: int = allowed) -> bool:
                asked[0] += 1
                return asked[0] > allowed

            reported: list[tuple[float, float]] = []
            found = best_tree(
                dataset.X,
                dataset.y,
                dataset.weights,
                dataset.n_classes,
                depth,
                0.25,
                should_stop=should_stop,
                on_improvement=lambda seconds, value, bound, reported=reported: reported.append((value, bound)),
            )
            assert found.value <= optimum <= found.bound
            assert all(value <= optimum <= bound for value, bound in reported), (seed, allowed)
