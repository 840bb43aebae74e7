"""Optimal trees as a scikit-learn classifier."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from accel_oct.certificates import Certificate, Claim, write_certificate
from accel_oct.constraints import Constraint
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.errors import InvalidInputError, SingleLeafWarning, shown
from accel_oct.estimators.base import TreeClassifier
from accel_oct.estimators.by_name import given_data
from accel_oct.estimators.calibration import CalibrationFolds
from accel_oct.estimators.certified import claim_of
from accel_oct.estimators.constraint_table import ConstraintTable
from accel_oct.estimators.families import along_penalties, by_leaves, listed_trees, near_old_model
from accel_oct.estimators.fitted import feature_names
from accel_oct.estimators.in_pieces import check_rows
from accel_oct.estimators.optimal import OptimalTreeModel
from accel_oct.estimators.rules import checked_penalties, column_constraints
from accel_oct.estimators.stability import bootstrap_stability
from accel_oct.estimators.ties import checked_ties
from accel_oct.estimators.trade_off import TradeOff, trade_off
from accel_oct.estimators.training import Solved
from accel_oct.export.stored_model import MAX_BYTES, read_json
from accel_oct.live import watched
from accel_oct.mip import Solver
from accel_oct.reasons.stability import Stability
from accel_oct.solving.closest import ClosestTree
from accel_oct.solving.config import Config
from accel_oct.solving.near_optimal import NearOptimalTrees
from accel_oct.support.progress import Reporter, Sink, announce
from accel_oct.support.stopping import Clock, Stopper, kept_interrupts
from accel_oct.tree.probabilities import DEFAULT_SMOOTHING, checked_smoothing


class OptimalTreeClassifier(TreeClassifier, OptimalTreeModel):
    """Classification tree with proven optimal penalised accuracy.

    `fit` maximises ``accuracy - leaf_penalty * (number of leaves)`` on the training data over all trees of depth at
    most `max_depth`. The trees may use every split of the table, or the splits that the encoder selects: see `encoder`.

    Parameters
    ----------
    max_depth : int or None
        Maximum depth; 0 gives a single leaf. None means no limit, and requires ``leaf_penalty > 0`` or
        `max_leaf_nodes`.
    leaf_penalty : float
        Training accuracy that each further leaf must add; `OptimalTreeClassifierCV` selects it by cross-validation.
    solver : Solver or str
        Backend with its threads, seed, gap and options, or the name of a backend such as "highs" or "gurobi". The
        fields of a `Solver` are nested parameters: ``solver__threads``.
    config : Config or str
        Techniques of the solve, as in `accel_oct.solve`: a `Config`, or the name of a preset.
    components : list or None
        As in `accel_oct.solve`.
    time_limit : float or None
        Limit in seconds, including the encoding. When it is reached, the best tree so far is kept and a
        ConvergenceWarning reports the gap.
    encoder : "auto", None or transformer
        How columns become binary features. "auto" searches every threshold and each category against the others;
        `encoder_` then has the conditions of the fitted tree. Constraints that couple subtrees, ratio objectives and
        data in pieces need chosen splits: then "auto" uses `AutoEncoder`, which selects quantiles and the thresholds
        of CART trees. None requires a binary X. A transformer, of scikit-learn for example, must return columns of 0
        and 1.
    missing : {"category", "error"}
        For ``encoder="auto"``: treat missing values as a category, or raise an error.
    class_weight : dict, "balanced" or None
        Weights of the classes in the objective, multiplied by `sample_weight`. Rates in constraints do not use them.
    objective : Objective, str or None
        Objective from `accel_oct.objectives`: "accuracy" (None), "balanced_accuracy", "f1", ``CostMatrix(...)`` and
        others. Its score replaces accuracy in `objective_` and `bound_`.
    constraints : list of Constraint or None
        Constraints on the tree, from `accel_oct.constraints` or user-defined. They may name columns of X; all features
        of one column count as one. `fit` raises NoTreeError if no tree satisfies them. Their limits are nested
        parameters: ``constraints__0__at_most``.
    min_samples_leaf : int or float
        Minimum number of samples in a leaf, or their share of all samples, as in scikit-learn.
    max_leaf_nodes : int or None
        Maximum number of leaves.
    max_features_used : int or None
        Maximum number of columns of X in the whole tree. (Not scikit-learn's `max_features`.)
    monotonic_cst : dict or array-like of int, or None
        1, -1 or 0 for each column, by name or in the order of the columns, as in scikit-learn: the predicted class does
        not fall (1), or not rise (-1), when the values of the column increase, see `accel_oct.constraints.Monotone`.
        Classes are in the order of `classes_`, which must be numbers if there are more than two.
    exclude : list of str or int, or None
        Columns of X that no split may use, by name or position. They are not encoded, but constraints may name them.
    interaction_cst : list of lists of str or int, "pairwise", "no_interactions" or None
        Groups of columns of X, by name or position, that may be used on one path, as in scikit-learn's gradient
        boosting: see `accel_oct.constraints.InteractionGroups`.
    smoothing : float
        Amount of smoothing of `predict_proba`: each leaf is counted as if it had that many more training samples with
        the class shares of all training data. 0 gives the shares of the leaf.
    calibrate : int, splitter, iterable or None
        Choose the amount of smoothing by cross-validation, for the least log-loss of held-out rows, instead of
        `smoothing`: each fold is fitted with the other parameters, and may take `time_limit` too. An int means
        stratified folds, as in scikit-learn. The tree does not depend on it. Needs the rows in memory.
    close_to : fitted classifier, DecisionTree or None
        Old model: of all trees with an objective within `within` of the optimum, `fit` takes the one that predicts the
        same class for the largest weight of the training rows; see `accel_oct.closest_tree`. Any object whose
        `predict` accepts X, or a tree over the features of the encoder. Used by `fit` alone; not stored by `to_json`,
        nor in the pickle of a fitted classifier.
    within : float
        For `close_to`: largest loss of the objective; 0 chooses among optimal trees.
    agreement : {"predictions", "splits"}
        For `close_to`: "splits" takes the tree that has most splits of the old tree, on the same column and with the
        same division of the training rows. The old model must be a fitted classifier of this package or a tree, and
        constraints are not supported.
    ties : {"purity", "support", "first"}
        Which of the equally good trees to take. "purity": no tree that differs in one question, and is also optimal,
        has purer leaves (smaller Gini impurity). "support": first a larger smallest leaf, then purer leaves. "first":
        the tree that the search found. Applies to proven optima if subtrees are independent, and within a limit of
        work; ``result_.stats["ties"]`` tells what was done. Objective and proof do not depend on it.
    progress : callable or None
        Called with every `ProgressEvent` while solving; see docs/live-view.md.
    verbose : int
        0 is silent; 1 shows the progress of the solve (`accel_oct.live.watching`); 2 shows more detail.

    Attributes
    ----------
    classes_ : array
    n_features_in_, feature_names_in_
        Columns of X.
    encoder_ : transformer
        Fitted.
    tree_ : FittedTree
        scikit-learn's arrays (children_left, feature, value, ...) over the binary features.
    objective_, bound_, gap_, status_
        Objective of the tree, upper bound, relative gap and status. `proof_` names the splits that the bound covers.
    exact_ : bool
        Whether `bound_` holds for every split of the table.
    table_bound_ : float or None
        Upper bound over every split of the table: `bound_` if `exact_`; None if no such bound is known.
    proof_ : str
        Description of what is proven.
    smoothing_ : float
        Amount of smoothing of `predict_proba`.
    constraints_ : ConstraintTable
        Limits, training value, slack and multiplier of each constraint; `print` shows a table, and what `monotonic_cst`
        and rules cost.
    closest_ : ClosestTree
        With `close_to` only: agreement with the old model, the optimum, and the status of the proof.
    result_ : Result
        Complete result of the solve, with feature and class names.
    feature_importances_ : array
        Per column of X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> data = load_iris(as_frame=True)
    >>> model = OptimalTreeClassifier(max_depth=2).fit(data.data, data.target_names[data.target])
    >>> model.status_
    'optimal'
    """

    closest_: ClosestTree

    def __init__(
        self,
        max_depth: int | None = 3,
        leaf_penalty: float = 0.01,
        *,
        solver: Solver | str = "highs",
        config: Config | str = "default",
        components: Sequence[Any] | None = None,
        time_limit: float | None = None,
        encoder: Any = "auto",
        missing: str = "category",
        class_weight: Any = None,
        objective: Any = None,
        constraints: Sequence[Constraint] | None = None,
        min_samples_leaf: Any = 1,
        max_leaf_nodes: int | None = None,
        max_features_used: int | None = None,
        monotonic_cst: Any = None,
        exclude: Any = None,
        interaction_cst: Any = None,
        smoothing: float = DEFAULT_SMOOTHING,
        calibrate: Any = None,
        close_to: Any = None,
        within: float = 0.0,
        agreement: str = "predictions",
        ties: str = "purity",
        progress: Sink | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.leaf_penalty = leaf_penalty
        self.solver = solver
        self.config = config
        self.components = components
        self.time_limit = time_limit
        self.encoder = encoder
        self.missing = missing
        self.class_weight = class_weight
        self.objective = objective
        self.constraints = constraints
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features_used = max_features_used
        self.monotonic_cst = monotonic_cst
        self.exclude = exclude
        self.interaction_cst = interaction_cst
        self.smoothing = smoothing
        self.calibrate = calibrate
        self.close_to = close_to
        self.within = within
        self.agreement = agreement
        self.ties = ties
        self.progress = progress
        self.verbose = verbose

    def encode(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> EncodedTable:
        """Read and encode a table once, for use in several calls.

        Splits are selected as in ``near_optimal``: by the encoder of the classifier, or by `AutoEncoder`. The
        classifier is not changed.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`.

        Returns
        -------
        EncodedTable
            Pass it as X, without y, to `fit`, `path`, `frontier`, `near_optimal` and `trade_off` of any classifier, and
            to the functions of these names in `accel_oct`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> table = OptimalTreeClassifier(max_depth=2).encode(*load_iris(return_X_y=True))
        >>> [OptimalTreeClassifier(2, penalty).fit(table).get_n_leaves() for penalty in (0.4, 0.01)]
        [1, 3]
        """
        base: OptimalTreeClassifier = clone(self)
        source = base._source(X, y, (sample_weight, sensitive_features, costs), self.progress)
        if isinstance(source, EncodedTable):
            return source
        source = source.copied()
        encoder = base._fitted_encoder(source)
        return base._encoded_table(source, encoder, feature_names(encoder))

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> OptimalTreeClassifier:
        """Find the optimal tree.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix (n_samples, n_features), path, data in pieces, or EncodedTable
            Numbers, strings, categories, booleans; see `encoder`. A path names a CSV or other file, Parquet files or a
            folder of them; docs/estimator.md lists all accepted types. An `EncodedTable` also holds y and the weights;
            trees then branch on its features.
        y : array-like (n_samples,), or str
            Classes of any sortable type, or the name of their column in X.
        sample_weight : array-like (n_samples,), or str, optional
            Weights, or the name of their column if y is a name; that column is not a feature.
        sensitive_features : array-like (n_samples,), data frame or mapping, optional
            Groups of the samples, for constraints that do not name a column. Constraints may name the features that
            have names. For a constraint that names none of several features, every combination of values is a group.
        costs : array-like (n_samples, n_classes), optional
            For ``objective=InstanceCosts()``.
        """
        with watched(self.progress, verbose=self.verbose, time_limit=self.time_limit) as progress:
            self._fit(X, y, (sample_weight, sensitive_features, costs), progress)
        self._warn_of_result()
        return self

    def _fit(self, X: Any, y: Any, given: tuple[Any, Any, Any], progress: Sink | None) -> None:
        began = time.perf_counter()
        announce(progress, "encoding")
        checked_ties(self.ties)
        stable = self.close_to is not None
        checked_smoothing(self.smoothing)
        if stable and self.max_depth is None:
            raise InvalidInputError("close_to needs a limit on the depth, but max_depth is None")
        in_memory = "" if self.calibrate is None else "calibrate="
        source = self._source(X, y, given, progress, tallies=not stable, in_memory=in_memory)
        folds = None if self.calibrate is None else CalibrationFolds.of(self, source)

        def finish(is_stopped: Callable[[], bool]) -> None:
            self._note_columns(source)
            if folds is not None:
                self.smoothing_ = folds.smoothing(self, progress, is_stopped)

        if hasattr(self, "closest_"):
            del self.closest_
        if not stable:
            self._search(source, began, progress, finish)
            return
        data = self._prepare(source)
        with kept_interrupts() as stopped:  # once there is a tree, Ctrl-C does not discard it
            solved, self.closest_ = near_old_model(self, source, data, began, stopped.is_set, progress)
            self._adopt(solved.result, solved.data, relabel=False)
            finish(stopped.is_set)

    def __sklearn_clone__(self) -> OptimalTreeClassifier:
        """Return an unfitted classifier with the same parameters and the same, still fitted, old model."""
        plain = copy.copy(self)
        plain.close_to = None
        other: OptimalTreeClassifier = super(OptimalTreeClassifier, plain).__sklearn_clone__()
        other.close_to = self.close_to
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles; a fitted classifier does not keep the old model."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "close_to": None} if "tree_" in state else state

    def path(
        self,
        X: Any,
        y: Any = None,
        *,
        leaf_penalties: Iterable[float],
        sample_weight: Any = None,
        sensitive_features: Any = None,
        costs: Any = None,
    ) -> list[OptimalTreeClassifier]:
        """Return the optimal tree for each leaf penalty.

        The classifier is not changed; its `leaf_penalty` is not used.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`, in memory; or an `EncodedTable` alone.
        leaf_penalties : iterable of float

        Returns
        -------
        list of OptimalTreeClassifier
            One fitted classifier per penalty, in the given order. The time limit applies to all of them together.

        Raises
        ------
        NoTreeError
            Where no tree satisfies the constraints.
        """
        given = (sample_weight, sensitive_features, costs)
        penalties = checked_penalties(leaf_penalties)
        return self._family(
            X,
            y,
            given,
            lambda base, source, clock, progress: along_penalties(base, source, penalties, clock, progress),
            [{"leaf_penalty": penalty} for penalty in penalties],
        )

    def frontier(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> list[OptimalTreeClassifier]:
        """Return the best tree for each number of leaves, without leaf penalties.

        The classifier is not changed.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`, in memory; or an `EncodedTable` alone.

        Returns
        -------
        list of OptimalTreeClassifier
            Fitted classifiers. Element h - 1 has at most h leaves, up to ``2**max_depth`` or `max_leaf_nodes`. The time
            limit applies to all of them together.

        Raises
        ------
        InvalidInputError
            For constraints that couple subtrees, and for ratio objectives.
        NoTreeError
            Where no tree satisfies the constraints.
        """
        given = (sample_weight, sensitive_features, costs)
        return self._family(X, y, given, by_leaves, None)

    def _family(
        self,
        X: Any,
        y: Any,
        given: tuple[Any, Any, Any],
        search: Callable[..., Iterator[Solved]],
        parameters: list[dict[str, Any]] | None,
    ) -> list[OptimalTreeClassifier]:
        """Return fitted classifiers from a search for several trees; by default, from a frontier."""
        began = time.perf_counter()
        base: OptimalTreeClassifier = clone(self)
        found: list[OptimalTreeClassifier] = []
        with watched(self.progress, verbose=self.verbose, time_limit=self.time_limit) as progress:
            announce(progress, "encoding")
            clock = Clock(began, self.time_limit)
            part = Reporter(progress, lambda: clock.seconds).part()
            source = base._source(X, y, given, in_memory="a path or a frontier")
            check_rows(source, "a path or a frontier")
            for place, solved in enumerate(search(base, source, clock, part)):
                own = {"leaf_penalty": 0.0, "max_leaf_nodes": place + 1} if parameters is None else parameters[place]
                model = base._like().set_params(**own)
                model._adopt(solved.result, solved.data)
                model._note_columns(source)
                found.append(model)
        return found

    def near_optimal(
        self,
        X: Any,
        y: Any = None,
        *,
        within: float,
        limit: int | None = 1000,
        labels: str = "any",
        sample_weight: Any = None,
        sensitive_features: Any = None,
        costs: Any = None,
    ) -> NearOptimalTrees:
        """Return all trees with an objective close to the optimum; see `accel_oct.near_optimal`.

        The trees use the splits that `AutoEncoder` or the encoder of the classifier selects. Pass the training data of
        the classifier, which is not changed.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`; or an `EncodedTable` alone.
        within : float
            Largest difference to the objective of the best tree that satisfies the classifier's constraints: 0.01 is
            one percentage point of accuracy.
        limit, labels
            As in `accel_oct.near_optimal`, for the trees that satisfy the constraints.

        Returns
        -------
        NearOptimalTrees
            ``trees.model(place)`` is a tree as a fitted classifier: its `bound_` is the optimum, its `gap_` the
            relative distance to it. A stopped search emits a ConvergenceWarning.
        """
        given = (sample_weight, sensitive_features, costs)
        trees = listed_trees(self, X, y, given, within, limit, labels)
        if trees.status != "finished":
            warnings.warn(f"near-optimal trees: {trees.summary}", ConvergenceWarning, stacklevel=2)
        return trees

    def trade_off(
        self,
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
        """Return the best tree for each limit of one of the classifier's constraints; see `accel_oct.trade_off`.

        The classifier is not changed.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`; or an `EncodedTable` alone.
        limits, constraint, cv
            As in `accel_oct.trade_off`.
        """
        return trade_off(
            self,
            X,
            y,
            limits=limits,
            constraint=constraint,
            sample_weight=sample_weight,
            sensitive_features=sensitive_features,
            costs=costs,
            cv=cv,
        )

    def stability(
        self,
        X: Any,
        y: Any,
        *,
        n_samples: int = 50,
        seed: int = 0,
        time_limit: float | None = None,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        costs: Any = None,
        progress: Any = None,
    ) -> Stability:
        """Fit the tree again on bootstrap samples, and count how often its splits come back.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            The training data of the tree, in memory.
        n_samples : int
            Number of bootstrap samples: as many rows, drawn with replacement.
        seed : int
            Of the samples.
        time_limit : float, optional
            Seconds; when they are over, or after Ctrl-C, the trees so far are counted.
        progress : callable, optional
            As in the classifier.
        """
        check_is_fitted(self, "tree_")
        given = given_data(X, y, sample_weight, sensitive_features, like=self)
        return bootstrap_stability(
            self,
            given.X,
            given.y,
            (given.sample_weight, given.sensitive_features, costs),
            n_samples=n_samples,
            seed=seed,
            time_limit=time_limit,
            progress=progress,
        )

    def certificate(
        self,
        path: str | Path,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        table: str | Path | None = None,
        target: str | None = None,
        weight: str | None = None,
        time_limit: float | None = None,
    ) -> Certificate:
        """Prove that the fitted tree is optimal, and write a certificate that ``accel_oct_checker.py`` checks.

        Parameters
        ----------
        path : str or Path
            The certificate; packed if it ends in ``.gz``.
        X, y, sample_weight
            The training data.
        table : str or Path, optional
            Where to write the data as the CSV file that the checker reads.
        target, weight : str, optional
            Names of the columns of classes and weights in that file; "target" and "weight" by default.
        time_limit : float, optional
            Seconds.

        Raises
        ------
        InvalidInputError
            If the tree is not proven optimal, or a problem of this kind cannot be certified yet: docs/certificates.md.
        StoppedError
            If the proof was not finished in time.
        """
        check_is_fitted(self)
        stopper = Stopper(None if time_limit is None else time.monotonic() + time_limit)
        claim = claim_of(self, X, y, (sample_weight, None, None)).named(target, weight)
        return write_certificate(claim, path, table=table, stopper=stopper)

    def _claim(self, X: Any, y: Any, sample_weight: Any) -> Claim:
        """Return the claim that the tree is optimal, as `certificate` states it."""
        return claim_of(self, X, y, (sample_weight, None, None))

    def _warn_of_result(self) -> None:
        """Warn if the tree is not proven optimal, or is a single leaf."""
        if "closest_" in vars(self):
            if self.closest_.status != "optimal":
                warnings.warn(
                    f"the tree is not proven to agree most with the old model ({self.closest_.status}): it agrees on "
                    f"{self.closest_.agreement:.6g}, and the bound is {self.closest_.agreement_bound:.6g}",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            return
        if self._is_proven:
            self._warn_of_single_leaf()
        else:
            self._warn_unproven(stacklevel=4)

    def _warn_of_single_leaf(self) -> None:
        """Warn of a single leaf, unless the parameters require one or the data have a single class."""
        asked = self.max_depth == 0 or self.max_leaf_nodes == 1 or self.constraints or column_constraints(self)
        if self.tree_.n_leaves > 1 or asked or np.count_nonzero(self.tree_.class_weights[0]) < 2:
            return
        place = int(self.tree_.label[0])
        label, share = self.classes_.tolist()[place], self.tree_.value[0, 0, place]
        ways = [] if self.class_weight is not None or self.objective is not None else ["class_weight='balanced'"]
        ways += [f"a leaf_penalty below {self.leaf_penalty:g}"] if self.leaf_penalty > 0 else []
        n_splits = self.result_.stats.get("every_split", {}).get("splits", self.tree_.n_features)
        ways = ways if n_splits else []  # constant columns cannot be split
        hint = f"; {' or '.join(ways)} may give a tree that splits" if ways else ""
        warnings.warn(
            f"the best tree is a single leaf: it predicts {shown(label)} for every row, which is right for {share:.1%} "
            f"of the training data, and no split is worth its leaves{hint}",
            SingleLeafWarning,
            stacklevel=4,
        )

    @classmethod
    def from_json(cls, source: str | Path, *, max_bytes: int = MAX_BYTES) -> OptimalTreeClassifier:
        """Read a classifier that `to_json` wrote. The input is parsed, never executed.

        Parameters
        ----------
        source : path, or the JSON text itself
        max_bytes : int
            Larger input is rejected before it is read.

        Raises
        ------
        InvalidInputError
            If the input is not JSON, truncated, of a newer schema, too large or inconsistent; the message says which.
        """
        stored = read_json(source, max_bytes=max_bytes)
        model = cls(**stored.parameters)
        for name, value in stored.attributes.items():
            setattr(model, name, value)
        model.constraints_ = ConstraintTable.of(model.result_, model.proof_)
        return model
