"""Encoders from the columns of a table to binary features with readable names."""

from accel_oct.encoding.auto import AutoEncoder
from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.categorical import OneHotCategoryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.table_encoder import TableEncoder
from accel_oct.encoding.tables import Table
from accel_oct.encoding.thresholds import (
    AllThresholdsEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    TreeGuidedThresholdEncoder,
)

__all__ = [
    "AllThresholdsEncoder",
    "AutoEncoder",
    "BinaryEncoder",
    "Condition",
    "OneHotCategoryEncoder",
    "QuantileBucketEncoder",
    "QuantileThresholdEncoder",
    "Table",
    "TableEncoder",
    "TreeGuidedThresholdEncoder",
]
