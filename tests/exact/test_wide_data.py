"""Many columns: the pair level works in steps that look at the clock and keep within the memory limit."""

from __future__ import annotations

import logging
import tracemalloc
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from oracles.dynamic_programme import optimal_scores, optimal_value

from accel_oct.data import BinaryDataset
from accel_oct.exact import LocalRules, SubtreeBounds, best_tree, counts, frontier_table
from accel_oct.exact.counts import column_keys
from accel_oct.exact.levels import PairLevel
from accel_oct.exact.samples import reduce_data
from accel_oct.support.stopping import Stopper


@pytest.fixture(params=["kernels", "products"])
def small_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Steps of one block of columns: of kernels, and of the matrix products that several masses of leaves take."""
    monkeypatch.setattr(counts, "_STEP_BYTES", 1)
    monkeypatch.setattr(counts, "_NUMPY_STEP", 1)
    return str(request.param)


SMALL = {"n_samples": 24, "n_features": 40}


def _rules(way: str, dataset: BinaryDataset) -> LocalRules | None:
    """None, or two masses that every leaf with a sample has: they change no optimum."""
    if way == "kernels":
        return None
    return LocalRules(np.array([dataset.weights, np.ones(dataset.n_samples)]), (2.0**-9, 0.5))


def _data(seed: int, n_samples: int = 60, n_features: int = 100) -> BinaryDataset:
    """Dense or nearly empty columns, two classes or three, unit weights, integers or fractions."""
    rng = np.random.default_rng(seed)
    n_classes = 2 + seed % 2
    X = rng.random((n_samples, n_features)) < (0.02 if seed % 4 < 2 else 0.4)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes)])
    weights = [np.ones(n_samples), rng.integers(1, 9, n_samples), rng.integers(1, 99, n_samples) / 64][seed % 3]
    return BinaryDataset.from_arrays(X, y, weights)


@lru_cache
def _optima(seed: int, depth: int) -> tuple[float, list[float]]:
    """Value at a price of 0.5, and the score by number of leaves; both ways of counting are compared with them."""
    dataset = _data(seed, **SMALL)
    return optimal_value(dataset, depth, 0.5), optimal_scores(dataset, depth, 2**depth)


def _arrays(dataset: BinaryDataset) -> tuple[Any, Any, Any, int]:
    return dataset.X, dataset.y, dataset.weights, dataset.n_classes


def _stop_after(asked: int) -> Stopper:
    """Stops when it is asked for the given time."""
    count = iter(range(10**9))
    return Stopper(should_stop=lambda: next(count) >= asked)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("table_limit", [0, 2**30])
def test_steps_give_what_one_pass_gives(small_steps: str, seed: int, table_limit: int) -> None:
    """Profiles of the set and of all sides, and the trees, do not depend on how the pairs are cut into steps."""
    dataset = _data(seed)
    data = reduce_data(*_arrays(dataset), _rules(small_steps, dataset))
    stepped = PairLevel(data, None, table_limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "_STEP_BYTES", 2**25)
        patch.setattr(counts, "_NUMPY_STEP", 2**21)
        whole = PairLevel(data)
    assert stepped.exact and whole.exact
    assert stepped.kept == (small_steps == "kernels" and table_limit > 0)
    assert whole.kept == (small_steps == "kernels")
    assert np.array_equal(stepped.profile, whole.profile)
    assert np.array_equal(stepped.side_profiles, whole.side_profiles)
    for leaves in (1, 2, 3, 4):
        assert stepped.tree(leaves) == whole.tree(leaves)
    if stepped.kept:
        assert np.array_equal(stepped.table, whole.table)


@pytest.mark.parametrize("seed", range(8))
def test_a_stop_leaves_a_tree_and_valid_bounds(small_steps: str, seed: int) -> None:
    """Wherever the pair level is stopped, known scores are those of trees, and bounds hold, for the sides too."""
    dataset = _data(seed)
    data = reduce_data(*_arrays(dataset), _rules(small_steps, dataset))
    whole = PairLevel(data)
    seen_partial = False
    for asked in (*range(8), 20, 40):
        part = PairLevel(data, _stop_after(asked))
        seen_partial |= 0 < part.counts.known.sum() < data.n_features
        assert np.all(part.profile <= whole.profile) and np.all(whole.profile <= part.upper_profile)
        assert np.all(part.side_profiles <= whole.side_profiles) and np.all(whole.side_profiles <= part.side_upper)
        assert np.array_equal(part.upper_profile[:2], whole.profile[:2])  # a single split is always known
        for leaves in (1, 2, 3, 4):
            score = part.tree(leaves).score(dataset)
            assert part.units.from_score(score, data.total_weight) == part.profile[leaves - 1]
    assert seen_partial


@pytest.mark.daily(2)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_searches_that_are_stopped_in_the_pair_level_have_valid_bounds(small_steps: str, depth: int) -> None:
    """The best tree, the frontier and the bounds by path enclose the optimum whenever they are stopped."""
    for seed in (2, 3):
        dataset = _data(seed, **SMALL)
        rules = _rules(small_steps, dataset)
        optimum, scores = _optima(seed, depth)
        for asked in (0, 1, 2, 3, 5, 8):
            stop = _stop_after(asked)
            found = best_tree(*_arrays(dataset), depth, 0.5, should_stop=stop, rules=rules)
            assert found.value <= optimum <= found.bound
            assert found.tree.value(dataset, 0.5) == found.value
            stop = _stop_after(asked)
            table = frontier_table(reduce_data(*_arrays(dataset), rules), depth, should_stop=stop)
            assert np.all(table.scores[1:] <= scores) and np.all(scores <= table.upper_bounds[1:])
            for leaves in range(1, 2**depth + 1):
                assert table.tree(leaves).score(dataset) >= table.scores[leaves]
            bounds = SubtreeBounds(*_arrays(dataset), depth, should_stop=_stop_after(asked))
            assert max(bounds.root_bounds(0.5).max(), bounds.leaf_score - 0.5) >= optimum


def test_no_step_is_begun_after_a_stop(small_steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the moment that a stop is asked for, not one more step is computed."""
    dataset = _data(2, n_features=400)
    data = reduce_data(*_arrays(dataset), _rules(small_steps, dataset))
    steps: list[int] = []
    if small_steps == "kernels":
        original = counts.CompiledCounts._pass
        monkeypatch.setattr(
            counts.CompiledCounts, "_pass", lambda self, *given: (steps.append(1), original(self, *given))[1]
        )
    else:
        product = counts.ProductCounts._multiply
        monkeypatch.setattr(
            counts.ProductCounts, "_multiply", lambda self, *given: (steps.append(1), product(self, *given))[1]
        )
    part = PairLevel(data, Stopper(should_stop=lambda: len(steps) >= 3))
    assert len(steps) == 3
    assert not part.exact
    PairLevel(data)
    assert len(steps) > 10


