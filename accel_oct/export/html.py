"""A view for notebooks: plain HTML, no script, everything escaped."""

from __future__ import annotations

from html import escape
from typing import Any

from accel_oct.export.palette import class_colour
from accel_oct.export.view import NodeView, TreeView, view

__all__ = ["to_html"]

_STYLE = "font-family:sans-serif;font-size:13px;line-height:1.5;margin:4px 0 4px 12px"


def to_html(model: Any) -> str:
    """The fitted tree as nested lists that fold, with what is proven about it.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    """
    tree = view(model)
    n_leaves, depth = model.get_n_leaves(), model.get_depth()
    head = f"{n_leaves} leaves, depth {depth}, objective {model.objective_:.4f}, {model.proof_}"
    note = f'<div style="{_STYLE}">{escape(tree.note)}</div>' if tree.note else ""
    return f'<div style="{_STYLE}"><b>{escape(head)}</b>{_node(tree, tree.nodes[0])}{note}</div>'


def _node(tree: TreeView, node: NodeView) -> str:
    if node.is_leaf:
        colour = class_colour(node.label, node.share, len(tree.class_names))
        text = f"{tree.leaf_name(node)} ({tree.purity(node)})"
        badge = f"background:{colour};color:#000;border-radius:4px;padding:0 6px"
        return f'<div style="{_STYLE}"><span style="{badge}">{escape(text)}</span></div>'
    parts = []
    for question, child in ((node.no, node.left), (node.yes, node.right)):
        inside = _node(tree, tree.nodes[child])
        parts.append(f'<details open style="{_STYLE}"><summary>{escape(question)}</summary>{inside}</details>')
    return "".join(parts)
