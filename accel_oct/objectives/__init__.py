"""Objectives: accuracy, balanced accuracy, costs of mistakes, ratios such as F1, robust accuracy."""

from accel_oct.objectives.base import Fixed, LinearScore, Objective, RatioScore, Score, StrictScore
from accel_oct.objectives.built_in import (
    F1,
    Accuracy,
    BalancedAccuracy,
    ClassWeights,
    CostMatrix,
    FBeta,
    InstanceCosts,
    Ratio,
    as_objective,
)
from accel_oct.objectives.robust import Robust, RobustScore

__all__ = [
    "F1",
    "Accuracy",
    "BalancedAccuracy",
    "ClassWeights",
    "CostMatrix",
    "FBeta",
    "Fixed",
    "InstanceCosts",
    "LinearScore",
    "Objective",
    "Ratio",
    "RatioScore",
    "Robust",
    "RobustScore",
    "Score",
    "StrictScore",
    "as_objective",
]
