"""Optimal subtrees and bounds: the part of the library that counts samples and knows no solver.

Modules named `price_...` search the best tree for one leaf price, those named `profile_...` compute the best score for
every number of leaves; both stand on `pair_level` (depth two) and `deep_levels` (the compiled levels above it).
"""

from accel_oct.subtree.bounds import SubtreeBounds
from accel_oct.subtree.cache import SubtreeCache
from accel_oct.subtree.d2s import PREORDER, DepthTwoSolver, Subtree
from accel_oct.subtree.local_rules import LocalRules
from accel_oct.subtree.price_roots import SearchCounts
from accel_oct.subtree.price_tree import BestTree, best_tree
from accel_oct.subtree.profile_table import FrontierTable, frontier_table

__all__ = [
    "PREORDER",
    "BestTree",
    "DepthTwoSolver",
    "FrontierTable",
    "LocalRules",
    "SearchCounts",
    "Subtree",
    "SubtreeBounds",
    "SubtreeCache",
    "best_tree",
    "frontier_table",
]
