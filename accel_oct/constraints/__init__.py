"""What a tree must satisfy besides being good: the protocol, and the constraints that come with the library."""

from accel_oct.constraints.fairness import (
    ConditionalParity,
    EqualisedOdds,
    EqualOpportunity,
    PredictiveEquality,
    StatisticalParity,
)
from accel_oct.constraints.features import (
    FeatureBudget,
    FeatureCosts,
    ForbiddenFeatures,
    MaxFeatures,
)
from accel_oct.constraints.leaves import MaxLeaves
from accel_oct.constraints.linear import Linear, LinearLimit
from accel_oct.constraints.pairs import ForbiddenPairs
from accel_oct.constraints.protocol import BoundConstraint, Constraint, bind_all, local_rules
from accel_oct.constraints.rates import FalsePositiveRate, PositiveBudget, Precision, Recall, Specificity
from accel_oct.constraints.support import MinLeafWeight

__all__ = [
    "BoundConstraint",
    "ConditionalParity",
    "Constraint",
    "EqualOpportunity",
    "EqualisedOdds",
    "FalsePositiveRate",
    "FeatureBudget",
    "FeatureCosts",
    "ForbiddenFeatures",
    "ForbiddenPairs",
    "Linear",
    "LinearLimit",
    "MaxFeatures",
    "MaxLeaves",
    "MinLeafWeight",
    "PositiveBudget",
    "Precision",
    "PredictiveEquality",
    "Recall",
    "Specificity",
    "StatisticalParity",
    "bind_all",
    "local_rules",
]
