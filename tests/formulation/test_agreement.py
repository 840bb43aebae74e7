"""Rows, cuts, limits and local rules that contradict the trees that are allowed are errors, never a wrong "optimal"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from helpers.constraint_support import KINDS, random_constraint, small_instance
from helpers.mip_support import skip_unless_available

import accel_oct
from accel_oct.constraints import (
    BoundConstraint,
    Constraint,
    FeatureBudget,
    LinearLimit,
    MaxLeaves,
    MinLeafWeight,
    Traits,
)
from accel_oct.cuts.no_goods import no_good
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master, Response, TreePoint
from accel_oct.formulation.agreement import Agreement, broken_row
from accel_oct.mip import Cuts, Event, InvalidCutError, Needs, Rows, Validity
from accel_oct.tree import DecisionTree
from accel_oct.tree.sample_trees import every_tree, some_trees

PRESETS = ("default", "baseline", "paper")


def random_data() -> tuple[np.ndarray, np.ndarray]:
    """80 x 6, a rule with noise: the best tree of depth 3 has six leaves and x3 at its root."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (80, 6))
    return X, (X[:, 0] & X[:, 1] | X[:, 2] & X[:, 3]) ^ (rng.random(80) < 0.12)


def solved(depth: int = 3, **arguments: Any) -> Any:
    X, y = random_data()
    return accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.005, **arguments)


@dataclass(frozen=True)
class Anything(Constraint, BoundConstraint):
    """A constraint that all trees keep; subclasses say something else besides."""

    name = "anything"
    declared = Traits()

    def bind(self, dataset: BinaryDataset) -> Any:
        return self

    @property
    def traits(self) -> Traits:
        return self.declared

    def violation(self, tree: DecisionTree) -> float:
        return 0.0

    def add_to(self, master: Master) -> None:
        pass


class Silent:
    """A component that says nothing."""

    name = "silent"
    needs = Needs()

    def __init__(self, master: Master) -> None:
        pass

    def respond(self, point: TreePoint) -> Response | None:
        return None


# ---------------------------------------------------------------- components


class AtMostThreeLeaves(Silent):
    def __init__(self, master: Master) -> None:
        master.model.add_rows(Rows.single(master.p.index, 1.0, upper=3.0), "at most three leaves")


@pytest.mark.parametrize("preset", PRESETS)
def test_a_component_may_not_forbid_trees_by_rows(preset: str) -> None:
    """It said "optimal" of a tree with six leaves, and wrote "the start is not feasible" into the log."""
    with pytest.raises(InvalidInputError, match=r"components\[0\] \(AtMostThreeLeaves\).*Use constraints="):
        solved(config=preset, components=[AtMostThreeLeaves])


def test_rows_that_forbid_the_best_tree_alone_are_noticed_when_it_is_found() -> None:
    """No tree is tried that breaks them, until the tables find the one that does."""
    best = solved(depth=2).tree

    class NotTheBest(Silent):
        def __init__(self, master: Master) -> None:
            master.model.add_rows(no_good(master, best), "not the best")

    with pytest.raises(InvalidInputError, match=r"components\[0\] \(NotTheBest\)"):
        solved(depth=2, components=[NotTheBest])


@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_cuts_that_are_called_implied_and_are_not(backend: str) -> None:
    """A cut that forbids trees that are known is named with its component."""
    skip_unless_available(backend)

    class FewLeaves(Silent):
        needs = Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.IMPLIED])

        def __init__(self, master: Master) -> None:
            self.row = Rows.single(master.p.index, 1.0, upper=2.0)

        def respond(self, point: TreePoint) -> Response | None:
            return Response((Cuts(self.row, Validity.IMPLIED, self.name),))

    with pytest.raises(InvalidCutError, match=r"components\[0\] \(FewLeaves\): its IMPLIED cuts forbid a tree"):
        solved(depth=2, solver=backend, config="baseline", components=[FewLeaves])


def test_a_component_may_add_columns_of_its_own() -> None:
    """Rows about own columns that a lift fills are no restriction; nothing is refused."""

    class DepthUsed(Silent):
        def __init__(self, master: Master) -> None:
            used = master.model.add_block("root used", 1, integer=True)
            columns = [used.index[0], *master.b.index[0]]
            values = [1.0, *[-1.0] * master.b.index.shape[1]]
            master.model.add_rows(Rows.single(columns, values, lower=0.0, upper=0.0))
            master.add_lift(lambda tree, x: used.view(x).__setitem__(0, float(tree.feature[0] >= 0)))

    assert solved(depth=2, components=[DepthUsed]).objective == solved(depth=2).objective


