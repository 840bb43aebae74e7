"""Scores of predictions and probabilities on rows, overall and by group: what the report and the model card state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from accel_oct.data.labels import as_labels
from accel_oct.encoding.tables import Table
from accel_oct.encoding.values import as_categories
from accel_oct.errors import InvalidInputError, as_invalid_input, did_you_mean, shown
from accel_oct.reasons.leaves import held_out_counts
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree.probabilities import exact_interval

MOST_GROUPS = 30
"""Columns with more values cannot be shown by group."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A model on some rows, without weights.

    Attributes
    ----------
    log_loss, brier : float or None
        Means over the rows of known classes; None without such a row. `brier` is the sum of squared differences over
        all classes.
    counts : int array (node_count, n_classes)
        Rows of each known class in each leaf.
    """

    n_rows: int
    n_right: int
    log_loss: float | None
    brier: float | None
    counts: IntArray

    @property
    def accuracy(self) -> float:
        """Share of the rows that are predicted correctly."""
        return self.n_right / self.n_rows

    @property
    def interval(self) -> tuple[float, float]:
        """Exact 95 % interval of the accuracy."""
        low, high = exact_interval(self.n_right, self.n_rows)
        return float(low), float(high)


@dataclass(frozen=True)
class GroupScore:
    """Rows of a group: accuracy with its exact 95 % interval."""

    column: str
    value: str
    n_rows: int
    n_right: int
    low: float
    high: float

    @property
    def accuracy(self) -> float:
        """Share of the rows that are predicted correctly."""
        return self.n_right / self.n_rows


def scores_on(model: Any, X: Any, y: Any, what: str = "y") -> Scores:
    """Predict and count; `what` names `y` in error messages."""
    leaves, labels = model.apply(X), _labels(y, what)
    with as_invalid_input(what):
        check_consistent_length(leaves, labels)
    place = {label: code for code, label in enumerate(model.classes_.tolist())}
    codes = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    right = int(np.count_nonzero(model.tree_.label[leaves] == codes))
    shares: FloatArray = model.predict_proba(X)
    known = codes >= 0
    loss, brier = None, None
    if known.any():
        shares, own = shares[known], codes[known]
        with np.errstate(divide="ignore"):
            loss = float(-np.log(shares[np.arange(len(own)), own]).mean())
        brier = float(((shares - np.eye(shares.shape[1])[own]) ** 2).sum(axis=1).mean())
    return Scores(len(labels), right, loss, brier, held_out_counts(leaves, codes, model.tree_.class_counts.shape))


def group_scores(model: Any, X: Any, y: Any, groups: Any, what: str = "y") -> list[GroupScore]:
    """Return the accuracy for each value of some columns of X, or of arrays by name.

    Parameters
    ----------
    groups : list of str, or mapping from names to arrays (n_samples,)
    """
    right = model.predict(X) == _labels(y, what)
    return [score for name, values in _columns(X, groups).items() for score in _of_column(name, values, right)]


def _of_column(name: str, values: NDArray[Any], right: NDArray[np.bool_]) -> list[GroupScore]:
    texts = ["missing" if text is None else text for text in as_categories(values, name).tolist()]
    if len(texts) != len(right):
        raise InvalidInputError(f"groups: {shown(name)} must have one value per row, {len(right)}, got {len(texts)}")
    known = sorted(set(texts))
    if len(known) > MOST_GROUPS:
        raise InvalidInputError(f"groups: {shown(name)} has {len(known)} values, more than {MOST_GROUPS}")
    found = []
    for text in known:
        own = right[np.array(texts, dtype=object) == text]
        low, high = exact_interval(own.sum(), len(own))
        found.append(GroupScore(name, text, len(own), int(own.sum()), float(low), float(high)))
    return found


def _columns(X: Any, groups: Any) -> dict[str, NDArray[Any]]:
    if isinstance(groups, Mapping):
        return {str(name): np.asarray(values) for name, values in groups.items()}
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise InvalidInputError(f"groups must be a list of columns or a mapping to arrays, got {shown(groups)}")
    table = Table.read(X)
    names = [table.name(place) for place in range(len(table.columns))]
    for name in groups:
        if name not in names:
            raise InvalidInputError(f"groups: X has no column {shown(name)}{did_you_mean(name, names)}")
    return {name: table.columns[names.index(name)] for name in groups}


def _labels(y: Any, what: str) -> NDArray[Any]:
    with as_invalid_input(what):
        return np.asarray(as_labels(y)).reshape(-1)
