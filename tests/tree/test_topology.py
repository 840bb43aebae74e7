"""The numbering of nodes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.errors import InvalidInputError
from accel_oct.tree import Topology


def test_the_paper_example() -> None:
    """Section 3.1: in a depth two tree the path to node 5 goes left at 1 and right at 2."""
    topology = Topology(2)
    assert topology.internal.tolist() == [1, 2, 3]
    assert topology.terminal.tolist() == [4, 5, 6, 7]
    assert topology.ancestors_left(5).tolist() == [1]
    assert topology.ancestors_right(5).tolist() == [2]
    assert topology.ancestors(5).tolist() == [1, 2]
    assert topology.descendants(3).tolist() == [6, 7]
    assert topology.distance(1, 6) == 2
    assert [topology.height(node) for node in (1, 3, 7)] == [2, 1, 0]


@given(st.integers(0, 6), st.data())
def test_relations_agree(depth: int, data: st.DataObject) -> None:
    """Parents, children, ancestors, descendants, depths and heights tell the same story."""
    topology = Topology(depth)
    node = data.draw(st.integers(1, topology.n_nodes))
    above = topology.ancestors(node).tolist()
    assert len(above) == topology.depth_of[node - 1]
    assert topology.depth_of[node - 1] + topology.height(node) == depth
    assert above == sorted({*topology.ancestors_left(node).tolist(), *topology.ancestors_right(node).tolist()})
    assert all(node in topology.descendants(ancestor) for ancestor in above)
    assert all(topology.distance(ancestor, node) == len(above) - k for k, ancestor in enumerate(above))
    if node > 1:
        parent = int(topology.parent[node - 1])
        assert node in (topology.left[parent - 1], topology.right[parent - 1])
        side = topology.ancestors_left if node == topology.left[parent - 1] else topology.ancestors_right
        assert parent in side(node)
    assert topology.is_terminal(node) == (topology.left[node - 1] == 0) == (len(topology.descendants(node)) == 0)
    assert len(topology.descendants(node)) == 2 ** (topology.height(node) + 1) - 2


def test_depth_zero_is_one_terminal_node() -> None:
    """A tree of depth zero has a root that is terminal and nothing else."""
    topology = Topology(0)
    assert (topology.n_internal, topology.n_terminal, topology.n_nodes) == (0, 1, 1)
    assert topology.terminal.tolist() == [1]
    assert topology.descendants(1).tolist() == []


def test_one_instance_per_depth() -> None:
    """Topologies are shared, survive pickling and cannot be changed by accident."""
    assert Topology(3) is Topology(3)
    assert Topology(np.int64(3)) is Topology(3)
    assert pickle.loads(pickle.dumps(Topology(4))) is Topology(4)
    with pytest.raises(ValueError, match="read-only"):
        Topology(3).parent[0] = 7


@pytest.mark.parametrize("depth", [-1, 21, 2.0, "3", None])
def test_bad_depth(depth: object) -> None:
    """A depth that is no small non-negative integer is refused by name."""
    with pytest.raises(InvalidInputError, match="depth"):
        Topology(depth)  # type: ignore[arg-type]


def test_bad_nodes() -> None:
    """Nodes outside of the tree and distances upwards are refused."""
    topology = Topology(2)
    for node in (0, 8):
        with pytest.raises(InvalidInputError, match="node must lie"):
            topology.ancestors(node)
    for ancestor, node in ((2, 6), (4, 1), (2, 3)):
        with pytest.raises(InvalidInputError, match="not a descendant"):
            topology.distance(ancestor, node)
