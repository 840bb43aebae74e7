"""All compiled functions that Python calls; importing this loads numba."""

from accel_oct.subtree.kernels.first_tree import first_tree
from accel_oct.subtree.kernels.levels import level_four, level_three, level_two, level_two_sparse, pass_block

__all__ = ["first_tree", "level_four", "level_three", "level_two", "level_two_sparse", "pass_block"]
