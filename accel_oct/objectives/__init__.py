"""What a tree is to be good at: accuracy, balanced accuracy, costs of mistakes, ratios such as F1."""

from accel_oct.objectives.base import Fixed, LinearScore, Objective, RatioScore, Score
from accel_oct.objectives.named import as_objective
from accel_oct.objectives.ratios import F1, FBeta, Ratio
from accel_oct.objectives.sums import Accuracy, BalancedAccuracy, ClassWeights, CostMatrix, InstanceCosts

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
