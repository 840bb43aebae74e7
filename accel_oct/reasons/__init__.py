"""Why a fitted tree predicts what it does: paths, reason codes, smallest changes, and the table of leaves."""

from accel_oct.reasons.explanations import Change, Edit, Explanation, Explanations, Reason, Step, explain
from accel_oct.reasons.leaves import Leaf, LeafTable, leaf_table
from accel_oct.reasons.stability import SplitStability, Stability

__all__ = [
    "Change",
    "Edit",
    "Explanation",
    "Explanations",
    "Leaf",
    "LeafTable",
    "Reason",
    "SplitStability",
    "Stability",
    "Step",
    "explain",
    "leaf_table",
]
