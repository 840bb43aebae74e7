"""Prices: what they say of a tree, the bound they give, and everything that the bound leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from helpers.constraint_support import KINDS, keeps, random_constraint, random_prices, small_instance
from helpers.selection import daily
from oracles.instances import Instance
from oracles.outcomes import reachable

from accel_oct.exact.limited import PricedProblem
from accel_oct.exact.limited_points import LimitedProblem, PointTables
from accel_oct.pricing import Closing, Dual, RootByRoot
from accel_oct.pricing.dual import _lowest_of_lines, _lowest_of_planes
from accel_oct.pricing.repair import Repair
from accel_oct.solving.problem import BoundRounding
from accel_oct.tree import DecisionTree


@dataclass
class Case:
    """A problem with limits, all trees that matter, and the best of those that satisfy the constraints."""

    instance: Instance
    problem: LimitedProblem
    constraints: list[Any]
    trees: list[DecisionTree]
    best: float

    def offer(self) -> Callable[[DecisionTree], float]:
        """Takes trees that satisfy the constraints and remembers the best value."""
        values = [-np.inf]
        bound = [constraint.bind(self.instance.dataset) for constraint in self.constraints]

        def offer(tree: DecisionTree) -> float:
            if all(constraint.violation(tree) <= 0 for constraint in bound):
                values.append(float(self.problem.outcome(tree)[0]))
            return max(values)

        return offer


def cases(seed: int, count: int, max_depth: int = 4) -> list[Case]:
    rng = np.random.default_rng([700, seed])
    found = []
    for _ in range(count):
        instance = small_instance(rng, max_depth=max_depth)
        dataset, kinds = instance.dataset, rng.choice(len(KINDS), int(rng.integers(1, 4)))
        constraints = [random_constraint(rng, KINDS[int(kind)], instance) for kind in kinds]
        limits = [limit for constraint in constraints for limit in constraint.bind(dataset).traits.limits]
        if any(limit.leaves < 0 for limit in limits):
            continue
        problem = LimitedProblem.of(dataset, limits, instance.leaf_price, instance.max_depth)
        every = list(reachable(instance.X, dataset.n_classes, instance.max_depth))
        kept = [t for p, leaves, t in every if all(keeps(c, instance, (p, leaves)) for c in constraints)]
        best = max((float(problem.outcome(tree)[0]) for tree in kept), default=-np.inf)
        found.append(Case(instance, problem, constraints, [tree for _, _, tree in every], best))
    return found


def priced_value(problem: LimitedProblem, priced: Any, tree: DecisionTree) -> float:
    rows = np.arange(len(problem.X))
    earned = priced.weights[rows, tree.predictions(problem.X)].sum()
    return float(earned - priced.leaf_price * tree.n_leaves + priced.constant)


# ---------------------------------------------------------------- prices


@pytest.mark.parametrize("seed", daily(range(3), 1))
def test_priced_values(seed: int) -> None:
    """Of every tree and at any prices: its value and what it leaves of the limits, within the error that is told."""
    rng = np.random.default_rng(seed)
    for case in cases(seed, 40, max_depth=3):
        problem = case.problem
        for _ in range(3):
            prices = random_prices(rng, problem)
            priced = problem.priced(prices)
            assert priced.weights.min() >= 0 and (priced.weights.max(axis=1) > 0).all()
            size = problem.total_weight + float(prices.sum()) * len(problem.X)
            assert priced.error <= 1e-9 * size
            for tree in case.trees:
                value, *used = problem.outcome(tree)
                expected = float(value) + float(prices @ (problem.upper - np.array(used)))
                assert abs(priced_value(problem, priced, tree) - expected) <= priced.error


def test_sums_of_priced_weights_are_exact() -> None:
    """In whatever order: that is what the grid is for."""
    rng = np.random.default_rng(0)
    for case in cases(10, 30):
        priced = case.problem.priced(random_prices(rng, case.problem))
        weights = np.concatenate([priced.weights.ravel(), [priced.leaf_price] * 16])
        forward = backward = 0.0
        for weight in weights.tolist():
            forward += weight
        for weight in reversed(weights.tolist()):
            backward += weight
        assert forward == backward == float(weights.sum())


def test_outcomes_are_those_of_the_data() -> None:
    """Values as the data set has them, and limits that are kept where the constraints are."""
    for case in cases(11, 40):
        dataset = case.instance.dataset
        bound = [constraint.bind(dataset) for constraint in case.constraints]
        for tree in case.trees:
            value, *used = case.problem.outcome(tree)
            assert value == pytest.approx(tree.value(dataset, case.instance.leaf_price), abs=1e-9)
            within = all(np.array(used) <= case.problem.upper + case.problem.rounding)
            assert within == all(constraint.violation(tree) <= 0 for constraint in bound)


def problem_of(
    X: np.ndarray, gains: np.ndarray, uses: np.ndarray, upper: np.ndarray, leaf_price: float, max_depth: int
) -> LimitedProblem:
    """Limits as they are, of which leaves use nothing."""
    leaf_uses, scales = np.zeros(len(upper)), np.ones(len(upper))
    numbers = {"leaf_price": leaf_price, "max_depth": max_depth}
    return LimitedProblem(X=X, gains=gains, uses=uses, leaf_uses=leaf_uses, upper=upper, scales=scales, **numbers)


def test_memory_of_values_below_sides() -> None:
    """Scores of level three are kept where there is memory for them and for the sums of pairs of columns together."""
    rng = np.random.default_rng(2)
    X, gains = rng.random((60, 40)) < 0.5, rng.integers(1, 3, (60, 2)).astype(float)
    problem = problem_of(X, gains, np.zeros((0, 60, 2)), np.empty(0), 0.5, 3)
    priced = PricedProblem(np.empty(0), gains, 0.5, 0.0, 0.0)
    tables = [PointTables(problem, priced, lambda: False, 1, limit, below=True) for limit in (50_000, 70_000)]
    assert [table.known for table in tables] == [True, True]
    assert [table.has_values_below for table in tables] == [False, True]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_best_values_of_sides(depth: int) -> None:
    """By matrix products and by tables: for every root feature, and below its sides for depth four."""
    rng = np.random.default_rng(depth)
    seen = 0
    for case in cases(20 + depth, 40):
        problem = LimitedProblem(**{**vars_of(case.problem), "max_depth": depth})
        priced = problem.priced(random_prices(rng, problem))
        root = problem.side_tables(priced, None, lambda: False)
        assert root.known
        everyone = np.arange(len(problem.X))
        best = best_priced(problem, priced, everyone, depth)
        assert root.value == best
        worst = -priced.leaf_price * 2**depth
        assert root.spread >= best - worst
        for feature, zero, one in zip(*root.sides(), strict=True):
            sides = [everyone[problem.X[:, feature] == side] for side in (False, True)]
            assert [zero, one] == [best_priced(problem, priced, side, depth - 1) for side in sides]
            for side, points in enumerate(sides if depth == 4 else []):
                for below, *values in zip(*root.sides_below(int(feature), bool(side)), strict=True):
                    parts = [points[problem.X[points, below] == part] for part in (False, True)]
                    assert values == [best_priced(problem, priced, part, depth - 2) for part in parts]
                    seen += 1
    assert seen or depth < 4


def vars_of(problem: LimitedProblem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in problem.__dataclass_fields__}


def best_priced(problem: LimitedProblem, priced: Any, points: Any, depth: int) -> float:
    """The best priced value on some points, straight from the definition."""
    best = float(priced.weights[points].sum(axis=0).max()) - priced.leaf_price
    for feature in range(problem.X.shape[1] if depth else 0):
        sides = [points[problem.X[points, feature] == side] for side in (False, True)]
        if all(side.size for side in sides):
            best = max(best, sum(best_priced(problem, priced, side, depth - 1) for side in sides))
    return best


# ---------------------------------------------------------------- the bound


class Patience:
    """Says stop after so many questions."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("seed", daily(range(4), 1))
