"""Provably optimal classification trees by integer programming, on the solver of your choice.

Public names are imported on first use: importing the package loads neither NumPy nor scikit-learn, so that
``accel-oct --help`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from accel_oct._version import __version__

if TYPE_CHECKING:
    from accel_oct.data.encoded_table import EncodedTable
    from accel_oct.data.tally import Tally
    from accel_oct.estimators.classifier import OptimalTreeClassifier
    from accel_oct.estimators.cross_validated import OptimalTreeClassifierCV
    from accel_oct.estimators.policy import OptimalPolicyTree
    from accel_oct.estimators.policy_scores import Estimate, PolicyValue
    from accel_oct.estimators.trade_off import TradeOff, TradeOffPoint, trade_off
    from accel_oct.io.tables import read_table
    from accel_oct.mip.options import Solver
    from accel_oct.pieces.gathering import gather
    from accel_oct.solving.closest import ClosestTree, closest_tree
    from accel_oct.solving.config import Config
    from accel_oct.solving.frontier import Frontier, FrontierPoint, frontier, solve_path
    from accel_oct.solving.near_optimal import NearOptimalTree, NearOptimalTrees, near_optimal
    from accel_oct.solving.result import Result
    from accel_oct.solving.solve import solve

__all__ = [
    "ClosestTree",
    "Config",
    "EncodedTable",
    "Estimate",
    "Frontier",
    "FrontierPoint",
    "NearOptimalTree",
    "NearOptimalTrees",
    "OptimalPolicyTree",
    "OptimalTreeClassifier",
    "OptimalTreeClassifierCV",
    "PolicyValue",
    "Result",
    "Solver",
    "Tally",
    "TradeOff",
    "TradeOffPoint",
    "__version__",
    "closest_tree",
    "frontier",
    "gather",
    "near_optimal",
    "read_table",
    "solve",
    "solve_path",
    "trade_off",
]

#: Where each public name is defined; a test compares it with the imports for type checkers above.
_HOMES = {
    "ClosestTree": "accel_oct.solving.closest",
    "Config": "accel_oct.solving.config",
    "EncodedTable": "accel_oct.data.encoded_table",
    "Estimate": "accel_oct.estimators.policy_scores",
    "Frontier": "accel_oct.solving.frontier",
    "FrontierPoint": "accel_oct.solving.frontier",
    "NearOptimalTree": "accel_oct.solving.near_optimal",
    "NearOptimalTrees": "accel_oct.solving.near_optimal",
    "OptimalPolicyTree": "accel_oct.estimators.policy",
    "OptimalTreeClassifier": "accel_oct.estimators.classifier",
    "OptimalTreeClassifierCV": "accel_oct.estimators.cross_validated",
    "PolicyValue": "accel_oct.estimators.policy_scores",
    "Result": "accel_oct.solving.result",
    "Solver": "accel_oct.mip.options",
    "Tally": "accel_oct.data.tally",
    "TradeOff": "accel_oct.estimators.trade_off",
    "TradeOffPoint": "accel_oct.estimators.trade_off",
    "closest_tree": "accel_oct.solving.closest",
    "frontier": "accel_oct.solving.frontier",
    "gather": "accel_oct.pieces.gathering",
    "near_optimal": "accel_oct.solving.near_optimal",
    "read_table": "accel_oct.io.tables",
    "solve": "accel_oct.solving.solve",
    "solve_path": "accel_oct.solving.frontier",
    "trade_off": "accel_oct.estimators.trade_off",
}

#: Subpackages that may be used after ``import accel_oct`` alone.
_PARTS = ("constraints", "encoding", "errors", "export", "io", "mip", "objectives", "plotting")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
