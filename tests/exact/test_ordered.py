"""The search over every threshold of ordered columns: exact against exhaustive search, valid bounds at any time."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from oracles.ordered import BITS
from programs import fuzz_ordered

from accel_oct.exact.ordered import LeafLimits, dense_ranks, ordered_problem, search_ordered
from accel_oct.native.ordered import LABELLED, SIGNED, OrderedSearch, OrderedTable
from accel_oct.native.stopping import StopFlag


@pytest.mark.parametrize("block", range(8))
def test_equal_to_exhaustive_search(block: int) -> None:
    """Value, bound, tree and every row of the history, for 8 x 60 random cases."""
    for seed in range(60 * block, 60 * block + 60):
        fuzz_ordered.check(seed)


def table(n: int, columns: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Numbers without ties, and labels that depend on two of the columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(columns, n))
    y = ((X[0] > 0.3).astype(int) + 2 * (X[min(1, columns - 1)] * X[0] > 0)) % n_classes
    y = np.where(rng.random(n) < 0.2, rng.integers(0, n_classes, n), y)
    return np.array([dense_ranks(column) for column in X]), np.eye(n_classes)[y]


def by_dynamic_programme(ranks: np.ndarray, gains: np.ndarray, depth: int, price: float) -> float:
    """The best tree of depth two or less, by sums over all pairs of splits."""
    splits = np.array([column <= t for column in ranks for t in range(column.max())])

    def best(rows: np.ndarray, depth: int) -> float:
        here = gains * rows[:, None]
        value = float(here.sum(axis=0).max()) - price
        if depth == 0:
            return value
        if depth == 1:
            left = splits @ here
            right = here.sum(axis=0) - left
            return max(value, float((left.max(axis=1) + right.max(axis=1)).max()) - 2 * price)
        return max(value, *(best(rows & split, depth - 1) + best(rows & ~split, depth - 1) for split in splits))

    return best(np.ones(len(gains), bool), depth)


@pytest.mark.parametrize("majority", range(125, 133))
def test_sums_at_the_end_of_a_byte(majority: int) -> None:
    """Sums of signs are counted in bytes up to 127 samples of a class, and in wider numbers beyond."""
    labels = np.repeat([0, 1, 0, 1], [majority - 2, 30, 2, 20])
    ranks = np.array([np.arange(len(labels)), np.random.default_rng(0).permutation(len(labels))], np.int32)
    for y in (labels, 1 - labels, labels[::-1]):
        outcome = search_ordered(ordered_problem(ranks, np.eye(2)[y], BITS), 2, 0.25)
        assert outcome.value == by_dynamic_programme(ranks, np.eye(2)[y], 2, 0.25)


@pytest.mark.parametrize("columns", [1, 3, 7, 20, 40])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_depth_two_for_any_number_of_lanes(columns: int, n_classes: int) -> None:
    """Few columns share a vector with copies of themselves, many need several vectors."""
    ranks, gains = table(90 if columns < 10 else 35, columns, n_classes)
    outcome = search_ordered(ordered_problem(ranks, gains, BITS), 2, 1.5)
    assert outcome.value == by_dynamic_programme(ranks, gains, 2, 1.5)


@pytest.mark.parametrize("scale", [1.0, 2.0**12, 2.0**-BITS * (2**30 + 1), math.pi])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_counters_of_every_width(scale: float, n_classes: int) -> None:
    """Weights that need 16 or 32 bits, or real numbers."""
    ranks, gains = table(60, 5, n_classes)
    rng = np.random.default_rng(1)
    gains = np.ldexp(np.rint(np.ldexp(gains * scale * rng.integers(1, 9, 60)[:, None], BITS)), -BITS)
    outcome = search_ordered(ordered_problem(ranks, gains, BITS), 2, 1.5 * scale)
    price = float(np.ldexp(np.rint(np.ldexp(1.5 * scale, BITS)), -BITS))
    assert outcome.value == by_dynamic_programme(ranks, gains, 2, price)


def test_deeper_trees_agree_with_fewer_thresholds_put_back() -> None:
    """Depth three and four on a table with a few values each, where enumeration is possible."""
    rng = np.random.default_rng(3)
    ranks = rng.integers(0, 3, (3, 60)).astype(np.int32)
    gains = np.eye(2)[(ranks[0] + ranks[1] * ranks[2] + (rng.random(60) < 0.1)) % 2]
    splits = [column <= t for column in ranks for t in range(2)]

    def best(rows: np.ndarray, depth: int) -> float:
        value = float(gains[rows].sum(axis=0).max()) - 1.0 if rows.any() else -1.0
        if depth:
            for split in splits:
                value = max(value, best(rows & split, depth - 1) + best(rows & ~split, depth - 1))
        return value

    for depth in (3, 4):
        outcome = search_ordered(ordered_problem(ranks, gains, BITS), depth, 1.0)
        assert outcome.value == best(np.ones(60, bool), depth)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_find_the_same_value(threads: int) -> None:
    ranks, gains = table(100, 5, 2)
    problem = ordered_problem(ranks, gains, BITS)
    one, several = (search_ordered(problem, 4, 1.5, threads=count) for count in (1, threads))
    assert one.finished
    assert several.finished
    assert one.value == several.value == several.bound


def test_a_deeper_limit_is_never_worse() -> None:
    ranks, gains = table(80, 4, 3)
    problem = ordered_problem(ranks, gains, BITS)
    values = [search_ordered(problem, depth, 4.0).value for depth in range(5)]
    assert values == sorted(values)
    unlimited = search_ordered(problem, None, 4.0)
    assert unlimited.finished
    assert unlimited.value >= values[-1]


def test_a_limit_on_leaves_holds_below_a_tree_of_depth_two() -> None:
    """The best side within its limit has depth two: rebuilt without the limit it would have more leaves."""
    ranks = np.arange(12, dtype=np.int32)[None]
    gains = np.eye(2)[np.arange(12) % 2] * np.where(np.arange(12) < 6, 1, 9)[:, None]
    outcome = search_ordered(ordered_problem(ranks, gains, 0), 4, 0.0, max_leaves=11)
    assert outcome.tree is not None
    assert outcome.value == 59.0
    assert outcome.tree.n_leaves <= 11
    assert gains[np.arange(12), outcome.tree.predict(ranks)].sum() == 59.0


def test_stopped_at_any_time_it_has_a_valid_bound() -> None:
    """Bounds of stopped searches are never below the optimum, and never rise."""
    ranks, gains = table(300, 12, 2)
    problem = ordered_problem(ranks, gains, BITS)
    best = search_ordered(problem, 3, 1.0)
    assert best.finished
    for share in (0.0, 0.1, 0.3, 0.6):
        end = time.perf_counter() + share * best.seconds
        stopped = search_ordered(problem, 3, 1.0, should_stop=lambda end=end: time.perf_counter() > end)
        assert stopped.bound >= best.value >= stopped.value
        bounds = [bound for _, _, bound in stopped.history]
        assert all(later <= earlier for earlier, later in pairwise(bounds))


@pytest.mark.parametrize("threads", [1, 3])
def test_without_memory_it_stops_with_a_valid_bound(threads: int) -> None:
    """Memory may end anywhere, in one thread while others go on: what is claimed is right all the same."""
    # Sides of the root need several chunks of memory of their own.
    ranks, gains = table(3000, 60, 2)
    problem = ordered_problem(ranks, gains, BITS)
    best = search_ordered(problem, 3, 200.0)
    stopped = 0
    memory = 2.0**18  # too little to begin with; how much is needed depends on the width of vectors
    while True:
        memory *= 1.15
        try:
            outcome = search_ordered(problem, 3, 200.0, memory_limit=threads * int(memory), threads=threads)
        except MemoryError:
            continue
        assert outcome.bound >= best.value >= outcome.value
        assert outcome.finished == (outcome.bound == outcome.value)
        if not outcome.state.out_of_memory:
            break
        stopped += 1
    assert stopped
    assert outcome.finished


def test_an_error_of_a_listener_ends_the_search() -> None:
    ranks, gains = table(400, 20, 2)

    def listen(*_: float) -> None:
        raise KeyError("listener")

    with pytest.raises(KeyError, match="listener"):
        search_ordered(ordered_problem(ranks, gains, BITS), 4, 1.0, on_change=listen)


def test_merging_keeps_what_decides() -> None:
    """Equal samples become one, repeated and reversed columns go, and the value does not change."""
    ranks, gains = table(40, 3, 2)
    twice = np.concatenate([ranks, ranks], axis=1), np.concatenate([gains, gains])
    one, two = ordered_problem(ranks, gains, BITS), ordered_problem(*twice, BITS)
    assert two.table.ranks.shape == one.table.ranks.shape
    assert search_ordered(two, 2, 2.0).value == 2 * search_ordered(one, 2, 1.0).value
    more = np.concatenate([ranks, ranks[:1], ranks.max(axis=1)[:, None] - ranks])
    assert ordered_problem(more, gains, BITS).table.ranks.shape == one.table.ranks.shape


def test_a_label_that_is_best_nowhere_may_be_best_together() -> None:
    """The second class is nobody's best and the best for both."""
    gains = np.array([[5.0, 4, 0], [0, 4, 5]])
    outcome = search_ordered(ordered_problem(np.zeros((1, 2), np.int32), gains, BITS), 2, 0.0)
    assert outcome.value == 8.0
    assert outcome.tree is not None
    assert outcome.tree.label == (1,)


