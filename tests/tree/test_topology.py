"""The numbering of nodes."""

from __future__ import annotations

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
    assert topology.ancestors(5).tolist() == [1, 2]
    assert topology.subtree(3).tolist() == [3, 6, 7]
    assert [topology.height(node) for node in (1, 3, 7)] == [2, 1, 0]


@given(st.integers(0, 6), st.data())
def test_relations_agree(depth: int, data: st.DataObject) -> None:
    """Ancestors, subtrees, depths and heights agree."""
    topology = Topology(depth)
    node = data.draw(st.integers(1, topology.n_nodes))
    above = topology.ancestors(node).tolist()
    assert len(above) == topology.depth_of[node - 1]
    assert topology.depth_of[node - 1] + topology.height(node) == depth
    assert all(node in topology.subtree(ancestor) for ancestor in above)
    assert node == 1 or above[-1] == node // 2
    assert (node in topology.terminal) == (len(topology.subtree(node)) == 1)
    assert len(topology.subtree(node)) == 2 ** (topology.height(node) + 1) - 1


def test_depth_zero_is_one_terminal_node() -> None:
    """A tree of depth zero has a root that is terminal and nothing else."""
    topology = Topology(0)
    assert (topology.n_internal, topology.n_terminal, topology.n_nodes) == (0, 1, 1)
    assert topology.terminal.tolist() == [1]
    assert topology.subtree(1).tolist() == [1]


@pytest.mark.parametrize("depth", [-1, 21, 2.0, "3", None, True])
def test_bad_depth(depth: object) -> None:
    """A depth that is no small non-negative integer is refused by name."""
    with pytest.raises(InvalidInputError, match="depth"):
        Topology(depth)  # type: ignore[arg-type]


def test_bad_nodes() -> None:
    """Nodes outside of the tree are refused."""
    topology = Topology(2)
    for node in (0, 8):
        with pytest.raises(InvalidInputError, match="node must lie"):
            topology.ancestors(node)
