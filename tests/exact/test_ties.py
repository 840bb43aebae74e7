"""Equally good trees: the value stays, and no exchange of one question improves the criterion."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.ties import earned, masses_hold, one_question_apart, purity, supports, trees_of_depth_one

from accel_oct.exact.ordered import LeafLimits, OrderedTree, dense_ranks, ordered_problem, search_ordered
from accel_oct.exact.ties import Exchange
from accel_oct.support.arguments import TieCriterion

ROUNDING = 1e-9


def case(seed: int) -> tuple[np.ndarray, np.ndarray, LeafLimits | None]:
    """Few samples with few values, so that many trees are equally good: ranks, gains and limits on leaves."""
    rng = np.random.default_rng(seed)
    n, columns, labels = int(rng.integers(4, 22)), int(rng.integers(1, 5)), int(rng.integers(2, 4))
    values = rng.integers(0, rng.integers(2, 6), (columns, n))
    ranks = np.array([dense_ranks(column) for column in values], dtype=np.int32)
    gains = np.eye(labels, dtype=np.int64)[rng.integers(0, labels, n)]
    if rng.random() < 0.4:
        gains = gains * rng.integers(1, 4, n)[:, None]
    if rng.random() < 0.2:
        gains = rng.integers(0, 4, (n, labels))
    limits = None
    if rng.random() < 0.4:
        limits = LeafLimits(rng.integers(0, 3, (2, n)), np.array([2, 1]))
    return ranks, gains.astype(np.int64), limits


def optimum(ranks: np.ndarray, gains: np.ndarray, depth: int, limits: LeafLimits | None) -> OrderedTree | None:
    """An optimal tree in which every leaf is used."""
    problem = ordered_problem(ranks, gains.astype(float), 2, limits)
    tree = search_ordered(problem, depth, 0.25).tree
    return tree if tree is not None and min(supports(tree, ranks)) > 0 else None


def criterion_of(name: TieCriterion, tree: OrderedTree, ranks: np.ndarray, gains: np.ndarray) -> tuple[float, float]:
    """The criterion by its definition."""
    return (float(min(supports(tree, ranks))) if name == "support" else 0.0), purity(tree, ranks, gains)


def exceeds(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] > other[0] or (one[0] == other[0] and one[1] > other[1] + 1e-6)


@pytest.mark.parametrize("name", ["purity", "support"])
def test_no_exchange_of_a_question_improves_the_criterion(name: TieCriterion) -> None:
    """On random data, against all trees that differ in one question: same value, limits kept, none is better."""
    exchanged = 0
    for seed in range(250):
        ranks, gains, limits = case(seed)
        tree = optimum(ranks, gains, 1 + seed % 3, limits)
        if tree is None or tree.n_leaves == 1:
            continue
        settled = Exchange(ranks, gains, name, limits).settled(tree)
        found = settled.tree
        assert settled.complete
        assert (found.left, found.right) == (tree.left, tree.right)
        value, own = earned(found, ranks, gains), criterion_of(name, found, ranks, gains)
        assert value == earned(tree, ranks, gains), seed
        assert min(supports(found, ranks)) > 0
        assert limits is None or masses_hold(found, ranks, limits.masses, limits.least), seed
        before = criterion_of(name, tree, ranks, gains)
        assert exceeds(own, before) == (settled.exchanged > 0), seed
        exchanged += settled.exchanged > 0
        for other in one_question_apart(found, ranks, gains.shape[1]):
            if earned(other, ranks, gains) < value or min(supports(other, ranks)) == 0:
                continue
            if limits is None or masses_hold(other, ranks, limits.masses, limits.least):
                assert not exceeds(criterion_of(name, other, ranks, gains), own), (seed, other)
    assert exchanged > 20  # the criterion matters


@pytest.mark.parametrize("name", ["purity", "support"])
def test_at_depth_one_the_tree_is_the_best_of_all_optimal_ones(name: TieCriterion) -> None:
    """With one question, one exchange reaches every tree: the result is the best by the criterion."""
    for seed in range(200):
        ranks, gains, limits = case(seed)
        tree = optimum(ranks, gains, 1, limits)
        if tree is None or tree.n_leaves == 1:
            continue
        found = Exchange(ranks, gains, name, limits).settled(tree).tree
        value = earned(found, ranks, gains)
        rivals = [
            criterion_of(name, other, ranks, gains)
            for other in trees_of_depth_one(ranks, gains.shape[1])
            if earned(other, ranks, gains) == value
            and min(supports(other, ranks)) > 0
            and (limits is None or masses_hold(other, ranks, limits.masses, limits.least))
        ]
        own = criterion_of(name, found, ranks, gains)
        assert not any(exceeds(rival, own) for rival in rivals), seed


def test_the_key_is_the_criterion() -> None:
    """`key` orders trees as the definitions do."""
    ranks, gains, _ = case(3)
    for name in ("purity", "support"):
        for tree in trees_of_depth_one(ranks, gains.shape[1]):
            if min(supports(tree, ranks)) > 0:
                assert Exchange(ranks, gains, name).key(tree) == pytest.approx(criterion_of(name, tree, ranks, gains))


def test_the_order_of_the_samples_does_not_matter() -> None:
    """The same tree is settled to the same tree whatever the order of the rows: the result is deterministic."""
    for seed in range(60):
        ranks, gains, limits = case(seed)
        tree = optimum(ranks, gains, 2, limits)
        if tree is None:
            continue
        order = np.random.default_rng(seed).permutation(len(gains))
        moved = None if limits is None else LeafLimits(limits.masses[:, order], limits.least)
        first = Exchange(ranks, gains, "purity", limits).settled(tree)
        again = Exchange(np.ascontiguousarray(ranks[:, order]), gains[order], "purity", moved).settled(tree)
        assert first == again, seed


def test_beyond_the_limit_of_work_the_given_tree_is_returned() -> None:
    """A stopped exchange returns the given tree and says that it is not complete."""
    done = 0
    for seed in range(120):
        ranks, gains, limits = case(seed)
        tree = optimum(ranks, gains, 2, limits)
        if tree is None or Exchange(ranks, gains, "purity", limits).settled(tree).exchanged == 0:
            continue
        for stopped in (
            Exchange(ranks, gains, "purity", limits, work=ranks.size * gains.shape[1] + 1).settled(tree),
            Exchange(ranks, gains, "purity", limits).settled(tree, lambda: True),
        ):
            assert (stopped.tree, stopped.exchanged, stopped.complete) == (tree, 0, False)
        done += 1
    assert done > 5
