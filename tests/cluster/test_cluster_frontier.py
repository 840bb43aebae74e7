"""Deep frontiers by several workers: exact, whoever is done first, and with bounds that hold on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cluster_support import arrays, stop_after, with_workers
from helpers.progress_support import Events
from helpers.selection import daily
from helpers.subtree_support import keep_no_tables
from oracles.dynamic_programme import optimal_scores
from oracles.instances import chain_instance, fork_instance, random_instance
from oracles.ruled import ruled_scores

from accel_oct import frontier
from accel_oct.cluster import spread_table
from accel_oct.cluster.regions import SHORT
from accel_oct.constraints import ForbiddenPairs, MinLeafWeight
from accel_oct.data import BinaryDataset
from accel_oct.exact import frontier_table, reduce_data


@dataclass(frozen=True)
class Way:
    """How a frontier is divided; without tables even shallow trees go root by root."""

    depth: int
    tables: bool = True
    short: float = SHORT
    """Seconds below which a job is not divided: by less than nothing, all are."""

    @property
    def features(self) -> int:
        """In the paths of jobs, at most."""
        return 1 if self.short > 0 else 2

    def arrange(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if not self.tables:
            keep_no_tables(monkeypatch)


ROOTS = [
    pytest.param(Way(3, False), id="depth 3"),
    pytest.param(Way(4, False), id="depth 4"),
    pytest.param(Way(5), id="depth 5"),
]
PAIRS = pytest.param(Way(4, False, -1.0), id="pairs at depth 4")
DEEP_PAIRS = pytest.param(Way(6, short=0.0), id="pairs at depth 6")


def noise(seed: int, n_samples: int = 60, n_features: int = 7, n_classes: int = 2) -> BinaryDataset:
    """Data in which every level finds something, with two columns that are nearly equal."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features)) < 0.5
    X[3:, 1] = X[3:, 0]
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes)])
    return BinaryDataset.from_arrays(X, y, rng.integers(1, 4, n_samples) if seed % 2 else None)


def instances() -> list[Any]:
    """Random ones with ties, several classes and weights; chains and forks, which need depth; noise."""
    found = [random_instance(np.random.default_rng(seed), max_samples=24, max_features=5).dataset for seed in range(8)]
    rng = np.random.default_rng(0)
    found += [chain_instance(rng, length, n_noise=1).dataset for length in (4, 5, 6)]
    found += [fork_instance(rng, (3, 2), n_classes=3).dataset]
    return found + [noise(seed, 40, 6, n_classes) for seed, n_classes in ((0, 2), (1, 2), (2, 3))]


