"""Declared properties of a bound constraint.

A *form* is an exact statement of the whole constraint that some part of the library can compute with: linear limits,
rules about leaves and paths, a limit on leaves, a rule about the features that a tree uses. `Traits` holds the forms
of a constraint and its inputs.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.reads import READS, checked_reads
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.formulation.agreement import ROUNDING
from accel_oct.mip import Rows
from accel_oct.mip.model import ColumnBlock
from accel_oct.support.arguments import as_whole
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.tree import DecisionTree

__all__ = ["FeatureBudget", "FeaturePairs", "FeatureRule", "LinearLimit", "Traits"]


#: Tolerance of constraints, relative to the largest possible value of the limited quantity: 0.1 as a floating-point
#: number is above one tenth, and sums of real coefficients are rounded.
TOLERANCE = 1e-9

#: Tolerance of linear limits: larger, so that they hold for every feasible tree although both sides are rounded.
FORGIVEN = 1.01 * TOLERANCE

#: Largest reported violation, within the range of a float.
_FAR = Fraction(10**300)

#: Solvers drop coefficients below this, relative to a largest one of 1.
_NO_COEFFICIENT = 1e-9


def excess(value: Fraction, lower: float | None, upper: float | None, size: Fraction = Fraction(1)) -> float:
    """Return the violation of limits relative to `size`, minus the tolerance; the sign is exact."""
    misses = [value - Fraction(upper)] if upper is not None else []
    if lower is not None:
        misses.append(Fraction(lower) - value)
    over = max(misses) / size - Fraction(TOLERANCE)
    if over > 0:
        return max(float(min(over, _FAR)), sys.float_info.min)
    return float(max(over, -_FAR))


# ---------------------------------------------------------------- linear limits


@dataclass(frozen=True, eq=False)
class LinearLimit:
    """One linear limit on a tree: on a sum over its predictions, leaves and branches.

    With z_ik = 1 if the tree predicts class k for sample i,

        sum of a_ik z_ik + c (number of leaves) + sum of d_f (branches on feature f)  <=  upper.

    The uses of disjoint subtrees add up, so the limit can be priced.

    Attributes
    ----------
    name : str
    predictions : float array (n_samples, n_classes) or None
        a_ik, for the rows as the user gave them.
    upper : float
    leaves : float
        c.
    branches : float array (n_features,) or None
        d_f.
    tolerance : float
        Largest excess over `upper` of a tree that satisfies the constraint by its `violation`.
    unit : float
        Change of `upper` per unit of the limit that the user stated; zero if it depends on the tree.
    """

    name: str
    predictions: FloatArray | None
    upper: float
    leaves: float = 0.0
    branches: FloatArray | None = None
    tolerance: float = 0.0
    unit: float = 1.0

    @property
    def is_priced(self) -> bool:
        """Whether the limit can be priced: it has no branches, and a nonnegative coefficient of leaves."""
        return self.branches is None and self.leaves >= 0.0

    def used_by(self, tree: DecisionTree, X: BoolMatrix) -> tuple[float, float]:
        """Return the use of a tree on the user's rows X, and the sum of the absolute values of the terms."""
        terms = [np.array([self.leaves * tree.n_leaves])]
        if self.predictions is not None:
            terms.append(self.predictions[np.arange(len(X)), tree.predictions(X)])
        if self.branches is not None:
            terms.append(self.branches[tree.feature[tree.feature >= 0]])
        values = np.concatenate(terms)
        return float(values.sum()), float(np.abs(values).sum())

    def add_to(self, master: Master) -> None:
        """Add one row over z, p and b, scaled to coefficients of at most one.

        Solvers drop coefficients below about 1e-9, and many of them together may exceed the tolerance of a solver. So
        they are removed here, and the right side is relaxed by their smallest possible sum: every point has one
        prediction, and every node at most one branch.
        """
        predictions = None
        if self.predictions is not None and self.predictions.any():
            predictions = master.predictions.coefficients(self.predictions)
        # With the tolerance: the row must hold for every tree that `violation` allows.
        upper = self.upper + self.tolerance
        parts = [part for part in (predictions, self.branches, self.leaves, upper) if part is not None]
        scale = 1.0 / max(*(float(np.max(np.abs(part), initial=0.0)) for part in parts), 1e-300)
        upper *= scale
        columns, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        if predictions is not None:
            kept, least = _without_small(predictions * scale)
            upper -= float(least.min(axis=1).sum())
            columns.append(master.predictions.z.index.ravel())
            values.append(kept.ravel())
        if self.leaves:
            kept, least = _without_small(np.full(master.p.size, self.leaves * scale))
            upper -= float(np.minimum(least, 0.0).sum())
            columns.append(master.p.index)
            values.append(kept)
        if self.branches is not None:
            kept, least = _without_small(np.tile(self.branches * scale, (len(master.b.index), 1)))
            upper -= float(np.minimum(least.min(axis=1), 0.0).sum())
            columns.append(master.b.index.ravel())
            values.append(kept.ravel())
        all_values = np.concatenate(values)
        used = np.flatnonzero(all_values)
        row = Rows.single(np.concatenate(columns)[used], all_values[used], upper=upper)
        master.model.add_rows(row, self.name)


