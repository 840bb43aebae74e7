"""A suite of checks for constraints, shipped so that authors of constraints can run it.

    >>> from accel_oct.constraints.conformance import checks
    >>> for check in checks():
    ...     check.run(lambda dataset: MyConstraint(3))

Each check takes a function that makes the constraint for a data set; most constraints ignore the data set, others take
a class or one value per row from it. The data sets are so small that a check tries every labelled tree of depth two.
`compare` runs whole solves. Checks raise AssertionError with the data set and the tree in the message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from accel_oct.constraints.base import BoundConstraint, Constraint, bind_all
from accel_oct.constraints.tallied import bind_to_tally, tallied_trees
from accel_oct.data import BinaryDataset, Tally
from accel_oct.data.reads import fits_tally
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master
from accel_oct.formulation.agreement import Agreement, broken_row
from accel_oct.mip import Rows
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree import DecisionTree
from accel_oct.tree.sample_trees import every_tree, some_trees

__all__ = ["Case", "Check", "ConstraintFactory", "cases", "checks", "compare"]

#: Makes the constraint for a data set.
ConstraintFactory = Callable[[BinaryDataset], Constraint]

#: Relative tolerance of comparisons; the tolerance of `violation` may be as large.
TOLERANCE = 1e-8

#: Number of trees of a case that are compared on several data sets.
_FEW_TREES = 60

#: Least violation of the rows of `forbid` by the forbidden tree.
_CUT_OFF = 0.5


@dataclass(frozen=True)
class Case:
    """A data set and the trees on which a constraint is checked.

    Attributes
    ----------
    dataset : BinaryDataset
        Its `row_values` hold "group" and "amount", one value per row.
    complete : bool
        Whether these are all trees up to the depth.
    """

    name: str
    dataset: BinaryDataset
    max_depth: int
    trees: tuple[DecisionTree, ...]
    complete: bool = True


@dataclass(frozen=True)
class Check:
    """A required property of constraints."""

    name: str
    statement: str
    function: Callable[[Case, BoundConstraint, ConstraintFactory], None]

    def run(self, factory: ConstraintFactory) -> None:
        """Raise AssertionError if the constraint lacks the property."""
        for case in cases():
            self.function(case, _bound(factory, case.dataset), factory)


_CHECKS: list[Check] = []


def _check(
    function: Callable[[Case, BoundConstraint, ConstraintFactory], None],
) -> Callable[[Case, BoundConstraint, ConstraintFactory], None]:
    statement = (function.__doc__ or "").strip().splitlines()[0]
    _CHECKS.append(Check(function.__name__, statement, function))
    return function


def checks() -> tuple[Check, ...]:
    """Return all checks, in the order of their definitions."""
    return tuple(_CHECKS)


# ---------------------------------------------------------------- data


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """Return cases with and without weights, with repeated and inseparable rows, and with two and three classes."""
    rng = np.random.default_rng(0)

    def case(name: str, shape: tuple[int, int], classes: int, depth: int, weights: Any = None, **options: bool) -> Case:
        X = rng.integers(0, 2, shape)
        if options.get("alike"):
            X[:] = X[0]
        y = np.array(["a", "b", "c"])[np.append(np.arange(classes), rng.integers(0, classes, shape[0] - classes))]
        rows = {"group": np.array(["u", "v"])[np.arange(shape[0]) % 2], "amount": rng.integers(0, 4, shape[0])}
        dataset = replace(BinaryDataset.from_arrays(X, y, weights), row_values=rows)
        if options.get("sampled"):
            return Case(name, dataset, depth, tuple(some_trees(dataset, depth)), complete=False)
        return Case(name, dataset, depth, tuple(every_tree(shape[1], classes, depth)))

    return (
        case("no weights", (12, 3), 2, 2),
        case("whole weights, some of them zero", (10, 2), 2, 2, np.arange(10) % 4),
        case("real weights", (9, 2), 2, 2, rng.random(9) + 0.01),
        case("weights of very different size", (8, 2), 2, 2, 10.0 ** -np.arange(8.0)),
        case("three classes", (10, 3), 3, 1, rng.random(10) + 0.5),
        case("rows that no feature tells apart", (6, 1), 2, 2, alike=True),
        case("depth three", (30, 4), 2, 3, sampled=True),
    )


def _bound(factory: ConstraintFactory, dataset: BinaryDataset) -> BoundConstraint:
    return bind_all([factory(dataset)], dataset)[0]


def _satisfies(bound: BoundConstraint, tree: DecisionTree) -> bool:
    return bool(bound.violation(tree) <= 0.0)


def _where(case: Case, tree: DecisionTree) -> str:
    return f"data set {case.name!r}, tree {tree.to_dict()}"


def _masters(case: Case) -> Iterator[Master]:
    """Yield a master with merged rows, the default of a solve, and one with the original rows."""
    for dataset in (case.dataset.merged(), case.dataset):
        yield Master(dataset, case.max_depth, 0.1, integral_predictions=True, original=case.dataset)


# ---------------------------------------------------------------- the definition


@_check
def has_a_name(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """`name` is a nonempty string, for messages and reports."""
    assert isinstance(bound.name, str) and bound.name.strip(), f"name must be a text, got {bound.name!r}"


@_check
def violation_is_a_number(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """`violation` returns a number for every tree, not NaN."""
    for tree in case.trees:
        found = bound.violation(tree)
        assert isinstance(found, int | float | np.integer | np.floating) and not math.isnan(found), (
            f"violation returned {found!r}: {_where(case, tree)}"
        )


@_check
def violation_depends_on_the_tree_alone(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """`violation` is the same in a second call, in longer arrays, and after the constraint was bound to other data."""
    constraint = factory(case.dataset)
    (mine,) = bind_all([constraint], case.dataset)
    before = [mine.violation(tree) for tree in case.trees]
    half = BinaryDataset.from_arrays(1 - case.dataset.X, case.dataset.classes[case.dataset.y])
    bind_all([constraint], replace(half, row_values=case.dataset.row_values))
    for tree, first in zip(case.trees, before, strict=True):
        deeper = tree.with_max_depth(case.max_depth + 1)
        again = mine.violation(tree), mine.violation(deeper), bound.violation(tree)
        assert all(found == first for found in again), f"violation {first}, then {again}: {_where(case, tree)}"


@_check
def reported_values_agree_with_violation(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """A tree satisfies the constraint if and only if its `value`, if available, is within `allowed`."""
    lower, upper = bound.allowed
    for tree in case.trees if bound.allowed != (None, None) else ():
        value = bound.value(tree)
        if value is None or math.isnan(value):
            continue
        room = TOLERANCE * max(1.0, abs(value), *(abs(limit) for limit in (lower, upper) if limit is not None))
        room += TOLERANCE * case.dataset.total_weight
        over = max(
            -math.inf if upper is None else value - upper,
            -math.inf if lower is None else lower - value,
        )
        if over <= -room or over > room:
            assert _satisfies(bound, tree) == (over <= 0), (
                f"value {value} of {bound.allowed}, but violation {bound.violation(tree)}: {_where(case, tree)}"
            )


# ---------------------------------------------------------------- rows


@_check
def rows_hold_for_every_allowed_tree(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """Every tree without violation satisfies the columns and rows of `add_to`, with columns filled by `add_lift`."""
    for master in _masters(case):
        agreement = Agreement(master)
        try:
            with agreement.written_by(f"`{bound.name}`", bound):
                bound.add_to(master)
        except InvalidInputError as error:
            raise AssertionError(f"{error}: data set {case.name!r}") from error
        for tree in case.trees:
            if _satisfies(bound, tree):
                try:
                    agreement.check(tree)
                except InvalidInputError as error:
                    raise AssertionError(f"{error}: {_where(case, tree)}") from error


@_check
def forbidding_a_tree_forbids_no_allowed_one(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """The rows of `forbid` cut off the infeasible tree and hold for every feasible tree."""
    if type(bound).forbid is BoundConstraint.forbid and bound.traits.local is None:
        return
    for master in _masters(case):
        bound.add_to(master)
        lifted = [(tree, master.lift(tree)) for tree in case.trees]
        allowed = [(tree, x) for tree, x in lifted if _satisfies(bound, tree)]
        points = np.array([x for _, x in allowed]).reshape(len(allowed), master.model.n_columns)
        for tree, x in lifted:
            rows = None if _satisfies(bound, tree) else bound.forbid(tree, master)
            if rows is None:
                continue
            assert rows.violation(x).max(initial=0.0) > _CUT_OFF, f"forbid does not cut off {_where(case, tree)}"
            for place in np.flatnonzero(_largest_violation(rows, points) > 0):
                broken = broken_row(rows, points[place])
                assert broken is None, (
                    f"forbid, asked about {tree.to_dict()}, cuts off an allowed tree: {_where(case, allowed[place][0])}"
                )


def _largest_violation(rows: Rows, points: FloatArray) -> FloatArray:
    matrix = np.zeros((rows.n_rows, points.shape[1]))
    matrix[rows.row_of_entry, rows.columns] = rows.values
    activity = points @ matrix.T
    found: FloatArray = np.maximum(rows.lower - activity, activity - rows.upper).max(axis=1, initial=0.0)
    return found


# ---------------------------------------------------------------- traits


@_check
def traits_agree_with_violation(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """Every form of `traits` allows exactly the trees that `violation` allows."""
    for tree in case.trees:
        problem = bound.traits.contradiction(tree, case.dataset.X, satisfied=_satisfies(bound, tree))
        assert problem is None, f"{problem}: {_where(case, tree)}"


@_check
def reads_are_complete(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """The same trees are feasible after a change of inputs that `traits.reads` does not contain."""
    constraint, trees, data = factory(case.dataset), _some(case.trees), case.dataset
    for word, changed, order in _changes(data, constraint.named_columns):
        if word in bound.traits.reads:
            continue
        where = f"`reads` does not name {word!r}, but with other values of it"
        try:
            (other,) = bind_all([constraint], changed)
        except InvalidInputError as error:
            raise AssertionError(f"{where} it cannot be bound ({error}): data set {case.name!r}") from error
        for tree in trees:
            moved = tree if order is None else _moved(tree, order)
            kept, X = _satisfies(bound, tree), data.X if word == "X" else changed.X
            problem = other.traits.contradiction(moved, X, satisfied=kept)
            assert problem is None, f"{where} {problem}: {_where(case, tree)}"
            # With other features a tree has other predictions, which `violation` may use.
            assert word == "X" or _satisfies(other, moved) == kept, f"{where} `violation` changes: {_where(case, tree)}"


@_check
def a_tally_allows_the_same_trees(case: Case, bound: BoundConstraint, factory: ConstraintFactory) -> None:
    """On a tally of the data, if `traits` allow one, the same trees are feasible."""
    data, traits, constraint = case.dataset, bound.traits, factory(case.dataset)
    if not {"group"}.issuperset(constraint.named_columns):
        return  # a tally has one kind of groups
    if not fits_tally(traits.reads) or not data.integral or not (traits.is_priced or traits.on_paths(data.n_samples)):
        return
    labels, groups = data.classes[data.y], data.row_values["group"]
    tally = Tally.of(data.X, labels, depth=case.max_depth, sample_weight=data.weights, sensitive_features=groups)
    try:
        (other,) = bind_to_tally([constraint], tallied_trees(replace(tally, group_name="group")))
    except InvalidInputError as error:
        raise AssertionError(f"{error}: data set {case.name!r}") from error
    for tree in _some(case.trees):
        same = _satisfies(other, tree) == _satisfies(bound, tree)
        assert same, f"violation {bound.violation(tree)}, on a tally {other.violation(tree)}: {_where(case, tree)}"


def _some(trees: tuple[DecisionTree, ...]) -> tuple[DecisionTree, ...]:
    return trees[:: max(1, len(trees) // _FEW_TREES)]


def _moved(tree: DecisionTree, order: IntArray) -> DecisionTree:
    return DecisionTree(np.where(tree.feature < 0, -1, order[tree.feature]), tree.label)


def _changes(data: BinaryDataset, named: Sequence[str]) -> Iterator[tuple[str, BinaryDataset, IntArray | None]]:
    """Yield inputs of `Traits.reads`, data in which only this changes, and the new places of the features, if any.

    Columns that the constraint names are groups.
    """

    def values(**changed: Any) -> BinaryDataset:
        return replace(data, row_values={**data.row_values, **changed})

    n, given = data.n_samples, data.weights if data.given is None else data.given
    yield "class", replace(data, y=(data.y + 1) % data.n_classes), None
    other = BinaryDataset.from_arrays(data.X, data.classes[data.y], given * (1 + np.arange(n) % 3) + 1.0)
    yield "weight", replace(other, row_values=data.row_values), None
    yield "group", values(group=np.roll(data.row_values["group"], 1)), None
    yield "group" if "amount" in named else "rows", values(amount=data.row_values["amount"][::-1] + 1), None
    halves = {name: np.repeat(column, 2) for name, column in data.row_values.items()}
    twice = BinaryDataset.from_arrays(
        np.repeat(data.X, 2, axis=0), data.classes[np.repeat(data.y, 2)], np.repeat(given / 2, 2)
    )
    yield "rows", replace(twice, row_values=halves), None
    yield "X", replace(data, X=~data.X), None
    order = np.roll(np.arange(data.n_features), 1)
    back = np.argsort(order)
    names = tuple(data.feature_names[place] for place in back)
    yield "features", replace(data, X=np.ascontiguousarray(data.X[:, back]), feature_names=names), order


# ---------------------------------------------------------------- whole solves


def compare(factory: ConstraintFactory, solve: Callable[..., Any], leaf_penalty: float = 0.02) -> None:
    """Solve the complete cases, and compare with the best tree that `violation` allows.

    Parameters
    ----------
    factory : callable (BinaryDataset) -> Constraint
    solve : callable
        `accel_oct.solve`, or a partial with a solver or a config: ``partial(accel_oct.solve, config="baseline")``.

    Raises
    ------
    AssertionError
        If the status, the objective or the tree is wrong.
    """
    for case in cases():
        if not case.complete:
            continue
        data, bound = case.dataset, _bound(factory, case.dataset)
        worth = [
            tree.score(data) / data.total_weight - leaf_penalty * tree.n_leaves
            for tree in case.trees
            if _satisfies(bound, tree)
        ]
        result = solve(data, max_depth=case.max_depth, leaf_penalty=leaf_penalty, constraints=[factory(data)])
        expected = "optimal" if worth else "infeasible"
        assert result.status == expected, f"status {result.status!r}, not {expected!r}: data set {case.name!r}"
        if worth:
            # The tolerance of a proof by a solver, see docs/decisions.md.
            assert abs(result.objective - max(worth)) <= 1e-5, (
                f"objective {result.objective}, but the best allowed tree has {max(worth)}: data set {case.name!r}"
            )
            assert _satisfies(bound, result.tree), f"the result breaks the constraint: {_where(case, result.tree)}"
