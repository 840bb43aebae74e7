"""Every tree up to a depth on tiny data.

The number of tree shapes with F features is 1, 1 + F, 1 + F (1 + F)**2, ... for depth 0, 1, 2, ...: 295 for
six features at depth two, 7204 for three features at depth three. Keep to that size.

A tree is nested here: ``k`` is a leaf of class k, ``(f, zero, one)`` a branch on feature f.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree


def enumerate_trees(dataset: BinaryDataset, max_depth: int, labels: str = "majority") -> Iterator[DecisionTree]:
    """All trees of depth at most `max_depth`.

    With ``labels="majority"`` each leaf predicts its heaviest class (smallest on ties), with
    ``labels="all"`` every labelling of every shape is given.
    """
    if labels == "all":
        yield from _labelled_trees(dataset.n_features, dataset.n_classes, max_depth)
        return
    for shape in _shapes(dataset.n_features, max_depth):
        yield to_decision_tree(_with_majorities(shape, dataset, list(range(dataset.n_samples))), max_depth)


def enumerate_decision_lists(dataset: BinaryDataset, max_depth: int) -> Iterator[DecisionTree]:
    """All trees in which every branch has a leaf as a child and no column comes twice, with majority labels."""
    everyone = list(range(dataset.n_samples))
    for length in range(max_depth + 1):
        for features in itertools.permutations(range(dataset.n_features), length):
            for sides in itertools.product((0, 1), repeat=length):
                shape = 0
                for feature, goes_on in zip(reversed(features), reversed(sides), strict=True):
                    shape = (feature, 0, shape) if goes_on else (feature, shape, 0)
                yield to_decision_tree(_with_majorities(shape, dataset, everyone), max_depth)


def best_value(dataset: BinaryDataset, max_depth: int, leaf_price: float) -> float:
    """Largest score minus leaf_price times leaves over all trees."""
    scores = best_score_by_leaves(dataset, max_depth)
    return max(score - leaf_price * n_leaves for n_leaves, score in scores.items())


def best_score_by_leaves(dataset: BinaryDataset, max_depth: int) -> dict[int, float]:
    """Best score over the trees with exactly that many leaves."""
    best: dict[int, float] = {}
    everyone = list(range(dataset.n_samples))
    for shape in _shapes(dataset.n_features, max_depth):
        score, n_leaves = _score_of_shape(shape, dataset, everyone)
        best[n_leaves] = max(score, best.get(n_leaves, score))
    return best


def to_decision_tree(nested, max_depth: int) -> DecisionTree:
    """Heap-order arrays of a nested tree."""
    feature = np.full(2 ** (max_depth + 1) - 1, -1)
    label = feature.copy()
    todo = [(1, nested)]
    while todo:
        node, part = todo.pop()
        if isinstance(part, tuple):
            feature[node - 1] = part[0]
            todo += [(2 * node, part[1]), (2 * node + 1, part[2])]
        else:
            label[node - 1] = part
    return DecisionTree(feature, label)


@lru_cache(maxsize=16)
def _labelled_trees(n_features: int, n_classes: int, max_depth: int) -> tuple[DecisionTree, ...]:
    """Every labelling of every shape; these do not depend on the rows."""
    return tuple(
        to_decision_tree(nested, max_depth)
        for shape in _shapes(n_features, max_depth)
        for nested in _labellings(shape, n_classes)
    )


def _shapes(n_features: int, max_depth: int):
    yield 0
    if max_depth > 0:
        below = list(_shapes(n_features, max_depth - 1))
        for feature in range(n_features):
            for zero, one in itertools.product(below, below):
                yield (feature, zero, one)


def _labellings(shape, n_classes: int):
    if not isinstance(shape, tuple):
        yield from range(n_classes)
        return
    ones = list(_labellings(shape[2], n_classes))
    for zero in _labellings(shape[1], n_classes):
        for one in ones:
            yield (shape[0], zero, one)


def _split(dataset: BinaryDataset, rows: list[int], feature: int) -> tuple[list[int], list[int]]:
    return [i for i in rows if not dataset.X[i, feature]], [i for i in rows if dataset.X[i, feature]]


def _class_totals(dataset: BinaryDataset, rows: list[int]) -> list[float]:
    totals = [0.0] * dataset.n_classes
    for i in rows:
        totals[dataset.y[i]] += float(dataset.weights[i])
    return totals


def _with_majorities(shape, dataset: BinaryDataset, rows: list[int]):
    if not isinstance(shape, tuple):
        totals = _class_totals(dataset, rows)
        return totals.index(max(totals))
    zero, one = _split(dataset, rows, shape[0])
    return (shape[0], _with_majorities(shape[1], dataset, zero), _with_majorities(shape[2], dataset, one))


def _score_of_shape(shape, dataset: BinaryDataset, rows: list[int]) -> tuple[float, int]:
    if not isinstance(shape, tuple):
        return max(_class_totals(dataset, rows)), 1
    zero, one = _split(dataset, rows, shape[0])
    score_zero, leaves_zero = _score_of_shape(shape[1], dataset, zero)
    score_one, leaves_one = _score_of_shape(shape[2], dataset, one)
    return score_zero + score_one, leaves_zero + leaves_one
