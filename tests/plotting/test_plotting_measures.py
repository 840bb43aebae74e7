"""Pictures of limits and of nearly optimal trees: what stands in them, and that it is apart and inside."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace as Thing
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from accel_oct.errors import InvalidInputError
from accel_oct.plotting import plot_constraints, plot_importance_range, plot_near_optimal, plot_trade_off
from accel_oct.solving.result import ConstraintReport

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


def assert_apart_and_inside(ax: Any) -> None:
    """All texts of the axes."""
    figure = ax.figure
    figure.canvas.draw()
    texts = [*ax.texts, ax.xaxis.label, ax.yaxis.label]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    extents = [t.get_window_extent() for t in texts if t.get_text() and t.get_visible()]
    for extent in extents:
        assert figure.bbox.x0 - 1 <= extent.x0 and extent.x1 <= figure.bbox.x1 + 1
        assert figure.bbox.y0 - 1 <= extent.y0 and extent.y1 <= figure.bbox.y1 + 1
    for one, other in itertools.combinations(extents, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        assert across <= 1 or min(one.y1, other.y1) - max(one.y0, other.y0) <= 1


def point(limit: float, score: float, status: str = "optimal", bound: float | None = None, test: Any = None) -> Thing:
    bound = score if bound is None else bound
    error = None if test is None else 0.01
    return Thing(
        limit=limit, value=limit, score=score, bound=bound, status=status, test_score=test, test_score_error=error
    )


def trade_off(*points: Thing) -> Thing:
    return Thing(name="Statistical_Parity $", score_name="accuracy", points=points)


def test_trade_off_tells_proven_from_not_proven() -> None:
    """Filled and hollow markers, a bar up to the bound, the held-out curve, shade where there is no tree."""
    none = float("-inf")
    ax = plot_trade_off(
        trade_off(
            point(0.2, 0.9, test=0.8),
            point(0.0, none, "infeasible", none),
            point(0.05, 0.7, test=0.65),
            point(0.1, 0.8, "time_limit", 0.85),
        )
    )
    labels = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    assert list(labels) == [
        "proven optimal",
        "not proven: bar up to the bound",
        "held-out data, \u00b1 1 standard error",
    ]
    assert labels["proven optimal"].get_xydata().tolist() == [[0.05, 0.7], [0.2, 0.9]]
    hollow = labels["not proven: bar up to the bound"]
    assert hollow.get_xydata().tolist() == [[0.1, 0.8]]
    assert hollow.get_markerfacecolor() == "white"
    assert any(line.get_xydata().tolist() == [[0.1, 0.8], [0.1, 0.85]] for line in ax.lines)
    (shade,) = [patch for patch in ax.patches if patch.get_zorder() == 0]
    assert shade.get_extents().transformed(ax.transData.inverted()).x1 == pytest.approx(0.025)
    assert [text.get_text() for text in ax.texts] == ["no tree over these splits satisfies this limit"]
    assert_apart_and_inside(ax)


@pytest.mark.parametrize(("scores", "where"), [((0.7, 0.9), "steps-post"), ((0.9, 0.7), "steps-pre")])
def test_between_two_limits_the_stricter_one_is_drawn(scores: tuple[float, float], where: str) -> None:
    """Large limits are loose where they are upper limits, and strict where they are lower ones."""
    ax = plot_trade_off(trade_off(point(0.1, scores[0]), point(0.2, scores[1])))
    assert ax.lines[0].get_drawstyle() == where


def test_a_trade_off_without_any_tree() -> None:
    """Is all shade."""
    none = float("-inf")
    ax = plot_trade_off(trade_off(point(0.1, none, "infeasible", none), point(0.2, none, "infeasible", none)))
    assert [text.get_text() for text in ax.texts] == ["no tree over these splits satisfies these limits"]
    assert ax.get_legend() is None


REPORTS = [
    Thing(name="StatisticalParity(se_x) in $ and $", value=0.05, lower=-0.05, upper=0.05, slack=0.0, multiplier=0.312),
    Thing(name="LeafCount", value=5, lower=None, upper=8, slack=3, multiplier=None),
    Thing(name="Recall", value=0.9, lower=0.45, upper=None, slack=0.45, multiplier=0.0),
    Thing(name="two sides", value=0.1, lower=-0.4, upper=0.4, slack=0.3, multiplier=None),
    ConstraintReport("older", 2.0, 2.0, None),
    Thing(name="own", value=None, slack=0.2, multiplier=None),
]


@pytest.mark.parametrize("size", [None, (4.0, 3.0), (2.5, 4.0)])
def test_constraints_show_how_much_is_used(size: tuple[float, float] | None) -> None:
    """Bars from 0 to the limit; what binds is marked; without a scale there is no bar."""
    ax = None if size is None else plt.subplots(figsize=size, layout="constrained")[1]
    ax = plot_constraints(REPORTS, ax=ax)
    assert_apart_and_inside(ax)
    bars = [patch for patch in ax.patches if patch.get_zorder() == 1 and patch.get_hatch() is None]
    assert [bar.get_width() for bar in bars] == pytest.approx([1.0, 5 / 8, 0.5, 0.25, 0.5])
    assert len({bar.get_facecolor() for bar in bars}) == 2
    if size is None:
        texts = [text.get_text() for text in ax.texts]
        assert "0.05 within -0.05 to 0.05, binding, multiplier 0.312" in texts
        assert "5 of at most 8" in texts
        assert "slack 0.2" in texts


def test_constraints_of_results_and_models() -> None:
    """By attribute; without any there is nothing to show."""
    for source in (Thing(constraints=tuple(REPORTS)), Thing(constraints_=tuple(REPORTS))):
        assert len(plot_constraints(source).texts) == 2 * len(REPORTS)
    for source in (Thing(constraints=()), [], 3):
        with pytest.raises(InvalidInputError, match="source"):
            plot_constraints(source)


class Near(list[Thing]):
    optimum, within, count, complete = 0.85, 0.01, 4120, True


def near(n: int = 50) -> Near:
    return Near(
        Thing(objective=0.85 - 0.0002 * (k % 40), accuracy=0.9, n_leaves=3 + k % 4, columns=tuple(range(1 + k % 3)))
        for k in range(n)
    )


def test_near_optimal_trees_are_counted_truthfully() -> None:
    """All; some of a known number; at least so many."""
    trees = near()
    assert plot_near_optimal(trees).get_title("left") == "4120 trees within 0.01 of the optimum, 50 shown"
    trees.complete = False
    assert plot_near_optimal(trees).get_title("left").startswith("at least 4120 trees")
    trees.count = None  # type: ignore[assignment]
    assert plot_near_optimal(trees).get_title("left") == "at least 50 trees within 0.01 of the optimum"
    one = near(1)
    one.count = 1
    ax = plot_near_optimal(one)
    assert ax.get_title("left") == "1 tree within 0.01 of the optimum"
    assert_apart_and_inside(ax)


def test_near_optimal_trees_are_at_their_place() -> None:
    """Moved sideways by less than half a leaf, always the same way; both levels are marked."""
    trees = near()
    first, second = plot_near_optimal(trees), plot_near_optimal(trees)
    places = np.asarray(first.collections[0].get_offsets())
    np.testing.assert_array_equal(places, np.asarray(second.collections[0].get_offsets()))
    np.testing.assert_array_equal(np.round(places[:, 0]), [tree.n_leaves for tree in trees])
    np.testing.assert_array_equal(places[:, 1], [tree.objective for tree in trees])
    np.testing.assert_array_equal(first.collections[0].get_array(), [len(tree.columns) for tree in trees])
    assert [line.get_ydata()[0] for line in first.lines] == pytest.approx([0.85, 0.84])
    assert not plot_near_optimal(trees, y="accuracy").lines
    assert_apart_and_inside(first)


def test_importance_is_a_range() -> None:
    """From the lowest to the highest, with the share of the trees that use the column."""
    rows = [
        Thing(name="age_$", lowest=0.2, highest=0.7, share_used=1.0),
        Thing(name="b", lowest=0, highest=0, share_used=0),
    ]
    ax = plot_importance_range(rows)
    assert list(ax.lines[0].get_xdata()) == [0.2, 0.7]
    assert [text.get_text() for text in ax.texts] == ["100%", "0%", "used by"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["age_$", "b"]
    assert_apart_and_inside(ax)


def test_what_cannot_be_drawn() -> None:
    """One sentence that names the argument and what it lacks."""
    with pytest.raises(InvalidInputError, match="trade_off must have 'name'"):
        plot_trade_off(3)
    with pytest.raises(InvalidInputError, match="trade_off has no points"):
        plot_trade_off(trade_off())
    with pytest.raises(InvalidInputError, match="every point of trade_off must have 'score'"):
        plot_trade_off(trade_off(Thing(limit=1.0)))
    with pytest.raises(InvalidInputError, match="every report of source must have 'slack'"):
        plot_constraints([Thing(name="a")])
    with pytest.raises(InvalidInputError, match="near must have 'optimum'"):
        plot_near_optimal([])
    with pytest.raises(InvalidInputError, match="near has no trees"):
        plot_near_optimal(Near())
    with pytest.raises(InvalidInputError, match="y must be"):
        plot_near_optimal(near(), y="size")
    with pytest.raises(InvalidInputError, match="table has no rows"):
        plot_importance_range([])
