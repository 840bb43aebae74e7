"""Constraints of an instance as text: ``recall(1, at_least=0.9)``, ``statistical_parity(group, at_most=0.05)``.

Names are those of `accel_oct.constraints` in small letters; the word ``group`` means the groups that came with the
data. Texts are read as syntax and never executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct import constraints
from accel_oct.bench.instances import EncodedData
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, did_you_mean, shown

__all__ = ["constraint_of", "constraints_of", "dataset_of"]

_NOT_NAMED = {"BoundConstraint", "Constraint", "LinearLimit", "FeatureBudget", "Linear"}
_KINDS: dict[str, Any] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): getattr(constraints, name)
    for name in constraints.__all__
    if name[0].isupper() and name not in _NOT_NAMED
}
_GROUP = "group"


def dataset_of(data: EncodedData, weight: int = 1) -> BinaryDataset:
    """The data as `accel_oct.solve` takes them, with the groups under the name ``group``; every row with one weight."""
    dataset = BinaryDataset.from_arrays(data.X, data.y, np.full(len(data.y), weight))
    return dataset if data.group is None else replace(dataset, row_values={_GROUP: data.group})


def constraints_of(texts: Sequence[str], data: EncodedData) -> list[Any]:
    """The constraints of an instance, tried out on its data.

    Raises
    ------
    InvalidInputError
        For a text that names no constraint, or one that the data do not go with.
    """
    made = [constraint_of(text) for text in texts]
    dataset = dataset_of(data)
    for text, constraint in zip(texts, made, strict=True):
        try:
            constraint.bind(dataset)
        except InvalidInputError as error:
            raise InvalidInputError(f"constraint {shown(text)} on data {data.name!r}: {error}") from None
    return made


def constraint_of(text: Any) -> Any:
    """A constraint from its text."""
    form = f"constraint {shown(text)} must be of the form name(argument=value)"
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        raise InvalidInputError(form) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise InvalidInputError(form)
    kind = _KINDS.get(call.func.id)
    if kind is None:
        near = did_you_mean(call.func.id, _KINDS) or f"; known are {', '.join(_KINDS)}"
        raise InvalidInputError(f"there is no constraint {call.func.id!r}{near}")
    try:
        arguments = [_value(node) for node in call.args]
        keywords = {keyword.arg or "**": _value(keyword.value) for keyword in call.keywords}
        return kind(*arguments, **keywords)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"constraint {shown(text)}: {error}") from None


def _value(node: ast.expr) -> Any:
    """Numbers, texts, lists of them; a bare word is a text."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.List):
        return [_value(entry) for entry in node.elts]
    return ast.literal_eval(node)
