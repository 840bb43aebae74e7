"""Frontiers and solves on a tally: equal to those on the rows that it was made of."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.dynamic_programme import optimal_scores
from oracles.ruled import ruled_scores

from accel_oct import Solver, frontier, solve, solve_path
from accel_oct.constraints import ForbiddenFeatures, ForbiddenPairs, MaxFeatures, MaxLeaves, MinLeafWeight
from accel_oct.data import BinaryDataset, Tally
from accel_oct.data.column_sets import given as on_one_side
from accel_oct.errors import InvalidInputError
from accel_oct.exact import samples
from accel_oct.exact.counts import TallyCounts
from accel_oct.objectives import ClassWeights, CostMatrix, InstanceCosts, Objective


class ByArrays(TallyCounts):
    """As under several masses: without kernels, so that root features are searched one by one."""

    def __init__(self, *arguments, kernels, apart):
        super().__init__(*arguments, kernels=False, apart=apart)


@pytest.fixture(params=["levels", "arrays"])
def way(request, monkeypatch):
    """Tallies by the compiled levels, and by arrays."""
    if request.param == "arrays":
        monkeypatch.setattr(samples, "TallyCounts", ByArrays)
    return request.param


@st.composite
def tables(draw, n_classes=(1, 2, 3)):
    """Rows with ties, chains of thresholds, copies, complements and constants among the columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n_rows, n_features = draw(st.integers(1, 40)), draw(st.integers(1, 7))
    X = rng.random((n_rows, n_features)) < draw(st.sampled_from([0.2, 0.5, 0.8]))
    kind = draw(st.sampled_from(["plain", "chain", "copies"]))
    if kind == "chain":
        X = rng.integers(0, 5, n_rows)[:, None] >= np.arange(n_features)
    elif kind == "copies" and n_features > 2:
        X[:, 1], X[:, 2] = X[:, 0], ~X[:, 0]
    y = rng.integers(0, draw(st.sampled_from(n_classes)), n_rows)
    weights = draw(st.sampled_from([None, rng.integers(1, 4, n_rows)]))
    return X, y, weights, rng.choice(np.array(["a", "b", "c"]), n_rows)


def rules(n_features):
    """Constraints about leaves and paths, or none."""
    pairs = [(f, g) for f in range(n_features) for g in range(f)]
    some = st.lists(st.sampled_from(pairs), min_size=1, max_size=4) if pairs else st.just([])
    choices = [
        st.just([]),
        st.builds(lambda amount: [MinLeafWeight(amount=amount)], st.integers(0, 12)),
        st.builds(lambda share: [MinLeafWeight(share=share)], st.sampled_from([0.05, 0.1, 0.3])),
        st.builds(lambda chosen: [ForbiddenPairs(chosen)], some),
        st.builds(lambda chosen, amount: [ForbiddenPairs(chosen), MinLeafWeight(amount=amount)], some, st.just(3)),
        st.builds(lambda leaves: [MaxLeaves(leaves)], st.integers(1, 6)),
    ]
    return st.one_of(*choices)


def assert_same(mine, rows):
    assert mine.scores.tolist() == rows.scores.tolist()
    assert mine.bounds.tolist() == rows.bounds.tolist()
    assert mine.status == rows.status


@given(tables(), st.integers(0, 6), st.integers(0, 1), st.integers(0, 3))
def test_one_side_of_a_column(table, column, side, depth):
    """What is known of all sets on one side of a column is what is counted there."""
    X, y, weights, groups = table
    column %= X.shape[1]
    tally = Tally.of(X, y, depth=depth, sample_weight=weights, sensitive_features=groups)
    found = on_one_side(tally.counts, X.shape[1], column, side)
    part = X[:, column] == side
    if not part.any():
        assert not any(counts.any() for counts in found)
        return
    expected = Tally.of(
        X[part],
        y[part],
        depth=max(depth - 1, 0),
        sample_weight=None if weights is None else weights[part],
        sensitive_features=groups[part],
        classes=tally.classes,
        group_labels=tally.group_labels,
    )
    assert len(found) == depth
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(found, expected.counts, strict=False))


