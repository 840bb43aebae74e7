"""Which features a tree may use: none of some, at most so many, at most for so much.

What is said of the whole tree depends on the set of features that it uses, in groups: usually all columns that were
made from one column of the user's table. With u_g = 1 where the tree uses group g, the master has ``b[n, f] <= u_g(f)``
for every node n and every column f of the group.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints.arguments import distinct_values, feature_places, listed, number
from accel_oct.constraints.linear import FORGIVEN, TOLERANCE
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.mip.model import ColumnBlock
from accel_oct.tree import DecisionTree

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeatureBudget:
    """``sum of price_g over the groups g that the tree uses <= at_most``: a bound rule about the set of features.

    Attributes
    ----------
    name : str
    group : int array (n_features,)
        Of every column.
    price : float array (n_groups,)
        Not negative: what keeps the rule keeps it with fewer features.
    at_most : float
    """

    name: str
    group: IntArray
    price: FloatArray
    at_most: float

    def cost(self, groups: Iterable[int]) -> float:
        """Of distinct groups; rounded once, so that it never falls when groups are added."""
        return math.fsum(self.price[g] for g in groups)

    def excess(self, groups: Iterable[int]) -> float:
        """By how much distinct groups cost too much; at most zero where they do not."""
        room = TOLERANCE * max(self.at_most, float(self.price.max(initial=0.0)))
        return self.cost(groups) - self.at_most - room

    @property
    def allowed(self) -> tuple[None, float]:
        return None, self.at_most

    def value(self, tree: DecisionTree) -> float:
        """What the groups that the tree uses cost together."""
        return self.cost(self._used(tree))

    def violation(self, tree: DecisionTree) -> float:
        return self.excess(self._used(tree))

    def _used(self, tree: DecisionTree) -> set[int]:
        return set(self.group[list(tree.features_used)].tolist())

    def add_to(self, master: Master) -> None:
        priced = np.flatnonzero(self.price)
        if not priced.size:
            return
        used = use_columns(master, self.group, self.price > 0, self.name)
        scale = 1.0 / max(self.price.max(), self.at_most)
        upper = self.at_most * scale + FORGIVEN
        master.model.add_rows(Rows.single(used.index, self.price[priced] * scale, upper=upper), self.name)


def use_columns(master: Master, group: IntArray, wanted: NDArray[np.bool_], name: str) -> ColumnBlock:
    """Columns u_g for the wanted groups, in their order: at least one where the tree branches on a column of g."""
    place = np.cumsum(wanted) - 1
    label, number_ = f"used ({name})", 1
    while label in master.model.blocks:
        number_ += 1
        label = f"used ({name}, {number_})"
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


@dataclass(frozen=True, eq=False)
class MaxFeatures:
    """At most `n` distinct features: ``sum of u_g <= n``.

    Parameters
    ----------
    n : int
        Not negative; with zero only leaves are left.
    sources : array (n_features,), optional
        What every feature was made from; features of one source count once. By default the columns of the user's table
        are the sources, however many features were made from each; where X is binary, every feature is its own.
    """

    n: int
    sources: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer) or self.n < 0:
            raise InvalidInputError(f"MaxFeatures: n must be a whole number of at least 0, got {shown(self.n)}")

    def bind(self, dataset: BinaryDataset) -> FeatureBudget:
        names, group = _grouped(self.sources, dataset, "MaxFeatures: sources")
        return FeatureBudget(
            f"at most {self.n} feature{'s' * (self.n != 1)}", group, np.ones(len(names)), float(self.n)
        )


@dataclass(frozen=True, eq=False)
class FeatureCosts:
    """Every source that the tree uses costs its price once: ``sum of price_g u_g <= at_most``.

    Parameters
    ----------
    prices : array or mapping
        Not negative. One per source, in the sorted order of the sources (without `sources`: one per column); or a
        mapping from sources (without `sources`: from names of columns) to prices, where what is not named is free.
    sources : array (n_features,), optional
        What every feature was made from; by default as in `MaxFeatures`.
    at_most : float
        Required: a price that is paid in the objective, without a limit, cannot be said with this constraint.
    """

    prices: Any
    sources: Any = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.at_most is None:
            raise InvalidInputError("FeatureCosts: at_most must be given: prices without a limit are not supported")
        if not 0 <= number(self.at_most, "FeatureCosts: at_most") < np.inf:
            raise InvalidInputError(f"FeatureCosts: at_most must be finite and not negative, got {shown(self.at_most)}")

    def bind(self, dataset: BinaryDataset) -> FeatureBudget:
        assert self.at_most is not None
        names, group = _grouped(self.sources, dataset, "FeatureCosts: sources")
        if isinstance(self.prices, Mapping):
            price = self._named_prices(
                names if self.sources is not None or dataset.sources else list(dataset.feature_names),
                (*dataset.row_values, *dataset.columns) if self.sources is None and dataset.sources is not None else (),
            )
        else:
            price = _prices(self.prices, len(names))
        if not (np.isfinite(price).all() and (price >= 0).all()):
            raise InvalidInputError(f"FeatureCosts: prices must be finite and not negative, got {shown(self.prices)}")
        return FeatureBudget(f"features for at most {self.at_most:g}", group, price, float(self.at_most))

    def _named_prices(self, names: list[Any], unused: Container[Any]) -> FloatArray:
        """`unused` are columns that no feature may have been made from, such as those that are constant in a fold."""
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
class ForbiddenFeatures:
    """No branch on some columns: ``sum of b[n, f] over all nodes n and forbidden f <= 0``.

    Parameters
    ----------
    features : sequence of int or str
        Columns by index or by name; the name of a column of the user's table stands for all features made from it.
    """

    features: Any

    def bind(self, dataset: BinaryDataset) -> BoundForbiddenFeatures:
        where = "ForbiddenFeatures: features"
        places = [place for value in listed(self.features, where) for place in feature_places(value, dataset, where)]
        group = np.zeros(dataset.n_features, dtype=np.int64)
        group[places] = 1
        names = ", ".join(dataset.feature_names[place] for place in sorted(set(places))[:5])
        name = f"no branch on {names}" + (", ..." if len(set(places)) > 5 else "")
        return BoundForbiddenFeatures(name, group, np.array([0.0, 1.0]), 0.0)


class BoundForbiddenFeatures(FeatureBudget):
    """Features that cost something, and nothing to pay with."""

    def add_to(self, master: Master) -> None:
        columns = master.b.index[:, self.group == 1]
        if columns.size:
            master.model.add_rows(Rows.single(columns.ravel(), 1.0, upper=0.0), self.name)


def _grouped(groups: Any, dataset: BinaryDataset, where: str) -> tuple[list[Any], IntArray]:
    """Distinct groups in sorted order, and the place of each column's group among them."""
    if groups is None and dataset.sources is not None:
        groups = dataset.sources
    if groups is None:
        return list(range(dataset.n_features)), np.arange(dataset.n_features)
    return distinct_values(groups, dataset.n_features, where, "column")


def _prices(values: Any, n_groups: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"FeatureCosts: prices must be numbers, got {shown(values)}") from None
    if array.shape != (n_groups,):
        raise InvalidInputError(
            f"FeatureCosts: prices must have one price per source, {n_groups} in all, got the shape {array.shape}"
        )
    return array