@pytest.mark.daily(1)
@pytest.mark.parametrize("way", [*ROOTS, PAIRS])
def test_every_number_of_leaves_is_optimal(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    """Scores equal those of a dynamic programme that shares no code, and the trees have them."""
    way.arrange(monkeypatch)
    used = with_workers(monkeypatch, 3)
    for place, data in enumerate(instances()[:: 1 if way.depth < 5 else 3]):
        table = spread_table(reduce_data(*arrays(data)), way.depth, short=way.short)
        assert table.exact, place
        np.testing.assert_array_equal(table.scores[1:], optimal_scores(data, way.depth, 2**way.depth), str(place))
        for leaves in (1, 2, 5, 2**way.depth):
            tree = table.tree(leaves)
            assert tree.n_leaves <= leaves and tree.depth <= way.depth
            assert tree.score(data) == table.scores[leaves], (place, leaves)
    paths = [len(job.path) for workers in used for job in workers.done]
    assert max(paths) == way.features and len(paths) >= 8


@pytest.mark.daily(1)
@pytest.mark.parametrize("seed", daily([3, 2], 1))
@pytest.mark.parametrize("way", [*ROOTS, PAIRS, DEEP_PAIRS])
def test_the_result_does_not_depend_on_the_workers(monkeypatch: pytest.MonkeyPatch, way: Way, seed: int) -> None:
    """Whatever their number and whoever is done first: scores, bounds and all trees are those of one process."""
    way.arrange(monkeypatch)
    data = noise(seed, n_classes=seed)
    expected = frontier_table(reduce_data(*arrays(data)), way.depth)
    for slots in (1, 2, 7, 100):
        used = with_workers(monkeypatch, slots, seed)
        table = spread_table(reduce_data(*arrays(data)), way.depth, short=way.short)
        np.testing.assert_array_equal(table.scores, expected.scores)
        np.testing.assert_array_equal(table.upper_bounds, expected.upper_bounds)
        for leaves in range(1, 2**way.depth + 1):
            assert table.tree(leaves) == expected.tree(leaves), (seed, slots, leaves)
        assert max(len(job.path) for job in used[0].done) == way.features


def test_ties_are_broken_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few samples, so that many roots are equally good, and pairs, so that some sides are known in part.

    In all of these data trees differ when a side decides before it is solved which root is chosen.
    """
    PAIRS.values[0].arrange(monkeypatch)
    for seed in (0, 26, 31, 32, 33, 42, 48, 53, 61):
        rng = np.random.default_rng(seed)
        n_features, n_samples = int(rng.integers(4, 7)), int(rng.integers(12, 40))
        data = BinaryDataset.from_arrays(rng.random((n_samples, n_features)) < 0.5, rng.integers(0, 2, n_samples))
        expected = frontier_table(reduce_data(*arrays(data)), 4)
        for slots in (2, 7):
            with_workers(monkeypatch, slots, seed)
            table = spread_table(reduce_data(*arrays(data)), 4, short=-1.0)
            for leaves in range(1, 17):
                assert table.tree(leaves) == expected.tree(leaves), (seed, slots, leaves)


@pytest.mark.slow
@pytest.mark.parametrize("way", daily([ROOTS[2], ROOTS[1]], 1))
def test_rules_about_leaves_and_paths(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    """Leaves of a least weight and columns that must stay apart, against a recursion over paths."""
    way.arrange(monkeypatch)
    used = with_workers(monkeypatch, 4)
    for seed in range(2):
        data = noise(seed, 30, 5)
        for least, pairs in ((2.0, []), (3.0, [(0, 2), (1, 3)]), (0.0, [(2, 3), (0, 4)])):
            rules: list[Any] = [MinLeafWeight(least)] if least else []
            rules += [ForbiddenPairs(pairs)] if pairs else []
            minima = [(data.weights, least)] if least else []
            expected = np.array(ruled_scores(data, way.depth, minima, pairs)) / data.total_weight
            found = frontier(data, max_depth=way.depth, constraints=rules, client=1)
            assert found.status == "optimal"
            np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
            for leaves in (2, 9, 16):
                assert found.tree(leaves).score(data) / data.total_weight == pytest.approx(expected[leaves - 1])
    assert len(used) >= 5 and all(workers.done for workers in used)


@pytest.mark.parametrize("way", [*ROOTS[1:], PAIRS])
def test_bounds_hold_on_the_way_and_after_a_stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: Way) -> None:
    """Whatever answers there are, every score is reached and every bound valid; and a stopped search can go on."""
    way.arrange(monkeypatch)
    for seed in range(2):
        data = noise(seed + 10, 40, 6)
        optimum = np.array([-np.inf, *optimal_scores(data, way.depth, 2**way.depth)])
        jobs: list[Any] = []
        stopped = 0
        for steps in (0, 1, 9, 14, 30, 10**6):
            used, rows = with_workers(monkeypatch, 5, steps), []

            def keep(_: float, scores: Any, bounds: Any, rows: list[Any] = rows) -> None:
                rows.append((scores, bounds))

            table = spread_table(
                reduce_data(*arrays(data)),
                way.depth,
                short=way.short,
                should_stop=stop_after(steps),
                progress=keep,
                checkpoint=tmp_path / f"{seed}.json",
            )
            for scores, bounds in [*rows, (table.scores, table.upper_bounds)]:
                assert np.all(scores <= optimum) and np.all(optimum <= bounds), (seed, steps)
            for leaves in (3, 6, 2**way.depth):
                assert table.tree(leaves).score(data) == table.scores[leaves], (seed, steps, leaves)
            jobs += [job for workers in used for job in workers.done if job.whole]
            stopped += not table.exact
        assert table.exact and stopped > 1
        assert len(jobs) == len(set(jobs)), "what is in the file is not computed again"


def test_the_other_side_of_a_root_is_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one side shows that a root is of no use the other is not looked at, unless workers would be idle."""
    rng = np.random.default_rng(1)
    X = rng.random((200, 12)) < 0.15
    data = BinaryDataset.from_arrays(X, (X[:, 0] | X[:, 1] & X[:, 2]) ^ (rng.random(200) < 0.1))
    counts = []
    for slots in (1, 100):
        used = with_workers(monkeypatch, slots)
        assert spread_table(reduce_data(*arrays(data)), 5).exact
        counts.append(len(used[0].done))
    assert counts[0] < counts[1] <= 24
    assert counts[0] < 20


def test_reported_through_frontier(monkeypatch: pytest.MonkeyPatch) -> None:
    """`frontier` tells its rows and gives the same values as without workers; a shallow one needs none."""
    data = noise(5)
    events = Events()
    used = with_workers(monkeypatch, 2)
    found = frontier(data, max_depth=5, client=2, progress=events)
    alone = frontier(data, max_depth=5)
    np.testing.assert_array_equal(found.scores, alone.scores)
    assert found.status == "optimal" and len(events) > 3
    assert all(event.objective <= alone.scores[-1] <= event.bound for event in events)
    assert found.best(0.01).objective == alone.best(0.01).objective
    assert len(used) == 1
    assert frontier(data, max_depth=3, client=2).status == "optimal" and len(used) == 1
    assert frontier(data, max_depth=5, client=2, time_limit=0).status == "time_limit"
