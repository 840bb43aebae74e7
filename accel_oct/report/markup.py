"""HTML and SVG elements as values: text is escaped unless it is markup already."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["Content", "Markup", "element", "joined", "script_data"]

#: Elements that have no content and no end tag.
_VOID = frozenset({"meta", "link", "input", "br", "hr"})
#: What HTML cannot hold: control characters other than white space, and halves of characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")


class Markup(str):
    """Text that is HTML; any other text is escaped where it meets an element."""

    __slots__ = ()


Content = Markup | str | int | float | None | Iterable["Content"]


def element(tag: str, *content: Content, **attributes: Any) -> Markup:
    """An element with its content.

    Parameters
    ----------
    tag : str
    content
        Markup as it is; other text and numbers escaped; of iterables, each entry; None is nothing.
    attributes
        ``class_`` is ``class`` and ``aria_label`` is ``aria-label``. True is an attribute without value; what is None
        or False is left out.
    """
    opened = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        # SVG has names in mixed case (viewBox) that stay as they are.
        key = name.rstrip("_").replace("_", "-")
        opened.append(key if value is True else f'{key}="{escape(_fit(str(value)))}"')
    start = f"<{' '.join(opened)}>"
    return Markup(start if tag in _VOID else f"{start}{joined(content)}</{tag}>")


def joined(content: Content) -> Markup:
    """Content one after the other."""
    if content is None:
        return Markup()
    if isinstance(content, Markup):
        return content
    if isinstance(content, str | int | float):
        return Markup(escape(_fit(str(content)), quote=False))
    return Markup("".join(map(joined, content)))


def script_data(name: str, value: Any) -> Markup:
    """Values for the page's script, as JSON that no text in it can end: browsers look for ``</script`` first."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{escape(name)}">{text}</script>')


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)