def test_the_bound_of_multipliers(seed: int) -> None:
    """Never below the best tree that satisfies the limits, at good prices, at bad ones, and stopped at any moment."""
    rng = np.random.default_rng([1, seed])
    for case in cases(30 + seed, 30):
        bounds = []
        for calls in (10**9, int(rng.integers(0, 4)), int(rng.integers(0, 40))):
            dual = Dual(case.problem, lambda tree: None, should_stop=Patience(calls))
            dual.run(lambda: -np.inf)
            assert dual.bound >= case.best
            assert not (dual.is_infeasible and case.best > -np.inf)
            bounds.append(dual.bound)
        dual = Dual(case.problem, lambda tree: None)
        for _ in range(4):
            assert dual.evaluate(random_prices(rng, case.problem)) >= case.best
        assert dual.bound >= case.best


def test_opposite_limits_that_contradict_each_other() -> None:
    """At least this much and at most that: prices on both prove that nothing keeps them, without any enumeration."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)
    uses = np.zeros((2, 4, 2))
    uses[0, :, 1], uses[1, :, 1] = 1.0, -1.0
    for upper, infeasible in (([1.0, -3.0], True), ([3.0, -1.0], False), ([2.0, -2.0], False)):
        problem = problem_of(X, np.ones((4, 2)), uses, np.array(upper), 0.0, 2)
        dual = Dual(problem, lambda tree: None)
        dual.run(lambda: -np.inf)
        assert problem.one_line is not infeasible and dual.is_infeasible is infeasible


def test_multipliers_find_the_least_bound() -> None:
    """One limit: no price on a fine grid gives a lower bound."""
    for case in cases(40, 60):
        if case.problem.n_limits != 1 or case.best == -np.inf:
            continue
        dual = Dual(case.problem, lambda tree: None)
        dual.run(lambda: -np.inf)
        grid = Dual(case.problem, lambda tree: None)
        for price in np.linspace(0.0, 2.0, 41) * case.problem.total_weight / len(case.problem.X):
            grid.evaluate(np.array([price]))
        assert dual.bound <= grid.bound + 1e-5 * case.problem.total_weight


# ---------------------------------------------------------------- closing the gap


def closed(case: Case, prices: Any, calls: int = 10**9, lattice: bool = False) -> tuple[list[float], float, Closing]:
    """Bounds that were published, the value reached, and the closing."""
    problem, dataset = case.problem, case.instance.dataset
    dual = Dual(problem, lambda tree: None)
    dual.evaluate(prices)
    assert dual.best is not None
    offer, published = case.offer(), []
    options: dict[str, Any] = {}
    if lattice:
        rounding = BoundRounding(problem.total_weight, problem.leaf_price, 2**problem.max_depth, bool(dataset.integral))
        options["goal"] = rounding.next_above
    closing = Closing(problem, dual.best, dual.bound, offer, Patience(calls), **options)

    def on_bound(bound: float) -> bool:
        published.append(bound)
        return False

    if closing.possible:
        closing.run(-np.inf, on_bound)
    return published, offer(case.trees[0]), closing


@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("seed", daily(range(4), 1))
def test_closing_finds_the_best_tree(seed: int, lattice: bool) -> None:
    """At any prices, good or bad; every bound on the way is valid, and the last one is what was found."""
    rng = np.random.default_rng([2, seed])
    for case in cases(50 + seed, 25):
        for _ in range(2):
            published, value, closing = closed(case, random_prices(rng, case.problem), lattice=lattice)
            assert closing.possible and published
            tolerance = 1e-9 * case.problem.total_weight
            assert all(bound >= case.best - tolerance for bound in published), case
            assert value == case.best or abs(value - case.best) <= tolerance
            assert published[-1] == case.best or abs(published[-1] - case.best) <= tolerance


@pytest.mark.parametrize("seed", daily(range(3), 1))
def test_closing_that_is_stopped(seed: int) -> None:
    """Bounds that were published until then are valid, and nothing is claimed of the rest."""
    rng = np.random.default_rng([3, seed])
    stopped = 0
    for case in cases(60 + seed, 25):
        for calls in (0, 1, 3, 10, 30):
            published, value, _ = closed(case, random_prices(rng, case.problem), calls)
            stopped += not published
            assert all(bound >= case.best - 1e-9 * case.problem.total_weight for bound in published)
            assert value <= case.best + 1e-9 * case.problem.total_weight
    assert stopped


@pytest.mark.parametrize("seed", daily(range(3), 2))
def test_closing_goes_through_every_outcome(seed: int) -> None:
    """With limits that all trees keep and nothing that is accepted, all outcomes within the slack are offered."""
    rng = np.random.default_rng([4, seed])
    for case in cases(70 + seed, 40):
        fields = vars_of(case.problem)
        problem = LimitedProblem(**{**fields, "upper": np.abs(case.problem.upper) + len(case.problem.X) + 10.0})
        prices = random_prices(rng, problem)
        dual = Dual(problem, lambda tree: None)
        dual.evaluate(prices)
        assert dual.best is not None
        offered: dict[bytes, float] = {}

        def offer(tree: DecisionTree, problem: Any = problem, offered: Any = offered) -> float:
            value, *used = problem.outcome(tree)
            key = np.round(used, 6).tobytes()
            offered[key] = max(float(value), offered.get(key, -np.inf))
            return -np.inf

        closing = Closing(problem, dual.best, dual.bound, offer, lambda: False)
        enough = float(rng.choice([0.0, 0.05, 0.1, 0.2])) * problem.total_weight
        closing.run(-np.inf, lambda bound, closing=closing, enough=enough: closing.slack > enough)
        for tree in case.trees:
            value, *used = problem.outcome(tree)
            if priced_value(problem, dual.best, tree) >= dual.bound - closing.slack:
                assert offered.get(np.round(used, 6).tobytes(), -np.inf) >= value - 1e-9 * problem.total_weight


@pytest.mark.parametrize("seed", daily(range(6), 1))
def test_closing_goes_through_every_outcome_below_the_second_level(seed: int) -> None:
    """The same with more points than trees of depth three tell apart, so that they lose something at every level."""
    rng = np.random.default_rng([6, seed])
    problem = telling_problem(rng, 4, 16, 3)
    X = problem.X
    dual = Dual(problem, lambda tree: None)
    dual.evaluate(np.zeros(1))
    assert dual.best is not None
    offered: dict[float, float] = {}

    def offer(tree: DecisionTree) -> float:
        value, used = problem.outcome(tree)
        offered[float(used)] = max(float(value), offered.get(float(used), -np.inf))
        return -np.inf

    closing = Closing(problem, dual.best, dual.bound, offer, lambda: False)
    closing.run(-np.inf, lambda bound: closing.slack > 12.0)
    checked = 0
    for _, _, tree in reachable(X, 2, 3):
        value, used = problem.outcome(tree)
        if priced_value(problem, dual.best, tree) >= dual.bound - closing.slack:
            assert offered.get(float(used), -np.inf) >= value - 1e-9
            checked += 1
    assert checked >= 10


def telling_problem(rng: np.random.Generator, n_features: int, n_points: int, max_depth: int) -> LimitedProblem:
    """One limit, and what is used of it tells what is predicted."""
    rows = rng.permutation(2**n_features)[:n_points]
    X = np.array([[row >> place & 1 for place in range(n_features)] for row in rows], dtype=bool)
    gains = rng.integers(0, 12, (n_points, 2)).astype(float)
    uses = np.zeros((1, n_points, 2))
    uses[0, :, 1] = 2.0 ** np.arange(n_points)
    return problem_of(X, gains, uses, np.array([1e6]), 0.5, max_depth)


@pytest.mark.parametrize("seed", daily(range(4), 1))
def test_outcomes_of_the_sides_of_a_root(seed: int) -> None:
    """For depth four: all that trees of depth three come to on a side, as far as the slack goes, and nothing else."""
    rng = np.random.default_rng([7, seed])
    problem = telling_problem(rng, 5, 20, 4)
    priced = problem.priced(np.zeros(1))
    closing = Closing(problem, priced, np.inf, lambda tree: -np.inf, lambda: False)
    columns, *priced_sides = problem.side_tables(priced, None, lambda: False).sides()
    features, lost_more = columns.tolist(), 0
    for feature in range(5):
        for side in (False, True):
            points = np.flatnonzero(problem.X[:, feature] == side)
            part = replace(problem, X=problem.X[points], gains=problem.gains[points], uses=problem.uses[:, points])
            expected = {float(u): float(v) for v, u in (part.outcome(t) for *_, t in reachable(part.X, 2, 3))}
            best = max(expected.values())
            slack = float(rng.integers(2, 9)) + 0.25
            earned = float(priced_sides[int(side)][features.index(feature)])
            found = closing.collected(points, 3, earned, earned - slack, ((feature, side),))
            assert dict(zip(found.results[:, 1], found.results[:, 0], strict=True)) == {
                used: value for used, value in expected.items() if value >= best - slack
            }
            assert np.allclose(found.loss, best - found.results[:, 0]) and (np.diff(found.loss) >= 0).all()
            for place in range(found.loss.size):
                assert part.outcome(found.tree(place)).tolist() == found.results[place].tolist()
            lost_more += found.loss.size > 3
    assert lost_more


def test_root_by_root() -> None:
    """Prices of its own for every root find the best tree; bounds are valid also when nothing may be enumerated."""
    for case in cases(90, 40):
        problem = case.problem
        if problem.max_depth < 2:
            continue
        for patience in (10**9, 0, 1, 2, 4, 8, 16, 32):
            left, bounds, values = [patience], [np.inf], [-np.inf]

            def offer(tree: DecisionTree, case: Any = case, values: Any = values) -> float:
                if not any(
                    constraint.bind(case.instance.dataset).violation(tree) > 0 for constraint in case.constraints
                ):
                    values[0] = max(values[0], float(case.problem.outcome(tree)[0]))
                return float(values[0])

            def stop(left: Any = left) -> bool:
                left[0] -= 1
                return bool(left[0] < 0)

            for label in range(problem.gains.shape[1]):
                offer(DecisionTree.leaf(label, problem.max_depth))
            dual = Dual(problem, offer)
            dual.evaluate(np.zeros(problem.n_limits))
            assert dual.best is not None
            start = Closing(problem, dual.best, dual.bound, offer, lambda: False)
            if not start.possible:
                continue
            roots = RootByRoot(problem, dual.best, start.root_bounds(), offer, lambda value: value, stop)
            roots.run(values[0], lambda bound, bounds=bounds: bool(bounds.append(bound)))
            noise = 1e-8 * problem.total_weight
            assert all(bound >= case.best - noise for bound in bounds)
            if patience == 10**9:
                assert values[0] == pytest.approx(case.best, abs=noise) or case.best == -np.inf
                assert bounds[-1] <= max(case.best, values[0]) + noise


def test_repair_finds_the_best_subtrees_of_a_top() -> None:
    """Depth three, from every root: never a tree that breaks a limit, and mostly the best one."""
    found = []
    for case in cases(95, 240, max_depth=3):
        problem, offer = case.problem, case.offer()
        dual = Dual(problem, lambda tree: None)
        dual.evaluate(np.zeros(problem.n_limits))
        assert dual.best is not None
        repair = Repair(problem, dual.best, offer, lambda: False)
        if not repair.possible:
            continue
        leaf = max(offer(DecisionTree.leaf(label, problem.max_depth)) for label in range(problem.gains.shape[1]))
        if leaf == case.best:
            continue
        repair.run(
            DecisionTree.branch(feature, DecisionTree.leaf(0), DecisionTree.leaf(0))
            for feature in range(problem.X.shape[1])
        )
        value, noise = offer(DecisionTree.leaf(0, problem.max_depth)), 1e-8 * problem.total_weight
        assert value <= case.best + noise
        found.append(value >= case.best - noise)
    assert len(found) >= 20 and sum(found) >= 0.75 * len(found)


@pytest.mark.parametrize("seed", range(20))
def test_the_lowest_point_of_planes(seed: int) -> None:
    """No point of a grid in the box is lower; with one price, it is where lines say."""
    rng = np.random.default_rng([701, seed])
    n_prices = 1 + seed % 2
    planes, box = rng.normal(size=(6, n_prices + 1)), rng.uniform(0.5, 2.0, n_prices)
    place, top = _lowest_of_planes(planes, box)
    assert np.all((place >= 0) & (place <= box + 1e-9))
    assert (planes[:, :-1] @ place + planes[:, -1]).max() == pytest.approx(top)
    axes = [np.linspace(0.0, limit, 41) for limit in box]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, n_prices)
    assert (grid @ planes[:, :-1].T + planes[:, -1]).max(axis=1).min() >= top - 1e-9
    if n_prices == 1:
        assert _lowest_of_lines(planes[:, 0], planes[:, 1], box[0])[1] == pytest.approx(top)


def test_no_limits_at_all() -> None:
    """Constraints may come to nothing: groups without weight have no rate."""
    case = cases(80, 1)[0]
    fields = vars_of(case.problem)
    shape = (0, *case.problem.gains.shape)
    problem = LimitedProblem(**{**fields, "uses": np.zeros(shape), "leaf_uses": np.zeros(0), "upper": np.zeros(0)})
    best = max(float(problem.outcome(tree)[0]) for tree in case.trees)
    free = Case(case.instance, problem, [], case.trees, best)
    dual = Dual(problem, lambda tree: None)
    dual.run(lambda: -np.inf)
    assert dual.bound == pytest.approx(best)
    assert closed(free, np.zeros(0))[1] == pytest.approx(best)