def _without_small(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients without those that solvers drop, and the dropped ones, zero elsewhere."""
    small = np.abs(values) < _NO_COEFFICIENT
    return np.where(small, 0.0, values), np.where(small, values, 0.0)


# ---------------------------------------------------------------- rules about the set of features


class FeatureRule(ABC):
    """A limit on the cost of the set of features that a tree uses.

    Features are in groups: a tree uses a group if it branches on a feature of it. The cost is monotone in the set of
    groups, so every subset of an allowed set is allowed.

    Attributes
    ----------
    group : int array (n_features,)
        The group of every feature: 0, 1, ...
    at_most : float
        Largest cost of a set.
    """

    group: IntArray
    at_most: float

    @abstractmethod
    def cost(self, groups: Collection[int]) -> float:
        """Return the cost of a set of groups."""

    def excess(self, groups: Collection[int]) -> float:
        """Return the excess of the cost of a set of groups; at most zero if the set is allowed."""
        return self.cost(groups) - self.at_most

    def free(self, groups: Collection[int]) -> BoolArray:
        """Return which groups can be added to a set of used groups without restricting the choice of others.

        Used groups are free. An implementation may report too few free groups; the search is slower then.
        """
        free = np.zeros(int(self.group.max(initial=-1)) + 1, dtype=bool)
        free[list(groups)] = True
        return free

    @property
    def most(self) -> int | None:
        """The largest number of groups, if the rule depends on their number alone; else None."""
        return None

    def add_to(self, master: Master, name: str) -> None:
        """Add rows to the master; by default, that forbidden features are not used."""
        columns = master.b.index[:, [] if self.forbidden is None else self.forbidden]
        if columns.size:
            master.model.add_rows(Rows.single(columns.ravel(), 1.0, upper=0.0), name)

    def used(self, tree: DecisionTree) -> set[int]:
        """Return the groups that a tree uses."""
        return set(self.group[list(tree.features_used)].tolist())

    @cached_property
    def forbidden(self) -> BoolArray | None:
        """Forbidden features (n_features,), if the rule only forbids single features; else None."""
        groups = set(self.group.tolist())
        barred = {g for g in groups if self.excess({g}) > 0}
        return np.isin(self.group, list(barred)) if self.excess(groups - barred) <= 0 else None


@dataclass(frozen=True, eq=False)
class FeatureBudget(FeatureRule):
    """``sum of price_g over the groups g that the tree uses <= at_most``.

    Attributes
    ----------
    group : int array (n_features,)
        Group of every feature.
    price : float array (n_groups,)
        Not negative.
    at_most : float
        The tolerance is 1e-9 of it, or of the largest price.
    """

    group: IntArray
    price: FloatArray
    at_most: float

    def cost(self, groups: Iterable[int]) -> float:
        """Return the cost of a set of groups, rounded once: so it is monotone."""
        return math.fsum(self.price[g] for g in groups)

    def excess(self, groups: Iterable[int]) -> float:
        return self.cost(groups) - self.at_most - self._tolerance

    @cached_property
    def _tolerance(self) -> float:
        return TOLERANCE * max(self.at_most, float(self.price.max(initial=0.0)))

    def free(self, groups: Collection[int]) -> BoolArray:
        free: BoolArray = self.price == 0.0
        free[list(groups)] = True
        return free

    @property
    def most(self) -> int | None:
        price = self.price
        if not price.size or np.any(price != price[0]) or price[0] == 0.0:
            return None
        return max((n for n in range(price.size + 1) if self.excess(range(n)) <= 0), default=0)

    def add_to(self, master: Master, name: str) -> None:
        """Add columns u_g, one if the tree uses group g, rows ``b[n, f] <= u_g(f)``, and the limit on u."""
        if self.forbidden is not None:
            super().add_to(master, name)
            return
        used = _use_columns(master, self.group, self.price > 0, name)
        scale = 1.0 / max(self.price.max(), self.at_most)
        upper = self.at_most * scale + FORGIVEN
        master.model.add_rows(Rows.single(used.index, self.price[self.price > 0] * scale, upper=upper), name)


class FeaturePairs(FeatureRule):
    """Rule that no tree uses both features of a pair; the cost is the number of used pairs.

    Every feature of a pair is a group; all other features form one group, which is free.

    Parameters
    ----------
    pairs : sequence of pairs of int
    n_features : int
    """

    def __init__(self, pairs: Sequence[tuple[int, int]], n_features: int) -> None:
        members = sorted({feature for pair in pairs for feature in pair})
        self.pairs, self.at_most = tuple(pairs), 0.0
        self.group = np.zeros(n_features, dtype=np.int64)
        self.group[members] = np.arange(1, len(members) + 1)
        self._groups = [(int(self.group[f]), int(self.group[g])) for f, g in pairs]

    def cost(self, groups: Collection[int]) -> float:
        return float(sum(f in groups and g in groups for f, g in self._groups))

    def free(self, groups: Collection[int]) -> BoolArray:
        return super().free({0, *groups})

    def add_to(self, master: Master, name: str) -> None:
        """Add columns u_f = 1 if the tree uses f, and rows ``u_f + u_g <= 1`` for every pair."""
        if not self.pairs:
            return
        wanted = self.group > 0
        used = _use_columns(master, np.arange(wanted.size), wanted, name)
        columns = used.index[(np.cumsum(wanted) - 1)[np.array(self.pairs)]]
        rows = np.repeat(np.arange(len(columns)), 2)
        master.model.add_rows(Rows.from_entries(rows, columns.ravel(), 1.0, n_rows=len(columns), upper=1.0), name)


def _use_columns(master: Master, group: IntArray, wanted: BoolArray, name: str) -> ColumnBlock:
    """Add columns u_g for the wanted groups, in order, that are at least one if the tree branches on a feature of g."""
    place = np.cumsum(wanted) - 1
    label, number = f"used ({name})", 1
    while label in master.model.blocks:
        number += 1
        label = f"used ({name}, {number})"
    used = master.model.add_block(label, int(wanted.sum()), integer=True)
    features = np.flatnonzero(wanted[group])
    b = master.b.index[:, features]
    own = np.broadcast_to(used.index[place[group[features]]], b.shape)
    master.model.add_rows(
        Rows.from_entries(
            np.tile(np.arange(b.size), 2),
            np.concatenate([b.ravel(), own.ravel()]),
            np.repeat([1.0, -1.0], b.size),
            n_rows=b.size,
            upper=0.0,
        ),
        name,
    )

    def fill(tree: DecisionTree, x: FloatArray) -> None:
        groups = group[list(tree.features_used)]
        used.view(x)[place[groups[wanted[groups]]]] = 1.0

    master.add_lift(fill)
    return used


# ---------------------------------------------------------------- rules about leaves and paths in the master


def _add_local_rules(rules: LocalRules, master: Master, name: str) -> None:
    """Add rows that limit the number of leaves by the masses, forbid light sides, and keep columns apart."""
    for mass, least, total in zip(rules.masses, rules.least, rules.totals.tolist(), strict=True):
        if master.topology.n_terminal * least > total:
            upper = float(np.floor(total / least))
            master.model.add_rows(Rows.single(master.p.index, 1.0, upper=upper), name)
        columns = master.b.index[:, _too_uneven(mass, least, master.original.X)]
        if columns.size:
            master.model.add_rows(Rows.single(columns.ravel(), 1.0, upper=0.0), name)
    if rules.apart is None or not rules.apart.any():
        return
    # One row per feature f, node n and node m above it: f at m leaves no partner of f for n.
    b = master.b.index
    barred = b[:, np.diag(rules.apart)]
    rows = [Rows.single(barred.ravel(), 1.0, upper=0.0)] if barred.size else []
    rows += [
        Rows.single([b[(n >> step) - 1, f], *b[n - 1, rules.apart[f]]], 1.0, upper=1.0)
        for n in master.topology.internal.tolist()
        for step in range(1, n.bit_length())
        for f in np.flatnonzero(rules.apart.any(axis=1) & ~np.diag(rules.apart)).tolist()
    ]
    master.model.add_rows(Rows.concatenate(rows), name)


def _forbid_light_paths(rules: LocalRules, tree: DecisionTree, master: Master) -> Rows | None:
    """Return rows that forbid the light paths of a tree: a feasible tree has none, as subtrees are lighter still.

    For the shortest such paths, and all features f with which their last node n has a light side:
    ``sum of b over the path above n + sum of b[n, f] <= (length of the path above n)``.
    """
    X = master.original.X
    visits = tree.visits(X, tree.nodes)
    place = {node: position for position, node in enumerate(tree.nodes.tolist())}
    rows = []
    for mass, least in zip(rules.masses, rules.least, strict=True):
        light = mass @ visits < least
        for n in tree.branch_nodes.tolist():
            if not light[place[n]] and (light[place[2 * n]] or light[place[2 * n + 1]]):
                features = [feature for feature, _ in tree.path(n)]
                nodes = [n >> step for step in range(len(features), 0, -1)]
                above = master.b.index[np.array(nodes, dtype=np.int64) - 1, np.array(features, dtype=np.int64)]
                last = master.b.index[n - 1, _too_uneven(mass * visits[:, place[n]], least, X)]
                rows.append(Rows.single([*above, *last], 1.0, upper=float(above.size)))
    return Rows.concatenate(rows) if rows else None


def _too_uneven(masses: FloatArray, least: float, X: BoolMatrix) -> IntArray:
    """Return the features with a side that is too light."""
    one = masses @ X
    return np.flatnonzero(np.minimum(one, masses.sum() - one) < least)


# ---------------------------------------------------------------- all of it


SuperfluousSplits = Literal["matter", "removable", "forbidden"]
_SUPERFLUOUS = get_args(SuperfluousSplits)

#: Parts of trees that a constraint may refuse.
PARTS_OF_TREES = frozenset({"subtrees", "paths", "nodes"})


@dataclass(frozen=True, eq=False)
class Traits:
    """Properties of a bound constraint: its forms and its inputs. The library uses nothing else of a constraint.

    *Forms.* Each given form states the whole constraint: a tree satisfies the constraint by its `violation` if and only
    if it satisfies the form. (Values in floating point may differ by rounding; a limit has a `tolerance`.) Each part of
    the library uses the form that it can compute with, so a constraint may have several. A constraint without any form
    is left to branch and cut, where infeasible candidates are cut off.

    ==========  ===============================================  ====================================================
    form        statement                                        used by
    ==========  ===============================================  ====================================================
    `local`     rules about single leaves and single paths       subtree tables, the frontier, every split of a table
    `leaves`    largest number of leaves                         the same, and prices together with other limits
    `features`  a rule about the set of features that are used   the search over sets of features
    `limits`    linear limits on predictions and leaves          prices: a dual bound and the enumeration of the rest
    ==========  ===============================================  ====================================================

    All forms are in rows and features of the data that the constraint was bound to.

    *Reads.* Inputs of the forms, and of `violation` besides the tree and its predictions:

    ==============  =================================================================================================
    ``"class"``     classes of the samples
    ``"weight"``    weights of the samples; coefficients of a sample are proportional to its weight
    ``"group"``     groups passed with the data, or named by the constraint (`Constraint.named_columns`)
    ``"rows"``      anything else about single rows: values of columns of the user's table, or the number of rows
    ``"features"``  single features, by index or by name, rather than the columns that they were made from
    ``"X"``         values of the features
    ==============  =================================================================================================

    A tally has classes, weights and groups by cell, and the features: it supports constraints that read nothing else.
    A search over every split has no fixed features: it supports constraints that read neither ``"features"`` nor
    ``"X"``. The default is all inputs.

    *Without a form.* The trees of the relaxed problem, which has the forms of all other constraints, are enumerated
    best first, and `violation` is evaluated for each. Three declarations limit the number of these trees:

    - `superfluous_splits`. A split is *superfluous* if one of its sides has no sample, or if both sides are leaves of
      the same class; a tree without such splits is *proper*. "matter": the constraint may allow a tree and forbid the
      tree that remains if its superfluous splits are removed. "removable": it allows that tree too. "forbidden": it
      allows proper trees only. Except in the first case only proper trees are enumerated.
    - `refuses`. Which parts of trees `BoundConstraint.refuses` judges: "subtrees" that may stand anywhere, "paths", or
      subtrees at their "nodes", of which `BoundConstraint.context` says what of the path matters.
    - `relaxed`. A weaker statement: every tree that satisfies the constraint satisfies its forms.

    `accel_oct.constraints.conformance` checks the declarations on random data.

    Parameters
    ----------
    limits : sequence of LinearLimit, optional
    local : LocalRules, optional
    leaves : int, optional
        Largest number of leaves; `limits` follow from it.
    features : FeatureRule, optional
    reads : set of str
    arrays : sequence of str
        Names of arguments with one entry per row, which cannot be split into the folds of a cross-validation.
    by_predictions : bool
        Whether `violation` depends on the tree only by its predictions for the samples.
    superfluous_splits : {"matter", "removable", "forbidden"}
        Whether superfluous splits matter; they are removable with `by_predictions`.
    refuses : set of {"subtrees", "paths", "nodes"}
        Parts that `BoundConstraint.refuses` judges.
    relaxed : Traits, optional
        Forms that the constraint implies.
    apart_below : callable (feature) -> bool array (F, F), optional
        The constraint is about paths, allows a single leaf, and is a rule about pairs once the first split is known: a
        tree with this feature at its root satisfies the constraint if and only if no path uses two features that are
        apart. A feature apart from itself may not be used in such a tree. Root features are then searched one by one.
    """

    limits: tuple[LinearLimit, ...] | None = None
    local: LocalRules | None = None
    leaves: int | None = None
    features: FeatureRule | None = None
    reads: Set[str] = READS
    arrays: tuple[str, ...] = ()
    by_predictions: bool = False
    superfluous_splits: SuperfluousSplits = "matter"
    refuses: Set[str] = frozenset()
    relaxed: Traits | None = None
    apart_below: Callable[[int], BoolArray] | None = None

    def __post_init__(self) -> None:
        limits = None if self.limits is None else tuple(self.limits)
        whole = (as_whole(self.leaves) or 0) >= 1
        _one_of, _parts = f"be one of {', '.join(_SUPERFLUOUS)}", ", ".join(sorted(PARTS_OF_TREES))
        if limits is None and whole:
            limits = (LinearLimit(f"at most {self.leaves} leaves", None, float(self.leaves or 1), leaves=1.0),)
        for name, value, good, kind in (
            ("limits", limits, all(isinstance(limit, LinearLimit) for limit in limits or ()), "hold LinearLimit"),
            ("local", self.local, isinstance(self.local, LocalRules), "be LocalRules or None"),
            ("leaves", self.leaves, whole, "be a whole number of at least 1 or None"),
            ("features", self.features, isinstance(self.features, FeatureRule), "be a FeatureRule or None"),
            ("superfluous_splits", self.superfluous_splits, self.superfluous_splits in _SUPERFLUOUS, _one_of),
            ("refuses", self.refuses, PARTS_OF_TREES.issuperset(self.refuses), f"be a set of {_parts}"),
            ("relaxed", self.relaxed, isinstance(self.relaxed, Traits), "be Traits or None"),
        ):
            if value is not None and not good:
                raise InvalidInputError(f"Traits: {name} must {kind}, got {shown(value)}")
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "refuses", frozenset(self.refuses))
        object.__setattr__(self, "reads", checked_reads(self.reads, "Traits"))

    @property
    def by_tables(self) -> bool:
        """Whether the tables by number of leaves can apply the constraint."""
        return self.local is not None or self.leaves is not None

    @property
    def is_priced(self) -> bool:
        """Whether all limits can be priced."""
        return self.limits is not None and all(limit.is_priced for limit in self.limits)

    @property
    def survives_pruning(self) -> bool:
        """Whether a feasible tree stays feasible if superfluous splits are removed."""
        if self.by_predictions or self.superfluous_splits != "matter":
            return True
        if self.by_tables or self.features is not None:
            return True
        return self.limits is not None and all(
            limit.leaves >= 0.0 and (limit.branches is None or bool((limit.branches >= 0.0).all()))
            for limit in self.limits
        )

    @property
    def has_form(self) -> bool:
        """Whether the constraint has a form."""
        return self.by_tables or self.features is not None or self.limits is not None

    def on_paths(self, n_samples: int) -> LocalRules | None:
        """Return the constraint as local rules, if it has them or only forbids features; else None."""
        if self.local is not None or self.features is None or self.features.forbidden is None:
            return self.local
        return LocalRules(np.zeros((1, n_samples)), (0.0,), np.diag(self.features.forbidden))

    def shape_problem(self, dataset: BinaryDataset) -> str | None:
        """Return which form does not have the shape of the data, as a clause; None if all do."""
        n, n_features, n_classes = *dataset.X.shape, dataset.n_classes
        for limit in self.limits or ():
            if limit.predictions is not None and limit.predictions.shape != (n, n_classes):
                return f"the predictions of limit {limit.name!r} do not have the rows and classes of the data"
            if limit.branches is not None and limit.branches.shape != (n_features,):
                return f"the branches of limit {limit.name!r} do not have the columns of the data"
        if self.local is not None and not self.local.fit(n, n_features):
            return "local does not have the rows or columns of the data"
        if self.features is not None and self.features.group.shape != (n_features,):
            return "features does not have the columns of the data"
        return None

    def contradiction(self, tree: DecisionTree, X: BoolMatrix, *, satisfied: bool) -> str | None:
        """Return which form contradicts `violation` for a tree, as a clause; None if all agree.

        Parameters
        ----------
        tree : DecisionTree
        X : bool array
            Features of the data that the constraint was bound to.
        satisfied : bool
            Whether `violation` allows the tree.
        """
        for form in self._disagreeing(tree, X, satisfied):
            if satisfied:
                return f"its `traits.{form}` forbids a tree that its `violation` allows"
            return f"its `traits.{form}` allows a tree that its `violation` forbids"
        return None

    def _disagreeing(self, tree: DecisionTree, X: BoolMatrix, satisfied: bool) -> Iterator[str]:
        """Yield the forms that clearly forbid a tree that satisfies the constraint, or clearly allow another one."""
        if self.local is not None:
            over = self.local.excess(tree, X)
            if over > ROUNDING if satisfied else over < -ROUNDING:
                yield "local"
        if self.apart_below is not None:
            root = int(tree.feature[0])
            rules = None if root < 0 else LocalRules(np.zeros((1, len(X))), (0.0,), self.apart_below(root))
            if satisfied != (rules is None or rules.excess(tree, X) <= 0.0):
                yield "apart_below"
        if self.leaves is not None and satisfied != (tree.n_leaves <= self.leaves):
            yield "leaves"
        if self.features is not None:
            rule, used = self.features, self.features.used(tree)
            if not satisfied:
                disagrees = rule.cost(used) <= rule.at_most
            else:
                over = rule.excess(used)
                disagrees = over > 0.0 and over > ROUNDING * max(rule.at_most, rule.cost(used))
            if disagrees:
                yield "features"
        if self.limits is not None:
            misses = []
            for limit in self.limits:
                sum_, size = limit.used_by(tree, X)
                misses.append((sum_ - limit.upper, limit.tolerance, ROUNDING * max(size, abs(limit.upper))))
            if satisfied:
                disagrees = any(miss - forgiven > rounding for miss, forgiven, rounding in misses)
            else:
                disagrees = all(miss < -rounding for miss, _, rounding in misses)
            if disagrees:
                yield "limits"

    def add_to(self, master: Master, name: str) -> None:
        """Add the constraint to a master, from one of its forms."""
        if self.leaves is not None:
            master.model.add_rows(Rows.single(master.p.index, 1.0, upper=float(self.leaves)), name)
        elif self.features is not None:
            self.features.add_to(master, name)
        elif self.limits is not None:
            for limit in self.limits:
                limit.add_to(master)
        elif self.local is not None:
            _add_local_rules(self.local, master, name)

    def forbid(self, tree: DecisionTree, master: Master) -> Rows | None:
        """Return rows that an infeasible tree violates and that every feasible tree satisfies; None if unknown."""
        return None if self.local is None else _forbid_light_paths(self.local, tree, master)
