"""The paper's figures as SVG: instances solved over time, instances within a gap; and performance profiles."""

from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np

from accel_oct.plotting.charts import AMBER, BLUE, GREEN, RED, pyplot
from accel_oct_bench.reports.comparison import Comparison, performance_profile

__all__ = ["panels", "profile"]

_COLOURS = (BLUE, RED, GREEN, AMBER, "#CC79A7", "#9E77D1", "#8C6D31", "#7F7F7F")
_STYLES = ("-", "--", "-.", ":")
#: Replaced by the colour of the surrounding text, so that a picture fits light and dark pages.
_INK = "#010203"
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "accel_oct",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
}


def panels(comparison: Comparison) -> str:
    """Draw the number of instances solved within a time (left) and within a gap (right)."""
    plt = pyplot()
    with plt.rc_context(_STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.3), sharey=True, layout="constrained")
        total = len(comparison.instances)
        shortest, longest = _range(comparison)
        widest = 1.05 * max(_widest_gap(comparison), 1.0)
        for place, method in enumerate(comparison.methods):
            look = _look(place)
            seconds = np.sort(comparison.seconds(method)[comparison.solved(method)])
            steps = [shortest, *seconds, longest]
            left.step(steps, [0, *range(1, len(seconds) + 1), len(seconds)], where="post", label=method, **look)
            gaps = 100 * np.sort(comparison.gaps(method))
            gaps = gaps[np.isfinite(gaps)]
            right.step([0.0, *gaps[gaps > 0], widest], _counted(gaps), where="post", **look)
        left.set_xscale("log")
        left.set_xlim(shortest, longest)
        left.set_ylim(0, total * 1.03)
        left.set_xlabel(f"{'CPU ' if comparison.clock == 'cpu' else ''}seconds")
        left.set_ylabel(f"instances of {total}")
        left.set_title("solved within the time", fontsize=9.5)
        right.set_xlim(0, widest)
        right.set_xlabel("gap in %")
        right.set_title("within the gap", fontsize=9.5)
        figure.legend(loc="outside lower center", ncols=min(len(comparison.methods), 4))
        return _svg(figure, plt)


def profile(comparison: Comparison) -> str:
    """Draw the share of instances solved within a factor of the fastest method."""
    plt = pyplot()
    with plt.rc_context(_STYLE):
        figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
        curves = [performance_profile(comparison, method) for method in comparison.methods]
        longest = max([2.0, *(float(factors[-1]) for factors, _ in curves if len(factors))]) * 1.2
        for place, (method, (factors, shares)) in enumerate(zip(comparison.methods, curves, strict=True)):
            last = shares[-1] if len(shares) else 0.0
            ax.step([1, *factors, longest], [0, *shares, last], where="post", label=method, **_look(place))
        ax.set_xscale("log")
        ax.set_xlim(1, longest)
        ax.set_ylim(0, 1.03)
        ax.set_xlabel("times the fastest method's seconds")
        ax.set_ylabel("share of instances")
        figure.legend(loc="outside lower center", ncols=min(len(comparison.methods), 4))
        return _svg(figure, plt)


def _range(comparison: Comparison) -> tuple[float, float]:
    """Return the limits of the time axis: below the shortest solved run, and the time limit."""
    solved = [comparison.seconds(method)[comparison.solved(method)] for method in comparison.methods]
    times = np.concatenate([*solved, [comparison.limit or 0.0]])
    times = times[times > 0]
    if not len(times):
        return 0.1, 1.0
    return float(times.min()) / 1.5, max(float(times.max()), float(times.min()) * 2)


def _widest_gap(comparison: Comparison) -> float:
    """Return the largest finite gap in %."""
    gaps = np.concatenate([comparison.gaps(method) for method in comparison.methods])
    return 100 * float(gaps[np.isfinite(gaps)].max(initial=0.0))


def _counted(gaps: Any) -> list[float]:
    closed = int((gaps <= 0).sum())
    return [float(closed), *np.arange(closed + 1, len(gaps) + 1).tolist(), float(len(gaps))]


def _look(place: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _STYLES[place // len(_COLOURS) % 4 if place >= len(_COLOURS) else place % 4],
        "linewidth": 1.7,
    }


def _svg(figure: Any, plt: Any) -> str:
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace(_INK, "currentColor")
