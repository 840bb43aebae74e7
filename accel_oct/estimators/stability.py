"""Refit a classifier on bootstrap samples, and count how often its splits come back."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.tables import is_indexable
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.estimators.held_out import rows_of
from accel_oct.estimators.in_pieces import in_memory_only
from accel_oct.estimators.training import CheckedRows
from accel_oct.export.view import view
from accel_oct.reasons.changes import Routes
from accel_oct.reasons.stability import SplitStability, Stability
from accel_oct.support.arguments import whole_number
from accel_oct.support.progress import Reporter, Sink
from accel_oct.support.stopping import Clock, remembered_interrupts

_NEAR = 0.25
"""A threshold counts as the same within this share of the interquartile range of its column."""


@dataclass(frozen=True)
class _Split:
    """What counts as a split of the fitted tree."""

    condition: Condition
    low: float
    high: float

    def matches(self, other: Condition) -> bool:
        if other.column != self.condition.column:
            return False
        if self.condition.low is None and self.condition.high is None:
            return other.plain == self.condition.plain
        limits = [limit for limit in (other.low, other.high) if limit is not None]
        return any(self.low <= limit <= self.high for limit in limits)


def bootstrap_stability(
    model: Any,
    X: Any,
    y: Any,
    given: tuple[Any, Any, Any],
    *,
    n_samples: int,
    seed: int,
    time_limit: float | None,
    progress: Sink | None,
) -> Stability:
    """Implement `OptimalTreeClassifier.stability`; `given` is (sample_weight, sensitive_features, costs)."""
    n_wanted = whole_number(n_samples, "n_samples", 1)
    rng = np.random.default_rng(whole_number(seed, "seed"))
    if not isinstance(model.encoder_, BinaryEncoder):
        raise InvalidInputError("stability needs an encoder of accel_oct, which knows the columns of X")
    base = clone(model).set_params(calibrate=None, verbose=0, progress=None)
    source = clone(base)._source(X, y, given)
    if not isinstance(source, CheckedRows):
        raise in_memory_only("stability")
    data = source.X if is_indexable(source.X) else source.table
    labels = source.classes[source.codes]
    splits = _splits(model)
    own = model.predict(source.table)
    clock = Clock(time.perf_counter(), time_limit)
    reporter = Reporter(progress, lambda: clock.seconds)
    counts, columns = np.zeros(len(splits)), Counter[int]()
    agreed: list[float] = []
    failed = 0
    reporter.begin("bootstrap", lambda: ("", {"trees": (len(agreed) + failed, n_wanted)}))
    with remembered_interrupts() as interrupted:
        for number in range(n_wanted):
            left = clock.left
            if interrupted.is_set() or reporter.stop_requested or left == 0:
                break
            chosen = rng.integers(0, len(labels), len(labels))
            limits = [limit for limit in (base.time_limit, left) if limit is not None]
            tree = clone(base).set_params(time_limit=min(limits, default=None))
            weights = source.weights[chosen] if source.weighted else None
            part = reporter.part(f"bootstrap {number + 1} of {n_wanted}")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a sample may lack a category or a class
                    tree._fit(
                        rows_of(data, chosen), labels[chosen], (weights, source.attached.of_rows(chosen), None), part
                    )
            except NoTreeError:
                failed += 1
                continue
            asked = [tree.encoder_.conditions_[feature] for feature in tree.tree_.tree.features_used]
            counts += [any(split.matches(condition) for condition in asked) for split in splits.values()]
            columns.update({condition.column for condition in asked})
            agreed.append(float(np.mean(tree.predict(source.table) == own)))
            reporter.report()
    return _summary(model, splits, counts, columns, agreed, (n_wanted, failed, seed))


def _splits(model: Any) -> dict[int, _Split]:
    """Return, by node, what counts as a split of the fitted tree."""
    found = {}
    for node in np.flatnonzero(model.tree_.feature >= 0).tolist():
        condition = model.encoder_.conditions_[model.tree_.feature[node]]
        limit = condition.low if condition.low is not None else condition.high
        spread = model.spreads_.get(condition.column)
        reach = 0.0 if spread is None else _NEAR * spread.spread
        found[node] = _Split(condition, *((0.0, 0.0) if limit is None else (limit - reach, limit + reach)))
    return found


def _summary(
    model: Any, splits: dict[int, _Split], counts: Any, columns: Counter[int], agreed: list[float], how: tuple[int, ...]
) -> Stability:
    tree, n_trees = view(model), len(agreed)
    units = Routes(model.tree_, model.encoder_, model.spreads_).units
    each = max(n_trees, 1)
    listed = []
    for (node, split), number in zip(splits.items(), counts.tolist(), strict=True):
        name = tree.column_names[split.condition.column]
        near = "the same condition"
        if split.condition.low is not None or split.condition.high is not None:
            near = f"{name} split within {units[split.condition.column].span(split.low, split.high)}"
        share = columns[split.condition.column] / each
        listed.append(SplitStability(node, tree.nodes[node].question, near, number / each, share))
    used = {tree.column_names[column]: number / each for column, number in columns.most_common()}
    agreement = float(np.mean(agreed)) if agreed else 0.0
    return Stability(n_trees, how[0], how[1], how[2], tuple(listed), used, agreement)
