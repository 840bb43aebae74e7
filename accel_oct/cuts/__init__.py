"""Families of cuts, one per module, as components of the formulation; functions for cuts of your own."""

from accel_oct.cuts.benders import all_path_rows, path_rows, separate_fractional
from accel_oct.cuts.strict import RobustCuts, whole_tree_rows

__all__ = ["RobustCuts", "all_path_rows", "path_rows", "separate_fractional", "whole_tree_rows"]
