"""Provably optimal classification trees by integer programming, on the solver of your choice."""

from accel_oct._version import __version__
from accel_oct.config import Config
from accel_oct.estimator import OptimalTreeClassifier
from accel_oct.estimator_cv import OptimalTreeClassifierCV
from accel_oct.frontier import Frontier, FrontierPoint, frontier, solve_path
from accel_oct.result import Result
from accel_oct.solve import solve

__all__ = [
    "Config",
    "Frontier",
    "FrontierPoint",
    "OptimalTreeClassifier",
    "OptimalTreeClassifierCV",
    "Result",
    "__version__",
    "frontier",
    "solve",
    "solve_path",
]
