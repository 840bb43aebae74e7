"""Trees that differ from an ordered tree in one question, one by one, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from accel_oct.exact.ordered import OrderedTree


def one_question_apart(tree: OrderedTree, ranks: np.ndarray, n_labels: int) -> Iterator[OrderedTree]:
    """Yield all trees with another question at one node; if its children are leaves, with any labels."""
    for node, column in enumerate(tree.column):
        if column < 0:
            continue
        sides = tree.left[node], tree.right[node]
        stump = all(tree.column[side] < 0 for side in sides)
        for other, order in enumerate(ranks):
            for rank in range(int(order.max(initial=0))):
                columns, cuts = list(tree.column), list(tree.rank)
                columns[node], cuts[node] = other, rank
                changed = replace(tree, column=tuple(columns), rank=tuple(cuts))
                for labels in product(range(n_labels), repeat=2) if stump else [None]:
                    if labels is None:
                        yield changed
                        continue
                    every = list(tree.label)
                    every[sides[0]], every[sides[1]] = labels
                    yield replace(changed, label=tuple(every))


def trees_of_depth_one(ranks: np.ndarray, n_labels: int) -> Iterator[OrderedTree]:
    """Yield all trees with one question."""
    for column, order in enumerate(ranks):
        for rank, low, high in product(range(int(order.max(initial=0))), range(n_labels), range(n_labels)):
            yield OrderedTree((column, -1, -1), (rank, -1, -1), (1, -1, -1), (2, -1, -1), (0, low, high))


def earned(tree: OrderedTree, ranks: np.ndarray, gains: np.ndarray) -> int:
    """What a tree earns."""
    return sum(int(gains[row, label]) for row, label in enumerate(tree.predict(ranks).tolist()))


def supports(tree: OrderedTree, ranks: np.ndarray) -> list[int]:
    """The number of samples of each leaf."""
    place = tree.leaves_of(ranks).tolist()
    return [place.count(node) for node, column in enumerate(tree.column) if column < 0]


def purity(tree: OrderedTree, ranks: np.ndarray, gains: np.ndarray) -> float:
    """The sum over leaves of ``sum_k w_k**2 / sum_k w_k``, by its definition."""
    total = 0.0
    place = tree.leaves_of(ranks)
    for node, column in enumerate(tree.column):
        amounts = gains[place == node].sum(axis=0).astype(float)
        if column < 0 and amounts.sum() > 0:
            total += float((amounts**2).sum() / amounts.sum())
    return total


def masses_hold(tree: OrderedTree, ranks: np.ndarray, masses: np.ndarray, least: np.ndarray) -> bool:
    """Whether each leaf has the least mass."""
    place = tree.leaves_of(ranks)
    leaves = [node for node, column in enumerate(tree.column) if column < 0]
    return all(
        int(mass[place == node].sum()) >= minimum
        for mass, minimum in zip(masses, least, strict=True)
        for node in leaves
    )
