"""The cache of subtrees by path."""

from __future__ import annotations

import numpy as np
import pytest

from accel_oct.exact import DepthTwoSolver, SubtreeCache
from accel_oct.exact.d2s import CacheStatistics


@pytest.fixture
def solver():
    rng = np.random.default_rng(0)
    return DepthTwoSolver(rng.random((60, 5)) < 0.5, rng.integers(0, 2, 60), np.ones(60), 2)


def test_symmetric_paths_share_an_entry(solver):
    """The order of the literals does not matter; the leaf price and the depth do."""
    cache = SubtreeCache(solver)
    first = cache.lookup(frozenset({(1, 0), (3, 1)}), 1.0)
    assert cache.lookup([(3, 1), (1, 0)], 1.0) is first
    cache.lookup([(3, 1), (1, 0)], 2.0)
    cache.lookup([(3, 1), (1, 0)], 1.0, max_depth=1)
    assert cache.statistics == CacheStatistics(hits=1, misses=3, evictions=0, entries=3, bytes=cache.bytes)


def test_samples_follow_from_the_literals(solver):
    """Without given samples the path selects them; contradictory literals select none."""
    cache = SubtreeCache(solver)
    found = cache.lookup([(1, 0), (3, 1)], 1.0)
    expected = np.flatnonzero(~solver.X[:, 1] & solver.X[:, 3])
    np.testing.assert_array_equal(found.samples, expected)
    assert found.value == solver.solve(expected, 1.0).value
    assert cache.lookup([(1, 0), (1, 1)], 1.0).samples.size == 0
    assert cache.lookup([], 1.0).samples.size == 60


def test_least_recently_used_leaves_first(solver):
    """The memory limit holds, and an entry just used survives."""
    size = SubtreeCache(solver).lookup([], 0.0, np.arange(20)).nbytes
    cache = SubtreeCache(solver, memory_limit=2 * size)
    for feature in (0, 1):
        cache.lookup([(feature, 1)], 0.0, np.arange(20))
    cache.lookup([(0, 1)], 0.0)
    cache.lookup([(2, 1)], 0.0, np.arange(20))
    assert (len(cache), cache.evictions) == (2, 1)
    assert cache.bytes <= cache.memory_limit
    hits = cache.hits
    cache.lookup([(0, 1)], 0.0)
    assert cache.hits == hits + 1
    cache.clear()
    assert (len(cache), cache.bytes) == (0, 0)


def test_no_memory_still_answers(solver):
    """A limit of zero bytes turns the cache off, not the answer."""
    cache = SubtreeCache(solver, memory_limit=0)
    assert cache.lookup([(0, 1)], 0.0).value == cache.lookup([(0, 1)], 0.0).value
    assert cache.misses == 2
    with pytest.raises(ValueError, match="memory_limit"):
        SubtreeCache(solver, memory_limit=-1)
