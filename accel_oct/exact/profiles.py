"""Score profiles: the best score for every number of leaves, of one set and of all its sides.

A profile of depth d is an array of 2**d numbers: entry h - 1 is the best score of a tree of depth at most d with at
most h leaves. Profiles do not know the leaf price, so one computation serves all of them. They add up: the profile of a
split is the max-plus convolution of the profiles of its sides.

Numbers are kept in the units of the counting tables: with two classes the sum of |d| over the leaves, which is
twice the score minus the weight; with more classes the score itself. `Units` converts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.support.arrays import Array, FloatArray
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class Units:
    """Conversion between table units and scores."""

    signed: bool

    def to_score(self, number: Any, weight: Any) -> Any:
        """Score of trees with this number on samples of this total weight."""
        return (number + weight) / 2 if self.signed else number

    def from_score(self, score: Any, weight: Any) -> Any:
        """The reverse."""
        return 2 * score - weight if self.signed else score

    def price(self, leaf_price: float) -> float:
        """Leaf price in table units."""
        return 2 * leaf_price if self.signed else leaf_price


def convolve(left: Array, right: Array) -> Array:
    """Max-plus convolution along the last axis: entry h - 1 is the best sum over leaves i + j = h, h >= 2.

    Entry 0 (a single leaf) is not a split and stays minus infinity.
    """
    n_left, n_right = left.shape[-1], right.shape[-1]
    result = np.full((*left.shape[:-1], n_left + n_right), -np.inf)
    for i in range(n_left):
        part = result[..., i + 1 : i + 1 + n_right]
        np.maximum(part, left[..., i : i + 1] + right, out=part)
    return result


def convolve_rising(left: Array, right: Array, size: int) -> Array:
    """`convolve` of profiles, which rise along their last axis, up to so many leaves.

    Only where the left one rises can another leaf there be worth anything: most profiles of deep trees rise seldom.
    """
    n_right = min(right.shape[-1], size - 1)
    result = np.full((*left.shape[:-1], size), -np.inf)
    rises = (np.diff(left, axis=-1) > 0).reshape(-1, left.shape[-1] - 1).any(axis=0)
    for i in [0, *(np.flatnonzero(rises) + 1).tolist()]:
        part = result[..., i + 1 : i + 1 + n_right]
        np.maximum(part, left[..., i : i + 1] + right[..., : part.shape[-1]], out=part)
    return np.asarray(np.maximum.accumulate(result, axis=-1))


def with_leaf(split: Array, leaf: Array) -> Array:
    """Profile from the best splits and the score of a single leaf: made monotone."""
    split[..., 0] = leaf
    return np.asarray(np.maximum.accumulate(split, axis=-1))


@dataclass
class Profile:
    """Profile of one set and depth in table units, with what is needed to rebuild its trees.

    `lower` are scores of known trees, `upper` proven bounds; they agree everywhere when `exact`.
    """

    lower: FloatArray
    upper: FloatArray
    tree: Callable[[int], DecisionTree]

    @property
    def exact(self) -> bool:
        """Whether every number of leaves is proven."""
        return bool(np.array_equal(self.lower, self.upper))


def better_of(found: Profile, fallback: Profile) -> Profile:
    """The better known tree for each number of leaves, with the fallback's bounds."""
    lower = np.maximum(found.lower, fallback.lower)

    def tree(leaves: int) -> DecisionTree:
        source = found if found.lower[leaves - 1] >= fallback.lower[leaves - 1] else fallback
        return source.tree(leaves)

    return Profile(lower, np.maximum(lower, fallback.upper), tree)


def extended(profile: FloatArray, size: int) -> FloatArray:
    """A profile of lower depth as (lower bounds of) one for as many leaves."""
    return np.concatenate([profile, np.full(size - profile.size, profile[-1])])


def find_split(zero: FloatArray, one: FloatArray, values: FloatArray, leaves: int) -> tuple[int, int, int] | None:
    """Column and leaf counts of both sides that reach ``values[leaves - 1]``; None when a leaf does."""
    goal = values[leaves - 1]
    if values[0] == goal:
        return None
    size = zero.shape[1]
    for total in range(2, leaves + 1):
        if values[total - 1] != goal:
            continue
        for left in range(max(1, total - size), min(size, total - 1) + 1):
            sums = zero[:, left - 1] + one[:, total - left - 1]
            column = int(np.argmax(sums))
            if sums[column] == goal:
                return column, left, total - left
    raise AssertionError("a profile entry has no split that reaches it")
