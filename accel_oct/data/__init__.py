"""Training data: binary samples with classes and exactly summable weights."""

from accel_oct.data.binary_matrix import as_binary_matrix, pack_rows
from accel_oct.data.dataset import BinaryDataset, MergedDataset
from accel_oct.data.equivalent_points import EqpSet, EqpSets, equivalent_point_sets
from accel_oct.data.scored import ScoredDataset, scored_dataset
from accel_oct.data.tally import Tally

__all__ = [
    "BinaryDataset",
    "EqpSet",
    "EqpSets",
    "MergedDataset",
    "ScoredDataset",
    "Tally",
    "as_binary_matrix",
    "equivalent_point_sets",
    "pack_rows",
    "scored_dataset",
]
