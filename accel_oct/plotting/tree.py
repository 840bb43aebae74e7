"""Pictures of trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.palette import class_hue
from accel_oct.export.view import view
from accel_oct.plotting.charts import pyplot
from accel_oct.plotting.layout import legend_rows, natural_size
from accel_oct.support.arguments import whole_number

_PADDING = 0.12  # inches around a tree
_LEGEND_FROM = 3
_TITLE = 0.35
_NOTE_LINES = 3.6  # room below a tree for its note, in font sizes


def plot_tree(
    model: Any, *, ax: Any = None, filled: bool = True, font_size: float = 9.0, legend: bool | None = None
) -> Any:
    """Draw a fitted tree; "no" goes left and "yes" goes right.

    Every node has a bar of its class shares in the training data. A leaf has its class, the share of that class, and
    its number of samples (and weight, if samples are weighted). The width of an edge shows its share of the data; its
    label shows the side of missing values in columns that have some.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    ax : matplotlib axes, optional
        By default a new, readable figure. The tree adapts to the size of the axes, also when it changes later: on
        small axes the font is smaller and counts are left out.
    filled : bool
        Colour leaves by class, paler where the share of the class is lower; False is grey.
    font_size : float
        Largest font size in points.
    legend : bool, optional
        Show a legend of the classes; by default with three or more classes.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    A threshold of more than six digits is shortened and ends in an ellipsis; text, SQL, Python and JSON have all
    digits. An asterisk marks leaves that do not predict the majority class of their samples; a line below the tree
    explains it.
    """
    tree = view(model)
    _check_font_size(font_size)
    plt = pyplot()
    # matplotlib is an extra
    from accel_oct.plotting.picture import TreePicture, text_width

    n_classes = len(tree.class_names)
    with_key = filled and (n_classes >= _LEGEND_FROM if legend is None else legend)
    key = tree.class_names if with_key else ()
    if ax is None:
        size = [font_size * side / 72 + 2 * _PADDING for side in natural_size(tree, text_width, key)]
        below = _NOTE_LINES * font_size / 72 if tree.note else 0.0
        size[1] += below
        figure = plt.figure(figsize=size)
        left, bottom, top = _PADDING / size[0], (_PADDING + below) / size[1], _PADDING / size[1]
        ax = figure.add_axes((left, bottom, 1 - 2 * left, 1 - bottom - top))
    ax.set_axis_off()
    TreePicture(ax, tree, range(n_classes), filled=filled, font_size=font_size, key=key)
    if tree.note:
        place: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "top", "wrap": True}
        ax.text(0.5, 0.0, tree.note, fontsize=0.84 * font_size, gid="note", **place)
    return ax


def plot_trees(
    models: Sequence[Any],
    titles: Sequence[str] | None = None,
    *,
    ncols: int | None = None,
    filled: bool = True,
    font_size: float = 9.0,
) -> Any:
    """Draw several fitted trees side by side, with the same class colours and one legend.

    Parameters
    ----------
    models : sequence of fitted OptimalTreeClassifier
    titles : sequence of str, optional
        One per model.
    ncols : int, optional
        Trees per row; by default at most three.
    filled, font_size
        As in `plot_tree`.

    Returns
    -------
    matplotlib figure
    """
    models = list(models)
    if not models:
        raise InvalidInputError("models must hold at least one fitted model")
    if titles is not None and len(titles) != len(models):
        raise InvalidInputError(f"titles must have one title per model ({len(models)}), got {len(titles)}")
    if ncols is not None:
        whole_number(ncols, "ncols", 1)
    _check_font_size(font_size)
    trees = [view(model) for model in models]
    plt = pyplot()
    # matplotlib is an extra
    from accel_oct.plotting.picture import TreePicture, text_width

    names = list(dict.fromkeys(name for tree in trees for name in tree.class_names))
    columns = min(len(models), 3 if ncols is None else ncols)
    rows = math.ceil(len(models) / columns)
    sizes = [natural_size(tree, text_width) for tree in trees]
    widths = [max(size[0] for size in sizes[k::columns]) for k in range(columns)]
    heights = [max(size[1] for size in sizes[k * columns : (k + 1) * columns]) for k in range(rows)]
    inches = font_size / 72
    figure = plt.figure(
        figsize=(
            inches * sum(widths) + 0.3 * columns,
            inches * sum(heights) + rows * (_TITLE if titles is not None else 0.15) + (0.4 if filled else 0.1),
        ),
        layout="constrained",
    )
    figure.get_layout_engine().set(w_pad=_PADDING, h_pad=_PADDING / 2)
    grid = figure.add_gridspec(rows, columns, width_ratios=widths, height_ratios=heights)
    for place, tree in enumerate(trees):
        ax = figure.add_subplot(grid[place // columns, place % columns])
        ax.set_axis_off()
        if titles is not None:
            ax.set_title(str(titles[place]), fontsize=font_size * 1.15, parse_math=False)
        hues = [names.index(name) for name in tree.class_names]
        TreePicture(ax, tree, hues, filled=filled, font_size=font_size, key=())
    note = next((tree.note for tree in trees if tree.note), "")
    if note:
        figure.supxlabel(note, fontsize=0.84 * font_size, wrap=True)
    if filled:
        _common_legend(figure, names, font_size, text_width)
    return figure


def _common_legend(figure: Any, names: Sequence[str], font_size: float, measure: Any) -> None:
    from matplotlib.patches import Patch

    key = legend_rows(names, 72 * figure.get_figwidth() / font_size - 4.0, measure)
    legend = figure.legend(
        handles=[Patch(facecolor=class_hue(place)) for place in range(len(names))],
        labels=list(key.texts),
        loc="outside lower center",
        ncols=len(key.rows[0]),
        frameon=False,
        fontsize=0.9 * font_size,
        handlelength=1.0,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _check_font_size(font_size: Any) -> None:
    if isinstance(font_size, bool) or not isinstance(font_size, int | float) or not 0 < font_size < math.inf:
        raise InvalidInputError(f"font_size must be a number above 0, got {shown(font_size)}")
