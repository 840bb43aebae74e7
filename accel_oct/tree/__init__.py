"""Classification trees: the numbering of the nodes and the trees themselves."""

from accel_oct.tree.decision_tree import DecisionTree
from accel_oct.tree.topology import Topology

__all__ = ["DecisionTree", "Topology"]
