"""Numbers and names as the report writes them."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from accel_oct.export.view import NodeView, TreeView

__all__ = ["amount", "count", "decimals", "isolated", "percent", "purity", "readable"]

#: First strong isolate, and its end: what is between them cannot change the order of what is around them.
_OPEN, _CLOSE = "\u2068", "\u2069"


def percent(share: float) -> str:
    """A share with one decimal; 100% only where it is all, 0% only where it is nothing."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    text = f"{share:.1%}"
    return {"100.0%": "> 99.9%", "0.0%": "< 0.1%"}.get(text, text)


def decimals(value: float) -> str:
    """An objective or a bound: six decimals, those at the end that are zero left out but two."""
    text = f"{value:.6f}"
    head, _, tail = text.partition(".")
    return f"{head}.{tail.rstrip('0').ljust(2, '0')}".replace("-", "\u2212")


def amount(weight: float) -> str:
    """A count, or a weight where samples have weights."""
    return f"{weight:,.0f}" if weight == round(weight) and abs(weight) < 1e15 else f"{weight:,.4g}"


def count(number: int, thing: str) -> str:
    """``1 sample``, ``2 samples``."""
    things = {"leaf": "leaves", "class": "classes", "mistake": "mistakes"}.get(thing, f"{thing}s")
    return f"{number:,} {thing if number == 1 else things}"


def purity(tree: TreeView, node: NodeView) -> str:
    """The share of the node's class, and of what."""
    return f"{percent(node.share)} of {tree.passing(node)}"


def isolated(name: str) -> str:
    """A name that may stand in a sentence: one that is written from right to left keeps its own order to itself."""
    backwards = any(unicodedata.bidirectional(character) in ("R", "AL", "RLE", "RLO", "RLI") for character in name)
    return f"{_OPEN}{name}{_CLOSE}" if backwards else name


def readable(tree: TreeView) -> TreeView:
    """The same tree with names that may stand in sentences."""
    return replace(
        tree,
        nodes=tuple(_readable_node(tree, node) for node in tree.nodes),
        class_names=tuple(map(isolated, tree.class_names)),
    )


def _readable_node(tree: TreeView, node: NodeView) -> NodeView:
    if node.condition is None:
        return node
    name = tree.column_names[node.condition.column]
    yes, no, question, brief = (_sentence(text, name) for text in (node.yes, node.no, node.question, node.brief))
    return replace(node, yes=yes, no=no, question=question, brief=brief)


def _sentence(text: str, name: str) -> str:
    """A condition with the signs of print, and a name that keeps its order to itself; the name is not touched."""
    before, found, after = text.partition(name)
    for typed, printed in ((" >= ", " \u2265 "), (" <= ", " \u2264 "), (" != ", " \u2260 ")):
        before, after = before.replace(typed, printed), after.replace(typed, printed)
    return before + (isolated(name) if found else "") + after
