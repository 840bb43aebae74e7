"""Explanations of predictions: the path of a row, reason codes, and the smallest change to another class."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.tables import Table
from accel_oct.encoding.values import as_categories
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.export.view import TreeView, view
from accel_oct.reasons.changes import ColumnUnit, FoundChange, Routes
from accel_oct.support.arguments import as_whole
from accel_oct.support.files import replacing
from accel_oct.tree.probabilities import node_probabilities

MOST_REASONS = 4


@dataclass(frozen=True)
class Step:
    """An answer on the path of a row.

    Attributes
    ----------
    column : str
    condition : str
        The answer, such as ``age >= 35`` or ``age < 35 or missing``.
    value : str
        Value of the row, or "missing".
    effect : float
        What the answer adds to the probability of the predicted class.
    """

    column: str
    condition: str
    value: str
    effect: float


@dataclass(frozen=True)
class Reason:
    """A column whose answers speak for the predicted class.

    Attributes
    ----------
    conditions : tuple of str
        All answers about the column on the path.
    effect : float
        Sum of their effects: positive.
    """

    column: str
    conditions: tuple[str, ...]
    effect: float

    def __str__(self) -> str:
        return f"{' and '.join(self.conditions)} (+{self.effect:.3f})"


@dataclass(frozen=True)
class Edit:
    """A new value of a column.

    Attributes
    ----------
    old, new : str
        Values as text.
    value : object
        The new value as a table holds it.
    """

    column: str
    old: str
    new: str
    value: Any

    def __str__(self) -> str:
        return f"{self.column} from {self.old} to {self.new}"


@dataclass(frozen=True)
class Change:
    """The smallest change of a row that the tree classifies differently.

    Attributes
    ----------
    prediction : object
        Class of the changed row.
    probability : float
        Probability of this class for the changed row.
    edits : tuple of Edit
        The columns that change; all others keep their values.
    distance : float
        Sum of the changes, in spreads of their columns; see docs/guides/explain.md.
    leaf : int
        Leaf of the changed row, as in ``tree_``.
    """

    prediction: Any
    probability: float
    edits: tuple[Edit, ...]
    distance: float
    leaf: int

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.edits))} gives {self.prediction} (probability {self.probability:.3f})"


@dataclass(frozen=True)
class Explanation:
    """Why a row has its class.

    Attributes
    ----------
    row : int
        Position of the row.
    prediction : object
        Predicted class.
    probability : float
        Its probability, as in `predict_proba`.
    prior : float
        Its probability before any answer: ``probability`` is `prior` plus all effects of `steps`.
    leaf : int
        As in ``tree_``.
    steps : tuple of Step
        The path from the root to the leaf.
    reasons : tuple of Reason
        At most four, the largest effect first; empty if no column speaks for the class.
    change : Change or None
        None if no allowed change leads to another class, or to the class that was asked for.
    """

    row: int
    prediction: Any
    probability: float
    prior: float
    leaf: int
    steps: tuple[Step, ...]
    reasons: tuple[Reason, ...]
    change: Change | None

    def __str__(self) -> str:
        path = "; ".join(f"{step.condition} (is {step.value})" for step in self.steps) or "none: the tree is one leaf"
        lines = [
            f"row {self.row}: {self.prediction}, probability {self.probability:.3f} (of all rows {self.prior:.3f})",
            f"  path: {path}",
            f"  reasons: {'; '.join(map(str, self.reasons)) or 'no answer makes the class more probable'}",
            f"  smallest change: {'none' if self.change is None else self.change}",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        change = None
        if self.change is not None:
            change = {
                "prediction": _plain(self.change.prediction),
                "probability": self.change.probability,
                "distance": self.change.distance,
                "edits": [
                    {"column": edit.column, "old": edit.old, "new": edit.new, "value": _plain(edit.value)}
                    for edit in self.change.edits
                ],
            }
        return {
            "row": self.row,
            "prediction": _plain(self.prediction),
            "probability": self.probability,
            "prior": self.prior,
            "leaf": self.leaf,
            "path": [
                {"column": s.column, "condition": s.condition, "value": s.value, "effect": s.effect} for s in self.steps
            ],
            "reasons": [
                {"column": r.column, "conditions": list(r.conditions), "effect": r.effect} for r in self.reasons
            ],
            "change": change,
        }

    def cells(self) -> dict[str, Any]:
        """Return one flat row of a table: texts and numbers by name."""
        reasons = [None if k >= len(self.reasons) else self.reasons[k] for k in range(MOST_REASONS)]
        change = self.change
        values = [
            *(self.row, self.prediction, self.probability, "; ".join(step.condition for step in self.steps)),
            *(cell for reason in reasons for cell in _cells(reason)),
            None if change is None else ", ".join(map(str, change.edits)),
            None if change is None else len(change.edits),
            None if change is None else change.prediction,
        ]
        return dict(zip(NAMES, values, strict=True))


NAMES = (
    *("row", "prediction", "probability", "path"),
    *(f"{part} {place + 1}" for place in range(MOST_REASONS) for part in ("reason", "effect")),
    *("smallest change", "changed columns", "changed prediction"),
)
"""Columns of a table of explanations."""


def _cells(reason: Reason | None) -> tuple[str | None, float | None]:
    return (None, None) if reason is None else (" and ".join(reason.conditions), reason.effect)


class Explanations(Sequence[Explanation]):
    """The explanations of the rows of a table; `print` shows them."""

    def __init__(self, rows: Sequence[Explanation]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, place: int) -> Explanation: ...

    @overload
    def __getitem__(self, place: slice) -> Explanations: ...

    def __getitem__(self, place: int | slice) -> Explanation | Explanations:
        return Explanations(self._rows[place]) if isinstance(place, slice) else self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self._rows)

    def __str__(self) -> str:
        return "\n".join(map(str, self._rows))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain values for JSON, one dictionary per row."""
        return [row.to_dict() for row in self._rows]

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the explanations as JSON text, written to a file if `path` is given."""
        text = json.dumps(self.to_dicts(), allow_nan=False, indent=1)
        if path is not None:
            with replacing(path) as file:
                file.write(text)
        return text

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per explanation."""
        import pandas as pd

        return pd.DataFrame([row.cells() for row in self._rows])


