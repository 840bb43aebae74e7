"""Questions as pictures write them: with few digits, and never with a wrong one."""

from __future__ import annotations

from collections.abc import Iterable

from accel_oct.encoding.columns import format_number
from accel_oct.encoding.conditions import Condition

__all__ = ["few_digits", "question"]

#: The encoders choose the shortest number in the middle of the gap between two training values, so that up to this many
#: digits are there for a reason and are written out.
_ALL_UP_TO = 6
_FEWEST = 4


def question(condition: Condition, name: str, conditions: Iterable[Condition] = ()) -> str:
    """A condition in words; `conditions` are the others of its encoder, from which its numbers must stay apart."""
    if condition.missing:
        return f"{question(condition.plain, name, conditions)} or missing"
    if condition.scale is not None or (condition.low is None and condition.high is None):
        return condition.text(name).replace(" >= ", " \u2265 ").replace(" <= ", " \u2264 ")
    others = {c_limit for c in conditions if c.column == condition.column for c_limit in (c.low, c.high)}
    low, high = (None if limit is None else few_digits(limit, others) for limit in (condition.low, condition.high))
    if low is None:
        return f"{name} < {high}"
    return f"{name} \u2265 {low}" if high is None else f"{low} \u2264 {name} < {high}"


def few_digits(value: float, others: Iterable[float | None] = ()) -> str:
    """The number itself where that is short, else its first digits and an ellipsis.

    At least four digits are kept, and as many as tell it from all `others`: no digit is rounded, so what stands there
    is true.
    """
    exact = format_number(value)
    if "." not in exact or _n_digits(exact) <= _ALL_UP_TO:
        return exact
    texts = {format_number(other) for other in others if other is not None and other != value}
    for keep in range(_FEWEST, _n_digits(exact)):
        short = _cut(exact, keep)
        if all(_cut(text, keep) != short for text in texts):
            return short
    return exact


def _mantissa(text: str) -> str:
    return text.partition("e")[0]


def _n_digits(text: str) -> int:
    """Significant digits as written."""
    return len(_mantissa(text).replace(".", "").lstrip("-0"))


def _cut(text: str, keep: int) -> str:
    """The first `keep` significant digits, but all before the point."""
    mantissa, mark, exponent = text.partition("e")
    seen, end = 0, len(mantissa)
    point = mantissa.find(".") if "." in mantissa else len(mantissa)
    for place, character in enumerate(mantissa):
        seen += character.isdigit() and (seen > 0 or character != "0")
        if seen >= keep and place > point:
            end = place + 1
            break
    return f"{mantissa[:end]}\u2026{mark}{exponent}" if end < len(mantissa) else text
