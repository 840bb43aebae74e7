"""Rules as indented text."""

from __future__ import annotations

from typing import Any

from accel_oct.export.view import NodeView, TreeView, view

__all__ = ["to_text"]


def to_text(model: Any, *, show_counts: bool = True) -> str:
    """The tree as indented rules; a last line explains the asterisk of leaves, if there is one.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    show_counts : bool
        Add the share of the class and the number of training samples to each leaf; with weights that are not all
        equal, the share of the weight.
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
        lines.append(f"{indent}class {tree.leaf_name(node)}{counts}")
        return
    for question, child in ((node.no, node.left), (node.yes, node.right)):
        lines.append(f"{indent}if {question}:")
        _write(tree, tree.nodes[child], indent + "    ", lines, show_counts)
