"""Checks of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel_oct.errors import InvalidInputError, shown


def checked_penalties(leaf_penalties: Any) -> list[float]:
    """Return leaf penalties as floats in the given order, or raise InvalidInputError."""
    try:
        penalties = [float(penalty) for penalty in leaf_penalties]
    except (TypeError, ValueError):
        raise InvalidInputError(f"leaf_penalties must be numbers, got {shown(leaf_penalties)}") from None
    if not penalties or not all(np.isfinite(p) and p >= 0 for p in penalties):
        raise InvalidInputError(f"leaf_penalties must be finite and not negative, got {leaf_penalties!r}")
    return penalties
