"""Base classes of the estimators: check and encode the training data, and store the fitted tree."""

from __future__ import annotations

import copy
import warnings
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

from accel_oct.constraints import Constraint, Monotone
from accel_oct.constraints.fairness import SENSITIVE
from accel_oct.constraints.tallied import for_tally
from accel_oct.data.dataset import weighted_bincount
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.labels import as_labels, encode_labels
from accel_oct.data.tally import Tally
from accel_oct.data.weights import as_weights
from accel_oct.encoding.auto import DEFAULT_BUDGET, AutoEncoder
from accel_oct.encoding.base import BinaryEncoder, PassthroughEncoder, check_table
from accel_oct.encoding.conditions import value_sets
from accel_oct.encoding.spreads import column_spreads, fallback_spreads
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
from accel_oct.estimators.by_name import given_data
from accel_oct.estimators.constraint_table import ConstraintTable
from accel_oct.estimators.every_split import unlimited_depth_error
from accel_oct.estimators.fitted import FittedClassifier, FittedModel, feature_names, transformed
from accel_oct.estimators.in_pieces import (
    column_table,
    gathered_for_fit,
    in_memory_only,
    opened,
    source_columns,
    table_rows,
)
from accel_oct.estimators.rules import (
    all_constraints,
    column_constraints,
    excluded_columns,
    n_by_parameter,
    nested_parameters,
    with_nested,
)
from accel_oct.estimators.training import CheckedRows, RowValues, TrainingData, as_tree, attached
from accel_oct.objectives import ClassWeights, Objective, as_objective
from accel_oct.objectives.built_in import COSTS, balancing
from accel_oct.pieces.detection import is_in_pieces
from accel_oct.solving.result import Result
from accel_oct.support.arguments import checked_depth
from accel_oct.tree.fitted_tree import FittedTree
from accel_oct.tree.probabilities import checked_smoothing

Model = TypeVar("Model", bound="TreeModel")

_NESTED = ("constraints__", "objective__", "solver__")

_UNDER_CONSTRAINTS = 100
"""Limit on the number of features if there are constraints; see `AutoEncoder.max_features`."""

_DEEPEST_TALLY = 4
"""Largest depth for which `fit` uses a tally: a deeper tally would be larger than most data."""

_OTHER_OBJECTIVES = 1 / 10
"""Factor on the time of one search if the objective needs several searches."""


