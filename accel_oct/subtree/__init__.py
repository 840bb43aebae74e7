"""Optimal subtrees and bounds: the part of the library that counts samples and knows no solver."""

from accel_oct.subtree.cache import SubtreeCache
from accel_oct.subtree.d2s import DepthTwoSolver, Subtree

__all__ = ["DepthTwoSolver", "Subtree", "SubtreeCache"]
