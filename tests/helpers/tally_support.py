"""Random data as rows and as a tally, with constraints that say the same of both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from oracles.instances import Instance

from accel_oct.constraints import ConditionalParity, Linear
from accel_oct.data import Tally
from helpers.constraint_support import KINDS, random_constraint

TALLY_KINDS = tuple(kind for kind in KINDS if kind is not ConditionalParity)


class Case(NamedTuple):
    """Rows, their tally, and constraints for either."""

    instance: Instance
    tally: Tally
    constraints: list[Any]
    on_tally: list[Any]


def exact_weights(rng: np.random.Generator, instance: Instance) -> Instance:
    """None, whole ones, or multiples of a quarter, which a tally keeps as they are."""
    kind, n = int(rng.integers(3)), len(instance.y)
    if kind == 0:
        return replace(instance, sample_weight=None)
    weights = rng.integers(0, 4, n) if kind == 1 else rng.integers(0, 9, n) / 4
    weights = weights.astype(float)
    weights[int(rng.integers(n))] += 1
    return replace(instance, sample_weight=weights)


def random_case(rng: np.random.Generator, instance: Instance, kinds: list[type], depth: int | None = None) -> Case:
    """The groups are those of the first constraint that has any; all others take them too."""
    n, dataset = len(instance.y), instance.dataset
    constraints = [random_constraint(rng, kind, instance) for kind in kinds]
    groups = [constraint.group for constraint in constraints if hasattr(constraint, "group")]
    group = np.asarray(groups[0]) if groups else rng.integers(0, 2, n)
    tally = Tally.of(
        instance.X,
        instance.y,
        depth=instance.max_depth if depth is None else depth,
        sample_weight=instance.sample_weight,
        sensitive_features=group,
    )
    place = np.searchsorted(tally.group_labels, group)
    on_rows, on_tally = [], []
    for constraint in constraints:
        if isinstance(constraint, Linear):
            by_cell = rng.integers(-2, 3, (tally.n_cells, tally.n_classes)).astype(float)
            predictions = by_cell[dataset.y * tally.n_groups + place] * dataset.weights[:, None]
            used = float(predictions[np.arange(n), instance.X[:, 0] * 1].sum())
            upper = used + float(rng.integers(2))
            on_rows.append(replace(constraint, predictions=predictions, lower=None, upper=upper))
            on_tally.append(replace(on_rows[-1], predictions=by_cell))
        elif hasattr(constraint, "group"):
            on_rows.append(replace(constraint, group=group))
            on_tally.append(replace(constraint, group=None))
        else:
            on_rows.append(constraint)
            on_tally.append(constraint)
    return Case(instance, tally, on_rows, on_tally)
