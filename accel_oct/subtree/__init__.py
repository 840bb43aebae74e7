"""Optimal subtrees and bounds: the part of the library that counts samples and knows no solver."""

from accel_oct.subtree.bounds import SubtreeBounds
from accel_oct.subtree.cache import SubtreeCache
from accel_oct.subtree.d2s import PREORDER, DepthTwoSolver, Subtree
from accel_oct.subtree.frontier import FrontierTable, frontier
from accel_oct.subtree.search import BestTree, best_tree

__all__ = [
    "PREORDER",
    "BestTree",
    "DepthTwoSolver",
    "FrontierTable",
    "Subtree",
    "SubtreeBounds",
    "SubtreeCache",
    "best_tree",
    "frontier",
]
