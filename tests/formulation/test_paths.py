"""Paths: their nodes, the samples that follow them, and the columns that say whether a tree takes them."""

from __future__ import annotations

import numpy as np
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance

from accel_oct.formulation import Master
from accel_oct.formulation.paths import TreePath, integral_paths
from accel_oct.tree import DecisionTree

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def test_a_path_knows_its_walk() -> None:
    """Right, left, right from the root: nodes 1, 3, 6, and on to 13."""
    path = TreePath(1, ()).child(4, 1).child(2, 0).child(7, 1)
    assert (path.end, path.features, path.nodes) == (13, (4, 2, 7), (1, 3, 6))
    assert path.literals == {(4, 1), (2, 0), (7, 1)}
    assert TreePath(1, ()).nodes == () and TreePath(1, ()).literals == frozenset()


def test_columns_are_zero_where_the_path_is_taken() -> None:
    """For all trees of depth two: zero in sum for those that take the path, and at least one for the others."""
    master = Master(Instance(X, np.array([0, 1, 1, 0]), None, 0.0, 2).dataset, 2, 0.0)
    trees = [tree.with_max_depth(2) for tree in enumerate_trees(master.dataset, 2)]
    paths = [TreePath(1, ()), *(TreePath(1, ()).child(f, d) for f in (0, 1) for d in (0, 1))]
    paths += [paths[-1].child(f, d) for f in (0, 1) for d in (0, 1)]
    for path in paths:
        b, p = path.relax(master)
        assert np.all(np.diff(b) > 0) and np.all(np.diff(p) > 0)
        for tree in trees:
            x = master.lift(tree)
            taken = all(tree.feature[node - 1] == f for node, f in zip(path.nodes, path.features, strict=True))
            total = x[b].sum() + x[p].sum()
            assert total == 0 if taken else total >= 1


def test_paths_of_a_point_are_those_of_its_tree() -> None:
    """A path ends where the tree has a leaf, where the features are fractional, or at the least height."""
    tree = DecisionTree.branch(
        0, DecisionTree.leaf(0), DecisionTree.branch(1, DecisionTree.leaf(0), DecisionTree.leaf(1))
    )
    master = Master(Instance(X, np.array([0, 1, 1, 0]), None, 0.0, 3).dataset, 3, 0.0)
    b = master.b.view(master.lift(tree.with_max_depth(3))).copy()
    ends = {(path.end, path.features): extends for path, extends in integral_paths(b, 1)}
    assert ends == {(1, ()): True, (2, (0,)): False, (3, (0,)): True, (6, (0, 1)): False, (7, (0, 1)): False}
    assert {path.end: extends for path, extends in integral_paths(b, 2)} == {1: True, 2: False, 3: False}
    b[2] = 0.5
    assert {path.end: extends for path, extends in integral_paths(b, 1)} == {1: True, 2: False, 3: False}
