"""A classification tree as two parallel arrays in heap order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix
from accel_oct.data.dataset import BinaryDataset, weighted_bincount
from accel_oct.errors import InvalidInputError
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree.topology import Topology


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """A tree of depth at most D with a binary feature at each branch node and a class at each leaf.

    Section 3.1 of the paper: every available node is a branch node, a leaf, or cut (below a leaf). Node n
    sits at position n - 1; its children are nodes 2n (feature value 0) and 2n + 1 (feature value 1).

    Parameters
    ----------
    feature : int array of length 2**(D+1) - 1
        Branching feature of each branch node, -1 elsewhere.
    label : int array of the same length
        Class index that each leaf predicts, -1 elsewhere.

    Raises
    ------
    InvalidInputError
        If the arrays do not describe a tree.
    """

    feature: IntArray
    label: IntArray

    def __post_init__(self) -> None:
        for name in ("feature", "label"):
            array = np.array(getattr(self, name), dtype=np.int64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        check_arrays(self.feature, self.label)

    @classmethod
    def leaf(cls, label: int, max_depth: int = 0) -> DecisionTree:
        """Return the tree whose root is a leaf predicting class index `label`."""
        if label < 0:
            raise InvalidInputError(f"label must not be negative, got {label}")
        feature, labels = np.full((2, Topology(max_depth).n_nodes), -1)
        labels[0] = label
        return cls._trusted(feature, labels)

    @classmethod
    def branch(cls, feature: int, zero: DecisionTree, one: DecisionTree) -> DecisionTree:
        """Return the tree that branches on `feature` at the root, with subtrees for the values 0 and 1."""
        if feature < 0:
            raise InvalidInputError(f"feature must not be negative, got {feature}")
        n_nodes = 2 * max(len(zero.feature), len(one.feature)) + 1
        features, labels = np.full((2, n_nodes), -1)
        features[0] = feature
        for node, subtree in ((2, zero), (3, one)):
            for level in range(subtree.max_depth + 1):
                here, there = (node << level) - 1, (1 << level) - 1
                inside, size = slice(here, here + there + 1), slice(there, 2 * there + 1)
                features[inside], labels[inside] = subtree.feature[size], subtree.label[size]
        return cls._trusted(features, labels)

    @classmethod
    def from_nested(cls, nested: Any, max_depth: int) -> DecisionTree:
        """Return the tree of a class (a leaf) or a tuple (feature, zero side, one side); valid input is assumed."""
        n_nodes = Topology(max_depth).n_nodes
        feature, label = [-1] * n_nodes, [-1] * n_nodes
        todo = [(0, nested)]
        while todo:
            place, part = todo.pop()
            if isinstance(part, tuple):
                feature[place] = part[0]
                todo += ((2 * place + 1, part[1]), (2 * place + 2, part[2]))
            else:
                label[place] = part
        return cls._trusted(np.array(feature, dtype=np.int64), np.array(label, dtype=np.int64))

    def nested(self, node: int = 1) -> Any:
        """Return the subtree at a node as a class (a leaf) or a tuple (feature, zero side, one side)."""
        feature = int(self.feature[node - 1])
        return int(self.label[node - 1]) if feature < 0 else (feature, self.nested(2 * node), self.nested(2 * node + 1))

    @classmethod
    def _trusted(cls, feature: IntArray, label: IntArray) -> DecisionTree:
        """Create a tree without check and copy, from valid arrays that nothing else refers to."""
        tree = object.__new__(cls)
        for name, array in (("feature", feature), ("label", label)):
            array.flags.writeable = False
            object.__setattr__(tree, name, array)
        return tree

    @classmethod
    def rows_of(cls, feature: IntArray, label: IntArray) -> list[DecisionTree]:
        """Return the trees whose arrays are the rows of two valid matrices that nothing else refers to; no checks."""
        feature.flags.writeable = label.flags.writeable = False
        trees = [object.__new__(cls) for _ in feature]
        for tree, features, labels in zip(trees, feature, label, strict=True):
            tree.__dict__.update(feature=features, label=labels)
        return trees

    @classmethod
    def from_dict(cls, data: Mapping[str, ArrayLike]) -> DecisionTree:
        """Inverse of `to_dict`."""
        try:
            return cls(np.asarray(data["feature"]), np.asarray(data["label"]))
        except KeyError as error:
            raise InvalidInputError(f"data has no entry {error}") from None

    def to_dict(self) -> dict[str, list[int]]:
        """Plain lists, ready for JSON."""
        return {"feature": self.feature.tolist(), "label": self.label.tolist()}

    # --- structure -------------------------------------------------------------------------------------

    @property
    def max_depth(self) -> int:
        """Depth D that the arrays have room for."""
        return len(self.feature).bit_length() - 1

    @property
    def topology(self) -> Topology:
        """The available nodes."""
        return Topology(self.max_depth)

    @cached_property
    def leaves(self) -> IntArray:
        """Node numbers of the leaves, increasing."""
        return np.flatnonzero(self.label >= 0) + 1

    @cached_property
    def branch_nodes(self) -> IntArray:
        """Node numbers of the branch nodes, increasing."""
        return np.flatnonzero(self.feature >= 0) + 1

    @cached_property
    def nodes(self) -> IntArray:
        """Node numbers of the branch nodes and leaves, increasing."""
        return np.flatnonzero((self.feature >= 0) | (self.label >= 0)) + 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves, H in the paper."""
        return len(self.leaves)

    @property
    def depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.leaves[-1]).bit_length() - 1

    @cached_property
    def features_used(self) -> tuple[int, ...]:
        """Features that some node branches on, increasing."""
        return tuple(sorted(set(self.feature[: len(self.feature) // 2].tolist()) - {-1}))

    def is_cut(self, node: int) -> bool:
        """Whether `node` lies below a leaf."""
        return bool(self.feature[node - 1] < 0 and self.label[node - 1] < 0)

    def heights(self) -> IntArray:
        """Height of each node in this (sparse) tree: 0 at a leaf, -1 at a cut node; position n - 1."""
        result = np.where(self.label >= 0, 0, -1)
        for node in self.branch_nodes[::-1].tolist():
            result[node - 1] = 1 + max(result[2 * node - 1], result[2 * node])
        return result

    def path(self, node: int) -> tuple[tuple[int, int], ...]:
        """Return the literals (feature, direction) on the path from the root to `node`, root first."""
        self._require_node(node)
        steps = range(node.bit_length() - 1, 0, -1)
        return tuple((int(self.feature[(node >> s) - 1]), (node >> (s - 1)) & 1) for s in steps)

    def with_max_depth(self, max_depth: int) -> DecisionTree:
        """Return the same tree in arrays for depth `max_depth`, which must be at least `depth`."""
        n_nodes = Topology(max_depth).n_nodes
        if self.depth > max_depth:
            raise InvalidInputError(f"max_depth={max_depth} is too small for a tree of depth {self.depth}")
        if n_nodes == len(self.feature):
            return self
        feature, label = np.full((2, n_nodes), -1)
        kept = min(n_nodes, len(self.feature))
        feature[:kept], label[:kept] = self.feature[:kept], self.label[:kept]
        return DecisionTree._trusted(feature, label)

    def subtree(self, node: int) -> DecisionTree:
        """Return the subtree at `node`, which must not be cut; its root is node 1."""
        self._require_node(node)
        inside = self.topology.subtree(node) - 1
        return DecisionTree(self.feature[inside], self.label[inside])

    def with_subtree(self, node: int, subtree: DecisionTree) -> DecisionTree:
        """Return this tree with the subtree at `node` replaced by `subtree`, which must fit."""
        self._require_node(node)
        room = self.topology.height(node)
        if subtree.depth > room:
            raise InvalidInputError(f"a subtree of depth {subtree.depth} does not fit below node {node}")
        fitted = subtree.with_max_depth(room)
        feature, label = self.feature.copy(), self.label.copy()
        inside = self.topology.subtree(node) - 1
        feature[inside], label[inside] = fitted.feature, fitted.label
        return DecisionTree(feature, label)

    # --- samples ---------------------------------------------------------------------------------------

    def apply(self, X: Any) -> IntArray:
        """Node number of the leaf that each row of the binary matrix `X` falls into."""
        return self.leaf_of(self._checked_matrix(X))

    def predict(self, X: Any) -> IntArray:
        """Class index predicted for each row of the binary matrix `X`."""
        return self.label[self.apply(X) - 1]

    def leaf_of(self, X: BoolMatrix) -> IntArray:
        """Like `apply`, without checks, for the matrix of a data set."""
        node = np.ones(len(X), dtype=np.int64)
        rows = np.arange(len(X))
        for _ in range(self.depth):
            feature = self.feature[node - 1]
            node = np.where(feature >= 0, 2 * node + X[rows, feature], node)
        return node

    def predictions(self, X: BoolMatrix) -> IntArray:
        """Like `predict`, without checks, for the matrix of a data set."""
        return self.label[self.leaf_of(X) - 1]

    def route(self, X: Any, nodes: IntArray | None = None) -> BoolMatrix:
        """Return which of `nodes`, by default all available ones, each row of `X` visits: bool array (rows, nodes)."""
        return self.visits(self._checked_matrix(X), self.topology.nodes if nodes is None else nodes)

    def visits(self, X: BoolMatrix, nodes: IntArray) -> BoolMatrix:
        """Like `route`, without checks, for the matrix of a data set."""
        column = np.full(len(self.feature) + 1, -1)
        column[nodes] = np.arange(len(nodes))
        visits = np.zeros((len(X), len(nodes)), dtype=bool)
        rows, node = np.arange(len(X)), self.leaf_of(X)
        while len(rows):
            asked = column[node] >= 0
            visits[rows[asked], column[node[asked]]] = True
            rows, node = rows[node > 1], node[node > 1] // 2
        return visits

    def is_proper(self, X: BoolMatrix) -> bool:
        """Return whether every leaf is reached by a row of X, and sibling leaves have different classes.

        So every split separates rows, and none can be removed without a change of predictions.
        """
        leaves = self.leaves - 1
        reached = np.zeros(self.feature.size, dtype=bool)
        reached[self.leaf_of(X) - 1] = True
        if not reached[leaves].all():
            return False
        label, is_leaf = self.label, self.label >= 0
        zero, one = label[1::2], label[2::2]
        return not bool(np.any(is_leaf[1::2] & (zero == one)))

    def class_weights(self, dataset: BinaryDataset) -> FloatArray:
        """Return the weight of each class at each node of `nodes`: (nodes, classes)."""
        return self._node_sums(dataset, dataset.y, dataset.weights, dataset.n_classes)

    def sample_counts(self, dataset: BinaryDataset) -> IntArray:
        """Return the number of samples at each node of `nodes`."""
        return np.asarray(self.class_counts(dataset).sum(axis=1))

    def class_counts(self, dataset: BinaryDataset) -> IntArray:
        """Return the number of samples of each class at each node of `nodes`: (nodes, classes)."""
        samples = np.ones(dataset.n_samples) if dataset.samples is None else dataset.samples
        return self._node_sums(dataset, dataset.y, samples, dataset.n_classes).astype(np.int64)

    def score(self, dataset: BinaryDataset) -> float:
        """Return the exact total weight of the correctly classified samples of `dataset`."""
        return float(dataset.weights[self.predictions(dataset.X) == dataset.y].sum())

    def value(self, dataset: BinaryDataset, leaf_price: float) -> float:
        """Return the score minus `leaf_price` per leaf: the objective times the total weight."""
        return self.score(dataset) - leaf_price * self.n_leaves

    def relabelled(self, dataset: BinaryDataset) -> DecisionTree:
        """Return the same branches with the heaviest class of `dataset` in each leaf; ties go to the smallest index."""
        best = self.class_weights(dataset).argmax(axis=1)
        label = np.full(len(self.label), -1)
        label[self.leaves - 1] = best[self.label[self.nodes - 1] >= 0]
        return DecisionTree._trusted(self.feature, label)

    def pruned(self, dataset: BinaryDataset, leaf_price: float) -> DecisionTree:
        """Return the tree of highest value obtained by turning branch nodes into leaves and relabelling.

        Exact, bottom-up; a leaf is preferred to a branch of equal value.
        """
        weights = self.class_weights(dataset)
        best = weights.argmax(axis=1).tolist()
        value = dict(zip(self.nodes.tolist(), (weights.max(axis=1) - leaf_price).tolist(), strict=True))
        kept = set()
        for node in self.branch_nodes[::-1].tolist():
            below = value[2 * node] + value[2 * node + 1]
            if below > value[node]:
                value[node] = below
                kept.add(node)
        feature, label = np.full((2, len(self.feature)), -1)
        for node, heaviest in zip(self.nodes.tolist(), best, strict=True):
            if node == 1 or feature[node // 2 - 1] >= 0:
                if node in kept:
                    feature[node - 1] = self.feature[node - 1]
                else:
                    label[node - 1] = heaviest
        return DecisionTree._trusted(feature, label)

    # --- reading and comparing -------------------------------------------------------------------------

    def to_text(self, feature_names: Sequence[str] | None = None, class_names: Sequence[str] | None = None) -> str:
        """Draw the tree in plain text, one node per line: the branching feature in brackets, or the predicted class.

        Names default to ``x3`` for feature 3 and to the class index.
        """

        def caption(node: int) -> str:
            split, prediction = int(self.feature[node - 1]), int(self.label[node - 1])
            if split < 0:
                return f"predict {class_names[prediction] if class_names is not None else prediction}"
            return f"[{feature_names[split] if feature_names is not None else f'x{split}'}]"

        lines = [caption(1)]

        def draw_children(node: int, indent: str) -> None:
            if self.feature[node - 1] < 0:
                return
            for direction, (corner, deeper) in enumerate((("|-- ", "|   "), ("`-- ", "    "))):
                child = 2 * node + direction
                lines.append(f"{indent}{corner}{direction}: {caption(child)}")
                draw_children(child, indent + deeper)

        draw_children(1, "")
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DecisionTree):
            return NotImplemented
        return np.array_equal(self.feature, other.feature) and np.array_equal(self.label, other.label)

    def __hash__(self) -> int:
        return hash((self.feature.tobytes(), self.label.tobytes()))

    def __repr__(self) -> str:
        return f"DecisionTree(max_depth={self.max_depth}, depth={self.depth}, n_leaves={self.n_leaves})"

    # --- helpers ---------------------------------------------------------------------------------------

    def _node_sums(self, dataset: BinaryDataset, group: IntArray | int, amounts: Any, n_groups: int) -> FloatArray:
        """Sum the amounts of the samples at each node of `nodes` by group: (nodes, groups)."""
        place = np.searchsorted(self.nodes, self.leaf_of(dataset.X))
        sums = weighted_bincount(place * n_groups + group, amounts, len(self.nodes) * n_groups).reshape(-1, n_groups)
        above = np.searchsorted(self.nodes, self.nodes // 2).tolist()
        for node in range(len(above) - 1, 0, -1):
            sums[above[node]] += sums[node]
        return sums

    def _checked_matrix(self, X: Any) -> BoolMatrix:
        matrix = as_binary_matrix(X)
        needed = int(self.feature.max()) + 1
        if matrix.shape[1] < needed:
            raise InvalidInputError(f"X has {matrix.shape[1]} columns, but the tree branches on column {needed - 1}")
        if matrix.shape[1] == 0:  # a leaf reads no column, but apply() gathers one
            return np.zeros((len(matrix), 1), dtype=bool)
        return matrix

    def _require_node(self, node: int) -> None:
        if not 1 <= node <= len(self.feature) or self.is_cut(node):
            raise InvalidInputError(f"node {node} is not a branch node or leaf of this tree")


def check_arrays(feature: NDArray[np.int64], label: NDArray[np.int64]) -> None:
    """Raise an InvalidInputError unless the arrays describe a tree in heap order."""
    if feature.ndim != 1 or feature.shape != label.shape:
        raise InvalidInputError("feature and label must be one-dimensional and of the same length")
    if len(feature) == 0 or len(feature) & (len(feature) + 1):
        raise InvalidInputError(f"feature must have 2**(D+1) - 1 entries, got {len(feature)}")
    if min(feature.min(), label.min()) < -1:
        raise InvalidInputError("feature and label must not be below -1")
    branches, leaves = feature >= 0, label >= 0
    if (branches & leaves).any():
        raise InvalidInputError(f"node {np.argmax(branches & leaves) + 1} is a branch node and a leaf")
    if branches[len(feature) // 2 :].any():
        raise InvalidInputError("a terminal node has a branching feature")
    # Only nodes with a branching parent, and all of those, carry a feature or a label.
    expected = np.concatenate(([True], np.repeat(branches[: len(feature) // 2], 2)))
    wrong = (branches | leaves) != expected
    if wrong.any():
        node = int(np.argmax(wrong)) + 1
        problem = "needs a feature or a label" if expected[node - 1] else "is below a leaf, so must be cut"
        raise InvalidInputError(f"node {node} {problem}")