@pytest.mark.parametrize("sparse", [True, False])
def test_the_memory_limit_covers_the_pairs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sparse: bool
) -> None:
    """Where the table of pairs is larger than the limit it is never there as a whole; the log says what happens."""
    monkeypatch.setattr(counts, "_STEP_BYTES", 2**20)
    rng = np.random.default_rng(0)
    X = rng.random((100, 3000)) < (0.01 if sparse else 0.5)
    if sparse:
        X[np.arange(3000) % 100, np.arange(3000)] = True
    y = rng.integers(0, 2, 100)
    table_bytes = 2 * 3000**2
    arguments = X, y, np.ones(100), 2, 3, 2.0
    stop = Stopper(should_stop=lambda: any("root features" in line for line in caplog.messages))
    best_tree(X[:, :50], *arguments[1:], memory_limit=0)  # whatever is loaded only once
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="accel_oct"):
        tracemalloc.start()
        try:
            found = best_tree(*arguments, should_stop=stop, memory_limit=10**6)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert any("root features are searched one by one" in line for line in caplog.messages)
    assert peak < table_bytes
    assert found.value <= found.bound


@pytest.mark.parametrize("shape", [(1, 5), (7, 1), (20, 64), (6, 33)])
def test_column_keys_tell_columns_apart(shape: tuple[int, int]) -> None:
    """Two columns share a key exactly when they are equal or complements, and the data are left as they are."""
    X = (np.random.default_rng(0).random(shape) < 0.5).astype(np.uint8)
    before = X.copy()
    keys = column_keys(X)
    assert np.array_equal(X, before)
    for i in range(shape[1]):
        for j in range(shape[1]):
            differences = int(np.count_nonzero(X[:, i] != X[:, j]))
            assert (keys[i] == keys[j]) == (differences in (0, shape[0]))


@pytest.mark.parametrize("depth", [3, 4])
def test_a_reported_tree_is_returned_when_stopped_later(depth: int) -> None:
    """Trees are rebuilt in full after a stop: the result is as good as whatever was reported before."""
    rng = np.random.default_rng(11)
    dataset = BinaryDataset.from_arrays(rng.integers(0, 2, (80, 9)), rng.integers(0, 2, 80))
    for asked in range(40):
        reported: list[float] = []
        found = best_tree(
            *_arrays(dataset),
            depth,
            0.25,
            should_stop=_stop_after(asked),
            on_improvement=lambda seconds, value, bound, reported=reported: reported.append(value),
        )
        assert found.value >= max(reported)
        table = frontier_table(reduce_data(*_arrays(dataset)), depth, should_stop=_stop_after(asked))
        for leaves in range(1, 2**depth + 1):
            assert table.tree(leaves).score(dataset) >= table.scores[leaves]
