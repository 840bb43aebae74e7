"""What counts as a missing value."""

from __future__ import annotations

__all__ = ["is_missing"]


def is_missing(value: object) -> bool:
    """None, NaN, NaT and pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"  # pandas.NA refuses to be a truth value; an array is no NA
