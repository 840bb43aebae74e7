"""Strict JSON, and objects whose entries are checked when they are read."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError, shown

_LARGEST = 2**62
#: Longest whole number: it fits a float, and parsing longer ones takes quadratic time.
_MAX_DIGITS = 300
#: Deepest nesting: far more than `to_json` needs, far less than Python's recursion limit.
_MAX_LEVELS = 50


def parsed(text: str) -> Any:
    """Parse strict JSON: finite numbers, distinct keys, valid Unicode, limited nesting."""
    try:
        document = json.loads(
            text, parse_int=_whole, parse_float=_real, parse_constant=_refuse_constant, object_pairs_hook=_without_twins
        )
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"the JSON document is damaged or cut off: {error}") from None
    except RecursionError:
        raise InvalidInputError("the JSON document is nested too deeply") from None
    _check_levels(document)
    return document


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise InvalidInputError(f"the JSON document holds a whole number of {len(digits)} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise InvalidInputError(f"the JSON document holds {shown(digits)}, which is too large a number")
    return value


def _refuse_constant(constant: str) -> Any:
    raise InvalidInputError(f"the JSON document holds {constant}, which is not a JSON number")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise InvalidInputError(f"the JSON document has the entry {shown(key)} twice in one object")
        entries[key] = value
    return entries


def _check_levels(document: Any) -> None:
    """Check nesting and text level by level, without recursion."""
    level = [document]
    for _ in range(_MAX_LEVELS):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.keys()
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str):
                try:
                    value.encode("utf-8")
                except UnicodeEncodeError:
                    raise InvalidInputError(
                        f"the JSON document holds {shown(value)}, which has a lone surrogate"
                    ) from None
        level = below
    if level:
        raise InvalidInputError("the JSON document is nested too deeply")


class JsonObject:
    """A JSON object whose entries are checked when they are read; errors name the entry.

    Parameters
    ----------
    values : object
        Must be a dictionary.
    where : str
        Name of the object in error messages.
    """

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise InvalidInputError(f"{where} must be an object, got {shown(values)}")
        self.values: dict[str, Any] = values
        self._where = where

    def get(self, name: str) -> Any:
        """Return an entry unchecked; it must exist."""
        if name not in self.values:
            raise InvalidInputError(f"{self._where} lacks the entry {name!r}")
        return self.values[name]

    def table(self, name: str) -> JsonObject:
        return JsonObject(self.get(name), name)

    def string(self, name: str) -> str:
        return str(self._of(name, str, "a string"))

    def sequence(self, name: str) -> list[Any]:
        return list(self._of(name, list, "a list"))

    def scalar(self, name: str) -> Any:
        """A string, number, boolean or null."""
        value = self.get(name)
        if isinstance(value, dict | list):
            raise InvalidInputError(f"{self._where}.{name} must be a plain value, got {shown(value)}")
        return value

    def whole(self, name: str, least: int = 0) -> int:
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
            raise InvalidInputError(f"{self._where}.{name} must be a whole number >= {least}, got {shown(value)}")
        return value

    def number(self, name: str, least: float = -math.inf) -> float:
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value) or value < least:
            wanted = "a number" if least == -math.inf else f"a number >= {least:g}"
            raise InvalidInputError(f"{self._where}.{name} must be {wanted}, got {shown(value)}")
        return float(value)

    def pairs(self, name: str) -> list[tuple[Any, float]]:
        """A list of [plain value, number]."""
        result = []
        for entry in self.sequence(name):
            if not isinstance(entry, list) or len(entry) != 2 or isinstance(entry[0], dict | list):
                raise InvalidInputError(f"{self._where}.{name} must hold pairs, got {shown(entry)}")
            result.append((entry[0], JsonObject({"value": entry[1]}, name).number("value")))
        return result

    def whole_array(self, name: str) -> NDArray[np.int64]:
        values = self.sequence(name)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
                raise InvalidInputError(f"{self._where}.{name} must hold whole numbers, got {shown(value)}")
        return np.array(values, dtype=np.int64)

    def float_array(self, name: str) -> NDArray[np.float64]:
        """Return a list of numbers, or of rows of equal length."""
        rows = self.sequence(name)
        for row in rows:
            for value in row if isinstance(row, list) else [row]:
                if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
                    raise InvalidInputError(f"{self._where}.{name} must hold numbers, got {shown(value)}")
        try:
            return np.array(rows, dtype=np.float64)
        except ValueError:
            raise InvalidInputError(f"{self._where}.{name} must have rows of equal length") from None

    def _of(self, name: str, kind: type, called: str) -> Any:
        value = self.get(name)
        if not isinstance(value, kind):
            raise InvalidInputError(f"{self._where}.{name} must be {called}, got {shown(value)}")
        return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
