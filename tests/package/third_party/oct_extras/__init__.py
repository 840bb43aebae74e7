"""Extras for accel_oct: a cut, constraints, and an objective with cuts of its own."""

from oct_extras.constraints import BalancedParts, BalancedUse, ClassSupport, FalseAlarms, FewFeatures
from oct_extras.cuts import SmallTrees
from oct_extras.objectives import WholeGroups

__all__ = ["BalancedParts", "BalancedUse", "ClassSupport", "FalseAlarms", "FewFeatures", "SmallTrees", "WholeGroups"]
