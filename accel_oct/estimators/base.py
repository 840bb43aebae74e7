"""From what users pass to what is solved, and back to a fitted classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    has_fit_parameter,
)

from accel_oct.constraints import Constraint
from accel_oct.constraints.fairness import SENSITIVE
from accel_oct.constraints.tallied import for_tally
from accel_oct.data.dataset import weighted_bincount
from accel_oct.data.labels import as_labels, encode_labels
from accel_oct.data.tally import Tally
from accel_oct.data.weights import as_weights
from accel_oct.encoding.auto import DEFAULT_BUDGET, AutoEncoder
from accel_oct.encoding.base import BinaryEncoder, PassthroughEncoder, check_table
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
from accel_oct.estimators.by_name import given_data
from accel_oct.estimators.constraint_table import ConstraintTable
from accel_oct.estimators.every_split import unlimited_depth_error
from accel_oct.estimators.fitted import FittedClassifier
from accel_oct.estimators.in_pieces import column_table, gathered_for_fit, gathered_rows, opened
from accel_oct.estimators.rules import all_constraints, excluded_columns, nested_parameters, with_nested
from accel_oct.estimators.training import CheckedRows, RowValues, TrainingData, as_tree, attached
from accel_oct.objectives import ClassWeights, Objective, as_objective
from accel_oct.objectives.built_in import COSTS, balancing
from accel_oct.pieces.recognising import is_in_pieces
from accel_oct.solving.result import Result
from accel_oct.support.arguments import checked_depth
from accel_oct.tree.fitted_tree import FittedTree

__all__ = ["TreeClassifier"]

Classifier = TypeVar("Classifier", bound="TreeClassifier")

_NESTED = ("constraints__", "objective__", "solver__")

_UNDER_CONSTRAINTS = 100
"""Most features under constraints, see `AutoEncoder.max_features`."""

_DEEPEST_TALLY = 4
"""Of deeper trees a tally would be larger than most data."""

_OTHER_OBJECTIVES = 1 / 10
"""What a search may take where several are needed, as a part of what one alone may take."""


class TreeClassifier(FittedClassifier):
    """Checks and encodes the data, and keeps the tree that was found."""

    max_depth: Any
    leaf_penalty: float
    time_limit: float | None
    solver: Any
    class_weight: Any
    objective: Any
    constraints: Any
    min_samples_leaf: Any
    max_leaf_nodes: Any
    max_features_used: Any
    exclude: Any
    verbose: Any

    # ---------------------------------------------------------------- fitting

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        sensitive_features: Any = None,
        costs: Any = None,
        progress: Any = None,
        tallies: bool = False,
    ) -> TrainingData:
        """Check the data, learn the encoding, and remember the classes; `tallies`: there need not be rows."""
        named = self._named(X, y, sample_weight, sensitive_features)
        if is_in_pieces(named.X, named.y):
            given = (named.sample_weight, named.sensitive_features, costs)
            return self._prepare_pieces(named.X, named.y, given, progress, tallies)
        return self._chosen_splits(named, self._checked(named, costs))

    def _chosen_splits(self, named: Any, checked: CheckedRows) -> TrainingData:
        """Learn the encoding; the data as the encoder sees them."""
        weights = None if named.sample_weight is None else checked.weights
        encoder = self._fitted_encoder(named.X, named.y, weights, checked.ignored)
        return self._encoded_data(checked, encoder)

    def _named(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Any:
        """What was passed, with columns that were given by their names taken out of X."""
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: it holds the classes"
            )
        return given_data(X, y, sample_weight, sensitive_features)

    def _checked(self, named: Any, costs: Any) -> CheckedRows:
        """Check data in memory, and remember the classes and columns."""
        table = check_table(self, named.X, reset=True)
        with as_invalid_input():
            labels = column_or_1d(as_labels(named.y), warn=True)
            check_consistent_length(table, labels)
        self.classes_, codes = encode_labels(labels, len(table))
        with as_invalid_input():
            check_classification_targets(labels)
        weights = as_weights(named.sample_weight, len(table))
        given = attached(named.sensitive_features, costs, len(table))
        ignored = excluded_columns(self.exclude, table)
        factors = self._class_factors(labels, codes, weights)
        return CheckedRows(named.X, table, codes, weights, RowValues(table, given), ignored, factors)

    def _encoded_data(self, checked: CheckedRows, encoder: Any, starts: Sequence[Any] | None = None) -> TrainingData:
        """The data as a fitted encoder sees them; the encoder is kept."""
        self.encoder_ = encoder
        own = isinstance(encoder, BinaryEncoder)
        columns = [checked.table.name(condition.column) for condition in encoder.conditions_] if own else None
        data = checked.encoded(
            self._transformed(checked.X),
            self.classes_,
            self._objective(checked.class_factors),
            None if columns is None else tuple(columns),
            tuple(map(str, self._binary_names())),
            getattr(encoder, "greedy_", ()) if starts is None else starts,
        )
        self._check_attached(checked.rows)
        return data

    def _check_attached(self, rows: RowValues) -> None:
        """Complain about what was passed to `fit` and is not used."""
        if COSTS in rows and COSTS not in rows.asked:
            raise InvalidInputError(f"costs are not used by objective {shown(self.objective)}; use InstanceCosts()")
        if SENSITIVE in rows and not self.constraints:
            warnings.warn("sensitive_features are not used: there are no constraints", UserWarning, stacklevel=4)

    def _prepare_pieces(
        self, X: Any, y: Any, given: tuple[Any, Any, Any], progress: Any, tallies: bool
    ) -> TrainingData:
        """The same for data in pieces."""
        source = opened(X, y, given[0])
        table = column_table(source, y, given[0])
        encoder = self._new_encoder(excluded_columns(self.exclude, table))
        depth = self._depth_limit()
        found = gathered_for_fit(
            source,
            y,
            given,
            encoder=encoder,
            depth=depth,
            constraints=self.constraints,
            keep="auto" if tallies and depth <= _DEEPEST_TALLY and not self.components else "rows",
            progress=progress,
        )
        with as_invalid_input():
            check_classification_targets(np.repeat(found.classes, 3))  # it warns of classes with one sample each
        self.classes_, self.encoder_ = found.classes, found.encoder
        check_table(self, table, reset=True)
        dataset = gathered_rows(found, given[1], weighted=given[0] is not None)
        factors = self._class_factors(found.classes[dataset.y], dataset.y, dataset.weights)
        trees = tuple(as_tree(nested) for nested in getattr(self.encoder_, "greedy_", ()))
        objective, tally = self._objective(factors), found.data if isinstance(found.data, Tally) else None
        return TrainingData(
            dataset,
            objective.bind(dataset),
            len(self._binary_names()),
            factors,
            trees,
            n_rows=found.n_rows,
            tally=tally,
            objective=None if tally is None else objective,
        )

    def _class_factors(self, labels: Any, codes: NDArray[np.int64], weights: NDArray[np.float64]) -> Any:
        """By class, what `class_weight` multiplies weights with."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            factors, norm = balancing(weighted_bincount(codes, weights, len(self.classes_)), integral=False)
            return factors * (float(weights.sum()) / norm)
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        with as_invalid_input("class_weight"):
            return compute_class_weight(self.class_weight, classes=self.classes_, y=labels)

    def _objective(self, class_factors: Any) -> Objective:
        if self.class_weight is None:
            return as_objective(self.objective)
        if not as_objective(self.objective).is_accuracy:
            raise InvalidInputError(
                f"class_weight cannot be combined with objective {shown(self.objective)}, which says itself what "
                "classes are worth; leave one of them out"
            )
        if isinstance(self.class_weight, str):
            return ClassWeights(self.class_weight)
        return ClassWeights(dict(zip(self.classes_.tolist(), class_factors.tolist(), strict=True)))

    def _fitted_encoder(self, X: Any, y: Any, weights: Any, ignored: frozenset[int]) -> Any:
        encoder = self._new_encoder(ignored)
        if weights is not None and has_fit_parameter(encoder, "sample_weight"):
            return encoder.fit(X, y, sample_weight=weights)
        return encoder.fit(X, y)

    def _new_encoder(self, ignored: frozenset[int]) -> Any:
        """What `encoder` and `exclude` ask for, not fitted yet."""
        if self.encoder is None:
            encoder: Any = PassthroughEncoder()
        elif isinstance(self.encoder, str):
            if self.encoder != "auto":
                raise InvalidInputError(f"encoder must be 'auto', None or a transformer, got {self.encoder!r}")
            depth, (budget, most) = self._depth_limit(), self._effort()
            encoder = AutoEncoder(depth, budget=budget, max_features=most, missing=self.missing)
        elif hasattr(self.encoder, "transform"):
            encoder = clone(self.encoder)
        else:
            raise InvalidInputError(f"encoder must be 'auto', None or a transformer, got {self.encoder!r}")
        if ignored:
            if not isinstance(encoder, BinaryEncoder):
                raise InvalidInputError("exclude needs an encoder of accel_oct; leave the columns out of yours instead")
            encoder.ignoring(ignored)
        return encoder

    def _depth_limit(self) -> int:
        """The depth, where there has to be one."""
        if self.max_depth is None:
            raise unlimited_depth_error()
        return checked_depth(self.max_depth)

    def _effort(self) -> tuple[float, int | None]:
        """Seconds that one search over thresholds may take, by estimate, and the most features.

        Ratios take several searches, and limits an enumeration that grows faster with the features than any table.
        """
        budget = DEFAULT_BUDGET if self.time_limit is None else min(DEFAULT_BUDGET, max(0.0, self.time_limit / 2))
        if not as_objective(self.objective).is_accuracy:
            budget *= _OTHER_OBJECTIVES
        return budget, _UNDER_CONSTRAINTS if self.constraints or self.max_features_used is not None else None

    def _all_constraints(self, data: TrainingData) -> list[Constraint]:
        found = all_constraints(
            self.constraints,
            self.min_samples_leaf,
            self.max_leaf_nodes,
            self.max_features_used,
            data.n_samples,
            int(data.dataset.sample_counts.sum()),
        )
        return found if data.tally is None else for_tally(found, counted=data.dataset.samples is not None)

    def _adopt(self, result: Result, data: TrainingData, relabel: bool = True) -> None:
        """Keep the tree that was found, in the user's terms."""
        result = replace(result, scope=self._scope(result))
        tree = result.tree
        data = data.seen_by(tree)
        if relabel and data.rows is not None and not self._all_constraints(data):
            # Among equally good labels the first; under constraints labels are part of the tree.
            tree = tree.relabelled(data.rows)
        self.result_ = replace(
            result,
            found=tree,
            feature_names=tuple(str(name) for name in self._binary_names()),
            class_names=tuple(str(label) for label in self.classes_),
        )
        arrays = FittedTree.from_training(tree, data.dataset)
        self.tree_ = replace(
            arrays,
            class_weights=arrays.class_weights * data.class_factors,
            class_factors=data.class_factors,
            n_features=data.n_features,
        )
        self.objective_ = result.objective
        self.bound_ = result.bound
        self.gap_ = result.gap
        self.status_ = result.status
        self.constraints_ = ConstraintTable(result.constraints, self.proof_)

    def _like(self: Classifier) -> Classifier:
        """Another classifier with these parameters that has learnt the same encoding, and has no tree yet."""
        other: Classifier = clone(self)
        for name in ("classes_", "encoder_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    # ---------------------------------------------------------------- parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep`, those of constraints, objective and solver too: ``constraints__0__at_most``."""
        found: dict[str, Any] = super().get_params(deep=deep)
        return {**found, **nested_parameters(self.constraints, self.objective, self.solver)} if deep else found

    def set_params(self, **params: Any) -> TreeClassifier:
        """Set parameters, ``constraints__0__at_most``, ``solver__threads`` and the like among them.

        Constraints, objective and solver are replaced: values themselves never change.
        """
        own = {name: value for name, value in params.items() if not name.startswith(_NESTED)}
        super().set_params(**own)
        changes = {name: value for name, value in params.items() if name not in own}
        if changes:
            found = with_nested(self.constraints, self.objective, self.solver, changes)
            self.constraints, self.objective, self.solver = found
        return self
