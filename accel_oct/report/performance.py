"""The section on accuracy: confusion matrices, recall and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from accel_oct.data.labels import as_labels
from accel_oct.data.weights import as_weights
from accel_oct.errors import InvalidInputError, as_invalid_input
from accel_oct.report.markup import Markup, amount, count, element, percent, section
from accel_oct.report.tree import class_mark

#: Number of shades of a cell in the style sheet.
_SHADES = 10


@dataclass(frozen=True, eq=False)
class Confusion:
    """A confusion matrix.

    Attributes
    ----------
    counts : float array (n_true, n_classes)
        Weight of the rows by true class and prediction; true classes that are not in the training data come last.
    names : tuple of str
        Names of the true classes.
    weighted : bool
        Whether rows have weights.
    """

    counts: NDArray[np.float64]
    names: tuple[str, ...]
    weighted: bool
    n_rows: int

    @property
    def accuracy(self) -> float:
        """Share of the weight that is predicted correctly; 0 without weight."""
        total = float(self.counts.sum())
        return float(np.trace(self.counts)) / total if total else 0.0

    @property
    def recall(self) -> list[float | None]:
        """Correctly predicted share of each true class."""
        return [
            float(row[k] / row.sum()) if k < len(row) and row.sum() else (0.0 if row.sum() else None)
            for k, row in enumerate(self.counts)
        ]

    @property
    def precision(self) -> list[float | None]:
        """Correct share of each predicted class."""
        return [float(self.counts[k, k] / c.sum()) if c.sum() else None for k, c in enumerate(self.counts.T)]


def confusion(model: Any, X: Any, y: Any, sample_weight: Any = None, what: str = "y") -> Confusion:
    """Predict and count; `what` names `y` in error messages."""
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
    """Return both matrices."""
    parts = [_matrix(training, "Training data", "train")]
    explanation = "Rows are true classes, columns predictions; correct predictions are on the diagonal."
    if test is not None:
        parts.append(_matrix(test, "Test data", "test"))
    else:
        explanation += " No test data were given: the tree was fitted on all of these rows."
    return section("performance", "Accuracy", element("p", explanation), element("div", parts, class_="matrices"))


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
    size = f"{count(found.n_rows, 'row')}{weight}"
    table = element(
        "table",
        element(
            "thead", element("tr", element("th", "true class", scope="col"), head, element("th", "recall", scope="col"))
        ),
        element("tbody", rows),
        element("tfoot", element("tr", element("th", "precision", scope="row"), precision, element("td"))),
        class_="confusion",
        aria_labelledby=f"confusion-{name}-title",
    )
    accuracy = element("small", f": {percent(found.accuracy)} correct of {size}")
    return element(
        "div",
        element("h3", title, accuracy, id=f"confusion-{name}-title"),
        element("div", table, class_="scroll", tabindex=0, role="region", aria_labelledby=f"confusion-{name}-title"),
        id=f"confusion-{name}",
    )


def _cell(value: float, total: float, right: bool) -> Markup:
    shade = round(_SHADES * value / total) if total else 0
    kind = "right" if right else "wrong"
    return element("td", amount(value) if value else "0", class_=f"{kind} s{max(shade, 1 if value else 0)}")
