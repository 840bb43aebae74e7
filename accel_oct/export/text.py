"""A tree for people to read: indented text, HTML for notebooks, Graphviz."""

from __future__ import annotations

from html import escape
from typing import Any

from accel_oct.export.palette import class_colour
from accel_oct.export.view import NodeView, TreeView, view


def to_text(model: Any, *, show_counts: bool = True) -> str:
    """Return the tree as indented rules; a last line explains the asterisk of leaves, if there is one.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    show_counts : bool
        Add the share of the class (of the weight, if samples are weighted) and the number of samples to each leaf.
    """
    tree = view(model)
    lines: list[str] = []
    _write(tree, tree.nodes[0], "", lines, show_counts)
    if tree.note:
        lines.append(tree.note)
    return "\n".join(lines)


def _write(tree: TreeView, node: NodeView, indent: str, lines: list[str], show_counts: bool) -> None:
    if node.is_leaf:
        counts = f"  ({tree.purity(node)})" if show_counts else ""
        lines.append(f"{indent}{tree.noun} {tree.leaf_name(node)}{counts}")
        return
    for question, child in ((node.no, node.left), (node.yes, node.right)):
        lines.append(f"{indent}if {question}:")
        _write(tree, tree.nodes[child], indent + "    ", lines, show_counts)


_STYLE = "font-family:sans-serif;font-size:13px;line-height:1.5;margin:4px 0 4px 12px"


def to_html(model: Any) -> str:
    """Return the tree as nested HTML lists that fold, with its objective and what is proven about it.

    The HTML has no script, and all text is escaped.

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


def to_dot(model: Any, *, filled: bool = True) -> str:
    """Return the tree in the dot language of Graphviz.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    filled : bool
        Colour nodes by class, paler where the share of the class is lower.
    """
    tree = view(model)
    lines = [
        "digraph tree {",
        '  node [shape=box, style="rounded,filled", fillcolor="white", fontname="Helvetica"];',
        '  edge [fontname="Helvetica"];',
    ]
    for node in tree.nodes:
        colour = class_colour(node.label, node.share, len(tree.class_names)) if filled else "white"
        lines.append(f"  n{node.index} [label={_quoted(_caption(tree, node))}, fillcolor={_quoted(colour)}];")
        if not node.is_leaf:
            for answer, child in zip(node.answers, (node.left, node.right), strict=True):
                lines.append(f'  n{node.index} -> n{child} [label="{answer}"];')
    if tree.note:
        lines.append(f'  label={_quoted(tree.note)}; fontname="Helvetica";')
    return "\n".join([*lines, "}", ""])


def _caption(tree: TreeView, node: NodeView) -> str:
    if node.is_leaf:
        return f"{tree.leaf_name(node)}\n{tree.purity(node)}"
    return f"{node.question}?\n{tree.passing(node)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