def test_bad_arrays_are_refused() -> None:
    """What crosses the border is checked before a pointer is passed."""
    good = {
        "ranks": np.zeros((2, 3), np.int32),
        "values": np.ones((1, 3), np.int16),
        "labels": np.zeros(0, np.int32),
        "weights": np.ones(3, np.int64),
        "unavoidable": np.zeros(3, np.int64),
        "masses": np.zeros((0, 3), np.int16),
        "least": np.zeros(0, np.int64),
        "apart": np.zeros((0, 0), np.uint8),
    }
    bad = [
        {"ranks": np.full((2, 3), 3, np.int32)},
        {"ranks": np.full((2, 3), -1, np.int32)},
        {"ranks": np.zeros((2, 3), np.int64)},
        {"ranks": np.zeros((2, 0), np.int32)},
        {"values": np.full((1, 3), 2**14, np.int16)},
        {"values": np.ones((1, 4), np.int16)},
        {"weights": np.full(3, -1, np.int64)},
        {"masses": np.zeros((1, 3), np.int16)},
        {"apart": np.zeros((3, 3), np.uint8)},
        {"unavoidable": np.zeros(2, np.int64)},
    ]
    for change in bad:
        with pytest.raises((ValueError, TypeError)):
            OrderedTable(**{**good, **change})
    table = OrderedTable(**good)
    options = {"n_classes": 2, "unit": 1, "price": 1, "stop": StopFlag()}
    for change in ({"unit": 0}, {"price": -1}, {"threads": 0}, {"memory": 0}, {"slack": 2.0}, {"unit": 2**60}):
        with pytest.raises(ValueError, match="native kernels"):
            OrderedSearch(table, SIGNED, **{**options, **change})
    with pytest.raises(ValueError, match="labels"):
        OrderedSearch(table, LABELLED, **options)
    with pytest.raises(ValueError, match="worker"):
        OrderedSearch(table, SIGNED, **options).work(1)


def test_limits_of_leaves_and_paths() -> None:
    """A leaf needs five samples, and two columns share no path."""
    ranks, gains = table(60, 4, 2)
    apart = np.zeros((4, 4), bool)
    apart[0, 1] = apart[1, 0] = True
    limits = LeafLimits(np.ones((1, 60), np.int64), np.array([5]), apart)
    outcome = search_ordered(ordered_problem(ranks, gains, BITS, limits), 3, 0.5)
    tree = outcome.tree
    assert outcome.finished
    assert tree is not None
    assert np.bincount(tree.leaves_of(ranks))[[node for node, c in enumerate(tree.column) if c < 0]].min() >= 5
    fuzz_ordered.check_paths(tree, apart, 0, ())
    assert outcome.value <= search_ordered(ordered_problem(ranks, gains, BITS), 3, 0.5).value
