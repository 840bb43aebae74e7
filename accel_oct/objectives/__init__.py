"""Objectives: accuracy, balanced accuracy, costs of mistakes, ratios such as F1."""

from accel_oct.objectives.base import Fixed, LinearScore, Objective, RatioScore, Score
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
    "Score",
    "as_objective",
]
