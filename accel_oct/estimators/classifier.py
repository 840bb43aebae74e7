"""Optimal trees as a scikit-learn classifier."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from accel_oct.constraints import Constraint
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.encoding.base import BinaryEncoder, PassthroughEncoder
from accel_oct.errors import SingleLeafWarning, shown
from accel_oct.estimators.base import TreeClassifier
from accel_oct.estimators.constraint_table import ConstraintTable
from accel_oct.estimators.every_split import FeatureSearch, TableSearch, table_bound
from accel_oct.estimators.families import along_penalties, by_leaves
from accel_oct.estimators.fitted import feature_names
from accel_oct.estimators.good_trees import listed_trees
from accel_oct.estimators.in_pieces import check_rows
from accel_oct.estimators.parameters import checked_penalties
from accel_oct.estimators.refining import Refinement
from accel_oct.estimators.trade_off import TradeOff, trade_off
from accel_oct.estimators.training import CheckedRows, Solved, TrainingData
from accel_oct.export.stored_model import MAX_BYTES, read_json
from accel_oct.live import watched
from accel_oct.mip import Solver, as_solver
from accel_oct.solving.config import Config, is_default_config
from accel_oct.solving.near_optimal import NearOptimalTrees
from accel_oct.solving.problem import PROOF_TOLERANCE
from accel_oct.solving.result import Result
from accel_oct.solving.solve import solve
from accel_oct.support.arguments import time_left
from accel_oct.support.progress import Reporter, Sink, announce
from accel_oct.support.stopping import Clock, kept_interrupts

__all__ = ["OptimalTreeClassifier"]

_LEAST_FOR_BOUND, _SHARE_FOR_BOUND, _MOST_FOR_BOUND = 0.5, 0.5, 10.0
"""Seconds for a bound over every split: at least, as a share of what the solve took, at most."""


class OptimalTreeClassifier(TreeClassifier):
    """The classification tree with the best penalised accuracy, with a proof.

    Maximises ``accuracy - leaf_penalty * (number of leaves)`` on the training data, over all trees of depth at most
    `max_depth` and every split of the table; where splits have to be chosen (see `encoder`), over these.

    Parameters
    ----------
    max_depth : int or None
        0 gives a single leaf. None: any depth; then `leaf_penalty` must be above 0, or `max_leaf_nodes` given.
    leaf_penalty : float
        Training accuracy that a further leaf must bring; `OptimalTreeClassifierCV` chooses it by cross-validation.
    solver : Solver or str
        The backend with its threads, seed, gap and options, or the name of a backend: "highs", "gurobi" and so on. The
        fields of a `Solver` are parameters too: ``solver__threads``.
    config : Config or str
        Which techniques are used, as in `accel_oct.solve`: all switches, or the name of a preset.
    components : list or None
        As in `accel_oct.solve`.
    time_limit : float or None
        Seconds, the encoding included. The best tree so far is kept when it is reached, with a ConvergenceWarning that
        tells the gap.
    encoder : "auto", None or transformer
        How columns become binary. "auto" needs no choice: every threshold and each category against the others is
        searched, and `encoder_` asks what the tree asks. Where that cannot be (constraints that tie subtrees together,
        ratios, data in pieces) it is `AutoEncoder`: quantiles and the thresholds of CART trees. None takes X as binary.
        A transformer (scikit-learn's too) must give columns of 0 and 1.
    missing : {"category", "error"}
        For ``encoder="auto"``: missing values as a category of their own, or an error.
    class_weight : dict, "balanced" or None
        Weights of the classes in the objective, multiplied with `sample_weight`. Rates that constraints limit are those
        of the samples as they are.
    objective : Objective, str or None
        What the tree is to be good at, from `accel_oct.objectives`: "accuracy" (None), "balanced_accuracy", "f1",
        ``CostMatrix(...)`` and others; its score takes the place of accuracy in `objective_` and `bound_`.
    constraints : list of Constraint or None
        What the tree must keep, from `accel_oct.constraints` or of your own. They may name columns of X, and all
        features that are made from a column count as one. `fit` raises NoTreeError when no tree keeps them. Their
        limits are parameters too: ``constraints__0__at_most``.
    min_samples_leaf : int or float
        Fewest samples of a leaf, or their share of all; as in scikit-learn.
    max_leaf_nodes : int or None
        Most leaves.
    max_features_used : int or None
        Most columns of X that the whole tree may look at. (scikit-learn's `max_features` is another thing.)
    exclude : list of str or int, or None
        Columns of X that no split may use, by name or position; they are not even encoded. Constraints may still name
        them.
    progress : callable or None
        Called with every `ProgressEvent` while solving; see docs/live-view.md.
    verbose : int
        0 is silent, 1 shows how the solve goes (`accel_oct.live.watching`), 2 shows more of it.

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
        What was reached and what is proven; over which splits, `proof_` says.
    exact_ : bool
        Whether `bound_` holds for every split of the table.
    table_bound_ : float or None
        What no tree over any split of the table exceeds: `bound_` where `exact_`; None where it is not known.
    proof_ : str
        What is proven, in words.
    constraints_ : ConstraintTable
        Per constraint: limits, training value, slack and multiplier; `print` it.
    result_ : Result
        All that `accel_oct.solve` returned, names included.
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
        exclude: Any = None,
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
        self.exclude = exclude
        self.progress = progress
        self.verbose = verbose

    def encode(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> EncodedTable:
        """Read and encode a table once, to ask several questions of it.

        Splits are chosen as for ``near_optimal``: by the classifier's own encoder, or by `AutoEncoder`. The classifier
        stays as it is, fitted or not.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`.

        Returns
        -------
        EncodedTable
            To be passed as X to `fit`, `path`, `frontier`, `near_optimal` and `trade_off` of any classifier, and to
            the functions of these names in `accel_oct`, without y.

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
            Numbers, strings, categories, booleans; see `encoder`. A path is that of a CSV or other file, of Parquet
            files or of a folder of them; see docs/estimator.md for all that may be here. An `EncodedTable` holds y and
            all the rest, and trees branch on its features.
        y : array-like (n_samples,), or str
            Classes of any sortable type, or the name of their column in X.
        sample_weight : array-like (n_samples,), or str, optional
            Or the name of a column, where y is one: then it is no feature.
        sensitive_features : array-like (n_samples,), data frame or mapping, optional
            Groups for constraints that name none; with names, constraints may name them. Several features without a
            constraint that names one are taken together: every combination is a group.
        costs : array-like (n_samples, n_classes), optional
            For ``objective=InstanceCosts()``.

        Returns
        -------
        self
        """
        with watched(self.progress, verbose=self.verbose, time_limit=self.time_limit) as progress:
            self._fit(X, y, (sample_weight, sensitive_features, costs), progress)
        self._warn_of_result()
        return self

    def _fit(self, X: Any, y: Any, given: tuple[Any, Any, Any], progress: Sink | None) -> None:
        began = time.perf_counter()
        announce(progress, "encoding")
        source = self._source(X, y, given, progress, tallies=True)
        search: TableSearch | FeatureSearch | None = TableSearch.of(self, source)
        if search is None:
            data = self._prepare(source)
            search = FeatureSearch.of(self, data) if self.max_depth is None else None
        with kept_interrupts() as stopped:  # once there is a tree, Ctrl-C never loses it
            if search is not None:
                solved = search.solve(self.leaf_penalty, Clock(began, self.time_limit), progress)
            else:
                solved = self._solve_refining(source, data, began, stopped.is_set, progress, bounded=True)
            self._adopt(solved.result, solved.data)

    def _with_table_bound(
        self,
        solved: Solved,
        checked: CheckedRows,
        began: float,
        is_stopped: Callable[[], bool],
        progress: Sink | None,
    ) -> Solved:
        """Add what no tree over any split of the table exceeds, where the search was over chosen ones."""
        encoder, result = solved.encoder, solved.result
        chosen = isinstance(encoder, BinaryEncoder) and not isinstance(encoder, PassthroughEncoder)
        known = result.status in ("optimal", "infeasible", "gap_limit")
        if not chosen or encoder.exact_ or not known or not is_default_config(self.config):
            return solved
        spent = time.perf_counter() - began
        seconds = min(_MOST_FOR_BOUND, max(_LEAST_FOR_BOUND, spent * _SHARE_FOR_BOUND))
        left = time_left(self.time_limit, began)
        announce(progress, "bound over every split")
        limit = seconds if left is None else min(seconds, left)
        bound = table_bound(self, checked, result.objective, limit, is_stopped)
        if bound is None:
            return solved
        if result.status == "optimal" and bound <= result.objective + PROOF_TOLERANCE:
            bound = result.objective
        return solved._replace(result=replace(result, stats={**result.stats, "table_bound": bound}))

    def _solve_refining(
        self,
        source: CheckedRows | EncodedTable,
        data: TrainingData,
        began: float,
        is_stopped: Callable[[], bool],
        progress: Sink | None,
        bounded: bool = False,
    ) -> Solved:
        """Solve, over finer splits where no tree over the first ones keeps the constraints.

        `bounded`: for rows in memory, what no tree over any split of the table exceeds is found as well; it may prove
        that finer splits do not help.
        """
        checked = source if bounded and isinstance(source, CheckedRows) else None
        found = Solved(self.encoder_, data, self._solve(data, time_left(self.time_limit, began), progress))
        if checked is not None:
            found = self._with_table_bound(found, checked, began, is_stopped, progress)
        if found.result.status == "infeasible" and not self._holds_for_table(found.result):
            left = time_left(self.time_limit, began)
            found = Refinement(self, source, left, is_stopped, progress).run(found)
            self.encoder_ = found.encoder
            if checked is not None and found.result.found is not None:
                found = self._with_table_bound(found, checked, began, is_stopped, progress)
        return found

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
        """The optimal tree of each leaf penalty.

        The classifier stays as it is, fitted or not; its `leaf_penalty` is not used.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`, in memory; or an `EncodedTable` alone.
        leaf_penalties : iterable of float

        Returns
        -------
        list of OptimalTreeClassifier
            Fitted, one per penalty, in the order given. The time limit holds for all of them together.

        Raises
        ------
        NoTreeError
            Where no tree keeps the constraints.
        """
        given = (sample_weight, sensitive_features, costs)
        penalties = checked_penalties(leaf_penalties)
        return self._family(
            X,
            y,
            given,
            lambda base, source, clock, progress: along_penalties(base, source, penalties, lambda: clock, progress),
            [{"leaf_penalty": penalty} for penalty in penalties],
        )

    def frontier(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> list[OptimalTreeClassifier]:
        """The best tree for each number of leaves; leaf penalties are not counted.

        The classifier stays as it is, fitted or not.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`, in memory; or an `EncodedTable` alone.

        Returns
        -------
        list of OptimalTreeClassifier
            Fitted; the one at place h - 1 has at most h leaves, up to ``2**max_depth`` or `max_leaf_nodes`. The time
            limit holds for all of them together.

        Raises
        ------
        InvalidInputError
            For constraints that tie subtrees together, and objectives that are ratios.
        NoTreeError
            Where no tree keeps the constraints.
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
        """Fitted classifiers from a search that finds several trees; by default those of a frontier."""
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
        """All trees whose objective is almost that of the best one, in the columns of X; see `accel_oct.near_optimal`.

        These are trees over the splits that `AutoEncoder` chooses, or that the classifier's own encoder asks for. The
        classifier stays as it is, fitted or not; pass what it is, or would be, fitted on.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`; or an `EncodedTable` alone.
        within : float
            How much less the objective may be than that of the best tree that keeps the classifier's constraints: 0.01
            is one point of accuracy.
        limit, labels
            As in `accel_oct.near_optimal`, of the trees that keep the constraints.

        Returns
        -------
        NearOptimalTrees
            ``trees.model(place)`` is the tree at a place as a fitted classifier: its `bound_` is the optimum, its
            `gap_` how far it is from that. A search that was stopped gives a ConvergenceWarning.
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
        """The best tree for each limit of one of the classifier's constraints; see `accel_oct.trade_off`.

        The classifier stays as it is, fitted or not.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`; or an `EncodedTable` alone.
        limits, constraint, cv
            As in `accel_oct.trade_off`.

        Returns
        -------
        TradeOff
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

    def _solve(self, data: TrainingData, time_limit: float | None, progress: Sink | None = None) -> Result:
        return solve(
            data.solved,
            max_depth=self.max_depth,
            leaf_penalty=self.leaf_penalty,
            constraints=self._all_constraints(data),
            objective=data.stated,
            solver=self.solver,
            config=self.config,
            components=self.components,
            time_limit=time_limit,
            progress=self.progress if progress is None else progress,
            start=data.starts,
        )

    def _warn_of_result(self) -> None:
        """Warn of a tree that is not proven, and of one that looks at nothing."""
        if self.status_ == "optimal" or self.gap_ <= as_solver(self.solver).gap:
            self._warn_of_single_leaf()
            return
        warnings.warn(
            f"the tree is not proven optimal ({self.status_}): its objective is {self.objective_:.6g} and the bound "
            f"{self.bound_:.6g}, a gap of {self.gap_:.2%}. Raise time_limit or leaf_penalty, or lower max_depth",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _warn_of_single_leaf(self) -> None:
        """Not where that was asked for, or where there is nothing to tell apart."""
        asked = self.max_depth == 0 or self.max_leaf_nodes == 1 or self.constraints
        if self.tree_.n_leaves > 1 or asked or np.count_nonzero(self.tree_.class_weights[0]) < 2:
            return
        place = int(self.tree_.label[0])
        label, share = self.classes_.tolist()[place], self.tree_.value[0, 0, place]
        ways = [] if self.class_weight is not None or self.objective is not None else ["class_weight='balanced'"]
        ways += [f"a leaf_penalty below {self.leaf_penalty:g}"] if self.leaf_penalty > 0 else []
        n_splits = self.result_.stats.get("every_split", {}).get("splits", self.tree_.n_features)
        ways = ways if n_splits else []  # columns without two values cannot be split at all
        hint = f"; {' or '.join(ways)} may give a tree that splits" if ways else ""
        warnings.warn(
            f"the best tree is a single leaf: it predicts {shown(label)} for every row, which is right for {share:.1%} "
            f"of the training data, and no split is worth its leaves{hint}",
            SingleLeafWarning,
            stacklevel=4,
        )

    @classmethod
    def from_json(cls, source: str | Path, *, max_bytes: int = MAX_BYTES) -> OptimalTreeClassifier:
        """Read what `to_json` wrote. Nothing in it is executed.

        Parameters
        ----------
        source : path, or the JSON text itself
        max_bytes : int
            Larger input is refused unread.

        Raises
        ------
        InvalidInputError
            Saying what is wrong: not JSON, cut off, of a newer schema, too large, or inconsistent in itself.
        """
        stored = read_json(source, max_bytes=max_bytes)
        model = cls(**stored.parameters)
        for name, value in stored.attributes.items():
            setattr(model, name, value)
        model.constraints_ = ConstraintTable(model.result_.constraints, model.proof_)
        return model
