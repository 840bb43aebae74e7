"""Constraints on the features of a tree: forbidden features, their number, their total cost, forbidden pairs.

Constraints on the whole tree depend on the set of features that it uses, by groups: usually a group holds all features
made from one column of the user's table.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from accel_oct.constraints.arguments import distinct_values, feature_places, listed, number
from accel_oct.constraints.base import BoundConstraint, Constraint
from accel_oct.constraints.traits import FeatureBudget, FeaturePairs, FeatureRule, Traits
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.support.arguments import number_array, whole_number
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class MaxFeatures(Constraint):
    """At most `n` distinct features: ``sum of u_g <= n``.

    Parameters
    ----------
    n : int
        At least 0; with 0 the tree is a single leaf.
    sources : array (n_features,), optional
        Source of every feature; features of one source count once. By default the sources are the columns of the user's
        table; for binary X every feature is its own source.
    """

    n: int
    sources: Any = None

    def __post_init__(self) -> None:
        whole_number(self.n, "MaxFeatures: n")

    def bind(self, dataset: BinaryDataset) -> BoundFeatureRule:
        names, group = grouped(self.sources, dataset, "MaxFeatures: sources")
        budget = FeatureBudget(group, np.ones(len(names)), float(self.n))
        return BoundFeatureRule(f"at most {self.n} feature{'s' * (self.n != 1)}", budget, self.sources is not None)


@dataclass(frozen=True, eq=False)
class FeatureCosts(Constraint):
    """Limit on the prices of the sources that the tree uses, each counted once: ``sum of price_g u_g <= at_most``.

    Parameters
    ----------
    prices : array or mapping
        Not negative. One per source, in the sorted order of the sources (without `sources`: one per column); or a
        mapping from sources (without `sources`: from names of columns) to prices; sources that are missing are free.
    sources : array (n_features,), optional
        Source of every feature; by default as in `MaxFeatures`.
    at_most : float
        Required. Prices without a limit, as part of the objective, are not supported.
    """

    prices: Any
    sources: Any = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.at_most is None:
            raise InvalidInputError("FeatureCosts: at_most must be given: prices without a limit are not supported")
        if not 0 <= number(self.at_most, "FeatureCosts: at_most") < np.inf:
            raise InvalidInputError(f"FeatureCosts: at_most must be finite and not negative, got {shown(self.at_most)}")

    def bind(self, dataset: BinaryDataset) -> BoundFeatureRule:
        assert self.at_most is not None
        names, group = grouped(self.sources, dataset, "FeatureCosts: sources")
        if isinstance(self.prices, Mapping):
            price = self._named_prices(
                names if self.sources is not None or dataset.sources else list(dataset.feature_names),
                (*dataset.row_values, *dataset.columns) if self.sources is None and dataset.sources is not None else (),
            )
        else:
            price = number_array(self.prices, (len(names),), "FeatureCosts: prices", ", one price per source")
        if not (np.isfinite(price).all() and (price >= 0).all()):
            raise InvalidInputError(f"FeatureCosts: prices must be finite and not negative, got {shown(self.prices)}")
        budget, by_place = FeatureBudget(group, price, float(self.at_most)), not isinstance(self.prices, Mapping)
        name = f"features for at most {self.at_most:g}"
        return BoundFeatureRule(name, budget, by_place or self.sources is not None)

    def _named_prices(self, names: list[Any], unused: Container[Any]) -> FloatArray:
        """Return the prices by place; names in `unused`, such as columns that are constant in a fold, are skipped."""
        price, place = np.zeros(len(names)), {name: place for place, name in enumerate(names)}
        for name, value in self.prices.items():
            paid = number(value, f"FeatureCosts: prices[{shown(name)}]")
            if name in place:
                price[place[name]] = paid
            elif name not in unused:
                what = "column" if self.sources is None else "source"
                raise InvalidInputError(f"FeatureCosts: prices: there is no {what} {shown(name)}")
        return price


@dataclass(frozen=True, eq=False)
class ForbiddenFeatures(Constraint):
    """No branch on some columns: ``sum of b[n, f] over all nodes n and forbidden f <= 0``.

    Parameters
    ----------
    features : sequence of int or str
        Columns by index or by name; the name of a column of the user's table means all features made from it.
    """

    features: Any

    def bind(self, dataset: BinaryDataset) -> BoundFeatureRule:
        where = "ForbiddenFeatures: features"
        named = listed(self.features, where)
        places = [place for value in named for place in feature_places(value, dataset, where)]
        group = np.zeros(dataset.n_features, dtype=np.int64)
        group[places] = 1
        names = ", ".join(dataset.feature_names[place] for place in sorted(set(places))[:5])
        name = f"no branch on {names}" + (", ..." if len(set(places)) > 5 else "")
        by_place = not all(isinstance(value, str) for value in named)
        return BoundFeatureRule(name, FeatureBudget(group, np.array([0.0, 1.0]), 0.0), by_place)


@dataclass(frozen=True, eq=False)
class ForbiddenPairs(Constraint):
    """No path from the root to a leaf, or no tree, branches on both columns of a pair.

    On a path: ``b[m, f] + sum of b[n, g] over the partners g of f <= 1`` for every node n and every m above it. In the
    tree: ``u_f + u_g <= 1`` for every pair.

    Parameters
    ----------
    pairs : sequence of pairs of int or str
        Two columns each, by index or by name; a column of the user's table means all features made from it.
    on : {"path", "tree"}

    Notes
    -----
    With ``on="path"`` subtrees stay independent, and the subtree tables apply the rule (`Traits.local`). With
    ``on="tree"`` the rule is about the set of features of the tree, and is solved like `MaxFeatures`.
    """

    pairs: Any
    on: Literal["path", "tree"] = "path"

    def __post_init__(self) -> None:
        if not isinstance(self.on, str) or self.on not in ("path", "tree"):
            raise InvalidInputError(f"ForbiddenPairs: on must be 'path' or 'tree', got {shown(self.on)}")

    def bind(self, dataset: BinaryDataset) -> BoundFeatureRule | BoundPathPairs:
        where, found, by_place = "ForbiddenPairs: pairs", set(), False
        for pair in listed(self.pairs, where):
            members = [feature_places(value, dataset, where) for value in listed(pair, where)]
            if len(members) != 2 or set(members[0]) & set(members[1]):
                raise InvalidInputError(f"{where} must hold two different columns each, got {shown(pair)}")
            found |= {(min(f, g), max(f, g)) for f in members[0] for g in members[1]}
            by_place = by_place or not all(isinstance(value, str) for value in pair)
        pairs, name = tuple(sorted(found)), f"{len(found)} forbidden pairs in a {self.on}"
        if self.on == "tree":
            return BoundFeatureRule(name, FeaturePairs(pairs, dataset.n_features), by_place)
        return BoundPathPairs(name, pairs, dataset.X.shape, by_place)


@dataclass(frozen=True, eq=False)
class BoundFeatureRule(BoundConstraint):
    """A rule about the set of features that a tree uses.

    Attributes
    ----------
    by_place : bool
        Whether features were given by index instead of by the name of a column.
    """

    name: str
    rule: FeatureRule
    by_place: bool

    @cached_property
    def traits(self) -> Traits:
        return Traits(features=self.rule, reads={"features"} if self.by_place else frozenset())

    @property
    def allowed(self) -> tuple[None, float]:
        return None, self.rule.at_most

    def value(self, tree: DecisionTree) -> float:
        """Return the total cost of the features that the tree uses."""
        return self.rule.cost(self.rule.used(tree))

    def violation(self, tree: DecisionTree) -> float:
        return self.rule.excess(self.rule.used(tree))


@dataclass(frozen=True, eq=False)
class BoundPathPairs(BoundConstraint):
    """Pairs of columns that may not share a path, smaller index first, for data of some shape."""

    name: str
    pairs: tuple[tuple[int, int], ...]
    shape: tuple[int, int]
    by_place: bool

    @cached_property
    def traits(self) -> Traits:
        reads = {"features"} if self.by_place else frozenset()
        return Traits(local=LocalRules.pairs(*self.shape, self.pairs), reads=reads)

    @property
    def allowed(self) -> tuple[None, float]:
        return None, 0.0

    def value(self, tree: DecisionTree) -> float:
        """Return the number of pairs that occur."""
        return self.violation(tree)

    def violation(self, tree: DecisionTree) -> float:
        """Return the number of pairs that occur, counted on every path."""
        paths = [{feature for feature, _ in tree.path(leaf)} for leaf in tree.leaves.tolist()]
        return float(sum(f in used and g in used for used in paths for f, g in self.pairs))


def grouped(groups: Any, dataset: BinaryDataset, where: str) -> tuple[list[Any], IntArray]:
    """Return the distinct groups in sorted order, and the place of each column's group among them."""
    if groups is None and dataset.sources is not None:
        groups = dataset.sources
    if groups is None:
        return list(range(dataset.n_features)), np.arange(dataset.n_features)
    return distinct_values(groups, dataset.n_features, where, "column")
