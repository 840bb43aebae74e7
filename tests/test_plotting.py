"""Pictures: what is in them; that they are readable was looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.export.palette import class_colour
from accel_oct.plotting import plot_convergence, plot_path, plot_tree

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"price in $ per $": rng.random(90), "a rather long name of a column": rng.random(90)})
    return X, np.where(X.iloc[:, 0] > 0.5, "x", np.where(X.iloc[:, 1] > 0.5, "y", "z"))


@pytest.fixture(scope="module")
def fitted(data: tuple[pd.DataFrame, np.ndarray]) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(max_depth=2).fit(*data)


def test_every_node_is_drawn_and_none_overlaps(fitted: OptimalTreeClassifier) -> None:
    """A box per node; the boxes of two nodes are apart, dollar signs are no mathematics."""
    ax = plot_tree(fitted)
    ax.figure.canvas.draw()
    boxes = [text for text in ax.texts if text.get_text() not in ("yes", "no")]
    assert len(boxes) == fitted.tree_.node_count
    places = [box.get_bbox_patch().get_window_extent() for box in boxes]
    for one in range(len(places)):
        assert not any(places[one].overlaps(places[other]) for other in range(one))
    assert any("price in $ per $" in box.get_text().replace("\n", " ") for box in boxes)


def test_a_single_leaf_is_drawn() -> None:
    """Without an edge."""
    ax = plot_tree(OptimalTreeClassifier(max_depth=0).fit([[1.0], [2.0]], ["a", "a"]), filled=False)
    assert len(ax.texts) == 1
    assert len(ax.lines) == 0


def test_convergence_shows_objective_below_bound(fitted: OptimalTreeClassifier) -> None:
    """From an estimator, a result or bare rows; nothing to show is an error."""
    for source in (fitted, fitted.result_, fitted.result_.history):
        bound, objective = plot_convergence(source).lines
        assert np.all(objective.get_ydata() <= bound.get_ydata() + 1e-12)
    with pytest.raises(InvalidInputError, match="history"):
        plot_convergence([])


def test_the_path_marks_the_choice(data: tuple[pd.DataFrame, np.ndarray], fitted: OptimalTreeClassifier) -> None:
    """On axes of the caller."""
    import matplotlib.pyplot as plt

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
    with pytest.raises(AccelOctError, match=r"accel-oct\[plot\]"):
        plot_tree(fitted)


def test_colours_are_valid_and_paler_when_unsure() -> None:
    """For any number of classes."""
    for label in range(20):
        sure, unsure = (class_colour(label, share, 20) for share in (1.0, 0.1))
        assert len(sure) == 7
        assert sum(bytes.fromhex(sure[1:])) < sum(bytes.fromhex(unsure[1:]))
