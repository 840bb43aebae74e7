"""Optimal subtrees and bounds by counting samples; no solver is involved.

`samples` has sets of samples, of rows or of a tally; `counts` and `levels` have the scores of trees of depth two on
them and on their sides. `frontier` computes the best score for every number of leaves from these, `price_search` the
best tree for one leaf price, `limited` and `near_optimal` trees under limits and trees close to the best one.
"""

from accel_oct.exact.bounds import SubtreeBounds
from accel_oct.exact.d2s import PREORDER, DepthTwoSolver, Subtree, SubtreeCache
from accel_oct.exact.frontier import FrontierTable, frontier_table
from accel_oct.exact.levels import SearchCounts
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.price_search import BestTree, best_tree
from accel_oct.exact.samples import reduce_data

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
    "reduce_data",
]
