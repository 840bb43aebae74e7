"""Constraints on the paths of a tree: groups of columns that may interact, the first split, the order of splits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from accel_oct.constraints.arguments import feature_places, listed
from accel_oct.constraints.base import BoundConstraint, Constraint, TreePart
from accel_oct.constraints.features import grouped
from accel_oct.constraints.rules import rows_of_weight
from accel_oct.constraints.traits import Traits
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.support.arrays import BoolArray
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class InteractionGroups(Constraint):
    """The columns of every path from the root to a leaf lie together in one group.

    The meaning is that of `interaction_cst` in scikit-learn's gradient boosting and of `interaction_constraints` in
    XGBoost. Groups may overlap. Columns in no group form one further group, as in scikit-learn.

    Parameters
    ----------
    groups : sequence of sequences of int or str, or {"pairwise", "no_interactions"}
        Columns by index or by name; all features of a column of the user's table count as this column. "pairwise"
        allows at most two columns on a path, "no_interactions" one.

    Notes
    -----
    *Pairs.* Call two columns neighbours if some group has both. A path that lies in a group has neighbours only. So
    "no path uses two columns that are not neighbours" follows from the constraint. It is the whole constraint if every
    set of neighbours lies in some group. With the groups {A, B}, {B, C} and {A, C} it is not: A, B, C are neighbours
    and lie in no group.

    *Criterion* (Gilmore). Every set of neighbours lies in a group if and only if for any three groups E1, E2, E3 some
    group contains T, the columns that lie in at least two of them.

    *Proof.* Two columns of T each lie in two of three groups, so they have one of them in common: T is a set of
    neighbours, and lies in a group if all sets of neighbours do. Conversely, let the criterion hold, and let C be a
    smallest set of neighbours that lies in no group. Single columns and pairs of neighbours lie in groups, so C has
    three columns a, b, c. C without a is smaller, so it lies in a group E1; C without b in E2, C without c in E3. Every
    column of C lies in at least two of these, so C is contained in T and lies in a group: a contradiction.

    Where the criterion holds (disjoint groups, for example) the constraint is stated by pairs (`Traits.local`), and
    the subtree tables apply it. Otherwise the pairs are implied (`Traits.relaxed`). With a column c at the root only
    the groups with c matter. Where the criterion holds for these, for every c, each root is searched by the tables
    (`Traits.apart_below`); "pairwise" and the example above are of this kind. Else trees are enumerated.
    """

    groups: Any

    def __post_init__(self) -> None:
        if isinstance(self.groups, str) and self.groups not in ("pairwise", "no_interactions"):
            raise InvalidInputError(
                f"InteractionGroups: groups must be lists of columns, 'pairwise' or 'no_interactions', "
                f"got {shown(self.groups)}"
            )

    def bind(self, dataset: BinaryDataset) -> BoundInteractionGroups:
        columns, column_of = grouped(None, dataset, "InteractionGroups: groups")
        n_columns, by_place = len(columns), False
        if isinstance(self.groups, str):
            size = 1 if self.groups == "no_interactions" else min(2, n_columns)
            return BoundInteractionGroups(self.groups.replace("_", " "), dataset, column_of, size, None, by_place)
        where, found = "InteractionGroups: groups", []
        for place, group in enumerate(listed(self.groups, where)):
            members = np.zeros(n_columns, dtype=bool)
            for value in listed(group, f"{where}[{place}]"):
                members[column_of[feature_places(value, dataset, where)]] = True
                by_place = by_place or not isinstance(value, str)
            found.append(members)
        rest = ~np.any(found, axis=0) if found else np.ones(n_columns, dtype=bool)
        if rest.any():
            found.append(rest)
        name = f"paths within {len(found)} groups of columns"
        return BoundInteractionGroups(name, dataset, column_of, n_columns, _largest(np.array(found)), by_place)


def _largest(groups: BoolArray) -> BoolArray:
    """Return the groups (G, columns) that lie in no other one."""
    groups = np.unique(groups, axis=0)
    inside = np.asarray(~(groups[:, None] & ~groups[None]).any(axis=2))
    np.fill_diagonal(inside, False)
    return groups[~inside.any(axis=1)]


def pairs_suffice(groups: BoolArray) -> bool:
    """Return whether every set of columns that are in pairs in common groups lies in one group.

    See `InteractionGroups`. With disjoint groups E1 and E2 the columns in two of three groups lie in the third one.
    """
    whole = groups.astype(np.int64)
    for first, second in combinations(range(len(groups)), 2):
        both = groups[first] & groups[second]
        if both.any():
            twice = (groups & (groups[first] | groups[second])) | both
            missing = twice.astype(np.int64) @ (1 - whole).T  # columns of `twice` that are not in a group
            if not (missing == 0).any(axis=1).all():
                return False
    return True


class BoundPathRule(BoundConstraint):
    """A rule that every path of a tree satisfies, and with it every shorter path from the root.

    Subclasses have `by_place`: whether features were given by index instead of by the name of a column.
    """

    by_place: bool

    @property
    def allowed(self) -> tuple[None, float]:
        return None, 0.0

    @cached_property
    def traits(self) -> Traits:
        return Traits(superfluous_splits="removable", refuses={"paths"}, reads=self._reads)

    @property
    def _reads(self) -> set[str]:
        return {"features"} if self.by_place else set()

    @abstractmethod
    def breaks(self, path: Sequence[int]) -> bool:
        """Return whether a path, as features from the root on, breaks the rule."""

    def value(self, tree: DecisionTree) -> float:
        """Return the number of leaves whose paths break the rule."""
        return float(sum(self.breaks([f for f, _ in tree.path(leaf)]) for leaf in tree.leaves.tolist()))

    def violation(self, tree: DecisionTree) -> float:
        return self.value(tree)

    def refuses(self, part: TreePart) -> bool:
        assert part.path is not None
        return self.breaks([feature for feature, _ in part.path])


@dataclass(frozen=True, eq=False)
class BoundInteractionGroups(BoundPathRule):
    """Groups of columns, for features made from these columns.

    Attributes
    ----------
    column_of : int array (n_features,)
        Place of the column of each feature.
    size : int
        Largest number of columns on a path.
    groups : bool array (G, columns) or None
        None if only the size is limited.
    """

    name: str
    dataset: BinaryDataset
    column_of: Any
    size: int
    groups: BoolArray | None
    by_place: bool

    @cached_property
    def traits(self) -> Traits:
        neighbours = self._neighbours
        apart = ~neighbours[np.ix_(self.column_of, self.column_of)]
        places = zip(*(place.tolist() for place in np.nonzero(apart)), strict=True)
        pairs = LocalRules.pairs(self.dataset.n_samples, self.dataset.n_features, places)
        if self._by_pairs:
            return Traits(local=pairs, reads=self._reads)
        groups = self.groups
        below = groups is None or all(pairs_suffice(groups[own]) for own in groups.T)
        return Traits(
            superfluous_splits="removable",
            refuses={"paths"},
            relaxed=Traits(local=pairs, reads=self._reads),
            apart_below=self._apart_below if below else None,
            reads=self._reads,
        )

    def _apart_below(self, feature: int) -> BoolArray:
        """Return which features (F, F) are in no group with each other and with the feature at the root."""
        column = int(self.column_of[feature])
        if self.groups is None:  # pairs: the column at the root and another one
            neighbours = np.eye(len(self._neighbours), dtype=bool)
            neighbours[column] = neighbours[:, column] = True
        else:
            whole = self.groups[self.groups[:, column]].astype(np.int64)
            neighbours = whole.T @ whole > 0
        return np.asarray(~neighbours[np.ix_(self.column_of, self.column_of)])

    @cached_property
    def _by_pairs(self) -> bool:
        if self.groups is None:
            return self.size < 2 or len(self._neighbours) <= self.size
        return pairs_suffice(self.groups)

    @cached_property
    def _neighbours(self) -> BoolArray:
        if self.groups is not None:
            whole = self.groups.astype(np.int64)
            return np.asarray(whole.T @ whole > 0)
        n_columns = int(self.column_of.max()) + 1
        return np.ones((n_columns, n_columns), dtype=bool) if self.size > 1 else np.eye(n_columns, dtype=bool)

    def breaks(self, path: Sequence[int]) -> bool:
        columns = list(set(self.column_of[list(path)].tolist()))
        if self.groups is None:
            return len(columns) > self.size
        return not self.groups[:, columns].all(axis=1).any()

    def add_to(self, master: Master) -> None:
        """Add the rows of the pairs; other trees that break the constraint are cut off one by one."""
        (self.traits.relaxed or self.traits).add_to(master, self.name)


@dataclass(frozen=True, eq=False)
class SplitOrder(Constraint):
    """On no path a split on a column of `after` is above a split on a column of `before`.

    So the columns of `before` come first: ``SplitOrder("age", "income")`` asks for the age before the income. A tree
    need not split on either of them, and other columns may be anywhere.

    Parameters
    ----------
    before, after : int, str or sequence of these
        Columns by index or by name; the name of a column of the user's table means all features made from it.
    """

    before: Any
    after: Any

    def bind(self, dataset: BinaryDataset) -> BoundSplitOrder:
        parts, by_place = [], False
        for values, where in ((self.before, "SplitOrder: before"), (self.after, "SplitOrder: after")):
            part, places = _features(values, dataset, where)
            parts.append(part)
            by_place = by_place or places
        common = np.flatnonzero(parts[0] & parts[1])
        if common.size:
            name = dataset.feature_names[int(common[0])]
            raise InvalidInputError(f"SplitOrder: before and after have {shown(name)} in common")
        name = f"{_names(self.before)} before {_names(self.after)}"
        return BoundSplitOrder(name, parts[0], parts[1], by_place)


@dataclass(frozen=True, eq=False)
class BoundSplitOrder(BoundPathRule):
    """Features (n_features,) that may not be below those of `after`."""

    name: str
    before: BoolArray
    after: BoolArray
    by_place: bool

    def breaks(self, path: Sequence[int]) -> bool:
        after, before = self.after[list(path)], self.before[list(path)]
        return bool((np.logical_or.accumulate(after) & before).any())

    def add_to(self, master: Master) -> None:
        """Add a row for every node n and every m above it: of `after` at m and `before` at n at most one."""
        b = master.b.index
        after, before = np.flatnonzero(self.after), np.flatnonzero(self.before)
        rows = [
            Rows.single([*b[(n >> step) - 1, after], *b[n - 1, before]], 1.0, upper=1.0)
            for n in master.topology.internal.tolist()
            for step in range(1, n.bit_length())
        ]
        if rows and after.size and before.size:
            master.model.add_rows(Rows.concatenate(rows), self.name)


@dataclass(frozen=True, eq=False)
class FirstSplit(Constraint):
    """The root of the tree branches on one of some columns, or the tree is a single leaf.

    Only *proper* trees are allowed, as in `TreeRule`: every split separates samples of positive weight, and two sibling
    leaves have different classes. So the first split is never one without a purpose.

    Parameters
    ----------
    columns : int, str or sequence of these
        Columns by index or by name; the name of a column of the user's table means all features made from it.
    """

    columns: Any

    def bind(self, dataset: BinaryDataset) -> BoundFirstSplit:
        first, by_place = _features(self.columns, dataset, "FirstSplit: columns")
        if not isinstance(self.columns, str | int | np.integer) and not len(self.columns):
            raise InvalidInputError("FirstSplit: columns must not be empty")
        return BoundFirstSplit(f"first split on {_names(self.columns)}", dataset, first, by_place)


@dataclass(frozen=True, eq=False)
class BoundFirstSplit(BoundPathRule):
    """Features (n_features,) that the root may branch on."""

    name: str
    dataset: BinaryDataset
    first: BoolArray
    by_place: bool

    @cached_property
    def traits(self) -> Traits:
        # A tree is proper on samples of positive weight.
        return Traits(superfluous_splits="forbidden", refuses={"paths"}, reads={*self._reads, "weight"})

    @cached_property
    def _present(self) -> Any:
        return rows_of_weight(self.dataset)

    def breaks(self, path: Sequence[int]) -> bool:
        return bool(path) and not self.first[path[0]]

    def violation(self, tree: DecisionTree) -> float:
        root = int(tree.feature[0])
        return float((root >= 0 and not self.first[root]) or not tree.is_proper(self._present))

    def value(self, tree: DecisionTree) -> float:
        return self.violation(tree)

    def add_to(self, master: Master) -> None:
        columns = master.b.index[:1, ~self.first].ravel()
        if columns.size:
            master.model.add_rows(Rows.single(columns, 1.0, upper=0.0), self.name)


def _features(values: Any, dataset: BinaryDataset, where: str) -> tuple[BoolArray, bool]:
    """Return the features of some columns (n_features,), and whether a column was given by index."""
    named = [values] if isinstance(values, str | int | np.integer) else listed(values, where)
    chosen = np.zeros(dataset.n_features, dtype=bool)
    chosen[[place for value in named for place in feature_places(value, dataset, where)]] = True
    return chosen, not all(isinstance(value, str) for value in named)


def _names(values: Any) -> str:
    named = [values] if isinstance(values, str | int | np.integer) else list(values)
    return ", ".join(map(str, named[:3])) + (", ..." if len(named) > 3 else "")
