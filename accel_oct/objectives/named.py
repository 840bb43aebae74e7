"""Objectives by name."""

from __future__ import annotations

from typing import Any

from accel_oct.errors import InvalidInputError, shown
from accel_oct.objectives.base import Objective
from accel_oct.objectives.ratios import F1
from accel_oct.objectives.sums import Accuracy, BalancedAccuracy

#: What `objective` may be in words.
NAMED: dict[str, type[Any]] = {"accuracy": Accuracy, "balanced_accuracy": BalancedAccuracy, "f1": F1}


def as_objective(value: Any) -> Objective:
    """What a user gave as `objective`: None for accuracy, a name, or an objective."""
    if value is None:
        return Accuracy()
    if isinstance(value, str):
        if value not in NAMED:
            known = ", ".join(map(repr, NAMED))
            raise InvalidInputError(f"objective must be one of {known} or an Objective, got {shown(value)}")
        return NAMED[value]()  # type: ignore[no-any-return]
    if not isinstance(value, Objective):
        hint = f"; did you mean {value.__name__}(...)?" if isinstance(value, type) else ""
        raise InvalidInputError(f"objective must be a name or an accel_oct Objective, got {shown(value)}{hint}")
    return value
