"""Every constraint of the library passes the suite that ships in the package, and broken ones do not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.tree_rules import few_ones_per_half, no_feature_twice, same_feature

import accel_oct
from accel_oct import constraints
from accel_oct.constraints import (
    BoundConstraint,
    Constraint,
    FeatureBudget,
    LinearLimit,
    MaxLeaves,
    MinLeafWeight,
    Traits,
)
from accel_oct.constraints.conformance import Check, ConstraintFactory, cases, checks, compare
from accel_oct.data import BinaryDataset
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedRows

#: The constraints of the library, by class: one way or more to make each of them for a data set. All but the first of
#: a class are slow tests.
BUILT_IN: dict[str, list[ConstraintFactory]] = {
    "MaxLeaves": [lambda data: constraints.MaxLeaves(2), lambda data: constraints.MaxLeaves(1)],
    "MaxFeatures": [lambda data: constraints.MaxFeatures(1), lambda data: constraints.MaxFeatures(0)],
    "FeatureCosts": [lambda data: constraints.FeatureCosts(0.3 + np.arange(data.n_features), at_most=1.3)],
    "ForbiddenFeatures": [lambda data: constraints.ForbiddenFeatures([0])],
    "ForbiddenPairs": [
        lambda data: constraints.ForbiddenPairs(_pairs(data)),
        lambda data: constraints.ForbiddenPairs(_pairs(data), on="tree"),
    ],
    "MinLeafWeight": [
        lambda data: MinLeafWeight(share=0.2),
        lambda data: MinLeafWeight(samples=2),
        lambda data: MinLeafWeight(amount=0.3),
    ],
    "Linear": [
        lambda data: constraints.Linear(_amounts(data), 0.5, np.arange(data.n_features), upper=4.0),
        lambda data: constraints.Linear(_amounts(data), lower=2.0, upper=6.0),
    ],
    "PositiveBudget": [
        lambda data: constraints.PositiveBudget(0.4, "b"),
        lambda data: constraints.PositiveBudget(2, "a", count=True),
    ],
    "Recall": [lambda data: constraints.Recall("b", at_least=0.5)],
    "Specificity": [lambda data: constraints.Specificity("b", at_least=0.4, at_most=0.9)],
    "FalsePositiveRate": [lambda data: constraints.FalsePositiveRate("a", at_most=0.5)],
    "Precision": [lambda data: constraints.Precision("a", at_least=0.6)],
    "StatisticalParity": [lambda data: constraints.StatisticalParity("group", 0.25, "b")],
    "EqualOpportunity": [lambda data: constraints.EqualOpportunity("group", 0.25, "b")],
    "PredictiveEquality": [lambda data: constraints.PredictiveEquality("group", 0.25, "b")],
    "EqualisedOdds": [lambda data: constraints.EqualisedOdds("group", 0.5, "a")],
    "TreeRule": [
        lambda data: constraints.TreeRule(same_feature),
        lambda data: constraints.TreeRule(
            no_feature_twice, refuses=lambda tree, data: not no_feature_twice(tree, data)
        ),
    ],
    "Monotone": [
        lambda data: constraints.Monotone(0, "increasing", sorted(data.classes.tolist())),
        lambda data: constraints.Monotone(data.feature_names[-1], "decreasing", sorted(data.classes.tolist())),
    ],
    "InteractionGroups": [
        lambda data: constraints.InteractionGroups([[0]]),
        lambda data: constraints.InteractionGroups("no_interactions"),
        lambda data: constraints.InteractionGroups("pairwise"),
        lambda data: constraints.InteractionGroups(_cycle(data)),
    ],
    "FirstSplit": [lambda data: constraints.FirstSplit(data.n_features - 1), lambda data: constraints.FirstSplit("x0")],
    "SplitOrder": [lambda data: constraints.SplitOrder(0, [data.n_features - 1] if data.n_features > 1 else [])],
    "PredictionRule": [lambda data: constraints.PredictionRule(few_ones_per_half)],
    "ConditionalParity": [lambda data: constraints.ConditionalParity("group", 0.4, "b", "amount")],
}

FACTORIES = [
    pytest.param(factory, id=f"{name} {place}", marks=[pytest.mark.slow] if place else [])
    for name, factories in BUILT_IN.items()
    for place, factory in enumerate(factories)
]


def _pairs(data: BinaryDataset) -> list[tuple[int, int]]:
    return [(0, 1)] if data.n_features > 1 else []


def _cycle(data: BinaryDataset) -> list[list[int]]:
    """Groups of two columns each, for which pairs do not suffice if there are three columns."""
    return [sorted({place, (place + 1) % data.n_features}) for place in range(min(3, data.n_features))]


def _amounts(data: BinaryDataset) -> np.ndarray:
    return np.outer(data.row_values["amount"], np.arange(data.n_classes) - 0.5)


def test_no_constraint_is_left_out() -> None:
    """A constraint that the library exports is in the table above."""
    exported = {
        name
        for name in constraints.__all__
        if inspect.isclass(getattr(constraints, name)) and hasattr(getattr(constraints, name), "bind")
    }
    assert exported - {"Constraint"} == set(BUILT_IN)


@pytest.mark.daily(50)
@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
@pytest.mark.parametrize("factory", FACTORIES)
def test_conformance(factory: ConstraintFactory, check: Check) -> None:
    """The constraint has the property on every data set."""
    check.run(factory)


@pytest.mark.parametrize("factory", FACTORIES)
def test_solves_agree_with_all_trees(factory: ConstraintFactory) -> None:
    """The default preset finds the best tree that `violation` allows, or proves that there is none."""
    compare(factory, accel_oct.solve)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["highs", "scip"])
@pytest.mark.parametrize("preset", ["baseline", "paper"])
@pytest.mark.parametrize("factory", FACTORIES)
def test_solves_by_branch_and_cut_agree_with_all_trees(factory: ConstraintFactory, preset: str, backend: str) -> None:
    """The same where a solver decides."""
    skip_unless_available(backend)
    compare(factory, partial(accel_oct.solve, config=preset, solver=backend))


def test_every_kind_of_constraint_and_of_data_occurs() -> None:
    """Constraints that some trees keep and others break; merged rows, weights of zero, small and large trees."""
    for name, factories in BUILT_IN.items():
        bound = [(factory(case.dataset).bind(case.dataset), case) for factory in factories for case in cases()]
        assert {each.violation(tree) <= 0 for each, case in bound for tree in case.trees[:200]} == {True, False}, name
    assert any(case.dataset.merged().n_samples < case.dataset.n_samples for case in cases())
    assert any((case.dataset.weights == 0).any() for case in cases())
    assert {case.dataset.n_classes for case in cases()} == {2, 3} and {case.max_depth for case in cases()} == {1, 2, 3}


# ---------------------------------------------------------------- broken constraints


@dataclass(frozen=True)
class Few(Constraint, BoundConstraint):
    """At most two leaves; what is right. Each subclass breaks one thing."""

    name = "few"
    declared = Traits()

    def bind(self, dataset: BinaryDataset) -> Any:
        return self

    @property
    def traits(self) -> Traits:
        return self.declared

    def violation(self, tree: DecisionTree) -> float:
        return float(tree.n_leaves - 2)

    def add_to(self, master: Master) -> None:
        master.model.add_rows(Rows.single(master.p.index, 1.0, upper=2.0), self.name)


class Nameless(Few):
    name = ""


class NotANumber(Few):
    def violation(self, tree: DecisionTree) -> float:
        return float("nan") if tree.n_leaves > 2 else 0.0


class ByArrays(Few):
    """Looks at the length of the arrays, which is no property of the tree."""

    def violation(self, tree: DecisionTree) -> float:
        return float(tree.feature.size - 3)


class Remembering(Few):
    """Forgets which data it was bound to first."""

    def bind(self, dataset: BinaryDataset) -> Any:
        object.__setattr__(self, "seen", dataset)
        return self

    def violation(self, tree: DecisionTree) -> float:
        return float((tree.predictions(self.seen.X) == 1).mean() - 0.6)

    def add_to(self, master: Master) -> None:
        pass


class WrongReport(Few):
    allowed = (None, 2.0)

    def value(self, tree: DecisionTree) -> float:
        return -float(tree.n_leaves)


class TightRows(Few):
    def add_to(self, master: Master) -> None:
        master.model.add_rows(Rows.single(master.p.index, 1.0, upper=1.0), self.name)


class RootRows(Few):
    """Forbids a root that `violation` allows."""

    def add_to(self, master: Master) -> None:
        master.model.add_rows(Rows.single([master.b.index[0, 0]], 1.0, upper=0.0), self.name)


class ForgottenLift(Few):
    def add_to(self, master: Master) -> None:
        used = master.model.add_block("used", 1, integer=True)
        columns = [*master.b.index[0], used.index[0]]
        values = [1.0] * master.b.index.shape[1] + [-1.0]
        master.model.add_rows(Rows.single(columns, values, upper=0.0), self.name)


class BadLift(ForgottenLift):
    def add_to(self, master: Master) -> None:
        super().add_to(master)
        master.add_lift(lambda tree, x: master.model.blocks["used"].view(x).__setitem__(0, 2.0))


class OverwritingLift(Few):
    def add_to(self, master: Master) -> None:
        super().add_to(master)
        master.add_lift(lambda tree, x: master.theta.view(x).__setitem__(slice(None), 0.0))


class InTheObjective(Few):
    def add_to(self, master: Master) -> None:
        master.model.add_block("bonus", 1, objective=1.0)


class RowsOfMergedData(Few):
    """Takes the rows of the master for the rows that it was bound to: they may be merged."""

    def bind(self, dataset: BinaryDataset) -> Any:
        bound = type(self)()
        object.__setattr__(bound, "data", dataset)
        return bound

    def violation(self, tree: DecisionTree) -> float:
        return 3.0 - float((tree.predictions(self.data.X) == self.data.y).sum())

    def add_to(self, master: Master) -> None:
        master.model.add_rows(Rows.single(master.theta.index, 1.0, lower=3.0), self.name)


class ForbidsTooMuch(Few):
    def add_to(self, master: Master) -> None:
        pass

    def forbid(self, tree: DecisionTree, master: Master) -> Rows:
        return Rows.single([master.p.index[0]], 1.0, lower=1.0)


class ForbidsNothing(ForbidsTooMuch):
    def forbid(self, tree: DecisionTree, master: Master) -> Rows:
        return Rows.single(master.p.index, 1.0, upper=float(tree.n_leaves))


class TightLimit(Few):
    declared = Traits(limits=(LinearLimit("leaves", None, 1.0, leaves=1.0),))


class LaxLimit(Few):
    declared = Traits(limits=(LinearLimit("leaves", None, 3.5, leaves=1.0),))


class WrongLeaves(Few):
    declared = Traits(leaves=3)


class WrongFeatures(Few):
    """Declares at most one feature, where two leaves are what is asked."""

    def bind(self, dataset: BinaryDataset) -> Any:
        bound, places = type(self)(), np.arange(dataset.n_features)
        object.__setattr__(bound, "declared", Traits(features=FeatureBudget(places, np.ones(places.size), 1.0)))
        return bound


class NotLocal(Few):
    """Declares that it is about single leaves, and looks at the whole tree: few of its predictions are wrong."""

    def bind(self, dataset: BinaryDataset) -> Any:
        bound = type(self)()
        object.__setattr__(bound, "data", dataset)
        object.__setattr__(bound, "declared", Traits(local=LocalRules.leaves(dataset.weights, 0.0)))
        return bound

    def violation(self, tree: DecisionTree) -> float:
        return float((tree.predictions(self.data.X) != self.data.y).mean() - 0.5)

    def add_to(self, master: Master) -> None:
        pass


class LocalOf(Few):
    """Leaves of a fifth of the weight, and other local rules."""

    share = 0.3

    def bind(self, dataset: BinaryDataset) -> Any:
        bound = type(self)()
        exact = MinLeafWeight(share=0.2).bind(dataset)
        object.__setattr__(bound, "exact", exact)
        rules = LocalRules.leaves(dataset.weights, self.share * dataset.total_weight)
        object.__setattr__(bound, "declared", Traits(local=rules))
        return bound

    def violation(self, tree: DecisionTree) -> float:
        return float(self.exact.violation(tree))

    def add_to(self, master: Master) -> None:
        pass


class LaxLocal(LocalOf):
    share = 0.1


class Reader(Few):
    """At most half of some amounts is predicted to be of the second class; reads what it does not declare."""

    reads: frozenset[str] = frozenset()

    def amounts(self, dataset: BinaryDataset) -> np.ndarray:
        raise NotImplementedError

    def bind(self, dataset: BinaryDataset) -> Any:
        bound, amounts = type(self)(), self.amounts(dataset)
        predictions = np.zeros((dataset.n_samples, dataset.n_classes))
        predictions[:, 1] = amounts
        limit = LinearLimit(self.name, predictions, amounts.sum() / 2)
        object.__setattr__(bound, "data", dataset)
        object.__setattr__(bound, "declared", Traits(limits=(limit,), reads=self.reads))
        return bound

    def violation(self, tree: DecisionTree) -> float:
        (limit,) = self.traits.limits or ()
        return limit.used_by(tree, self.data.X)[0] - limit.upper

    def add_to(self, master: Master) -> None:
        pass


class ReadsClasses(Reader):
    def amounts(self, dataset: BinaryDataset) -> np.ndarray:
        return (dataset.y == 1).astype(float)


class ReadsWeights(Reader):
    reads = frozenset({"class", "rows"})

    def amounts(self, dataset: BinaryDataset) -> np.ndarray:
        return dataset.weights * (dataset.y == 1)


class ReadsGroups(Reader):
    reads = frozenset({"weight", "rows"})

    def amounts(self, dataset: BinaryDataset) -> np.ndarray:
        return dataset.weights * (dataset.row_values["group"] == "u")


class ReadsAColumn(Reader):
    reads = frozenset({"weight"})

    def amounts(self, dataset: BinaryDataset) -> np.ndarray:
        return dataset.weights * np.asarray(dataset.values_named("amount"))


class CountsRows(Reader):
    reads = frozenset({"weight"})

    def bind(self, dataset: BinaryDataset) -> Any:
        bound = super().bind(dataset)
        limit = LinearLimit(self.name, bound.traits.limits[0].predictions, 3.0)
        object.__setattr__(bound, "declared", Traits(limits=(limit,), reads=self.reads))
        return bound

    def amounts(self, dataset: BinaryDataset) -> np.ndarray:
        return np.ones(dataset.n_samples)


class ReadsX(Reader):
    reads = frozenset({"weight", "features"})

    def amounts(self, dataset: BinaryDataset) -> np.ndarray:
        return dataset.weights * (dataset.X[:, 0] == 1)


class ReadsAFeature(Few):
    """Forbids the first feature, and declares to read none."""

    def bind(self, dataset: BinaryDataset) -> Any:
        bound, group = type(self)(), (np.arange(dataset.n_features) == 0).astype(np.int64)
        rule = FeatureBudget(group, np.array([0.0, 1.0]), 0.0)
        object.__setattr__(bound, "declared", Traits(features=rule, reads=frozenset()))
        return bound

    def violation(self, tree: DecisionTree) -> float:
        return float(0 in tree.features_used)

    def add_to(self, master: Master) -> None:
        pass


class OtherOnATally(ReadsWeights):
    """Counts something else where there are no rows."""

    reads = frozenset({"class", "weight"})

    def violation(self, tree: DecisionTree) -> float:
        return -1.0 if isinstance(self.data, TalliedRows) else super().violation(tree)


ROWS, FORBID = "rows_hold_for_every_allowed_tree", "forbidding_a_tree_forbids_no_allowed_one"
TRAITS, READS, TALLY = "traits_agree_with_violation", "reads_are_complete", "a_tally_allows_the_same_trees"
ALONE = "violation_depends_on_the_tree_alone"

BROKEN: list[tuple[type, str]] = [
    (Nameless, "has_a_name"),
    (NotANumber, "violation_is_a_number"),
    (ByArrays, ALONE),
    (Remembering, ALONE),
    (WrongReport, "reported_values_agree_with_violation"),
    (TightRows, ROWS),
    (RootRows, ROWS),
    (ForgottenLift, ROWS),
    (BadLift, ROWS),
    (OverwritingLift, ROWS),
    (InTheObjective, ROWS),
    (RowsOfMergedData, ROWS),
    (ForbidsTooMuch, FORBID),
    (ForbidsNothing, FORBID),
    (TightLimit, TRAITS),
    (LaxLimit, TRAITS),
    (LocalOf, TRAITS),
    (LaxLocal, TRAITS),
    (NotLocal, TRAITS),
    (WrongLeaves, TRAITS),
    (WrongFeatures, TRAITS),
    (ReadsClasses, READS),
    (ReadsWeights, READS),
    (ReadsGroups, READS),
    (ReadsAColumn, READS),
    (CountsRows, READS),
    (ReadsX, READS),
    (ReadsAFeature, READS),
    (OtherOnATally, TALLY),
]


def failing(factory: Callable[[BinaryDataset], Constraint]) -> set[str]:
    found = set()
    for check in checks():
        try:
            check.run(factory)
        except AssertionError:
            found.add(check.name)
    return found


def test_the_example_that_is_broken_below_is_right() -> None:
    assert failing(lambda data: Few()) == set()


@pytest.mark.daily(10)
@pytest.mark.parametrize(("broken", "caught_by"), BROKEN, ids=[broken.__name__ for broken, _ in BROKEN])
def test_broken_constraints_are_caught(broken: type, caught_by: str) -> None:
    """By the check that is about what is wrong with them."""
    assert caught_by in failing(lambda data: broken())


def test_every_check_catches_something() -> None:
    assert {caught_by for _, caught_by in BROKEN} == {check.name for check in checks()}


def test_a_wrong_answer_is_caught() -> None:
    """A solve that knows nothing of the constraint."""

    def careless(*arguments: Any, constraints: Any, **options: Any) -> Any:
        return accel_oct.solve(*arguments, **options)

    with pytest.raises(AssertionError, match=r"objective|breaks the constraint|status"):
        compare(lambda data: MaxLeaves(1), careless)