def explain(
    model: Any, table: Table, leaves: NDArray[np.int64], *, fixed: Any = (), direction: Any = None, to: Any = None
) -> Explanations:
    """Explain the predictions of a fitted model; see `OptimalTreeClassifier.explain`.

    Parameters
    ----------
    model : fitted classifier
    table : Table
        Rows with the columns of the model, as its encoder accepts them.
    leaves : int array
        Leaf of each row, as in ``tree_``.
    """
    if not isinstance(model.encoder_, BinaryEncoder):
        raise InvalidInputError(
            f"explain needs an encoder of accel_oct, which knows the columns of X, got {type(model.encoder_).__name__}"
        )
    tree = view(model)
    names = tree.column_names
    precisions = {
        place: values.dtype
        for place, values in enumerate(table.columns)
        if values.dtype.kind == "f" and values.dtype.itemsize < 8
    }
    routes = Routes(model.tree_, model.encoder_, model.spreads_, precisions)
    kept = column_places(fixed, names, "fixed")
    moves = _directions(direction, tree)
    wanted = _wanted(to, model.classes_)
    columns = {column: model.encoder_._column(table, column, unit.kind).values for column, unit in routes.units.items()}
    unmet = routes.unmet(columns)
    probabilities = node_probabilities(model.tree_, model.smoothing_)
    parents = _parents(tree)
    found = []
    for row, leaf in enumerate(leaves.tolist()):
        values = {column: own[row] for column, own in columns.items()}
        label = tree.nodes[leaf].label
        allowed = [place != label for place in range(len(model.classes_))] if wanted is None else wanted
        change = None
        if wanted is None or not wanted[label]:
            missed = [[bool(demand[row]) for demand in route] for route in unmet]
            change = routes.smallest(values, missed, allowed, kept, moves)
        texts = {column: _text(unit, values[column], table, row) for column, unit in routes.units.items()}
        steps = _steps(tree, parents, leaf, probabilities[:, label], texts)
        found.append(
            Explanation(
                row=row,
                prediction=tree.classes[label],
                probability=float(probabilities[leaf, label]),
                prior=float(probabilities[0, label]),
                leaf=leaf,
                steps=steps,
                reasons=_reasons(steps),
                change=None if change is None else _named(change, tree, texts, probabilities),
            )
        )
    return Explanations(found)


