"""Optimal trees as a scikit-learn classifier."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from accel_oct.constraints import Constraint
from accel_oct.errors import SingleLeafWarning, shown
from accel_oct.estimators.base import TreeClassifier
from accel_oct.estimators.constraint_table import ConstraintTable
from accel_oct.estimators.good_trees import listed_trees
from accel_oct.estimators.parameters import n_threads, solver_seed
from accel_oct.estimators.refining import Refined, Refinement
from accel_oct.estimators.training import TrainingData
from accel_oct.export.stored_model import MAX_BYTES, read_json
from accel_oct.live import watched
from accel_oct.near_optimal.trees import NearOptimalTrees
from accel_oct.solving.activity import say
from accel_oct.solving.config import Config
from accel_oct.solving.result import Progress, Result
from accel_oct.solving.solve import solve
from accel_oct.support.arguments import time_left
from accel_oct.support.interrupts import kept_interrupts

__all__ = ["OptimalTreeClassifier"]


class OptimalTreeClassifier(TreeClassifier):
    """The classification tree with the best penalised accuracy, with a proof.

    Maximises ``accuracy - leaf_penalty * (number of leaves)`` on the training data, over all trees of depth at most
    `max_depth` that split on the encoded columns.

    Parameters
    ----------
    max_depth : int
        0 gives a single leaf.
    leaf_penalty : float
        Training accuracy that a further leaf must bring; `OptimalTreeClassifierCV` chooses it by cross-validation.
    backend : str
        The solver: "highs", "gurobi" or any other registered backend.
    preset : str
        Which techniques are used, as in `accel_oct.solve`; ignored when `config` is given.
    time_limit : float or None
        Seconds, the encoding included. The best tree so far is kept when it is reached, with a ConvergenceWarning that
        tells the gap.
    gap : float
        Relative gap at which to stop; 0 asks for a proof.
    encoder : "auto", None or transformer
        How columns become binary. "auto" is `AutoEncoder`: every threshold of the numbers where the search over them
        takes a few seconds at most (`exact_` says so), else quantiles and the thresholds of CART trees; strings
        one-hot, booleans as they are. None takes X as binary. A transformer (scikit-learn's too) must give columns of 0
        and 1.
    missing : {"category", "error"}
        For ``encoder="auto"``: missing values as a category of their own, or an error.
    class_weight : dict, "balanced" or None
        Weights of the classes in the objective, multiplied with `sample_weight`. Rates that constraints limit are those
        of the samples as they are.
    objective : Objective, str or None
        What the tree is to be good at, from `accel_oct.objectives`: "accuracy" (None), "balanced_accuracy", "f1",
        ``CostMatrix(...)`` and others; its score takes the place of accuracy in `objective_` and `bound_`.
    n_jobs : int or None
        Threads of the solver; None is 1 and -1 all cores.
    random_state : int, RandomState or None
        Seed of the solver. It decides at most between trees that are equally good.
    config : Config or None
        Every switch of `accel_oct.solve`.
    progress : callable or None
        Called with each `HistoryRow` while solving; see docs/live-view.md.
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
    components : list or None
        As in `accel_oct.solve`.
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
        What was reached and what is proven, over trees that split as the encoder can ask.
    exact_ : bool
        Whether the encoder can ask for every split of the table: then `bound_` holds for all trees of that depth on it.
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
        max_depth: int = 3,
        leaf_penalty: float = 0.01,
        *,
        backend: str = "highs",
        preset: str = "default",
        time_limit: float | None = None,
        gap: float = 0.0,
        encoder: Any = "auto",
        missing: str = "category",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        config: Config | None = None,
        progress: Progress | None = None,
        components: Sequence[Any] | None = None,
        constraints: Sequence[Constraint] | None = None,
        objective: Any = None,
        min_samples_leaf: Any = 1,
        max_leaf_nodes: int | None = None,
        max_features_used: int | None = None,
        exclude: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.leaf_penalty = leaf_penalty
        self.backend = backend
        self.preset = preset
        self.time_limit = time_limit
        self.gap = gap
        self.encoder = encoder
        self.missing = missing
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.config = config
        self.progress = progress
        self.components = components
        self.constraints = constraints
        self.objective = objective
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features_used = max_features_used
        self.exclude = exclude
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> OptimalTreeClassifier:
        """Find the optimal tree.

        Parameters
        ----------
        X : data frame, array-like or sparse matrix (n_samples, n_features), path, or data in pieces
            Numbers, strings, categories, booleans; see `encoder`. A path is that of a CSV or other file, of Parquet
            files or of a folder of them; see docs/estimator.md for all that may be here.
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

    def _fit(self, X: Any, y: Any, given: tuple[Any, Any, Any], progress: Progress | None) -> None:
        began = time.perf_counter()
        say(progress, "encoding")
        data = self._prepare(X, y, *given, progress=progress, tallies=True)
        with kept_interrupts() as stopped:  # once there is a tree, Ctrl-C never loses it
            result, data = self._solve_refining(X, y, given, data, began, stopped.is_set, progress)
            self._adopt(result, data)

    def _solve_refining(
        self,
        X: Any,
        y: Any,
        given: tuple[Any, Any, Any],
        data: TrainingData,
        began: float,
        is_stopped: Callable[[], bool],
        progress: Progress | None,
    ) -> tuple[Result, TrainingData]:
        """Solve, over finer splits where no tree over the first ones keeps the constraints; `encoder_` has them."""
        found = Refined(self.encoder_, data, self._solve(data, time_left(self.time_limit, began), progress))
        if found.result.status == "infeasible":
            left = time_left(self.time_limit, began)
            found = Refinement(self, X, y, given, left, is_stopped, progress).run(found)
        self.encoder_ = found.encoder
        return found.result, found.data

    def near_optimal(
        self,
        X: Any,
        y: Any,
        *,
        within: float,
        limit: int | None = 1000,
        labels: str = "any",
        sample_weight: Any = None,
        sensitive_features: Any = None,
        costs: Any = None,
    ) -> NearOptimalTrees:
        """All trees whose objective is almost that of the best one, in the columns of X; see `accel_oct.near_optimal`.

        The classifier stays as it is, fitted or not; pass what it is, or would be, fitted on.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, costs
            As in `fit`.
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
        trees = listed_trees(self, X, y, given, within, limit, labels, n_threads(self.n_jobs))
        if trees.status != "finished":
            warnings.warn(f"near-optimal trees: {trees.summary}", ConvergenceWarning, stacklevel=2)
        return trees

    def _solve(self, data: TrainingData, time_limit: float | None, progress: Progress | None = None) -> Result:
        return solve(
            data.solved,
            max_depth=self.max_depth,
            leaf_penalty=self.leaf_penalty,
            backend=self.backend,
            preset=self.preset,
            time_limit=time_limit,
            threads=n_threads(self.n_jobs),
            seed=solver_seed(self.random_state),
            gap=self.gap,
            progress=self.progress if progress is None else progress,
            config=self.config,
            components=self.components,
            constraints=self._all_constraints(data),
            objective=data.stated,
            start=data.starts,
        )

    def _warn_of_result(self) -> None:
        """Warn of a tree that is not proven, and of one that looks at nothing."""
        if self.status_ == "optimal" or self.gap_ <= self.gap:
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
        asked = self.tree_.tree.max_depth == 0 or self.max_leaf_nodes == 1 or self.constraints
        if self.tree_.n_leaves > 1 or asked or np.count_nonzero(self.tree_.class_weights[0]) < 2:
            return
        place = int(self.tree_.label[0])
        label, share = self.classes_.tolist()[place], self.tree_.value[0, 0, place]
        ways = [] if self.class_weight is not None or self.objective is not None else ["class_weight='balanced'"]
        ways += [f"a leaf_penalty below {self.leaf_penalty:g}"] if self.leaf_penalty > 0 else []
        ways = ways if self.tree_.n_features else []  # columns without two values cannot be split at all
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
