"""frontier and solve_path: equal to the oracle for every number of leaves, and to single solves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers.progress_support import Rows
from helpers.random_suite import check, draw
from hypothesis import given
from oracles.dynamic_programme import optimal_scores, optimal_value
from oracles.instances import Instance, instances

import accel_oct
from accel_oct.errors import InvalidInputError
from accel_oct.solving.config import Config, SubtreeBoundConfig
from accel_oct.solving.problem import PROOF_TOLERANCE


@given(instances(max_samples=16, max_features=4, max_depth=3))
def test_every_point_is_the_oracles(instance: Instance) -> None:
    """For each number of leaves: accuracy, proof, and a tree that has that accuracy and fits."""
    dataset = instance.dataset
    table = accel_oct.frontier(
        instance.X, instance.y, sample_weight=instance.sample_weight, max_depth=instance.max_depth
    )
    assert table.status == "optimal" and len(table) == 2**instance.max_depth
    scores = optimal_scores(dataset, instance.max_depth, 2**instance.max_depth)
    for point in table:
        expected = scores[point.max_leaves - 1] / dataset.total_weight
        assert point.is_proven and point.score == pytest.approx(expected, abs=1e-12)
        assert point.tree.n_leaves <= point.max_leaves and point.tree.max_depth == instance.max_depth
        assert point.tree.score(dataset) / dataset.total_weight == pytest.approx(expected, abs=1e-12)


@given(instances(max_samples=16, max_features=4, max_depth=3))
def test_path_is_optimal_for_every_penalty(instance: Instance) -> None:
    """solve_path gives the oracle's optimum for each penalty, in the order asked."""
    dataset = instance.dataset
    penalties = [0.3, 0.0, instance.leaf_penalty, 0.01]
    results = accel_oct.solve_path(
        instance.X,
        instance.y,
        sample_weight=instance.sample_weight,
        max_depth=instance.max_depth,
        leaf_penalties=penalties,
    )
    for penalty, result in zip(penalties, results, strict=True):
        optimum = optimal_value(dataset, instance.max_depth, dataset.leaf_price(penalty)) / dataset.total_weight
        assert result.status == "optimal" and result.gap == 0.0
        assert result.objective == pytest.approx(optimum, abs=1e-9)


def test_default_preset_equals_the_oracle() -> None:
    """solve() with the default preset, up to 40 samples and 6 features, depth 1 to 4."""
    rng = np.random.default_rng(11)
    for _ in range(150):
        check(draw(rng, {2: (40, 6), 3: (40, 6), 4: (30, 5)}), Config.preset("default"), "highs")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_default_preset_equals_the_oracle_at_length(seed: int) -> None:
    """The same on thousands of instances."""
    rng = np.random.default_rng([99, seed])
    for _ in range(250):
        check(draw(rng, {2: (40, 6), 3: (40, 6), 4: (40, 6)}), Config.preset("default"), "highs")


def test_single_solves_agree_with_the_path_on_iris() -> None:
    """On real data: same objectives, and the integer phase is skipped with a word on it."""
    from sklearn.datasets import load_iris

    iris = load_iris()
    thresholds = np.quantile(iris.data, [0.2, 0.4, 0.6, 0.8], axis=0)
    X = np.concatenate([iris.data >= level for level in thresholds], axis=1)
    penalties = [0.1, 0.01, 0.001]
    path = accel_oct.solve_path(X, iris.target, max_depth=4, leaf_penalties=penalties)
    for penalty, expected in zip(penalties, path, strict=True):
        result = accel_oct.solve(X, iris.target, max_depth=4, leaf_penalty=penalty)
        assert result.objective == pytest.approx(expected.objective, abs=1e-12)
        assert result.stats["decided_by"] in ("subtree bounds", "warm start")


@pytest.mark.parametrize("depth", [3, 4, 5, 6])
def test_no_time_still_gives_trees_and_valid_bounds(depth: int) -> None:
    """A time limit of nothing: bounds are never below what is known to be reachable."""
    rng = np.random.default_rng(8)
    X, y = rng.integers(0, 2, (150, 12)), rng.integers(0, 3, 150)
    reachable = accel_oct.frontier(X, y, max_depth=4)
    for limit in (0.0, 0.05):
        table = accel_oct.frontier(X, y, max_depth=depth, time_limit=limit)
        assert table.status in ("time_limit", "optimal")
        shared = min(len(table), len(reachable))
        if depth >= 4:
            assert np.all(table.bounds[:shared] >= reachable.scores[:shared])
        assert np.all(table.bounds >= table.scores)
        assert table[len(table)].tree.n_leaves <= len(table)
        result = accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.001, time_limit=limit)
        assert result.bound >= result.objective
        if depth >= 4:
            assert result.bound >= reachable.best(0.001).objective - 1e-12


