"""The local search: every tree that it offers is what it says, and a solve with it proves what one without it does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.constrained_solves import FewFeatures
from helpers.search_support import search_for
from oracles.dynamic_programme import optimal_value
from oracles.instances import random_instance

import accel_oct.solving.phases.warm_start as improving_module
from accel_oct import solve
from accel_oct.constraints import MaxFeatures, MaxLeaves, MinLeafWeight
from accel_oct.data import BinaryDataset
from accel_oct.exact import DepthTwoSolver, SubtreeCache
from accel_oct.heuristics import cart
from accel_oct.heuristics import local_search as improver_module
from accel_oct.heuristics.local_search import (
    Grower,
    GrowingData,
    GrownNode,
    Improver,
    LocalSearch,
    OutOfTime,
    Place,
    table_seconds,
)
from accel_oct.solving import driver
from accel_oct.solving.config import PRESETS, Config
from accel_oct.solving.phases import SubtreeTables
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree


def data(seed: int, n_samples: int = 40, n_features: int = 6) -> BinaryDataset:
    """Ties, duplicate columns and complements, several classes, weights or none."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features)) < rng.choice([0.2, 0.5])
    X = np.column_stack([X, X[:, 0], ~X[:, 1]])
    n_classes = 2 + seed % 2
    y = (X[:, 2] ^ X[:, 3]) + (rng.random(n_samples) < 0.2) * (n_classes - 1)
    weights = rng.integers(1, 5, n_samples) if seed % 3 else None
    return BinaryDataset.from_arrays(X, np.minimum(y, n_classes - 1), weights)


def grower_for(dataset: BinaryDataset, price: float, should_stop: Callable[[], bool] = lambda: False) -> Grower:
    samples = GrowingData(dataset.X, dataset.y, dataset.weights, dataset.n_classes)
    cache = SubtreeCache(DepthTwoSolver(*samples))
    return Grower(samples, price, cache, lambda size: True, should_stop)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("affordable", [True, False])
def test_offered_trees_are_worth_what_they_say(seed: int, affordable: bool) -> None:
    """Values are those of the trees, rise from offer to offer, and never exceed the optimum; exact moves or none."""
    dataset, depth, price = data(seed), 3 + seed % 2, 0.5
    offered: list[GrownNode] = []
    grower = grower_for(dataset, price)
    grower._affordable = lambda size: affordable
    search = LocalSearch(
        grower, depth, lambda node: offered.append(node) is None, lambda: False, lambda *size: 0.0 if seed % 2 else 1e9
    )
    for criterion in ("gini", "entropy", "error"):
        search.start_greedily(criterion)
    search.make_tails_exact()
    for _ in range(40):
        search.step()
    values = [node.value for node in offered]
    assert values == sorted(set(values))
    for node in offered:
        tree = node.tree().with_max_depth(depth)
        assert tree.value(dataset, price) == node.value
    optimum = optimal_value(dataset, depth, price)
    assert values[-1] <= optimum
    if seed % 2:  # the exact move at the root
        assert values[-1] == optimum


@pytest.mark.parametrize("seed", range(6))
def test_a_refused_tree_is_not_gone_on_from(seed: int) -> None:
    """What the search works on is always a tree that was taken or is no better than one that was."""
    dataset, price = data(seed), 0.25
    taken: list[float] = []

    def offer(node: GrownNode) -> bool:
        if len(node.tree().features_used) > 2:
            return False
        taken.append(node.value)
        return True

    search = LocalSearch(grower_for(dataset, price), 4, offer, lambda: False, lambda *size: 1e9)
    whole = Place(np.arange(dataset.n_samples), frozenset(), 4)
    search.start(grower_for(dataset, price).leaf(whole.samples))
    for _ in range(30):
        search.step()
    assert search.best is not None and search.best.value == max(taken)
    assert search._current is not None and search._current.value <= search.best.value


def test_the_same_seed_gives_the_same_trees() -> None:
    """Steps depend on nothing but the data and the seed."""
    found = []
    for seed in (3, 3, 4):
        offered: list[DecisionTree] = []
        search = LocalSearch(
            grower_for(data(1), 0.5),
            4,
            lambda node, offered=offered: offered.append(node.tree()) is None,
            lambda: False,
            lambda *size: 1e9,
            seed=seed,
        )
        search.start_greedily("gini")
        for _ in range(30):
            search.step()
        found.append(offered)
    assert found[0] == found[1]