# ---------------------------------------------------------------- constraints


@dataclass(frozen=True)
class NotAtTheRoot(Anything):
    """Rows that forbid a root, which the definition allows."""

    feature: int = 3
    name = "not at the root"

    def add_to(self, master: Master) -> None:
        master.model.add_rows(Rows.single([master.b.index[0, self.feature]], 1.0, upper=0.0), self.name)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_rows_that_forbid_what_violation_allows(backend: str, preset: str) -> None:
    """The same error whether a solver has to run or not."""
    skip_unless_available(backend)
    with pytest.raises(InvalidInputError, match=r"`not at the root`: its rows forbid a tree.*'x3' at its root"):
        solved(solver=backend, config=preset, constraints=[NotAtTheRoot()])


class NoLift(Anything):
    """Own columns that are one where the tree branches, and no lift."""

    name = "no lift"

    def add_to(self, master: Master) -> None:
        b = master.b.index
        used = master.model.add_block("used", b.shape[1], integer=True)
        for feature in range(b.shape[1]):
            for node in b[:, feature]:
                master.model.add_rows(Rows.single([node, used.index[feature]], [1.0, -1.0], upper=0.0), self.name)


class BadLift(NoLift):
    name = "bad lift"

    def add_to(self, master: Master) -> None:
        super().add_to(master)
        master.add_lift(lambda tree, x: master.model.blocks["used"].view(x).__setitem__(slice(None), 0.5))


class NanLift(NoLift):
    name = "nan lift"

    def add_to(self, master: Master) -> None:
        super().add_to(master)
        master.add_lift(lambda tree, x: master.model.blocks["used"].view(x).__setitem__(slice(None), np.nan))


class ForeignLift(Anything):
    name = "foreign lift"

    def add_to(self, master: Master) -> None:
        master.add_lift(lambda tree, x: master.theta.view(x).__setitem__(slice(None), 1.0))


class Priced(Anything):
    name = "priced"

    def add_to(self, master: Master) -> None:
        master.model.add_block("bonus", 1, objective=5.0)


class StrictLocal(Anything):
    """Local rules that ask for leaves of ten samples."""

    name = "strict local"

    def bind(self, dataset: BinaryDataset) -> Any:
        bound = type(self)()
        object.__setattr__(bound, "declared", Traits(local=LocalRules.leaves(dataset.weights, 10.0)))
        return bound


class LaxLocal(StrictLocal):
    """A definition that asks for more leaves than the local rules do."""

    name = "lax local"

    def bind(self, dataset: BinaryDataset) -> Any:
        bound = type(self)()
        object.__setattr__(bound, "declared", Traits(local=LocalRules.pairs(*dataset.X.shape, [(0, 1)])))
        return bound

    def violation(self, tree: DecisionTree) -> float:
        return float(tree.n_leaves == 2)


class TightLimit(Anything):
    name = "tight limit"

    declared = Traits(limits=(LinearLimit("few leaves", None, 2.0, leaves=1.0),))


class WrongLeaves(Anything):
    name = "wrong leaves"
    declared = Traits(leaves=2)


class WrongFeatures(Anything):
    name = "wrong features"

    def bind(self, dataset: BinaryDataset) -> Any:
        bound, places = type(self)(), np.arange(dataset.n_features)
        object.__setattr__(bound, "declared", Traits(features=FeatureBudget(places, np.ones(places.size), 1.0)))
        return bound