def _noise(depth: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(depth)
    return rng.integers(0, 2, (60, 10 if depth == 6 else 8)), rng.integers(0, 2 + depth % 2, 60)


@pytest.mark.daily(3)
@pytest.mark.parametrize("memory_limit", [2**30, 0])
@pytest.mark.parametrize("depth", [2, 3, 4, 5, 6])
def test_progress_of_a_frontier_encloses_its_end(depth: int, memory_limit: int) -> None:
    """Every reported row speaks of all the data: no accuracy above and no bound below what is proven in the end."""
    X, y = _noise(depth)
    rows = Rows()
    table = accel_oct.frontier(
        X,
        y,
        max_depth=depth,
        memory_limit=memory_limit,
        progress=rows,
    )
    optimum = table.scores[-1]
    assert table.status == "optimal" and rows[-1][1:] == (optimum, optimum) and (len(rows) > 1 or depth < 5)
    assert all(row.objective <= optimum <= row.bound for row in rows)
    for before, after in pairwise(rows):
        assert before.seconds <= after.seconds
        assert before.objective <= after.objective and before.bound >= after.bound
    told = Rows()
    path = accel_oct.solve_path(X, y, max_depth=2, leaf_penalties=[0.01], progress=told)
    assert told and told[-1].objective >= path[0].objective


@pytest.mark.daily(3)
@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize("depth", [2, 3, 4, 5, 6])
def test_progress_of_a_solve_encloses_its_end(depth: int, tables: bool) -> None:
    """The same of `solve`, with and without memory for tables; the history has the same rows."""
    X, y = _noise(depth)
    rows = Rows()
    bounds = SubtreeBoundConfig(enabled=True, memory_limit=2**30 if tables else 0)
    config = replace(Config.preset("default"), warm_start="leaf", polish_warm_start=False, subtree_bounds=bounds)
    result = accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.004, config=config, progress=rows)
    assert result.status == "optimal" and tuple(rows) == result.history and len(rows) > 2
    noise = PROOF_TOLERANCE  # rows of the search pay the leaf price as it was rounded
    assert all(row.objective - noise <= result.objective <= row.bound + noise for row in rows)
    for before, after in pairwise(rows):
        assert before.objective <= after.objective + noise and before.bound >= after.bound - noise


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": 99}, "max_depth"),
        ({"leaf_penalties": 0.1}, "leaf_penalties"),
        ({"leaf_penalties": [0.1, -1]}, "leaf_penalty"),
        ({"time_limit": -1}, "time_limit"),
    ],
)
def test_bad_input(changes: dict[str, Any], fragment: str) -> None:
    """Named in the error, before any work is done."""
    arguments: dict[str, Any] = {"max_depth": 2, "leaf_penalties": [0.1]} | changes
    with pytest.raises(InvalidInputError, match=fragment):
        accel_oct.solve_path([[0], [1]], [0, 1], **arguments)


def test_too_little_memory_is_logged_and_still_exact(caplog: pytest.LogCaptureFixture) -> None:
    """With no room for tables the result is the same, and the log says why it took longer."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, (40, 7)), rng.integers(0, 2, 40)
    expected = accel_oct.frontier(X, y, max_depth=4)
    with caplog.at_level("INFO", logger="accel_oct"):
        table = accel_oct.frontier(X, y, max_depth=4, memory_limit=0)
    assert np.array_equal(table.scores, expected.scores) and table.status == "optimal"
    assert "memory limit" in caplog.text


def test_depth_four_needs_fewer_leaves_than_a_perfect_tree_of_depth_three() -> None:
    """Parity of three columns takes eight leaves, a list on four others five: the second does not follow the first."""
    X, y = [], []
    for row in range(2**7):
        bits = [row >> place & 1 for place in range(7)]
        label = bits.index(0) % 2 if 0 in bits[:4] else 0  # where the list is left: at its first zero
        if sum(bits[4:]) % 2 == label:
            X.append(bits)
            y.append(label)
    table = accel_oct.frontier(np.array(X), np.array(y), max_depth=4)
    shallower = accel_oct.frontier(np.array(X), np.array(y), max_depth=3).scores
    assert shallower[4] < shallower[7] == 1.0
    assert table.status == "optimal" and table.scores[3] < table.scores[4] == 1.0
    assert table[5].tree.n_leaves == 5


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_an_unfinished_frontier_claims_no_proof(depth: int) -> None:
    """Stopped before anything deep was looked at: the table, and what is read off it, say so and leave a gap."""
    rng = np.random.default_rng(8)
    X, y = rng.integers(0, 2, (150, 12)), rng.integers(0, 3, 150)
    table = accel_oct.frontier(X, y, max_depth=depth, time_limit=0.0)
    assert table.status == "time_limit" and np.any(table.bounds > table.scores)
    result = table.best(0.001)
    assert result.status == "time_limit" and result.bound > result.objective
    assert table.best(1.0).status == "optimal"  # one leaf is best, and that is known
