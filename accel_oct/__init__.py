"""Provably optimal classification trees by integer programming, on the solver of your choice."""

from accel_oct._version import __version__
from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.estimators.cross_validated import OptimalTreeClassifierCV
from accel_oct.estimators.trade_off import TradeOff, TradeOffPoint, trade_off
from accel_oct.io.reading import read_table
from accel_oct.near_optimal.finding import near_optimal
from accel_oct.near_optimal.trees import NearOptimalTree, NearOptimalTrees
from accel_oct.solving.config import Config
from accel_oct.solving.frontier import frontier, solve_path
from accel_oct.solving.frontier_result import Frontier, FrontierPoint
from accel_oct.solving.result import Result
from accel_oct.solving.solve import solve

__all__ = [
    "Config",
    "Frontier",
    "FrontierPoint",
    "NearOptimalTree",
    "NearOptimalTrees",
    "OptimalTreeClassifier",
    "OptimalTreeClassifierCV",
    "Result",
    "TradeOff",
    "TradeOffPoint",
    "__version__",
    "frontier",
    "near_optimal",
    "read_table",
    "solve",
    "solve_path",
    "trade_off",
]
