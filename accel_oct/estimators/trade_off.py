"""Trade-off between objective and constraint: the best tree for each limit, with optional held-out scores."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from accel_oct.constraints import bind_all
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.labels import as_labels
from accel_oct.encoding.tables import is_indexable
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
from accel_oct.estimators.base import TreeClassifier
from accel_oct.estimators.constraint_table import aligned, data_frame
from accel_oct.estimators.every_split import TableSearch
from accel_oct.estimators.held_out import held_out_data, objective_score, rows_of
from accel_oct.estimators.in_pieces import in_memory_only
from accel_oct.estimators.rules import check_splittable, nested_parameters
from accel_oct.estimators.training import CheckedRows, Solved
from accel_oct.solving.result import Scope
from accel_oct.support.arguments import as_whole
from accel_oct.support.stopping import Clock

if TYPE_CHECKING:
    from accel_oct.estimators.classifier import OptimalTreeClassifier

_LIMITS = ("at_most", "at_least", "upper", "lower", "n", "share", "amount", "samples")


@dataclass(frozen=True, eq=False)
class TradeOffPoint:
    """Best tree for one limit of the constraint.

    Attributes
    ----------
    limit : float
        Limit of the constraint.
    value : float or None
        Value of the constraint on the training data.
    score : float
        Training score without leaf penalties: accuracy, or the score of the objective.
    objective, bound : float
        With leaf penalties; no tree of the scope that satisfies the limit has an objective above the bound.
    status : str
        "optimal" and "infeasible" are proven for the trees of `TradeOff.scope`.
    multiplier : float or None
        Change of the objective per unit of the limit, to first order.
    model : OptimalTreeClassifier or None
        Classifier fitted on all data; None if there is no tree.
    test_value, test_score, test_value_error, test_score_error : float or None
        With `cv`: means over the held-out folds, and their standard errors.
    """

    limit: float
    value: float | None
    score: float
    objective: float
    bound: float
    status: str
    multiplier: float | None
    model: OptimalTreeClassifier | None
    test_value: float | None = None
    test_score: float | None = None
    test_value_error: float | None = None
    test_score_error: float | None = None


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Points by limit; `print` shows a table, `accel_oct.plotting.plot_trade_off` plots them.

    Attributes
    ----------
    name : str
        Name of the constraint.
    score_name : str
    points : tuple of TradeOffPoint
        By increasing limit.
    scope : Scope or None
        Trees that were searched. A tree over other splits may satisfy a limit that is infeasible for these.
    """

    name: str
    score_name: str
    points: tuple[TradeOffPoint, ...]
    scope: Scope | None = None

    def __iter__(self) -> Iterator[TradeOffPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, place: int) -> TradeOffPoint:
        return self.points[place]

    def to_frame(self) -> Any:
        """Return a pandas data frame."""
        names = [field.name for field in fields(TradeOffPoint) if field.name != "model"]
        return data_frame([[getattr(point, name) for name in names] for point in self.points], names)

    def __str__(self) -> str:
        tested = any(point.test_score is not None for point in self.points)
        head = [self.name, "reached", self.score_name, "status", *(["held out", "reached"] if tested else [])]
        lines = [head]
        for point in self.points:
            row = [f"{point.limit:g}", _short(point.value), _short(point.score), point.status]
            lines.append(row + ([_short(point.test_score), _short(point.test_value)] if tested else []))
        return "\n".join([*aligned(lines), *([] if self.scope is None else [f"status: among trees {self.scope}"])])


def trade_off(
    model: OptimalTreeClassifier,
    X: Any,
    y: Any = None,
    *,
    limits: Iterable[float],
    constraint: int = 0,
    sample_weight: Any = None,
    sensitive_features: Any = None,
    costs: Any = None,
    cv: Any = None,
) -> TradeOff:
    """Return the best tree for each limit of one constraint, for example the accuracy lost by each 0.01 of parity.

    Parameters
    ----------
    model : OptimalTreeClassifier, or fitted OptimalTreeClassifierCV
        Model with the constraint in its `constraints`; fitted or not. It is not changed.
    X, y, sample_weight, sensitive_features, costs
        As in `OptimalTreeClassifier.fit`; or an `EncodedTable` alone.
    limits : iterable of float
        Values that replace the limit of the constraint.
    constraint : int
        Index of the constraint in `model.constraints`.
    cv : int, splitter, iterable or None
        Also fit every limit on the training rows of each fold, and compute score and constraint on the held-out rows;
        needs the rows in memory.
    """
    if hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if not (isinstance(model, TreeClassifier) and hasattr(model, "encode")):
        raise InvalidInputError(
            f"model must be an OptimalTreeClassifier, or an OptimalTreeClassifierCV that is fitted, got {shown(model)}"
        )
    field, asked = _limit_field(model, constraint), _checked(limits)
    base: OptimalTreeClassifier = clone(model)
    if cv is not None and isinstance(X, EncodedTable):
        raise in_memory_only("cross-validation")
    given = (sample_weight, sensitive_features, costs)
    source = base._source(X, y, given, in_memory="" if cv is None else "cross-validation")
    fitting = _Fitting(base, source)
    if cv is not None:
        data = fitting.data
        check_splittable(bind_all(base._all_constraints(data), data.dataset), data.score)
    found = [_point(base, fitting, constraint, field, limit) for limit in asked]
    if isinstance(source, CheckedRows) and cv is not None:
        tests = _held_out(base, source, constraint, field, asked, cv)
        found = [_with_tests(point, tests[place]) for place, point in enumerate(found)]
    name = type(model.constraints[constraint]).__name__
    return TradeOff(name, fitting.data.score.name, tuple(found), base._scope())


