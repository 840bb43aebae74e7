"""Graphviz."""

from __future__ import annotations

from typing import Any

from accel_oct.export.palette import class_colour
from accel_oct.export.view import NodeView, TreeView, view

__all__ = ["to_dot"]


def to_dot(model: Any, *, filled: bool = True) -> str:
    """The tree in Graphviz' dot language.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    filled : bool
        Colour nodes by class, paler where the class is less sure.
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
