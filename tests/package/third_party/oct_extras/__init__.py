"""Extras for accel_oct: a cut and a constraint."""

from oct_extras.constraints import BalancedUse
from oct_extras.cuts import SmallTrees

__all__ = ["BalancedUse", "SmallTrees"]
