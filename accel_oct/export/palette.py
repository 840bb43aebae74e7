"""Colours of the classes: distinct hues, paler where a node is less sure."""

from __future__ import annotations

import colorsys

__all__ = ["class_colour"]

#: Okabe and Ito's palette, which colour-blind readers can tell apart; further classes take hues by the golden ratio.
_BASE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_PALEST, _STRONGEST = 0.10, 0.60


def class_colour(label: int, share: float, n_classes: int) -> str:
    """Fill colour (#rrggbb) of a node whose class `label` has this share of the weight."""
    if label < len(_BASE):
        red, green, blue = (int(_BASE[label][k : k + 2], 16) / 255 for k in (1, 3, 5))
    else:
        red, green, blue = colorsys.hsv_to_rgb(label * 0.6180339887 % 1.0, 0.7, 0.8)
    even = 1.0 / max(n_classes, 1)
    sureness = 1.0 if n_classes < 2 else max(0.0, (share - even) / (1.0 - even))
    strength = _PALEST + (_STRONGEST - _PALEST) * sureness
    mixed = (round(255 * (1.0 - strength * (1.0 - part))) for part in (red, green, blue))
    return "#" + "".join(f"{part:02x}" for part in mixed)
