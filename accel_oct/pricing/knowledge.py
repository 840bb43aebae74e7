"""What prices say of trees by their root, in a form that outlives the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_oct.exact.limited import PricedProblem
from accel_oct.exact.limited_points import LimitedProblem, split_keys

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PriceBound:
    """What trees can be worth at some prices, whether they keep the limits or not, by their root.

    Attributes
    ----------
    priced : PricedProblem
        The priced value is the sum of its `weights` over predictions minus its `leaf_price` for every leaf.
    leaf : float
        No single leaf exceeds it.
    roots : float array (n_features,)
        No tree that branches on a feature at the root exceeds it. All finite.
    """

    priced: PricedProblem
    leaf: float
    roots: FloatArray


@dataclass(frozen=True, eq=False)
class PricedKnowledge:
    """What a search by prices leaves behind where it proves nothing.

    Attributes
    ----------
    problem : LimitedProblem
    prices : tuple of PriceBound
        At prices that bounded well, the best first.
    bounds : float array (n_features,)
        The value of no tree that keeps the limits and branches on a feature at the root exceeds it; minus infinity
        where no such tree keeps them.
    leaf : float
        The same for a single leaf.
    """

    problem: LimitedProblem
    prices: tuple[PriceBound, ...]
    bounds: FloatArray
    leaf: float

    @classmethod
    def of(
        cls,
        problem: LimitedProblem,
        common: Sequence[tuple[PricedProblem, float, Mapping[int, float]]],
        own: Sequence[tuple[int, PricedProblem, float]],
        roots: Mapping[int, float],
    ) -> PricedKnowledge:
        """From bounds on values as they were found.

        Parameters
        ----------
        common : sequence of (prices, bound of all trees, bounds by root feature)
            The best first; bounds by root feature may be missing.
        own : sequence of (root feature, prices, bound of trees with this root)
        roots : mapping
            What else is known of the trees of single roots.
        """
        found = []
        bounds, leaf = np.full(problem.X.shape[1], np.inf), float(problem.gains.sum(axis=0).max()) - problem.leaf_price
        for priced, most, by_root in common:
            lone = leaf_bound(priced)
            leaf = min(leaf, lone)
            every = by_column(problem, by_root, most, lone)
            bounds = np.minimum(bounds, every)
            found.append(_price_bound(problem, priced, lone, every))
        for root, priced, most in own:
            every = by_column(problem, {root: most}, _trivial(priced), np.inf)
            found.append(_price_bound(problem, priced, leaf_bound(priced), every))
            roots = {**roots, root: min(most, roots.get(root, np.inf))}
        lowest = by_column(problem, roots, np.inf, np.inf)
        bounds = np.minimum(bounds, lowest)
        # A split that separates nothing can be left out: what it leads to is no worse, and branches on another feature.
        splits = (problem.X ^ problem.X[:1]).any(axis=0)
        bounds[~splits] = np.minimum(bounds[~splits], max(leaf, float(bounds[splits].max(initial=-np.inf))))
        return cls(problem, tuple(found), bounds, leaf)


def leaf_bound(priced: PricedProblem) -> float:
    """What no single leaf exceeds that keeps the limits."""
    return float(priced.weights.sum(axis=0).max()) - priced.leaf_price + priced.constant + priced.error


def by_column(problem: LimitedProblem, bounds: Mapping[int, float], most: float, leaf: float) -> FloatArray:
    """Bounds by root feature for every column, interchangeable ones included; `most` where nothing is known.

    A root that separates nothing can be left out, so its trees are worth no more than a leaf or those of other roots.
    """
    keys = split_keys(problem)
    known: dict[bytes, float] = {}
    for feature, bound in bounds.items():
        key = keys[feature]
        if key is not None:
            known[key] = min(bound, known.get(key, np.inf))
    found = np.array([most if key is None else known.get(key, most) for key in keys])
    splits = (problem.X ^ problem.X[:1]).any(axis=0)
    found[~splits] = min(most, max(leaf, float(found[splits].max(initial=-np.inf))))
    return found


def _trivial(priced: PricedProblem) -> float:
    """A bound on all trees that branch: every point gets what it is worth most as, and there are two leaves."""
    return float(priced.weights.max(axis=1).sum()) - 2 * priced.leaf_price + priced.constant + priced.error


def _price_bound(problem: LimitedProblem, priced: PricedProblem, leaf: float, bounds: FloatArray) -> PriceBound:
    """Without the constant; nothing is below what the worst tree is worth, nor above what the best could be."""
    worst = -priced.leaf_price * 2**problem.max_depth
    roots = np.maximum(np.minimum(bounds, _trivial(priced)) - priced.constant, worst)
    return PriceBound(priced, leaf - priced.constant, roots)
