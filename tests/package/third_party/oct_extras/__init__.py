"""Extras for accel_oct: a cut, and constraints."""

from oct_extras.constraints import BalancedParts, BalancedUse, ClassSupport, FalseAlarms, FewFeatures
from oct_extras.cuts import SmallTrees

__all__ = ["BalancedParts", "BalancedUse", "ClassSupport", "FalseAlarms", "FewFeatures", "SmallTrees"]
