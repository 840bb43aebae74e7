"""Colours of classes: distinct hues, paler where the share of the class is lower."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

#: The seven colours of Okabe and Ito, then five at the largest distance from all before them, for readers with any
#: colour blindness too (Oklab distances after Machado's simulation). Further classes take hues by the golden ratio.
_BASE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"),
    *("#4A1010", "#1414A0", "#8CF2E6", "#7A4545", "#B2BF99"),
)
_PALEST, _STRONGEST = 0.10, 0.60
#: Least luminance (0 to 1) of a fill: black text on it has a contrast of at least 7 to 1.
_LEAST_LUMINANCE = 0.31


def class_hue(label: int) -> str:
    """Return the full colour (#rrggbb) of a class."""
    if label < len(_BASE):
        return _BASE[label]
    # Dark, light and medium in turn: neighbours differ in more than their hue.
    value = (0.55, 0.95, 0.75)[label % 3]
    return _hex(colorsys.hsv_to_rgb(label * 0.6180339887 % 1.0, 0.7, value))


def class_colour(label: int, share: float, n_classes: int) -> str:
    """Return the fill colour (#rrggbb), for black text, of a node whose class `label` has this share of the weight."""
    even = 1.0 / max(n_classes, 1)
    sureness = 1.0 if n_classes < 2 else max(0.0, (share - even) / (1.0 - even))
    strength = _PALEST + (_STRONGEST - _PALEST) * sureness
    hue = class_hue(label)
    parts = [int(hue[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    tint = _tint(parts, strength)
    while _luminance(tint) < _LEAST_LUMINANCE:
        strength *= 0.95
        tint = _tint(parts, strength)
    return _hex(tint)


def _tint(parts: Sequence[float], strength: float) -> tuple[float, float, float]:
    red, green, blue = (1.0 - strength * (1.0 - part) for part in parts)
    return red, green, blue


def _luminance(parts: Sequence[float]) -> float:
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _hex(parts: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
