"""What a tree must satisfy besides being good: the protocol, and the constraints that come with the library."""

from accel_oct.constraints.fairness import (
    ConditionalParity,
    EqualisedOdds,
    EqualOpportunity,
    PredictiveEquality,
    StatisticalParity,
)
from accel_oct.constraints.leaves import MaxLeaves
from accel_oct.constraints.linear import Linear, LinearLimit
from accel_oct.constraints.protocol import BoundConstraint, Constraint, bind_all
from accel_oct.constraints.rates import FalsePositiveRate, PositiveBudget, Precision, Recall, Specificity

__all__ = [
    "BoundConstraint",
    "ConditionalParity",
    "Constraint",
    "EqualOpportunity",
    "EqualisedOdds",
    "FalsePositiveRate",
    "Linear",
    "LinearLimit",
    "MaxLeaves",
    "PositiveBudget",
    "Precision",
    "PredictiveEquality",
    "Recall",
    "Specificity",
    "StatisticalParity",
    "bind_all",
]
