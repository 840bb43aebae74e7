"""All compiled functions that Python calls; importing this loads numba."""

from accel_oct.subtree.kernels.cell_values import cell_values
from accel_oct.subtree.kernels.first_tree import first_tree
from accel_oct.subtree.kernels.group_sets import best_set, fill_reach
from accel_oct.subtree.kernels.group_tables import count_triples, tables_of_all, tables_of_root
from accel_oct.subtree.kernels.levels import level_four, level_three, level_two, level_two_sparse, pass_block
from accel_oct.subtree.kernels.outcomes import best_pair, best_sides, cell_outcomes_two, joined, outcomes_two
from accel_oct.subtree.kernels.pair_gains import pair_gains, two_sides
from accel_oct.subtree.kernels.tree_counts import count_pairs, count_store, count_two

__all__ = [
    "best_pair",
    "best_set",
    "best_sides",
    "cell_outcomes_two",
    "cell_values",
    "count_pairs",
    "count_store",
    "count_triples",
    "count_two",
    "fill_reach",
    "first_tree",
    "joined",
    "level_four",
    "level_three",
    "level_two",
    "level_two_sparse",
    "outcomes_two",
    "pair_gains",
    "pass_block",
    "tables_of_all",
    "tables_of_root",
    "two_sides",
]
