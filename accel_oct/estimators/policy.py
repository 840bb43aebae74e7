"""Optimal policy trees: a treatment for each row, with the largest mean reward."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from accel_oct.constraints import (
    Constraint,
    EqualisedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    Precision,
    PredictiveEquality,
    Recall,
    Specificity,
)
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.labels import as_labels, encode_labels
from accel_oct.data.weights import as_weights
from accel_oct.encoding.base import check_table
from accel_oct.encoding.tables import as_frame, frame_columns
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
from accel_oct.estimators.by_name import GivenData, given_data, taken_column
from accel_oct.estimators.constraint_table import ConstraintTable
from accel_oct.estimators.in_pieces import in_memory_only
from accel_oct.estimators.optimal import OptimalTreeModel
from accel_oct.estimators.policy_scores import (
    PolicyValue,
    ScoreModels,
    ScoreSettings,
    Trial,
    cross_fitted_scores,
    with_method,
)
from accel_oct.estimators.rules import column_constraints, excluded_columns
from accel_oct.estimators.training import CheckedRows, RowValues, TrainingData, attached
from accel_oct.export import to_sklearn
from accel_oct.export.stored_model import MAX_BYTES, POLICY, read_json
from accel_oct.live import watched
from accel_oct.mip import Solver
from accel_oct.objectives.built_in import COSTS, MeanReward, numbers
from accel_oct.pieces.detection import is_in_pieces, is_table_file
from accel_oct.solving.result import Result
from accel_oct.support.arguments import number_array
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.support.progress import Sink, announce

_ABOUT_TRUE_CLASSES = (
    *(EqualOpportunity, EqualisedOdds, PredictiveEquality),
    *(FalsePositiveRate, Precision, Recall, Specificity),
)
"""Constraints that compare predictions with true classes, of which a policy has none."""

_LEAST_SPREAD = 1e-9
"""Least weight of a row for the encoder, relative to the row with the most different rewards."""


class OptimalPolicyTree(OptimalTreeModel):
    """Tree that assigns a treatment to each row, with proven largest mean reward.

    `fit` maximises ``(mean reward of the training rows) - leaf_penalty * (number of leaves)`` over all trees of depth
    at most `max_depth`, where the reward of a row is what it is estimated to bring under the treatment that the tree
    assigns: its outcome, minus the cost of the treatment. The estimates are those of `method`, from rows that received
    one treatment each; `fit_rewards` takes rewards that are known, or estimated elsewhere.

    The proof is about these rewards: no tree has a larger mean of them. How good the policy is on other rows is what
    `value` estimates, on rows that `fit` has not seen.

    Parameters
    ----------
    max_depth : int or None
        Maximum depth; 0 assigns one treatment to everyone. None means no limit, and requires ``leaf_penalty > 0`` or
        `max_leaf_nodes`.
    leaf_penalty : float
        Mean reward that each further leaf must add, in the unit of the outcome.
    method : {"doubly_robust", "direct", "inverse_propensity"}
        Estimate of the outcome of a row under each treatment. "direct": predictions of the outcome model, one per
        treatment. "inverse_propensity": the observed outcome over the probability of the treatment received, 0 for
        other treatments. "doubly_robust": the predictions, plus the observed error over that probability; the mean is
        right if either model is.
    outcome_model : regressor or classifier of scikit-learn, or None
        Fitted for each treatment on the rows that received it. A classifier needs outcomes of 0 and 1, and its
        probability of 1 is used. None: ``RandomForestRegressor(min_samples_leaf=5)``. Models receive all columns of X
        as numbers: categories as columns of 0 and 1, missing values as the median beside a column that marks them.
    propensity_model : classifier of scikit-learn, or None
        Predicts the probability of each treatment. None: logistic regression. In a trial with equal chances for all
        rows, ``DummyClassifier()`` uses the shares of the treatments.
    cv : int or splitter
        Folds of the cross-fitting: the models that score a row were fitted without it.
    clip : float
        Estimated probabilities of the treatment received are raised to this, so that single rows do not decide. A
        warning tells if more than 5 % of the rows have such a small probability for some treatment.
    minimise : bool
        Whether small outcomes are good: the reward is then minus the outcome, minus the cost.
    treatment_costs : mapping, sequence or None
        Cost of each treatment in the unit of the outcome, subtracted from the reward: by label (others cost 0), or in
        the order of `treatments_`.
    random_state : int
        Of the folds and of the default outcome model.
    solver, time_limit, encoder, missing
        As in `OptimalTreeClassifier`; the time limit includes the estimation of rewards, which it does not interrupt.
    constraints : list of Constraint or None
        Constraints on the tree, where treatments take the place of classes: ``PositiveBudget(0.2, positive="drug")``
        assigns "drug" to at most 20 % of the rows, ``StatisticalParity(group, 0.05, positive="drug")`` at similar rates
        in all groups. Not those that compare predictions with true classes, such as `Recall`.
    min_samples_leaf, max_leaf_nodes, max_features_used, monotonic_cst, exclude, interaction_cst
        As in `OptimalTreeClassifier`. Excluded columns are still used by the models of outcome and propensity.
    progress, verbose
        As in `OptimalTreeClassifier`.

    Attributes
    ----------
    treatments_ : array
        Treatments in sorted order.
    rewards_ : float array (n_samples, n_treatments)
        Rewards of the training rows, of which the tree has the largest mean; not stored by `to_json`.
    n_features_in_, feature_names_in_, encoder_
        As in `OptimalTreeClassifier`.
    tree_ : FittedTree
        scikit-learn's arrays over the binary features; `tree_.rewards` has the mean reward of each treatment at each
        node, `tree_.value` the shares of the treatments that its rows received (after `fit_rewards`: of their best).
    objective_, bound_, gap_, status_, exact_, table_bound_, proof_, constraints_, result_
        As in `OptimalTreeClassifier`; the objective is a mean reward minus the leaf penalties.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    >>> outcome = treatment * np.sign(X[:, 0]) + rng.normal(size=500)
    >>> policy = OptimalPolicyTree(max_depth=1).fit(X, treatment, outcome)
    >>> policy.predict([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).tolist()
    [1, 0]
    """

    rewards_: FloatArray
    _score_models: ScoreModels | None
    objective: Any = MeanReward()
    class_weight: Any = None
    config: Any = "default"
    components: Any = None

    def __init__(
        self,
        max_depth: int | None = 2,
        leaf_penalty: float = 0.0,
        *,
        method: str = "doubly_robust",
        outcome_model: Any = None,
        propensity_model: Any = None,
        cv: Any = 5,
        clip: float = 0.01,
        minimise: bool = False,
        treatment_costs: Any = None,
        random_state: int | None = 0,
        solver: Solver | str = "highs",
        time_limit: float | None = None,
        encoder: Any = "auto",
        missing: str = "category",
        constraints: Sequence[Constraint] | None = None,
        min_samples_leaf: Any = 1,
        max_leaf_nodes: int | None = None,
        max_features_used: int | None = None,
        monotonic_cst: Any = None,
        exclude: Any = None,
        interaction_cst: Any = None,
        progress: Sink | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.leaf_penalty = leaf_penalty
        self.method = method
        self.outcome_model = outcome_model
        self.propensity_model = propensity_model
        self.cv = cv
        self.clip = clip
        self.minimise = minimise
        self.treatment_costs = treatment_costs
        self.random_state = random_state
        self.solver = solver
        self.time_limit = time_limit
        self.encoder = encoder
        self.missing = missing
        self.constraints = constraints
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features_used = max_features_used
        self.monotonic_cst = monotonic_cst
        self.exclude = exclude
        self.interaction_cst = interaction_cst
        self.progress = progress
        self.verbose = verbose

    # ---------------------------------------------------------------- fitting

    def fit(
        self, X: Any, treatment: Any, outcome: Any, *, sample_weight: Any = None, sensitive_features: Any = None
    ) -> OptimalPolicyTree:
        """Estimate the rewards of all treatments, and find the optimal tree.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix (n_samples, n_features)
            What the tree may split on, and what the models of outcome and propensity see. In an observational study it
            should have whatever influenced both the treatment and the outcome.
        treatment : array-like (n_samples,), or str
            Treatment that each row received, of any sortable type; or the name of its column in X.
        outcome : array-like (n_samples,), or str
            Number that each row had afterwards; or the name of its column in X.
        sample_weight : array-like (n_samples,), or str, optional
            Weights of the rows in the mean reward and in the models.
        sensitive_features : array-like (n_samples,), data frame or mapping, optional
            Groups of the rows, as in `OptimalTreeClassifier.fit`.
        """
        began = time.perf_counter()
        settings = ScoreSettings.of(self)
        with watched(self.progress, verbose=self.verbose, time_limit=self.time_limit) as progress:
            named, outcomes = _given(X, treatment, outcome, sample_weight, sensitive_features)
            table = check_table(self, named.X, reset=True)
            treatments, codes = _treatments(named.y, len(table))
            weights = None if named.sample_weight is None else as_weights(named.sample_weight, len(table))
            trial = Trial(table, treatments, codes, _outcomes(outcomes, len(table)), weights)
            self._treatment_costs(treatments)  # rejects invalid costs before models are fitted
            self._check_constraints()
            announce(progress, "rewards")
            rewards = self._rewards(cross_fitted_scores(trial, settings), treatments)
            models = ScoreModels.fit(trial, with_method(settings, "doubly_robust"))
            self._fit_rewards(named, table, treatments, codes, rewards, began, progress)
            self._score_models = models
        if not self._is_proven:
            self._warn_unproven(stacklevel=3)
        return self

    def fit_rewards(
        self, X: Any, rewards: Any, treatments: Any = None, *, sample_weight: Any = None, sensitive_features: Any = None
    ) -> OptimalPolicyTree:
        """Find the optimal tree for rewards that are given for every row and treatment.

        Parameters
        ----------
        X, sample_weight, sensitive_features
            As in `fit`.
        rewards : array-like or data frame (n_samples, n_treatments)
            What each row brings under each treatment, to be maximised. They are used as they are: `method`,
            `minimise` and `treatment_costs` are for `fit`.
        treatments : sequence, optional
            Labels of the columns of `rewards`; by default the names of the columns of a data frame, else 0, 1, ...
        """
        began = time.perf_counter()
        with watched(self.progress, verbose=self.verbose, time_limit=self.time_limit) as progress:
            named, _ = _given(X, None, None, sample_weight, sensitive_features)
            table = check_table(self, named.X, reset=True)
            labels, matrix = _reward_matrix(rewards, treatments, len(table))
            self._check_constraints()
            self._fit_rewards(named, table, labels, matrix.argmax(axis=1), matrix, began, progress)
            self._score_models = None
        if not self._is_proven:
            self._warn_unproven(stacklevel=3)
        return self

    def _fit_rewards(
        self,
        named: GivenData,
        table: Any,
        treatments: NDArray[Any],
        codes: IntArray,
        rewards: FloatArray,
        began: float,
        progress: Sink | None,
    ) -> None:
        """Find the optimal tree for checked rewards; `codes` is the treatment that each row received."""
        self.classes_ = treatments
        given = attached(named.sensitive_features, -rewards, len(table))
        ignored = excluded_columns(self.exclude, table)
        column_constraints(self)  # rejects invalid arguments before the encoding
        weights, weighted = as_weights(named.sample_weight, len(table)), named.sample_weight is not None
        checked = CheckedRows(
            *(named.X, treatments[codes], table, treatments, codes, weights, weighted),
            *(given, RowValues(table, given), ignored),
        )
        announce(progress, "encoding")
        self._search(checked, began, progress)
        self.rewards_ = rewards

    def _fitted_encoder(self, checked: CheckedRows) -> Any:
        """Fit the encoder on the best treatment of each row, weighted by what the worst one loses.

        Rows for which all treatments are equal keep a small weight: encoders ignore rows of weight 0, but constraints
        count these rows, so the splits between them and others matter.
        """
        rewards = -checked.attached.costs
        spread = rewards.max(axis=1) - rewards.min(axis=1)
        weights = np.maximum(spread, _LEAST_SPREAD * spread.max()) * checked.weights
        if not weights.any():
            return super()._fitted_encoder(checked)
        codes = rewards.argmax(axis=1).astype(np.int64)
        weighed = replace(checked, y=checked.classes[codes], codes=codes, weights=weights, weighted=True)
        return super()._fitted_encoder(weighed)

    def _adopt(self, result: Result, data: TrainingData, relabel: bool = True) -> None:
        super()._adopt(result, data, relabel)
        dataset = data.dataset
        self.tree_ = self.tree_.with_rewards(dataset.X, -dataset.row_values[COSTS], dataset.weights)

    def _check_constraints(self) -> None:
        """Raise for a constraint on true classes."""
        listed = self.constraints if isinstance(self.constraints, list | tuple) else ()
        for place, each in enumerate(listed):
            if isinstance(each, _ABOUT_TRUE_CLASSES):
                raise InvalidInputError(
                    f"constraints[{place}]: {type(each).__name__} compares predictions with true classes, and a policy "
                    "has none; use PositiveBudget, StatisticalParity, ConditionalParity or Linear"
                )

    def _rewards(self, scores: FloatArray, treatments: NDArray[Any]) -> FloatArray:
        """Return the rewards for estimated outcomes."""
        costs = self._treatment_costs(treatments)
        return numbers((-scores if self.minimise else scores) - costs, scores.shape, "outcome: estimated rewards")

    def _treatment_costs(self, treatments: NDArray[Any]) -> FloatArray:
        """Return the cost of each treatment."""
        given, labels = self.treatment_costs, treatments.tolist()
        if given is None:
            return np.zeros(len(labels))
        if isinstance(given, Mapping):
            for label in given:
                if label not in labels:
                    raise InvalidInputError(
                        f"treatment_costs names {shown(label)}, which is no treatment; these are {shown(labels)}"
                    )
            given = [given.get(label, 0.0) for label in labels]
        return number_array(given, (len(labels),), "treatment_costs", ", one cost per treatment")

    # ---------------------------------------------------------------- the fitted policy

    @property
    def treatments_(self) -> NDArray[Any]:
        """Treatments in sorted order."""
        check_is_fitted(self, "tree_")
        return self.classes_

    def value(
        self,
        X: Any,
        treatment: Any = None,
        outcome: Any = None,
        *,
        rewards: Any = None,
        sample_weight: Any = None,
        method: str = "doubly_robust",
    ) -> PolicyValue:
        """Estimate the mean reward of the policy, and of each treatment for everyone, with standard errors.

        Pass rows that `fit` has not seen. On the training rows the value is too good: the tree was chosen for them.

        Parameters
        ----------
        X : table
            As in `predict`.
        treatment, outcome, sample_weight
            Of these rows, as in `fit`. The models of outcome and propensity are those of `fit`, of all training rows.
            Without them (after `fit_rewards`, or read from JSON) they are cross-fitted on these rows.
        rewards : array-like or data frame (n_samples, n_treatments), optional
            Rewards of these rows if they are known, instead of treatment and outcome.
        method : {"doubly_robust", "direct", "inverse_propensity"}
            As the parameter; the standard error of "direct" does not contain the error of its model.

        Returns
        -------
        PolicyValue
            `estimate`, `standard_error`, `interval`; `constant` and `gain` by treatment; `shares` of the treatments.
            In the unit of rewards: minus outcomes with `minimise`, and costs are subtracted. `print` shows a table.
        """
        check_is_fitted(self, "tree_")
        known = (treatment is not None) + (outcome is not None)
        if known != (0 if rewards is not None else 2):
            raise InvalidInputError("value needs either treatment and outcome, or rewards")
        named, outcomes = _given(X, treatment, outcome, sample_weight, None, like=self)
        table = check_table(self, named.X, reset=False)
        weights = None if named.sample_weight is None else as_weights(named.sample_weight, len(table))
        assigned = np.searchsorted(self.classes_, self.predict(table))
        if rewards is not None:
            matrix = _reward_matrix(rewards, None, len(table), self.classes_)[1]
            return PolicyValue.of(matrix, assigned, self.classes_, weights)
        codes = self._codes(named.y, len(table))
        trial = Trial(table, self.classes_, codes, _outcomes(outcomes, len(table)), weights)
        settings = with_method(ScoreSettings.of(self), method)
        models = getattr(self, "_score_models", None)
        if models is None:
            scores = cross_fitted_scores(trial, ScoreSettings.of(settings))
        else:
            scores = replace(models, settings=ScoreSettings.of(settings)).scores(trial)
        return PolicyValue.of(self._rewards(scores, self.classes_), assigned, self.classes_, weights)

    def _codes(self, treatment: Any, n_rows: int) -> IntArray:
        """Return the index of the treatment that each of other rows received."""
        known, codes = encode_labels(_labels(treatment), n_rows, "treatment")
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        for label in known.tolist():
            if label not in place:
                raise InvalidInputError(
                    f"treatment: {shown(label)} is not among the treatments of fit, {shown(list(place))}"
                )
        return np.array([place[label] for label in known.tolist()], dtype=np.int64)[codes]

    def to_sklearn(self, *, encoded: bool | None = None, values: str = "labels") -> Any:
        """Return a `DecisionTreeClassifier` with the same predictions, or a pipeline with one; see `accel_oct.export`.

        Its leaves have their treatment as the only class.
        """
        return to_sklearn(self, encoded=encoded, values=values)

    @classmethod
    def from_json(cls, source: str | Path, *, max_bytes: int = MAX_BYTES) -> OptimalPolicyTree:
        """Read a policy tree that `to_json` wrote; as `OptimalTreeClassifier.from_json`.

        The models of outcome and propensity are not stored; `value` then cross-fits models on its own rows.
        """
        stored = read_json(source, max_bytes=max_bytes, kind=POLICY)
        model = cls(**stored.parameters)
        for name, value in stored.attributes.items():
            setattr(model, name, value)
        model.constraints_ = ConstraintTable.of(model.result_, model.proof_)
        return model


# ---------------------------------------------------------------- reading of arguments


def _given(
    X: Any, treatment: Any, outcome: Any, weight: Any, sensitive: Any, like: Any = None
) -> tuple[GivenData, Any]:
    """Return X, treatment (as y), weights and groups, and the outcome; columns that are given by name leave X.

    With `like`, X gets the columns that this estimator was fitted on if treatments are given by name.
    """
    if isinstance(X, EncodedTable) or is_table_file(X) or is_in_pieces(X, None):
        raise in_memory_only("a policy tree")
    if isinstance(outcome, str):
        X, outcome = taken_column(X, outcome, "outcome")
    if isinstance(treatment, str):
        taken_column(X, treatment, "treatment")  # its error names the argument
    return given_data(X, treatment, weight, sensitive, like=like), outcome


def _labels(treatment: Any) -> Any:
    if treatment is None:
        raise InvalidInputError("treatment must be given: the treatment that each row received")
    with as_invalid_input("treatment"):
        return column_or_1d(as_labels(treatment))


def _treatments(treatment: Any, n_rows: int) -> tuple[NDArray[Any], IntArray]:
    """Return the sorted treatments, and the index of the one that each row received."""
    labels = _labels(treatment)
    treatments, codes = encode_labels(labels, n_rows, "treatment")
    if treatments.dtype.kind == "f" and type_of_target(treatments) == "continuous":
        raise InvalidInputError(
            f"treatment holds numbers that are not whole, such as {treatments[treatments % 1 != 0][0]}: a policy "
            "chooses among a few treatments; group doses, or name them by texts"
        )
    if len(treatments) < 2:
        raise InvalidInputError(
            f"treatment has a single value, {shown(treatments.tolist()[0])}: a policy needs at least two treatments"
        )
    return treatments, codes


def _outcomes(outcome: Any, n_rows: int) -> FloatArray:
    if outcome is None:
        raise InvalidInputError("outcome must be given: a number for each row")
    values = np.asarray(outcome)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return numbers(values, (n_rows,), "outcome")


def _reward_matrix(
    rewards: Any, treatments: Any, n_rows: int, known: NDArray[Any] | None = None
) -> tuple[NDArray[Any], FloatArray]:
    """Return the sorted treatments, and the rewards with a column for each; `known` are the treatments of a model."""
    frame = as_frame(rewards)
    names = None if frame is None else frame_columns(frame)[1]
    values = np.asarray(rewards if frame is None else np.column_stack(frame_columns(frame)[0]))
    n_treatments = values.shape[1] if values.ndim == 2 else 0
    if n_treatments < 2 or len(values) != n_rows:
        raise InvalidInputError(
            f"rewards must have one row per row of X, {n_rows} in all, and a column for each of at least two "
            f"treatments, got the shape {values.shape}"
        )
    if known is not None and n_treatments != len(known):
        raise InvalidInputError(f"rewards must have a column for each treatment of the policy, {shown(known.tolist())}")
    matrix = numbers(values, (n_rows, n_treatments), "rewards")
    if treatments is None:
        treatments = names if names is not None else known if known is not None else np.arange(n_treatments)
    labels, place = encode_labels(_labels(list(treatments)), n_treatments, "treatments")
    if len(labels) < n_treatments:
        raise InvalidInputError("treatments must be distinct, one for each column of rewards")
    if known is not None and labels.tolist() != known.tolist():
        raise InvalidInputError(f"rewards must have a column for each treatment of the policy, {shown(known.tolist())}")
    return labels, np.ascontiguousarray(matrix[:, np.argsort(place)])
