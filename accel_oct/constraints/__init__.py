"""Constraints on trees: the interface, and the constraints of the library."""

from accel_oct.constraints.base import BoundConstraint, Constraint, TreePart, bind_all
from accel_oct.constraints.fairness import (
    ConditionalParity,
    EqualisedOdds,
    EqualOpportunity,
    PredictiveEquality,
    StatisticalParity,
)
from accel_oct.constraints.features import FeatureCosts, ForbiddenFeatures, ForbiddenPairs, MaxFeatures
from accel_oct.constraints.leaves import MaxLeaves, MinLeafWeight
from accel_oct.constraints.linear import Linear
from accel_oct.constraints.monotone import Monotone
from accel_oct.constraints.paths import FirstSplit, InteractionGroups, SplitOrder
from accel_oct.constraints.rates import FalsePositiveRate, PositiveBudget, Precision, Recall, Specificity
from accel_oct.constraints.rules import PredictionRule, TreeRule
from accel_oct.constraints.statements import RowSet, Share, Statement
from accel_oct.constraints.traits import FeatureBudget, FeaturePairs, FeatureRule, LinearLimit, Traits

__all__ = [
    "BoundConstraint",
    "ConditionalParity",
    "Constraint",
    "EqualOpportunity",
    "EqualisedOdds",
    "FalsePositiveRate",
    "FeatureBudget",
    "FeatureCosts",
    "FeaturePairs",
    "FeatureRule",
    "FirstSplit",
    "ForbiddenFeatures",
    "ForbiddenPairs",
    "InteractionGroups",
    "Linear",
    "LinearLimit",
    "MaxFeatures",
    "MaxLeaves",
    "MinLeafWeight",
    "Monotone",
    "PositiveBudget",
    "Precision",
    "PredictionRule",
    "PredictiveEquality",
    "Recall",
    "RowSet",
    "Share",
    "Specificity",
    "SplitOrder",
    "Statement",
    "StatisticalParity",
    "Traits",
    "TreePart",
    "TreeRule",
    "bind_all",
]
