"""Layout of a tree picture: wrapped text, boxes and their places. All lengths are in units of the font size.

The layout is a tidy tree with boxes of any size: subtrees are pushed together level by level until only a gap is left,
and a branch node is above the middle of its children. The label of an edge is right above the child and counts as part
of it, so nothing overlaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accel_oct.export.view import NodeView, TreeView

LINE_HEIGHT = 1.26
MOST_LINES = 6
_ELLIPSIS = "\u2026"
#: Pieces between which a line may break: they end in blanks, or in marks inside long names.
_PIECE = re.compile(r"[^\s_\-/,;:|]*(?:[_\-/,;:|]+ *|\s+|$)")
#: Replaces a blank at which no line may break.
_FIRM = "\ue000"
_SIGN = re.compile(r"(?<=[<=\u2265\u2264]) (?=\S{1,12}(?: |$))")

_GAP_OF_SIBLINGS, _GAP = 0.7, 1.5
#: Distance from a box down to the bar of its edges, and from there to the labels of the edges.
_DROP, _LAND = 0.8, 0.35
_INDENT = 1.1
_MOST_SPREAD, _MOST_EXTRA = 1.6, 1.6
_LABEL_GAP = 0.2
PAD = (0.65, 0.42)
BAR_HEIGHT, BAR_GAP = 0.42, 0.28
SMALL = 0.84
_LEAST_WIDTH = 3.2
#: Line widths to try, the preferred first.
_LIMITS = (14.0, 18.0, 11.0, 9.0, 7.5, 6.0)
#: Details are left out before the font becomes smaller than this, in points.
_READABLE = 6.0
#: Widest new figure; in wider ones, leaves are stacked.
_WIDEST = 110.0
_KEY_LIMIT, SWATCH, _KEY_SKIP = 16.0, 0.9, 1.6

#: Width of a text at font size 1, and whether it is bold.
Measure = Callable[[str, bool], float]


@dataclass(frozen=True)
class TextBlock:
    """Lines of text in one font.

    Attributes
    ----------
    text : str
        With line breaks.
    scale : float
        Font size.
    cut : bool
        Whether some text was left out.
    torn : bool
        Whether a word was broken.
    """

    text: str
    scale: float
    width: float
    height: float
    bold: bool = False
    cut: bool = False
    torn: bool = False


def text_block(
    text: str, limit: float, measure: Measure, *, scale: float = 1.0, bold: bool = False, lines: int = MOST_LINES
) -> TextBlock:
    """Break `text` into at most `lines` lines of width `limit`; the last line is shortened in the middle if needed."""

    def width(part: str) -> float:
        return scale * measure(part, bold)

    broken = [line for part in text.split("\n") for line in _wrap(part, limit, width)]
    torn = any(width(piece.rstrip()) > limit for piece in _pieces(text))
    cut = len(broken) > lines
    if cut:
        rest = text.replace("\n", " ")
        for line in broken[: lines - 1]:
            rest = rest[len(line) :].lstrip()
        broken = [*broken[: lines - 1], shorten(rest, limit, width)]
    widest = max(map(width, broken))
    return TextBlock("\n".join(broken), scale, widest, scale * LINE_HEIGHT * len(broken), bold, cut, torn)


def shorten(text: str, limit: float, width: Callable[[str], float]) -> str:
    """Replace the middle of a text that is too wide by an ellipsis."""
    if width(text) <= limit:
        return text
    for kept in range(len(text) - 1, 1, -1):
        head = (kept + 2) // 3
        candidate = text[:head].rstrip() + _ELLIPSIS + text[len(text) - (kept - head) :].lstrip()
        if width(candidate) <= limit:
            return candidate
    return text[:1] + _ELLIPSIS


def _wrap(text: str, limit: float, width: Callable[[str], float]) -> list[str]:
    lines, line = [], ""
    for piece in _pieces(text):
        part = piece
        if line and width((line + part).rstrip()) > limit:
            lines.append(line.rstrip())
            line = ""
        while width(part.rstrip()) > limit and len(part) > 1:
            cut = next((k for k in range(len(part) - 1, 1, -1) if width(part[:k]) <= limit), 1)
            lines.append(part[:cut])
            part = part[cut:]
        line += part
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _pieces(text: str) -> list[str]:
    """Split text where a line may break; a number stays with the comparison sign before it."""
    firm = _SIGN.sub(_FIRM, text)
    return [piece.replace(_FIRM, " ") for piece in _PIECE.findall(firm) if piece]


@dataclass(frozen=True)
class NodeBox:
    """The box of a node with the label of the edge above it."""

    label: TextBlock | None
    title: TextBlock
    detail: TextBlock | None
    width: float
    height: float

    @property
    def above(self) -> float:
        """Height of the label of the edge, with its gap."""
        return 0.0 if self.label is None else self.label.height + _LABEL_GAP

    @property
    def full_width(self) -> float:
        return self.width if self.label is None else max(self.width, self.label.width)


@dataclass(frozen=True)
class TreeLayout:
    """Places of the boxes; y points down from 0.

    Attributes
    ----------
    x, top : tuple of float
        Centre and top per node.
    bar : tuple of float
        Per node, the height at which the edges to its children turn sideways.
    stacked : frozenset of int
        Leaves placed one above the other, with edges from the left.
    """

    x: tuple[float, ...]
    top: tuple[float, ...]
    bar: tuple[float, ...]
    stacked: frozenset[int]
    width: float
    height: float


def lay_out(
    tree: TreeView, cells: Sequence[NodeBox], *, stack: bool = False, room: tuple[float, float] = (0, 0)
) -> TreeLayout:
    """Place all nodes.

    Parameters
    ----------
    cells : sequence of NodeBox
        One per node.
    stack : bool
        Place each pair of leaves of the lowest level one above the other, which halves the width.
    room : pair of float
        Width and height to spread into, up to a limit.
    """
    depth = max(node.depth for node in tree.nodes)
    pairs = [(n.left, n.right) for n in tree.nodes if stack and not n.is_leaf and n.depth == depth - 1]
    stacked = frozenset(index for pair in pairs for index in pair)
    x = _centres(tree, cells, stacked, room[0])
    low = min(c - cell.full_width / 2 for c, cell in zip(x, cells, strict=True))
    high = max(c + cell.full_width / 2 for c, cell in zip(x, cells, strict=True))
    if stacked:
        low = min(low, *(_spine(x[leaf], cells[leaf]) for leaf in stacked))
    top, bar, height = _heights(tree, cells, stacked, room[1])
    return TreeLayout(tuple(c - low for c in x), top, bar, stacked, high - low, height)


def _spine(x: float, cell: NodeBox) -> float:
    """Return the x of the vertical line to the left of a stacked leaf."""
    return x - cell.full_width / 2 - _INDENT


def _centres(tree: TreeView, cells: Sequence[NodeBox], stacked: frozenset[int], room: float) -> list[float]:
    """Return the centres by Reingold and Tilford: lay out each subtree, then move it right past the one before."""
    offset = [0.0] * len(tree.nodes)  # from the parent
    shape: dict[int, list[tuple[float, float]]] = {}  # per level below the node: leftmost and rightmost
    for node in reversed(tree.nodes):  # children come after their parents
        half = cells[node.index].full_width / 2
        below: list[tuple[float, float]] = []
        if node.left in stacked:
            pair = (node.left, node.right)
            width = _INDENT + max(cells[child].full_width for child in pair)
            for child in pair:
                offset[child] = _INDENT - width / 2 + cells[child].full_width / 2
            below = [(-width / 2, width / 2)]
        elif not node.is_leaf:
            left, right = shape.pop(node.left), shape.pop(node.right)
            gaps = [_GAP_OF_SIBLINGS if len(left) == len(right) == 1 else _GAP] + [_GAP] * len(left)
            apart = max(a[1] - b[0] + gap for a, b, gap in zip(left, right, gaps, strict=False))
            offset[node.left], offset[node.right] = -apart / 2, apart / 2
            for level in range(max(len(left), len(right))):
                parts = [(low - apart / 2, high - apart / 2) for low, high in left[level : level + 1]]
                parts += [(low + apart / 2, high + apart / 2) for low, high in right[level : level + 1]]
                below.append((min(low for low, _ in parts), max(high for _, high in parts)))
        shape[node.index] = [(-half, half), *below]
    natural = max(high for _, high in shape[0]) - min(low for low, _ in shape[0])
    spread = min(_MOST_SPREAD, max(1.0, room / natural))
    x = [0.0] * len(tree.nodes)
    for node in tree.nodes:
        for child in (node.left, node.right):
            if child >= 0:
                x[child] = x[node.index] + offset[child] * (1.0 if child in stacked else spread)
    return x


def _heights(
    tree: TreeView, cells: Sequence[NodeBox], stacked: frozenset[int], room: float
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Return the tops of the boxes, the bars of the edges below them, and the total height."""
    depth = max(node.depth for node in tree.nodes)
    levels = [[n for n in tree.nodes if n.depth == level] for level in range(depth + 1)]
    above = [max(cells[n.index].above for n in level) for level in levels]
    tall = [max(cells[n.index].height for n in level) for level in levels]
    if stacked:
        tall[depth] = 2 * tall[depth] + above[depth] + _LAND
    natural = sum(tall) + sum(above) + depth * (_DROP + _LAND)
    extra = min(_MOST_EXTRA, max(0.0, room - natural) / depth) if depth else 0.0
    top, bar, y = [0.0] * len(tree.nodes), [0.0] * len(tree.nodes), 0.0
    for level, nodes in enumerate(levels):
        y += above[level] + ((_DROP + _LAND + extra) if level else 0.0)
        for node in nodes:
            top[node.index] = y
            bar[node.index] = y + tall[level] + _DROP + extra / 2
        y += tall[level]
    if stacked:
        for lower in (n.right for n in tree.nodes if n.right in stacked):
            top[lower] = y - (tall[depth] - above[depth] - _LAND) / 2
    return tuple(top), tuple(bar), y


