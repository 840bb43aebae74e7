"""Classification trees and the numbering of their nodes."""

from accel_oct.tree.decision_tree import DecisionTree
from accel_oct.tree.reach import ColumnChanges, Reach
from accel_oct.tree.topology import Topology

__all__ = ["ColumnChanges", "DecisionTree", "Reach", "Topology"]
