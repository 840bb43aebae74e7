"""Extras for accel_oct: a cut, and constraints."""

from oct_extras.constraints import BalancedUse, ClassSupport, FalseAlarms, FewFeatures
from oct_extras.cuts import SmallTrees

__all__ = ["BalancedUse", "ClassSupport", "FalseAlarms", "FewFeatures", "SmallTrees"]