def _steps(
    tree: TreeView, parents: Mapping[int, int], leaf: int, shares: NDArray[np.float64], texts: Mapping[int, str]
) -> tuple[Step, ...]:
    steps: list[Step] = []
    node = leaf
    while node in parents:
        above = tree.nodes[parents[node]]
        assert above.condition is not None
        column = above.condition.column
        answer = above.yes if above.right == node else above.no
        effect = float(shares[node] - shares[above.index])
        steps.append(Step(tree.column_names[column], answer, texts[column], effect))
        node = above.index
    return tuple(reversed(steps))


def _reasons(steps: Sequence[Step]) -> tuple[Reason, ...]:
    """Return the columns with the largest positive effect."""
    by_column: dict[str, list[Step]] = {}
    for step in steps:
        by_column.setdefault(step.column, []).append(step)
    found = [
        Reason(column, tuple(step.condition for step in own), sum(step.effect for step in own))
        for column, own in by_column.items()
    ]
    found.sort(key=lambda reason: -reason.effect)
    return tuple(reason for reason in found if reason.effect > 0)[:MOST_REASONS]


def _named(change: FoundChange, tree: TreeView, texts: Mapping[int, str], probabilities: NDArray[np.float64]) -> Change:
    label = tree.nodes[change.leaf].label
    edits = tuple(
        Edit(tree.column_names[unit.column], texts[unit.column], new.text, new.value) for unit, new in change.edits
    )
    return Change(
        tree.classes[label], float(probabilities[change.leaf, label]), edits, float(change.distance), change.leaf
    )


def _text(unit: ColumnUnit, value: Any, table: Table, row: int) -> str:
    """Return the value of a row as text; an ordered category that is not known, as in the table."""
    if unit.kind == "ordered" and value == value and not unit.is_known(value):
        return str(as_categories(table.columns[unit.column][row : row + 1], "")[0])
    return unit.text(value)


def _parents(tree: TreeView) -> dict[int, int]:
    return {child: node.index for node in tree.nodes for child in (node.left, node.right) if child >= 0}


# ---------------------------------------------------------------- arguments


def column_places(columns: Any, names: Sequence[str], what: str) -> frozenset[int]:
    """Return the positions of columns that are given by name or position; `what` names the argument."""
    if columns is None:
        return frozenset()
    if isinstance(columns, str) or not isinstance(columns, Sequence | set | frozenset | np.ndarray):
        raise InvalidInputError(f"{what} must be a list of columns, got {shown(columns)}")
    return frozenset(_place(column, names, what) for column in columns)


def _place(column: Any, names: Sequence[str], what: str) -> int:
    if isinstance(column, str):
        if column not in names:
            raise InvalidInputError(f"{what}: X has no column {shown(column)}{did_you_mean(column, names)}")
        return list(names).index(column)
    place = as_whole(column)
    if place is None or place not in range(len(names)):
        raise InvalidInputError(f"{what} must hold names or positions of columns, got {shown(column)}")
    return place


def _directions(direction: Any, tree: TreeView) -> dict[int, int]:
    """Return 1 or -1 by column."""
    if direction is None:
        return {}
    if not isinstance(direction, Mapping):
        raise InvalidInputError(f"direction must map columns to 1 or -1, got {shown(direction)}")
    found = {}
    for column, sign in direction.items():
        place = _place(column, tree.column_names, "direction")
        if as_whole(sign) not in (-1, 0, 1):
            raise InvalidInputError(f"direction must map columns to 1, -1 or 0, got {shown(sign)} for {shown(column)}")
        if tree.kinds[place] == "categorical":
            raise InvalidInputError(f"direction: the categories of column {shown(column)} have no order")
        found[place] = int(sign)
    return found


def _wanted(to: Any, classes: NDArray[Any]) -> list[bool] | None:
    if to is None:
        return None
    known = classes.tolist()
    if to not in known:
        raise InvalidInputError(f"to must be a class of the model, {shown(known)}, got {shown(to)}")
    return [label == to for label in known]


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: numbers, booleans and text as they are, everything else as text."""
    value = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value
    return value if isinstance(value, bool | int | float | str) else str(value)
