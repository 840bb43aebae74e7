"""What of a parametrised test is run every day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def daily(values: Iterable[Any], count: int, more: int | None = None) -> list[Any]:
    """Return parameters of which the first `count` are run by `make test`.

    The next `more` are marked slow, all by default, and the rest long.
    """
    chosen = list(values)
    end = len(chosen) if more is None else count + more
    return [*chosen[:count], *slow(chosen[count:end]), *_marked(chosen[end:], pytest.mark.long)]


def slow(values: Iterable[Any]) -> list[Any]:
    """Return parameters that are marked slow."""
    return _marked(values, pytest.mark.slow)


def _marked(values: Iterable[Any], mark: pytest.MarkDecorator) -> list[Any]:
    named = type(pytest.param(0))
    return [
        pytest.param(*value.values, id=value.id, marks=[*value.marks, mark])
        if isinstance(value, named)
        else pytest.param(value, marks=mark)
        for value in values
    ]