@given(tables(), st.integers(0, 4), st.data())
def test_frontiers_are_those_of_the_rows(way, table, depth, data):
    """Scores and bounds to the last bit, under every rule, whatever groups there are; trees have these scores."""
    X, y, weights, groups = table
    constraints = data.draw(rules(X.shape[1]))
    tally = Tally.of(X, y, depth=4, sample_weight=weights, sensitive_features=groups)
    mine = frontier(tally, max_depth=depth, constraints=constraints)
    assert_same(mine, frontier(X, y, sample_weight=weights, max_depth=depth, constraints=constraints))
    dataset = BinaryDataset.from_arrays(X, y, weights)
    if mine.status == "infeasible":
        return
    for point in mine:
        assert point.tree.n_leaves <= point.max_leaves
        assert point.tree.depth <= depth
        assert point.tree.score(dataset) / dataset.total_weight == point.score
        assert all(constraint.bind(dataset).violation(point.tree) <= 0 for constraint in constraints)


@given(tables(n_classes=(2, 3)), st.integers(0, 3))
def test_an_independent_dynamic_programme_agrees(way, table, depth):
    """Every number of leaves, against a programme that shares no code with the tables."""
    X, y, weights, _ = table
    dataset = BinaryDataset.from_arrays(X, y, weights)
    found = frontier(Tally.of(X, y, depth=3, sample_weight=weights), max_depth=depth)
    expected = np.array(optimal_scores(dataset, depth, 2**depth)) / dataset.total_weight
    assert found.scores.tolist() == expected.tolist()


@given(tables(n_classes=(2, 3)), st.integers(1, 3), st.integers(1, 9), st.data())
def test_rules_by_exhaustive_search(way, table, depth, amount, data):
    """Least masses and pairs that must stay apart, against a search that knows rows and rules only."""
    X, y, weights, _ = table
    X, y = X[:20, :5], y[:20]
    weights = None if weights is None else weights[:20]
    n_features = X.shape[1]
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, n_features - 1)] * 2), max_size=3))
    apart = {(f, g) for f, g in pairs if f != g}
    constraints = [MinLeafWeight(amount=amount), ForbiddenPairs(sorted(apart))]
    dataset = BinaryDataset.from_arrays(X, y, weights)
    found = frontier(Tally.of(X, y, depth=3, sample_weight=weights), max_depth=depth, constraints=constraints)
    expected = ruled_scores(dataset, depth, [(dataset.weights, amount)], sorted(apart))
    assert (found.scores * dataset.total_weight).round(6).tolist() == np.round(expected, 6).tolist()


OBJECTIVES = {
    "balanced": lambda k: "balanced_accuracy",
    "class weights": lambda k: ClassWeights({0: 2.5, 1: 0.3}),
    "whole costs": lambda k: CostMatrix(np.arange(k * k).reshape(k, k) % 5 - 1),
    "real costs": lambda k: CostMatrix(np.sin(np.arange(k * k)).reshape(k, k)),
}


@pytest.mark.daily(5)
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_objectives(way, name, n_classes):
    """Sums over cells: to the last bit where rewards are whole, else up to the rounding of rewards."""
    rng = np.random.default_rng(n_classes)
    X, y = rng.random((150, 7)) < 0.5, np.arange(150) % n_classes
    y[X[:, 0] & X[:, 1]] = 0
    weights = rng.integers(1, 4, 150)
    objective = OBJECTIVES[name](n_classes)
    for max_depth in (2, 4):
        mine = frontier(Tally.of(X, y, depth=4), max_depth=max_depth, objective=objective)
        rows = frontier(X, y, max_depth=max_depth, objective=objective)
        np.testing.assert_allclose(mine.scores, rows.scores, rtol=0, atol=1e-11)
        if name in ("balanced", "whole costs"):
            assert_same(mine, rows)
        mine = frontier(Tally.of(X, y, depth=4, sample_weight=weights), max_depth=max_depth, objective=objective)
        rows = frontier(X, y, sample_weight=weights, max_depth=max_depth, objective=objective)
        assert mine.status == rows.status == "optimal"
        np.testing.assert_allclose(mine.scores, rows.scores, rtol=0, atol=1e-10)
        if name in ("balanced", "whole costs"):
            assert_same(mine, rows)


