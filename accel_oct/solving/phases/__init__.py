"""The phases of a solve, in the order in which they usually run."""

from accel_oct.solving.phases.branch_and_cut import IntegerProgram
from accel_oct.solving.phases.enumeration import EnumerateAndEvaluate
from accel_oct.solving.phases.feature_sets import FeatureSets
from accel_oct.solving.phases.prices import PriceAndClose
from accel_oct.solving.phases.roots import RootByRoot
from accel_oct.solving.phases.tables import LastStep, SingleLeaf, SubtreeTables
from accel_oct.solving.phases.warm_start import WarmStart

__all__ = [
    "EnumerateAndEvaluate",
    "FeatureSets",
    "IntegerProgram",
    "LastStep",
    "PriceAndClose",
    "RootByRoot",
    "SingleLeaf",
    "SubtreeTables",
    "WarmStart",
]
