"""Pictures: trees, the convergence of a solve, accuracy against size. They need matplotlib."""

from accel_oct.plotting.curves import plot_convergence, plot_path
from accel_oct.plotting.tree import plot_tree, plot_trees

__all__ = ["plot_convergence", "plot_path", "plot_tree", "plot_trees"]
