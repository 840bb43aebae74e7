"""Near-optimal trees of a tally: counts and lists equal exhaustive enumeration, and those of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.tally_support import exact_weights
from oracles.instances import Instance, chain_instances, random_instance
from oracles.near_optimal import near_optimal_trees

import accel_oct
from accel_oct.constraints import StatisticalParity
from accel_oct.data import Tally
from accel_oct.errors import InvalidInputError
from accel_oct.exact.coded import CodedTally
from accel_oct.exact.near_optimal import SideValues
from accel_oct.tree.tallied import TalliedTrees


def tally_of(instance: Instance, depth: int | None = None) -> Tally:
    groups = np.arange(len(instance.y)) % 2
    depth = instance.max_depth if depth is None else depth
    return Tally.of(
        instance.X, instance.y, depth=depth, sample_weight=instance.sample_weight, sensitive_features=groups
    )


def same_as_rows(instance: Instance, within: float, labels: str, tally: Tally, limit: int | None = 300) -> int:
    """Counts, values, and the trees in their order; returns how many there are."""
    options: Any = {
        "max_depth": instance.max_depth,
        "leaf_penalty": instance.leaf_penalty,
        "within": within,
        "labels": labels,
        "limit": limit,
    }
    rows = accel_oct.near_optimal(instance.X, instance.y, sample_weight=instance.sample_weight, **options)
    found = accel_oct.near_optimal(tally, **options)
    assert found.counted and (found.count, found.optimum) == (rows.count, rows.optimum), instance
    assert found.count_by_leaves == rows.count_by_leaves and found.complete == rows.complete
    assert [entry.tree for entry in found] == [entry.tree for entry in rows]
    assert [(e.objective, e.score, e.accuracy, e.n_leaves, e.columns) for e in found] == [
        (e.objective, e.score, e.accuracy, e.n_leaves, e.columns) for e in rows
    ]
    return found.at_least


@pytest.mark.parametrize("seed", range(40))
def test_counts_equal_enumeration(seed: int) -> None:
    """On small random data rich in ties, with copies and complements of columns and rows of weight zero."""
    rng = np.random.default_rng([23, seed])
    instance = exact_weights(rng, random_instance(rng, max_samples=14, max_features=5, max_classes=3))
    labels = "any" if rng.random() < 0.7 else "best"
    if instance.max_depth == 3:
        instance = replace(instance, X=instance.X[:, :3])
    within = float(rng.choice([0.0, 0.01, 1 / len(instance.y), 0.1, 0.3, 5.0]))
    tally = tally_of(instance, instance.max_depth + int(rng.integers(2)))
    expected = near_optimal_trees(instance.dataset, instance.max_depth, instance.leaf_penalty, within, labels)
    assert same_as_rows(instance, within, labels, tally) == len(expected)


@pytest.mark.daily(4)
@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_deeper_trees_are_those_of_the_rows(seed: int, depth: int) -> None:
    """Where values are read off tables: many trees, three classes, equal columns below some splits only."""
    rng = np.random.default_rng([29, seed])
    X = rng.random((50, 6)) < 0.5
    X[:, 4], X[X[:, 0], 5] = ~X[:, 3], X[X[:, 0], 1]
    y = np.where(rng.random(50) < 0.3, rng.integers(0, 3, 50), X[:, 0] * 1 + (X[:, 1] & X[:, 2]))
    instance = Instance(X, y, rng.integers(0, 4, 50).astype(float) + (np.arange(50) == 0), 0.01, depth)
    for within, labels in ((0.02, "any"), (0.05, "best")):
        assert same_as_rows(instance, within, labels, tally_of(instance)) > 0


@pytest.mark.parametrize("instance", chain_instances((2, 3)), ids=str)
def test_chains(instance: Instance) -> None:
    """Decision lists, on which every level is needed; weights that a tally keeps as they are."""
    if instance.sample_weight is not None:
        instance = replace(instance, sample_weight=np.ceil(instance.sample_weight * 64) / 64)
    same_as_rows(instance, 0.02, "best", tally_of(instance))


def test_five_levels() -> None:
    """Deeper than the tables: sides are looked at one by one."""
    rng = np.random.default_rng(31)
    X = rng.random((30, 5)) < 0.5
    instance = Instance(X, rng.integers(0, 2, 30), None, 0.02, 5)
    assert same_as_rows(instance, 0.03, "any", tally_of(instance)) > 0


@pytest.mark.parametrize("seed", range(8))
def test_best_values_with_tables_and_without(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides of every column, at the root and below it."""
    rng = np.random.default_rng([37, seed])
    X = rng.random((40, 6)) < 0.5
    X[:, 5] = ~X[:, 2]
    tally = Tally.of(X, rng.integers(0, 2 + seed % 2, 40), depth=4)
    problem = CodedTally.of(TalliedTrees(tally), 0.5, 3 + seed % 2, 4.0)
    fast, slow = (SideValues(problem, lambda: False, 1, 1 << 30) for _ in range(2))
    slow._tables = False
    paths: list[Any] = [()]
    if problem.max_depth == 4:
        fast.sides((), 4)
        paths += [((column, side),) for column in (0, 2, 5) for side in (False, True)]
    for path in paths:
        height = problem.max_depth - len(path)
        mine, expected = (values.sides(path, height, path) for values in (fast, slow))
        assert mine.columns.feature.tolist() == expected.columns.feature.tolist()
        assert mine.zero.tolist() == expected.zero.tolist() and mine.one.tolist() == expected.one.tolist()