@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (NoLift(), "rows forbid a tree.*its own columns are all zero there: fill them by `master.add_lift`"),
        (BadLift(), "out of bounds or fractional"),
        (NanLift(), "its lift writes a NaN"),
        (ForeignLift(), "its lift writes into columns of the tree"),
        (Priced(), "with a coefficient in the objective"),
        (StrictLocal(), "its `traits.local` forbids a tree that its `violation` allows"),
        (LaxLocal(), "its `traits.local` allows a tree that its `violation` forbids"),
        (TightLimit(), "its `traits.limits` forbids a tree that its `violation` allows"),
        (WrongLeaves(), "its `traits.leaves` forbids a tree that its `violation` allows"),
        (WrongFeatures(), "its `traits.features` forbids a tree that its `violation` allows"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_a_constraint_says_twice_must_agree(constraint: Any, words: str, preset: str) -> None:
    """Rows, lifts, limits and local rules; the error names the constraint."""
    with pytest.raises(InvalidInputError, match=f"constraints: `{constraint.name}`.*{words}"):
        solved(depth=2, config=preset, constraints=[constraint])


def test_the_frontier_compares_local_rules_too() -> None:
    X, y = random_data()
    with pytest.raises(InvalidInputError, match=r"`strict local`: its `traits.local` forbids"):
        accel_oct.frontier(X, y, max_depth=2, constraints=[StrictLocal()])


@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_forbidding_too_much(backend: str) -> None:
    """`forbid` may cut off no tree that is allowed: a whole root instead of the tree that breaks the rule."""
    skip_unless_available(backend)

    @dataclass(frozen=True)
    class FewLeaves(Anything):
        name = "few leaves"

        def violation(self, tree: DecisionTree) -> float:
            return float(tree.n_leaves - 3)

        def forbid(self, tree: DecisionTree, master: Master) -> Rows:
            return Rows.single(master.p.index[:1], 1.0, lower=1.0)

    with pytest.raises(InvalidCutError, match="`few leaves`: the rows of its `forbid` forbid a tree"):
        solved(depth=2, solver=backend, config="baseline", constraints=[FewLeaves()])


# ---------------------------------------------------------------- no false alarms


def test_rounding_is_no_contradiction() -> None:
    """A row with large terms may be missed by rounding; one with small terms only by the tolerance of feasibility."""
    x = np.array([1.0, 1.0])
    assert broken_row(Rows.single([0, 1], [1e9, 1e9], upper=2e9 - 0.1), x) is None
    assert broken_row(Rows.single([0, 1], [1e9, 1e9], upper=2e9 - 10.0), x) == (0, 10.0)
    assert broken_row(Rows.single([0, 1], [0.5, 0.5], upper=1.0 - 1e-7), x) is None
    assert broken_row(Rows.single([0, 1], [0.5, 0.5], upper=1.0 - 1e-5), x) is not None


class Disguised(Constraint, BoundConstraint):
    """A constraint of the library in a class that is not, so that all of it is compared with trees."""

    def __init__(self, constraint: Any) -> None:
        self._constraint = constraint

    def bind(self, dataset: BinaryDataset) -> Any:
        return Disguised(self._constraint.bind(dataset))

    @property
    def name(self) -> str:
        return str(self._constraint.name)

    @property
    def traits(self) -> Traits:
        declared: Traits = self._constraint.traits
        return declared

    def violation(self, tree: DecisionTree) -> float:
        return float(self._constraint.violation(tree))


@pytest.mark.parametrize("count", [pytest.param(3, id="quick"), pytest.param(100, id="long", marks=pytest.mark.long)])
@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_constraints_that_agree_are_left_alone(kind: type, preset: str, count: int) -> None:
    """Weights of 1e-12 to 1e3, limits that some trees meet exactly: nothing is refused, and the answer is the same."""
    rng = np.random.default_rng([91, KINDS.index(kind)])
    for _ in range(count):
        instance = small_instance(rng, max_depth=2)
        if rng.random() < 0.5:
            instance = replace(instance, sample_weight=10.0 ** rng.uniform(-12, 3, len(instance.y)))
        rules = [random_constraint(rng, kind, instance), MinLeafWeight(samples=int(rng.integers(0, 3)))]
        plain, compared = (
            accel_oct.solve(
                instance.X,
                instance.y,
                sample_weight=instance.sample_weight,
                max_depth=instance.max_depth,
                leaf_penalty=instance.leaf_penalty,
                config=preset,
                constraints=constraints,
            )
            for constraints in (rules, [Disguised(rule) for rule in rules])
        )
        assert (compared.status, compared.objective) == (plain.status, pytest.approx(plain.objective, abs=1e-6))


def test_each_tree_is_lifted_once() -> None:
    """What was compared is not compared again, and a growing list is gone through once."""
    X, y = random_data()
    master = Master(BinaryDataset.from_arrays(X, y), 2, 0.0)
    agreement, lifted = Agreement(master), []
    with agreement.written_by("constraints: `x`", MaxLeaves(4)):
        master.add_lift(lambda tree, x: lifted.append(tree))
    trees = list(some_trees(master.dataset, 2))
    agreement.check_all(trees)
    agreement.check_all([*trees, trees[0]])
    for tree in trees:
        agreement.probe(tree)
    assert len(lifted) == len({(tree.feature.tobytes(), tree.label.tobytes()) for tree in trees})


@dataclass(frozen=True)
class AtMostThree(Anything):
    """At most three leaves, and no rows about it."""

    def violation(self, tree: DecisionTree) -> float:
        return max(0.0, tree.n_leaves - 3.0)


def test_a_tree_that_breaks_a_rule_is_compared_with_other_rules() -> None:
    """A rule that allows the tree may not forbid it by rows; a component may forbid what a rule forbids."""
    X, y = random_data()
    master = Master(BinaryDataset.from_arrays(X, y), 2, 0.0)
    trees = list(some_trees(master.dataset, 2))
    small, large = (next(tree for tree in trees if tree.n_leaves == leaves) for leaves in (2, 4))
    agreement = Agreement(master)
    with agreement.written_by("rule", AtMostThree()):
        pass
    with agreement.written_by("component"):
        master.model.add_rows(Rows.single(master.p.index, 1.0, upper=3.0))
    for tree in (small, large):
        agreement.probe(tree)
    with agreement.written_by("other rule", Anything()):
        master.model.add_rows(no_good(master, large))
    with pytest.raises(InvalidInputError, match="other rule"):
        agreement.probe(large)


def test_a_component_is_compared_with_trees_that_all_rules_allow() -> None:
    X, y = random_data()
    master = Master(BinaryDataset.from_arrays(X, y), 2, 0.0)
    agreement = Agreement(master)
    with agreement.written_by("rule", AtMostThree()):
        pass
    with agreement.written_by("component"):
        master.model.add_rows(Rows.single(master.p.index, 1.0, upper=1.0))
    with pytest.raises(InvalidInputError, match="component"):
        agreement.probe(next(tree for tree in some_trees(master.dataset, 2) if tree.n_leaves == 2))


def test_trees_to_try() -> None:
    """Every tree once, as many as the formula says; some trees of any shape, none too deep, few on many rows."""
    trees = list(every_tree(3, 2, 2))
    assert len({(tree.feature.tobytes(), tree.label.tobytes()) for tree in trees}) == len(trees) == 590
    X, y = random_data()
    some = list(some_trees(BinaryDataset.from_arrays(X, y), 3))
    assert {tree.max_depth for tree in some} == {3} and max(tree.n_leaves for tree in some) == 8
    assert {int(tree.feature[0]) for tree in some} == {-1, *range(6)}
    many = BinaryDataset.from_arrays(np.tile(X, (5000, 1)), np.tile(y, 5000))
    assert len(list(some_trees(many, 3))) < len(some) / 2


class WritesLate(Constraint, BoundConstraint):
    """At most two leaves, by a row that comes with the third question about a tree."""

    name = "writes late"

    def bind(self, dataset: BinaryDataset) -> WritesLate:
        self.master: Master | None = None
        self.questions = 0
        return self

    def add_to(self, master: Master) -> None:
        self.master = master

    def violation(self, tree: DecisionTree) -> float:
        self.questions += 1
        if self.master is not None and self.questions == 3:
            self.master.model.add_rows(Rows.single(self.master.p.index, 1.0, upper=2.0))
        return 0.0


class ComponentThatWritesLate:
    """The same where its needs are asked for."""

    name = "writes late"

    def __init__(self, master: Master) -> None:
        self.master = master

    @property
    def needs(self) -> Needs:
        self.master.model.add_rows(Rows.single(self.master.p.index, 1.0, upper=2.0))
        return Needs()

    def respond(self, point: TreePoint) -> None:
        pass


@pytest.mark.parametrize("preset", ["paper", "baseline"])
def test_rows_that_come_late_are_refused(preset: str) -> None:
    """Rows that no tree was compared with: it was "optimal" with what they left."""
    with pytest.raises(InvalidInputError, match=r"added to the master after it was built.*writes late"):
        solved(config=preset, constraints=[WritesLate()])
    with pytest.raises(InvalidInputError, match=r"added to the master after it was built.*ComponentThatWritesLate"):
        solved(config=preset, components=[ComponentThatWritesLate])
