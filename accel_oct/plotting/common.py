"""What all pictures share."""

from __future__ import annotations

from typing import Any

from accel_oct.errors import AccelOctError

__all__ = ["AMBER", "BLUE", "GREEN", "GREY", "RED", "axes", "pyplot"]

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
