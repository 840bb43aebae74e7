"""HTML elements, and numbers and names as the report writes them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from accel_oct.export.view import NodeView, TreeView

#: Elements without content and end tag.
_VOID = frozenset({"meta", "link", "input", "br", "hr"})
#: Not allowed in HTML: control characters other than white space, and lone surrogates.
_UNFIT = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
#: First strong isolate and its end: text between them does not change the order of text around them.
_OPEN, _CLOSE = "\u2068", "\u2069"


class Markup(str):
    """Text that is HTML; `element` escapes any other text."""

    __slots__ = ()


Content = Markup | str | int | float | None | Iterable["Content"]


def element(tag: str, *content: Content, **attributes: Any) -> Markup:
    """Return an element with its content.

    Parameters
    ----------
    content
        Markup is used as it is, other text and numbers are escaped, iterables are joined, None is omitted.
    attributes
        ``class_`` is ``class`` and ``aria_label`` is ``aria-label``. True gives an attribute without value; None and
        False omit it.
    """
    opened = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.rstrip("_").replace("_", "-")  # case is kept: SVG has names such as viewBox
        opened.append(key if value is True else f'{key}="{escape(_fit(str(value)))}"')
    start = f"<{' '.join(opened)}>"
    return Markup(start if tag in _VOID else f"{start}{joined(content)}</{tag}>")


def joined(content: Content) -> Markup:
    """Return the content as markup, escaped where needed."""
    if content is None:
        return Markup()
    if isinstance(content, Markup):
        return content
    if isinstance(content, str | int | float):
        return Markup(escape(_fit(str(content)), quote=False))
    return Markup("".join(map(joined, content)))


def script_data(name: str, value: Any) -> Markup:
    """Return values for the script of the page as a JSON element; no text in it can contain ``</script``."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{escape(name)}">{text}</script>')


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)


def section(name: str, title: str, *content: Content, **attributes: Any) -> Markup:
    """Return a section with a heading; the navigation links to its id, ``name-section``."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, content, id=f"{name}-section", aria_labelledby=f"{name}-title", **attributes)


def table(label: str, head: Sequence[str], rows: Iterable[tuple[str, Iterable[Content]]]) -> Markup:
    """Return a table that scrolls; a row is its name and its cells."""
    body = [
        element("tr", element("th", element("bdi", name), scope="row"), (element("td", cell) for cell in cells))
        for name, cells in rows
    ]
    titles = element("tr", (element("th", text, scope="col") for text in head))
    grid = element("table", element("thead", titles), element("tbody", body))
    return element("div", grid, class_="scroll", tabindex=0, role="region", aria_label=label)


def terms(pairs: Iterable[tuple[str, Content]], class_: str) -> Markup:
    """Return a description list."""
    entries = [element("div", element("dt", term), element("dd", value)) for term, value in pairs]
    return element("dl", entries, class_=class_)


def percent(share: float) -> str:
    """Format a share with one decimal; only exactly 1 is 100% and only exactly 0 is 0%."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    text = f"{share:.1%}"
    return {"100.0%": "> 99.9%", "0.0%": "< 0.1%"}.get(text, text)


def decimals(value: float) -> str:
    """Format an objective or a bound with two to six decimals."""
    text = f"{value:.6f}"
    head, _, tail = text.partition(".")
    return f"{head}.{tail.rstrip('0').ljust(2, '0')}".replace("-", "\u2212")


def amount(weight: float) -> str:
    """Format a count or a weight."""
    return f"{weight:,.0f}" if weight == round(weight) and abs(weight) < 1e15 else f"{weight:,.4g}"


def count(number: int, thing: str) -> str:
    """Format a number with a noun: ``1 sample``, ``2 samples``."""
    things = {"leaf": "leaves"}.get(thing, f"{thing}s")
    return f"{number:,} {thing if number == 1 else things}"


def purity(tree: TreeView, node: NodeView) -> str:
    """Share of the node's class, such as ``93.3% of 15 samples``."""
    return f"{percent(node.share)} of {tree.passing(node)}"


def isolated(name: str) -> str:
    """Isolate a right-to-left name, so that it does not change the order of the sentence around it."""
    backwards = any(unicodedata.bidirectional(character) in ("R", "AL", "RLE", "RLO", "RLI") for character in name)
    return f"{_OPEN}{name}{_CLOSE}" if backwards else name


def readable(tree: TreeView) -> TreeView:
    """Return the tree with isolated names and typographic comparison signs."""
    nodes = []
    for node in tree.nodes:
        if node.condition is not None:
            name = tree.column_names[node.condition.column]
            texts = {part: _typeset(getattr(node, part), name) for part in ("yes", "no", "question", "brief")}
            node = replace(node, **texts)  # type: ignore[arg-type]
        nodes.append(node)
    return replace(tree, nodes=tuple(nodes), class_names=tuple(map(isolated, tree.class_names)))


def readable_text(text: str) -> str:
    """Return the text of a condition with typographic comparison signs."""
    for typed, printed in ((" >= ", " \u2265 "), (" <= ", " \u2264 "), (" != ", " \u2260 ")):
        text = text.replace(typed, printed)
    return text


def _typeset(text: str, name: str) -> str:
    """Replace the signs of a condition, but not in the column's name."""
    before, found, after = text.partition(name)
    return readable_text(before) + (isolated(name) if found else "") + readable_text(after)