@dataclass(frozen=True)
class Legend:
    """The legend: entries in rows, centred at the bottom."""

    rows: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    widths: tuple[float, ...]
    height: float

    def row_width(self, row: tuple[int, ...]) -> float:
        return sum(self.widths[entry] for entry in row) + _KEY_SKIP * (len(row) - 1)

    def starts(self, row: tuple[int, ...]) -> list[float]:
        """Return the left ends of the entries of a row."""
        return [sum(self.widths[entry] + _KEY_SKIP for entry in row[:place]) for place in range(len(row))]


@dataclass(frozen=True)
class Arrangement:
    """A picture of a given size: font size in points, boxes, places, legend."""

    font_size: float
    cells: tuple[NodeBox, ...]
    layout: TreeLayout
    key: Legend | None

    def edge(self, parent: int, child: int, end: float) -> list[tuple[float, float]]:
        """Return the corners of an edge; it ends at height `end`, or at the left side of a stacked leaf."""
        layout, cell = self.layout, self.cells[child]
        start, x, bar = layout.x[parent], layout.x[child], layout.bar[parent]
        corners = [(start, layout.top[parent] + self.cells[parent].height), (start, bar)]
        if child not in layout.stacked:
            return [*corners, (x, bar), (x, end)]
        side, middle = _spine(x, cell), layout.top[child] + cell.height / 2
        return [*corners, (side, bar), (side, middle), (x - cell.width / 2, middle)]