class TreeModel(FittedModel):
    """An estimator that checks and encodes its training data and stores the tree that was found."""

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
    monotonic_cst: Any
    exclude: Any
    interaction_cst: Any
    verbose: Any

    # ---------------------------------------------------------------- fitting

    def _source(
        self,
        X: Any,
        y: Any,
        given: tuple[Any, Any, Any],
        progress: Any = None,
        tallies: bool = False,
        in_memory: str = "",
    ) -> CheckedRows | EncodedTable:
        """Read the arguments of `fit` once.

        Parameters
        ----------
        tallies : bool
            Whether data in pieces may be gathered as a tally instead of rows.
        in_memory : str
            Name of the operation that needs the rows in memory, for the error; empty if it accepts data in pieces.

        Returns
        -------
        CheckedRows or EncodedTable
            Rows in memory that are not encoded yet; or the encoded table that was passed or gathered from pieces.
        """
        if isinstance(X, EncodedTable):
            weight, sensitive, costs = given
            X.check_alone(y=y, sample_weight=weight, sensitive_features=sensitive, costs=costs)
            return X
        named = self._named(X, y, *given[:2])
        if is_in_pieces(named.X, named.y):
            if in_memory:
                raise in_memory_only(in_memory)
            return self._gathered(named, given[2], progress, tallies)
        return self._checked(named, given[2])

    def _prepare(self, source: CheckedRows | EncodedTable) -> TrainingData:
        """Encode the rows if they are not encoded yet, bind the objective, and store the classes and the encoder."""
        if isinstance(source, EncodedTable):
            return self._encoded_table_data(source)
        return self._encoded_data(source, self._fitted_encoder(source))

    def _named(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Any:
        """Return the arguments of `fit`; columns that are given by name are removed from X."""
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: it holds the classes"
            )
        return given_data(X, y, sample_weight, sensitive_features)

    def _checked(self, named: Any, costs: Any) -> CheckedRows:
        """Check data in memory, and store the classes and column names on the estimator."""
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
        column_constraints(self)  # rejects invalid arguments before the encoding
        self._class_factors(codes, weights)  # rejects an invalid class_weight before the encoding
        weighted, rows = named.sample_weight is not None, RowValues(table, given)
        return CheckedRows(named.X, named.y, table, self.classes_, codes, weights, weighted, given, rows, ignored)

    def _encoded_table(self, checked: CheckedRows, encoder: Any, names: tuple[str, ...]) -> EncodedTable:
        """Return the rows encoded by a fitted encoder; `names` are the names of its features."""
        own, table = isinstance(encoder, BinaryEncoder), checked.table
        sources = tuple(table.name(condition.column) for condition in encoder.conditions_) if own else None
        binary = transformed(encoder, table if own else checked.X)
        dataset = checked.dataset(binary, names, sources, value_sets(encoder.conditions_) if own else None)
        if own:
            numbers = {table.name(j): values for j, values in encoder.numbers_of(table).items()}
            intervals = tuple(condition.interval for condition in encoder.conditions_) or (None,)
            dataset = replace(dataset, numbers=numbers, intervals=intervals)
        return EncodedTable(
            data=dataset,
            encoder=encoder,
            features=tuple(map(table.name, range(len(table.columns)))),
            n_rows=len(table),
            sensitive_features=tuple(checked.attached.sensitive),
            weighted=checked.weighted,
            named=table.names is not None,
        )

    def _encoded_data(self, checked: CheckedRows, encoder: Any) -> TrainingData:
        """Return the training data encoded by a fitted encoder, and store the encoder."""
        self.encoder_ = encoder = self._as_scored(encoder)
        names = feature_names(encoder)
        data = self._bound(self._encoded_table(checked, encoder, names), names)
        self._check_attached(checked.rows)
        return data

    def _encoded_table_data(self, table: EncodedTable) -> TrainingData:
        """Return the training data of an encoded table, and store its classes, columns and encoder."""
        with as_invalid_input():
            check_classification_targets(np.repeat(table.classes, 3))  # not once: it warns of single samples
        self.classes_, self.encoder_ = table.classes, self._as_scored(table.encoder)
        check_table(self, column_table(table.features, table.named), reset=True)
        return self._bound(table, feature_names(table.encoder))

    def _bound(self, table: EncodedTable, names: tuple[str, ...]) -> TrainingData:
        """Bind the objective to an encoded table; `names` are the names of the encoder's features."""
        dataset, tally = table_rows(table), table.data if isinstance(table.data, Tally) else None
        factors = self._class_factors(dataset.y, dataset.weights if dataset.given is None else dataset.given)
        objective = self._objective(factors)
        return TrainingData(
            dataset,
            objective.bind(dataset),
            names,
            factors,
            tuple(as_tree(nested) for nested in getattr(table.encoder, "greedy_", ())),
            n_rows=table.n_rows,
            tally=tally,
            objective=None if tally is None else objective,
        )

    def _check_attached(self, rows: RowValues) -> None:
        """Raise or warn if an argument of `fit` is not used."""
        if COSTS in rows and COSTS not in rows.asked:
            raise InvalidInputError(f"costs are not used by objective {shown(self.objective)}; use InstanceCosts()")
        if SENSITIVE in rows and not self.constraints:
            warnings.warn("sensitive_features are not used: there are no constraints", UserWarning, stacklevel=4)

    def _gathered(self, named: Any, costs: Any, progress: Any, tallies: bool) -> EncodedTable:
        """Gather data in pieces with the encoder of this classifier."""
        X, y, weight = named.X, named.y, named.sample_weight
        source = opened(X, y, weight)
        encoder = self._new_encoder(excluded_columns(self.exclude, source_columns(source, y, weight)))
        depth = self._depth_limit()
        return gathered_for_fit(
            source,
            y,
            (weight, named.sensitive_features, costs),
            encoder=encoder,
            depth=depth,
            constraints=self.constraints,
            keep="auto" if tallies and depth <= _DEEPEST_TALLY and not self._needs_rows() else "rows",
            progress=progress,
        )

    def _class_factors(self, codes: NDArray[np.int64], weights: NDArray[np.float64]) -> Any:
        """Return the factor of each class that `class_weight` applies to the sample weights."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            factors, norm = balancing(weighted_bincount(codes, weights, len(self.classes_)), integral=False)
            return factors * (float(weights.sum()) / norm)
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        with as_invalid_input("class_weight"):
            return compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])

    def _objective(self, class_factors: Any) -> Objective:
        if self.class_weight is None:
            return as_objective(self.objective)
        if not as_objective(self.objective).is_accuracy:
            raise InvalidInputError(
                f"class_weight cannot be combined with objective {shown(self.objective)}, which defines the "
                "value of each class; leave one of them out"
            )
        if isinstance(self.class_weight, str):
            return ClassWeights(self.class_weight)
        return ClassWeights(dict(zip(self.classes_.tolist(), class_factors.tolist(), strict=True)))

    def _fitted_encoder(self, checked: CheckedRows) -> Any:
        encoder = self._new_encoder(checked.ignored)
        # Encoders of accel_oct read the checked table; those of other libraries read the user's X.
        own = isinstance(encoder, BinaryEncoder)
        X, y = (checked.table, checked.codes) if own else (checked.X, checked.y)
        if checked.weighted and has_fit_parameter(encoder, "sample_weight"):
            return encoder.fit(X, y, sample_weight=checked.weights)
        return encoder.fit(X, y)

    def _as_scored(self, encoder: Any) -> Any:
        """Return a fitted encoder, not exact if the objective depends on where thresholds lie."""
        if not (getattr(encoder, "exact_", False) and as_objective(self.objective).depends_on_thresholds):
            return encoder
        encoder = copy.copy(encoder)
        encoder.exact_ = False
        return encoder

    def _new_encoder(self, ignored: frozenset[int]) -> Any:
        """Return the unfitted encoder that `encoder` and `exclude` specify."""
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
        """Return `max_depth`; raise if it is None."""
        if self.max_depth is None:
            raise unlimited_depth_error()
        return checked_depth(self.max_depth)

    def _effort(self) -> tuple[float, int | None]:
        """Return the estimated seconds that one search over thresholds may take, and the limit on features.

        Ratio objectives need several searches. Limits need an enumeration that grows faster with the number of features
        than the tables do.
        """
        budget = DEFAULT_BUDGET if self.time_limit is None else min(DEFAULT_BUDGET, max(0.0, self.time_limit / 2))
        if not as_objective(self.objective).is_accuracy:
            budget *= _OTHER_OBJECTIVES
        limited = self.constraints or self.max_features_used is not None or self.monotonic_cst is not None
        return budget, _UNDER_CONSTRAINTS if limited else None

    def _needs_rows(self) -> bool:
        """Return whether a parameter is not supported on a tally."""
        listed = self.constraints if isinstance(self.constraints, list | tuple) else ()
        monotone = self.monotonic_cst is not None or any(isinstance(each, Monotone) for each in listed)
        return monotone or bool(self.components)

    def _n_by_parameter(self) -> int:
        return n_by_parameter(self)

    def _all_constraints(self, data: TrainingData) -> list[Constraint]:
        found = all_constraints(
            self.constraints,
            self.min_samples_leaf,
            self.max_leaf_nodes,
            self.max_features_used,
            data.n_samples,
            int(data.dataset.sample_counts.sum()),
        )
        if self.interaction_cst is not None and data.dataset.sources is None:
            raise InvalidInputError("interaction_cst needs an encoder of accel_oct, which knows the columns of X")
        found += column_constraints(self)
        return found if data.tally is None else for_tally(found, counted=data.dataset.samples is not None)

    def _adopt(self, result: Result, data: TrainingData, relabel: bool = True) -> None:
        """Store the tree of a result, and its proof, in the fitted attributes."""
        result = replace(result, scope=self._scope(result))
        tree = result.tree
        data = data.for_tree(tree)
        if relabel and data.rows is not None and not self._all_constraints(data):
            # Take the first of equally good labels. Under constraints, the labels are part of the solution.
            tree = tree.relabelled(data.rows)
        self.result_ = replace(
            result,
            found=tree,
            feature_names=data.names,
            class_names=tuple(str(label) for label in self.classes_),
        )
        arrays = FittedTree.from_training(tree, data.dataset)
        self.tree_ = replace(
            arrays,
            class_weights=arrays.class_weights * data.class_factors,
            class_factors=data.class_factors,
            n_features=len(data.names),
        )
        self.objective_ = result.objective
        self.bound_ = result.bound
        self.gap_ = result.gap
        self.status_ = result.status
        self.constraints_ = ConstraintTable.of(result, self.proof_)

    def _like(self: Model) -> Model:
        """Return an unfitted classifier with the same parameters and the same fitted encoder."""
        other: Model = clone(self)
        for name in ("classes_", "encoder_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    # ---------------------------------------------------------------- parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, also those of constraints, objective and solver."""
        found: dict[str, Any] = super().get_params(deep=deep)
        return {**found, **nested_parameters(self.constraints, self.objective, self.solver)} if deep else found

    def set_params(self, **params: Any) -> TreeModel:
        """Set parameters, including nested ones such as ``constraints__0__at_most`` and ``solver__threads``.

        Constraints, objective and solver are immutable: a nested parameter replaces the value that holds it.
        """
        own = {name: value for name, value in params.items() if not name.startswith(_NESTED)}
        super().set_params(**own)
        changes = {name: value for name, value in params.items() if name not in own}
        if changes:
            found = with_nested(self.constraints, self.objective, self.solver, changes)
            self.constraints, self.objective, self.solver = found
        return self


class TreeClassifier(FittedClassifier, TreeModel):
    """A classifier that checks and encodes its training data and stores the tree that was found."""

    smoothing: Any

    def _adopt(self, result: Result, data: TrainingData, relabel: bool = True) -> None:
        super()._adopt(result, data, relabel)
        self.smoothing_ = checked_smoothing(self.smoothing)
        self.spreads_ = fallback_spreads(self.encoder_, self.tree_.tree.features_used)

    def _note_columns(self, source: CheckedRows | EncodedTable) -> None:
        """Store the spreads of the columns that the tree uses, if the rows of the table are at hand."""
        if isinstance(source, CheckedRows) and isinstance(self.encoder_, BinaryEncoder):
            table = source.table if (source.weights > 0).all() else source.table.rows(source.weights > 0)
            self.spreads_ = column_spreads(self.encoder_, self.tree_.tree.features_used, table)
