"""What each column of a source is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.pieces.sources import BESIDE, Source

__all__ = ["Roles"]


@dataclass(frozen=True)
class Roles:
    """Names of columns: what is predicted, what from, what constraints tell apart, and weights."""

    target: str
    features: tuple[str, ...]
    groups: tuple[str, ...]
    weight: str | None

    @classmethod
    def of(cls, source: Source, target: Any, features: Any, sensitive: Any, sample_weight: Any) -> Roles:
        """Check the arguments of `gather`."""
        if target is None and source.target is None:
            raise InvalidInputError(f"target must be the name of a column of {source.kind}, got None")
        goal = source.target or _column(source, target, "target")
        weight = source.weight
        if weight is None and sample_weight is not None:
            weight = _column(source, sample_weight, "sample_weight")
        if weight == goal:
            raise InvalidInputError(f"sample_weight and target are the same column, {shown(weight)}")
        chosen = (
            tuple(name for name in source.columns if name not in (goal, weight))
            if features is None
            else _columns(source, features, "features")
        )
        for name, called in ((goal, "target"), (weight, "sample_weight")):
            if name in chosen:
                raise InvalidInputError(f"features must not hold the column of {called}, {shown(name)}")
        if not chosen:
            raise InvalidInputError(f"features: {source.kind} has no column to split on")
        named = [sensitive] if isinstance(sensitive, str) else sensitive
        listed = () if named is None else _columns(source, named, "sensitive_features")
        if goal in listed:
            raise InvalidInputError(
                f"sensitive_features must not hold the target, {shown(goal)}: classes are told apart already"
            )
        return cls(goal, chosen, listed, weight)


def _columns(source: Source, names: Any, argument: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidInputError(f"{argument} must be a list of names of columns, got {shown(names)}")
    found = tuple(_column(source, name, argument) for name in names)
    twice = next((name for place, name in enumerate(found) if name in found[:place]), None)
    if twice is not None:
        raise InvalidInputError(f"{argument} names the column {shown(twice)} twice")
    return found


def _column(source: Source, name: Any, argument: str) -> str:
    if not isinstance(name, str):
        raise InvalidInputError(f"{argument} must be the name of a column, got {shown(name)}")
    if name not in source.columns or name in BESIDE:
        known = [column for column in source.columns if column not in BESIDE]
        near = did_you_mean(name, known) or f"; it has {shown(known)}"
        raise InvalidInputError(f"{argument}: {source.kind} has no column {shown(name)}{near}")
    return name
