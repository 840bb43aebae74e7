"""The section on the tree: SVG pictures, node details, legend, and the tree as a list."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView
from accel_oct.plotting.layout import (
    BAR_GAP,
    BAR_HEIGHT,
    LINE_HEIGHT,
    PAD,
    SMALL,
    Arrangement,
    NodeBox,
    TextBlock,
    arrange,
    natural_size,
    text_block,
)
from accel_oct.report.markup import Markup, element, percent, purity, section

#: Pixels of an unscaled picture.
FONT_SIZE = 13.0
_MARGIN = 10.0
#: Width of the class colour at the left of a leaf.
_BAND = 8.0
_THINNEST, _THICKEST = 1.2, 5.0
#: The tall picture, in units of the font size: width, indentation of children, least width of a box, vertical gap.
_TALL, _INDENT, _NARROWEST, _SKIP = 27.0, 1.9, 13.0, 0.55
#: Distance from the bottom of a line to its baseline, as a share of the line.
_BASELINE = 0.27

# Characters by width in DejaVu Sans, a wide font: text takes less room in others.
_NARROW, _SLIM, _WIDE = frozenset("iljI.,:;'|! "), frozenset('frt()[]-/"*'), frozenset("mwMW@%\u2026\u2265\u2264<>=+")


def wide_picture(tree: TreeView) -> Markup:
    """Draw the tree from top to bottom; the script moves and scales the group ``world``."""
    size = natural_size(tree, text_width)
    drawn = arrange(tree, (size[0] * FONT_SIZE, size[1] * FONT_SIZE), FONT_SIZE, text_width)
    layout, unit = drawn.layout, drawn.font_size
    parents = {child: node.index for node in tree.nodes for child in (node.left, node.right) if child >= 0}
    edges = [_edge(tree, drawn, parents[node.index], node) for node in tree.nodes if node.index in parents]
    nodes = [
        _node(tree, node, cell, (layout.x[node.index] - cell.width / 2, layout.top[node.index]), unit)
        for node, cell in zip(tree.nodes, drawn.cells, strict=True)
    ]
    return _picture("wide", edges, nodes, (layout.width, layout.height), unit)


def tall_picture(tree: TreeView) -> Markup:
    """Draw one node below the other, for narrow screens."""
    answers = {child: said for node in tree.nodes for child, said in _children(node)}
    width = max(_TALL, _NARROWEST + _INDENT * max(node.depth for node in tree.nodes))
    cells, tops, y = [], [], 0.0
    for node in tree.nodes:
        own = width - _INDENT * node.depth
        cells.append(_tall_cell(tree, node, answers.get(node.index), own))
        y += cells[-1].above
        tops.append(y)
        y += cells[-1].height + _SKIP
    edges = [
        _tall_edge(
            tree, node, child, tops[node.index] + cells[node.index].height, tops[child] + cells[child].height / 2
        )
        for node in tree.nodes
        for child, _ in _children(node)
    ]
    nodes = [
        _node(tree, node, cell, (_INDENT * node.depth, top), FONT_SIZE, centred=False)
        for node, cell, top in zip(tree.nodes, cells, tops, strict=True)
    ]
    return _picture("tall", edges, nodes, (width, y - _SKIP), FONT_SIZE)


def _picture(kind: str, edges: list[Markup], nodes: list[Markup], size: tuple[float, float], unit: float) -> Markup:
    width, height = (side * unit + 2 * _MARGIN for side in size)
    return element(
        "svg",
        element("g", element("g", edges, class_="edges"), nodes, class_="world", role="none"),
        class_=f"tree {kind}",
        viewBox=f"{-_MARGIN:g} {-_MARGIN:g} {width:.1f} {height:.1f}",
        data_font=f"{unit:g}",
        role="tree",
        aria_label="Decision tree",
        aria_describedby="tree-help",
        xmlns="http://www.w3.org/2000/svg",
    )


def class_mark(label: int) -> Markup:
    """Return a small square in the colour of a class."""
    square = element("rect", class_=f"k k{label}", x=1, y=1, width=10, height=10, rx=2)
    return element("svg", square, class_="mark", viewBox="0 0 12 12", aria_hidden="true")


def text_width(text: str, bold: bool) -> float:
    """Return an upper estimate of the width of a text at font size 1."""
    total = 0.0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn"):
            continue
        if unicodedata.east_asian_width(character) in "WF":
            total += 1.05
        elif character in _NARROW:
            total += 0.34
        elif character in _SLIM:
            total += 0.44
        elif character in _WIDE:
            total += 0.96
        else:
            total += 0.72 if character.isupper() else 0.63
    return total * (1.08 if bold else 1.0)


def _edge(tree: TreeView, drawn: Arrangement, parent: int, node: NodeView) -> Markup:
    unit = drawn.font_size
    points = drawn.edge(parent, node.index, drawn.layout.top[node.index])
    path = "M" + "L".join(f"{x * unit:.1f} {y * unit:.1f}" for x, y in points)
    share = node.weight / tree.nodes[0].weight if tree.nodes[0].weight else 0.0
    thickness = _THINNEST + (_THICKEST - _THINNEST) * share
    return element("path", d=path, stroke_width=f"{thickness:.2f}", data_child=node.index)


def _children(node: NodeView) -> list[tuple[int, str]]:
    """Return the children with the answers that lead to them."""
    return [] if node.is_leaf else list(zip((node.left, node.right), node.answers, strict=True))


def _tall_cell(tree: TreeView, node: NodeView, answer: str | None, width: float) -> NodeBox:
    limit = width - 2 * PAD[0] - (_BAND / FONT_SIZE if node.is_leaf else 0.0)
    text = tree.leaf_name(node) if node.is_leaf else f"{node.brief}?"
    title = text_block(" ".join(text.split()) or " ", limit, text_width, bold=node.is_leaf)
    said = purity(tree, node) if node.is_leaf else tree.passing(node)
    detail = text_block(said, limit, text_width, scale=SMALL)
    label = None if answer is None else text_block(answer, width, text_width, scale=SMALL)
    height = title.height + detail.height + 2 * PAD[1] + (BAR_HEIGHT + BAR_GAP if node.weight > 0 else 0.0)
    return NodeBox(label, title, detail, width, height)


def _tall_edge(tree: TreeView, node: NodeView, child: int, start: float, end: float) -> Markup:
    x = (_INDENT * node.depth + _INDENT / 2) * FONT_SIZE
    path = f"M{x:.1f} {start * FONT_SIZE:.1f}V{end * FONT_SIZE:.1f}H{x + _INDENT / 2 * FONT_SIZE:.1f}"
    return element("path", d=path, stroke_width=_THINNEST, data_child=child)


def _node(
    tree: TreeView, node: NodeView, cell: NodeBox, corner: tuple[float, float], unit: float, centred: bool = True
) -> Markup:
    """Draw a box with its text at `corner`, in units of the font size."""
    width, height = cell.width * unit, cell.height * unit
    parts = [element("rect", class_="box", width=f"{width:.1f}", height=f"{height:.1f}", rx=6)]
    if node.is_leaf:
        band = f"M6 0H{_BAND:g}V{height:.1f}H6A6 6 0 0 1 0 {height - 6:.1f}V6A6 6 0 0 1 6 0Z"
        parts.append(element("path", class_=f"band k{node.label}", d=band))
    if cell.label is not None:
        parts += _lines(cell.label, width / 2 if centred else 2.0, -cell.above * unit, unit, "answer")
    shift = _BAND / (2 if centred else 1) if node.is_leaf else 0.0
    room = width - 2 * PAD[0] * unit - shift
    left, y = PAD[0] * unit + shift, PAD[1] * unit
    x = left + room / 2 if centred else left
    parts += _lines(cell.title, x, y, unit, "title")
    y += cell.title.height * unit
    if cell.detail is not None:
        parts += _lines(cell.detail, x, y, unit, "detail")
        y += cell.detail.height * unit
    if node.weight > 0:
        parts.append(_mix(node, left, y + BAR_GAP * unit, room, BAR_HEIGHT * unit))
    return element(
        "g",
        parts,
        class_="node leaf" if node.is_leaf else "node",
        transform=f"translate({corner[0] * unit:.1f} {corner[1] * unit:.1f})",
        data_node=node.index,
        role="treeitem",
        tabindex=0 if node.index == 0 else -1,
        aria_level=node.depth + 1,
        aria_selected="false",
        aria_label=_spoken(tree, node),
    )


def _mix(node: NodeView, x: float, y: float, width: float, height: float) -> Markup:
    """Draw the class shares as a bar."""

    def bar(kind: str, begin: float, length: float) -> Markup:
        place = {"x": f"{begin:.2f}", "y": f"{y:.2f}", "width": f"{length:.2f}", "height": f"{height:.2f}"}
        return element("rect", class_=kind, **place)

    parts, start = [], x
    for label, weight in enumerate(node.weights):
        part = width * weight / node.weight
        if part > 0:
            parts.append(bar(f"k{label}", start, part))
        start += part
    return element("g", parts, bar("frame", x, width), class_="mix")


def _lines(block: TextBlock, x: float, y: float, unit: float, kind: str) -> list[Markup]:
    step, size = block.scale * LINE_HEIGHT * unit, block.scale * unit
    return [
        element(
            "text",
            line,
            class_=kind,
            x=f"{x:.1f}",
            y=f"{y + (row + 1 - _BASELINE) * step:.1f}",
            font_size=f"{size:.2f}",
        )
        for row, line in enumerate(block.text.split("\n"))
    ]


def _spoken(tree: TreeView, node: NodeView) -> str:
    name = tree.class_names[node.label]
    if node.is_leaf:
        mark = f", {AGAINST_MAJORITY}" if node.against_majority else ""
        return f"Leaf: {name}, {purity(tree, node)}{mark}"
    return f"{node.question}? {tree.passing(node)}, most frequent {name} ({percent(node.share)})"


_HELP = (
    "Point at a node, tap it, or move to it with the arrow keys to see its number of samples and its rule. "
    "Drag to move, scroll or pinch to zoom."
)


def tree_section(tree: TreeView) -> Markup:
    """Return pictures, legend, and the tree as a list."""
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
    return section(
        "tree",
        "Tree",
        element(
            "p",
            "Each box is a question; the labels of its lines are the answers. ",
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
            element(
                "aside", element("p", "No node selected.", class_="quiet"), id="details", aria_label="Selected node"
            ),
            class_="stage",
            id="stage",
        ),
        element(
            "details",
            element("summary", "The same tree as a list"),
            element("ul", _item(tree, tree.nodes[0], None), class_="rules"),
            id="rules",
        ),
    )


def node_data(tree: TreeView) -> Iterator[dict[str, Any]]:
    """Yield the values that the script shows for each node."""
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
