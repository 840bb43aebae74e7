"""Training data: binary samples with classes and exactly summable weights."""

from accel_oct.data.binary_matrix import as_binary_matrix, pack_rows
from accel_oct.data.dataset import BinaryDataset, MergedDataset, ScoredDataset, scored_dataset
from accel_oct.data.equivalent_points import EqpSet, EqpSets, equivalent_point_sets
from accel_oct.data.tally import Tally, TallySets

__all__ = [
    "BinaryDataset",
    "EqpSet",
    "EqpSets",
    "MergedDataset",
    "ScoredDataset",
    "Tally",
    "TallySets",
    "as_binary_matrix",
    "equivalent_point_sets",
    "pack_rows",
    "scored_dataset",
]
