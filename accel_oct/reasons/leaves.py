"""The leaves of a fitted tree as a table: rule, class, counts, probability, exact interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from accel_oct.export.view import AGAINST_MAJORITY, view
from accel_oct.support.arrays import IntArray
from accel_oct.tree.probabilities import exact_interval, node_probabilities


@dataclass(frozen=True)
class Leaf:
    """A leaf of a fitted tree.

    Attributes
    ----------
    leaf : int
        As in ``tree_``.
    rule : tuple of str
        The answers on the path from the root.
    prediction : object
        Class of the leaf.
    counts : dict of int
        Rows of each class, without weights.
    probability : float
        Probability of the predicted class, as in `predict_proba`.
    low, high : float
        Exact interval for the share of the predicted class, from `counts`.
    against_majority : bool
        Whether another class has more weight in the training data of the leaf, apart from class weights.
    """

    leaf: int
    rule: tuple[str, ...]
    prediction: Any
    counts: dict[Any, int]
    probability: float
    low: float
    high: float
    against_majority: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.counts.values())

    @property
    def n_right(self) -> int:
        """Number of rows of the predicted class."""
        return self.counts[self.prediction]


class LeafTable(Sequence[Leaf]):
    """The leaves in the order of ``tree_``; `print` shows a table."""

    def __init__(self, leaves: Sequence[Leaf], confidence: float) -> None:
        self._leaves = tuple(leaves)
        self.confidence = confidence

    @overload
    def __getitem__(self, place: int) -> Leaf: ...

    @overload
    def __getitem__(self, place: slice) -> LeafTable: ...

    def __getitem__(self, place: int | slice) -> Leaf | LeafTable:
        if isinstance(place, slice):
            return LeafTable(self._leaves[place], self.confidence)
        return self._leaves[place]

    def __len__(self) -> int:
        return len(self._leaves)

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self._leaves)

    def __str__(self) -> str:
        head = ("class", "probability", f"{self.confidence:.0%} interval", "right", "rows", "rule")
        rows = [
            (
                f"{leaf.prediction}{' *' if leaf.against_majority else ''}",
                f"{leaf.probability:.3f}",
                f"{leaf.low:.3f} to {leaf.high:.3f}",
                str(leaf.n_right),
                str(leaf.n_rows),
                " and ".join(leaf.rule) or "every row",
            )
            for leaf in self._leaves
        ]
        widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)][:-1]
        lines = ["  ".join([*map(str.ljust, cells, widths), cells[-1]]) for cells in (head, *rows)]
        if any(leaf.against_majority for leaf in self._leaves):
            lines.append(f"* {AGAINST_MAJORITY}")
        return "\n".join(lines)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows of the table as dictionaries."""
        return [
            {
                "leaf": leaf.leaf,
                "rule": " and ".join(leaf.rule),
                "prediction": leaf.prediction,
                "rows": leaf.n_rows,
                "right": leaf.n_right,
                "probability": leaf.probability,
                "low": leaf.low,
                "high": leaf.high,
                **{f"rows of {label}": number for label, number in leaf.counts.items()},
            }
            for leaf in self._leaves
        ]

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per leaf."""
        import pandas as pd

        return pd.DataFrame(self.to_dicts())


def leaf_table(model: Any, counts: IntArray | None = None, *, confidence: float = 0.95) -> LeafTable:
    """Return the leaves of a fitted model; see `OptimalTreeClassifier.leaf_table`.

    Parameters
    ----------
    counts : int array (node_count, n_classes), optional
        Rows of each class at each node; by default those of the training data.
    """
    tree = view(model)
    counts = model.tree_.class_counts if counts is None else counts
    rules: dict[int, tuple[str, ...]] = {0: ()}
    for node in tree.nodes:
        if not node.is_leaf:
            rules[node.left] = (*rules[node.index], node.no)
            rules[node.right] = (*rules[node.index], node.yes)
    labels = np.maximum(model.tree_.label, 0)
    low, high = exact_interval(counts[np.arange(len(labels)), labels], counts.sum(axis=1), confidence)
    shares = node_probabilities(model.tree_, model.smoothing_)
    leaves = [
        Leaf(
            leaf=node.index,
            rule=rules[node.index],
            prediction=tree.classes[node.label],
            counts=dict(zip(tree.classes, counts[node.index].tolist(), strict=True)),
            probability=float(shares[node.index, node.label]),
            low=float(low[node.index]),
            high=float(high[node.index]),
            against_majority=node.against_majority,
        )
        for node in tree.nodes
        if node.is_leaf
    ]
    return LeafTable(leaves, confidence)


def held_out_counts(leaves: NDArray[np.int64], codes: NDArray[np.int64], shape: tuple[int, int]) -> IntArray:
    """Return the rows of each class in each leaf: (node_count, n_classes); codes of -1 are not counted."""
    known = codes >= 0
    found = np.zeros(shape, dtype=np.int64)
    np.add.at(found, (leaves[known], codes[known]), 1)
    return found
