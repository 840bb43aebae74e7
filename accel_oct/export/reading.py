"""Reading untrusted JSON values, one checked entry at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError

__all__ = ["Reader"]

_LARGEST = 2**62


class Reader:
    """A JSON object whose entries are checked when they are taken out; errors name the entry.

    Parameters
    ----------
    values : object
        Must be a JSON object.
    where : str
        What to call it in errors.
    """

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise InvalidInputError(f"{where} must be an object, got {_shown(values)}")
        self.values: dict[str, Any] = values
        self._where = where

    def get(self, name: str) -> Any:
        """The entry as it is; it must be there."""
        if name not in self.values:
            raise InvalidInputError(f"{self._where} lacks the entry {name!r}")
        return self.values[name]

    def table(self, name: str) -> Reader:
        return Reader(self.get(name), name)

    def string(self, name: str) -> str:
        return str(self._of(name, str, "a string"))

    def sequence(self, name: str) -> list[Any]:
        return list(self._of(name, list, "a list"))

    def scalar(self, name: str) -> Any:
        """A string, number, boolean or null."""
        value = self.get(name)
        if isinstance(value, dict | list):
            raise InvalidInputError(f"{self._where}.{name} must be a plain value, got {_shown(value)}")
        return value

    def whole(self, name: str, least: int = 0) -> int:
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
            raise InvalidInputError(f"{self._where}.{name} must be a whole number >= {least}, got {_shown(value)}")
        return value

    def number(self, name: str) -> float:
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            raise InvalidInputError(f"{self._where}.{name} must be a number, got {_shown(value)}")
        return float(value)

    def pairs(self, name: str) -> list[tuple[Any, float]]:
        """A list of [plain value, number]."""
        result = []
        for entry in self.sequence(name):
            if not isinstance(entry, list) or len(entry) != 2 or isinstance(entry[0], dict | list):
                raise InvalidInputError(f"{self._where}.{name} must hold pairs, got {_shown(entry)}")
            result.append((entry[0], Reader({"value": entry[1]}, name).number("value")))
        return result

    def whole_array(self, name: str) -> NDArray[np.int64]:
        values = self.sequence(name)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
                raise InvalidInputError(f"{self._where}.{name} must hold whole numbers, got {_shown(value)}")
        return np.array(values, dtype=np.int64)

    def float_array(self, name: str) -> NDArray[np.float64]:
        """Numbers, or rows of equally many numbers."""
        rows = self.sequence(name)
        for row in rows:
            for value in row if isinstance(row, list) else [row]:
                if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
                    raise InvalidInputError(f"{self._where}.{name} must hold numbers, got {_shown(value)}")
        try:
            return np.array(rows, dtype=np.float64)
        except ValueError:
            raise InvalidInputError(f"{self._where}.{name} must have rows of equal length") from None

    def _of(self, name: str, kind: type, called: str) -> Any:
        value = self.get(name)
        if not isinstance(value, kind):
            raise InvalidInputError(f"{self._where}.{name} must be {called}, got {_shown(value)}")
        return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
