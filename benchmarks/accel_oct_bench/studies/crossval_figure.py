"""A figure from the rows of `accel_oct_bench.studies.fairness_crossval`: test accuracy against the test gap."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accel_oct_bench.studies.crossval_methods import METHODS
from accel_oct_bench.studies.crossval_report import CONSTRAINTS, Row, Summary, summaries

#: Colour and marker of what is drawn. Tuned variants would lie on top of these.
STYLES = {
    "cart": ("#000000", "s"),
    "ours-free": ("#1b6ca8", "D"),
    "ours": ("#1b6ca8", "o"),
    "ours-group": ("#56b4e9", "o"),
    "streed": ("#7b3294", "v"),
    "gradient": ("#d95f02", "o"),
    "gradient-optimal": ("#e6ab02", "o"),
    "threshold": ("#2b9348", "^"),
}
#: The limits that are drawn: how the line is dashed, and whether the marker is filled.
LIMITS: dict[str, tuple[Any, Any]] = {"0.02": ("-", "full"), "0.05": ("--", "none")}


def figure(rows: Iterable[Row], path: Path) -> None:
    """A panel for each set and constraint; a method with fewer fits than others there is left out."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    found = [part for part in summaries(rows) if not part.rows and part.fits]
    sets = sorted({part.data for part in found}, key=lambda data: -max(p.n_train for p in found if p.data == data))
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fairness", "font.size": 8})
    grid, axes = plt.subplots(len(CONSTRAINTS), len(sets), figsize=(3.1 * len(sets), 5.8), squeeze=False)
    for (i, constraint), (j, data) in ((a, b) for a in enumerate(CONSTRAINTS) for b in enumerate(sets)):
        panel = axes[i][j]
        some = [part for part in found if (part.data, part.constraint) == (data, constraint)]
        for limit, (dashes, _) in LIMITS.items():
            panel.axvline(float(limit), color="#aaaaaa", linewidth=0.9, linestyle=dashes, zorder=1)
        for part in some:
            if part.method in STYLES and part.fits == max(other.fits for other in some):
                _point(panel, part)
        constant = [part.means["test_accuracy"] for part in some if part.method == "constant"]
        panel.set_title(f"{data}, {CONSTRAINTS[constraint]}", fontsize=8.5)
        if constant:
            panel.text(
                0.98, 0.02, f"constant: {constant[0]:.3f}", transform=panel.transAxes, ha="right", color="#666666"
            )
        panel.set_xlim(left=0)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="#eeeeee", linewidth=0.6)
        panel.set_axisbelow(True)
        if j == 0:
            panel.set_ylabel("test accuracy")
        if i == len(CONSTRAINTS) - 1:
            panel.set_xlabel("test gap between the groups")
    handles = [
        Line2D([], [], color=colour, linestyle="", marker=marker, label=METHODS[name].title)
        for name, (colour, marker) in STYLES.items()
        if any(part.method == name for part in found)
    ]
    handles += [
        Line2D([], [], color="#666666", marker="o", fillstyle=fill, linestyle=dashes, label=f"limit {limit}")
        for limit, (dashes, fill) in LIMITS.items()
    ]
    grid.legend(handles=handles, loc="lower center", ncol=5, frameon=False, fontsize=8)
    grid.tight_layout(rect=(0, 0.08, 1, 1))
    grid.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(grid)
    if path.suffix == ".svg":
        path.write_text(smaller(path.read_text(encoding="utf-8")), encoding="utf-8")


def smaller(svg: str) -> str:
    """Hundredths of a point are enough inside tags, and nobody reads the indentation or the names of groups."""
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), svg)
    svg = re.sub(r'<g id="(?!figure)[^"]*"', "<g", svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip() + "\n"


def _point(panel: Any, part: Summary) -> None:
    colour, marker = STYLES[part.method]
    drawn = panel.errorbar(
        part.means["test_gap"],
        part.means["test_accuracy"],
        xerr=part.errors["test_gap"],
        yerr=part.errors["test_accuracy"],
        color=colour,
        linestyle="",
        marker=marker,
        markerfacecolor="white" if LIMITS.get(part.limit, ("", "full"))[1] == "none" else colour,
        markersize=5,
        elinewidth=0.7,
        zorder=3,
    )
    for bar in drawn[2]:
        bar.set_alpha(0.45)
