"""Parsing of constraints and objectives: ``statistical_parity(sex, at_most=0.02)``. The text is never executed."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel_oct import constraints, objectives
from accel_oct.errors import InvalidInputError, InvalidTypeError, did_you_mean, shown
from accel_oct.objectives.built_in import NAMED

__all__ = ["CONSTRAINTS", "OBJECTIVES", "Call", "constraint", "objective"]


_LONGEST = 10_000
_QUOTES = '; a name that is more than one word needs quotes, as in "marital status"'
_WORDS = {"true": True, "false": False, "none": None}


def _by_name(kinds: Sequence[type[Any]]) -> dict[str, type[Any]]:
    """``StatisticalParity`` as ``statistical_parity``, ``F1`` as ``f1``."""
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in kinds}


CONSTRAINTS = _by_name(
    [
        constraints.StatisticalParity,
        constraints.ConditionalParity,
        constraints.EqualOpportunity,
        constraints.PredictiveEquality,
        constraints.EqualisedOdds,
        constraints.Recall,
        constraints.Precision,
        constraints.Specificity,
        constraints.FalsePositiveRate,
        constraints.PositiveBudget,
        constraints.MaxLeaves,
        constraints.MinLeafWeight,
        constraints.MaxFeatures,
        constraints.FeatureCosts,
        constraints.ForbiddenFeatures,
        constraints.ForbiddenPairs,
        constraints.Monotone,
        constraints.InteractionGroups,
        constraints.FirstSplit,
        constraints.SplitOrder,
        constraints.Linear,
    ]
)
#: Without those that hold one number per row.
OBJECTIVES = _by_name(
    [
        objectives.Accuracy,
        objectives.BalancedAccuracy,
        objectives.ClassWeights,
        objectives.CostMatrix,
        objectives.F1,
        objectives.FBeta,
        objectives.Ratio,
        objectives.Robust,
    ]
)


@dataclass(frozen=True)
class Call:
    """A name and its arguments.

    Attributes
    ----------
    name : str
        In small letters with underscores.
    """

    name: str
    arguments: Sequence[Any] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The call as text."""
        parts = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.keywords.items())]
        return f"{self.name}({', '.join(parts)})"

    @classmethod
    def parsed(cls, text: Any, what: str, known: Mapping[str, type[Any]]) -> Call:
        """Parse text, or a table of a run file: ``{kind = "recall", at_least = 0.9}``.

        Parameters
        ----------
        what : str
            "constraint" or "objective", for errors.
        """
        if isinstance(text, Mapping):
            rest = dict(text)
            name = rest.pop("kind", None)
            if not isinstance(name, str):
                raise InvalidInputError(f"{what} {shown(text)} has no kind; known are {', '.join(known)}")
            return cls(_known_name(name, what, known), (), rest)
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise InvalidInputError(f"{what} must be text such as name(argument=value), got {shown(text)}")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InvalidInputError(f"{what} {shown(text)} is not of the form name(argument=value){_QUOTES}") from None
        if isinstance(tree, ast.Name):
            return cls(_known_name(tree.id, what, known))
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise InvalidInputError(f"{what} {shown(text)} is not of the form name(argument=value)")
        name = _known_name(tree.func.id, what, known)
        try:
            arguments = [_value(node, name, "its arguments") for node in tree.args]
            keywords: dict[str, Any] = {}
            for keyword in tree.keywords:
                if keyword.arg is None:
                    raise InvalidInputError(f"{what} {name}: ** is not possible here")
                if keyword.arg in keywords:
                    raise InvalidInputError(f"{what} {name} has the argument {shown(keyword.arg)} twice")
                keywords[keyword.arg] = _value(keyword.value, name, keyword.arg)
        except RecursionError:
            raise InvalidInputError(f"{what} {shown(text)} is nested too deeply") from None
        return cls(name, arguments, keywords)

    def made(self, what: str, known: Mapping[str, type[Any]]) -> Any:
        """Make the constraint or objective; errors name it and the argument."""
        kind = known[self.name]
        parameters = list(inspect.signature(kind).parameters)
        for name in self.keywords:
            if name not in parameters:
                near = did_you_mean(name, parameters) or f"; it takes {', '.join(parameters) or 'none'}{_QUOTES}"
                raise InvalidInputError(f"{what} {self.name} has no argument {shown(name)}{near}")
        try:
            inspect.signature(kind).bind(*self.arguments, **self.keywords)
        except TypeError as error:
            raise InvalidTypeError(f"{what} {self.name}: {error}; it takes {', '.join(parameters) or 'none'}") from None
        try:
            return kind(*self.arguments, **self.keywords)
        except InvalidInputError as error:
            raise InvalidInputError(f"{what} {self.name}: {error}") from None
        except OverflowError:
            raise InvalidInputError(f"{what} {self.name}: a number is too large") from None


def constraint(text: Any) -> tuple[Any, str]:
    """Parse a constraint of the library from text or a table; returns it with its text."""
    call = Call.parsed(text, "constraint", CONSTRAINTS)
    return call.made("constraint", CONSTRAINTS), call.text


def objective(text: Any) -> tuple[Any, str]:
    """Parse an objective of the library from text or a table; returns it, or its name alone, with its text."""
    call = Call.parsed(text, "objective", OBJECTIVES)
    made = call.made("objective", OBJECTIVES)
    if call.name in NAMED and not call.arguments and not call.keywords:
        return call.name, call.name
    return made, call.text


def _known_name(name: str, what: str, known: Mapping[str, type[Any]]) -> str:
    for plain, kind in known.items():
        if name in (plain, kind.__name__):
            return plain
    names = [*known, *(kind.__name__ for kind in known.values())]
    near = did_you_mean(name, names)
    raise InvalidInputError(f"there is no {what} {shown(name)}{near or '; known are ' + ', '.join(known)}")


def _value(node: ast.expr, name: str, argument: str) -> Any:
    """Evaluate constants, bare words as text, lists and mappings; anything else is an error."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
        return node.value
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id, node.id)
    if isinstance(node, ast.List | ast.Set):
        return [_value(entry, name, argument) for entry in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(entry, name, argument) for entry in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {
            _key(key, name, argument): _value(value, name, argument)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _value(node.operand, name, argument)
        if isinstance(number, int | float) and not isinstance(number, bool):
            return -number if isinstance(node.op, ast.USub) else number
    raise InvalidInputError(
        f"{name}: {argument}: {shown(ast.unparse(node))} is no number, word, text in quotes or list of these; "
        "put names with signs or spaces into quotes"
    )


def _key(node: ast.expr, name: str, argument: str) -> Any:
    key = _value(node, name, argument)
    try:
        hash(key)
    except TypeError:
        raise InvalidInputError(f"{name}: {argument}: {shown(key)} cannot be the key of a mapping") from None
    return key