def arrange(
    tree: TreeView, room: tuple[float, float], font_size: float, measure: Measure, key: Sequence[str] = ()
) -> Arrangement:
    """Choose the largest font up to `font_size` that fits `room` (points), with as much detail as is readable.

    Parameters
    ----------
    key : sequence of str
        Names for the legend; empty for no legend.
    """
    for detail in (2, 1, 0):
        best: tuple[float, float, tuple[NodeBox, ...], bool] = (0.0, 0.0, (), False)
        for stack in (False, True):
            for limit in _LIMITS:
                cells = _cells(tree, limit, detail, measure)
                layout = lay_out(tree, cells, stack=stack)
                size = _font_size(layout, room, font_size, key, measure)
                merit = size * _looks(cells)
                if merit > best[0] * 1.001:
                    best = merit, size, cells, stack
            if best[0] >= font_size:
                break
        if best[1] >= min(_READABLE, font_size):
            break
    _, size, cells, stack = best
    rows = legend_rows(key, room[0] / size, measure) if key else None
    inner = (room[0] / size, room[1] / size - (rows.height if rows else 0.0))
    return Arrangement(size, cells, lay_out(tree, cells, stack=stack, room=inner), rows)


def natural_size(tree: TreeView, measure: Measure, key: Sequence[str] = ()) -> tuple[float, float]:
    """Return the least width and height that show everything."""
    choices = []
    for stack in (False, True):
        for limit in _LIMITS[:4]:
            layout = lay_out(tree, _cells(tree, limit, 2, measure), stack=stack)
            choices.append((layout.width, layout.height + 1.2 * max(n.depth for n in tree.nodes)))
        if min(width for width, _ in choices) <= _WIDEST:
            break
    width, height = min(choices, key=lambda size: (max(size[0], 1.5 * size[1]), size[0]))
    width = max(width, 16.0)
    return width, height + (legend_rows(key, width, measure).height if key else 0.0)