class _Fitting:
    """Rows for several classifiers that differ in a limit: over every split, or over the same chosen splits.

    Attributes
    ----------
    data : TrainingData
        Data over the chosen splits, or over those of the last tree.
    """

    def __init__(self, base: OptimalTreeClassifier, source: CheckedRows | EncodedTable) -> None:
        self._searched: CheckedRows | EncodedTable | None = None
        search = TableSearch.of(base, source)
        if search is None:
            self.data = base._prepare(source)
        else:
            self._searched = source
            base.encoder_, self.data = search.orders.encoder_for([]), search.data

    def solved(self, model: OptimalTreeClassifier) -> Solved:
        """Return the best tree of a classifier."""
        search = None if self._searched is None else TableSearch.of(model, self._searched)
        if search is None:
            return Solved(model.encoder_, self.data, model._solve(self.data, model.time_limit))
        return search.solve(model.leaf_penalty, Clock(time.perf_counter(), model.time_limit))


def _limit_field(model: OptimalTreeClassifier, constraint: Any) -> str:
    listed = model.constraints
    if not listed:
        raise InvalidInputError("constraints: the classifier has none whose limit could be varied")
    if not isinstance(listed, Sequence) or as_whole(constraint) not in range(-len(listed), len(listed)):
        raise InvalidInputError(
            f"constraint must be the place of one of the model's constraints, got {shown(constraint)}"
        )
    parameters, place = nested_parameters(listed, None, None), constraint % len(listed)
    for field in _LIMITS:
        if parameters.get(f"constraints__{place}__{field}") is not None:
            return field
    raise InvalidInputError(f"constraint: {type(listed[place]).__name__} has no limit that could be varied")


def _checked(limits: Any) -> list[Any]:
    try:
        found = sorted(set(limits))
        usable = bool(found) and all(math.isfinite(limit) for limit in found)
    except TypeError:
        usable = False
    if not usable:
        raise InvalidInputError(f"limits must be one or more finite numbers, got {shown(limits)}")
    return found


def _with_limit(model: OptimalTreeClassifier, constraint: int, field: str, limit: Any) -> OptimalTreeClassifier:
    """Return a copy of the model with this limit; it shares the fitted encoder."""
    changed = model._like()
    listed = list(changed.constraints or [])
    listed[constraint] = replace(listed[constraint], **{field: limit})
    changed.constraints = listed
    return changed


def _point(base: OptimalTreeClassifier, fitting: _Fitting, constraint: int, field: str, limit: Any) -> TradeOffPoint:
    model = _with_limit(base, constraint, field, limit)
    _, data, result = fitting.solved(model)
    if result.found is None:
        return TradeOffPoint(limit, None, math.nan, result.objective, result.bound, result.status, None, None)
    model._adopt(result, data)
    report = result.constraints[constraint if constraint >= 0 else len(base.constraints or []) + constraint]
    return TradeOffPoint(
        limit,
        report.value,
        data.score.value(result.found),
        result.objective,
        result.bound,
        result.status,
        report.multiplier,
        model,
    )


def _held_out(
    base: OptimalTreeClassifier, source: CheckedRows, constraint: int, field: str, limits: list[Any], cv: Any
) -> NDArray[np.float64]:
    """Return value and score as (limits, folds, 2); NaN if there is no tree or the value is not defined."""
    from sklearn.model_selection import check_cv

    X = source.X if is_indexable(source.X) else source.table
    codes, labels, given = source.codes, np.asarray(as_labels(source.y)).reshape(-1), source.attached
    weights = source.weights if source.weighted else None
    with as_invalid_input("cv"):
        folds = list(check_cv(cv, codes, classifier=True).split(np.zeros((len(codes), 1)), codes))
    found = np.full((len(limits), len(folds), 2), np.nan)
    for fold, (train, test) in enumerate(folds):
        model: OptimalTreeClassifier = clone(base)
        train_weights, test_weights = (None if weights is None else weights[rows] for rows in (train, test))
        known = (train_weights, given.of_rows(train), None)
        fitting = _Fitting(model, model._source(rows_of(X, train), labels[train], known))
        for place, limit in enumerate(limits):
            own = _with_limit(model, constraint, field, limit)
            _, data, result = fitting.solved(own)
            if result.found is None:
                continue
            rows = held_out_data(own, rows_of(X, test), labels[test], test_weights, given.of_rows(test))
            try:
                value = own.constraints[constraint].bind(rows).value(result.found)
            except InvalidInputError:
                value = None  # the fold lacks a group
            found[place, fold, 0] = math.nan if value is None else value
            found[place, fold, 1] = objective_score(own, result.found, rows, data.class_factors)
    return found


def _with_tests(point: TradeOffPoint, tests: NDArray[np.float64]) -> TradeOffPoint:
    means: list[float | None] = []
    errors: list[float | None] = []
    for column in tests.T:
        known = column[~np.isnan(column)]
        means.append(float(known.mean()) if known.size else None)
        errors.append(float(known.std(ddof=1) / math.sqrt(known.size)) if known.size > 1 else None)
    return replace(
        point, test_value=means[0], test_score=means[1], test_value_error=errors[0], test_score_error=errors[1]
    )


def _short(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.4f}"
