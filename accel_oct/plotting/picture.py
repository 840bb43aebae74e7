"""The picture of a tree as matplotlib artists, laid out for the current size of the axes at each draw.

This module imports matplotlib, an optional dependency, and is imported when a picture is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from matplotlib.artist import Artist
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, ScaledTranslation

from accel_oct.export.palette import class_colour, class_hue
from accel_oct.export.view import NodeView, TreeView
from accel_oct.plotting.layout import (
    BAR_GAP,
    BAR_HEIGHT,
    LINE_HEIGHT,
    MOST_LINES,
    PAD,
    SMALL,
    SWATCH,
    Arrangement,
    Legend,
    TextBlock,
    arrange,
)

_INK, _GREY, _LINE = "#1a1a1a", "#4d4d4d", "#8a8a8a"
#: Hinting makes text, small text most, a little wider on screens than its outline.
_HINTING = 1.04
_MARGIN = 3.0  # points
#: Distance from the top of a line to its baseline.
_BASELINE = 0.97


@lru_cache(maxsize=4096)
def _outline(text: str, bold: bool, family: tuple[str, ...]) -> float:
    font = FontProperties(family=list(family), weight="bold" if bold else "normal", size=100)
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0]) / 100


def text_width(text: str, bold: bool) -> float:
    """Return the width of a text at font size 1 in matplotlib's current font."""
    return _HINTING * _outline(text, bold, tuple(FontProperties().get_family()))