def test_pieces_and_rules() -> None:
    """The sum of two tallies; trees that keep a constraint on groups are those that keep it on the rows."""
    rng = np.random.default_rng(41)
    X, y, groups = rng.random((60, 4)) < 0.5, rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    half = slice(0, 25), slice(25, 60)
    tally = Tally.of(X[half[0]], y[half[0]], depth=2, sensitive_features=groups[half[0]])
    tally = tally + Tally.of(X[half[1]], y[half[1]], depth=2, sensitive_features=groups[half[1]])
    found = accel_oct.near_optimal(tally, max_depth=2, leaf_penalty=0.01, within=0.05)
    rows = accel_oct.near_optimal(X, y, max_depth=2, leaf_penalty=0.01, within=0.05)
    kept = found.filter(StatisticalParity(at_most=0.1))
    expected = rows.filter(StatisticalParity(groups, at_most=0.1))
    assert 0 < kept.at_least < found.at_least
    assert [entry.tree for entry in kept] == [entry.tree for entry in expected]


def test_limits_and_errors() -> None:
    """No time; a tally that is too shallow; what needs the samples one by one; objectives that are not there."""
    rng = np.random.default_rng(43)
    X, y = rng.random((40, 5)) < 0.5, rng.integers(0, 2, 40)
    tally = Tally.of(X, y, depth=2)
    options: Any = {"leaf_penalty": 0.01, "within": 0.05}
    stopped = accel_oct.near_optimal(tally, max_depth=2, time_limit=0.0, **options)
    assert stopped.status == "time_limit" and not stopped.counted
    with pytest.raises(InvalidInputError, match="made for trees of depth 2, and max_depth is 3"):
        accel_oct.near_optimal(tally, max_depth=3, **options)
    with pytest.raises(InvalidInputError, match="y must be None when X is a Tally"):
        accel_oct.near_optimal(tally, y, max_depth=2, **options)
    with pytest.raises(InvalidInputError, match="objective must be None when X is a Tally"):
        accel_oct.near_optimal(tally, max_depth=2, objective="balanced_accuracy", **options)
    found = accel_oct.near_optimal(tally, max_depth=2, **options)
    for method in ("by_predictions", "importance"):
        with pytest.raises(InvalidInputError, match=f"{method} needs rows"):
            getattr(found, method)()
