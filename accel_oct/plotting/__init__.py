"""Pictures: trees, solves, limits, nearly optimal trees. They need matplotlib."""

from accel_oct.plotting.curves import plot_convergence, plot_path
from accel_oct.plotting.limits import plot_constraints, plot_trade_off
from accel_oct.plotting.near_optimal import plot_importance_range, plot_near_optimal
from accel_oct.plotting.tree import plot_tree, plot_trees

__all__ = [
    "plot_constraints",
    "plot_convergence",
    "plot_importance_range",
    "plot_near_optimal",
    "plot_path",
    "plot_trade_off",
    "plot_tree",
    "plot_trees",
]
