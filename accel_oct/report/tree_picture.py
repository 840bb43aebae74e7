"""The tree as an SVG picture whose nodes can be reached by pointer, finger and keyboard."""

from __future__ import annotations

import unicodedata

from accel_oct.export.view import NodeView, TreeView
from accel_oct.plotting.captions import BAR_GAP, BAR_HEIGHT, PAD, Arrangement, arrange, natural_size
from accel_oct.plotting.layout import spine
from accel_oct.plotting.wrapping import LINE_HEIGHT, Block
from accel_oct.report.markup import Markup, element
from accel_oct.report.wording import percent

__all__ = ["class_mark", "tree_picture"]

#: In pixels of a picture that is not scaled.
FONT_SIZE = 13.0
_MARGIN = 10.0
_THINNEST, _THICKEST = 1.2, 5.0
#: From the foot of a line to its baseline, as a part of the line.
_BASELINE = 0.27

# Widths of characters in a wide font (DejaVu Sans): in all others a text takes less room than is kept for it.
_NARROW, _SLIM, _WIDE = frozenset("iljI.,:;'|! "), frozenset('frt()[]-/"*'), frozenset("mwMW@%\u2026\u2265\u2264<>=+")


def tree_picture(tree: TreeView) -> Markup:
    """An ``svg`` element; the script moves and scales what is in its group ``world``."""
    size = natural_size(tree, text_width)
    drawn = arrange(tree, (size[0] * FONT_SIZE, size[1] * FONT_SIZE), FONT_SIZE, text_width)
    unit = drawn.font_size
    width, height = (side * unit + 2 * _MARGIN for side in (drawn.layout.width, drawn.layout.height))
    parents = {child: node.index for node in tree.nodes for child in (node.left, node.right) if child >= 0}
    edges = [_edge(tree, drawn, parents[node.index], node) for node in tree.nodes if node.index in parents]
    nodes = [_node(tree, drawn, node) for node in tree.nodes]
    return element(
        "svg",
        element("g", element("g", edges, class_="edges"), nodes, id="world", role="none"),
        id="tree",
        viewBox=f"{-_MARGIN:g} {-_MARGIN:g} {width:.1f} {height:.1f}",
        data_width=f"{width:.1f}",
        data_height=f"{height:.1f}",
        data_font=f"{unit:g}",
        role="tree",
        aria_label="Decision tree",
        aria_describedby="tree-help",
        xmlns="http://www.w3.org/2000/svg",
    )


def class_mark(label: int) -> Markup:
    """A small square in the colour of a class, beside its name."""
    square = element("rect", class_=f"k k{label}", x=1, y=1, width=10, height=10, rx=2)
    return element("svg", square, class_="mark", viewBox="0 0 12 12", aria_hidden="true")


def text_width(text: str, bold: bool) -> float:
    """Upper estimate of the width of a text at font size 1."""
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
    layout, unit = drawn.layout, drawn.font_size
    cell = drawn.cells[node.index]
    start = (layout.x[parent], layout.top[parent] + drawn.cells[parent].height)
    if node.index in layout.stacked:
        side = spine(layout.x[node.index], cell)
        end = layout.top[node.index] + cell.height / 2
        points = [start, (start[0], layout.bar[parent]), (side, layout.bar[parent]), (side, end)]
        points.append((layout.x[node.index] - cell.width / 2, end))
    else:
        x, bar = layout.x[node.index], layout.bar[parent]
        points = [start, (start[0], bar), (x, bar), (x, layout.top[node.index])]
    path = "M" + "L".join(f"{x * unit:.1f} {y * unit:.1f}" for x, y in points)
    share = node.weight / tree.nodes[0].weight if tree.nodes[0].weight else 0.0
    thickness = _THINNEST + (_THICKEST - _THINNEST) * share
    return element("path", d=path, stroke_width=f"{thickness:.2f}", data_child=node.index)


def _node(tree: TreeView, drawn: Arrangement, node: NodeView) -> Markup:
    cell, unit = drawn.cells[node.index], drawn.font_size
    width, height = cell.width * unit, cell.height * unit
    left, top = drawn.layout.x[node.index] * unit - width / 2, drawn.layout.top[node.index] * unit
    parts = [element("rect", class_="box", width=f"{width:.1f}", height=f"{height:.1f}", rx=6)]
    if node.is_leaf:
        band = f"M6 0H9V{height:.1f}H6A6 6 0 0 1 0 {height - 6:.1f}V6A6 6 0 0 1 6 0Z"
        parts.append(element("path", class_=f"band k{node.label}", d=band))
    y = PAD[1] * unit
    if cell.label is not None:
        parts += _lines(cell.label, width / 2, -cell.above * unit, unit, "answer")
    parts += _lines(cell.title, width / 2, y, unit, "title")
    y += cell.title.height * unit
    if cell.detail is not None:
        parts += _lines(cell.detail, width / 2, y, unit, "detail")
        y += cell.detail.height * unit
    if node.weight > 0:
        room = width - 2 * PAD[0] * unit - (4 if node.is_leaf else 0)
        start = PAD[0] * unit + (4 if node.is_leaf else 0)
        parts.append(_mix(node, start, y + BAR_GAP * unit, room, BAR_HEIGHT * unit))
    return element(
        "g",
        parts,
        class_="node leaf" if node.is_leaf else "node",
        transform=f"translate({left:.1f} {top:.1f})",
        data_node=node.index,
        role="treeitem",
        tabindex=0 if node.index == 0 else -1,
        aria_level=node.depth + 1,
        aria_selected="false",
        aria_label=_spoken(tree, node),
    )


def _mix(node: NodeView, x: float, y: float, width: float, height: float) -> Markup:
    """Shares of the classes as a bar."""
    parts, start = [], x
    for label, weight in enumerate(node.weights):
        part = width * weight / node.weight
        if part > 0:
            parts.append(
                element(
                    "rect",
                    class_=f"k{label}",
                    x=f"{start:.2f}",
                    y=f"{y:.2f}",
                    width=f"{part:.2f}",
                    height=f"{height:.2f}",
                )
            )
        start += part
    frame = {"x": f"{x:.2f}", "y": f"{y:.2f}", "width": f"{width:.2f}", "height": f"{height:.2f}"}
    return element("g", parts, element("rect", class_="frame", **frame), class_="mix")


def _lines(block: Block, x: float, y: float, unit: float, kind: str) -> list[Markup]:
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
        return f"Leaf: {name}, {percent(node.share)} of {tree.passing(node)}"
    return f"{node.question}? {tree.passing(node)}, most frequent {name} ({percent(node.share)})"