@pytest.mark.parametrize("n_rows", [10**4, 10**5, 10**6])
def test_class_weights_and_costs_of_many_rows(n_rows):
    """Objective, bound and scores are those of exact fractions to 1e-13, however many rows there are, and at most 1."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, 4)) < 0.5
    exact_rule = X[:, 0] & X[:, 1]
    for y in (exact_rule.astype(int), (exact_rule ^ (rng.random(n_rows) < 0.1)).astype(int)):
        tally = Tally.of(X, y, depth=2)
        for objective in (ClassWeights({0: 3.7, 1: 0.1}), CostMatrix([[0, 1.7], [0.3, 0]])):
            result = solve(tally, max_depth=2, leaf_penalty=0.0, objective=objective)
            told = np.zeros((2, 2), dtype=int)
            np.add.at(told, (y, result.tree.predictions(X)), 1)
            counts = [[int(number) for number in row] for row in told]
            if isinstance(objective, ClassWeights):
                factors = [Fraction(3.7), Fraction(0.1)]
                own = sum(factors[k] * counts[k][k] for k in (0, 1))
                expected = own / sum(factors[k] * sum(counts[k]) for k in (0, 1))
            else:
                expected = -(Fraction(1.7) * counts[0][1] + Fraction(0.3) * counts[1][0]) / n_rows
            table = frontier(tally, max_depth=2, objective=objective)
            found = (result.objective, result.bound, table.scores[-1], table.bounds[-1])
            assert result.status == "optimal"
            assert all(abs(Fraction(float(number)) - expected) < Fraction(1, 10**13) for number in found), found
            assert max(found) <= (1.0 if isinstance(objective, ClassWeights) else 0.0)


@given(tables(), st.integers(0, 4), st.sampled_from([0.0, 0.01, 0.05, 0.3]), st.data())
def test_solve_and_solve_path(way, table, depth, penalty, data):
    """Objective, bound and status are those on the rows, in both ways, and no backend takes part."""
    X, y, weights, _ = table
    constraints = data.draw(rules(X.shape[1]))
    tally = Tally.of(X, y, depth=4, sample_weight=weights)
    found = solve(tally, max_depth=depth, leaf_penalty=penalty, constraints=constraints)
    (on_path,) = solve_path(tally, max_depth=depth, leaf_penalties=[penalty], constraints=constraints)
    rows = solve(X, y, sample_weight=weights, max_depth=depth, leaf_penalty=penalty, constraints=constraints)
    for result in (found, on_path):
        assert result.status == rows.status
        assert result.objective == rows.objective
        assert result.bound == rows.bound
        assert result.backend == "none" and result.feature_names == rows.feature_names
        assert len(result.constraints) == len(rows.constraints)
    if rows.found is not None:
        dataset = BinaryDataset.from_arrays(X, y, weights)
        share = found.tree.score(dataset) / dataset.total_weight
        assert found.objective == share - penalty * found.tree.n_leaves
        for mine, theirs in zip(found.constraints, rows.constraints, strict=True):
            assert (mine.name, mine.lower, mine.upper) == (theirs.name, theirs.lower, theirs.upper)
            assert mine.slack >= 0


def sample(n_rows=300, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_features)) < 0.5
    return X, ((X[:, 0] & X[:, 1]) | (rng.random(n_rows) < 0.2)).astype(int), rng


def test_billions_of_samples(way):
    """Counts of 10**12 and more: the same shares as for one, and class shares as exact as they can be."""
    X, y, _ = sample()
    tally = Tally.of(X, y, depth=4)
    many = replace(tally, counts=tuple(counts * 10**10 for counts in tally.counts), n_rows=300 * 10**10)
    one, all_ = frontier(tally, max_depth=4), frontier(many, max_depth=4)
    assert one.scores.tolist() == all_.scores.tolist() and all_.status == "optimal"
    limit = [MinLeafWeight(share=0.06)]
    one, all_ = (frontier(part, max_depth=4, constraints=limit) for part in (tally, many))
    assert one.scores.tolist() == all_.scores.tolist() and all_.status == "optimal"


def test_splits_that_bring_nothing(way):
    """However many samples there are and whatever rewards are worth, a split that brings nothing is not made."""
    X, _, _ = sample()
    tally = Tally.of(X, X[:, 0] & X[:, 1], depth=4)
    many = replace(tally, counts=tuple(counts * (10**10 + 7) for counts in tally.counts))
    for objective in ("balanced_accuracy", CostMatrix([[0.1, 0.7], [1 / 3, 0.2]])):
        one, all_ = (frontier(part, max_depth=4, objective=objective) for part in (tally, many))
        np.testing.assert_allclose(all_.scores, one.scores, rtol=0, atol=1e-10)
        assert all_.status == "optimal"
        assert max(point.tree.n_leaves for point in all_) == 3


def test_real_weights(way):
    """Real weights are rounded in another way than on rows, by less than anybody can see."""
    X, y, rng = sample()
    weights = rng.random(300) * 10.0 ** rng.integers(-2, 3, 300)
    for constraints in ([], [MinLeafWeight(share=0.05)]):
        mine = frontier(Tally.of(X, y, depth=4, sample_weight=weights), max_depth=4, constraints=constraints)
        rows = frontier(X, y, sample_weight=weights, max_depth=4, constraints=constraints)
        np.testing.assert_allclose(mine.scores, rows.scores, rtol=0, atol=1e-7)
        assert mine.status == "optimal"
        dataset = BinaryDataset.from_arrays(X, y, weights)
        shares = [point.tree.score(dataset) / dataset.total_weight for point in mine]
        np.testing.assert_allclose(shares, mine.scores, rtol=0, atol=1e-7)


def test_depth_five_and_small_memory(way):
    """What the compiled levels do not reach goes root by root, with the same result."""
    X, y, _ = sample(60, 4, 1)
    tally = Tally.of(X, y, depth=5)
    assert_same(frontier(tally, max_depth=5), frontier(X, y, max_depth=5))
    assert_same(frontier(tally, max_depth=4, memory_limit=1), frontier(X, y, max_depth=4))
    with_rule = [MinLeafWeight(amount=4), ForbiddenPairs([(0, 1)])]
    assert_same(frontier(tally, max_depth=5, constraints=with_rule), frontier(X, y, max_depth=5, constraints=with_rule))


def test_threads(way):
    """Results do not depend on the number of threads."""
    X, y, _ = sample(200, 12)
    tally = Tally.of(X, y, depth=4)
    assert_same(frontier(tally, max_depth=4, solver=Solver(threads=2)), frontier(tally, max_depth=4))


def test_without_time_bounds_are_valid(way):
    """Stopped at once, every bound holds and the status says so; a tree that was given is not lost."""
    X, _, rng = sample()
    tally = Tally.of(X, rng.integers(0, 2, 300), depth=4)
    best, stopped = frontier(tally, max_depth=4), frontier(tally, max_depth=4, time_limit=0.0)
    assert stopped.status == "time_limit"
    assert (stopped.bounds >= best.scores).all() and (stopped.scores <= best.scores).all()
    known = best.tree(16)
    for start in ([], [known]):
        result = solve(tally, max_depth=4, leaf_penalty=0.0, time_limit=0.0, start=start)
        assert result.status == "time_limit" and result.bound >= best.scores[-1]
        assert (result.objective == best.scores[-1]) == bool(start)
    rule = [MinLeafWeight(share=0.2)]
    result = solve(tally, max_depth=4, leaf_penalty=0.0, time_limit=0.0, start=[known], constraints=rule)
    assert result.status == "time_limit" and result.objective < best.scores[-1]
    assert result.constraints[0].value >= 60


def test_nothing_is_allowed(way):
    """A least weight above the total leaves no tree."""
    X, y, _ = sample(30)
    tally = Tally.of(X, y, depth=3)
    found = frontier(tally, max_depth=3, constraints=[MinLeafWeight(amount=31)])
    assert found.status == "infeasible"
    assert solve(tally, max_depth=3, leaf_penalty=0.1, constraints=[MinLeafWeight(amount=31)]).status == "infeasible"


def test_forbidden_features(way):
    """Columns that may not be used are not."""
    X, y, _ = sample()
    tally = Tally.of(X, y, depth=3)
    found = frontier(tally, max_depth=3, constraints=[ForbiddenFeatures([0, "x3"])])
    left = [1, 2, 4, 5]
    assert found.scores.tolist() == frontier(X[:, left], y, max_depth=3).scores.tolist()
    assert not {0, 3} & set(found.tree(8).features_used)


class ByRow(Objective):
    """An objective of a user's that knows rows."""

    def bind(self, dataset):
        costs = np.arange(dataset.n_samples * dataset.n_classes, dtype=float).reshape(dataset.n_samples, -1)
        return InstanceCosts(costs).bind(dataset)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"max_depth": 3}, "the tally was made for trees of depth 2, and max_depth is 3"),
        ({"max_depth": 2, "y": [0, 1]}, "y must be None when X is a Tally"),
        ({"max_depth": 2, "sample_weight": [1]}, "sample_weight must be None when X is a Tally"),
        ({"max_depth": 2, "objective": "f1"}, "a ratio, cannot be used on a tally"),
        (
            {"max_depth": 2, "objective": InstanceCosts(np.ones((2, 2)))},
            "costs per sample need rows; on a tally use CostMatrix",
        ),
        ({"max_depth": 2, "objective": ByRow()}, "reads more than the classes, groups and weights of a tally"),
        ({"max_depth": 2, "constraints": [MinLeafWeight(samples=2)]}, r"MinLeafWeight\(samples=...\) needs rows"),
        ({"max_depth": 2, "constraints": [MaxFeatures(2)]}, "is not supported on a tally"),
        ({"max_depth": 2, "constraints": [ForbiddenPairs([(0, 1)], on="tree")]}, "is not supported on a tally"),
        ({"max_depth": -1}, "max_depth"),
    ],
)
def test_what_a_tally_cannot_do(arguments, said):
    """One sentence each, from `frontier` and from `solve`."""
    X, y, _ = sample(50)
    tally = Tally.of(X, y, depth=2)
    with pytest.raises(InvalidInputError, match=said):
        frontier(tally, **arguments)
    with pytest.raises(InvalidInputError, match=said):
        solve(tally, leaf_penalty=0.01, **arguments)


def test_a_tally_of_nothing():
    """No samples or no columns: there is nothing to learn from, and an error says so."""
    with pytest.raises(InvalidInputError, match="holds no samples"):
        frontier(Tally.of(np.zeros((0, 2)), [], depth=2, classes=[0, 1]), max_depth=2)
    with pytest.raises(InvalidInputError, match="has no columns"):
        frontier(Tally.of(np.zeros((2, 0)), [0, 1], depth=2), max_depth=2)
    with pytest.raises(InvalidInputError, match="leaf_penalty"):
        solve(Tally.of(np.ones((2, 1)), [0, 1], depth=2), max_depth=1, leaf_penalty=-1)
    with pytest.raises(InvalidInputError, match="components must be None"):
        solve(Tally.of(np.ones((2, 1)), [0, 1], depth=2), max_depth=1, leaf_penalty=0.0, components=["x"])