def test_a_stop_unwinds_a_step() -> None:
    """Whenever the stopper strikes, the step ends, and what was offered before stays."""
    for allowed in range(0, 60, 7):
        asked = itertools.count()
        stop = lambda asked=asked, allowed=allowed: next(asked) >= allowed  # noqa: E731
        search = LocalSearch(grower_for(data(2), 0.5, stop), 4, lambda node: True, stop, lambda *size: 1e9)
        with pytest.raises(OutOfTime):
            for _ in range(100):
                search.step()


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_improver_speaks_of_the_original_columns(monkeypatch: pytest.MonkeyPatch, drawn: bool, seed: int) -> None:
    """Equal and light columns are left out and features translated back; drawn rows never decide what is offered."""
    if drawn:
        monkeypatch.setattr(improver_module, "_DRAWN_ROWS", 15)
    dataset, price, depth = data(seed), 1.5, 4
    values: list[float] = []

    def offer(tree: DecisionTree) -> bool:
        assert tree.max_depth == depth
        values.append(tree.value(dataset, price))
        return True

    improver = Improver(dataset, depth, price, offer, Stopper(), seed)
    assert (improver._drawn is not None) == drawn
    assert improver.n_features <= dataset.n_features - 2
    improver.begin(cart(dataset, depth, price))
    improver.work(1e9, 20)
    assert values == sorted(set(values)) and values[-1] <= optimal_value(dataset, depth, price)
    assert improver.counts.moves == 20


def test_estimates_grow_with_everything() -> None:
    """More rows, columns, classes or levels never take less time."""
    for place, more in itertools.product(range(4), (2, 3)):
        size = [1000, 50, 3, 3]
        before = table_seconds(*size)
        size[place] *= more
        assert table_seconds(*size) > before


# --- in a solve --------------------------------------------------------------------------------------------


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local search takes part however small the data are."""
    monkeypatch.setattr(improving_module, "_SOON", 0.0)
    monkeypatch.setattr(improving_module, "_SOON_WITHOUT_LIMIT", 0.0)
    monkeypatch.setattr(improving_module, "_FIRST_SECONDS", 0.05)
    monkeypatch.setattr(improving_module, "_QUICK_TABLES", 0.0)


def test_only_forbidden_trees_are_refused() -> None:
    """A tree that is no better may be gone on from; one that is better and breaks a constraint may not."""
    search = search_for(FewFeatures(1), max_depth=2)
    free = search_for(max_depth=2)
    SubtreeTables().run(free)
    best = free.incumbent.tree
    assert best is not None and len(best.features_used) > 1
    assert not search.offer_and_record(best)
    assert search.offer_and_record(DecisionTree.leaf(0, 2))
    assert free.offer_and_record(best)


def test_published_presets_have_no_local_search() -> None:
    """They stay what they are."""
    assert [name for name, config in PRESETS.items() if config.local_search] == ["default"]


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize("constraint", [None, MinLeafWeight(amount=4), MaxLeaves(5), MaxFeatures(2)])
def test_a_solve_proves_the_same(always: None, limit: float | None, constraint: Any) -> None:
    """With the local search before and beside the tables, under constraints too, the optimum is the same."""
    constraints = None if constraint is None else [constraint]
    without = replace(Config.preset("default"), local_search=False)
    for seed in range(3):
        dataset = data(seed, 30, 5)
        for depth in (3, 5):
            given: Any = {"max_depth": depth, "leaf_penalty": 0.01, "constraints": constraints}
            plain = solve(dataset, config=without, **given)
            helped = solve(dataset, time_limit=limit, **given)
            assert helped.status == plain.status == "optimal"
            assert helped.objective == pytest.approx(plain.objective, abs=1e-12)
            if constraint is None:
                assert "local_search" in helped.stats


@pytest.mark.parametrize("depth", [3, 5])
def test_a_solve_may_be_stopped_anywhere(always: None, monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    """Bounds hold, values are those of trees, the history is monotone, and CART is never better once it was run."""
    for seed in range(3):
        instance = random_instance(np.random.default_rng(40), max_samples=30, max_features=5) if seed == 0 else None
        dataset = data(seed, 30, 5) if instance is None else instance.dataset
        price = dataset.leaf_price(0.01)
        merged = dataset.merged()
        greedy = max(cart(merged, depth, price, 0, name).value(merged, price) for name in ("gini", "entropy"))
        optimum = optimal_value(dataset, depth, price)
        for allowed in (0, 1, 2, 3, 5, 8, 13, 21, 40, 80, 200):
            asked = itertools.count()

            def stopper(deadline: Any, interrupted: Any, asked: Any = asked, allowed: int = allowed) -> Stopper:
                return Stopper(None, lambda: next(asked) >= allowed)

            monkeypatch.setattr(driver, "Stopper", stopper)
            result = solve(dataset, max_depth=depth, leaf_penalty=0.01, time_limit=1000.0)
            total = dataset.total_weight
            assert result.objective <= optimum / total + 1e-12 <= result.bound + 2e-12
            assert result.tree.value(dataset, price) / total == pytest.approx(result.objective, abs=1e-9)
            for before, after in itertools.pairwise(result.history):
                assert before.objective <= after.objective + 1e-12 and after.bound <= before.bound + 1e-12
            if "local_search" in result.stats:
                assert result.objective >= greedy / total - 1e-12
