"""Trees as arrays: what they accept, how they route, and how they are edited."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import enumerate_trees, to_decision_tree
from oracles.instances import Instance, instances

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.tree import DecisionTree

STUMP = DecisionTree(np.array([1, -1, -1]), np.array([-1, 0, 1]))
# x0 = 0: x2 decides between classes 0 and 1; x0 = 1: class 2.
SPARSE = DecisionTree(np.array([0, 2, -1, -1, -1, -1, -1]), np.array([-1, -1, 2, 0, 1, -1, -1]))


@st.composite
def nested_trees(draw: st.DrawFn, n_features: int, n_classes: int, max_depth: int) -> object:
    """A random tree in the oracle's nested form."""
    if max_depth == 0 or draw(st.booleans()):
        return draw(st.integers(0, n_classes - 1))
    below = nested_trees(n_features, n_classes, max_depth - 1)
    return (draw(st.integers(0, n_features - 1)), draw(below), draw(below))


@st.composite
def trees_with_instances(draw: st.DrawFn) -> tuple[object, DecisionTree, Instance]:
    """A small data set and any tree over its features and classes."""
    instance = draw(instances(max_samples=14))
    nested = draw(nested_trees(instance.X.shape[1], instance.dataset.n_classes, 3))
    return nested, to_decision_tree(nested, 3), instance


def walk(nested: object, x: np.ndarray) -> tuple[list[int], int]:
    """Nodes visited and class predicted, by following the nested tree."""
    visited = [1]
    while isinstance(nested, tuple):
        direction = int(x[nested[0]])
        visited.append(2 * visited[-1] + direction)
        nested = nested[1 + direction]
    return visited, nested  # type: ignore[return-value]


@given(trees_with_instances())
def test_routing_follows_the_branches(case: tuple[object, DecisionTree, Instance]) -> None:
    """apply, predict, route and score agree with a walk from node to node."""
    nested, tree, instance = case
    dataset = instance.dataset
    leaf, predicted, visits = tree.apply(dataset.X), tree.predict(dataset.X), tree.route(dataset.X)
    score = 0.0
    for i, x in enumerate(dataset.X):
        nodes, label = walk(nested, x)
        assert leaf[i] == nodes[-1]
        assert predicted[i] == label
        assert (np.flatnonzero(visits[i]) + 1).tolist() == nodes
        score += float(dataset.weights[i]) * (label == dataset.y[i])
    assert tree.score(dataset) == score
    assert tree.value(dataset, instance.leaf_price) == score - instance.leaf_price * tree.n_leaves


