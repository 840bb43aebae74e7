"""Pictures of trees: everything is inside and apart, and says what is true. That they look well was looked at."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from helpers.selection import daily

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.export.palette import class_colour, class_hue
from accel_oct.plotting import plot_convergence, plot_path, plot_tree, plot_trees

mpl.use("Agg")

NAMES = ["brickface", "cement", "foliage", "grass", "path", "sky", "window", "sea", "sand", "snow and ice"]


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"price in $ per $": rng.random(90), "a rather long name of a column": rng.random(90)})
    return X, np.where(X.iloc[:, 0] > 0.5, "x", np.where(X.iloc[:, 1] > 0.5, "y", "z"))


@pytest.fixture(scope="module")
def fitted(data: tuple[pd.DataFrame, np.ndarray]) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(max_depth=2).fit(*data)


def grid(depth: int, n_classes: int, names: list[str] | None = None) -> OptimalTreeClassifier:
    """A tree with about as many leaves as the depth allows: neighbours in the order of the rows differ in class."""
    X = np.array(list(itertools.product([0, 1], repeat=depth)) * 5)
    columns = names or ["hue_mean", "region_centroid_row", "a", "value in $_per_$ unit"][:depth]
    y = np.array(NAMES)[X @ 2 ** np.arange(depth) % n_classes]
    frame = pd.DataFrame(X, columns=columns)
    return OptimalTreeClassifier(depth, 0.0, encoder=None).fit(frame, y)


def awkward() -> OptimalTreeClassifier:
    """Missing values, long categories, names with signs of TeX."""
    rng = np.random.default_rng(2)
    category = [
        "a_category_name_without_any_blank_that_is_really_too_long" * 3,
        "$x_1$",
        "many words in a category " * 9,
    ]
    X = pd.DataFrame({"score_$": rng.random(300), "employment\\category": rng.choice(category, 300)})
    X.loc[::7, "score_$"] = np.nan
    X.loc[::5, "employment\\category"] = None
    y = np.where(X["score_$"].fillna(0) > 0.4, "y$e_s$", np.where(X.iloc[:, 1] == category[0], "maybe " * 12, "no"))
    y[X["score_$"].isna() & (X.iloc[:, 1] == category[2])] = "y$e_s$"
    return OptimalTreeClassifier(3, 0.001).fit(X, y)


def of_kind(ax: Any, kind: str) -> dict[int, str]:
    """What is written, by node; lines of one text put together."""
    found: dict[int, str] = {}
    for text in ax.texts:
        what, _, node = (text.get_gid() or "").partition("-")
        if what == kind and text.get_visible():
            found[int(node)] = (found.get(int(node), "") + " " + text.get_text()).strip()
    return found


def assert_readable(ax: Any) -> None:
    """No text is on another, each is in its box, boxes are apart, and all is inside of axes and figure."""
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [t for t in ax.texts if t.get_visible() and t.get_text().strip()]
    boxes = [p for p in ax.patches if (p.get_gid() or "").startswith("node-")]
    extents = {artist: artist.get_window_extent(renderer) for artist in (*texts, *boxes)}
    around = ax.get_window_extent(renderer)
    for extent in extents.values():
        assert around.x0 - 0.5 <= extent.x0 and extent.x1 <= around.x1 + 0.5
        assert around.y0 - 0.5 <= extent.y0 and extent.y1 <= around.y1 + 0.5
    for group in (texts, boxes):
        for one, other in itertools.combinations(group, 2):
            assert not _overlap(extents[one], extents[other]), (one, other)
    for text in texts:
        kind, _, node = text.get_gid().partition("-")
        for box in boxes:
            if kind in ("title", "detail") and box.get_gid() == f"node-{node}":
                assert extents[box].x0 <= extents[text].x0 and extents[text].x1 <= extents[box].x1
                assert extents[box].y0 <= extents[text].y0 and extents[text].y1 <= extents[box].y1
            else:
                assert not _overlap(extents[text], extents[box]), (text, box.get_gid())


def _overlap(one: Any, other: Any, tolerance: float = 1.0) -> bool:
    """By more than a pixel: what a renderer reports is rounded to whole ones."""
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    along = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(across > tolerance and along > tolerance)


def test_every_node_is_drawn_and_none_overlaps(fitted: OptimalTreeClassifier) -> None:
    """A box per node; the boxes of two nodes are apart, dollar signs are no mathematics."""
    ax = plot_tree(fitted)
    assert sum((patch.get_gid() or "").startswith("node-") for patch in ax.patches) == fitted.tree_.node_count
    assert_readable(ax)
    assert any("price in $ per $" in title for title in of_kind(ax, "title").values())


@pytest.mark.daily(3)
@pytest.mark.parametrize("size", [None, (4.0, 3.0), (12.0, 2.0), (2.5, 7.0)])
@pytest.mark.parametrize("shape", daily([(3, 3), (4, 10), (1, 2), (4, 7)], 2))
def test_trees_fit_into_any_axes(shape: tuple[int, int], size: tuple[float, float] | None) -> None:
    """2 to 16 leaves, 2 to 10 classes, a figure of its own and small ones."""
    model = grid(*shape)
    ax = None if size is None else plt.subplots(figsize=size, dpi=150)[1]
    ax = plot_tree(model, ax=ax)
    assert model.get_n_leaves() >= 0.6 * 2 ** shape[0]
    assert_readable(ax)


@pytest.mark.parametrize("size", [None, (4.0, 3.0), (9.0, 6.0)])
def test_awkward_names_fit_too(size: tuple[float, float] | None) -> None:
    """Too long ones are shortened, and signs of TeX are shown as they are."""
    ax = plot_tree(awkward(), ax=None if size is None else plt.subplots(figsize=size)[1])
    assert_readable(ax)
    assert "y$e_s$" in of_kind(ax, "title").values()


def test_the_tree_follows_the_size_of_its_axes(fitted: OptimalTreeClassifier) -> None:
    """Of a layout that moves axes when they are drawn, and of a figure that is made smaller afterwards."""
    figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for ax in axes:
        plot_tree(fitted, ax=ax)
    figure.suptitle("a title\nof three\nlines")
    assert_readable(axes[0])
    figure.set_size_inches(3.5, 2)
    assert_readable(axes[1])


def test_a_single_leaf_is_drawn() -> None:
    """Without an edge; without colours."""
    ax = plot_tree(OptimalTreeClassifier(max_depth=0).fit([[1.0], [2.0]], ["a", "a"]), filled=False)
    assert of_kind(ax, "title") == {0: "a"}
    assert of_kind(ax, "detail") == {0: "100% of 2"}
    assert len(ax.lines) == 0
    assert_readable(ax)


def test_edges_say_where_missing_values_go() -> None:
    """In columns that had some, and only as long as they can still be missing; rows with missing values go there."""
    model = awkward()
    ax = plot_tree(model)
    said = of_kind(ax, "edge")
    left, right = model.tree_.children_left, model.tree_.children_right
    X = pd.DataFrame({"score_$": [np.nan], "employment\\category": np.array([None], dtype=object)})
    path = set(model.decision_path(X).indices.tolist())
    assert {"no or missing", "yes or missing"} & set(said.values())
    for node in np.flatnonzero(left >= 0).tolist():
        assert said[left[node]] in ("no", "no or missing")
        assert said[right[node]] in ("yes", "yes or missing")
        assert not said[left[node]].endswith("missing") or not said[right[node]].endswith("missing")
        title = of_kind(ax, "title")[node]
        assert "or missing" not in title
        if node in path:
            (taken,) = {left[node], right[node]} & path
            assert said[taken].endswith(" or missing") or ("is missing" in title and said[taken] == "yes")


def test_weights_are_not_mixed_with_counts(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Equal weights, whatever they are, are counts; unequal ones are named."""
    X, y = data
    equal = of_kind(plot_tree(OptimalTreeClassifier(1).fit(X, y, np.full(90, 0.25))), "detail")
    assert equal == of_kind(plot_tree(OptimalTreeClassifier(1).fit(X, y)), "detail")
    assert equal[0] == "90 samples"
    weights = np.random.default_rng(0).random(90)
    model = OptimalTreeClassifier(1).fit(X, y, weights)
    said = of_kind(plot_tree(model), "detail")
    assert said[0] == f"weight {weights.sum():.4g} 90 samples"
    assert all("of weight" in said[leaf] for leaf in np.flatnonzero(model.tree_.children_left < 0).tolist())


