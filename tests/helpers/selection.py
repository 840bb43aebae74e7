"""What of a parametrised test is run every day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def daily(values: Iterable[Any], count: int) -> list[Any]:
    """Return parameters of which the first `count` are run by `make test`; the others are marked slow."""
    chosen = list(values)
    return [*chosen[:count], *slow(chosen[count:])]


def slow(values: Iterable[Any]) -> list[Any]:
    """Return parameters that are marked slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