@given(trees_with_instances())
def test_cutting_a_subtree_out_and_putting_it_back(case: tuple[object, DecisionTree, Instance]) -> None:
    """with_subtree(node, subtree(node)) is the identity at every node, and so are dict and pickle."""
    _, tree, _ = case
    for node in (np.flatnonzero((tree.feature >= 0) | (tree.label >= 0)) + 1).tolist():
        part = tree.subtree(node)
        assert part.max_depth == tree.topology.height(node)
        assert tree.with_subtree(node, part) == tree
        assert part.depth == tree.heights()[node - 1]
        leaf = tree.with_subtree(node, DecisionTree.leaf(0))
        assert leaf.label[node - 1] == 0
        assert leaf.n_leaves == tree.n_leaves - part.n_leaves + 1
    assert DecisionTree.from_dict(tree.to_dict()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert hash(pickle.loads(pickle.dumps(tree))) == hash(tree)


@given(trees_with_instances())
def test_joining_the_two_sides_of_the_root(case: tuple[object, DecisionTree, Instance]) -> None:
    """A branch over both subtrees of the root is the tree again; the room follows the deeper side."""
    _, tree, _ = case
    if tree.depth == 0:
        return
    zero, one = tree.subtree(2), tree.subtree(3)
    assert DecisionTree.branch(int(tree.feature[0]), zero, one) == tree
    smaller = DecisionTree.branch(int(tree.feature[0]), zero.with_max_depth(zero.depth), one.with_max_depth(one.depth))
    assert smaller == tree.with_max_depth(tree.depth)


@given(trees_with_instances())
def test_changing_the_available_depth(case: tuple[object, DecisionTree, Instance]) -> None:
    """Embedding in a deeper tree and trimming to the real depth change no prediction."""
    _, tree, instance = case
    deeper, trimmed = tree.with_max_depth(5), tree.with_max_depth(tree.depth)
    assert deeper.max_depth == 5
    assert trimmed.max_depth == tree.depth == deeper.depth
    assert deeper.with_max_depth(3) == tree
    for other in (deeper, trimmed):
        assert np.array_equal(other.apply(instance.X), tree.apply(instance.X))
        assert other.n_leaves == tree.n_leaves
    if tree.depth > 0:
        with pytest.raises(InvalidInputError, match="max_depth"):
            tree.with_max_depth(tree.depth - 1)


@given(trees_with_instances())
def test_relabelling_and_pruning_are_best(case: tuple[object, DecisionTree, Instance]) -> None:
    """Relabelling beats every labelling; pruning beats every pruning, and takes a leaf on ties."""
    nested, tree, instance = case
    dataset, price = instance.dataset, instance.leaf_price
    relabelled, pruned = tree.relabelled(dataset), tree.pruned(dataset, price)
    assert np.array_equal(relabelled.feature, tree.feature)
    assert relabelled.score(dataset) >= tree.score(dataset)
    for leaf in relabelled.leaves.tolist():
        totals = dataset.class_weights(tree.apply(dataset.X) == leaf)
        assert relabelled.label[leaf - 1] == np.argmax(totals)
    candidates = [to_decision_tree(candidate, 3).relabelled(dataset) for candidate in prunings(nested)]
    best = max(candidate.value(dataset, price) for candidate in candidates)
    assert pruned in candidates
    assert pruned.value(dataset, price) == best
    smallest = min(c.n_leaves for c in candidates if c.value(dataset, price) == best)
    assert pruned.n_leaves == smallest


def test_pruning_above_a_branch_that_pays_by_itself() -> None:
    """A branch that is worth its leaf disappears with the branch above it that is not worth its own."""
    X = np.array([[0, 0]] * 5 + [[0, 1]] * 2 + [[1, 0]] * 5)
    dataset = BinaryDataset.from_arrays(X, [0] * 5 + [1] * 2 + [0] * 5)
    tree = DecisionTree(np.array([0, 1, -1, -1, -1, -1, -1]), np.array([-1, -1, 0, 0, 1, -1, -1]))
    assert tree.pruned(dataset, 1.5) == DecisionTree.leaf(0, 2)
    assert tree.pruned(dataset, 0.9) == tree


def prunings(nested: object) -> list[object]:
    """The tree with branch nodes turned into leaves in every way."""
    if not isinstance(nested, tuple):
        return [nested]
    pairs = [(nested[0], zero, one) for zero in prunings(nested[1]) for one in prunings(nested[2])]
    return [0, *pairs]


def test_properties_of_a_sparse_tree() -> None:
    """Depth, leaves, heights, features and paths of a tree that does not fill its arrays."""
    assert SPARSE.depth == SPARSE.max_depth == 2
    assert SPARSE.leaves.tolist() == [3, 4, 5]
    assert SPARSE.branch_nodes.tolist() == [1, 2]
    assert SPARSE.heights().tolist() == [2, 1, 0, 0, 0, -1, -1]
    assert SPARSE.features_used == (0, 2)
    assert SPARSE.path(5) == ((0, 0), (2, 1))
    assert SPARSE.path(1) == ()
    assert SPARSE.is_cut(6)
    assert not SPARSE.is_cut(3)
    assert repr(SPARSE) == "DecisionTree(max_depth=2, depth=2, n_leaves=3)"
    with pytest.raises(InvalidInputError, match="node 6"):
        SPARSE.path(6)


def test_text() -> None:
    """The drawing shows one node per line, with names where they are given."""
    assert SPARSE.to_text() == ("[x0]\n|-- 0: [x2]\n|   |-- 0: predict 0\n|   `-- 1: predict 1\n`-- 1: predict 2")
    assert STUMP.to_text(["a", "b"], ["no", "yes"]) == "[b]\n|-- 0: predict no\n`-- 1: predict yes"
    assert DecisionTree.leaf(1).to_text() == "predict 1"


def test_equality() -> None:
    """Trees are equal when their arrays are, and never equal to anything else."""
    assert DecisionTree([1, -1, -1], [-1, 0, 1]) == STUMP  # type: ignore[arg-type]
    assert STUMP != SPARSE
    assert STUMP != "a tree"
    assert STUMP.with_max_depth(2) != STUMP


def test_arrays_belong_to_the_tree() -> None:
    """Later changes to the arrays that were passed in do not reach the tree, and its own are read-only."""
    feature, label = np.array([0, -1, -1]), np.array([-1, 0, 1])
    tree = DecisionTree(feature, label)
    feature[0] = 5
    assert tree.feature[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        tree.label[1] = 1


@pytest.mark.parametrize(
    ("feature", "label", "message"),
    [
        ([0, -1], [-1, 0], r"2\*\*\(D\+1\) - 1"),
        ([], [], r"2\*\*\(D\+1\) - 1"),
        ([0, -1, -1], [-1, 0], "same length"),
        ([0, -1, -1], [1, 0, 1], "branch node and a leaf"),
        ([0, 1, -1], [-1, -1, 1], "terminal"),
        ([0, -1, -1], [-1, 0, -1], "node 3 needs"),
        ([-1, -1, -1], [-1, -1, -1], "node 1 needs"),
        ([-1, -1, -1], [0, 1, -1], "node 2 is below a leaf"),
        ([-1, -1, -1, 0, -1, -1, -1], [0, -1, -1, -1, -1, -1, -1], "terminal"),
        ([-1, 0, -1, -1, -1, -1, -1], [0, -1, -1, 1, 1, -1, -1], "node 2 is below a leaf"),
        ([-2, -1, -1], [0, -1, -1], "below -1"),
    ],
)
def test_arrays_that_are_no_tree(feature: list[int], label: list[int], message: str) -> None:
    """Arrays that break the rules of section 3.1 are refused with the reason."""
    with pytest.raises(InvalidInputError, match=message):
        DecisionTree(np.array(feature, dtype=int), np.array(label, dtype=int))


def test_matrices_that_do_not_fit() -> None:
    """predict names what is wrong with X, and a leaf accepts a matrix without columns."""
    with pytest.raises(InvalidInputError, match="X has 2 columns, but the tree branches on column 2"):
        SPARSE.predict(np.zeros((3, 2)))
    with pytest.raises(InvalidInputError, match="column 1, row 0 holds 7"):
        SPARSE.predict([[0, 7, 1]])
    with pytest.raises(InvalidInputError, match="two-dimensional"):
        SPARSE.predict([0, 1, 1])
    assert DecisionTree.leaf(1).predict(np.zeros((2, 0))).tolist() == [1, 1]
    assert SPARSE.predict(np.zeros((0, 3))).tolist() == []
    assert SPARSE.predict([[0, 0, 0], [0.0, 1, 1], [True, 0, 0]]).tolist() == [0, 1, 2]


def test_subtree_too_deep() -> None:
    """A subtree that would stick out of the available nodes is refused."""
    with pytest.raises(InvalidInputError, match="does not fit below node 4"):
        SPARSE.with_subtree(4, STUMP)
    with pytest.raises(InvalidInputError, match="node 7"):
        SPARSE.with_subtree(7, DecisionTree.leaf(0))


def test_missing_key() -> None:
    """A dictionary without one of the arrays is refused by name."""
    with pytest.raises(InvalidInputError, match="label"):
        DecisionTree.from_dict({"feature": [-1]})


@given(instances(max_samples=8, max_features=2, max_depth=2))
def test_enumerated_trees_prune_to_the_leaf_at_a_huge_price(instance: Instance) -> None:
    """When a leaf costs more than all samples weigh, every tree prunes to the majority leaf."""
    dataset = instance.dataset
    majority = int(np.argmax(dataset.class_weights()))
    for tree in enumerate_trees(dataset, 2):
        assert tree.pruned(dataset, 2 * dataset.total_weight) == DecisionTree.leaf(majority, 2)
