"""The phases of a solve, in the order in which they usually run."""

from accel_oct.solving.phases.base import Phase, run_phases
from accel_oct.solving.phases.branch_and_cut import BranchAndCut
from accel_oct.solving.phases.feature_sets import FeatureSets
from accel_oct.solving.phases.price_and_close import PriceAndClose
from accel_oct.solving.phases.single_leaf import SingleLeaf
from accel_oct.solving.phases.tables import LastStep, SubtreeTables
from accel_oct.solving.phases.warm_start import WarmStart

__all__ = [
    "BranchAndCut",
    "FeatureSets",
    "LastStep",
    "Phase",
    "PriceAndClose",
    "SingleLeaf",
    "SubtreeTables",
    "WarmStart",
    "run_phases",
]
