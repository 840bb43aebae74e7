"""The least cost of the trees that a certificate is about, from its text and its table alone, by every tree.

Nothing is shared with the checker: rows are read by `csv`, limits are evaluated as they are stated, in fractions. For
binary columns and whole weights.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from oracles.outcomes import predictions


class Problem:
    """The problem that a certificate states, on the table's rows."""

    def __init__(self, content: dict[str, Any], table: Path) -> None:
        header, *rows = list(csv.reader(table.open()))
        self.content, data = content, content["data"]
        self.cells = {name: [row[place] for row in rows] for place, name in enumerate(header)}
        weights = [1] * len(rows) if data["weight"] is None else self.cells[data["weight"]]
        self.weights = [round(Fraction(w) * Fraction(2) ** data["weight_bits"]) for w in weights]
        self.labels = [data["classes"].index(text) for text in self.cells[data["target"]]]
        self.X = [[int(self.cells[name][i]) for name, *_ in data["columns"]] for i in range(len(rows))]
        self.price = Fraction(content["problem"]["leaf_price"])

    def weight(
        self, conditions: list[Any], predicted: list[int] | None = None, classes: list[int] | None = None
    ) -> int:
        rows = [i for i in range(len(self.labels)) if all(self.cells[name][i] in texts for name, texts in conditions)]
        return sum(self.weights[i] for i in rows if classes is None or predicted is None or predicted[i] in classes)

    def keeps(self, predicted: list[int], leaves: int) -> bool:
        """Whether a tree with these predictions and leaves satisfies the limits."""
        for limit in self.content["problem"].get("limits", []):
            used = Fraction(limit.get("leaves", "0")) * leaves
            for term in limit["terms"]:
                part = self.weight(term["rows"], predicted, term["predicted"])
                used += Fraction(term["times"]) * part / self.weight(term["per"])
            if used > Fraction(limit["at_most"]):
                return False
        return True

    def trees(self) -> Iterator[tuple[int, Any, bool]]:
        """Yield cost, nested tree and whether it satisfies the limits; of equal predictions the fewest leaves."""
        present = [i for i, weight in enumerate(self.weights) if weight]
        least, depth = self.content["problem"].get("least_leaf_weight", 0), self.content["problem"]["depth"]

        def is_leaf(rows: tuple[int, ...]) -> bool:
            return sum(self.weights[present[i]] for i in rows) >= least

        X, n_classes = [self.X[i] for i in present], len(self.content["data"]["classes"])
        for given, leaves, nested in predictions(X, n_classes, len(present) if depth is None else depth, is_leaf):
            predicted = [-1] * len(self.labels)
            for i, label in zip(present, given, strict=True):
                predicted[i] = label
            wrong = sum(self.weights[i] for i in present if predicted[i] != self.labels[i])
            cost = wrong * self.price.denominator + leaves * self.price.numerator
            yield cost, nested, self.keeps(predicted, leaves)

    def least(self) -> int | None:
        """Return the least cost of the trees that satisfy the limits; None if there are none."""
        return min((cost for cost, _, kept in self.trees() if kept), default=None)


def as_nodes(nested: Any) -> list[list[int]]:
    """Return a nested tree over binary columns as nodes of the format."""
    if not isinstance(nested, tuple):
        return [[nested]]
    nodes: list[list[int]] = [[nested[0], 1, 0, 0]]
    for place, child in ((2, nested[1]), (3, nested[2])):
        start = len(nodes)
        nodes[0][place] = start
        for node in as_nodes(child):
            nodes.append(node if len(node) == 1 else [*node[:2], node[2] + start, node[3] + start])
    return nodes
