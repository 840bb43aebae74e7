"""Optimal subtrees and bounds: the part of the library that counts samples and knows no solver.

`samples` has sets of samples, of rows or of a tally; `counts` and `levels` have what trees of depth two score on them
and on their sides. `profile_search` and `price_search` stand on these: the best score for every number of leaves, and
the best tree for one leaf price.
"""

from accel_oct.exact.bounds import SubtreeBounds
from accel_oct.exact.d2s import PREORDER, DepthTwoSolver, Subtree, SubtreeCache
from accel_oct.exact.frontier import FrontierTable, frontier_table
from accel_oct.exact.levels import SearchCounts
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.price_search import BestTree, best_tree

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
