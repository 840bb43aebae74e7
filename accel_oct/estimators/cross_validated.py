"""Selection of the leaf penalty and the depth by cross-validation, with one path of penalties per fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from accel_oct.constraints import Constraint, bind_all
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.labels import as_labels
from accel_oct.data.weights import as_weights
from accel_oct.encoding.tables import Table, is_indexable
from accel_oct.errors import InvalidInputError, NoTreeError, as_invalid_input
from accel_oct.estimators.base import TreeClassifier
from accel_oct.estimators.by_name import given_data
from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.estimators.folds import FoldReporter, Task, solve_folds
from accel_oct.estimators.in_pieces import in_memory_only
from accel_oct.estimators.rules import check_splittable, checked_penalties
from accel_oct.estimators.training import Attached, attached
from accel_oct.live import watched
from accel_oct.mip import Solver, as_solver, candidate_backends
from accel_oct.pieces.detection import is_in_pieces
from accel_oct.reasons.stability import Stability
from accel_oct.solving.config import Config, as_config
from accel_oct.support.arguments import checked_depth
from accel_oct.support.progress import Sink, announce
from accel_oct.tree.probabilities import DEFAULT_SMOOTHING

#: From a penalty that allows few leaves to one that has little effect, halved at each step.
DEFAULT_PENALTIES = tuple(0.1 / 2**k for k in range(9))


class OptimalTreeClassifierCV(TreeClassifier):
    """Optimal tree classifier that selects the leaf penalty, and optionally the depth, by cross-validation.

    Each fold is solved once per depth: `accel_oct.solve_path` returns the optimal trees of all penalties. If `solver`
    (apart from threads and seed) or `config` is not the default, or a constraint or the objective couples subtrees,
    each fold is solved once per depth and penalty.

    Parameters
    ----------
    max_depth : int, None, or sequence of these
        One depth, or the candidates; None means no limit, see `OptimalTreeClassifier`.
    leaf_penalties : sequence of float or None
        Candidates; None means nine values from 0.1 on, each half of the previous one.
    cv : int, splitter or iterable
        Cross-validation as in scikit-learn; an int means stratified folds.
    rule : {"best", "one_standard_error"}
        Select the best mean score, or the simplest tree within one standard error of it.
    scoring : str, callable or None
        Score on held-out rows, as in scikit-learn. None means the training objective: accuracy, `objective`, or
        accuracy weighted by `class_weight`.
    n_jobs : int or None
        Number of folds that are solved in parallel, each with the threads of `solver`; as in scikit-learn.
    solver, config, components, time_limit, encoder, missing, class_weight, objective, constraints, min_samples_leaf, \
