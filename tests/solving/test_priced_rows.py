"""What prices leave open goes to the solver: rows that hold for every tree, closed roots, and the right answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.constrained_solves import check_predictions
from helpers.constraint_support import KINDS, random_constraint, random_prices, small_instance
from helpers.mip_support import skip_unless_available
from helpers.selection import daily
from oracles.instances import Instance
from oracles.outcomes import reachable
from scipy.optimize import Bounds, LinearConstraint, milp

from accel_oct.constraints import MinLeafWeight, Recall, StatisticalParity
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.formulation import Incumbent, Master
from accel_oct.mip import Rows
from accel_oct.pricing import Closing, Dual, PricedSearch, RootBounds, RootByRoot
from accel_oct.solving.config import Config
from accel_oct.solving.priced_rows import add_priced_rows, closed_roots, price_row
from accel_oct.solving.problem import BoundRounding
from accel_oct.tree import DecisionTree

NOISE = 1e-6


def random_case(
    rng: np.random.Generator, max_depth: int = 4, n_classes: int | None = None
) -> tuple[Instance, list[Any], LimitedProblem]:
    """Limits on predictions among them, and sometimes columns that split nothing or equal another."""
    while True:
        instance = small_instance(rng, max_depth=max_depth)
        if n_classes not in (None, instance.dataset.n_classes):
            continue
        n, n_features = instance.X.shape
        extra = [np.zeros(n, dtype=int), np.ones(n, dtype=int), *(1 - instance.X.T), *instance.X.T]
        chosen = [extra[int(i)] for i in rng.integers(0, len(extra), int(rng.integers(0, 3)))]
        order = rng.permutation(n_features + len(chosen))
        instance = replace(instance, X=np.column_stack([instance.X, *chosen])[:, order])
        kinds = rng.choice(len(KINDS), int(rng.integers(1, 4)))
        constraints = [random_constraint(rng, KINDS[int(kind)], instance) for kind in kinds]
        limits = [limit for constraint in constraints for limit in constraint.bind(instance.dataset).traits.limits]
        if all(limit.leaves >= 0 for limit in limits) and any(limit.predictions is not None for limit in limits):
            problem = LimitedProblem.of(instance.dataset, limits, instance.leaf_price, instance.max_depth)
            return instance, constraints, problem


def master_of(instance: Instance, constraints: list[Any], merged: bool = True) -> Master:
    data = instance.dataset
    master = Master(
        data.merged() if merged else data,
        instance.max_depth,
        instance.leaf_price,
        integral_predictions=True,
        original=data,
    )
    for constraint in constraints:
        constraint.bind(data).add_to(master)
    assert master.predictions is not None
    return master


def random_tree(rng: np.random.Generator, instance: Instance, depth: int) -> DecisionTree:
    """Any: empty leaves, features twice on a path, columns that split nothing."""
    if depth == 0 or rng.random() < 0.2:
        return DecisionTree.leaf(int(rng.integers(instance.dataset.n_classes)))
    zero, one = (random_tree(rng, instance, depth - 1) for _ in range(2))
    return DecisionTree.branch(int(rng.integers(instance.X.shape[1])), zero, one)


def trees_of(rng: np.random.Generator, instance: Instance) -> Iterator[DecisionTree]:
    """Everything that can be predicted, by trees with the fewest leaves; the same below any root; and others."""
    for _, _, tree in reachable(instance.X, instance.dataset.n_classes, instance.max_depth):
        yield tree
    for _ in range(100):
        yield random_tree(rng, instance, instance.max_depth)


def knowledge_at(rng: np.random.Generator, problem: LimitedProblem) -> RootBounds:
    """At random prices, common ones and those of single roots, some with tables."""
    common, own = [], []
    for _ in range(3):
        dual = Dual(problem, lambda tree: None)
        bound = dual.evaluate(random_prices(rng, problem))
        assert dual.best is not None
        closing = Closing(problem, dual.best, bound, lambda tree: -np.inf, lambda: False)
        assert closing.most == pytest.approx(bound, rel=1e-9, abs=1e-9 * problem.total_weight)
        common.append((dual.best, bound, closing.root_bounds() if rng.random() < 0.7 else {}))
    for root in [f for f, bound in closing.root_bounds().items() if bound > -np.inf][:2]:
        dual = Dual(problem, lambda tree: None, root=root)
        dual.evaluate(random_prices(rng, problem))
        assert dual.best is not None
        own.append((root, dual.best, dual.bound))
    return RootBounds.of(problem, common, own, {})


def told(master: Master, known: RootBounds, incumbent: Incumbent) -> Rows:
    """The rows that are added; the last one closes roots, if any are."""
    before = master.model.rows.n_rows
    add_priced_rows(master, known, incumbent, lambda value: value)
    return master.model.rows.take(np.arange(before, master.model.rows.n_rows))


# ---------------------------------------------------------------- rows


@pytest.mark.daily(1)
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_rows_hold_for_every_tree(n_classes: int) -> None:
    """Those of prices for all trees, that of values for all that satisfy the constraints; and some are tight."""
    rng = np.random.default_rng([900, n_classes])
    tight = 0
    for _ in range(8):
        instance, constraints, problem = random_case(rng, n_classes=n_classes)
        known = knowledge_at(rng, problem)
        master = master_of(instance, constraints, merged=bool(rng.random() < 0.5))
        rows = told(master, known, Incumbent(master.dataset, instance.leaf_price))
        bound = [constraint.bind(instance.dataset) for constraint in constraints]
        rows = rows.take(np.arange(min(rows.n_rows, 1 + len(known.prices))))
        least = np.full(rows.n_rows, np.inf)
        for tree in trees_of(rng, instance):
            x = master.lift(tree)
            left = rows.upper - rows.activity(x)
            if any(constraint.violation(tree) > 0 for constraint in bound):
                left[0] = 0.0
            assert left.min() >= 0.0, (instance, constraints, tree, left)
            least = np.minimum(least, left)
        tight += int((least[1:] < NOISE).sum())
    assert tight > 8


@pytest.mark.parametrize("seed", daily(range(3), 1))
def test_rows_under_local_rules(seed: int) -> None:
    """They need only hold for trees that satisfy the rules."""
    rng = np.random.default_rng([910, seed])
    kept = 0
    for _ in range(8):
        instance, constraints, problem = random_case(rng)
        rule = MinLeafWeight(float(rng.choice([0.1, 0.3]) * instance.dataset.total_weight)).bind(instance.dataset)
        limits = [limit for constraint in constraints for limit in constraint.bind(instance.dataset).traits.limits]
        problem = LimitedProblem.of(
            instance.dataset, limits, instance.leaf_price, instance.max_depth, rule.traits.local
        )
        master = master_of(instance, constraints)
        rows = told(master, knowledge_at(rng, problem), Incumbent(master.dataset, instance.leaf_price))
        bound = [constraint.bind(instance.dataset) for constraint in constraints]
        for tree in trees_of(rng, instance):
            if rule.violation(tree) <= 0:
                left = rows.upper - rows.activity(master.lift(tree))
                if any(constraint.violation(tree) > 0 for constraint in bound):
                    left[0] = 0.0
                assert left.min() >= 0.0, (instance, constraints, rule, tree)
                kept += 1
    assert kept > 50


def relaxation(master: Master, root: int | None = None) -> float:
    """The largest value of the linear relaxation, without a single Benders cut; with the root fixed."""
    model, rows = master.model, master.model.rows
    matrix = np.zeros((rows.n_rows, model.n_columns))
    matrix[rows.row_of_entry, rows.columns] = rows.values
    lower = model.lower.copy()
    if root is not None:
        lower[master.b.index[0, root]] = 1.0
    within = LinearConstraint(matrix, rows.lower, rows.upper)
    solved = milp(-model.objective, constraints=within, bounds=Bounds(lower, model.upper))
    return -np.inf if solved.x is None else -float(solved.fun) / master.scale


@pytest.mark.parametrize("seed", daily(range(3), 1))
def test_the_relaxation_is_no_worse_than_the_multipliers(seed: int) -> None:
    """All rows together, those of prices alone, and below each root."""
    rng = np.random.default_rng([915, seed])
    better = 0
    for _ in range(10):
        instance, constraints, problem = random_case(rng, max_depth=2)
        noise = NOISE * problem.total_weight
        known = knowledge_at(rng, problem)
        master, bare = master_of(instance, constraints), relaxation(master_of(instance, constraints))
        no_tree = Incumbent(master.dataset, instance.leaf_price)
        assert not closed_roots(known, no_tree, lambda value: value).any()
        add_priced_rows(master, known, no_tree, lambda value: value)
        largest = max(known.leaf, float(known.bounds.max()))
        assert relaxation(master) <= largest + noise
        better += largest < bare - noise
        for root, bound in enumerate(known.bounds.tolist()):
            assert relaxation(master, root) <= bound + noise
        for price in known.prices:
            alone = master_of(instance, constraints)
            row = price_row(alone, price)
            if row is not None:
                alone.model.add_rows(row)
                size = float(price.priced.weights.max(axis=1).sum())
                bound = max(price.leaf, float(price.roots.max())) + price.priced.constant
                assert relaxation(alone) <= bound + noise + NOISE * size
    assert better > 1


# ---------------------------------------------------------------- closed roots


@pytest.mark.parametrize("seed", daily(range(3), 1))
def test_closed_roots_hold_no_better_tree(seed: int) -> None:
    """Whatever tree is known, by the lattice of values too; its own root stays open."""
    rng = np.random.default_rng([920, seed])
    closed_ones = 0
    for _ in range(15):
        instance, constraints, problem = random_case(rng)
        data = instance.dataset
        bound = [constraint.bind(data) for constraint in constraints]
        known = knowledge_at(rng, problem)
        rounding = BoundRounding(data.total_weight, instance.leaf_price, 2**instance.max_depth, data.integral)
        kept = [t for t in trees_of(rng, instance) if all(constraint.violation(t) <= 0 for constraint in bound)]
        values = [float(problem.outcome(tree)[0]) for tree in kept]
        for place in rng.permutation(len(kept))[:10].tolist():
            incumbent = Incumbent(data, instance.leaf_price)
            incumbent.offer(kept[place].with_max_depth(instance.max_depth))
            closed = closed_roots(known, incumbent, rounding.next_above)
            closed_ones += int(closed.sum())
            root = int(kept[place].feature[0])
            assert root < 0 or not closed[root]
            _check_excluded(master_of(instance, constraints), known, incumbent, closed)
            for tree, value in zip(kept, values, strict=True):
                if tree.feature[0] >= 0 and closed[tree.feature[0]]:
                    assert value <= values[place] + 1e-9 * data.total_weight, (instance, constraints, tree)
        without = closed_roots(known, Incumbent(data, instance.leaf_price), rounding.next_above)
        assert not any(tree.feature[0] >= 0 and without[tree.feature[0]] for tree in kept)
    assert closed_ones > 20


def _check_excluded(
    master: Master, known: RootBounds, incumbent: Incumbent, closed: np.ndarray[Any, np.dtype[np.bool_]]
) -> None:
    """Of the rows that are added, those of closed roots are broken by trees with these roots, and by no other."""
    before, told = master.model.rows.n_rows, closed_roots(known, incumbent, lambda value: value)
    assert not (told & ~closed).any()  # the lattice closes more
    add_priced_rows(master, known, incumbent, lambda value: value)
    rows = master.model.rows.take(np.arange(before, master.model.rows.n_rows))
    assert incumbent.tree is not None and rows.violation(master.lift(incumbent.tree)).max() <= NOISE
    for root in range(closed.size):
        tree = DecisionTree.branch(root, DecisionTree.leaf(0), DecisionTree.leaf(0))
        assert (rows.violation(master.lift(tree))[-1] > 0.5) or not told[root]


# ---------------------------------------------------------------- the solver goes on


def uneven_case(rng: np.random.Generator) -> tuple[Instance, list[Any]]:
    """Many rows on few points, and a protected group: some roots are far worse than others, and prices leave a gap."""
    n, points = 60, rng.permutation(16)[:7]
    X = (points[rng.integers(0, 7, n), None] >> np.arange(4)) & 1
    group, noise = rng.integers(0, 2, n), rng.random(n) < 0.2
    y = (X[:, 0] & (X[:, 1] | group)) ^ noise
    y[:2] = group[:2] = 0, 1
    constraints = [StatisticalParity(group, 0.02), Recall(at_least=float(rng.choice([0.3, 0.6])))]
    return Instance(X, y, None, 0.005, int(rng.integers(1, 3))), constraints


def stop_pricing(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Nothing is enumerated: bounds of common prices, of all roots, or of each by its own prices are all there is."""
    if how == "common prices":
        monkeypatch.setattr(PricedSearch, "close", lambda self: None)
        return
    monkeypatch.setattr(Closing, "run", lambda self, value, on_bound: None)
    if how == "root bounds":
        monkeypatch.setattr(RootByRoot, "run", lambda self, value, on_bound: None)


@pytest.mark.slow
@pytest.mark.parametrize("how", daily(["root by root", "root bounds", "common prices"], 1))
@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_the_solver_finishes(backend: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right answer, with valid bounds all the way, where enumeration is given up at once."""
    skip_unless_available(backend)
    stop_pricing(monkeypatch, how)
    rng = np.random.default_rng(930)
    handed, closed = 0, 0
    for _ in range(20):
        instance, constraints = uneven_case(rng) if rng.random() < 0.5 else random_case(rng, max_depth=2)[:2]
        result = check_predictions(instance, constraints, solver=backend)
        if "price_rows" in result.stats:
            handed += 1
            closed += result.stats["price_rows"]["closed_roots"]
    assert handed >= 3
    assert closed >= 1 or how == "common prices"


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rows the solver works alone."""
    stop_pricing(monkeypatch, "root bounds")
    rng = np.random.default_rng(940)
    alone = replace(Config.preset("default"), price_rows=False)
    for _ in range(8):
        instance, constraints, _ = random_case(rng, max_depth=2)
        assert "price_rows" not in check_predictions(instance, constraints, config=alone).stats