def test_the_legend_names_all_classes() -> None:
    """From three classes on, or when asked for; each with its colour, also of classes that no leaf predicts."""
    ax = plot_tree(grid(3, 7))
    assert list(of_kind(ax, "legend").values()) == sorted(NAMES[:7])
    two = grid(1, 2)
    assert not of_kind(plot_tree(two), "legend")
    assert len(of_kind(plot_tree(two, legend=True), "legend")) == 2
    assert not of_kind(plot_tree(grid(3, 7), legend=False), "legend")


def test_bars_show_the_mix_of_classes(fitted: OptimalTreeClassifier) -> None:
    """As wide as the shares, in the colours of the classes."""
    ax = plot_tree(fitted)
    shares = fitted.tree_.value[0, 0]
    parts = [p for p in ax.patches if (p.get_gid() or "").startswith("share-0-")]
    widths = np.array([part.get_width() for part in parts])
    np.testing.assert_allclose(widths / widths.sum(), shares[shares > 0])
    assert [mpl.colors.to_hex(p.get_facecolor()).upper() for p in parts] == [class_hue(k) for k in range(len(parts))]


def test_several_trees_share_their_colours(fitted: OptimalTreeClassifier) -> None:
    """A class has one colour in all pictures although it has another index, and one legend has every class once."""
    X = pd.DataFrame({"a": [0, 1, 0, 1]})
    other = OptimalTreeClassifier(1, 0.0, encoder=None).fit(X, ["z", "w", "z", "w"])
    figure = plot_trees([fitted, other], ["first $", "second"], ncols=1)
    for ax in figure.axes:
        assert_readable(ax)
    assert [ax.get_title() for ax in figure.axes] == ["first $", "second"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["x", "y", "z", "w"]
    parts = {p.get_gid(): mpl.colors.to_hex(p.get_facecolor()).upper() for p in figure.axes[1].patches if p.get_gid()}
    assert (parts["share-0-0"], parts["share-0-1"]) == (class_hue(3), class_hue(2))
    inside = figure.bbox
    extent = legend.get_window_extent()
    assert inside.x0 <= extent.x0 and extent.x1 <= inside.x1 and inside.y0 <= extent.y0


def test_what_cannot_be_drawn(fitted: OptimalTreeClassifier) -> None:
    """One sentence that names the argument."""
    with pytest.raises(InvalidInputError, match="models"):
        plot_trees([])
    with pytest.raises(InvalidInputError, match="titles"):
        plot_trees([fitted], ["a", "b"])
    for ncols in (0, 1.5, True):
        with pytest.raises(InvalidInputError, match="ncols"):
            plot_trees([fitted], ncols=ncols)  # type: ignore[arg-type]
    for size in (0, -1.0, float("nan"), float("inf"), "large"):
        with pytest.raises(InvalidInputError, match="font_size"):
            plot_tree(fitted, font_size=size)  # type: ignore[arg-type]


def test_convergence_shows_objective_below_bound(fitted: OptimalTreeClassifier) -> None:
    """From an estimator, a result or bare rows; nothing to show is an error."""
    for source in (fitted, fitted.result_, fitted.result_.history):
        bound, objective = plot_convergence(source).lines
        assert np.all(objective.get_ydata() <= bound.get_ydata() + 1e-12)
    with pytest.raises(InvalidInputError, match="history"):
        plot_convergence([])


def test_the_path_marks_the_choice(data: tuple[pd.DataFrame, np.ndarray], fitted: OptimalTreeClassifier) -> None:
    """On axes of the caller."""
    model = OptimalTreeClassifierCV(max_depth=2, cv=3).fit(*data)
    _, ax = plt.subplots()
    assert plot_path(model, ax=ax) is ax
    assert "chosen" in ax.get_legend().get_texts()[0].get_text()
    with pytest.raises(InvalidInputError, match="OptimalTreeClassifierCV"):
        plot_path(fitted)


def test_without_matplotlib_the_error_names_the_extra(
    fitted: OptimalTreeClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else of the library needs it."""
    blocked: dict[str, Any] = {"matplotlib": None, "matplotlib.pyplot": None}
    for name, value in blocked.items():
        monkeypatch.setitem(sys.modules, name, value)
    for call in (lambda: plot_tree(fitted), lambda: plot_trees([fitted])):
        with pytest.raises(AccelOctError, match=r"accel-oct\[plot\]"):
            call()


def test_colours_are_valid_and_paler_when_unsure() -> None:
    """For any number of classes; black text has a contrast of 7 to 1 on every one."""
    for label in range(20):
        sure, unsure = (class_colour(label, share, 20) for share in (1.0, 0.1))
        assert len(sure) == 7
        assert sum(bytes.fromhex(sure[1:])) < sum(bytes.fromhex(unsure[1:]))
        luminance = _linear(sure) @ [0.2126, 0.7152, 0.0722]
        assert (luminance + 0.05) / 0.05 >= 7.0


#: Machado, Oliveira and Fernandes (2009), full severity: who does not see red, green, blue.
BLINDNESS = [
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
]


@pytest.mark.parametrize("matrix", BLINDNESS)
def test_twelve_colours_can_be_told_apart(matrix: list[list[float]]) -> None:
    """In Oklab, where 0.02 is just noticeable side by side; Okabe and Ito's own seven are 0.076 apart at least."""
    lms = np.array(
        [[0.41222147, 0.53633254, 0.05144599], [0.2119035, 0.68069955, 0.10739696], [0.08830246, 0.28171884, 0.6299787]]
    )
    lab = np.array(
        [
            [0.21045426, 0.79361779, -0.00407205],
            [1.9779985, -2.4285922, 0.45059371],
            [0.02590404, 0.78277177, -0.80867577],
        ]
    )
    linear = np.array([_linear(class_hue(label)) for label in range(12)])
    seen = np.cbrt(np.clip(linear @ np.array(matrix).T, 0, 1) @ lms.T) @ lab.T
    apart = [np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)]
    assert min(apart) > 0.075


def _linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