max_leaf_nodes, max_features_used, monotonic_cst, exclude, interaction_cst, smoothing, calibrate, progress, \
verbose
        As in `OptimalTreeClassifier`, for the folds and for the fit on all data. The time limit applies to each solve.
        `progress` also receives events with the number of folds that are done. `calibrate` applies to the fit on all
        data.

    Notes
    -----
    Ctrl-C during the folds raises KeyboardInterrupt and does not change the classifier: the selection needs all folds.
    During the fit on all data, the best tree so far is kept, as in `OptimalTreeClassifier`: ``status_`` is
    "interrupted" unless the proof was complete.

    Attributes
    ----------
    leaf_penalty_, max_depth_
        Selected parameters.
    cv_results_ : dict of arrays
        For each candidate: max_depth, leaf_penalty, mean_test_score, std_test_score, mean_n_leaves, split_test_scores
        (candidates x folds).
    curve_ : float array (n_points, 3)
        Mean number of leaves, mean score and its standard error for each penalty at the selected depth, by increasing
        number of leaves. `accel_oct.plotting.plot_path` plots it.
    best_estimator_ : OptimalTreeClassifier
        Classifier fitted on all data. Its fitted attributes are also attributes of this estimator.
    """

    def __init__(
        self,
        max_depth: Any = 3,
        leaf_penalties: Sequence[float] | None = None,
        *,
        cv: Any = 5,
        rule: str = "best",
        scoring: Any = None,
        n_jobs: int | None = None,
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
        progress: Sink | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.leaf_penalties = leaf_penalties
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.n_jobs = n_jobs
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
        self.progress = progress
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> OptimalTreeClassifierCV:
        """Select the parameters by cross-validation, then fit on all data.

        Parameters
        ----------
        X : data frame or array-like (n_samples, n_features)
        y : array-like (n_samples,)
        sample_weight : array-like (n_samples,), optional
            Used in training and in the score on held-out rows.
        sensitive_features, costs
            As in `OptimalTreeClassifier.fit`; split with the rows.
        """
        if self.rule not in ("best", "one_standard_error"):
            raise InvalidInputError(f"rule must be 'best' or 'one_standard_error', got {self.rule!r}")
        named = given_data(X, y, sample_weight, sensitive_features)
        X, y, given = named.X, named.y, (named.sample_weight, named.sensitive_features, costs)
        with watched(self.progress, verbose=self.verbose) as progress:
            best, chosen = self._chosen(X, y, given, progress)
        best._warn_of_result()
        self._take_over(best, chosen)
        return self

    def to_json(self, path: Any = None) -> str:
        """Return `best_estimator_` as JSON text, written to a file if `path` is given."""
        text: str = self.best_estimator_.to_json(path)
        return text

    def stability(self, X: Any, y: Any, **options: Any) -> Stability:
        """Return the stability of `best_estimator_`: its splits in trees of bootstrap samples.

        Parameters
        ----------
        X, y, options
            As in `OptimalTreeClassifier.stability`.
        """
        check_is_fitted(self, "best_estimator_")
        found: Stability = self.best_estimator_.stability(X, y, **options)
        return found

    # ---------------------------------------------------------------- cross-validation

    def _chosen(
        self, X: Any, y: Any, given: tuple[Any, Any, Any], progress: Sink | None
    ) -> tuple[OptimalTreeClassifier, dict[str, Any]]:
        """Return the classifier fitted on all data, and the attributes that describe the selection."""
        depths, penalties = self._depths(), self._penalties()
        self._check_solver_arguments()
        # All data checks are here. An earlier fit remains unchanged until the end.
        if isinstance(X, EncodedTable) or is_in_pieces(X, y):
            raise in_memory_only("cross-validation")
        announce(progress, "encoding")
        first = self._classifier(depths[0] or 1, penalties[0])
        data = first._prepare(first._source(X, y, given))
        check_splittable(bind_all(first._all_constraints(data), data.dataset), data.score)
        n_rows = data.dataset.n_samples
        weights = None if given[0] is None else as_weights(given[0], n_rows)
        scores, leaves, failures = self._cross_validate(
            X, data.dataset.y, y, weights, attached(*given[1:], n_rows), depths, penalties, progress
        )
        if np.isnan(scores.mean(axis=2)).all():
            raise _no_tree(failures)
        chosen = self._summary(scores, leaves, depths, penalties)
        best = self._classifier(chosen["max_depth_"], chosen["leaf_penalty_"], self.progress)
        best._fit(X, y, given, progress)
        return best, chosen

    def _cross_validate(
        self,
        X: Any,
        codes: Any,
        y: Any,
        weights: Any,
        given: Attached,
        depths: list[int | None],
        penalties: list[float],
        progress: Sink | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], frozenset[str]]:
        """Return scores and leaves, each (depths, penalties, folds), and the statuses of solves without a tree."""
        X = X if is_indexable(X) else Table.read(X)
        rows = np.zeros((len(codes), 1))
        with as_invalid_input("cv"):
            folds = list(check_cv(self.cv, codes, classifier=True).split(rows, codes))
        if not folds:
            raise InvalidInputError("cv yields no split")
        y = np.asarray(as_labels(y)).reshape(-1)
        tasks = [
            Task(self._classifier(depth, 0.0), X, y, weights, given, train, test, penalties, self.scoring)
            for depth in depths
            for train, test in folds
        ]
        outcomes = solve_folds(tasks, self.n_jobs, FoldReporter(progress, len(tasks)))
        scores = np.array([outcome.scores for outcome in outcomes])
        shaped = scores.reshape(len(depths), len(folds), len(penalties), 2).transpose(0, 2, 1, 3)
        return shaped[..., 0], shaped[..., 1], frozenset().union(*(outcome.failures for outcome in outcomes))

    def _summary(self, scores: Any, leaves: Any, depths: list[int | None], penalties: list[float]) -> dict[str, Any]:
        """Return the attributes that describe the selection."""
        n_folds = scores.shape[2]
        mean, std = scores.mean(axis=2), scores.std(axis=2)
        error = scores.std(axis=2, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros_like(mean)
        results = {
            "max_depth": np.repeat(np.array(depths), len(penalties)),
            "leaf_penalty": np.tile(penalties, len(depths)),
            "mean_test_score": mean.ravel(),
            "std_test_score": std.ravel(),
            "mean_n_leaves": leaves.mean(axis=2).ravel(),
            "split_test_scores": scores.reshape(-1, n_folds),
        }
        top = np.unravel_index(int(np.nanargmax(mean)), mean.shape)
        enough = mean[top] - (error[top] if self.rule == "one_standard_error" else 1e-12)
        # Simplest first: fewest leaves on average, then smallest depth, then largest penalty.
        size = leaves.mean(axis=2)
        good = [(size[d, p], _order(depths[d]), -penalties[p], d, p) for d, p in np.argwhere(mean >= enough).tolist()]
        *_, d, p = min(good)
        points = np.column_stack([size[d], mean[d], error[d]])
        return {
            "max_depth_": depths[d],
            "leaf_penalty_": penalties[p],
            "cv_results_": results,
            "curve_": points[np.argsort(points[:, 0], kind="stable")],
        }

    def _take_over(self, best: OptimalTreeClassifier, chosen: dict[str, Any]) -> None:
        """Set all fitted attributes at once."""
        fitted = {name: value for name, value in vars(best).items() if name.endswith("_") and not name.startswith("_")}
        if "feature_names_in_" not in fitted and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for name, value in {**fitted, **chosen, "best_estimator_": best}.items():
            setattr(self, name, value)

    def _classifier(
        self, max_depth: int | None, leaf_penalty: float, progress: Sink | None = None
    ) -> OptimalTreeClassifier:
        own = ("encoder", "progress", "max_depth", "leaf_penalty", "close_to", "within", "agreement")
        shared = [name for name in OptimalTreeClassifier._get_param_names() if name not in own]
        encoder = self.encoder if self.encoder is None or isinstance(self.encoder, str) else clone(self.encoder)
        return OptimalTreeClassifier(
            max_depth,
            leaf_penalty,
            encoder=encoder,
            progress=progress,
            **{name: getattr(self, name) for name in shared},
        )

    def _depths(self) -> list[int | None]:
        depths = list(self.max_depth) if isinstance(self.max_depth, Sequence | np.ndarray) else [self.max_depth]
        if not depths:
            raise InvalidInputError(f"max_depth must be one or more whole numbers, got {self.max_depth!r}")
        return sorted({None if depth is None else checked_depth(depth) for depth in depths}, key=_order)

    def _penalties(self) -> list[float]:
        if self.leaf_penalties is None:
            return list(DEFAULT_PENALTIES)
        return sorted(set(checked_penalties(self.leaf_penalties)), reverse=True)

    def _check_solver_arguments(self) -> None:
        """Validate solver arguments before the first fold is solved."""
        as_config(self.config)
        solver = as_solver(self.solver)
        candidate_backends(solver.backend)
        solver.solve_options(self.time_limit)


def _order(depth: int | None) -> float:
    """Return the sort key of a depth; no limit comes last."""
    return math.inf if depth is None else depth


def _no_tree(failures: frozenset[str]) -> NoTreeError:
    """Return the error if every depth and penalty lacks a tree in some fold; `failures` are the solve statuses."""
    where = "on the training rows of every fold, whatever the penalty"
    stopped = sorted(failures - {"infeasible"})
    if stopped:
        words = (
            f"no tree that satisfies the constraints was found {where}: some solves ended with status {stopped[0]!r}"
        )
        return NoTreeError(words, stopped[0])
    return NoTreeError(f"no tree over the splits that were searched satisfies the constraints {where}")
