"""Scores of treatments: what each row is estimated to bring under each treatment, from rows that received one.

With the outcome y, the received treatment t, an estimate m_k(x) of the mean outcome under treatment k, and an estimate
e_k(x) of the probability to receive it (the propensity), the score of treatment k is

- direct: ``m_k(x)``;
- inverse propensity: ``y / e_t(x)`` for the received treatment, 0 for the others;
- doubly robust: ``m_k(x)``, plus ``(y - m_t(x)) / e_t(x)`` for the received treatment.

Models are cross-fitted: those that score a row were fitted without it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from accel_oct.encoding.model_matrix import ModelMatrix
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arguments import as_whole
from accel_oct.support.arrays import FloatArray, IntArray

METHODS = ("doubly_robust", "direct", "inverse_propensity")

#: Share of the rows with a propensity below the limit from which on a warning is emitted.
_SHARE_WITHOUT_OVERLAP = 0.05


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows that received a treatment each.

    Attributes
    ----------
    table : Table
    treatments : array
        Labels of the treatments, sorted.
    codes : int array
        Index of the treatment that each row received.
    outcome : float array
    weights : float array or None
    """

    table: Table
    treatments: Any
    codes: IntArray
    outcome: FloatArray
    weights: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class ScoreSettings:
    """The parameters of `OptimalPolicyTree` that define scores."""

    method: Any = "doubly_robust"
    outcome_model: Any = None
    propensity_model: Any = None
    cv: Any = 5
    clip: Any = 0.01
    random_state: Any = 0

    @classmethod
    def of(cls, model: Any) -> ScoreSettings:
        """Return the parameters of an estimator; an invalid one raises InvalidInputError."""
        names = ("method", "outcome_model", "propensity_model", "cv", "clip", "random_state")
        found = cls(**{name: getattr(model, name) for name in names})
        if found.method not in METHODS:
            raise InvalidInputError(f"method must be one of {', '.join(map(repr, METHODS))}, got {shown(found.method)}")
        clip = found.clip
        number = isinstance(clip, int | float | np.integer | np.floating) and not isinstance(clip, bool)
        if not number or not 0 <= clip < 0.5:
            raise InvalidInputError(f"clip must be a number of at least 0 and below 0.5, got {shown(clip)}")
        if not hasattr(found.cv, "split") and (as_whole(found.cv) or 0) < 2:
            raise InvalidInputError(
                f"cv must be a number of folds of at least 2, or a splitter of scikit-learn, got {shown(found.cv)}"
            )
        outcomes, propensities = found.outcome_model, found.propensity_model
        if outcomes is not None and not (hasattr(outcomes, "fit") and hasattr(outcomes, "predict")):
            raise InvalidInputError(f"outcome_model must be a regressor or a classifier, got {shown(outcomes)}")
        if propensities is not None and not (hasattr(propensities, "fit") and hasattr(propensities, "predict_proba")):
            raise InvalidInputError(
                f"propensity_model must be a classifier with predict_proba, got {shown(propensities)}"
            )
        return found

    @property
    def uses_outcomes(self) -> bool:
        return bool(self.method != "inverse_propensity")

    @property
    def uses_propensities(self) -> bool:
        return bool(self.method != "direct")

    def folds(self, trial: Trial, X: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the training and the held-out rows of each fold; every training set has every treatment."""
        from sklearn.model_selection import StratifiedKFold

        splitter, codes = self.cv, trial.codes
        used = np.ones(len(codes), dtype=bool) if trial.weights is None else trial.weights > 0
        if not hasattr(splitter, "split"):
            splitter = StratifiedKFold(int(splitter), shuffle=True, random_state=self.random_state)
            counts = np.bincount(codes[used], minlength=len(trial.treatments))
            fewest = int(counts.argmin())
            if counts[fewest] < splitter.n_splits:
                some = "rows" if used.all() else "rows of positive weight"
                raise InvalidInputError(
                    f"treatment: {shown(trial.treatments.tolist()[fewest])} has fewer {some} ({counts[fewest]}) than "
                    f"the {splitter.n_splits} folds of cv: lower cv, or leave out the rows of this treatment"
                )
        seen = np.zeros(len(codes), dtype=np.int64)
        for train, held_out in splitter.split(X, codes):
            if len(np.unique(codes[train][used[train]])) < len(trial.treatments):
                raise InvalidInputError(
                    "cv: the training rows of a fold lack a treatment, or give it no weight; use stratified folds"
                )
            seen[held_out] += 1
            yield train, held_out
        if not (seen == 1).all():
            raise InvalidInputError("cv must hold out every row exactly once, as KFold does")


@dataclass(frozen=True, eq=False)
class ScoreModels:
    """Fitted models of outcomes and propensities."""

    settings: ScoreSettings
    treatments: Any
    matrix: ModelMatrix
    outcomes: tuple[Any, ...]
    propensities: Any

    @classmethod
    def fit(cls, trial: Trial, settings: ScoreSettings) -> ScoreModels:
        """Fit the models that the method uses on all rows."""
        matrix = ModelMatrix.of(trial.table)
        rows = np.arange(len(trial.codes))
        return _fitted(trial, settings, matrix, matrix.read(trial.table), rows)

    def scores(self, trial: Trial) -> FloatArray:
        """Return the scores of other rows than those that the models were fitted on, (n_samples, n_treatments)."""
        X, settings = self.matrix.read(trial.table), self.settings
        means = self.outcome_means(X) if settings.uses_outcomes else None
        return _combined(trial, settings, means, self.propensity(X) if settings.uses_propensities else None)

    def outcome_means(self, X: FloatArray) -> FloatArray:
        """Return the estimated mean outcome of each row under each treatment."""
        means = np.column_stack([_mean(model, X) for model in self.outcomes])
        if not np.isfinite(means).all():
            raise InvalidInputError("outcome_model predicts a NaN or infinite outcome")
        return means

    def propensity(self, X: FloatArray) -> FloatArray:
        """Return the estimated probability of each treatment."""
        found = np.asarray(self.propensities.predict_proba(X), dtype=np.float64)
        if found.shape != (len(X), len(self.treatments)) or not np.isfinite(found).all() or (found < 0).any():
            raise InvalidInputError("propensity_model: predict_proba must return a probability for each treatment")
        return found


def cross_fitted_scores(trial: Trial, settings: ScoreSettings) -> FloatArray:
    """Return the score of every treatment for every row, from models that were fitted on the other folds."""
    matrix = ModelMatrix.of(trial.table)
    X, shape = matrix.read(trial.table), (len(trial.codes), len(trial.treatments))
    means = np.zeros(shape) if settings.uses_outcomes else None
    propensities = np.zeros(shape) if settings.uses_propensities else None
    for train, held_out in settings.folds(trial, X):
        models = _fitted(trial, settings, matrix, X, train)
        if means is not None:
            means[held_out] = models.outcome_means(X[held_out])
        if propensities is not None:
            propensities[held_out] = models.propensity(X[held_out])
    if propensities is not None:
        _warn_of_overlap(trial, propensities, settings.clip)
    return _combined(trial, settings, means, propensities)


def _combined(
    trial: Trial, settings: ScoreSettings, means: FloatArray | None, propensities: FloatArray | None
) -> FloatArray:
    """Return the scores of the method from its estimates."""
    rows, received = np.arange(len(trial.codes)), trial.codes
    scores = np.zeros((len(rows), len(trial.treatments))) if means is None else means.copy()
    if propensities is not None:
        own = np.maximum(propensities[rows, received], settings.clip)
        if not own.all():
            row = int(np.flatnonzero(own == 0)[0])
            label = trial.treatments.tolist()[received[row]]
            raise InvalidInputError(
                f"propensity_model: row {row} received {shown(label)} with an estimated probability of 0; give clip a "
                "value above 0, or use method='direct'"
            )
        scores[rows, received] += (trial.outcome - scores[rows, received]) / own
    return scores


def _fitted(trial: Trial, settings: ScoreSettings, matrix: ModelMatrix, X: FloatArray, rows: IntArray) -> ScoreModels:
    """Fit the models that the method uses on some rows."""
    codes, outcome = trial.codes[rows], trial.outcome[rows]
    weights = None if trial.weights is None else trial.weights[rows]
    outcomes = []
    if settings.uses_outcomes:
        for place in range(len(trial.treatments)):
            own = codes == place
            model = _outcome_model(settings, trial.outcome)
            outcomes.append(_fit(model, X[rows][own], outcome[own], weights, own, "outcome_model"))
    propensities = None
    if settings.uses_propensities:
        every = np.ones(len(rows), dtype=bool)
        propensities = _fit(_propensity_model(settings), X[rows], codes, weights, every, "propensity_model")
    return ScoreModels(settings, trial.treatments, matrix, tuple(outcomes), propensities)


def _outcome_model(settings: ScoreSettings, outcome: FloatArray) -> Any:
    if settings.outcome_model is None:
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(min_samples_leaf=5, random_state=settings.random_state)
    if is_classifier(settings.outcome_model) and not np.isin(outcome, (0.0, 1.0)).all():
        raise InvalidInputError("outcome_model is a classifier, which needs outcomes of 0 and 1; use a regressor")
    return clone(settings.outcome_model)


def _propensity_model(settings: ScoreSettings) -> Any:
    if settings.propensity_model is None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import StandardScaler

        return Pipeline([("scale", StandardScaler()), ("logistic", LogisticRegression(max_iter=1000))])
    return clone(settings.propensity_model)


def _fit(model: Any, X: FloatArray, y: Any, weights: FloatArray | None, own: Any, name: str) -> Any:
    """Fit a model with the weights of its rows."""
    from sklearn.dummy import DummyRegressor
    from sklearn.pipeline import Pipeline

    if name == "outcome_model" and is_classifier(model):
        if (y == y[0]).all():
            return DummyRegressor().fit(X, y)  # classifiers cannot be fitted to a single class
        y = y.astype(np.int64)
    if weights is None:
        return model.fit(X, y)
    last = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
    if not has_fit_parameter(last[1], "sample_weight"):
        raise InvalidInputError(f"{name}: a {type(last[1]).__name__} does not support sample_weight; use another model")
    key = f"{last[0]}__sample_weight" if last[0] else "sample_weight"
    return model.fit(X, y, **{key: weights[own]})


def _mean(model: Any, X: FloatArray) -> FloatArray:
    """Return the mean outcome that a fitted model predicts."""
    found = model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X)
    return np.asarray(found, dtype=np.float64).reshape(len(X))


def _warn_of_overlap(trial: Trial, propensities: FloatArray, clip: float) -> None:
    """Warn if many rows hardly had a chance to receive some treatment."""
    shares = (propensities < max(clip, np.finfo(float).tiny)).mean(axis=0)
    place = int(shares.argmax())
    if shares[place] > _SHARE_WITHOUT_OVERLAP:
        warnings.warn(
            f"treatment {shown(trial.treatments.tolist()[place])} has an estimated probability below {clip:g} for "
            f"{shares[place]:.0%} of the rows: what it would bring there is extrapolated; leave out rows that cannot "
            "receive it",
            UserWarning,
            stacklevel=5,
        )


# ---------------------------------------------------------------- estimates of means


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error.

    Attributes
    ----------
    mean, standard_error : float
    """

    mean: float
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of 95 % by the normal distribution."""
        half = 1.959963984540054 * self.standard_error
        return self.mean - half, self.mean + half

    @classmethod
    def of(cls, values: FloatArray, weights: FloatArray | None = None) -> Estimate:
        """Return the weighted mean of independent values; the standard error of a single value is NaN."""
        used = np.ones(len(values)) if weights is None else weights
        values, used = values[used > 0], used[used > 0]
        total, n = math.fsum(used), len(values)
        mean = math.fsum(used * values) / total
        spread = math.sqrt(math.fsum((used * (values - mean)) ** 2)) / total
        return cls(mean, spread * math.sqrt(n / (n - 1)) if n > 1 else math.nan)


@dataclass(frozen=True)
class PolicyValue:
    """Estimated mean reward of a policy, beside that of one treatment for everyone.

    Attributes
    ----------
    estimate, standard_error : float
        Mean reward of the policy.
    constant : dict
        `Estimate` of the mean reward if every row receives the treatment.
    gain : dict
        `Estimate` of the policy's mean reward minus that; its standard error is of the differences row by row.
    shares : dict
        Share of the weight of the rows to which the policy assigns the treatment.
    n_rows : int
    """

    policy: Estimate
    constant: dict[Any, Estimate]
    gain: dict[Any, Estimate]
    shares: dict[Any, float]
    n_rows: int

    @classmethod
    def of(cls, rewards: FloatArray, assigned: IntArray, treatments: Any, weights: FloatArray | None) -> PolicyValue:
        """Return the value on rows with rewards (n_rows, n_treatments) and the index of the assigned treatment."""
        own, labels = rewards[np.arange(len(rewards)), assigned], treatments.tolist()
        used = np.ones(len(rewards)) if weights is None else weights
        return cls(
            Estimate.of(own, weights),
            {label: Estimate.of(rewards[:, place], weights) for place, label in enumerate(labels)},
            {label: Estimate.of(own - rewards[:, place], weights) for place, label in enumerate(labels)},
            {label: float(used[assigned == place].sum() / used.sum()) for place, label in enumerate(labels)},
            len(rewards),
        )

    @property
    def estimate(self) -> float:
        return self.policy.mean

    @property
    def standard_error(self) -> float:
        return self.policy.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of 95 % of the policy's mean reward."""
        return self.policy.interval

    def __str__(self) -> str:
        low, high = self.interval
        lines = [
            f"mean reward {self.estimate:.6g} +- {self.standard_error:.3g} (95 %: {low:.6g} to {high:.6g}), "
            f"{self.n_rows} rows"
        ]
        for label, alone in self.constant.items():
            gain = self.gain[label]
            lines.append(
                f"{label}: assigned to {self.shares[label]:.1%}; for everyone {alone.mean:.6g} +- "
                f"{alone.standard_error:.3g}, the policy brings {gain.mean:+.6g} +- {gain.standard_error:.3g}"
            )
        return "\n".join(lines)


def with_method(settings: ScoreSettings, method: str | None) -> ScoreSettings:
    """Return settings with another method, if one is given."""
    return settings if method is None else replace(settings, method=method)
