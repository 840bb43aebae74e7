"""Where the nodes of a tree go: a tidy tree with boxes of any size. All lengths are in units of the font size.

Subtrees are pushed together level by level until only a gap is left, and a branch node stands above the middle of its
children. What is written on an edge stands right above the child and counts as part of it, so that nothing can overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accel_oct.export.view import TreeView
from accel_oct.plotting.wrapping import Block

__all__ = ["Cell", "Layout", "lay_out", "spine"]

_GAP_OF_SIBLINGS, _GAP = 0.7, 1.5
#: From a box down to the bar of its edges, and from there to the labels of the edges.
_DROP, _LAND = 0.8, 0.35
_INDENT = 1.1
_MOST_SPREAD, _MOST_EXTRA = 1.6, 1.6
_LABEL_GAP = 0.2


@dataclass(frozen=True)
class Cell:
    """A node with the label of the edge above it."""

    label: Block | None
    title: Block
    detail: Block | None
    width: float
    height: float

    @property
    def above(self) -> float:
        """Room for the label of the edge."""
        return 0.0 if self.label is None else self.label.height + _LABEL_GAP

    @property
    def full_width(self) -> float:
        return self.width if self.label is None else max(self.width, self.label.width)


@dataclass(frozen=True)
class Layout:
    """Centres and tops of the boxes, y downwards from 0.

    Attributes
    ----------
    x, top : tuple of float
        Per node.
    bar : tuple of float
        Per node, how far down the edges to its children turn sideways.
    stacked : frozenset of int
        Leaves that stand one above the other, with edges that come from their left.
    width, height : float
    """

    x: tuple[float, ...]
    top: tuple[float, ...]
    bar: tuple[float, ...]
    stacked: frozenset[int]
    width: float
    height: float


def lay_out(
    tree: TreeView, cells: Sequence[Cell], *, stack: bool = False, room: tuple[float, float] = (0, 0)
) -> Layout:
    """Places of all nodes.

    Parameters
    ----------
    tree : TreeView
    cells : sequence of Cell
        One per node.
    stack : bool
        Put the leaves of the lowest level one above the other, two by two: half as wide.
    room : pair of float
        Width and height to spread into, as far as that looks well.
    """
    depth = max(node.depth for node in tree.nodes)
    pairs = [(n.left, n.right) for n in tree.nodes if stack and not n.is_leaf and n.depth == depth - 1]
    stacked = frozenset(index for pair in pairs for index in pair)
    x = _centres(tree, cells, stacked, room[0])
    low = min(c - cell.full_width / 2 for c, cell in zip(x, cells, strict=True))
    high = max(c + cell.full_width / 2 for c, cell in zip(x, cells, strict=True))
    if stacked:
        low = min(low, *(spine(x[leaf], cells[leaf]) for leaf in stacked))
    top, bar, height = _heights(tree, cells, stacked, room[1])
    return Layout(tuple(c - low for c in x), top, bar, stacked, high - low, height)


def spine(x: float, cell: Cell) -> float:
    """Where the line runs down to the left of a stacked leaf."""
    return x - cell.full_width / 2 - _INDENT


def _centres(tree: TreeView, cells: Sequence[Cell], stacked: frozenset[int], room: float) -> list[float]:
    """Reingold and Tilford's way: each subtree by itself, then moved right until it is clear of the one before."""
    offset = [0.0] * len(tree.nodes)  # from the parent
    shape: dict[int, list[tuple[float, float]]] = {}  # per level from the node down: leftmost and rightmost
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
    tree: TreeView, cells: Sequence[Cell], stacked: frozenset[int], room: float
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Tops of the boxes, the bars of the edges below them, and the height of all."""
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
