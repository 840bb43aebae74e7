"""Random monotone constraints on binary data and on encoded tables, with what they allow by definition."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from oracles.instances import Instance, random_instance
from oracles.monotone import Column, binary_columns, has_empty_leaf, is_monotone

from accel_oct.constraints import Monotone
from accel_oct.data import BinaryDataset
from accel_oct.encoding.conditions import Condition, value_sets

NUMBERS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class MonotoneCase:
    """Data, constraints, and the columns of the data."""

    instance: Instance
    dataset: BinaryDataset
    columns: list[Column]
    constraints: list[Monotone]

    def allows(self, nested: Any) -> bool:
        """Whether the constraints allow a tree, by enumeration of all points."""
        if has_empty_leaf(nested, self.dataset.X[self.dataset.weights > 0]):
            return False
        return all(self._one_allows(each, nested) for each in self.constraints)

    def _one_allows(self, constraint: Monotone, nested: Any) -> bool:
        labels = self.dataset.classes.tolist()
        order = labels if constraint.classes is None else list(constraint.classes)
        sign = 1 if constraint.direction == "increasing" else -1
        place = [column.name for column in self.columns].index(str(constraint.column))
        return is_monotone(nested, self.columns, place, [sign * order.index(label) for label in labels])


def random_case(rng: np.random.Generator, max_depth: int | None = None) -> MonotoneCase:
    """A small instance with one or two monotone constraints; half of them on a table with columns of several kinds."""
    depth = int(rng.choice([1, 2, 2, 2, 3])) if max_depth is None else max_depth
    while True:
        instance = random_instance(rng, max_samples=10, max_features=3 if depth == 3 else 4, max_depth=depth)
        most = 2 if depth == 3 else 3
        if 2 <= instance.dataset.n_classes <= most and instance.leaf_penalty < 0.06 and len(instance.y) > 5:
            break
    dataset, columns = instance.dataset, binary_columns(instance.X.shape[1])
    if rng.random() < 0.6:
        dataset, columns = _table(rng, instance)
    ordered = [column.name for column in columns if column.n_ordered]
    chosen = rng.choice(ordered, min(len(ordered), int(rng.integers(1, 3))), replace=False).tolist()
    return MonotoneCase(instance, dataset, columns, [_constraint(rng, name, dataset) for name in chosen])


def _constraint(rng: np.random.Generator, name: str, dataset: BinaryDataset) -> Monotone:
    classes = dataset.classes.tolist()
    order = None if rng.random() < 0.5 and not isinstance(classes[0], str) else rng.permutation(len(classes)).tolist()
    direction: Any = ["increasing", "decreasing"][int(rng.integers(2))]
    return Monotone(name, direction, None if order is None else [classes[place] for place in order])


def _table(rng: np.random.Generator, instance: Instance) -> tuple[BinaryDataset, list[Column]]:
    """The same classes and weights with other features: conditions on two columns, the first of which is ordered."""
    kinds = [_thresholds, _thresholds, _missing, _missing, _buckets]
    made = [kinds[int(rng.integers(len(kinds)))](rng), [*kinds, _categories][int(rng.integers(len(kinds) + 1))](rng)]
    kept: list[tuple[int, Condition, Any]] = []
    for at, (_, _, conditions, functions) in enumerate(made):
        for place in sorted(rng.choice(len(conditions), 2, replace=False).tolist()):
            kept.append((at, replace(conditions[place], column=at), functions[place]))
    columns = [
        Column(f"c{at}", values, n_ordered, [function for own, _, function in kept if own == at])
        for at, (values, n_ordered, _, _) in enumerate(made)
    ]
    n = len(instance.y)
    raw = [[column.values[int(rng.integers(len(column.values)))] for _ in range(n)] for column in columns]
    X = np.array([[function(raw[at][row]) for at, _, function in kept] for row in range(n)])
    dataset = replace(
        BinaryDataset.from_arrays(X, instance.y, instance.sample_weight),
        sources=tuple(f"c{at}" for at, _, _ in kept),
        value_sets=value_sets([condition for _, condition, _ in kept]),
    )
    return dataset, columns


_Made = tuple[list[Any], int, list[Condition], list[Any]]


def _thresholds(rng: np.random.Generator) -> _Made:
    limits = sorted(rng.choice([0.5, 1.5, 2.5, 3.5, 4.5], 3, replace=False).tolist())
    conditions = [Condition(0, "at_least", low=limit) for limit in [*limits, limits[0]]]
    return [*NUMBERS], 6, conditions, [lambda v, low=c.low: v >= low for c in conditions]


def _missing(rng: np.random.Generator) -> _Made:
    limits = sorted(rng.choice([0.5, 1.5, 2.5, 3.5, 4.5], 2, replace=False).tolist())
    conditions = [Condition(0, "at_least", low=low, missing=held) for low in limits for held in (False, True)]
    functions: list[Any] = [
        lambda v, low=c.low, held=c.missing: held if math.isnan(v) else v >= low for c in conditions
    ]
    return [*NUMBERS, math.nan], 6, [*conditions, Condition(0, "is_missing")], [*functions, math.isnan]


def _buckets(rng: np.random.Generator) -> _Made:
    a, b = sorted(rng.choice([0.5, 1.5, 2.5, 3.5, 4.5], 2, replace=False).tolist())
    conditions = [
        Condition(0, "between", high=a),
        Condition(0, "between", low=a, high=b),
        Condition(0, "between", low=b),
    ]
    return [*NUMBERS, math.nan], 6, conditions, [lambda v: v < a, lambda v: a <= v < b, lambda v: v >= b]


def _categories(rng: np.random.Generator) -> _Made:
    conditions = [
        Condition(0, "equals", value="u"),
        Condition(0, "equals", value="v"),
        Condition(0, "none_of", values=("u", "v")),
        Condition(0, "equals", value="u", missing=True),
        Condition(0, "is_missing"),
    ]
    functions = [
        lambda v: v == "u",
        lambda v: v == "v",
        lambda v: v is not None and v not in ("u", "v"),
        lambda v: v in ("u", None),
        lambda v: v is None,
    ]
    return ["u", "v", "another", None], 0, conditions, functions
