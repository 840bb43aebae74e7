"""Plots of trees, solves, constraints and nearly optimal trees. They need matplotlib."""

from accel_oct.plotting.charts import (
    plot_constraints,
    plot_convergence,
    plot_importance_range,
    plot_near_optimal,
    plot_path,
    plot_trade_off,
)
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
