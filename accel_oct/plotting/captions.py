"""What is written at each node, with more or less detail, and how large its box becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accel_oct.export.view import NodeView, TreeView
from accel_oct.plotting.layout import Cell, Layout, lay_out
from accel_oct.plotting.wrapping import LINE_HEIGHT, Measure, block, shorten

__all__ = [
    "BAR_GAP",
    "BAR_HEIGHT",
    "PAD",
    "SMALL",
    "SWATCH",
    "Arrangement",
    "Key",
    "arrange",
    "key_rows",
    "natural_size",
]

PAD = (0.65, 0.42)
BAR_HEIGHT, BAR_GAP = 0.42, 0.28
SMALL = 0.84
_LEAST_WIDTH = 3.2
#: Widest lines, the nicest first.
_LIMITS = (14.0, 18.0, 11.0, 9.0, 7.5, 6.0)
#: Below this font size in points, details are left out before the text becomes smaller.
_READABLE = 6.0
#: A new figure has lines up to this many font sizes; beyond, leaves are stacked.
_WIDEST = 110.0
_KEY_LIMIT, SWATCH, _KEY_SKIP = 16.0, 0.9, 1.6


@dataclass(frozen=True)
class Key:
    """The legend: entries in rows, centred at the bottom."""

    rows: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    widths: tuple[float, ...]
    height: float

    def row_width(self, row: tuple[int, ...]) -> float:
        return sum(self.widths[entry] for entry in row) + _KEY_SKIP * (len(row) - 1)

    def starts(self, row: tuple[int, ...]) -> list[float]:
        """Where the entries of a row begin."""
        return [sum(self.widths[entry] + _KEY_SKIP for entry in row[:place]) for place in range(len(row))]


@dataclass(frozen=True)
class Arrangement:
    """A picture of a certain size: font size in points, boxes, places, legend."""

    font_size: float
    cells: tuple[Cell, ...]
    layout: Layout
    key: Key | None


def arrange(
    tree: TreeView, room: tuple[float, float], font_size: float, measure: Measure, key: Sequence[str] = ()
) -> Arrangement:
    """The largest font up to `font_size` with which all fits into `room` (points), with as much detail as is readable.

    Parameters
    ----------
    tree : TreeView
    room : pair of float
    font_size : float
    measure : callable
    key : sequence of str
        Names for the legend; none without one.
    """
    for detail in (2, 1, 0):
        best: tuple[float, float, tuple[Cell, ...], bool] = (0.0, 0.0, (), False)
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
    rows = key_rows(key, room[0] / size, measure) if key else None
    inner = (room[0] / size, room[1] / size - (rows.height if rows else 0.0))
    return Arrangement(size, cells, lay_out(tree, cells, stack=stack, room=inner), rows)


def natural_size(tree: TreeView, measure: Measure, key: Sequence[str] = ()) -> tuple[float, float]:
    """Width and height, in units of the font size, that show everything without being larger than needed."""
    choices = []
    for stack in (False, True):
        for limit in _LIMITS[:4]:
            layout = lay_out(tree, _cells(tree, limit, 2, measure), stack=stack)
            choices.append((layout.width, layout.height + 1.2 * max(n.depth for n in tree.nodes)))
        if min(width for width, _ in choices) <= _WIDEST:
            break
    width, height = min(choices, key=lambda size: (max(size[0], 1.5 * size[1]), size[0]))
    width = max(width, 16.0)
    return width, height + (key_rows(key, width, measure).height if key else 0.0)


def key_rows(names: Sequence[str], room: float, measure: Measure) -> Key:
    """Break the legend into rows of about equal width."""
    limit = min(_KEY_LIMIT, room - SWATCH - 0.4)
    texts = tuple(shorten(" ".join(name.split()), limit, lambda text: SMALL * measure(text, False)) for name in names)
    widths = tuple(SWATCH + 0.4 + SMALL * measure(text, False) for text in texts)
    for n_rows in range(1, len(names) + 1):
        per_row = -(-len(names) // n_rows)
        rows = tuple(tuple(range(start, min(start + per_row, len(names)))) for start in range(0, len(names), per_row))
        key = Key(rows, texts, widths, LINE_HEIGHT * SMALL * 1.15 * len(rows) + 1.0)
        if max(key.row_width(row) for row in rows) <= room:
            break
    return key


def _font_size(
    layout: Layout, room: tuple[float, float], largest: float, names: Sequence[str], measure: Measure
) -> float:
    size = min(largest, room[0] / layout.width, room[1] / layout.height)
    if names:
        # A smaller font makes the legend take fewer rows: three steps come close enough from below.
        for _ in range(3):
            needed = layout.height + key_rows(names, room[0] / size, measure).height
            size = min(size, room[1] / needed)
    return size


def _looks(cells: Sequence[Cell]) -> float:
    """Small text is better than text with a gap, or with broken words, as long as it is not too much smaller."""
    if any(cell.title.cut for cell in cells):
        return 0.5
    return 0.8 if any(cell.title.torn for cell in cells) else 1.0


def _cells(tree: TreeView, limit: float, detail: int, measure: Measure) -> tuple[Cell, ...]:
    labels = {}
    for node in tree.nodes:
        for child, answer in zip((node.left, node.right), node.answers, strict=True):
            labels[child] = answer
    return tuple(_cell(tree, node, labels.get(node.index), limit, detail, measure) for node in tree.nodes)


def _cell(tree: TreeView, node: NodeView, answer: str | None, limit: float, detail: int, measure: Measure) -> Cell:
    text = tree.leaf_name(node) if node.is_leaf else f"{node.brief}?"
    title = block(" ".join(text.split()) or " ", limit, measure, bold=node.is_leaf)
    said = None
    if detail == 2 or (detail == 1 and node.is_leaf):
        counts = (_purity(tree, node) if node.is_leaf else tree.passing(node)).replace(", ", "\n")
        said = block(counts, max(limit, 7.0), measure, scale=SMALL)
    label = None if answer is None else block(answer, max(limit, 7.0), measure, scale=SMALL)
    width = max(_LEAST_WIDTH, title.width, said.width if said else 0.0) + 2 * PAD[0]
    height = title.height + (said.height if said else 0.0) + 2 * PAD[1]
    if node.weight > 0:
        height += BAR_HEIGHT + BAR_GAP
    return Cell(label, title, said, width, height)


def _purity(tree: TreeView, node: NodeView) -> str:
    """As in other forms of export, but 100% only where it is all, and then without decimals."""
    text = tree.purity(node)
    if node.share == 1.0:
        return text.replace("100.0%", "100%", 1)
    return text.replace("100.0%", ">99.9%", 1)
