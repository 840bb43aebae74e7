"""Text in boxes: how wide it is, and where to break it. All lengths are in units of the font size."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["LINE_HEIGHT", "MOST_LINES", "Block", "Measure", "block", "shorten"]

LINE_HEIGHT = 1.26
MOST_LINES = 6
_ELLIPSIS = "\u2026"
#: Ends of pieces between which a line may break: blanks, and marks inside long names.
_PIECE = re.compile(r"[^\s_\-/,;:|]*(?:[_\-/,;:|]+ *|\s+|$)")
#: Stands for a blank at which no line breaks.
_FIRM = "\ue000"
_SIGN = re.compile(r"(?<=[<=\u2265\u2264]) (?=\S{1,12}(?: |$))")

#: Width of a text at font size 1, and whether it is bold.
Measure = Callable[[str, bool], float]


@dataclass(frozen=True)
class Block:
    """Lines of one font.

    Attributes
    ----------
    text : str
        With its line breaks.
    scale : float
        Its font size.
    width, height : float
    bold : bool
    cut : bool
        Something had to be left out.
    torn : bool
        A word had to be broken.
    """

    text: str
    scale: float
    width: float
    height: float
    bold: bool = False
    cut: bool = False
    torn: bool = False


def block(
    text: str, limit: float, measure: Measure, *, scale: float = 1.0, bold: bool = False, lines: int = MOST_LINES
) -> Block:
    """Break `text` into lines that are at most `limit` wide; what is beyond so many lines loses its middle."""

    def width(part: str) -> float:
        return scale * measure(part, bold)

    broken = [line for part in text.split("\n") for line in _wrap(part, limit, width)]
    torn = any(width(piece.rstrip()) > limit for piece in _pieces(text))
    cut = len(broken) > lines
    if cut:
        rest = text.replace("\n", " ")
        for line in broken[: lines - 1]:
            rest = rest[len(line) :].lstrip()
        broken = [*broken[: lines - 1], shorten(rest, limit, width)]
    widest = max(map(width, broken))
    return Block("\n".join(broken), scale, widest, scale * LINE_HEIGHT * len(broken), bold, cut, torn)


def shorten(text: str, limit: float, width: Callable[[str], float]) -> str:
    """Leave out some of the middle of a text that is too wide: its ends tell more."""
    if width(text) <= limit:
        return text
    for kept in range(len(text) - 1, 1, -1):
        head = (kept + 2) // 3
        candidate = text[:head].rstrip() + _ELLIPSIS + text[len(text) - (kept - head) :].lstrip()
        if width(candidate) <= limit:
            return candidate
    return text[:1] + _ELLIPSIS


def _wrap(text: str, limit: float, width: Callable[[str], float]) -> list[str]:
    lines, line = [], ""
    for piece in _pieces(text):
        part = piece
        if line and width((line + part).rstrip()) > limit:
            lines.append(line.rstrip())
            line = ""
        while width(part.rstrip()) > limit and len(part) > 1:
            cut = next((k for k in range(len(part) - 1, 1, -1) if width(part[:k]) <= limit), 1)
            lines.append(part[:cut])
            part = part[cut:]
        line += part
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _pieces(text: str) -> list[str]:
    """Between which a line may break; a number stays with the sign of comparison before it."""
    firm = _SIGN.sub(_FIRM, text)
    return [piece.replace(_FIRM, " ") for piece in _PIECE.findall(firm) if piece]