class TreePicture(Artist):
    """An artist that places the other artists of the picture before they are drawn.

    Parameters
    ----------
    hues : sequence of int
        Position in the palette, per class.
    font_size : float
        Largest font size in points.
    key : sequence of str
        Names in the legend; empty for no legend.
    """

    def __init__(
        self, ax: Any, tree: TreeView, hues: Sequence[int], *, filled: bool, font_size: float, key: Sequence[str]
    ) -> None:
        super().__init__()
        self.tree, self._hues, self._filled = tree, tuple(hues), filled
        self._largest, self._names = font_size, tuple(key)
        self._size = (0.0, 0.0)
        self.font_size = font_size
        figure = ax.figure
        # Points, from the lower left corner of the axes.
        self._points = Affine2D().scale(1 / 72) + figure.dpi_scale_trans + ScaledTranslation(0, 0, ax.transAxes)
        self.set_zorder(-1e6)
        self.set_in_layout(False)
        ax.add_artist(self)
        self._ax = ax
        self._edges = {n.index: self._add(self._edge(n)) for n in tree.nodes[1:]}
        self._boxes = {n.index: self._add(self._box(n)) for n in tree.nodes}
        self._bars = {n.index: [(self._add(bar), *at) for bar, *at in self._mix(n)] for n in tree.nodes}
        self._titles = {n.index: self._lines(f"title-{n.index}", _INK, n.is_leaf) for n in tree.nodes}
        self._details = {n.index: self._lines(f"detail-{n.index}", _INK if n.is_leaf else _GREY) for n in tree.nodes}
        self._labels = {n.index: self._lines(f"edge-{n.index}", _GREY) for n in tree.nodes[1:]}
        self._key = [(self._add(self._swatch(k)), self._write(f"legend-{k}", _INK)) for k in range(len(key))]
        self.fit()

    def draw(self, renderer: Any) -> None:
        """Adapt to the size of the axes, which layout engines and windows change."""
        self.fit()

    def fit(self) -> None:
        """Place everything for the current size of the axes."""
        extent = self._ax.get_window_extent()
        per_point = self._ax.figure.dpi / 72
        size = (extent.width / per_point, extent.height / per_point)
        if max(abs(a - b) for a, b in zip(size, self._size, strict=True)) < 0.05:
            return
        self._size = size
        room = tuple(max(side - 2 * _MARGIN, 1.0) for side in size)
        plan = arrange(self.tree, (room[0], room[1]), self._largest, text_width, self._names)
        self.font_size = plan.font_size
        self._apply(plan)

    # ---------------------------------------------------------------- making artists

    def _add(self, artist: Any) -> Any:
        artist.set_transform(self._points)
        artist.set_in_layout(False)
        artist.set_clip_on(False)
        self._ax.add_artist(artist)
        artist.set_clip_path(None)
        return artist

    def _lines(self, gid: str, colour: str, bold: bool = False) -> list[Any]:
        """Return one artist per line: the distance of lines then does not depend on their letters."""
        return [self._write(gid, colour, bold) for _ in range(MOST_LINES)]

    def _write(self, gid: str, colour: str, bold: bool = False) -> Any:
        # Names come from the user: a dollar sign is no mathematics, a backslash no TeX.
        text = Text(0, 0, "", color=colour, ha="center", parse_math=False, usetex=False, zorder=4, gid=gid)
        text.set_fontweight("bold" if bold else "normal")
        return self._add(text)

    def _edge(self, node: NodeView) -> Any:
        return Line2D([], [], color=_LINE, zorder=1, gid=f"line-{node.index}", solid_joinstyle="round")

    def _box(self, node: NodeView) -> Any:
        colour = "white"
        if self._filled and node.is_leaf:
            colour = class_colour(self._hues[node.label], node.share, len(self.tree.class_names))
        return FancyBboxPatch((0, 0), 1, 1, facecolor=colour, edgecolor="#555555", zorder=2, gid=f"node-{node.index}")

    def _mix(self, node: NodeView) -> list[tuple[Any, float, float]]:
        """Return the parts of the class bar, each with its start and its share."""
        if node.weight <= 0:
            return []
        greys = [f"{0.35 + 0.55 * k / max(1, len(node.weights) - 1):.3f}" for k in range(len(node.weights))]
        colours = [class_hue(hue) for hue in self._hues] if self._filled else greys
        shares = [(label, weight / node.weight) for label, weight in enumerate(node.weights) if weight > 0]
        bars, start = [], 0.0
        for label, share in shares:
            bar = Rectangle((0, 0), 1, 1, facecolor=colours[label], edgecolor="none", zorder=3)
            bar.set_gid(f"share-{node.index}-{label}")
            bars.append((bar, start, share))
            start += share
        return bars

    def _swatch(self, place: int) -> Any:
        return Rectangle((0, 0), 1, 1, facecolor=class_hue(self._hues[place]), edgecolor="none", zorder=3)

    # ---------------------------------------------------------------- placing artists

    def _apply(self, plan: Arrangement) -> None:
        unit, layout = plan.font_size, plan.layout
        key_height = plan.key.height if plan.key else 0.0
        left = (self._size[0] - unit * layout.width) / 2
        top = (self._size[1] + unit * (layout.height + key_height)) / 2

        def at(x: float, y: float) -> tuple[float, float]:
            return left + unit * x, top - unit * y

        for node in self.tree.nodes:
            self._place_node(node, plan, at)
            for child in (node.left, node.right):
                if child >= 0:
                    self._place_edge(node, child, plan, at)
        if plan.key:
            self._place_key(plan.key, unit, top - unit * layout.height)

    def _place_node(self, node: NodeView, plan: Arrangement, at: Any) -> None:
        cell, unit = plan.cells[node.index], plan.font_size
        x, y = plan.layout.x[node.index], plan.layout.top[node.index]
        corner = at(x - cell.width / 2, y + cell.height)
        box = self._boxes[node.index]
        box.set_bounds(*corner, unit * cell.width, unit * cell.height)
        rounding = 0.55 if node.is_leaf else 0.12
        box.set_boxstyle("round", pad=0.0, rounding_size=rounding * unit)
        box.set_linewidth(0.085 * unit)
        y += PAD[1]
        self._set(self._titles[node.index], cell.title, unit, at(x, y))
        y += cell.title.height
        self._set(self._details[node.index], cell.detail, unit, at(x, y))
        y += cell.detail.height if cell.detail is not None else 0.0
        inner = cell.width - 2 * PAD[0]
        for bar, start, share in self._bars[node.index]:
            bar.set_xy(at(x - inner / 2 + start * inner, y + BAR_GAP + BAR_HEIGHT))
            bar.set_width(unit * share * inner)
            bar.set_height(unit * BAR_HEIGHT)

    def _place_edge(self, node: NodeView, child: int, plan: Arrangement, at: Any) -> None:
        cell, unit, layout = plan.cells[child], plan.font_size, plan.layout
        x, top = layout.x[child], layout.top[child]
        corners = plan.edge(node.index, child, top - cell.above)
        line = self._edges[child]
        line.set_data(*zip(*(at(*corner) for corner in corners), strict=True))
        whole = self.tree.nodes[0].weight
        line.set_linewidth(unit * (0.09 + 0.25 * (self.tree.nodes[child].weight / whole if whole > 0 else 0.0)))
        self._set(self._labels[child], cell.label, unit, at(x, top - cell.above))

    def _place_key(self, key: Legend, unit: float, top: float) -> None:
        line = SMALL * LINE_HEIGHT * 1.15 * unit
        y = top - unit - line / 2
        for row in key.rows:
            begin = (self._size[0] - unit * key.row_width(row)) / 2
            for entry, start in zip(row, key.starts(row), strict=True):
                swatch, text = self._key[entry]
                x = begin + unit * start
                side = 0.72 * SWATCH * unit
                swatch.set_bounds(x, y - side / 2, SWATCH * unit, side)
                text.set(text=key.texts[entry], fontsize=SMALL * unit, ha="left")
                text.set_position((x + unit * (SWATCH + 0.4), y - 0.36 * SMALL * unit))
            y -= line

    def _set(self, lines: list[Any], block: TextBlock | None, unit: float, top: tuple[float, float]) -> None:
        parts = block.text.split("\n") if block is not None else []
        for place, line in enumerate(lines):
            used = block is not None and place < len(parts)
            line.set_visible(used)
            line.set_text(parts[place] if used else "")
            if block is not None and used:
                size = block.scale * unit
                line.set_fontsize(size)
                line.set_position((top[0], top[1] - size * (place * LINE_HEIGHT + _BASELINE)))
