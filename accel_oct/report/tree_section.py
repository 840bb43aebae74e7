"""The section on the tree: picture, details of a node, legend, and the same tree as a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView
from accel_oct.report.markup import Markup, element
from accel_oct.report.tree_picture import class_mark, tall_picture, wide_picture
from accel_oct.report.wording import percent, purity

__all__ = ["node_data", "tree_section"]

_HELP = (
    "Point at a node, tap it, or go there with the arrow keys, to read how many samples come to it and by which rule. "
    "Drag to move, scroll or pinch to zoom."
)


def tree_section(tree: TreeView) -> Markup:
    """Everything about the tree itself."""
    buttons = [
        element(
            "button",
            sign,
            type="button",
            id=name,
            class_=None if name == "layout" else "zoom",
            aria_label=label,
            title=label,
        )
        for name, sign, label in (
            ("zoom-in", "+", "Zoom in"),
            ("zoom-out", "\u2212", "Zoom out"),
            ("zoom-fit", "Whole tree", None),
            ("layout", "Wide or tall", None),
        )
    ]
    classes = [
        element("li", class_mark(label), " ", element("bdi", name)) for label, name in enumerate(tree.class_names)
    ]
    return element(
        "section",
        element("h2", "Tree", id="tree-title"),
        element(
            "p",
            "Each box asks a question, and its lines say which answer leads where. ",
            element("span", _HELP, id="tree-help", class_="screen"),
        ),
        element("ul", classes, class_="legend", aria_label="Classes"),
        element("p", tree.note, class_="quiet", id="against") if tree.note else None,
        element(
            "div",
            element(
                "div",
                element("div", buttons, class_="controls", role="group", aria_label="Picture"),
                wide_picture(tree),
                tall_picture(tree),
                class_="viewport",
            ),
            element("aside", element("p", "No node chosen.", class_="quiet"), id="details", aria_label="Chosen node"),
            class_="stage",
            id="stage",
        ),
        element(
            "details",
            element("summary", "The same tree as a list"),
            element("ul", _item(tree, tree.nodes[0], None), class_="rules"),
            id="rules",
        ),
        id="tree-section",
        aria_labelledby="tree-title",
    )


def node_data(tree: TreeView) -> Iterator[dict[str, Any]]:
    """What the script tells of each node."""
    for node in tree.nodes:
        yield {
            "left": node.left,
            "right": node.right,
            "label": node.label,
            "question": node.question,
            "yes": node.yes,
            "no": node.no,
            "passing": tree.passing(node),
            "weights": list(node.weights),
            "share": percent(node.share),
            "mark": f" The prediction is {AGAINST_MAJORITY}." if node.against_majority else "",
        }


def _item(tree: TreeView, node: NodeView, answer: str | None) -> Markup:
    lead = [element("span", answer, class_="answer"), " "] if answer else []
    if node.is_leaf:
        name = element("strong", class_mark(node.label), " ", element("bdi", tree.class_names[node.label]))
        mark = " * " if node.against_majority else " "
        line = element(
            "span", lead, name, mark, element("span", purity(tree, node), class_="quiet"), data_rule=node.index
        )
        return element("li", line)
    line = element(
        "span", lead, node.question, "? ", element("span", tree.passing(node), class_="quiet"), data_rule=node.index
    )
    below = zip((node.left, node.right), node.answers, strict=True)
    children = [_item(tree, tree.nodes[child], f"{said}:") for child, said in below]
    return element("li", line, element("ul", children))
