"""Confusion matrices with what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from accel_oct.data.labels import as_labels, as_weights
from accel_oct.errors import InvalidInputError, as_invalid_input
from accel_oct.report.markup import Content, Markup, element
from accel_oct.report.tree_picture import class_mark
from accel_oct.report.wording import amount, percent

__all__ = ["Confusion", "confusion", "performance_section"]

#: Of a cell's colour, in steps that the style sheet has.
_SHADES = 10


@dataclass(frozen=True, eq=False)
class Confusion:
    """What a tree predicts for rows of each class.

    Attributes
    ----------
    counts : float array (n_true, n_classes)
        Weight of the rows by true class and prediction; classes that fitting did not see come behind the others.
    names : tuple of str
        Of the true classes.
    weighted : bool
        Whether rows have weights.
    n_rows : int
    """

    counts: NDArray[np.float64]
    names: tuple[str, ...]
    weighted: bool
    n_rows: int

    @property
    def accuracy(self) -> float:
        """Share of the weight that is predicted rightly; 0 where there is none."""
        total = float(self.counts.sum())
        return float(np.trace(self.counts)) / total if total else 0.0

    @property
    def recall(self) -> list[float | None]:
        """Of each true class, the share that is predicted rightly."""
        return [
            float(row[k] / row.sum()) if k < len(row) and row.sum() else (0.0 if row.sum() else None)
            for k, row in enumerate(self.counts)
        ]

    @property
    def precision(self) -> list[float | None]:
        """Of each predicted class, the share that is of this class."""
        return [float(self.counts[k, k] / c.sum()) if c.sum() else None for k, c in enumerate(self.counts.T)]


def confusion(model: Any, X: Any, y: Any, sample_weight: Any = None, what: str = "y") -> Confusion:
    """Predict and count.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    X, y, sample_weight
        Rows, their classes, and their weights (all 1 by default).
    what : str
        What to call `y` in errors.
    """
    predicted = model.predict(X)
    with as_invalid_input(what):
        labels = np.asarray(as_labels(y)).reshape(-1)
        check_consistent_length(predicted, labels)
    known = model.classes_.tolist()
    given = labels.tolist()
    try:
        unseen = sorted(set(given) - set(known), key=str)
    except TypeError:
        raise InvalidInputError(f"{what} must hold classes, one per row") from None
    place = {label: k for k, label in enumerate([*known, *unseen])}
    weights = as_weights(sample_weight, len(labels))
    counts = np.zeros((len(place), len(known)))
    np.add.at(counts, ([place[label] for label in given], [place[label] for label in predicted.tolist()]), weights)
    names = tuple(str(label) for label in known) + tuple(f"{label} (not in training)" for label in unseen)
    return Confusion(counts, names, bool((weights != 1).any()), len(labels))


def performance_section(training: Confusion, test: Confusion | None) -> Markup:
    """Both matrices."""
    parts: list[Content] = [_matrix(training, "Training data", "train")]
    if test is not None:
        parts.append(_matrix(test, "Test data", "test"))
    said = "Rows are true classes, columns predictions; what is right is on the diagonal."
    return element(
        "section",
        element("h2", "Right and wrong", id="performance-title"),
        element(
            "p", said, "" if test is not None else " No test data were given: the tree has seen all of these rows."
        ),
        element("div", parts, class_="matrices"),
        id="performance-section",
        aria_labelledby="performance-title",
    )


def _matrix(found: Confusion, title: str, name: str) -> Markup:
    classes = range(found.counts.shape[1])
    head = [
        element(
            "th",
            element("span", k + 1, aria_hidden="true"),
            element("span", found.names[k], class_="unseen"),
            scope="col",
        )
        for k in classes
    ]
    rows = []
    for k, (row, recall) in enumerate(zip(found.counts, found.recall, strict=True)):
        cells = [_cell(value, row.sum(), k == j) for j, value in enumerate(row)]
        label = [f"{k + 1} " if k in classes else "", class_mark(k) if k in classes else None, " "]
        rows.append(
            element(
                "tr",
                element("th", label, element("bdi", found.names[k]), scope="row"),
                cells,
                element("td", "\u2013" if recall is None else percent(recall), class_="rate"),
            )
        )
    precision = [
        element("td", "\u2013" if share is None else percent(share), class_="rate") for share in found.precision
    ]
    weight = f", weight {amount(float(found.counts.sum()))}" if found.weighted else ""
    size = f"{found.n_rows:,} row{'' if found.n_rows == 1 else 's'}{weight}"
    table = element(
        "table",
        element("caption", element("strong", title), f": {percent(found.accuracy)} right of {size}"),
        element(
            "thead", element("tr", element("th", "true class", scope="col"), head, element("th", "recall", scope="col"))
        ),
        element("tbody", rows),
        element("tfoot", element("tr", element("th", "precision", scope="row"), precision, element("td"))),
        class_="confusion",
    )
    return element(
        "div",
        table,
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=f"{title}: confusion",
        id=f"confusion-{name}",
    )


def _cell(value: float, total: float, right: bool) -> Markup:
    shade = round(_SHADES * value / total) if total else 0
    kind = "right" if right else "wrong"
    return element("td", amount(value) if value else "0", class_=f"{kind} s{max(shade, 1 if value else 0)}")
