"""All compiled functions that Python calls; importing this loads numba."""

from accel_oct.subtree.kernels.first_tree import first_tree
from accel_oct.subtree.kernels.group_sets import best_set, fill_reach
from accel_oct.subtree.kernels.group_tables import count_triples, tables_of_all, tables_of_root
from accel_oct.subtree.kernels.levels import level_four, level_three, level_two, level_two_sparse, pass_block

__all__ = [
    "best_set",
    "count_triples",
    "fill_reach",
    "first_tree",
    "level_four",
    "level_three",
    "level_two",
    "level_two_sparse",
    "pass_block",
    "tables_of_all",
    "tables_of_root",
]