def legend_rows(names: Sequence[str], room: float, measure: Measure) -> Legend:
    """Break the legend into rows of about equal width."""
    limit = min(_KEY_LIMIT, room - SWATCH - 0.4)
    texts = tuple(shorten(" ".join(name.split()), limit, lambda text: SMALL * measure(text, False)) for name in names)
    widths = tuple(SWATCH + 0.4 + SMALL * measure(text, False) for text in texts)
    for n_rows in range(1, len(names) + 1):
        per_row = -(-len(names) // n_rows)
        rows = tuple(tuple(range(start, min(start + per_row, len(names)))) for start in range(0, len(names), per_row))
        key = Legend(rows, texts, widths, LINE_HEIGHT * SMALL * 1.15 * len(rows) + 1.0)
        if max(key.row_width(row) for row in rows) <= room:
            break
    return key


def _font_size(
    layout: TreeLayout, room: tuple[float, float], largest: float, names: Sequence[str], measure: Measure
) -> float:
    size = min(largest, room[0] / layout.width, room[1] / layout.height)
    if names:
        # With a smaller font the legend takes fewer rows: three steps come close enough from below.
        for _ in range(3):
            needed = layout.height + legend_rows(names, room[0] / size, measure).height
            size = min(size, room[1] / needed)
    return size


def _looks(cells: Sequence[NodeBox]) -> float:
    """Return a factor below 1 for shortened text or broken words: slightly smaller text is better."""
    if any(cell.title.cut for cell in cells):
        return 0.5
    return 0.8 if any(cell.title.torn for cell in cells) else 1.0


def _cells(tree: TreeView, limit: float, detail: int, measure: Measure) -> tuple[NodeBox, ...]:
    labels = {}
    for node in tree.nodes:
        for child, answer in zip((node.left, node.right), node.answers, strict=True):
            labels[child] = answer
    return tuple(_cell(tree, node, labels.get(node.index), limit, detail, measure) for node in tree.nodes)


def _cell(tree: TreeView, node: NodeView, answer: str | None, limit: float, detail: int, measure: Measure) -> NodeBox:
    text = tree.leaf_name(node) if node.is_leaf else f"{node.brief}?"
    title = text_block(" ".join(text.split()) or " ", limit, measure, bold=node.is_leaf)
    said = None
    if detail == 2 or (detail == 1 and node.is_leaf):
        counts = (_purity(tree, node) if node.is_leaf else tree.passing(node)).replace(", ", "\n")
        said = text_block(counts, max(limit, 7.0), measure, scale=SMALL)
    label = None if answer is None else text_block(answer, max(limit, 7.0), measure, scale=SMALL)
    width = max(_LEAST_WIDTH, title.width, said.width if said else 0.0) + 2 * PAD[0]
    height = title.height + (said.height if said else 0.0) + 2 * PAD[1]
    if node.weight > 0:
        height += BAR_HEIGHT + BAR_GAP
    return NodeBox(label, title, said, width, height)


def _purity(tree: TreeView, node: NodeView) -> str:
    """Return `TreeView.purity`, with 100% only for a share of exactly 1; a mean reward has a line of its own."""
    text = tree.purity(node)
    if node.reward is not None:
        return text.replace("mean reward ", "mean reward\n", 1)
    if node.share == 1.0:
        return text.replace("100.0%", "100%", 1)
    return text.replace("100.0%", ">99.9%", 1)
