"""What all pictures share."""

from __future__ import annotations

from typing import Any

from accel_oct.errors import AccelOctError, InvalidInputError, shown

__all__ = ["AMBER", "BLUE", "GREEN", "GREY", "RED", "axes", "needs", "pyplot"]

BLUE, AMBER, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"


def axes(ax: Any, size: tuple[float, float] = (6.0, 3.6)) -> Any:
    """The caller's axes, or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=size, layout="constrained")[1]


def pyplot() -> Any:
    """matplotlib.pyplot, or a sentence that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise AccelOctError("plots need matplotlib: pip install 'accel-oct[plot]'") from None
    return plt


def needs(thing: Any, what: str, *names: str) -> None:
    """Raise unless the object has these attributes."""
    for name in names:
        if not hasattr(thing, name):
            raise InvalidInputError(f"{what} must have {name!r}, got {shown(thing)}")
